"""One page for a whole directory of experiments: the claims and the measurements, curves, bars, numbers.

The page is an HTML file that contains its data, its style and plotly.js, and needs no network.
"""

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from plotly.offline import get_plotlyjs

from solid_bandits._internal import wording
from solid_bandits._internal.files import write_text
from solid_bandits._internal.types import Plain
from solid_bandits.paper.names import OWN
from solid_bandits.paper.outcome import OURS, Answer, Outcome, Verdict
from solid_bandits.paper.report.experiments_data import experiments_data
from solid_bandits.paper.report.overview import overview
from solid_bandits.paper.report.readings import WORDS
from solid_bandits.paper.report.verdicts import CLAIM_FIGURES, MARKS, sign_of
from solid_bandits.report.palette import looks
from solid_bandits.report.standings import BOUND_LABEL, BOUND_NOTE, TIE, bound_at_horizon
from solid_bandits.report.templates import render
from solid_bandits.statistics.measures import measures

_VERBS = {
    Answer.CONFIRMED: ("confirms", "confirm"),
    Answer.REFUTED: ("refutes", "refute"),
    Answer.UNDECIDED: ("is undecided", "are undecided"),
    Answer.NOT_TESTABLE: ("is the same in every run", "are the same in every run"),
}


def write_experiments_page(outcomes: Sequence[Outcome], path: str | os.PathLike[str], facts: Plain) -> None:
    """Write the page to `path`, completely or not at all.

    Args:
        outcomes: the experiments, in the order in which they are shown.
        path: the HTML file.
        facts: plain data about the run as a whole, such as {"machine": "...", "cores": 2, "versions": {...}}.

    """
    page = render(
        "experiments.html",
        "solid_bandits.paper.report",
        title="SOLID: experiments and claims",
        outcomes=outcomes,
        facts=facts,
        overview=overview(outcomes),
        counts=Counter(one.answer for outcome in outcomes for one in outcome.usual),
        # Some readers cannot tell red from green, so each answer has its own sign.
        signs={answer: sign for answer, (sign, _) in MARKS.items()},
        ours=OURS,
        words=WORDS,
        claim_figures=CLAIM_FIGURES,
        tie=TIE,
        bound_label=BOUND_LABEL,
        bound_note=BOUND_NOTE,
        address=lambda outcome: quote(outcome.name, safe=""),
        looks=looks,
        measures=measures,
        parameters=_parameters,
        played=_played,
        sign_of=sign_of,
        tally=_tally,
        at_horizon=lambda results: bound_at_horizon(results, results.bound),
        data=experiments_data(outcomes),
        plotly=get_plotlyjs(),
    )
    write_text(Path(path), page)


def _played(outcome: Outcome) -> list[str]:
    """Describe in a few words how much was played."""
    configurations = [results.manifest["configuration"] for results in outcome.parts.values()]
    facts = [f"{outcome.scale} scale" if outcome.scale != OWN else "own experiment"]
    for key, thing in (("runs", "run"), ("horizon", "step")):
        values = [configuration[key] for configuration in configurations]
        low, high = min(values), max(values)
        facts.append(
            wording.count(high, thing) if low == high else f"{low:,} to {wording.count(high, thing)}"
        )
    facts.append(wording.count(len(outcome.policies), "policy", "policies"))
    seeds = sorted({configuration["seed"] for configuration in configurations})
    facts.append(f"seed {', '.join(map(str, seeds))}")
    seconds = sum(sum(results.seconds.values()) for results in outcome.parts.values())
    return [*facts, f"{wording.duration(seconds)} of CPU time"] if seconds else facts


def _tally(verdict: Verdict) -> str:
    """Count the comparisons by answer, starting with the verdict's own."""
    counts = Counter(comparison.answer for comparison in verdict.counted)
    (answer, number), *others = sorted(counts.items(), key=lambda item: item[0] != verdict.answer)
    if not others:
        return f"all {number} comparisons {_VERBS[answer][1]}"
    tally = [f"{number} of {counts.total()} comparisons {_VERBS[answer][number > 1]}"]
    return ", ".join(tally + [f"{number} {_VERBS[answer][number > 1]}" for answer, number in others])


def _parameters(outcome: Outcome, policy: str) -> list[tuple[Plain, list[str]]]:
    """Return a policy's parameters with the parts that use them, once where the parts agree."""
    given: dict[str, list[str]] = {}
    for part, results in outcome.parts.items():
        parameters = results.manifest["configuration"]["policies"].get(policy)
        if parameters is not None:
            given.setdefault(json.dumps(parameters), []).append(part)
    return [(json.loads(text), parts) for text, parts in given.items()]
