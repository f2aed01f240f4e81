"""One page for a whole directory of experiments: the claims and what was measured, curves, bars, numbers.

An html file that holds its data, its style and plotly.js, and asks the network for nothing.
"""

import os
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import quote

from plotly.offline import get_plotlyjs

from solid_bandits import _words
from solid_bandits._files import write_text
from solid_bandits._types import Plain
from solid_bandits.experiments.names import OWN
from solid_bandits.experiments.outcome import Answer, Outcome
from solid_bandits.report import markup
from solid_bandits.report.experiments_page.claims import SIGNS, claims_table, kind
from solid_bandits.report.experiments_page.data import experiments_data
from solid_bandits.report.experiments_page.numbers import curves, figure, numbers_table, policies_table
from solid_bandits.report.experiments_page.overview import overview
from solid_bandits.report.markup import embedded, read_part
from solid_bandits.report.palette import looks
from solid_bandits.report.standings import BOUND_NOTE, TIE


def write_experiments_page(outcomes: Sequence[Outcome], path: str | os.PathLike[str], facts: Plain) -> None:
    """Write the page to `path`, whole or not at all.

    Args:
        outcomes: the experiments, in the order in which they are shown.
        path: the html file.
        facts: plain data on the run as a whole, such as {"machine": "...", "cores": 2, "versions": {...}}.

    """
    write_text(Path(path), _page(outcomes, facts))


def _page(outcomes: Sequence[Outcome], facts: Plain) -> str:
    counts = Counter(verdict.answer for outcome in outcomes for verdict in outcome.usual)
    return Template(read_part("experiments.html")).substitute(
        facts=_facts(facts),
        links="".join(_link(outcome) for outcome in outcomes),
        options="".join(
            f'<option value="#{_address(outcome)}">{escape(outcome.title)}</option>' for outcome in outcomes
        ),
        count=_words.count(counts.total(), "claim"),
        experiments=_words.count(len(outcomes), "experiment"),
        filters="".join(
            f'<button class="{kind(answer)}" data-filter="{answer}" aria-pressed="false">'
            f"<b>{SIGNS[answer]} {counts[answer]}</b><span>{answer}</span></button>"
            for answer in Answer
        ),
        overview=overview(outcomes),
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


def _link(outcome: Outcome) -> str:
    counts = Counter(verdict.answer for verdict in outcome.usual)
    tally = "".join(
        f'<span class="{kind(answer)}" title="{counts[answer]} {answer}">{SIGNS[answer]}{counts[answer]}</span>'
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
        claims=claims_table(outcome),
        columns=min(len(part_data), 3) if len(part_data) != 4 else 2,
        reference=escape(outcome.reference),
        curves="".join(curves(label, results) for label, results in part_data),
        bars="".join(figure("bars", label, "Bars") for label in outcome.parts),
        band_note=_band_note(outcome),
        tables="".join(
            numbers_table(label, results, outcome.reference, styles) for label, results in part_data
        ),
        tie=TIE,
        bound_note=escape(BOUND_NOTE[0].upper() + BOUND_NOTE[1:]),
        policies=policies_table(outcome, styles),
        turn=turn,
    )


def _played(outcome: Outcome) -> list[str]:
    """How much was played, in a few words."""
    configurations = [results.manifest["configuration"] for results in outcome.parts.values()]
    facts = [f"{outcome.scale} scale" if outcome.scale != OWN else "own experiment"]
    for key, thing in (("runs", "run"), ("horizon", "step")):
        values = [configuration[key] for configuration in configurations]
        low, high = min(values), max(values)
        facts.append(_words.count(high, thing) if low == high else f"{low:,} to {_words.count(high, thing)}")
    facts.append(_words.count(len(outcome.policies), "policy", "policies"))
    seeds = sorted({configuration["seed"] for configuration in configurations})
    facts.append(f"seed {', '.join(map(str, seeds))}")
    seconds = sum(sum(results.seconds.values()) for results in outcome.parts.values())
    return [*facts, f"{_words.duration(seconds)} of CPU time"] if seconds else facts


def _band_note(outcome: Outcome) -> str:
    single = [results.runs == 1 for results in outcome.parts.values()]
    if all(single):
        return "One run: no bands."
    return "Bands: 95% Student intervals of the mean." + (" A single run has none." if any(single) else "")
