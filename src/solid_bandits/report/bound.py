"""The lower bound for readers: printed tables, a figure, a file of plain data."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.table import Table

from solid_bandits._internal import wording
from solid_bandits._internal.files import write_json
from solid_bandits._internal.types import Plain
from solid_bandits.report.figure import new_figure, save_figure
from solid_bandits.report.palette import COLOURS

if TYPE_CHECKING:
    from solid_bandits.bounds import Curve, LowerBound, LowerBoundAt, PureExploration
    from solid_bandits.core.problem import Problem

NEGLIGIBLE = 1e-4
"""Pulls below this share of the largest are solver dust, not part of the allocation."""
MOST_PAIRS = 30
"""Largest number of rows of the printed allocation."""


def bound_tables(
    problem: "Problem", answer: "LowerBound", pure: "PureExploration", at: "list[LowerBoundAt]"
) -> list[Table]:
    """Return the tables of `solid-bandits bound`: (P) with its bracket, the allocation, and (P_z) at each z."""
    number = wording.number
    note = "the optimal arms tell all: greedy is enough" if answer.exploration_free else ""
    rows: list[tuple[str, ...]] = [
        ("v*", number(answer.value, 6), note or wording.bracket(answer.lower, answer.upper)),
        (
            "z_min, least samples (P_z) is feasible with",
            number(pure.z_min, 6),
            wording.bracket(pure.lower, pure.upper),
        ),
        ("z*, suboptimal pulls per unit of log n", number(answer.pulls, 6), ""),
        ("z_bar = max_x pulls in x / ρ(x)", number(answer.z_bar, 6), ""),
    ]
    tables = [_table("(P): regret >= v* log n", ("quantity", "value", "certified bracket"), rows)]
    if answer.allocation.max() > 0:
        kept = np.argwhere(answer.allocation > NEGLIGIBLE * answer.allocation.max())
        order = sorted(map(tuple, kept), key=lambda pair: -answer.allocation[pair] * problem.gaps[pair])
        rows = []
        for pair in order[:MOST_PAIRS]:
            pulls, gap = answer.allocation[pair], problem.gaps[pair]
            rows.append((*map(str, pair), *(number(value, 4) for value in (gap, pulls, pulls * gap))))
        heads = ("context", "arm", "gap", "pulls per log n", "regret per log n")
        tables.append(_table("allocation (contexts and arms counted from 0)", heads, rows))
        if len(order) > MOST_PAIRS:
            tables[-1].caption = f"and {len(order) - MOST_PAIRS} more"
    if at:
        rows = [
            (
                wording.given(one.z),
                number(one.value, 6),
                wording.bracket(one.lower, one.upper),
                number(one.value / answer.value, 4) if answer.value > 0 else "-",
                number(one.multiplier, 4),
            )
            for one in at
        ]
        tables.append(_table("(P_z)", ("z", "u*(z)", "certified bracket", "u*(z) / v*", "λ*"), rows))
    return tables


def _table(title: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    table = Table(*heads, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    return table


def write_bound(
    problem: "Problem",
    answer: "LowerBound",
    pure: "PureExploration",
    at: "list[LowerBoundAt]",
    drawn: "Curve",
    out: Path,
) -> None:
    """Write bound.png (the allocation, and u*(z) as `drawn`) and bound.json into the directory `out`."""
    save_figure(bound_figure(problem, drawn), out / "bound.png")
    data = {
        "problem": repr(problem),
        "fingerprint": problem.fingerprint,
        **_fields(answer, "value", "lower", "upper", "exploration_free", "allocation", "pulls", "z_bar"),
        "z_min": {"value": pure.z_min, **_fields(pure, "lower", "upper", "policy")},
        "at": [_fields(one, "z", "value", "lower", "upper", "multiplier", "policy") for one in at],
    }
    write_json(out / "bound.json", data)


def _fields(answer: object, *names: str) -> Plain:
    return {name: getattr(answer, name) for name in names}


def check_bound_free(out: Path, problem: "Problem") -> None:
    """Raise a ValueError if `out` holds the bound of another problem."""
    path = out / "bound.json"
    if path.exists():
        try:
            known = json.loads(path.read_text(encoding="utf-8"))["fingerprint"]
        except (OSError, ValueError, KeyError, TypeError):
            known = None
        if known != problem.fingerprint:
            raise ValueError(f"{str(out)!r} holds the bound of another problem; give a new directory")


def bound_figure(problem: "Problem", drawn: "Curve") -> Figure:
    """Draw pulls per unit of log n of each suboptimal arm in each context (left), and u*(z) falling to v* (right)."""
    figure = new_figure(7.0, 2.9)
    left, right = figure.subplots(1, 2)
    allocation = np.array(drawn.bound.allocation)
    best = np.arange(problem.n_arms) == problem.optimal_arms[:, None]
    shown = np.ma.masked_where(best, allocation)
    image = left.imshow(shown, cmap="Blues", vmin=0, aspect="auto", interpolation="nearest")
    left.set(xlabel="arm", ylabel="context", title="pulls per unit of log n")
    left.set_facecolor("0.88")
    for axis in (left.xaxis, left.yaxis):
        axis.set_major_locator(MaxNLocator(10, integer=True))
    figure.colorbar(image, ax=left)
    if problem.n_arms * problem.n_contexts <= 60:
        top = max(allocation.max(), 1e-300)
        for (context, arm), pulls in np.ndenumerate(allocation):
            text = wording.number(pulls) if pulls > NEGLIGIBLE * top else "0"
            colour = "white" if pulls > 0.6 * top else "0.25"
            words = "best" if best[context, arm] else text
            left.text(arm, context, words, ha="center", va="center", fontsize=7, color=colour)
    right.plot(drawn.z, drawn.value, color=COLOURS[0], label="u*(z)")
    value, z_min = drawn.bound.value, drawn.exploration.z_min
    if value > 0:
        right.axhline(value, color="0.3", dashes=(4, 2), label=f"v* = {wording.number(value, 4)}")
    right.axvline(z_min, color=COLOURS[1], lw=1, label=f"z_min = {wording.number(z_min, 4)}")
    right.set(xscale="log", xlabel="z, samples per unit of log n", title="regret per unit of log n")
    # Near z_min the curve may be many times v*, but the figure is about the approach to v*.
    top = min(drawn.value.max(), 4 * value) if value > 0 else drawn.value.max()
    right.set_ylim(0, 1.1 * max(top, 1e-300))
    right.legend(frameon=False, fontsize=8)
    right.spines[["top", "right"]].set_visible(False)
    return figure
