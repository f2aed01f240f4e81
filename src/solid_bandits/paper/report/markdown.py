"""Text and numbers in Markdown."""

import math
import re

from solid_bandits._internal import wording
from solid_bandits.paper.report.verdicts import CLAIM_FIGURES
from solid_bandits.statistics.estimate import Estimate

SPACE = "\N{NO-BREAK SPACE}"
"""No-break space that keeps a number and its interval on one line of a narrow cell."""

# Starts of lines that would begin a block: headings, lists, quotes, fences, comments, targets.
_BLOCK = re.compile(r"^([#+\-=:%(>]|\d+(?=[.)]))")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|$~&^])")


def escaped(text: str) -> str:
    """Return the text as one line without active markup, suitable for a table cell."""
    line = " ".join(str(text).split())
    return _BLOCK.sub(_escaped_start, _SPECIAL.sub(r"\\\1", line))


def _escaped_start(found: re.Match[str]) -> str:
    # In "1." the dot is escaped, since a digit cannot be.
    return found[1] + "\\" if found[1].isdigit() else "\\" + found[1]


def plus_minus(estimate: Estimate | None, sign: str = "") -> str:
    """Format a mean and half the width of its interval for a cell."""
    if estimate is None:
        return wording.ABSENT
    return wording.plus_minus(estimate.value, estimate.half_width, sign, space=SPACE)


def with_interval(estimate: Estimate) -> str:
    """Format an estimate and its interval, to the same decimals, for a cell."""
    if estimate.value is None or not math.isfinite(estimate.value):
        return "not in the results"
    ends = wording.ends(estimate.low, estimate.high, CLAIM_FIGURES, space=SPACE)
    if ends == wording.ABSENT:
        return wording.number(estimate.value)
    value = wording.measured(estimate.value, estimate.half_width, figures=CLAIM_FIGURES)
    return f"{value}{SPACE}\\{ends[:-1]}\\]"
