"""Text and tables in Markdown."""

import math
import re
from collections.abc import Iterable, Sequence

from solid_bandits import _words
from solid_bandits.report.verdicts import CLAIM_FIGURES
from solid_bandits.statistics.estimate import Estimate

SPACE = "\N{NO-BREAK SPACE}"
"""Keeps a number and its interval on one line of a narrow cell."""

# What begins a block of its own at the start of a line: headings, lists, quotes, fences, comments, targets.
_BLOCK = re.compile(r"^([#+\-=:%(>]|\d+(?=[.)]))")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|$~&^])")


def escaped(text: str) -> str:
    """A text of one line in which nothing is markup, also in a cell of a table."""
    line = " ".join(str(text).split())
    return _BLOCK.sub(_escaped_start, _SPECIAL.sub(r"\\\1", line))


def _escaped_start(found: re.Match[str]) -> str:
    # Of "1." the dot is escaped, as a digit cannot be.
    return found[1] + "\\" if found[1].isdigit() else "\\" + found[1]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A pipe table of cells that are Markdown already; the columns `right` hold numbers."""
    rules = ["---:" if place in right else "---" for place in range(len(heads))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rules, *rows))


def plus_minus(estimate: Estimate | None, sign: str = "") -> str:
    """A mean and half of its interval, in a cell."""
    if estimate is None:
        return _words.ABSENT
    return _words.plus_minus(estimate.value, estimate.half_width, sign, space=SPACE)


def with_interval(estimate: Estimate) -> str:
    """An estimate and its interval, to the same decimals, in a cell."""
    if estimate.value is None or not math.isfinite(estimate.value):
        return "not in the results"
    ends = _words.ends(estimate.low, estimate.high, CLAIM_FIGURES, space=SPACE)
    if ends == _words.ABSENT:
        return _words.number(estimate.value)
    value = _words.measured(estimate.value, estimate.half_width, figures=CLAIM_FIGURES)
    return f"{value}{SPACE}\\{ends[:-1]}\\]"
