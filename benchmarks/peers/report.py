"""The tables and the figure."""

import platform
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from game import BATCH, Contender, Game

OURS = "solid-bandits"


@dataclass
class Measured:
    """A contender in one form on one problem, over the rounds."""

    contender: Contender
    form: str
    """`single`, `batch` or `loop`."""
    game: Game
    seconds: list[float] = field(default_factory=list)
    """Seconds per step, in each round."""
    regrets: list[float] = field(default_factory=list)

    @property
    def microseconds(self) -> float:
        """Median over rounds."""
        return float(np.median(self.seconds)) * 1e6

    @property
    def speed(self) -> float:
        """Steps per second."""
        return 1e6 / self.microseconds


def _by_game(measured: list[Measured]) -> list[tuple[Game, list[Measured]]]:
    games = list(dict.fromkeys(id(one.game) for one in measured))
    groups = [[one for one in measured if id(one.game) == game] for game in games]
    return [(group[0].game, group) for group in groups]


def _ours(group: list[Measured], kind: str, form: str) -> Measured | None:
    for one in group:
        if (one.contender.library, one.contender.kind, one.form) == (OURS, kind, form):
            return one
    return None


def _batch_of(group: list[Measured], contender: Contender) -> Measured | None:
    for one in group:
        if one.contender is contender and one.form == "batch":
            return one
    return None


def _ratio(slow: Measured, fast: Measured) -> float:
    return float(np.median(np.array(slow.seconds) / np.array(fast.seconds)))


def _number(value: float) -> str:
    """Format with three significant digits and separated thousands."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _version(library: str) -> str:
    try:
        return f"{library} {version(library)}"
    except PackageNotFoundError:
        return library


def write_table(measured: list[Measured], growth: list[Measured], missing: dict[str, str], note: str) -> str:
    """Return all tables as Markdown."""
    parts = [_table_of_game(game, group, missing) for game, group in _by_game(measured)]
    parts.append(_table_of_contexts(growth))
    parts.append(f"Python {platform.python_version()}, NumPy {version('numpy')}, one thread. {note}")
    return "\n\n".join(part for part in parts if part) + "\n"


def _table_of_game(game: Game, group: list[Measured], missing: dict[str, str]) -> str:
    contexts, arms, dim = game.size
    lines = [
        f"**{arms} arms, d = {dim}** ({contexts} contexts)",
        "",
        f"| library | algorithm | model | one at a time: us | steps/s | time / ours | batches of {BATCH}: us "
        "| regret | in batches |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rows = [one for one in group if one.form != "batch"]
    # The default policy of an agent comes first.
    rows.sort(
        key=lambda one: (one.contender.kind != "default", one.contender.library != OURS, one.microseconds)
    )
    for one in rows:
        contender = one.contender
        batch = _batch_of(group, contender)
        ours = None if contender.library == OURS else _ours(group, contender.kind, "single")
        lines.append(
            f"| {_version(contender.library)} | {contender.algorithm} | {contender.model} "
            f"| {_number(one.microseconds)} | {one.speed:,.0f} "
            f"| {'' if ours is None else _number(_ratio(one, ours))} "
            f"| {'' if batch is None else _number(batch.microseconds)} | {np.mean(one.regrets):.0f} "
            f"| {'' if batch is None else f'{np.mean(batch.regrets):.0f}'} |"
        )
    lines += [f"| {library} | not measured: {reason} | | | | | | | |" for library, reason in missing.items()]
    uniform = game.steps * game.problem.gaps.mean()
    lines += ["", f"Regret is that of {game.steps:,} steps; arms drawn uniformly would have {uniform:.0f}."]
    return "\n".join(lines + _verdict(group))


def _verdict(group: list[Measured]) -> list[str]:
    """Compare ours from Python with plain NumPy and with the fastest library, and report the loop."""
    ours, loop = _ours(group, "UCB", "single"), _ours(group, "UCB", "loop")
    singles = [one for one in group if one.form == "single"]
    plain = {one.contender.kind: one for one in singles if one.contender.library == "numpy"}
    peers = [one for one in singles if one.contender.library not in (OURS, "numpy")]
    lines = []
    for kind, beside in (("UCB", "UCB"), ("TS", "TS"), ("default", "UCB")):
        mine = _ours(group, kind, "single")
        if mine and beside in plain:
            lines.append(
                f"{mine.contender.algorithm}: {_number(_ratio(mine, plain[beside]))} times the time of "
                f"NumPy's {plain[beside].contender.algorithm}."
            )
    if ours and peers:
        fastest = min(peers, key=lambda one: one.microseconds)
        lines.append(
            f"The fastest library ({fastest.contender.library}, {fastest.contender.algorithm}) takes "
            f"{_number(_ratio(fastest, ours))} times the time of our LinUCB from Python."
        )
    if loop and "UCB" in plain:
        lines.append(
            f"In the loop LinUCB takes {loop.speed:,.0f} steps a second, NumPy from Python {plain['UCB'].speed:,.0f}."
        )
    return lines


def _table_of_contexts(growth: list[Measured]) -> str:
    if not growth:
        return ""
    counts = list(dict.fromkeys(one.game.size[0] for one in growth))
    lines = [
        "**Our LinUCB and the number of contexts**, us",
        "",
        f"| arms, d | form | {' | '.join(f'{count} contexts' if count > 1 else '1 context' for count in counts)} |",
        f"|---|---|{'---|' * len(counts)}",
    ]
    for pair in dict.fromkeys(one.game.size[1:] for one in growth):
        for form, words in (("single", "from Python"), ("loop", "in the loop")):
            cells = [_number(o.microseconds) for o in growth if o.game.size[1:] == pair and o.form == form]
            lines.append(f"| {', '.join(map(str, pair))} | {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw_figure(measured: list[Measured], path: Path) -> None:
    """Draw decisions with their updates per second, one panel for each problem."""
    groups = _by_game(measured)
    figure, axes = plt.subplots(1, len(groups), figsize=(12, 5.6), sharex=True, layout="constrained")
    for panel, (game, group) in zip(np.atleast_1d(axes), groups, strict=True):
        rows = sorted((one for one in group if one.form != "batch"), key=lambda one: one.speed)
        ours = [one.contender.library == OURS for one in rows]
        speeds = [one.speed for one in rows]
        panel.barh(range(len(rows)), speeds, color=np.where(ours, "#c0392b", "#b3bcc2"), height=0.72)
        for height, one in enumerate(rows):
            batch = _batch_of(group, one.contender)
            if batch is not None:
                panel.plot(batch.speed, height, "D", color="#1f3a4d", markersize=5)
            panel.text(
                115,
                height,
                _short(one.speed),
                va="center",
                fontsize=8,
                color="white" if ours[height] else "black",
            )
        names = [f"{one.contender.library}: {one.contender.algorithm}" for one in rows]
        panel.set_yticks(range(len(rows)), names, fontsize=8)
        panel.set_xscale("log")
        panel.set_xlim(100, 6e6)
        panel.set_title(f"{game.size[1]} arms, d = {game.size[2]}")
        panel.set_xlabel("decisions with their updates, per second", fontsize=9)
        panel.spines[["top", "right"]].set_visible(False)
    handles = [
        plt.Rectangle((0, 0), 1, 1, color="#c0392b"),
        plt.Rectangle((0, 0), 1, 1, color="#b3bcc2"),
        plt.Line2D([], [], marker="D", color="#1f3a4d", linestyle="", markersize=5),
    ]
    labels = ["this package", "others, one at a time", f"others, in batches of {BATCH}"]
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _short(speed: float) -> str:
    return f"{speed / 1e6:.1f} million" if speed >= 1e6 else f"{speed:,.0f}"
