"""The lower bound for people: printed tables, a figure, a file of plain data."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.table import Table

from solid_bandits import _words
from solid_bandits._files import write_json, write_whole

if TYPE_CHECKING:
    from solid_bandits.bounds import Curve, LowerBound, LowerBoundAt, PureExploration
    from solid_bandits.problem import Problem

NEGLIGIBLE = 1e-4
"""Pulls below this share of the largest are solver dust, not part of the allocation."""


def bound_tables(
    problem: "Problem", answer: "LowerBound", pure: "PureExploration", at: "list[LowerBoundAt]"
) -> list[Table]:
    """What `solid-bandits bound` prints: (P) with its bracket, the allocation, and (P_z) at each z."""
    main = Table(
        "quantity", "value", "certified bracket", title="(P): regret >= v* log n", title_justify="left"
    )
    note = "the optimal arms tell all: greedy is enough" if answer.exploration_free else ""
    main.add_row("v*", _words.number(answer.value, 6), note or _words.bracket(answer.lower, answer.upper))
    main.add_row(
        "z_min, least samples (P_z) is feasible with",
        _words.number(pure.z_min, 6),
        _words.bracket(pure.lower, pure.upper),
    )
    main.add_row("z*, suboptimal pulls per unit of log n", _words.number(answer.pulls, 6), "")
    main.add_row("z_bar = max_x pulls in x / ρ(x)", _words.number(answer.z_bar, 6), "")
    tables = [main]
    if answer.allocation.max() > 0:
        rows = Table(
            "context",
            "arm",
            "gap",
            "pulls per log n",
            "regret per log n",
            title="allocation (contexts and arms counted from 0)",
            title_justify="left",
        )
        kept = np.argwhere(answer.allocation > NEGLIGIBLE * answer.allocation.max())
        order = sorted(map(tuple, kept), key=lambda pair: -answer.allocation[pair] * problem.gaps[pair])
        for context, arm in order[:30]:
            pulls, gap = answer.allocation[context, arm], problem.gaps[context, arm]
            rows.add_row(
                str(context),
                str(arm),
                _words.number(gap, 4),
                _words.number(pulls, 4),
                _words.number(pulls * gap, 4),
            )
        if len(order) > 30:
            rows.caption = f"and {len(order) - 30} more"
        tables.append(rows)
    if at:
        values = Table(
            "z", "u*(z)", "certified bracket", "u*(z) / v*", "λ*", title="(P_z)", title_justify="left"
        )
        for one in at:
            ratio = _words.number(one.value / answer.value, 4) if answer.value > 0 else "-"
            bracket = _words.bracket(one.lower, one.upper)
            values.add_row(
                _words.given(one.z),
                _words.number(one.value, 6),
                bracket,
                ratio,
                _words.number(one.multiplier, 4),
            )
        tables.append(values)
    return tables


def write_bound(
    problem: "Problem",
    answer: "LowerBound",
    pure: "PureExploration",
    at: "list[LowerBoundAt]",
    drawn: "Curve",
    out: Path,
) -> None:
    """Write bound.png (the allocation, and u*(z) as `drawn`) and bound.json into the directory `out`."""
    write_whole(out / "bound.png", lambda path: bound_figure(problem, drawn).savefig(path, dpi=300))
    data = {
        "problem": repr(problem),
        "fingerprint": problem.fingerprint,
        "value": answer.value,
        "lower": answer.lower,
        "upper": answer.upper,
        "exploration_free": answer.exploration_free,
        "allocation": answer.allocation.tolist(),
        "pulls": answer.pulls,
        "z_bar": answer.z_bar,
        "z_min": {
            "value": pure.z_min,
            "lower": pure.lower,
            "upper": pure.upper,
            "policy": pure.policy.tolist(),
        },
        "at": [
            {
                "z": one.z,
                "value": one.value,
                "lower": one.lower,
                "upper": one.upper,
                "multiplier": one.multiplier,
                "policy": one.policy.tolist(),
            }
            for one in at
        ],
    }
    write_json(out / "bound.json", data)


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
    """Left: pulls per unit of log n of each suboptimal arm in each context. Right: u*(z) falling to v*."""
    figure = Figure(figsize=(7.0, 2.9), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    allocation = np.array(drawn.bound.allocation)
    best = np.arange(problem.n_arms) == problem.optimal_arms[:, None]
    shown = np.ma.masked_where(best, allocation)
    image = left.imshow(shown, cmap="Blues", vmin=0, aspect="auto", interpolation="nearest")
    left.set(xlabel="arm", ylabel="context", title="pulls per unit of log n")
    left.set_facecolor("0.88")
    _whole_ticks(left.xaxis, problem.n_arms)
    _whole_ticks(left.yaxis, problem.n_contexts)
    figure.colorbar(image, ax=left)
    if problem.n_arms * problem.n_contexts <= 60:
        top = max(allocation.max(), 1e-300)
        for context, arm in np.ndindex(allocation.shape):
            value = float(allocation[context, arm])
            text = (
                "best" if best[context, arm] else (_words.number(value) if value > NEGLIGIBLE * top else "0")
            )
            colour = "white" if value > 0.6 * top else "0.25"
            left.text(arm, context, text, ha="center", va="center", fontsize=7, color=colour)
    right.plot(drawn.z, drawn.value, color="#0072B2", label="u*(z)")
    if drawn.bound.value > 0:
        right.axhline(
            drawn.bound.value, color="0.3", dashes=(4, 2), label=f"v* = {_words.number(drawn.bound.value, 4)}"
        )
    right.axvline(
        drawn.exploration.z_min,
        color="#D55E00",
        lw=1,
        label=f"z_min = {_words.number(drawn.exploration.z_min, 4)}",
    )
    right.set(xscale="log", xlabel="z, samples per unit of log n", title="regret per unit of log n")
    # Near z_min the curve may be many times v*: the approach to v* is what is to be seen.
    top = min(drawn.value.max(), 4 * drawn.bound.value) if drawn.bound.value > 0 else drawn.value.max()
    right.set_ylim(0, 1.1 * max(top, 1e-300))
    right.legend(frameon=False, fontsize=8)
    right.spines[["top", "right"]].set_visible(False)
    return figure


def _whole_ticks(axis: object, count: int) -> None:
    step = max(1, count // 10)
    axis.set_ticks(list(range(0, count, step)))  # type: ignore[attr-defined]
