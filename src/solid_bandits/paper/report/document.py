"""The reproduction as a page of the documentation: what holds, figures, the claims and tables of numbers."""

import math
import os
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from solid_bandits._internal import wording
from solid_bandits._internal.files import FIGURES, write_text
from solid_bandits._internal.types import Plain
from solid_bandits.paper.names import ALL, NAMES, ON_THEIR_OWN, SCALES
from solid_bandits.paper.outcome import OURS, Answer, Outcome, Verdict
from solid_bandits.paper.ranking import Standing
from solid_bandits.paper.ranking import sentences as counted_sentences
from solid_bandits.paper.report.left_open import LEFT_OPEN, NOT_JUDGED
from solid_bandits.paper.report.markdown import escaped, plus_minus, with_interval
from solid_bandits.paper.report.overview import Overview, Row, overview
from solid_bandits.paper.report.readings import LATER, LEFT_OUT, WORDS, readings_view
from solid_bandits.paper.report.verdicts import sign_of
from solid_bandits.paper.rules import RULES
from solid_bandits.report.standings import BOUND_NOTE, TIE
from solid_bandits.report.templates import render
from solid_bandits.statistics.measures import measures

MAIN = ("toy", "random")
"""The experiments whose figures open the document."""
PRINTED = "theorem"
"""Reading of the paper's equation as printed."""
MOST_NUMBERS = 3
"""Number of comparisons shown in a row of the claims table; the experiment's section has the full list."""

ASYMPTOTIC = (
    "The paper's sentence is asymptotic and the horizon is short: the least z_min of ten such problems is over four "
    "times as long (docs/jester.md). A refutation at this horizon does not refute the asymptotic statement."
)
CAVEATS = {("jester", "slowing"): ASYMPTOTIC}
"""(Experiment, rule) -> a caveat shown next to the refutation of the sentence."""

NOT_COUNTED = {LATER: f"those added later ({LATER})", LEFT_OUT: f"those on Jester ({LEFT_OUT})"}
"""Mark -> description of the sentences that do not count in the ranking."""


def document(
    outcomes: Sequence[Outcome],
    facts: Plain,
    figures: str = FIGURES,
    apart: Sequence[Outcome] = (),
    notes: Mapping[str, str] | None = None,
) -> str:
    """Return the Markdown of docs/reproduction.md.

    Args:
        outcomes: the experiments, in the order in which they are shown.
        facts: facts about the run, as plain data: "scale", "machine", "cores", "wall time" (text or seconds),
            "versions"
            (text, or name -> version), "command" (the command that makes this page). Others are shown too; any may
            be absent.
        figures: folder of the figures, relative to the page; that of an experiment is NAME.png, and the one of its
            policies under all readings is readings/NAME.png.
        apart: experiments that are shown elsewhere, but whose sentences are listed among the others.
        notes: name of an experiment -> Markdown shown below its claims.

    """
    scales = list(dict.fromkeys(outcome.scale for outcome in outcomes))
    scale = facts.get("scale") or (scales[0] if len(scales) == 1 else None)
    command = facts.get("command")
    if command is None and scale in SCALES:
        command = f"solid-bandits reproduce {_arguments(outcomes)} --scale {scale}"
    verdicts = [verdict for outcome in outcomes for verdict in outcome.usual]
    found = overview(outcomes, apart)
    text = render(
        "document.md",
        "solid_bandits.paper.report",
        outcomes=outcomes,
        apart=apart,
        notes=notes or {},
        of_the_paper=any(outcome.name in NAMES for outcome in outcomes),
        command=command and " ".join(str(command).split()),
        facts={
            name: _fact(name, value)
            for name, value in {"scale": scale, **facts}.items()
            if name != "command" and value not in (None, "", {}, [])
        },
        overview=found,
        opening=found and _opening(outcomes, found),
        groups={
            "the paper’s": Counter(one.answer for one in verdicts if one.claim.source != OURS),
            "not the paper’s (ours)": Counter(one.answer for one in verdicts if one.claim.source == OURS),
        },
        untestable=any(one.answer is Answer.NOT_TESTABLE for outcome in outcomes for one in outcome.verdicts),
        rules={
            name: rule.words for name, rule in RULES.items() if any(_refers(one, name) for one in verdicts)
        },
        answers=list(Answer),
        main=[outcome for outcome in outcomes if outcome.name in MAIN],
        log=math.log,
        md=escaped,
        plus_minus=plus_minus,
        with_interval=with_interval,
        sign_of=sign_of,
        deciding=_deciding,
        rule=_rule,
        measures=measures,
        readings_view=readings_view,
        address=lambda name: quote(f"{figures}/{name}.png"),
        caveats=CAVEATS,
        ours=OURS,
        readings=WORDS,
        left_open=LEFT_OPEN,
        not_judged=NOT_JUDGED,
        tie=TIE,
        bound_note=BOUND_NOTE,
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def write_document(outcomes: Sequence[Outcome], path: str | os.PathLike[str], facts: Plain) -> None:
    """Write the document to `path`, completely or not at all."""
    write_text(Path(path), document(outcomes, facts))


class Opening(NamedTuple):
    """The first screen of the document: all sentences of the paper, whether they count in the ranking or not."""

    every: Counter[Answer]
    ranked: Standing
    """The standing of the usual reading."""
    counted: int
    """Number of sentences that count in the ranking."""
    others: str
    """Description of the sentences that do not count."""
    lists: dict[str, list[Row]]
    """Title -> sentences below it."""


def _opening(outcomes: Sequence[Outcome], found: Overview) -> Opening | None:
    """Return the first screen; None if the usual reading cannot be ranked."""
    ranked = {one.reading: one for one in found.standings}
    if found.usual not in ranked:
        return None
    judged = [row for row in found.rows if row.outcome.name in NAMES and not row.ours]

    def those(answer: Answer, reading: str) -> list[Row]:
        return [row for row in judged if (one := row.verdicts.get(reading)) and one.answer is answer]

    lists = {f"Does not hold under {found.usual}": those(Answer.REFUTED, found.usual)}
    if found.usual != PRINTED and PRINTED in ranked:
        here, printed = those(Answer.CONFIRMED, found.usual), those(Answer.CONFIRMED, PRINTED)
        lists[f"Holds under {found.usual}, not as printed"] = [row for row in here if row not in printed]
        lists[f"Holds as printed, not under {found.usual}"] = [row for row in printed if row not in here]
    return Opening(
        every=Counter(one.answer for row in judged if (one := row.verdicts[found.usual])),
        ranked=ranked[found.usual],
        counted=len(counted_sentences(outcomes)),
        others=" and ".join(
            words for mark, words in NOT_COUNTED.items() if any(row.mark == mark for row in judged)
        ),
        lists=lists,
    )


def _arguments(outcomes: Sequence[Outcome]) -> str:
    """Return the experiments as arguments of the command line."""
    names = [outcome.name for outcome in outcomes]
    known = [name for name in NAMES if name in names]
    if set(ALL) <= set(known):
        known = ["all", *(name for name in known if name in ON_THEIR_OWN)]
    own = [f"{name}.toml" for name in names if name not in NAMES]
    return shlex.join([*known, *own])


def _fact(name: str, value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_fact(str(key), item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_fact(name, item) for item in value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return wording.duration(value) if name == "wall time" else f"{value:,}"
    return str(value)


def _refers(verdict: Verdict, name: str) -> bool:
    """Return whether the table of claims names this rule instead of repeating it."""
    return verdict.claim.rule == name and verdict.rule.startswith(RULES[name].words)


def _rule(verdict: Verdict) -> str:
    """Return the rule's name and what is special to this claim, or the whole rule where its name says too little."""
    name = verdict.claim.rule
    if name not in RULES or not _refers(verdict, name):
        return escaped(verdict.rule)
    rest = verdict.rule.removeprefix(RULES[name].words).strip().removeprefix("Here:").strip()
    return f"*{escaped(name)}*: {escaped(rest)}" if rest else f"*{escaped(name)}*"


def _deciding(verdict: Verdict) -> str:
    """List the deciding numbers, or the first of them."""
    deciding = verdict.deciding
    shown = deciding if len(deciding) <= MOST_NUMBERS + 1 else deciding[:MOST_NUMBERS]
    lines = [f"{escaped(comparison.what)}: {with_interval(comparison.estimate)}" for comparison in shown]
    if len(deciding) > len(shown):
        lines.append(f"and {len(deciding) - len(shown)} more")
    bullet = "• " if len(lines) > 1 else ""
    return "<br>".join(bullet + line for line in lines) or wording.ABSENT
