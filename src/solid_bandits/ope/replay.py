"""Replay of a learning policy on the rows of a log in which it agrees with the logger.

Li, Chu, Langford and Wang (2011): in a log of uniform choices, the rows in which a policy would have pulled the logged
arm form a run of that policy in the world, if it learns only from them. A logger with other known probabilities g is
made uniform first: a row is kept with probability m / g, m being the least probability of any arm.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.checks import ArgumentError, short
from solid_bandits._internal.types import Floats
from solid_bandits.core.agent import Agent
from solid_bandits.core.decision import Decision
from solid_bandits.live.bandit import Bandit
from solid_bandits.ope.contract import Value
from solid_bandits.ope.rows import Reader, Rows, no_features
from solid_bandits.policies.plain import PlainAgent
from solid_bandits.policies.state import arrays_of
from solid_bandits.statistics.intervals import student


class Replayed(NamedTuple):
    """The run of a learning policy on a part of a log.

    Example:
        >>> import solid_bandits as sb
        >>> features = [[[1.0, 0.0], [0.0, 1.0]]] * 50
        >>> table = {"arm": [0, 1] * 25, "reward": [1.0, 0.0] * 25, "probabilities": [[0.5, 0.5]] * 50}
        >>> log = sb.logs.from_table(table | {"features": features})
        >>> sb.ope.replay(log, sb.Agent(sb.Greedy(), dim=2)).rows
        50
    """

    value: Value
    """Mean reward per decision of the run, with Student's interval."""
    rewards: Floats
    """Rows in the order of the run's decisions."""
    rows: int
    """Number of rows of the log."""
    agent: Agent
    """The agent at the end."""


def replay(
    log: Any,
    agent: Agent,
    *,
    seed: int = 0,
    confidence: float = 0.95,
    columns: Mapping[str, str] | None = None,
    context: Sequence[str] = (),
) -> Replayed:
    """Let an agent decide and learn on the rows of a log in which it agrees with the logger.

    It needs a logger whose probabilities of all arms are known, with a positive least probability that is the same
    share of 1 / arms in every row, as a floor gives; and it keeps few rows: about a share m, that least probability.

    Args:
        log: as for `evaluate`, with features.
        agent: a new agent of any policy that decides from features; it learns.
        seed: seed of the choice of kept rows.
        confidence: level of the interval for the mean over runs as long as this one.
        columns: as for `evaluate`.
        context: as for `evaluate`.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> rng = np.random.default_rng(0)
        >>> bandit = sb.Bandit(sb.LinTS(), dim=2, noise_std=0.5, floor=0.5, seed=0)
        >>> for _ in range(200):
        ...     choice = bandit.decide(rng.normal(size=(3, 2)))
        ...     _ = bandit.learn(choice.event_id, rng.normal())
        >>> run = sb.ope.replay(bandit, sb.Agent(sb.RandUCB(), dim=2, noise_std=0.5))
        >>> 0 < len(run.rewards) < 200
        True
    """
    level = checks.number("confidence", confidence, above=0, below=1)
    if isinstance(agent, Bandit):
        raise ArgumentError(
            "agent",
            f"must be an Agent, as decisions are replayed on matrices of features, got {short(agent)}; a log with "
            "named values has them after sb.logs.with_features(log)",
        )
    if not isinstance(agent, Agent) or isinstance(agent._compiled, PlainAgent):
        raise ArgumentError("agent", f"must be an Agent of a compiled policy, got {short(agent)}")
    rng = np.random.default_rng(checks.integer("seed", seed, least=0))
    reader = Reader(log, columns, context)
    least = least_share(reader)
    rewards: list[float] = []
    seen = 0
    for rows in reader.blocks():
        if rows.features is None:
            raise no_features(rows, "replay an agent on it")
        seen += len(rows.reward)
        # Uniform over a row's K arms: kept with probability (least / K) / g.
        kept = rng.random(len(rows.reward)) < least / rows.counts / rows.propensity
        for row in np.flatnonzero(kept):
            reward = _played(agent, rows, int(row))
            if reward is not None:
                rewards.append(reward)
    if not rewards:
        raise ArgumentError("log", f"cannot answer: no row of {seen:,} agrees with the agent")
    values = np.array(rewards)
    mean = student(values, level)
    note = f"{len(rewards):,} of {seen:,} rows"
    return Replayed(Value(mean.value, mean.low, mean.high, "Student", note), values, seen, agent)


def least_share(reader: Reader) -> float:
    """Return the least g · K over all arms of all rows."""
    least = np.inf
    for rows in reader.blocks():
        if rows.probabilities is None:
            raise ArgumentError("log", "must have the probabilities of all arms to replay an agent on it")
        share = np.where(rows.mask, rows.probabilities * rows.counts[:, None], np.inf)
        least = min(least, float(share.min()))
    if not 0 < least < np.inf:
        raise ArgumentError("log", "cannot answer: some arm on offer has probability 0; log with a floor")
    return least


def _played(agent: Agent, rows: Rows, row: int) -> float | None:
    """Return the reward, which the agent then learnt, if it decides as was logged; else None, with the agent
    unchanged.
    """
    decision, undo = tried(agent, rows, row)
    if decision.arm != rows.place[row]:
        undo()
        return None
    reward = float(rows.reward[row])
    agent.learn(decision, reward)
    return reward


def tried(agent: Agent, rows: Rows, row: int) -> tuple[Decision, Callable[[], None]]:
    """Return the agent's decision in a row, and a function that undoes it.

    Random numbers stay drawn: those of an undone decision must not decide about the next row.
    """
    assert rows.features is not None
    arrays = [array for array in arrays_of(agent._compiled.state) if array.dtype != np.uint64]
    before = [array.copy() for array in arrays]
    decision = agent.decide(np.ascontiguousarray(rows.features[row, : rows.counts[row]]))

    def undo() -> None:
        for array, values in zip(arrays, before, strict=True):
            array[...] = values

    return decision, undo
