"""One page for a whole directory of experiments: the claims and what was measured, curves, bars, numbers.

An html file that holds its data, its style and plotly.js, and asks the network for nothing.
"""

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import quote

import numpy as np
import polars as pl
from plotly.offline import get_plotlyjs

from solid_bandits._types import Plain
from solid_bandits.experiments.outcome import OURS, Answer, Comparison, Outcome, Verdict
from solid_bandits.report import markup, words
from solid_bandits.report.markup import embedded, policy_head, read_part, swatch
from solid_bandits.report.measures import Estimate, Measures, measures
from solid_bandits.report.palette import BAND_OPACITY, Look, looks
from solid_bandits.report.scale import regret_scale
from solid_bandits.report.standings import BOUND_LABEL, BOUND_NOTE, TIE
from solid_bandits.report.verdicts import MARKS
from solid_bandits.results import Results, write_whole

# A curve needs no more points than a small chart has room for, and no more figures than a hover label shows.
MOST_CHECKPOINTS = 120
FIGURES = 5

# A claim's row names this many of the numbers that it rests on; the details have all of them.
_MAIN_NUMBERS = 2

# Read by people who do not tell red from green: each answer has its own sign.
_SIGNS = {answer: sign for answer, (sign, _) in MARKS.items()}
_VERBS = {
    Answer.CONFIRMED: ("confirms", "confirm"),
    Answer.REFUTED: ("refutes", "refute"),
    Answer.UNDECIDED: ("is undecided", "are undecided"),
}


def write_experiments_page(outcomes: Sequence[Outcome], path: str | os.PathLike[str], facts: Plain) -> None:
    """Write the page to `path`, whole or not at all.

    Args:
        outcomes: the experiments, in the order in which they are shown.
        path: the html file.
        facts: plain data on the run as a whole, such as {"machine": "...", "cores": 2, "versions": {...}}.

    """
    text = _page(outcomes, facts)
    write_whole(Path(path), lambda file: file.write_text(text, encoding="utf-8"))


def experiments_data(outcomes: Sequence[Outcome]) -> Plain:
    """What the page's charts are drawn from."""
    return {
        "band_opacity": BAND_OPACITY,
        "bound": {"label": "lower bound v* log t", "swatch": swatch("currentColor", "dash")},
        "experiments": [_experiment_data(outcome) for outcome in outcomes],
    }


# The data


def _experiment_data(outcome: Outcome) -> Plain:
    styles = looks(outcome.policies)
    return {
        "name": outcome.name,
        "title": outcome.title,
        "reference": outcome.reference,
        "policies": [
            {
                "label": label,
                "colour": look.colour,
                "dash": look.dash,
                "swatch": swatch(look.colour, look.dash),
            }
            for label, look in styles.items()
        ],
        "parts": [
            {"label": label, **_part_data(results, outcome)} for label, results in outcome.parts.items()
        ],
    }


def _part_data(results: Results, outcome: Outcome) -> Plain:
    """Curves and bars of one part; "policy" is a place in the experiment's list of policies."""
    summary, bound = results.summary(), _bound(results)
    scale = regret_scale(summary, bound)
    places = {label: place for place, label in enumerate(outcome.policies)}
    steps = _thinned(summary["step"].unique().sort().to_list())
    found = {entry.policy: entry for entry in measures(results, outcome.reference)}
    curves: list[Plain] = []
    for label in results.policies:
        if label not in found:  # asked for, but without a run
            continue
        curve = summary.filter((pl.col("policy") == label) & pl.col("step").is_in(steps)).sort("step")
        banded = curve["low"].null_count() == 0
        curves.append(
            {
                "policy": places[label],
                "off_scale": label in scale.off_scale,
                "mean": _rounded(curve["mean"]),
                "low": _rounded(curve["low"]) if banded else None,
                "high": _rounded(curve["high"]) if banded else None,
            }
        )
    last = max(steps)
    return {
        "step": steps,
        "top": _round(scale.top),
        "bound": None if bound is None else [_round(bound * math.log(step)) for step in steps],
        "policies": curves,
        "order": [places[label] for label in found],
        "measures": {
            "regret": _bars(
                {label: entry.regret for label, entry in found.items()},
                places,
                bound=None if bound is None else bound * math.log(last),
            ),
            "difference": _bars({label: entry.difference for label, entry in found.items()}, places),
            "slope": _bars({label: entry.slope for label, entry in found.items()}, places, bound=bound),
            "exploring": _bars({label: entry.exploring for label, entry in found.items()}, places),
            "time": _bars(
                {
                    label: None if entry.step_seconds is None else Estimate(entry.step_seconds)
                    for label, entry in found.items()
                },
                places,
            ),
        },
    }


def _bars(values: dict[str, Estimate | None], places: dict[str, int], bound: float | None = None) -> Plain:
    """Mean and interval by the policy's place, and how far the linear axis goes."""
    known = {label: value for label, value in values.items() if value is not None}
    top = None
    if known:
        sizes = {
            "policy": list(known),
            "step": 1,
            "mean": [abs(value.mean) for value in known.values()],
            "high": [max(abs(end) for end in value if end is not None) for value in known.values()],
        }
        top = _round(regret_scale(pl.DataFrame(sizes)).top)
    return {
        "top": top,
        "bound": None if bound is None else _round(bound),
        "values": {str(places[label]): _rounded(value) for label, value in known.items()},
    }


def _bound(results: Results) -> float | None:
    value = (results.manifest.get("lower_bound") or {}).get("value")
    return float(value) if value is not None and math.isfinite(value) else None


def _thinned(steps: list[int]) -> list[int]:
    """At most MOST_CHECKPOINTS of the steps, the first and the last among them."""
    places = np.unique(np.linspace(0, len(steps) - 1, MOST_CHECKPOINTS).round().astype(int))
    return [steps[place] for place in places]


def _rounded(values: Iterable[float | None]) -> list[float | None]:
    return [_round(value) for value in values]


def _round(value: float | None) -> float | None:
    """FIGURES significant figures; what is no number is null, as json knows no other name for it."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{FIGURES}g}")
    return int(short) if short.is_integer() else short


# The page


def _page(outcomes: Sequence[Outcome], facts: Plain) -> str:
    counts = Counter(verdict.answer for outcome in outcomes for verdict in outcome.verdicts)
    return Template(read_part("experiments.html")).substitute(
        facts=_facts(facts),
        links="".join(_link(outcome) for outcome in outcomes),
        options="".join(
            f'<option value="#{_address(outcome)}">{escape(outcome.title)}</option>' for outcome in outcomes
        ),
        count=_count(counts.total(), "claim"),
        experiments=_count(len(outcomes), "experiment"),
        filters="".join(
            f'<button class="{answer}" data-filter="{answer}" aria-pressed="false">'
            f"<b>{_SIGNS[answer]} {counts[answer]}</b><span>{answer}</span></button>"
            for answer in Answer
        ),
        total=counts.total(),
        outcomes="".join(_outcome(place, outcomes) for place in range(len(outcomes))),
        data=embedded(experiments_data(outcomes)),
        style="\n".join(map(read_part, ("page.css", "experiments.css"))),
        script="\n".join(map(read_part, ("chart.js", "curves.js", "experiments.js"))),
        plotly=get_plotlyjs(),
    )


def _facts(facts: Plain) -> str:
    """What holds for the run as a whole: single facts in a line, groups of them to be opened."""
    line = "".join(
        f"<span><span>{escape(key)}</span> {escape(markup.plain(value))}</span>"
        for key, value in facts.items()
        if not isinstance(value, dict)
    )
    groups = "".join(
        f"<details><summary>{escape(key)}</summary>{markup.facts(value)}</details>"
        for key, value in facts.items()
        if isinstance(value, dict)
    )
    return (f'<p class="facts run">{line}</p>' if line else "") + groups


def _address(outcome: Outcome) -> str:
    return escape(quote(outcome.name, safe=""))


def _count(number: int, thing: str, things: str = "") -> str:
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def _link(outcome: Outcome) -> str:
    counts = Counter(verdict.answer for verdict in outcome.verdicts)
    tally = "".join(
        f'<span class="{answer}" title="{counts[answer]} {answer}">{_SIGNS[answer]}{counts[answer]}</span>'
        for answer in Answer
        if counts[answer]
    )
    return (
        f'<li><a href="#{_address(outcome)}"><span>{escape(outcome.title)}</span>'
        f'<span class="tally">{tally}</span></a></li>'
    )


def _outcome(place: int, outcomes: Sequence[Outcome]) -> str:
    outcome = outcomes[place]
    styles = looks(outcome.policies)
    around = {
        "previous": outcomes[place - 1] if place else None,
        "next": outcomes[place + 1] if place + 1 < len(outcomes) else None,
    }
    turn = "".join(
        f'<a class="{way}" href="#{_address(other)}"><span>{way}</span>{escape(other.title)}</a>'
        for way, other in around.items()
        if other is not None
    )
    part_data = list(outcome.parts.items())
    return Template(read_part("experiment.html")).substitute(
        place=place,
        address=_address(outcome),
        title=escape(outcome.title),
        about=escape(outcome.about),
        facts=escape(" · ".join(_played(outcome))),
        claims=_claims(outcome.verdicts),
        columns=min(len(part_data), 3) if len(part_data) != 4 else 2,
        reference=escape(outcome.reference),
        curves="".join(_curves(label, results) for label, results in part_data),
        bars="".join(_figure("bars", label, "Bars") for label in outcome.parts),
        band_note=_band_note(outcome),
        tables="".join(_numbers(label, results, outcome.reference, styles) for label, results in part_data),
        tie=TIE,
        bound_note=escape(BOUND_NOTE[0].upper() + BOUND_NOTE[1:]),
        policies=_policies(outcome, styles),
        turn=turn,
    )


def _played(outcome: Outcome) -> list[str]:
    """How much was played, in a few words."""
    configurations = [results.manifest["configuration"] for results in outcome.parts.values()]
    facts = [f"{outcome.scale} scale" if outcome.scale != "own" else "own experiment"]
    for key, thing in (("runs", "run"), ("horizon", "step")):
        values = [configuration[key] for configuration in configurations]
        low, high = min(values), max(values)
        facts.append(_count(high, thing) if low == high else f"{low:,} to {_count(high, thing)}")
    facts.append(_count(len(outcome.policies), "policy", "policies"))
    seeds = sorted({configuration["seed"] for configuration in configurations})
    facts.append(f"seed {', '.join(map(str, seeds))}")
    seconds = sum(sum(results.manifest.get("seconds", {}).values()) for results in outcome.parts.values())
    return [*facts, f"{words.duration(seconds)} of CPU time"] if seconds else facts


def _band_note(outcome: Outcome) -> str:
    single = [results.manifest["configuration"]["runs"] == 1 for results in outcome.parts.values()]
    if all(single):
        return "One run: no bands."
    return "Bands: 95% Student intervals of the mean." + (" A single run has none." if any(single) else "")


# Claims


def _claims(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return '<p class="note none">No claim rests on this experiment.</p>'
    heads = "".join(f'<th scope="col"><span>{head}</span></th>' for head in ("Verdict", "Claim", "Measured"))
    return (
        f'<table class="verdicts"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(map(_claim, verdicts))}</tbody></table>"
    )


def _claim(verdict: Verdict) -> str:
    claim = verdict.claim
    source = escape(claim.source)
    if claim.source == OURS:
        source = '<span class="ours">ours, not the paper’s</span>'
    return (
        f'<tr class="claim" data-answer="{verdict.answer}"><td>{_answer(verdict.answer)}</td>'
        f'<td class="said"><p class="text">{escape(claim.text)}</p><p class="source">{source}</p>'
        f"{_details(verdict)}</td>"
        f'<td class="measured">{_main_numbers(verdict)}</td></tr>'
    )


def _answer(answer: Answer) -> str:
    return f'<span class="answer {answer}"><span aria-hidden="true">{_SIGNS[answer]}</span> {answer}</span>'


def _main_numbers(verdict: Verdict) -> str:
    """How the counted comparisons answer, and the first of those that decided."""
    counted = [comparison for comparison in verdict.comparisons if comparison.counted]
    if not counted:
        return '<p class="counts">nothing to compare</p>'
    deciding = [comparison for comparison in counted if comparison.answer == verdict.answer] or counted
    numbers = "".join(
        f"<li>{_estimate(_of(comparison), mark=True) if _of(comparison) else 'not measured:'} "
        f"<span>{escape(comparison.what)}</span></li>"
        for comparison in deciding[:_MAIN_NUMBERS]
    )
    tally = "" if len(counted) == 1 else f'<p class="counts">{_tally(counted, verdict.answer)}</p>'
    return f"{tally}<ul>{numbers}</ul>"


def _tally(counted: Sequence[Comparison], first: Answer) -> str:
    """In words, how many comparisons answer what, the verdict's own answer first."""
    counts = Counter(comparison.answer for comparison in counted)
    (answer, number), *others = sorted(counts.items(), key=lambda item: item[0] != first)
    if not others:
        return f"all {number} comparisons {_VERBS[answer][1]}"
    tally = [f"{number} of {len(counted)} comparisons {_VERBS[answer][number > 1]}"]
    return ", ".join(tally + [f"{number} {_VERBS[answer][number > 1]}" for answer, number in others])


def _of(comparison: Comparison) -> Estimate | None:
    if comparison.estimate is None:
        return None
    return Estimate(comparison.estimate, comparison.low, comparison.high)


def _row(comparison: Comparison) -> str:
    estimate = _of(comparison)
    number = words.UNKNOWN if estimate is None else words.number(estimate.mean, estimate.half_width)
    return (
        f'<tr{"" if comparison.counted else " class=beside"}><th scope="row">{escape(comparison.what)}</th>'
        f"<td>{number}</td><td>{words.interval(estimate)}</td><td>{_answer(comparison.answer)}</td>"
        f"<td>{'yes' if comparison.counted else 'no'}</td></tr>"
    )


def _details(verdict: Verdict) -> str:
    """The rule in words and every comparison."""
    rows = "".join(map(_row, verdict.comparisons))
    beside = sum(not comparison.counted for comparison in verdict.comparisons)
    heading = f"rule and {_count(len(verdict.comparisons), 'comparison')}"
    if beside:
        heading += f", {beside} of them only shown beside"
    table = (
        '<table class="comparisons"><thead><tr><th scope="col">compared</th><th scope="col">estimate</th>'
        '<th scope="col">interval</th><th scope="col">says</th><th scope="col">counted</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
    return (
        f'<details class="judged"><summary>{heading}</summary><p class="rule">{escape(verdict.rule)}</p>'
        f"{table if rows else ''}</details>"
    )


# Charts and numbers of one part


def _figure(kind: str, label: str, what: str, notes: str = "") -> str:
    return (
        f'<figure><h4>{escape(label)}</h4><div class="chart {kind}" role="img" '
        f'aria-label="{what}, {escape(label)}: the numbers are in the table"></div>{notes}</figure>'
    )


def _curves(label: str, results: Results) -> str:
    return _figure("curves", label, "Regret over time", f'<p class="note scale"></p>{_bound_note(results)}')


def _bound_note(results: Results) -> str:
    """v* with its certificate, or why there is none."""
    bound = results.manifest.get("lower_bound") or {}
    value = _bound(results)
    if value is None:
        reason = bound.get("reason") or "it was not computed"
        return f'<p class="note">No lower bound here: {escape(str(reason))}.</p>'.replace("..<", ".<")
    low, high = bound.get("lower"), bound.get("upper")
    sure = ""
    if low is not None and high is not None and words.number(low) != words.number(high):
        sure = f" (between {words.number(low)} and {words.number(high)})"
    return f'<p class="note">v* = {words.number(value)}{sure}</p>'


def _numbers(label: str, results: Results, reference: str, styles: dict[str, Look]) -> str:
    """The table of one part."""
    heads = [
        "final regret<br>[95%]",
        f"less {escape(reference)}<br>(paired 95%)",
        "slope per log t<br>[95%]",
        "median<br>run",
        "worst<br>run",
        "exploring<br>rounds",
        "CPU time<br>per step",
        "CPU time<br>in all",
    ]
    body = []
    bound, last = _bound(results), int(results.table["step"].max())  # type: ignore[arg-type]  # steps are integers
    for entry in measures(results, reference):
        cells = "".join(f"<td>{cell}</td>" for cell in _cells(entry, reference))
        body.append(f"<tr>{policy_head(entry.policy, styles[entry.policy])}{cells}</tr>")
    if bound is not None:
        cells = (
            f"<td>{words.number(bound * math.log(last))}</td><td></td><td>{words.number(bound)}</td>"
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


def _estimate(estimate: Estimate | None, sign: str = "", mark: bool = False) -> str:
    """A mean and, smaller, its interval."""
    if estimate is None:
        return words.UNKNOWN
    mean = words.number(estimate.mean, estimate.half_width, sign)
    if mark:
        mean = f"<b>{mean}</b>"
    if estimate.half_width is None:
        return mean
    return f'{mean} <small class="interval">{words.interval(estimate)}</small>'


def _cells(entry: Measures, reference: str) -> list[str]:
    difference = _estimate(entry.difference, sign="+")
    if entry.policy == reference:
        difference = "–"
    elif entry.difference is not None and entry.difference.holds_zero:
        difference = f"{TIE} {difference}"
    return [
        _estimate(entry.regret),
        difference,
        _estimate(entry.slope),
        words.number(entry.median),
        words.number(entry.worst),
        f"{words.number(100 * entry.exploring.mean, figures=3)}%",
        words.duration(entry.step_seconds),
        words.duration(entry.seconds),
    ]


def _policies(outcome: Outcome, styles: dict[str, Look]) -> str:
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
