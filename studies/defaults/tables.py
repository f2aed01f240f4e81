"""Tables and figure of docs/defaults.md from what `held_out.py` wrote.

Usage: python studies/defaults/tables.py FOLDER DOCS
"""

import sys
from pathlib import Path

import numpy as np
from families import HELD_OUT, HORIZONS
from held_out import POLICIES, lines_of
from matplotlib.figure import Figure
from measure import LINTS, compare, geometric_mean

RESAMPLES = 2000
OURS = "Solid()"
OTHERS = [label for label in POLICIES if label not in (OURS, LINTS)]
COLOURS = {1_000: "#7aa6c2", 10_000: "#2f6f9f", 100_000: "#12344d"}


def table(heads, rows):
    """Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def interval(regret, lints, seed=0):
    """A 95% interval of the ratio of means: percentiles over resampled runs, a run of both policies together."""
    runs = np.random.default_rng(seed).integers(0, len(regret), (RESAMPLES, len(regret)))
    low, high = np.quantile(regret[runs].mean(axis=1) / lints[runs].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def power(horizon):
    """10³ and so on."""
    return "10" + "⁰¹²³⁴⁵⁶⁷⁸⁹"[len(str(horizon)) - 1]


def student(values):
    """Mean with half the width of its 95% interval."""
    return f"{values.mean():.3g} ± {1.984 * values.std(ddof=1) / np.sqrt(len(values)):.2g}"


def held_out_parts(regrets):
    """The table of cells, and the summary."""
    cells = {label: {} for label in POLICIES}
    rows = []
    for name in HELD_OUT:
        for horizon in HORIZONS:
            lints = regrets[LINTS, name, horizon]
            for label in POLICIES:
                cells[label][name, horizon] = compare(regrets[label, name, horizon], lints)
            ours = cells[OURS][name, horizon]
            low, high = interval(regrets[OURS, name, horizon], lints)
            stuck = f"{round(100 * ours.stuck)} / {round(100 * ours.lints_stuck)}"
            rows.append(
                [
                    f"`{name}`",
                    power(horizon),
                    f"{lints.mean():.3g}",
                    f"**{ours.ratio:.2f}** [{low:.2f}, {high:.2f}]",
                    f"{ours.tail:.2f}",
                    stuck,
                    *(f"{cells[label][name, horizon].ratio:.2f}" for label in OTHERS),
                ]
            )
    heads = [
        "family",
        "n",
        "regret of LinTS",
        "R of `Solid()`",
        "Q",
        "stuck: `Solid()` / LinTS",
        *(f"R of {o}" for o in OTHERS),
    ]
    return cells, table(heads, rows)


def summary(cells, regrets):
    """One row for each policy."""
    rows = []
    for label in POLICIES:
        ours = cells[label]
        above = sum(interval(regrets[label, *key], regrets[LINTS, *key])[0] > 1 for key in ours)
        rows.append(
            [
                label,
                f"{geometric_mean(ours):.3f}",
                *(f"{geometric_mean({k: c for k, c in ours.items() if k[1] == h}):.2f}" for h in HORIZONS),
                f"{max(cell.ratio for cell in ours.values()):.2f}",
                above,
                f"{max(cell.tail for cell in ours.values()):.2f}",
                sum(cell.tail > 1.1 for cell in ours.values()),
                round(100 * sum(cell.stuck for cell in ours.values())),
                sum(cell.stuck > cell.lints_stuck for cell in ours.values()),
            ]
        )
    heads = [
        "policy",
        "geometric mean of R",
        *(f"at {power(h)}" for h in HORIZONS),
        "largest R",
        "cells with R above 1 beyond the interval",
    ]
    heads += ["largest Q", "cells with Q above 1.1", "stuck runs", "cells with more stuck runs than LinTS"]
    return table(heads, rows)


def families_table():
    """What is played."""
    return table(["family", "kind", "settings"], [[f"`{n}`", f.kind, f.words] for n, f in HELD_OUT.items()])


def long_table(lines):
    """Horizon 10⁶."""
    rows = []
    by_key = {(line["family"], line["policy"]): line for line in lines}
    for (family, label), line in by_key.items():
        lints = by_key[family, LINTS]
        regret, slope = np.array(line["regret"]), np.array(line["slope"])
        low, high = interval(regret, np.array(lints["regret"]))
        ratio = regret.mean() / np.mean(lints["regret"])
        rows.append(
            [
                f"`{family}`",
                label,
                student(regret),
                f"{ratio:.2f} [{low:.2f}, {high:.2f}]",
                student(slope),
                student(slope - np.array(lints["slope"])),
            ]
        )
    heads = [
        "family",
        "policy",
        "regret at 10⁶",
        "R",
        "slope per unit of log n, last decade",
        "minus that of LinTS",
    ]
    return table(heads, rows)


def figure(cells, regrets, path):
    """R of every cell, with the two tuned rivals."""
    names = list(HELD_OUT)
    fig = Figure(figsize=(8, 9), layout="constrained")
    axes = fig.subplots()
    for row, name in enumerate(names):
        for place, horizon in enumerate(HORIZONS):
            y = len(names) - 1 - row + 0.25 * (1 - place)
            low, high = interval(regrets[OURS, name, horizon], regrets[LINTS, name, horizon])
            first = row == 0
            axes.plot([low, high], [y, y], color=COLOURS[horizon], lw=1.5)
            axes.plot(
                cells[OURS][name, horizon].ratio,
                y,
                "o",
                color=COLOURS[horizon],
                ms=5,
                label=f"Solid(), n = {power(horizon)}" if first else None,
            )
            for label, mark, colour in (
                ("LinUCB (tuned)", "x", "#b4562c"),
                ("LinTS (tuned)", "+", "#6b6b6b"),
            ):
                axes.plot(
                    cells[label][name, horizon].ratio,
                    y,
                    mark,
                    color=colour,
                    ms=5,
                    label=label if first and place == 2 else None,
                )
    axes.axvline(1, color="0.3", lw=0.8)
    axes.set_xscale("log")
    axes.set_xticks([0.25, 0.5, 0.75, 1, 1.5, 2, 4], ["0.25", "0.5", "0.75", "1", "1.5", "2", "4"])
    axes.minorticks_off()
    axes.set_xlim(0.2, 4)
    axes.set_yticks(
        range(len(names)), [f"{name}\n{HELD_OUT[name].words}" for name in reversed(names)], fontsize=7
    )
    axes.set_xlabel("R: mean regret over that of LinTS (posterior), with 95% intervals; left of 1 is better")
    axes.legend(loc="lower right", fontsize=8)
    axes.grid(axis="x", lw=0.3)
    fig.savefig(path, dpi=110)


def main(folder, docs):
    """Write them."""
    regrets = {
        (line["policy"], line["family"], line["horizon"]): np.array(line["regret"])
        for line in lines_of(folder / "held_out.jsonl")
    }
    cells, every_cell = held_out_parts(regrets)
    (docs / "_tables" / "defaults-families.md").write_text(families_table(), encoding="utf-8")
    (docs / "_tables" / "defaults-summary.md").write_text(summary(cells, regrets), encoding="utf-8")
    (docs / "_tables" / "defaults-cells.md").write_text(every_cell, encoding="utf-8")
    long = lines_of(folder / "long.jsonl")
    if long:
        (docs / "_tables" / "defaults-long.md").write_text(long_table(long), encoding="utf-8")
    figure(cells, regrets, docs / "figures" / "defaults.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
