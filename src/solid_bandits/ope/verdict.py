"""`verdict`: which arm or policy is best, for everyone or in a segment, and whether the question may be closed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from solid_bandits._internal import checks, wording
from solid_bandits._internal.checks import ArgumentError
from solid_bandits.ope.anytime import difference
from solid_bandits.ope.contrasts import ALWAYS, EVERYONE, PLAYED, Contrasts, as_asked, contrast
from solid_bandits.ope.linear_test import LinearTest, linear_test
from solid_bandits.ope.models import as_model
from solid_bandits.ope.ranges import Ends, range_of
from solid_bandits.ope.rows import Reader
from solid_bandits.ope.segments import as_segments
from solid_bandits.ope.terms import dr_terms

STOP, GO_ON = "stop", "go on"
TABLE = {
    "segment": pl.String,
    "rows": pl.Int64,
    "best": pl.String,
    "rival": pl.String,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "verdict": pl.String,
    "more decisions": pl.Int64,
    "if linear": pl.String,
    "best if linear": pl.String,
    "statistic": pl.Float64,
    "threshold": pl.Float64,
    "why not linear": pl.String,
}


@dataclass(frozen=True)
class Verdict:
    """The best policy, its certainty, and whether one may stop.

    Args:
        table: one row for all and one per segment: who is best, the rival that is hardest to tell from it, their
            difference with its interval, the verdict, about how many more decisions it needs at this rate (None where
            no number can be given), what the test for linear rewards says, of whom, its statistic and threshold; or why
            there is none.
        delta: the probability with which any verdict of stop, at any time, may be wrong.
        tolerance: by how much another may be better all the same.
        assumptions: what each of the two ways rests on.

    Example:
        >>> import solid_bandits as sb
        >>> log = {"arm": ["a", "b"] * 500, "reward": [1.0, 0.0] * 500, "probability": [0.5] * 1000}
        >>> found = sb.ope.verdict(log)
        >>> found.stop, found.said
        (True, 'Stop: a is best for everyone.')
    """

    table: pl.DataFrame
    delta: float
    tolerance: float
    assumptions: dict[str, str]

    @property
    def stop(self) -> bool:
        """Whether one may stop for everyone."""
        return bool(self.table["verdict"][0] == STOP)

    @property
    def said(self) -> str:
        """The verdict for everyone, in a sentence."""
        return self.sentence(EVERYONE)

    def sentence(self, segment: str) -> str:
        """Return the verdict for a segment as a sentence."""
        checks.choice("segment", segment, self.table["segment"].to_list())
        row = self.table.row(by_predicate=pl.col("segment") == segment, named=True)
        within = f" within {wording.given(self.tolerance)}" if self.tolerance else ""
        if row["verdict"] == STOP:
            return f"Stop: {row['best']} is best{within} for {segment}."
        if row["low"] is None:
            return f"Go on: too little is known of {row['best']} and {row['rival']} for {segment}."
        ahead = f"{row['best']} leads for {segment}, but {row['rival']} may be better by {_many(-row['low'])}"
        if row["more decisions"] is None:
            return f"Go on: {ahead}; no number of decisions can be given yet."
        return f"Go on: {ahead}; about {row['more decisions']:,} more decisions at this rate."


def _many(value: float) -> str:
    return wording.number(value, 2)


def verdict(
    source: Any,
    policies: Mapping[str, Any] | None = None,
    *,
    segments: Any = None,
    delta: float = 0.05,
    tolerance: float = 0.0,
    reward_range: tuple[float, float] | None = None,
    noise_std: float | None = None,
    model: Any = "linear",
    missing_reward: float | None = None,
    columns: Mapping[str, str] | None = None,
    context: Sequence[str] = (),
) -> Verdict:
    """Say who is best, and whether one may stop, from a log or from a bandit that is still deciding.

    Candidates are all arms of the log, each as a policy that always chooses it, and the policies that are given. The
    verdict is *stop* where the one that has earned most is above every other by more than -tolerance in all of the
    simultaneous intervals. They hold at every time at once and for any logger, so that one may look as often as one
    likes, while the bandit adapts: with probability at least 1 - delta no verdict of stop is ever wrong about the mean
    values over the decisions so far.

    Where rows have features, a second way is shown beside it: the generalised likelihood ratio test of linear rewards
    (`linear_test`), with an error probability delta of its own.

    Args:
        source: a bandit, or a log as for `evaluate`.
        policies: labels to policies, as for `evaluate`, that stand beside the single arms.
        segments: as for `compare`; each has a verdict of its own, delta is shared.
        delta: the probability of ever being wrong.
        tolerance: ε in units of reward: one may stop although another is better by less.
        reward_range: the least and the largest reward there can be; (0, 1) if all rewards lie in it.
        noise_std: σ of the linear test, if it is known; noise is then sub-Gaussian with it. None needs no σ where
            rewards have a range, and where they have none supposes Gaussian noise, whose σ is estimated.
        model: as for `evaluate`.
        missing_reward: as for `evaluate`.
        columns: as for `evaluate`.
        context: as for `evaluate`.

    Example:
        >>> import solid_bandits as sb
        >>> log = {"arm": ["a", "b"] * 50, "reward": [1.0, 0.0, 0.0, 1.0] * 25, "probability": [0.5] * 100}
        >>> sb.ope.verdict(log).stop
        False
    """
    risk = checks.number("delta", delta, above=0, below=1)
    slack = checks.number("tolerance", tolerance, least=0)
    if noise_std is not None:
        checks.number("noise_std", noise_std, above=0)
    reader = source if isinstance(source, Reader) else Reader(source, columns, context, missing_reward)
    ends, _ = range_of(reader, reward_range)
    names = sorted(reader.table()["arms"].explode().drop_nulls().unique().to_list())
    named: dict[str, Any] = {name: f"{ALWAYS}{name}" for name in names} | dict(policies or {})
    if len(named) < len(names) + len(policies or {}) or PLAYED in named:
        raise ArgumentError("policies", "must have labels that are no names of arms")
    if len(named) < 2:
        raise ArgumentError("source", f"must have two arms or more, got {len(names)}")
    asked = {label: as_asked(one, reader.height, source) for label, one in named.items()}
    parts = as_segments(segments, reader, source)
    values = contrast(reader, asked, as_model(model, reader.height), ends, parts, ())
    leaders = {name: _leader(group) for name, group in values.items()}
    pairs = {(one, other) for one in leaders.values() for other in named if other != one}
    found = contrast(reader, asked, as_model(model, reader.height), ends, parts, sorted(pairs))
    tail = risk / (len(named) * (len(named) - 1) * len(found))
    tested = linear_test(reader, asked, parts, noise_std, ends, risk, slack)
    linear = any(isinstance(one, LinearTest) for one in tested.values())
    if ends is None and not linear:
        raise ArgumentError(
            "reward_range",
            f"must be given where rewards are not all within [0, 1] and there is no linear test: {tested[EVERYONE]}",
        )
    rows = [
        _judged(name, group, leaders[name], tail, slack, ends, tested[name]) for name, group in found.items()
    ]
    return Verdict(pl.DataFrame(rows, schema=TABLE), risk, slack, _assumptions(ends, noise_std, linear))


def _leader(group: Contrasts) -> str:
    values = {
        label: float(dr_terms(terms).mean()) for label, terms in group.values.items() if label != PLAYED
    }
    return max(values, key=lambda label: values[label])


def _judged(
    name: str,
    group: Contrasts,
    best: str,
    tail: float,
    slack: float,
    ends: Ends | None,
    tested: LinearTest | str,
) -> dict[str, Any]:
    """Return the verdict on a group of rows; the rival has the smallest lower bound of the lead over it."""
    width = 1.0 if ends is None else ends[1] - ends[0]
    leads = {}
    for (first, other), terms in group.pairs.items():
        if first == best:
            low, high = difference(terms, tail) if ends is not None else (np.array([math.nan]),) * 2
            lead = (float(dr_terms(terms).mean()), width * float(low[0]), width * float(high[0]))
            leads[other] = (*lead, len(terms.reward))
    rival = min(leads, key=lambda other: leads[other][1])
    value, low_end, high_end, rows = leads[rival]
    known = not math.isnan(low_end)
    stop = known and (low_end >= -slack if slack else low_end > 0)
    return {
        "segment": name,
        "rows": group.rows,
        "best": best,
        "rival": rival,
        "difference": value,
        "low": low_end if known else None,
        "high": high_end if known else None,
        "verdict": STOP if stop else GO_ON,
        "more decisions": 0 if stop else _more(value + slack, value - low_end, rows, group.rows),
    } | _linear(tested)


def _linear(tested: LinearTest | str) -> dict[str, Any]:
    if isinstance(tested, str):
        return {"why not linear": tested}
    return {
        "if linear": STOP if tested.stop else GO_ON,
        "best if linear": tested.best,
        "statistic": tested.statistic,
        "threshold": tested.threshold,
    }


def _more(lead: float, half: float, rows: int, every: int) -> int | None:
    """Estimate how many more decisions are needed: half a width falls with the root of the number of rows."""
    if math.isnan(half) or lead <= 0 or not rows:
        return None
    wanted = every * ((half / lead) ** 2 - 1)
    return math.ceil(wanted) if wanted < 1e12 else None


def _assumptions(ends: Ends | None, noise_std: float | None, linear: bool) -> dict[str, str]:
    found = {}
    if ends is not None:
        found["verdict"] = (
            f"rewards lie in [{ends[0]:g}, {ends[1]:g}], and arms were drawn with the logged probabilities; rewards "
            "may drift and the logger may learn: what is judged are mean values over the decisions so far"
        )
    if linear:
        noise = "noise is Gaussian with one σ, which is estimated"
        if noise_std is not None:
            noise = f"noise is sub-Gaussian with σ = {noise_std:g}, as given"
        elif ends is not None:
            noise = f"rewards lie in [{ends[0]:g}, {ends[1]:g}]; no σ is needed"
        found["if linear"] = (
            f"expected rewards are linear in the features and stay the same; {noise}; what is judged are means over "
            "the offers of the log"
        )
    return found
