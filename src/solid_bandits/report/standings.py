"""Standings of the policies at the last step, in words; the same on the terminal and on the page."""

import math
from typing import NamedTuple

from solid_bandits._internal import wording
from solid_bandits.simulation.results import Results
from solid_bandits.statistics.summary import standings

HEADS = (
    "policy",
    "mean regret",
    "95% interval",
    "difference to best (paired 95%)",
    "exploring rounds",
    "runs",
)
"""Headings of the columns of a `Row`."""

BOUND_LABEL = "bound v* log n"
BOUND_NOTE = "the lower bound is asymptotic: at a finite n a policy may lie below it"

# Mark of a difference whose interval contains 0.
TIE = "~"
TIE_NOTE = f"{TIE} the paired interval holds 0: not told apart from the best"


class Row(NamedTuple):
    """A policy's standing."""

    policy: str
    mean: str
    interval: str
    difference: str
    explored: str
    runs: str


def rows(results: Results) -> list[Row]:
    """Return the standings in order of mean regret."""
    table = standings(results.table)
    places = _places(table["mean"].to_list())

    def number(value: float, sign: str = "") -> str:
        return wording.fixed(value, places if abs(value) < 1000 else 0, sign)

    def interval(low: float | None, high: float | None) -> str:
        return "one run" if low is None or high is None else f"[{number(low)}, {number(high)}]"

    def difference(mean: float | None, low: float | None, high: float | None) -> str:
        if mean is None:
            return ""
        if low is None or high is None:
            return number(mean, "+")
        mark = f"{TIE} " if low <= 0 <= high else ""
        return f"{mark}{number(mean, '+')} ± {number(high - mean)}"

    return [
        Row(
            policy=row["policy"],
            mean=number(row["mean"]),
            interval=interval(row["low"], row["high"]),
            difference="best"
            if place == 0
            else difference(row["difference"], row["difference_low"], row["difference_high"]),
            explored=wording.fixed(row["explored"], 0),
            runs=f"{row['runs']:,}",
        )
        for place, row in enumerate(table.iter_rows(named=True))
    ]


def notes(found: list[Row], bound: float | None) -> list[str]:
    """Return the notes below the rows."""
    tied = any(row.difference.startswith(TIE) for row in found)
    return ([TIE_NOTE] if tied else []) + ([BOUND_NOTE] if bound is not None else [])


def bound_at_horizon(results: Results, bound: float) -> str:
    """Format v* log n for the last step n."""
    return wording.number(bound * math.log(results.horizon))


def _places(means: list[float]) -> int:
    """Return the decimals that show three digits of the smallest positive mean, used for all means to align columns."""
    least = min((mean for mean in means if mean > 0), default=1.0)
    return min(wording.decimals(least, wording.FIGURES), 4)
