"""The tables and the figure."""

import platform
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from game import BATCH, Contender, make_game

OURS = "solid-bandits"


@dataclass
class Measured:
    """A contender in one form at one size, over the rounds."""

    contender: Contender
    form: str
    """`single`, `batch` or `loop`."""
    size: tuple[int, int, int]
    seconds: list[float] = field(default_factory=list)
    """Per step, in each round."""
    regrets: list[float] = field(default_factory=list)

    @property
    def microseconds(self) -> float:
        """Median over rounds."""
        return float(np.median(self.seconds)) * 1e6


def _find(measured, size, form, *, contender=None, library=None, kind=None):
    for one in measured:
        if one.size == size and one.form == form:
            if contender is not None and one.contender is contender:
                return one
            if contender is None and one.contender.library == library and one.contender.kind == kind:
                return one
    return None


def _ratio(slow: Measured, fast: Measured) -> float:
    return float(np.median(np.array(slow.seconds) / np.array(fast.seconds)))


def _number(value: float) -> str:
    """Three significant digits, thousands apart."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _version(library: str) -> str:
    try:
        return f"{library} {version(library)}"
    except PackageNotFoundError:
        return library


def write_table(measured: list[Measured], growth: list[Measured], missing: dict[str, str], note: str) -> str:
    """All as Markdown."""
    parts = []
    for size in dict.fromkeys(one.size for one in measured):
        parts.append(_table_of_size([one for one in measured if one.size == size], size, missing))
    parts.append(_table_of_contexts(growth))
    parts.append(f"Python {platform.python_version()}, NumPy {version('numpy')}, one thread. {note}")
    return "\n\n".join(parts) + "\n"


def _table_of_size(measured, size, missing) -> str:
    contexts, arms, dim = size
    uniform = make_game(*size).problem.gaps.mean()
    lines = [
        f"**{arms} arms, d = {dim}** ({contexts} contexts)",
        "",
        f"| library | algorithm | model | one at a time: us | per second | times ours | batches of {BATCH}: us "
        "| regret | in batches |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    reference = {kind: _find(measured, size, "single", library=OURS, kind=kind) for kind in ("UCB", "TS")}
    rows = [one for one in measured if one.form != "batch"]
    rows.sort(key=lambda one: (one.contender.library != OURS, one.microseconds))
    for one in rows:
        contender = one.contender
        batch = _find(measured, size, "batch", contender=contender)
        ours = reference.get(contender.kind)
        lines.append(
            f"| {_version(contender.library)} | {contender.algorithm} | {contender.model} "
            f"| {_number(one.microseconds)} | {1e6 / one.microseconds:,.0f} "
            f"| {'' if ours is None else _number(_ratio(one, ours))} "
            f"| {'' if batch is None else _number(batch.microseconds)} | {np.mean(one.regrets):.0f} "
            f"| {'' if batch is None else f'{np.mean(batch.regrets):.0f}'} |"
        )
    lines += [f"| {library} | not measured: {reason} | | | | | | | |" for library, reason in missing.items()]
    steps = "the run"
    lines += ["", f"Arms drawn uniformly would lose {uniform:.3f} a step; regret is that of {steps}."]
    return "\n".join(lines)


def _table_of_contexts(growth) -> str:
    counts = list(dict.fromkeys(one.size[0] for one in growth))
    lines = [
        "**Our LinUCB and the number of contexts**, us",
        "",
        f"| arms, d | form | {' | '.join(f'{count} contexts' if count > 1 else '1 context' for count in counts)} |",
        f"|---|---|{'---|' * len(counts)}",
    ]
    for arms, dim in dict.fromkeys(one.size[1:] for one in growth):
        for form, words in (("single", "from Python"), ("loop", "in the loop")):
            cells = [
                _number(one.microseconds)
                for one in growth
                if one.size[1:] == (arms, dim) and one.form == form
            ]
            lines.append(f"| {arms}, {dim} | {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw_figure(measured: list[Measured], path: Path) -> None:
    """Decisions with their updates per second, one panel for each size."""
    sizes = list(dict.fromkeys(one.size for one in measured))
    figure, axes = plt.subplots(1, len(sizes), figsize=(11, 6.2), sharex=True, layout="constrained")
    for panel, size in zip(np.atleast_1d(axes), sizes, strict=True):
        rows = [one for one in measured if one.size == size and one.form != "batch"]
        rows.sort(key=lambda one: -one.microseconds)
        for height, one in enumerate(rows):
            speed = 1e6 / one.microseconds
            ours = one.contender.library == OURS
            colour = "#c0392b" if ours else "#7f8c8d"
            panel.barh(height, speed, left=0, color=colour, height=0.7)
            batch = _find(measured, size, "batch", contender=one.contender)
            if batch is not None:
                panel.plot(1e6 / batch.microseconds, height, "D", color="#2c3e50", markersize=5)
            panel.annotate(
                f"{speed:,.0f}" if speed < 1e6 else f"{speed / 1e6:.1f} million",
                (100, height),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color="white",
            )
        panel.set_yticks(
            range(len(rows)),
            [f"{one.contender.library}: {one.contender.algorithm}" for one in rows],
            fontsize=8,
        )
        panel.set_xscale("log")
        panel.set_xlim(100, 6e6)
        panel.set_title(f"{size[1]} arms, d = {size[2]}")
        panel.set_xlabel("decisions with updates per second")
        panel.spines[["top", "right"]].set_visible(False)
    handle = plt.Line2D([], [], marker="D", color="#2c3e50", linestyle="", markersize=5)
    np.atleast_1d(axes)[0].legend([handle], [f"in batches of {BATCH}"], loc="lower right", fontsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)
