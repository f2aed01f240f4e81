"""The reproduction as a page of the documentation: what holds, figures, the claims and tables of numbers."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from solid_bandits import _words
from solid_bandits._files import FIGURES, write_text
from solid_bandits._types import Plain
from solid_bandits.experiments.names import ALL, NAMES, ON_THEIR_OWN, SCALES
from solid_bandits.experiments.outcome import Outcome
from solid_bandits.report.document.claims import claims
from solid_bandits.report.document.experiments import experiment, how_to_read
from solid_bandits.report.document.markdown import escaped, table
from solid_bandits.report.document.opening import opening
from solid_bandits.report.document.overview import figures_section, left_open, overview


def document(
    outcomes: Sequence[Outcome], facts: Plain, figures: str = FIGURES, apart: Sequence[Outcome] = ()
) -> str:
    """The Markdown of docs/reproduction.md.

    Args:
        outcomes: the experiments, in the order in which they are shown.
        facts: what is to be said about the run, as plain data: "scale", "machine", "cores", "wall time" (a
            text, or seconds), "versions" (a text, or name -> version), "command" (what makes this page).
            Others are shown too; any may be absent.
        figures: the folder of the figures, relative to the page; that of an experiment is NAME.png, and that of its
            policies under all readings readings/NAME.png.
        apart: experiments that were played and are shown elsewhere, whose sentences are to stand among the others.

    """
    several = any(outcome.readings for outcome in outcomes)
    what, *made = _introduction(outcomes, facts)
    blocks = ["# Reproduction", what]
    if several:
        blocks += opening(outcomes, figures, apart)
        blocks += [*overview(outcomes, apart), *figures_section(outcomes, figures), "## How it was made"]
    blocks += [
        *made,
        "## Claims",
        *claims(outcomes, apart),
        "## Experiments",
        how_to_read(),
    ]
    if any(outcome.name in NAMES for outcome in outcomes) and several:
        place = blocks.index("## Experiments")
        blocks[place:place] = left_open()
    for outcome in outcomes:
        blocks += experiment(outcome, figures, several)
    return "\n\n".join(blocks) + "\n"


def write_document(
    outcomes: Sequence[Outcome], path: str | os.PathLike[str], facts: Plain, figures: str = FIGURES
) -> None:
    """Write the document to `path`, whole or not at all; `write_experiment_figure` writes the figures."""
    write_text(Path(path), document(outcomes, facts, figures))


def _introduction(outcomes: Sequence[Outcome], facts: Plain) -> list[str]:
    scales = list(dict.fromkeys(outcome.scale for outcome in outcomes))
    scale = facts.get("scale") or (scales[0] if len(scales) == 1 else None)
    command = facts.get("command")
    if command is None and scale in SCALES:
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
        blocks.append(table(("", ""), rows))
    return blocks


def _arguments(outcomes: Sequence[Outcome]) -> str:
    """The experiments as the command line takes them."""
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
        return _words.duration(value) if name == "wall time" else f"{value:,}"
    return str(value)
