"""`evaluate`: a policy's value from the log of another, by several estimators."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, overload

import numpy as np
import polars as pl

from solid_bandits._internal import checks
from solid_bandits._internal.checks import ArgumentError, short
from solid_bandits._internal.types import Plain
from solid_bandits.core.setting import LARGEST_REWARD
from solid_bandits.ope.adaptive import inverses
from solid_bandits.ope.answering import Answer, answer, said
from solid_bandits.ope.anytime import path
from solid_bandits.ope.contract import Estimator, Settings, Value
from solid_bandits.ope.diagnostics import (
    ENOUGH,
    SYMMETRIC,
    cautions,
    check_support,
    diagnostics,
    rows_per_skewness,
)
from solid_bandits.ope.estimators import ESTIMATORS
from solid_bandits.ope.estimators import bootstrap as resampled
from solid_bandits.ope.models import as_model
from solid_bandits.ope.ranges import ASSUMED, checked_range
from solid_bandits.ope.retraced import check_new, retraced_cadr
from solid_bandits.ope.rows import Reader
from solid_bandits.ope.targets import as_target
from solid_bandits.ope.terms import collect

FIXED, LEARNING = "fixed", "learning"
NO_INTERVAL = "no interval: the logger learns"
TOO_FEW = f"no interval: fewer than {ENOUGH} effective rewards"
TOO_SKEWED = f"no interval: too skewed, with fewer than {SYMMETRIC} rows per squared skewness"
NO_NUMBER = "no interval: it is too wide for a number"
COLUMNS = dict.fromkeys(("value", "low", "high"), pl.Float64) | {"interval": pl.String, "note": pl.String}


@dataclass(frozen=True)
class Evaluation:
    """The estimates of a policy's value from a log, with diagnostics and cautions.

    Args:
        table: one row per estimator: estimator, value, low, high, interval (its kind) and note.
        diagnostics: weights, effective sample size, support.
        cautions: what a reader should know first, in words.
        confidence: the level of the intervals.
        logger: `learning` or `fixed`, as it was given.
        answer: the value and interval to go by, and why it is this one.
        path: rows, low and high of the anytime-valid bounds as the log grew; None without them.

    Example:
        >>> import solid_bandits as sb
        >>> trial = {"arm": ["a", "b"] * 400, "reward": [1.0, 1.0, 0.0, 0.0] * 200, "probability": [0.5] * 800}
        >>> found = sb.ope.evaluate(trial, "always:a", ["snips"], logger="fixed")
        >>> found.value("snips")
        0.5
        >>> low, high = found.interval("snips")
        >>> low < 0.5 < high
        True
    """

    table: pl.DataFrame
    diagnostics: Plain
    cautions: list[str]
    confidence: float
    logger: str
    answer: Answer
    path: pl.DataFrame | None = field(default=None)

    def value(self, estimator: str) -> float:
        """Return the value by one estimator."""
        return float(self._row(estimator)["value"])

    def interval(self, estimator: str) -> tuple[float, float]:
        """Return the interval by one estimator; raise a ValueError if it has none."""
        row = self._row(estimator)
        if row["low"] is None:
            raise ValueError(f"estimator {estimator!r} has no interval here: {row['note']}")
        return row["low"], row["high"]

    def said(self, label: str = "the policy") -> str:
        """Return the answer as a sentence."""
        return said(label, self.answer, self.confidence)

    def _row(self, estimator: str) -> Plain:
        checks.choice("estimator", estimator, self.table["estimator"].to_list())
        return self.table.row(by_predicate=pl.col("estimator") == estimator, named=True)


@overload
def evaluate(
    log: Any, policy: Mapping[str, Any], estimators: Sequence[str] | None = None, **settings: Any
) -> dict[str, Evaluation]: ...


@overload
def evaluate(
    log: Any, policy: Any, estimators: Sequence[str] | None = None, **settings: Any
) -> Evaluation: ...


def evaluate(  # type: ignore[misc]  # settings of the overloads are those below
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
) -> Any:
    """Estimate what a policy would have earned per decision, from the log of another.

    Args:
        log: a log (`sb.logs`), a file of one, a `Bandit`, recorded decisions, or a table from elsewhere.
        policy: the policy to evaluate; it is not updated. An `Agent` or a `Bandit` as it is, a function of the
            features (arms, dim) and the names of the arms that returns their probabilities or the place of one, one
            list of probabilities per row of the log, `"uniform"`, or `"always:ARM"`. Several policies are a mapping of
            labels to policies: the log is read once, and the answer maps labels to evaluations.
        estimators: some of `ESTIMATORS`; None is all that apply.
        logger: `learning` where the logger learnt from what it logged: only `cadr` and `anytime` then have intervals,
            and where rewards are rare (fewer than `ENOUGH` effective ones) `anytime` alone, for any logger.
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
        context: columns that all arms share, for tables from elsewhere (`sb.logs.from_table`).
        seed: of the bootstrap.

    Raises:
        ValueError: where the log cannot answer: probabilities missing or 0, no support.

    Example:
        >>> import solid_bandits as sb
        >>> trial = {"arm": ["a", "b"] * 50, "reward": [1.0, 0.0] * 50, "probability": [0.5] * 100}
        >>> sb.ope.evaluate(trial, "uniform", ["ips", "snips"], logger="fixed").table["value"].to_list()
        [0.5, 0.5]
    """
    asked = {name: ESTIMATORS[name] for name in _names(estimators)}
    tracer = None if isinstance(logger, str) else logger
    if tracer is not None:
        check_new(tracer)
        logger = LEARNING
    checks.choice("logger", logger, (FIXED, LEARNING))
    level = checks.number("confidence", confidence, above=0, below=1)
    samples = checks.integer("bootstrap", bootstrap, least=0)
    if samples and logger == LEARNING:
        raise ArgumentError("bootstrap", "must be 0 for a logger that learns: its rows depend on each other")
    if missing_reward is not None:
        checks.number("missing_reward", missing_reward, least=-LARGEST_REWARD, most=LARGEST_REWARD)
    if threshold is not None:
        checks.number("threshold", threshold, least=0)
    if strength is not None:
        checks.number("strength", strength, above=0)
    ends = checked_range(reward_range)
    weighted, ranged = (any(getattr(one, need) for one in asked.values()) for need in ("weighted", "ranged"))
    bounded = (0.0, 1.0) if ends is None and ranged else ends
    reader = log if isinstance(log, Reader) else Reader(log, columns, context, missing_reward)
    if tracer is not None:
        reader.table()  # it is needed whole
    policies = policy if isinstance(policy, Mapping) else {"the policy": policy}
    if not policies:
        raise ArgumentError("policy", "must be at least one policy, got none")
    targets = {label: as_target(one, reader.height, log) for label, one in policies.items()}
    collected = collect(reader, targets, as_model(model, reader.height), bounded, weighted)
    answers = {}
    for label, found in collected.items():
        if weighted:
            check_support(found, label)
        rewards = found.terms.reward
        within = bounded is not None and bounded[0] <= rewards.min() and rewards.max() <= bounded[1]
        if ends is not None and not within:
            raise ArgumentError("reward_range", f"must hold all rewards, got {ends}")
        numbers = diagnostics(found, weighted)
        few = TOO_FEW if weighted and numbers["effective rewards"] < ENOUGH else ""
        retraced = None
        if tracer is not None:
            retraced = partial(
                retraced_cadr, target=targets[label], reader=reader, logger=tracer, level=level
            )
        settings = Settings(level, bounded if within else None, threshold, strength, retraced)
        rng = np.random.default_rng(seed)
        values, skewed = {}, False
        for name, estimator in asked.items():
            value = estimator.estimate(found, settings)
            if value.value is None and estimators is not None:
                raise ArgumentError("estimators", f"must apply to this log, got {name!r}: {value.note}")
            if samples and estimator.ratio and value.value is not None:
                low, high = resampled(*estimator.ratio(found.terms), level, samples, rng)
                value = value._replace(low=low, high=high, interval="bootstrap")
            if weighted and estimator.normal and not few:
                inverse = inverses(found.terms) if estimator.learning else np.ones(len(rewards))
                skewed = rows_per_skewness(found.terms, inverse) < SYMMETRIC
            reason = few or (TOO_SKEWED if skewed else "")
            values[name] = _with_interval_that_holds(name, value, estimator, logger == LEARNING, reason)
        warnings = cautions(found, numbers) + [value.caution for value in values.values() if value.caution]
        if ranged and within and ends is None:
            warnings.append(ASSUMED)
        rows = [{"estimator": name, **value._asdict()} for name, value in values.items()]
        table = pl.DataFrame(rows, schema={"estimator": pl.String, **COLUMNS})
        narrowed = path(found.terms, level, bounded) if ranged and within and bounded else None
        chosen = answer(values, logger == LEARNING, numbers)
        answers[label] = Evaluation(table, numbers, warnings, level, logger, chosen, narrowed)
    return answers if isinstance(policy, Mapping) else answers["the policy"]


def _with_interval_that_holds(
    name: str, value: Value, estimator: Estimator, learning: bool, unlike: str
) -> Value:
    """Return the value, which must be a number; without its interval if that is not valid, with the reason."""
    if value.value is not None and not math.isfinite(value.value):
        raise ArgumentError(
            "log",
            f"cannot answer: {name} is {value.value:g}, as rewards, features or weights are too large; use other units",
        )
    if value.low is None or value.high is None:
        return value
    if learning and not estimator.learning:
        reason = NO_INTERVAL
    elif unlike and estimator.normal:
        reason = unlike
    elif not math.isfinite(value.low) or not math.isfinite(value.high):
        reason = NO_NUMBER
    else:
        return value
    note = f"{value.note}; {reason}" if value.note else reason
    return value._replace(low=None, high=None, interval="", note=note)


def _names(given: Sequence[str] | None) -> list[str]:
    if given is None:
        return list(ESTIMATORS)
    if not isinstance(given, list | tuple) or not given:
        raise ArgumentError("estimators", f"must be a list of names, got {short(given)}")
    return [checks.choice("estimators", one, ESTIMATORS) for one in given]
