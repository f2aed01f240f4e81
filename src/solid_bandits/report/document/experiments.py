"""The experiments of the document: a figure and tables of numbers for each."""

import math
from urllib.parse import quote

from solid_bandits import _words
from solid_bandits.experiments.outcome import Outcome
from solid_bandits.report.document.claims import numbers_table
from solid_bandits.report.document.markdown import SPACE, escaped, plus_minus, table
from solid_bandits.report.document.overview import image
from solid_bandits.report.readings import READINGS_FOLDER, readings_view
from solid_bandits.report.standings import BOUND_NOTE, TIE
from solid_bandits.results import Results
from solid_bandits.statistics.estimate import Estimate
from solid_bandits.statistics.measures import measures

BOUND_FIGURES = 6
"""Of v* and the ends of its bracket, so that they differ."""


def how_to_read() -> str:
    """What the figures and tables show."""
    return (
        "In the figures, lines are means over runs, bands their 95% Student intervals, and the dashed line "
        "is v\\* log t; what leaves an axis is named. In the tables, ± is half of the 95% Student interval "
        "of a mean over runs. Differences are taken within a run, in which all policies see the same "
        f"contexts and noise; {escaped(TIE)} marks one whose interval holds 0. The slope is the "
        "growth of regret per unit of log t over the last decade, to be compared with v\\*. The exploring "
        "share is that of the rounds which a policy itself calls exploring; CPU time is per step. "
        f"{BOUND_NOTE[0].upper()}{escaped(BOUND_NOTE[1:])}."
    )


def experiment(outcome: Outcome, figures: str, shown_above: bool = False) -> list[str]:
    """The blocks of one experiment; its figure may stand above already."""
    blocks = [f"### {escaped(outcome.title)}", escaped(outcome.about)]
    if not shown_above:
        blocks.append(image(outcome, figures))
    if readings_view(outcome) is not None:
        address = quote(f"{figures}/{READINGS_FOLDER}/{outcome.name}.png")
        blocks.append(f"![The same under every reading: {escaped(outcome.title)}]({address})")
    for label, results in outcome.parts.items():
        blocks += [f"#### {escaped(label)}", _setting(results), _part_table(results, outcome.reference)]
    if any(verdict.comparisons for verdict in outcome.verdicts):
        blocks += ["#### Numbers behind the claims", numbers_table(outcome)]
    return [block for block in blocks if block]


def _setting(results: Results) -> str:
    """What was played, and the lower bound."""
    sentence = f"{_words.count(results.horizon, 'step')}, {_words.count(results.runs, 'run')}."
    known, value = results.lower_bound, results.bound
    if value is None:
        reason = known.get("reason")
        return f"{sentence} No lower bound{': ' + escaped(reason).rstrip('.') if reason else ''}."
    # Where each run has its own problem there is no one allocation.
    mean = "" if "allocation" in known else " (mean over the problems of the runs)"
    ends = ""
    if known.get("lower") is not None and known.get("upper") is not None:
        lower, upper = (_words.number(known[end], BOUND_FIGURES) for end in ("lower", "upper"))
        ends = f", certified to lie in \\[{lower}, {upper}\\]"
    at_horizon = _words.number(value * math.log(results.horizon))
    return f"{sentence} v\\* = {_words.number(value, BOUND_FIGURES)}{mean}{ends}; v\\* log n = {at_horizon}."


def _part_table(results: Results, reference: str) -> str:
    """Where the policies stand at the last step, in order of mean regret."""
    heads = (
        "policy",
        "mean regret",
        "median",
        "worst run",
        f"difference from {escaped(reference)}, paired",
        "slope",
        "exploring share",
        "CPU µs per step",
    )
    rows = [
        (
            escaped(one.policy),
            plus_minus(one.regret),
            _words.number(one.median),
            _words.number(one.worst),
            "" if one.policy == reference else _difference(one.difference),
            plus_minus(one.slope),
            _percent(one.exploring.value),
            _words.number(None if one.step_seconds is None else 1e6 * one.step_seconds),
        )
        for one in measures(results, reference)
    ]
    return table(heads, rows, right=range(1, len(heads)))


def _percent(share: float | None) -> str:
    return _words.ABSENT if share is None else f"{_words.number(100 * share)}%"


def _difference(estimate: Estimate | None) -> str:
    """A difference, marked where its interval holds 0."""
    text = plus_minus(estimate, "+")
    return f"{text}{SPACE}{escaped(TIE)}" if estimate is not None and estimate.holds_zero else text
