"""The reproduction as a page of the documentation: figures, the claims table and tables of numbers."""

import math
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from solid_bandits._types import Floats, Plain
from solid_bandits._words import duration
from solid_bandits.experiments.claims import METRICS, RULES
from solid_bandits.experiments.experiment import NAMES, ON_THEIR_OWN
from solid_bandits.experiments.outcome import OURS, Answer, Comparison, Outcome, Verdict
from solid_bandits.report import standings
from solid_bandits.report.measures import Estimate, estimates, measures
from solid_bandits.results import Results, write_whole

ABSENT = "–"
"""What a table shows where there is no number."""

SPACE = "\N{NO-BREAK SPACE}"
"""Keeps a number and its interval on one line of a narrow cell."""
PLUS_MINUS = f"{SPACE}±{SPACE}"

MOST_NUMBERS = 3
"""A row of the claims table shows this many numbers; the full list stands with the experiment."""

# What begins a block of its own at the start of a line: headings, lists, quotes, fences, comments, targets.
_BLOCK = re.compile(r"^([#+\-=:%(>]|\d+(?=[.)]))")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|$~&^])")


def document(outcomes: Sequence[Outcome], facts: Plain, figures: str = "figures") -> str:
    """The Markdown of docs/reproduction.md.

    Args:
        outcomes: the experiments, in the order in which they are shown.
        facts: what is to be said about the run, as plain data: "scale", "machine", "cores", "wall time" (a
            text, or seconds), "versions" (a text, or name -> version), "command" (what makes this page).
            Others are shown too; any may be absent.
        figures: the folder of the figures, relative to the page; that of an experiment is NAME.png.

    """
    blocks = [
        "# Reproduction",
        *_introduction(outcomes, facts),
        "## Claims",
        *_claims(outcomes),
        "## Experiments",
        _reading(),
    ]
    for outcome in outcomes:
        blocks += _experiment(outcome, figures)
    return "\n\n".join(blocks) + "\n"


def write_document(
    outcomes: Sequence[Outcome], path: str | os.PathLike[str], facts: Plain, figures: str = "figures"
) -> None:
    """Write the document to `path`, whole or not at all; `write_experiment_figure` writes the figures."""
    text = document(outcomes, facts, figures)
    write_whole(Path(path), lambda file: file.write_text(text, encoding="utf-8"))


# --- text ---------------------------------------------------------------------------------------------------


def escaped(text: str) -> str:
    """A text of one line in which nothing is markup, also in a cell of a table."""
    line = " ".join(str(text).split())
    return _BLOCK.sub(_escaped_start, _SPECIAL.sub(r"\\\1", line))


def _escaped_start(found: re.Match[str]) -> str:
    # Of "1." the dot is escaped, as a digit cannot be.
    return found[1] + "\\" if found[1].isdigit() else "\\" + found[1]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A pipe table of cells that are Markdown already; the columns `right` hold numbers."""
    rules = ["---:" if place in right else "---" for place in range(len(heads))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rules, *rows))


def _number(value: float | None, sign: str = "") -> str:
    """A number in about three figures."""
    if value is None or not math.isfinite(value):
        return ABSENT
    if value == 0:
        return "0"
    if abs(value) >= 1e9 or abs(value) < 1e-4:
        return _minus(f"{value:{sign}.2e}")
    return _fixed(value, min(2 - _magnitude(value), 6), sign)


def _fixed(value: float, digits: int, sign: str = "") -> str:
    """A number with so many decimals, none if that is negative."""
    return _minus(f"{value:{sign},.{max(digits, 0)}f}")


def _minus(number: str) -> str:
    return number.replace("-", "−")


def _magnitude(value: float, figures: int = 3) -> int:
    """The power of ten of the first figure of `value`, once it is rounded to so many."""
    return int(f"{abs(value):.{figures - 1}e}".partition("e")[2])


def _plus_minus(value: float, half: float | None, sign: str = "") -> str:
    """A mean to the digits that its interval leaves it, such as "26.8 ± 4.3"; alone for a single run."""
    if not math.isfinite(value):
        return ABSENT
    if half is None or not math.isfinite(half):
        return _number(value, sign)
    if half == 0 or half < 1e-6 or max(abs(value), half) >= 1e9:
        return f"{_number(value, sign)}{PLUS_MINUS}{_number(half)}"
    # Two figures of the half width; whole numbers are enough from there on.
    digits = 1 - _magnitude(half, figures=2)
    return f"{_fixed(value, digits, sign)}{PLUS_MINUS}{_fixed(half, digits)}"


# --- introduction -------------------------------------------------------------------------------------------


def _introduction(outcomes: Sequence[Outcome], facts: Plain) -> list[str]:
    scales = list(dict.fromkeys(outcome.scale for outcome in outcomes))
    scale = facts.get("scale") or (scales[0] if len(scales) == 1 else None)
    command = facts.get("command")
    if command is None and scale in ("quick", "paper"):
        command = f"solid-bandits reproduce {_arguments(outcomes)} --scale {scale}"
    what = (
        "The experiments of the paper, played anew: its sentences that can be checked, what was measured, and all "
        "numbers."
        if any(outcome.name in NAMES for outcome in outcomes)
        else "What was played, what was measured, and all numbers."
    )
    blocks = [f"{what} Every verdict is computed from the results by the rule that stands beside it."]
    if command is not None:
        blocks.append(
            "This page is generated, figures and tables alike, from the results of\n\n"
            f"```sh\n{' '.join(str(command).split())}\n```"
        )
    known = {"scale": scale, **facts}
    rows = [
        (escaped(name), escaped(_fact(name, value)))
        for name, value in known.items()
        if name != "command" and value not in (None, "", {}, [])
    ]
    if rows:
        blocks.append(_table(("", ""), rows))
    return blocks


def _arguments(outcomes: Sequence[Outcome]) -> str:
    """The experiments as the command line takes them."""
    names = [outcome.name for outcome in outcomes]
    every = [name for name in NAMES if name not in ON_THEIR_OWN]
    known = [name for name in NAMES if name in names]
    if set(every) <= set(known):
        known = ["all", *(name for name in known if name in ON_THEIR_OWN)]
    own = [f"{name}.toml" for name in names if name not in NAMES]
    return shlex.join([*known, *own])


def _fact(name: str, value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_fact(str(key), item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_fact(name, item) for item in value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return duration(value) if name == "wall time" else f"{value:,}"
    return str(value)


# --- claims -------------------------------------------------------------------------------------------------


def _claims(outcomes: Sequence[Outcome]) -> list[str]:
    verdicts = [verdict for outcome in outcomes for verdict in outcome.verdicts]
    if not verdicts:
        return ["No claims were judged."]
    blocks = [
        _counts(verdicts),
        "The numbers are those that decide, each with its interval: all that count if the claim is "
        "confirmed, else those against it or those that leave it open. What does not fit, and what was "
        "compared beside, stands with the experiment.",
    ]
    blocks += _rules(verdicts)
    for outcome in outcomes:
        if outcome.verdicts:
            blocks += [f"### {escaped(outcome.name)}", _claims_table(outcome)]
    return blocks


def _counts(verdicts: Sequence[Verdict]) -> str:
    """How many claims were confirmed, refuted, left undecided; the paper's and others."""
    groups = {
        "the paper’s": [verdict for verdict in verdicts if verdict.claim.source != OURS],
        "not the paper’s (ours)": [verdict for verdict in verdicts if verdict.claim.source == OURS],
    }
    rows = [
        (
            name,
            *(str(sum(verdict.answer == answer for verdict in group)) for answer in Answer),
            str(len(group)),
        )
        for name, group in groups.items()
        if group
    ]
    return _table(("claims", *Answer, "all"), rows, right=range(1, len(Answer) + 2))


def _rules(verdicts: Sequence[Verdict]) -> list[str]:
    """The rules that the tables refer to by name."""
    names = [name for name in RULES if any(_refers(verdict, name) for verdict in verdicts)]
    if not names:
        return []
    return [
        "The rules, which the tables name:",
        "\n".join(f"- *{escaped(name)}*: {escaped(RULES[name].words)}" for name in names),
    ]


def _refers(verdict: Verdict, name: str) -> bool:
    return verdict.claim.rule == name and verdict.rule.startswith(RULES[name].words)


def _claims_table(outcome: Outcome) -> str:
    rows = []
    for place, verdict in enumerate(outcome.verdicts, start=1):
        source = "ours, not the paper’s" if verdict.claim.source == OURS else escaped(verdict.claim.source)
        rows.append(
            (
                str(place),
                _answer(verdict.answer),
                f"{escaped(verdict.claim.text)}<br>*{source}*",
                _deciding_numbers(verdict),
                _rule(verdict),
            )
        )
    return _table(("", "verdict", "claim", "numbers", "rule"), rows)


def _answer(answer: Answer) -> str:
    return str(answer) if answer is Answer.UNDECIDED else f"**{answer}**"


def _rule(verdict: Verdict) -> str:
    """The rule's name, and what is special to this claim; the whole rule where its name says less."""
    name = verdict.claim.rule
    if name not in RULES or not _refers(verdict, name):
        return escaped(verdict.rule)
    rest = verdict.rule.removeprefix(RULES[name].words).strip().removeprefix("Here:").strip()
    return f"*{escaped(name)}*: {escaped(rest)}" if rest else f"*{escaped(name)}*"


def _deciding(verdict: Verdict) -> list[Comparison]:
    """The comparisons that made the verdict what it is."""
    counted = [comparison for comparison in verdict.comparisons if comparison.counted]
    return [comparison for comparison in counted if comparison.answer == verdict.answer] or counted


def _deciding_numbers(verdict: Verdict) -> str:
    deciding = _deciding(verdict)
    shown = deciding if len(deciding) <= MOST_NUMBERS + 1 else deciding[:MOST_NUMBERS]
    lines = [f"{escaped(comparison.what)}: {_interval(comparison)}" for comparison in shown]
    if len(deciding) > len(shown):
        lines.append(f"and {len(deciding) - len(shown)} more")
    bullet = "• " if len(lines) > 1 else ""
    return "<br>".join(bullet + line for line in lines) or ABSENT


def _interval(comparison: Comparison) -> str:
    """The estimate and its interval, to the same digits."""
    estimate, low, high = comparison.estimate, comparison.low, comparison.high
    if estimate is None or not math.isfinite(estimate):
        return "not in the results"
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return _number(estimate)
    width = (high - low) / 2
    if not 1e-6 < width < 1e9:
        return _bracketed(*map(_number, (estimate, low, high)))
    # A figure more than the width needs, so that an end near the threshold is seen on its side.
    digits = 2 - _magnitude(width)
    return _bracketed(*(_fixed(value, digits) for value in (estimate, low, high)))


def _bracketed(estimate: str, low: str, high: str) -> str:
    return f"{estimate}{SPACE}\\[{low},{SPACE}{high}\\]"


# --- experiments --------------------------------------------------------------------------------------------


def _reading() -> str:
    return (
        "In the figures, lines are means over runs, bands their 95% Student intervals, and the dashed line "
        "is v\\* log t; what leaves an axis is named. In the tables, ± is half of the 95% Student interval "
        "of a mean over runs. Differences are taken within a run, in which all policies see the same "
        f"contexts and noise; {escaped(standings.TIE)} marks one whose interval holds 0. The slope is the "
        "growth of regret per unit of log t over the last decade, to be compared with v\\*. The exploring "
        "share is that of the rounds which a policy itself calls exploring; CPU time is per step. "
        f"{standings.BOUND_NOTE[0].upper()}{escaped(standings.BOUND_NOTE[1:])}."
    )


def _experiment(outcome: Outcome, figures: str) -> list[str]:
    image = quote(f"{figures}/{outcome.name}.png")
    blocks = [
        f"### {escaped(outcome.title)}",
        escaped(outcome.about),
        f"![Mean cumulative regret against time: {escaped(outcome.title)}]({image})",
    ]
    for label, results in outcome.parts.items():
        blocks += [f"#### {escaped(label)}", _setting(results), _part_table(results, outcome.reference)]
    if any(verdict.comparisons for verdict in outcome.verdicts):
        blocks += ["#### Numbers behind the claims", _numbers_table(outcome)]
    return [block for block in blocks if block]


def _setting(results: Results) -> str:
    """What was played, and the lower bound."""
    configuration = results.manifest["configuration"]
    horizon, runs = configuration["horizon"], configuration["runs"]
    sentence = f"{horizon:,} steps, {runs:,} {'runs' if runs > 1 else 'run'}."
    bound = results.manifest.get("lower_bound") or {}
    value: float | None = bound.get("value")
    if value is None:
        reason = bound.get("reason")
        return f"{sentence} No lower bound{': ' + escaped(reason).rstrip('.') if reason else ''}."
    # Where each run has its own problem there is no one allocation.
    mean = "" if "allocation" in bound else " (mean over the problems of the runs)"
    ends = ""
    if bound.get("lower") is not None and bound.get("upper") is not None:
        ends = f", certified to lie in \\[{_digits(bound['lower'])}, {_digits(bound['upper'])}\\]"
    at_horizon = _number(value * math.log(horizon))
    return f"{sentence} v\\* = {_digits(value)}{mean}{ends}; v\\* log n = {at_horizon}."


def _digits(value: float) -> str:
    """Six figures, so that the ends of a bracket differ."""
    return _fixed(value, min(5 - _magnitude(value, figures=6), 8)) if value else "0"


def _part_table(results: Results, reference: str) -> str:
    """Where the policies stand at the last step, in order of mean regret."""
    heads = (
        "policy",
        "mean regret",
        "median",
        "worst run",
        f"less {escaped(reference)}, paired",
        "slope",
        "exploring share",
        "CPU µs per step",
    )
    rows = [
        (
            escaped(one.policy),
            _estimate(one.regret),
            _number(one.median),
            _number(one.worst),
            "" if one.policy == reference else _difference(one.difference),
            # The one that claims are judged by.
            _mean(METRICS["slope"].values(results, one.policy, 1.0)),
            f"{_number(100 * one.exploring.mean)}%",
            _number(None if one.step_seconds is None else 1e6 * one.step_seconds),
        )
        for one in measures(results, reference)
    ]
    return _table(heads, rows, right=range(1, len(heads)))


def _estimate(estimate: Estimate | None, sign: str = "") -> str:
    if estimate is None:
        return ABSENT
    half = None if estimate.high is None else estimate.high - estimate.mean
    return _plus_minus(estimate.mean, half, sign)


def _mean(values: Floats | None) -> str:
    return ABSENT if values is None else _estimate(estimates({"": values})[""])


def _difference(estimate: Estimate | None) -> str:
    """A difference, marked where its interval holds 0."""
    text = _estimate(estimate, "+")
    if estimate is None or estimate.low is None or estimate.high is None:
        return text
    return f"{text}{SPACE}{escaped(standings.TIE)}" if estimate.low <= 0 <= estimate.high else text


def _numbers_table(outcome: Outcome) -> str:
    rows = [
        (
            str(place),
            escaped(comparison.what),
            _interval(comparison),
            str(comparison.answer) if comparison.counted else f"{comparison.answer}, not counted",
        )
        for place, verdict in enumerate(outcome.verdicts, start=1)
        for comparison in verdict.comparisons
    ]
    return _table(("claim", "number", "estimate \\[interval\\]", "says"), rows)
