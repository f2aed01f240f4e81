"""A policy that has learnt from the first part of a log, to be evaluated on the rest: never on rows that it has
seen.
"""

from typing import Any

import numpy as np
import polars as pl

from solid_bandits import _check
from solid_bandits._check import ArgumentError
from solid_bandits.agent import Agent
from solid_bandits.decision import Decision
from solid_bandits.ope.rows import Reader
from solid_bandits.policies.contract import DecisionPolicy, Policy


def fitted(
    log: Any, policy: Policy, *, share: float = 0.5, seed: int = 0, **settings: Any
) -> tuple[Agent, pl.DataFrame]:
    """An agent that has learnt from the first rows of a log, and the rows after them.

    Args:
        log: a log, a file of one, or a `Bandit`; with features (`sb.logs.crossed` makes them of a context that arms
            share).
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
    part = _check.number("share", share, above=0, below=1)
    if not isinstance(policy, DecisionPolicy):
        raise ArgumentError(
            "policy", f"must be one that decides from features, such as LinTS(), got {_check.short(policy)}"
        )
    table = Reader(log).table()
    first = max(int(part * table.height), 1)
    before, after = table.head(first), table.tail(table.height - first)
    rewards = before["reward"].drop_nulls()
    if rewards.len() < 2 or not after.height:
        raise ArgumentError("log", f"must have more rows with rewards to split, got {table.height}")
    spread = float(rewards.std())  # type: ignore[arg-type]
    agent: Agent | None = None
    for rows in Reader(before).blocks():
        if rows.features is None:
            raise ArgumentError(
                "log", "must have features to learn from; logs.crossed makes them of a context"
            )
        if agent is None:
            given = {"noise_std": max(spread, 1e-9), "probabilities": True} | settings
            agent = Agent(policy, dim=rows.features.shape[2], seed=seed, **given)
            agent.decide(np.ascontiguousarray(rows.features[0, : rows.counts[0]]))  # sets the ridge of some
        for row, place in enumerate(rows.place):
            features = rows.features[row, place].copy()
            agent.learn(Decision(int(place), None, None, False, features, None), float(rows.reward[row]))
    assert agent is not None  # there are rows
    return agent, after
