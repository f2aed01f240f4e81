"""`choose`: which of several settings of learning policies would have earned most, or that the log cannot tell.

The log is divided into blocks of consecutive rows, and in each block every candidate starts anew and learns. Of the
rows in which it decides as was logged, a subset is kept that forms a run of its own, a share m of all (see `replay`).
Every row, kept or not, says what the candidate would have earned at this point of its run, including exploration: with
π_t the probabilities of its decision, the term is the doubly robust one (Dudík, Erhan, Langford and Li 2012, arXiv
1210.4862),

    D_t = Σ_a π_t(a) q(a) + π_t(a_t) / g(a_t) (r_t - q(a_t)).

A block's value is the mean of its terms. Candidates are compared on the same blocks by Student's interval of the
differences. It includes the luck of a run, as each block has its own run, and it is not too short if blocks have
unequal variances, as when the logger learns (Ibragimov and Müller 2010). A policy that does not learn is compared in
the same way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from solid_bandits._internal import checks, wording
from solid_bandits._internal.checks import ArgumentError, short
from solid_bandits._internal.types import Floats
from solid_bandits.core.agent import Agent
from solid_bandits.ope.compare import listed
from solid_bandits.ope.models import as_model
from solid_bandits.ope.replay import least_share, tried
from solid_bandits.ope.rows import Reader, Rows, no_features
from solid_bandits.ope.targets import Target, as_target, checked
from solid_bandits.ope.terms import check_propensities
from solid_bandits.policies.contract import DecisionPolicy
from solid_bandits.statistics.intervals import student

SHORTEST = 20
"""Least mean number of decisions in the run of a block."""
COLUMNS = {
    "policy": pl.String,
    "value": pl.Float64,
    "behind": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "standard error": pl.Float64,
    "settled": pl.Boolean,
}


@dataclass(frozen=True)
class Choice:
    """The choice among candidates.

    Args:
        best: the candidate that is settled to be better than all others; None if the log cannot tell.
        table: one row per candidate, the best first: its value per decision, its distance behind the first with the
            simultaneous interval and standard error, and whether it is settled to be behind.
        decisions: mean length of a run: values are for the first decisions, up to this number.
        blocks: number of runs of each candidate.
        confidence: the level at which all intervals hold together.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> rng = np.random.default_rng(0)
        >>> log = {"arm": rng.integers(2, size=900), "reward": rng.random(900), "probabilities": [[0.5, 0.5]] * 900}
        >>> log["features"] = rng.normal(size=(900, 2, 2)).tolist()  # they say nothing of the rewards
        >>> found = sb.ope.choose(log, {"greedy": sb.Greedy(), "uniform": "uniform"}, blocks=5)
        >>> found.best is None, found.said[:12]
        (True, 'Cannot tell:')
    """

    best: str | None
    table: pl.DataFrame
    decisions: float
    blocks: int
    confidence: float

    @property
    def said(self) -> str:
        """Return the choice as a sentence."""
        first = self.table["policy"][0]
        value = wording.number(self.table["value"][0])
        runs = f"in {self.blocks} runs of about {wording.number(self.decisions)} decisions"
        if self.best is not None:
            return f"{first} earned most {runs}, {value} per decision, and it is settled."
        rivals = self.table.slice(1).filter(~pl.col("settled"))["policy"].to_list()
        return f"Cannot tell: {first} earned most {runs}, {value} per decision, but {listed(rivals)} may be better."


def choose(
    log: Any,
    policies: Mapping[str, Any],
    *,
    blocks: int = 10,
    confidence: float = 0.95,
    model: Any = "linear",
    missing_reward: float | None = None,
    columns: Mapping[str, str] | None = None,
    context: Sequence[str] = (),
    seed: int = 0,
    **settings: Any,
) -> Choice:
    """Choose among policies that learn, with their settings, by what they would have earned while learning.

    The answer is None if the simultaneous intervals of the differences leave more than one candidate. The length of a
    run is a block's rows times the least probability of an arm, so a choice is about the first decisions, up to that
    number.

    Args:
        log: as for `evaluate`, with features and the probabilities of all arms.
        policies: labels to policies: learning ones, such as `sb.RandUCB(bonus=0.5)`, and those of `evaluate`.
        blocks: number of blocks of rows; each is a run of every candidate, and no row serves two runs.
        confidence: the level at which all intervals hold together.
        model: as for `evaluate`.
        missing_reward: as for `evaluate`.
        columns: as for `evaluate`.
        context: as for `evaluate`.
        seed: seed of the kept rows and of the agents.
        settings: settings of the agents; `noise_std` defaults to the standard deviation of the rewards.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> rng = np.random.default_rng(0)
        >>> features = rng.normal(size=(2000, 2, 2))
        >>> arm = rng.integers(2, size=2000)
        >>> reward = features[np.arange(2000), arm, 0] + 0.1 * rng.normal(size=2000)
        >>> log = {"arm": arm, "reward": reward, "probabilities": [[0.5, 0.5]] * 2000, "features": features.tolist()}
        >>> sb.ope.choose(log, {"greedy": sb.Greedy(), "at random": "uniform"}).best
        'greedy'
    """
    count = checks.integer("blocks", blocks, least=3)
    level = checks.number("confidence", confidence, above=0, below=1)
    if not isinstance(policies, Mapping) or len(policies) < 2:
        raise ArgumentError("policies", f"must be two labels to policies or more, got {short(policies)}")
    reader = Reader(log, columns, context, missing_reward)
    share = least_share(reader)
    per_block = -(-reader.height // count)
    rewards = reader.table()["reward"].drop_nulls()
    spread = float(rewards.std() or 0.0) if rewards.len() > 1 else 0.0  # type: ignore[arg-type]
    given = {"noise_std": max(spread, 1e-9)} | settings
    targets = {
        label: None if isinstance(policy, DecisionPolicy) else as_target(policy, reader.height, log)
        for label, policy in policies.items()
    }
    sums, seen, kept = np.zeros((len(policies), count)), np.zeros(count), 0
    agents: dict[str, Agent] = {}
    rng = np.random.default_rng(checks.integer("seed", seed, least=0))
    learner, current = as_model(model, reader.height), -1
    for rows in reader.blocks():
        check_propensities(rows)
        if rows.features is None:
            raise no_features(rows, "let policies learn from it")
        q = learner.predict(rows)
        draws = rng.random(len(rows.reward))
        fixed = {label: _fixed(target, rows, q) for label, target in targets.items() if target is not None}
        for row in range(len(rows.reward)):
            place = min(int(seen.sum()) // per_block, count - 1)
            if place != current:
                agents = _started(policies, rows.features.shape[2], seed + place, given)
                current = place
            seen[place] += 1
            keep = draws[row] < share / rows.counts[row] / rows.propensity[row]
            for number, label in enumerate(policies):
                if label in fixed:
                    sums[number, place] += fixed[label][row]
                else:
                    term, learnt = _learning(agents[label], rows, row, q, keep)
                    sums[number, place] += term
                    kept += learnt
    learners = sum(target is None for target in targets.values())
    runs = int((seen > 0).sum())
    length = kept / learners / runs if learners else float(seen.mean())
    if length < SHORTEST or runs < count:
        raise ArgumentError(
            "log",
            f"cannot answer: runs would have {length:.1f} decisions on average, and need {SHORTEST}; give fewer "
            "blocks, or log with a larger floor",
        )
    return _chosen(list(policies), sums / seen, level, length)


def _started(policies: Mapping[str, Any], dim: int, seed: int, given: Mapping[str, Any]) -> dict[str, Agent]:
    return {
        label: Agent(policy, dim=dim, seed=seed, probabilities=True, **given)
        for label, policy in policies.items()
        if isinstance(policy, DecisionPolicy)
    }


def _fixed(target: Target, rows: Rows, q: Floats) -> Floats:
    policy, every = checked(target, rows), np.arange(len(rows.reward))
    weight = policy[every, rows.place] / rows.propensity
    found: Floats = (policy * q).sum(axis=1) + weight * (rows.reward - q[every, rows.place])
    return found


def _learning(agent: Agent, rows: Rows, row: int, q: Floats, keep: bool) -> tuple[float, bool]:
    """Return the term of a row, and whether the agent learnt from it: if the row is kept and the agent agrees."""
    decision, undo = tried(agent, rows, row)
    chances, place, reward = decision.probabilities, int(rows.place[row]), float(rows.reward[row])
    assert chances is not None  # agents are made with probabilities
    term = float(chances @ q[row, : len(chances)]) + chances[place] / rows.propensity[row] * (
        reward - q[row, place]
    )
    learnt = bool(keep and decision.arm == place)
    if learnt:
        agent.learn(decision, reward)
    else:
        undo()
    return float(term), learnt


def _chosen(labels: Sequence[str], values: Floats, level: float, length: float) -> Choice:
    """Return the first candidate by its mean over blocks; every pair has an interval, since the first was seen in the
    log.
    """
    order = np.argsort(-values.mean(axis=1), kind="stable")
    first = int(order[0])
    one_level = 1 - (1 - level) / (len(labels) * (len(labels) - 1) / 2)
    rows = []
    for number in order.tolist():
        apart = values[first] - values[number]
        found = student(apart, one_level)
        error = float(apart.std(ddof=1)) / len(apart) ** 0.5
        settled = number != first and found.low is not None and found.low > 0
        rows.append(
            {
                "policy": labels[number],
                "value": float(values[number].mean()),
                "behind": float(apart.mean()),
                "low": found.low,
                "high": found.high,
                "standard error": error,
                "settled": settled,
            }
        )
    best = labels[first] if all(row["settled"] for row in rows[1:]) else None
    return Choice(best, pl.DataFrame(rows, schema=COLUMNS), length, values.shape[1], level)
