"""`compare`: several policies on the same rows, their differences, and which parts of their order are settled."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtri

from solid_bandits._internal import checks, wording
from solid_bandits._internal.checks import ArgumentError
from solid_bandits.ope.adaptive import cadr, inverses
from solid_bandits.ope.answering import SEEN
from solid_bandits.ope.anytime import bounds, difference
from solid_bandits.ope.contract import Value
from solid_bandits.ope.contrasts import EVERYONE, PLAYED, Contrasts, Pair, as_asked, contrast
from solid_bandits.ope.diagnostics import ENOUGH, SYMMETRIC, drift, effective_rewards, rows_per_skewness
from solid_bandits.ope.estimators import doubly_robust
from solid_bandits.ope.models import as_model
from solid_bandits.ope.ranges import range_of
from solid_bandits.ope.rows import Reader
from solid_bandits.ope.segments import as_segments
from solid_bandits.ope.terms import Terms, dr_terms

FIXED, LEARNING = "fixed", "learning"
NEEDS_RANGE = "no interval: needs reward_range, as rewards are not all within [0, 1]"
_ENDS = {"low": pl.Float64, "high": pl.Float64, "interval": pl.String}
VALUES = {
    "segment": pl.String,
    "policy": pl.String,
    "rows": pl.Int64,
    "value": pl.Float64,
    **_ENDS,
    "over the log": pl.Float64,
    "over low": pl.Float64,
    "over high": pl.Float64,
    "best rank": pl.Int64,
    "worst rank": pl.Int64,
    "note": pl.String,
}
PAIRS = {
    "segment": pl.String,
    "policy": pl.String,
    "other": pl.String,
    "difference": pl.Float64,
    **_ENDS,
    "settled": pl.Boolean,
}


@dataclass(frozen=True)
class Comparison:
    """Policies compared on the same rows of a log, with what was played among them.

    Args:
        table: one row per segment and policy: value, its difference from what was played, and the ranks that the
            differences
            allow; the first row of each segment is what the log itself earned.
        pairs: one row per segment and pair: the difference, its interval, and whether the order is settled.
        confidence: the level at which all intervals of both tables hold together.
        cautions: warnings to read first.

    Example:
        >>> import solid_bandits as sb
        >>> log = {"arm": ["a", "b"] * 1000, "reward": [1.0, 0.0] * 1000, "probability": [0.5] * 2000}
        >>> found = sb.ope.compare(log, ["always:a", "always:b"])
        >>> found.said
        'always:a earns most, 1.00 per decision; it is settled that it is better than the log and always:b.'
    """

    table: pl.DataFrame
    pairs: pl.DataFrame
    confidence: float
    cautions: list[str]

    @property
    def said(self) -> str:
        """Say in a sentence who won, for everyone."""
        return self.sentence(EVERYONE)

    def sentence(self, segment: str) -> str:
        """Say in a sentence who won in a segment."""
        rows = self.table.filter(pl.col("segment") == segment).sort("value", descending=True)
        best = rows["policy"][0]
        worse, unsettled = list[str](), list[str]()
        for other in rows["policy"][1:]:
            low, _ = self.difference(best, other, segment)
            (worse if low is not None and low > 0 else unsettled).append(other)
        value = f"{best} earns most, {wording.number(rows['value'][0])} per decision"
        if not worse:
            return f"{value}; it is not settled that it is better than {listed(unsettled)}."
        settled = f"{value}; it is settled that it is better than {listed(worse)}"
        return f"{settled}, not that it is better than {listed(unsettled)}." if unsettled else f"{settled}."

    def difference(
        self, policy: str, other: str, segment: str = EVERYONE
    ) -> tuple[float | None, float | None]:
        """Return the ends of the interval of one policy's value minus another's; None if there is none."""
        inside = self.pairs.filter(pl.col("segment") == segment)
        for first, second, sign in ((policy, other, 1), (other, policy, -1)):
            row = inside.filter((pl.col("policy") == first) & (pl.col("other") == second))
            if row.height:
                low, high = row["low"][0], row["high"][0]
                if low is None or high is None:
                    return None, None
                return (low, high) if sign > 0 else (-high, -low)
        raise ArgumentError("policy", f"must be two that were compared, got {policy!r} and {other!r}")


def compare(
    log: Any,
    policies: Mapping[str, Any] | Sequence[str],
    *,
    segments: Any = None,
    logger: str = LEARNING,
    model: Any = "linear",
    reward_range: tuple[float, float] | None = None,
    missing_reward: float | None = None,
    confidence: float = 0.95,
    columns: Mapping[str, str] | None = None,
    context: Sequence[str] = (),
) -> Comparison:
    """Compare policies on the same rows of a log: what each earned, by how much they differ, which order is settled.

    Differences are of pairs: rows in which two policies do the same cancel. All intervals hold together (Bonferroni).
    For few effective rewards, for skewed terms, and under drift they are bounds that hold for any logger and at all
    times at once; the others are normal. A policy that always chooses one arm is compared on the rows where that arm
    was on offer.

    Args:
        log: as for `evaluate`.
        policies: labels to policies, as for `evaluate`; or a list of words, such as `always:ARM`.
        segments: segments of rows, each compared separately: one or several columns of the table; one label per row; or
            `tree`, of depth at most 2, found on the first half of the rows and judged on the second.
        logger: `learning` or `fixed`, as for `evaluate`.
        model: as for `evaluate`.
        reward_range: the least and the largest possible reward; (0, 1) if all rewards lie in it.
        missing_reward: as for `evaluate`.
        confidence: the level at which all intervals hold together.
        columns: as for `evaluate`.
        context: as for `evaluate`.

    Example:
        >>> import solid_bandits as sb
        >>> log = {"arm": ["a", "b"] * 1000, "reward": [1.0, 0.0] * 1000, "probability": [0.5] * 2000}
        >>> found = sb.ope.compare(log, ["always:a", "always:b", "uniform"])
        >>> found.table.sort("best rank")["policy"][0]
        'always:a'
    """
    checks.choice("logger", logger, (FIXED, LEARNING))
    level = checks.number("confidence", confidence, above=0, below=1)
    if isinstance(policies, str) or not policies:
        raise ArgumentError("policies", f"must be labels to policies, or a list of words, got {policies!r}")
    named = policies if isinstance(policies, Mapping) else {word: word for word in policies}
    if PLAYED in named:
        raise ArgumentError("policies", f"must have labels other than {PLAYED!r}, which is what was played")
    reader = log if isinstance(log, Reader) else Reader(log, columns, context, missing_reward)
    asked = {label: as_asked(one, reader.height, log) for label, one in named.items()}
    ends, cautions = range_of(reader, reward_range)
    parts = as_segments(segments, reader, log)
    found = contrast(reader, asked, as_model(model, reader.height), ends, parts)
    count = sum(len(one.values) + len(one.pairs) for one in found.values())
    one_level = 1 - (1 - level) / count
    learning = logger == LEARNING
    tables, pairs = [], []
    for name, group in found.items():
        intervals = {pair: of_difference(group, pair, one_level, ends, learning) for pair in group.pairs}
        pairs += [
            {
                "segment": name,
                "policy": pair[0],
                "other": pair[1],
                "difference": value.value,
                "low": value.low,
                "high": value.high,
                "interval": value.interval,
                "settled": value.low is not None
                and value.high is not None
                and (value.low > 0 or value.high < 0),
            }
            for pair, value in intervals.items()
        ]
        tables += _values(name, group, intervals, one_level, ends, learning)
        for label, offered in group.partly.items():
            cautions.append(
                f"{label} is compared on the {offered:,} of {group.rows:,} rows of {name} where its arm was on offer"
            )
    return Comparison(pl.DataFrame(tables, schema=VALUES), pl.DataFrame(pairs, schema=PAIRS), level, cautions)


def _values(
    name: str,
    group: Contrasts,
    intervals: Mapping[Pair, Value],
    level: float,
    ends: tuple[float, float] | None,
    learning: bool,
) -> list[dict[str, Any]]:
    """Return the rows of the table of values: what was played first, and then by value."""
    found = {label: of_value(group, label, level, ends, learning) for label in group.values}
    order = sorted(found, key=lambda label: (label != PLAYED, -(found[label].value or 0.0)))
    rows = []
    for label in order:
        value = found[label]
        over = intervals.get((label, PLAYED), Value(None))
        better = worse = 0
        for (first, second), between in intervals.items():
            if label in (first, second) and between.low is not None and between.high is not None:
                sign = 1 if label == first else -1
                low, high = (between.low, between.high) if sign > 0 else (-between.high, -between.low)
                better, worse = better + (high < 0), worse + (low > 0)
        rows.append(
            {
                "segment": name,
                "policy": label,
                "rows": len(group.values[label].reward),
                "value": value.value,
                "low": value.low,
                "high": value.high,
                "interval": value.interval,
                "over the log": over.value,
                "over low": over.low,
                "over high": over.high,
                "best rank": 1 + better,
                "worst rank": len(found) - worse,
                "note": value.note,
            }
        )
    return rows


def listed(names: Sequence[str]) -> str:
    """Return names in a sentence.

    Example:
        >>> listed(["a", "b", "c"])
        'a, b and c'
    """
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def enough(terms: Terms, level: float, learning: bool) -> bool:
    """Return whether a normal interval of this level can be trusted.

    The further out a quantile z, the more skewness matters: the share of misses on one side is off by a relative error
    of about γ z³ / 6. So 1 / γ² must be larger by (z / 1.96)⁶ than for an interval of 95%.
    """
    inverse = inverses(terms) if learning else np.ones(len(terms.reward))
    needed = SYMMETRIC * max(float(ndtri(0.5 + level / 2)) / 1.96, 1.0) ** 6
    return rows_per_skewness(terms, inverse) >= needed and drift(terms) >= SEEN


def of_value(
    group: Contrasts, label: str, level: float, ends: tuple[float, float] | None, learning: bool
) -> Value:
    """Return the value of a policy with its interval."""
    terms = group.values[label]
    few = effective_rewards(terms) < ENOUGH
    if label != PLAYED and not few and enough(terms, level, learning):
        return cadr(terms, level) if learning else doubly_robust(terms, level)
    value = float(dr_terms(terms).mean())
    if ends is None:
        return Value(value, note=NEEDS_RANGE)
    low, high = bounds(terms, level)
    return _bounded(value, low, high, ends[0], ends[1] - ends[0])


def of_difference(
    group: Contrasts, pair: Pair, level: float, ends: tuple[float, float] | None, learning: bool
) -> Value:
    """Return the difference of two policies with its interval; a normal one needs enough effective rewards of both."""
    terms = group.pairs[pair]
    few = any(effective_rewards(group.values[label]) < ENOUGH for label in pair)
    if not few and enough(terms, level, learning):
        return cadr(terms, level) if learning else doubly_robust(terms, level)
    value = float(dr_terms(terms).mean())
    if ends is None:
        return Value(value, note=NEEDS_RANGE)
    low, high = difference(terms, (1 - level) / 2)
    return _bounded(value, float(low[0]), float(high[0]), 0.0, ends[1] - ends[0])


def _bounded(value: float, low: float, high: float, base: float, width: float) -> Value:
    if low > high or math.isnan(low + high):
        return Value(value, note="no interval: its bounds have crossed")
    return Value(value, base + width * low, base + width * high, "anytime-valid")
