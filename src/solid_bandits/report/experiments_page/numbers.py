"""Charts and numbers of the parts of an experiment, and the parameters of its policies."""

import json
import math
from html import escape

from solid_bandits import _words
from solid_bandits.experiments.outcome import Outcome
from solid_bandits.report import markup
from solid_bandits.report.markup import policy_head, swatch
from solid_bandits.report.palette import Look
from solid_bandits.report.standings import BOUND_LABEL, TIE
from solid_bandits.results import Results
from solid_bandits.statistics.estimate import Estimate
from solid_bandits.statistics.measures import Measures, measures


def figure(kind: str, label: str, what: str, notes: str = "") -> str:
    """The place of a chart."""
    return (
        f'<figure><h4>{escape(label)}</h4><div class="chart {kind}" role="img" '
        f'aria-label="{what}, {escape(label)}: the numbers are in the table"></div>{notes}</figure>'
    )


def curves(label: str, results: Results) -> str:
    """The place of a part's curves, with its bound."""
    return figure("curves", label, "Regret over time", f'<p class="note scale"></p>{_bound_note(results)}')


def _bound_note(results: Results) -> str:
    """v* with its certificate, or why there is none."""
    bound, value = results.lower_bound, results.bound
    if value is None:
        reason = bound.get("reason") or "it was not computed"
        return f'<p class="note">No lower bound here: {escape(str(reason))}.</p>'.replace("..<", ".<")
    low, high = bound.get("lower"), bound.get("upper")
    sure = ""
    if low is not None and high is not None and _words.number(low) != _words.number(high):
        sure = f" (between {_words.number(low)} and {_words.number(high)})"
    return f'<p class="note">v* = {_words.number(value)}{sure}</p>'


def numbers_table(label: str, results: Results, reference: str, styles: dict[str, Look]) -> str:
    """The table of one part."""
    heads = [
        "final regret<br>[95%]",
        f"difference from {escape(reference)}<br>(paired 95%)",
        "slope per log t<br>[95%]",
        "median<br>run",
        "worst<br>run",
        "exploring<br>rounds",
        "CPU time<br>per step",
        "CPU time<br>in all",
    ]
    body = []
    bound, last = results.bound, int(results.table["step"].max())  # type: ignore[arg-type]  # steps are integers
    for entry in measures(results, reference):
        cells = "".join(f"<td>{cell}</td>" for cell in _cells(entry, reference))
        body.append(f"<tr>{policy_head(entry.policy, styles[entry.policy])}{cells}</tr>")
    if bound is not None:
        cells = (
            f"<td>{_words.number(bound * math.log(last))}</td><td></td><td>{_words.number(bound)}</td>"
            + "<td></td>" * 5
        )
        head = f'<th scope="row"><div>{swatch("currentColor", "dash")}<span>{BOUND_LABEL}</span></div></th>'
        body.append(f'<tr class="bound">{head}{cells}</tr>')
    columns = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return (
        f'<h4>{escape(label)}</h4><div class="scroll" role="region" tabindex="0" '
        f'aria-label="Numbers, {escape(label)}"><table class="numbers"><thead><tr><th scope="col">policy</th>'
        f"{columns}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def estimate_words(
    estimate: Estimate | None, sign: str = "", mark: bool = False, figures: int = _words.INTERVAL_FIGURES
) -> str:
    """A number and, smaller, its interval."""
    if estimate is None:
        return _words.ABSENT
    number = _words.measured(estimate.value, estimate.half_width, sign, figures)
    if mark:
        number = f"<b>{number}</b>"
    if estimate.half_width is None:
        return number
    return f'{number} <small class="interval">{_words.ends(estimate.low, estimate.high, figures)}</small>'


def _cells(entry: Measures, reference: str) -> list[str]:
    difference = estimate_words(entry.difference, sign="+")
    if entry.policy == reference:
        difference = _words.ABSENT
    elif entry.difference is not None and entry.difference.holds_zero:
        difference = f"{TIE} {difference}"
    return [
        estimate_words(entry.regret),
        difference,
        estimate_words(entry.slope),
        _words.number(entry.median),
        _words.number(entry.worst),
        f"{_words.number(100 * (entry.exploring.value or 0.0))}%",
        _words.duration(entry.step_seconds, figures=3),
        _words.duration(entry.seconds),
    ]


def policies_table(outcome: Outcome, styles: dict[str, Look]) -> str:
    """Each policy's parameters, once where the parts agree."""
    rows = []
    for label in outcome.policies:
        given: dict[str, list[str]] = {}
        for part, results in outcome.parts.items():
            parameters = results.manifest["configuration"]["policies"].get(label)
            if parameters is not None:
                given.setdefault(json.dumps(parameters), []).append(part)
        lines = [
            ("" if len(given) == 1 else f'<span class="note">{escape(", ".join(parts))}:</span> ')
            + markup.parameters(json.loads(text))
            for text, parts in given.items()
        ]
        rows.append(
            f'<tr>{policy_head(label, styles[label])}<td class="parameters">{"<br>".join(lines)}</td></tr>'
        )
    return f'<table class="words stack"><tbody>{"".join(rows)}</tbody></table>'
