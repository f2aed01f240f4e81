"""`evaluate`: a policy's value from the log of another, by several estimators."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from solid_bandits import _check
from solid_bandits._check import ArgumentError, short
from solid_bandits._types import Floats, Plain
from solid_bandits.ope import estimators as of
from solid_bandits.ope.adaptive import cadr
from solid_bandits.ope.anytime import anytime, path
from solid_bandits.ope.diagnostics import cautions, check_support, diagnostics, seen_before
from solid_bandits.ope.estimators import Value
from solid_bandits.ope.models import as_model
from solid_bandits.ope.retraced import Asked, check_new, retraced_cadr
from solid_bandits.ope.rows import Reader, Rows
from solid_bandits.ope.targets import Target, as_target
from solid_bandits.ope.terms import Found, collect
from solid_bandits.setting import LARGEST_REWARD

ESTIMATORS = {
    "replay": "mean reward of the rows in which the policy agrees with a uniform logger",
    "ips": "inverse propensity weights",
    "snips": "the same, self-normalised",
    "dm": "direct method: what the reward model expects",
    "dr": "doubly robust",
    "switch-dr": "doubly robust where weights are small, the model elsewhere",
    "dros": "doubly robust with shrunk weights",
    "cadr": "doubly robust, stabilised: holds for a logger that learns",
    "anytime": "doubly robust mean with bounds that hold at every time at once",
}
"""Name -> what it is."""
FIXED, LEARNING = "fixed", "learning"
RESAMPLED = ("replay", "ips", "snips", "dr")
NO_INTERVAL = "no interval: the logger learns"
NO_NUMBER = "no interval: it is too wide for a number"


@dataclass(frozen=True)
class Evaluation:
    """What a log says of a policy.

    Args:
        table: one row per estimator: estimator, value, low, high, interval (its kind) and note.
        diagnostics: weights, effective sample size, support.
        cautions: what a reader should know first, in words.
        confidence: the level of the intervals.
        logger: `learning` or `fixed`, as it was given.
        path: rows, low and high of the anytime-valid bounds as the log grew; None without them.

    Example:
        >>> import solid_bandits as sb
        >>> trial = {"arm": ["a", "b"] * 50, "reward": [1.0, 0.0] * 50, "probability": [0.5] * 100}
        >>> found = sb.ope.evaluate(trial, "always:a", ["ips"], logger="fixed")
        >>> found.value("ips")
        1.0
        >>> low, high = found.interval("ips")
        >>> low < 1 < high
        True
    """

    table: pl.DataFrame
    diagnostics: Plain
    cautions: list[str]
    confidence: float
    logger: str
    path: pl.DataFrame | None = field(default=None)

    def value(self, estimator: str) -> float:
        """The value by one estimator."""
        return float(self._row(estimator)["value"])

    def interval(self, estimator: str) -> tuple[float, float]:
        """The interval by one estimator; a ValueError where it has none."""
        row = self._row(estimator)
        if row["low"] is None:
            raise ValueError(f"estimator {estimator!r} has no interval here: {row['note']}")
        return row["low"], row["high"]

    def _row(self, estimator: str) -> Plain:
        _check.choice("estimator", estimator, self.table["estimator"].to_list())
        return self.table.row(by_predicate=pl.col("estimator") == estimator, named=True)


def evaluate(
    log: Any,
    policy: Any,
    estimators: Sequence[str] | None = None,
    *,
    logger: Any = LEARNING,
    model: Any = "linear",
    reward_range: tuple[float, float] | None = None,
    missing_reward: float | None = None,
    confidence: float = 0.95,
    bootstrap: int = 0,
    threshold: float | None = None,
    strength: float | None = None,
    columns: Mapping[str, str] | None = None,
    context: Sequence[str] = (),
    seed: int = 0,
) -> Evaluation:
    """What a policy would have earned per decision, from the log of another.

    Args:
        log: a log (`sb.logs`), a file of one, a `Bandit`, recorded decisions, or a table from elsewhere.
        policy: the policy to evaluate; it is not updated. An `Agent` or a `Bandit` as it is, a function of the
            features (arms, dim) and the names of the arms that returns their probabilities or the place of one, one
            list of probabilities per row of the log, `"uniform"`, or `"always:ARM"`.
        estimators: some of `ESTIMATORS`; None is all that apply.
        logger: `learning` where the logger learnt from what it logged: only `cadr` and `anytime` then have intervals.
            `fixed` where it did not: randomised trials, A/B tests. A new `Bandit` made as the logger was (policy,
            settings, seed) is replayed on the log, its probabilities are checked, and `cadr` is the paper's.
        model: of the rewards, for the direct and doubly robust estimators: `linear`, a ridge regression walked through
            the log; a function of features that returns the expected reward of each arm, not fitted on this log; one
            list per row of the log; or None.
        reward_range: the least and the largest reward there can be, for `anytime`; defaults to (0, 1) if all
            rewards lie in it.
        missing_reward: what a decision without a reward earned; None leaves it out.
        confidence: the level of the intervals.
        bootstrap: how many samples the intervals of replay, ips, snips and dr are made from; 0 for Student's. Only for
            fixed loggers.
        threshold: τ of switch-dr; None is tuned.
        strength: λ of dros; None is tuned.
        columns: name in a log -> name in the table, for tables from elsewhere (`sb.logs.from_table`).
        context: numeric columns that all arms share, for tables from elsewhere.
        seed: of the bootstrap.

    Raises:
        ValueError: where the log cannot answer: probabilities missing or 0, no support.

    Example:
        >>> import solid_bandits as sb
        >>> trial = {"arm": ["a", "b"] * 50, "reward": [1.0, 0.0] * 50, "probability": [0.5] * 100}
        >>> sb.ope.evaluate(trial, "uniform", ["ips", "snips"], logger="fixed").table["value"].to_list()
        [0.5, 0.5]
    """
    asked = (
        list(ESTIMATORS)
        if estimators is None
        else [_check.choice("estimators", one, ESTIMATORS) for one in _listed(estimators)]
    )
    tracer = None if isinstance(logger, str) else logger
    if tracer is not None:
        check_new(tracer)
        logger = LEARNING
    _check.choice("logger", logger, (FIXED, LEARNING))
    level = _check.number("confidence", confidence, above=0, below=1)
    samples = _check.integer("bootstrap", bootstrap, least=0)
    if samples and logger == LEARNING:
        raise ArgumentError("bootstrap", "must be 0 for a logger that learns: its rows depend on each other")
    if missing_reward is not None:
        _check.number("missing_reward", missing_reward, least=-LARGEST_REWARD, most=LARGEST_REWARD)
    weighted = asked != ["dm"]
    reader = Reader(log, columns, context, missing_reward)
    ends = _range(reward_range)
    bounded = ends if ends is not None else ((0.0, 1.0) if "anytime" in asked else None)
    target, kept = as_target(policy, reader.height), dict[int, Asked]()
    if tracer is not None:
        target = _remembering(target, kept)
    found = collect(reader, target, as_model(model, reader.height), bounded, weighted)
    if weighted:
        check_support(found)
    within = bounded is not None and _within(found, bounded)
    if ends is not None and not within:
        raise ArgumentError("reward_range", f"must hold all rewards, got {ends}")
    rows = []
    rng = np.random.default_rng(seed)
    for name in asked:
        if name == "cadr" and tracer is not None:
            value = retraced_cadr(found.terms, kept, reader, tracer, level)
        else:
            value = _estimate(found, name, level, bounded if within else None, threshold, strength)
        if estimators is not None and value.value is None:
            raise ArgumentError("estimators", f"must apply to this log, got {name!r}: {value.note}")
        if samples and name in RESAMPLED and value.value is not None:
            low, high = of.bootstrap(found.terms, level, name, samples, rng)
            value = value._replace(low=low, high=high, interval="bootstrap")
        if logger == LEARNING and value.low is not None and name not in ("cadr", "anytime"):
            value = value._replace(low=None, high=None, interval="", note=_joined(value.note, NO_INTERVAL))
        rows.append({"estimator": name, **_finite(name, value)._asdict()})
    kinds = {"estimator": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64}
    table = pl.DataFrame(rows, schema=kinds | {"interval": pl.String, "note": pl.String})
    numbers = diagnostics(found) if weighted else {"rows": len(found.terms.reward)}
    said = seen_before(log, policy, reader) + (cautions(found, numbers) if weighted else [])
    if "anytime" in asked and within and ends is None:
        said.append("all rewards are within [0, 1], and the anytime-valid bounds take it that they must be")
    traced = _path(found, level, bounded) if "anytime" in asked and within and bounded is not None else None
    return Evaluation(table, numbers, said, level, logger, traced)


def _estimate(
    found: Found,
    name: str,
    level: float,
    ends: tuple[float, float] | None,
    threshold: float | None,
    strength: float | None,
) -> Value:
    terms = found.terms
    if name == "dm":
        return Value(found.direct, note="no interval: the error of the model is in none")
    if name == "switch-dr":
        limit = None if threshold is None else _check.number("threshold", threshold, least=0)
        return of.switch_dr(terms, level, limit)
    if name == "dros":
        power = None if strength is None else _check.number("strength", strength, above=0)
        return of.shrinkage_dr(terms, level, power)
    if name == "anytime":
        if ends is None:
            return Value(None, note="needs reward_range, as rewards are not all within [0, 1]")
        return anytime(terms, level, ends)
    simple = {
        "replay": of.replayed,
        "ips": of.ips,
        "snips": of.snips,
        "dr": of.doubly_robust,
        "cadr": cadr,
    }
    return simple[name](terms, level)


def _remembering(target: Target, kept: dict[int, Asked]) -> Target:
    """The target, which adds what it was asked to `kept`, by the numbers of the rows."""

    def asked(rows: Rows) -> Floats:
        found = target(rows)
        for number, own, count, reward in zip(rows.where, found, rows.counts, rows.reward, strict=True):
            kept[int(number)] = Asked(len(kept), own[:count].copy(), float(reward))
        return found

    return Target(asked)


def _finite(name: str, value: Value) -> Value:
    """The value, if it is a number; without its interval where that is none."""
    if value.value is not None and not math.isfinite(value.value):
        raise ArgumentError(
            "log",
            f"cannot answer: {name} is {value.value:g}, as rewards, features or weights are too large; use other units",
        )
    if not all(end is None or math.isfinite(end) for end in (value.low, value.high)):
        return value._replace(low=None, high=None, interval="", note=_joined(value.note, NO_NUMBER))
    return value


def _path(found: Found, level: float, ends: tuple[float, float]) -> pl.DataFrame:
    count = len(found.terms.reward)
    points = 2 + int(np.log2(count))  # each twice as far: all of them cost little more than the last
    steps = sorted({int(step) for step in np.geomspace(min(10, count), count, points)})
    rows = path(found.terms, level, ends, steps)
    return pl.DataFrame({"rows": steps, "low": [low for low, _ in rows], "high": [high for _, high in rows]})


def _within(found: Found, ends: tuple[float, float]) -> bool:
    rewards = found.terms.reward
    return bool(rewards.min() >= ends[0] and rewards.max() <= ends[1])


def _range(given: tuple[float, float] | None) -> tuple[float, float] | None:
    if given is None:
        return None
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        raise ArgumentError("reward_range", f"must be two numbers, got {short(given)}") from None
    if not -LARGEST_REWARD <= low < high <= LARGEST_REWARD:
        raise ArgumentError(
            "reward_range",
            f"must be two finite numbers of at most {LARGEST_REWARD:g} in size, the smaller first, got {short(given)}",
        )
    return low, high


def _listed(names: Sequence[str]) -> list[str]:
    if not isinstance(names, list | tuple) or not names:
        raise ArgumentError("estimators", f"must be a list of names, got {short(names)}")
    return list(names)


def _joined(one: str, other: str) -> str:
    return f"{one}; {other}" if one else other
