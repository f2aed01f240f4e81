"""A policy that has learnt from the first part of a log, to be evaluated on the rest: never on rows that it has
seen.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from solid_bandits._internal import checks
from solid_bandits._internal.checks import ArgumentError
from solid_bandits.core.agent import Agent
from solid_bandits.core.decision import Decision
from solid_bandits.ope.rows import Reader
from solid_bandits.policies.contract import DecisionPolicy, Policy


def fitted(
    log: Any, policy: Policy, *, share: float = 0.5, seed: int = 0, **settings: Any
) -> tuple[Agent, pl.DataFrame]:
    """An agent that has learnt from the first rows of a log, and the rows after them.

    Args:
        log: a log, a file of one, or a `Bandit`; with features (`sb.logs.with_features` makes them of named
            values).
        policy: one that decides from features.
        share: of the rows, to learn from.
        seed: of the agent.
        settings: of the agent; `noise_std` is the standard deviation of the first rewards if it is not given.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> rng = np.random.default_rng(0)
        >>> bandit = sb.Bandit(sb.LinTS(), dim=2, noise_std=0.5, floor=0.5, seed=0)
        >>> for _ in range(200):
        ...     choice = bandit.decide(rng.normal(size=(3, 2)))
        ...     _ = bandit.learn(choice.event_id, rng.normal())
        >>> agent, rest = sb.ope.fitted(bandit.log(), sb.Greedy())
        >>> rest.height
        100
    """
    if not isinstance(policy, DecisionPolicy):
        raise ArgumentError(
            "policy", f"must be one that decides from features, such as LinTS(), got {checks.short(policy)}"
        )
    agents, rest = fit(Reader(log), {"it": policy}, share, seed, **settings)
    return agents["it"], rest.table()


def fit(
    reader: Reader, policies: Mapping[str, DecisionPolicy], share: float = 0.5, seed: int = 0, **settings: Any
) -> tuple[dict[str, Agent], Reader]:
    """Agents that have learnt from the first rows of a log, all on one reading, and a reader of the rows after them."""
    height = reader.table().height
    first = max(int(checks.number("share", share, above=0, below=1) * height), 1)
    before, after = reader.part(0, first), reader.part(first, height - first, reader.missing_reward)
    rewards = before.table()["reward"].drop_nulls()
    if rewards.len() < 2 or not after.height:
        raise ArgumentError("log", f"must have more rows with rewards to split, got {height}")
    spread = float(rewards.std())  # type: ignore[arg-type]
    given = {"noise_std": max(spread, 1e-9), "probabilities": True} | settings
    agents: dict[str, Agent] = {}
    for rows in before.blocks():
        if rows.features is None:
            raise ArgumentError(
                "log", "must have features to learn from; logs.with_features makes them of named values"
            )
        for label, policy in policies.items():
            if label not in agents:
                agents[label] = Agent(policy, dim=rows.features.shape[2], seed=seed, **given)
                # Sets the ridge of some.
                agents[label].decide(np.ascontiguousarray(rows.features[0, : rows.counts[0]]))
            for row, place in enumerate(rows.place):
                features = rows.features[row, place].copy()
                agents[label].learn(Decision(int(place), features), float(rows.reward[row]))
    return agents, after
