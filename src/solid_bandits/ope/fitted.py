"""A policy that has learnt from the first part of a log, to be evaluated on the rest: never on rows that it has
seen.
"""

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from solid_bandits._internal import checks
from solid_bandits._internal.checks import ArgumentError
from solid_bandits.core.agent import Agent
from solid_bandits.core.decision import Decision
from solid_bandits.features.spec import Features
from solid_bandits.live.bandit import Bandit
from solid_bandits.logs.named import declared, named_rows
from solid_bandits.ope.rows import Reader
from solid_bandits.policies.contract import DecisionPolicy, Policy


class Learner(NamedTuple):
    """A policy, and what it sees of a log with named values; None is the log's features, or its declaration."""

    policy: DecisionPolicy
    features: Features | None = None


def fitted(
    log: Any,
    policy: Policy,
    *,
    share: float = 0.5,
    seed: int = 0,
    features: Features | None = None,
    **settings: Any,
) -> tuple[Agent | Bandit, pl.DataFrame]:
    """An agent that has learnt from the first rows of a log, and the rows after them.

    Where a log has named values instead of features, it is a bandit that decides by them: by all of them, or by others
    than the logger's, which tells whether a name would have helped.

    Args:
        log: a log, a file of one, or a `Bandit`; with features, or with named values.
        policy: one that decides from features.
        share: of the rows, to learn from.
        seed: of the agent.
        features: what the policy sees of named values; None is the log's features, or what the bandit or its store
            declares. A log on its own declares no types: all its names then have those of their first values.
        settings: of the agent; `noise_std` is the standard deviation of the first rewards if it is not given.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> rng = np.random.default_rng(0)
        >>> bandit = sb.Bandit(arms=["tea", "milk"], context=["age", "device"], floor=0.5, seed=0)
        >>> for _ in range(200):
        ...     choice = bandit.decide({"age": rng.normal(40, 9), "device": rng.choice(["ios", "tv"])})
        ...     _ = bandit.learn(choice.event_id, rng.normal())
        >>> log = bandit.log()
        >>> without = sb.Features(context=["device"], arms=["tea", "milk"])
        >>> blind, rest = sb.ope.fitted(log, sb.Greedy(), features=without)
        >>> seeing, rest = sb.ope.fitted(log, sb.Greedy())
        >>> found = sb.ope.evaluate(rest, {"without age": blind, "with age": seeing}, ["ips"])
        >>> rest.height, list(found)
        (100, ['without age', 'with age'])
    """
    if not isinstance(policy, DecisionPolicy):
        raise ArgumentError(
            "policy", f"must be one that decides from features, such as LinTS(), got {checks.short(policy)}"
        )
    if features is not None and not isinstance(features, Features):
        raise ArgumentError("features", f"must be sb.Features(...), got {checks.short(features)}")
    agents, rest = fit(Reader(log), {"it": Learner(policy, features)}, share, seed, **settings)
    return agents["it"], rest.table()


def fit(
    reader: Reader, learners: Mapping[str, Learner], share: float = 0.5, seed: int = 0, **settings: Any
) -> tuple[dict[str, Agent | Bandit], Reader]:
    """Agents that have learnt from the first rows of a log, all on one reading, and a reader of the rows after them."""
    height = reader.table().height
    first = max(int(checks.number("share", share, above=0, below=1) * height), 1)
    before, after = reader.part(0, first), reader.part(first, height - first, reader.missing_reward)
    rewards = before.table()["reward"].drop_nulls()
    if rewards.len() < 2 or not after.height:
        raise ArgumentError("log", f"must have more rows with rewards to split, got {height}")
    spread = float(rewards.std())  # type: ignore[arg-type]
    given = {"noise_std": max(spread, 1e-9)} | settings
    by_numbers: dict[str, DecisionPolicy] = {}
    agents: dict[str, Agent | Bandit] = {}
    for label, (policy, features) in learners.items():
        if features is None and not reader.named:
            by_numbers[label] = policy
        else:
            agents[label] = _by_names(reader, before.table(), policy, features, seed, given)
    agents |= _by_numbers(before, by_numbers, seed, {"probabilities": True} | given)
    return {label: agents[label] for label in learners}, after


def _by_names(
    reader: Reader,
    table: pl.DataFrame,
    policy: DecisionPolicy,
    features: Features | None,
    seed: int,
    given: Mapping[str, Any],
) -> Bandit:
    """A bandit that has learnt from the named values of some rows."""
    if table["context"].null_count() and table["arm_features"].null_count():
        raise ArgumentError("log", "must have named values in every row to learn from them")
    known = reader.features or declared(named_rows(reader.table()))
    features = known if features is None else features
    _check_names(features.context, known.context, "context")
    _check_names(features.arm_features, known.arm_features, "arm_features")
    bandit = Bandit(policy, features=features, seed=seed, window=table.height, log=False, **given)
    bandit.warm_start(table)
    return bandit


def _check_names(names: Iterable[str], known: Collection[str], what: str) -> None:
    """Raise an error unless a log has these names: one that it lacks would be taken for always missing."""
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            listed = ", ".join(map(repr, known)) or "none"
            raise ArgumentError(
                "features", f"must be names of the log's {what}, got {name!r}; there are {listed}{hint}"
            )


def _by_numbers(
    before: Reader, policies: Mapping[str, DecisionPolicy], seed: int, given: Mapping[str, Any]
) -> dict[str, Agent | Bandit]:
    """Agents that have learnt from the features of some rows."""
    agents: dict[str, Agent | Bandit] = {}
    for rows in before.blocks() if policies else ():
        if rows.features is None:
            raise ArgumentError("log", "must have features, or named values, to learn from")
        for label, policy in policies.items():
            agent = agents.get(label)
            if agent is None:
                agent = agents[label] = Agent(policy, dim=rows.features.shape[2], seed=seed, **given)
                # Sets the ridge of some.
                agent.decide(np.ascontiguousarray(rows.features[0, : rows.counts[0]]))
            assert isinstance(agent, Agent)
            for row, place in enumerate(rows.place):
                features = rows.features[row, place].copy()
                agent.learn(Decision(int(place), features), float(rows.reward[row]))
    return agents
