"""Tables and figure of docs/randucb.md from what `held_out.py` wrote.

Usage: python studies/randucb/tables.py FOLDER DOCS
"""

import sys
from pathlib import Path

import numpy as np
from families import FIRST, HORIZONS, SECOND
from held_out import POLICIES, RANDUCB, THEN, lines_of
from matplotlib.figure import Figure
from measure import LINTS, compare, geometric_mean
from scipy import stats

from solid_bandits._internal.wording import fixed, number, plus_minus

RESAMPLES = 2000
MOST_TAIL = 1.1
"""What Q is asked to be at most."""
OURS = THEN
EVERY = [THEN, *POLICIES]
OTHERS = [label for label in EVERY if label not in (OURS, LINTS)]
COLOURS = {1_000: "#7aa6c2", 10_000: "#2f6f9f", 100_000: "#12344d"}


def table(heads, rows):
    """Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def mean_ratio(regret, lints):
    """R, over the last axis."""
    return regret.mean(axis=-1) / lints.mean(axis=-1)


def tail_ratio(regret, lints):
    """Q, over the last axis."""
    return np.quantile(regret, 0.95, axis=-1) / np.quantile(lints, 0.95, axis=-1)


def interval(ratio, regret, lints):
    """A 95% interval of a ratio: percentiles over resampled runs, a run of both policies together."""
    runs = np.random.default_rng(0).integers(0, len(regret), (RESAMPLES, len(regret)))
    low, high = np.quantile(ratio(regret[runs], lints[runs]), [0.025, 0.975])
    return float(low), float(high)


def power(horizon):
    """10³ and so on."""
    return "10" + "⁰¹²³⁴⁵⁶⁷⁸⁹"[len(str(horizon)) - 1]


def rounded(ratio):
    """To two decimals, as all of them are."""
    return fixed(ratio, 2)


def student(values):
    """Mean with half the width of its 95% interval."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    return plus_minus(values.mean(), stats.t.ppf(0.975, len(values) - 1) * error)


def all_cells(regrets):
    """Policy -> (family, horizon) -> measures, of what was played."""
    cells = {label: {} for label in EVERY}
    for (label, *key), values in regrets.items():
        cells[label][tuple(key)] = compare(values, regrets[LINTS, *key])
    return {label: some for label, some in cells.items() if some}


def cells_table(cells, regrets):
    """One row for each family and horizon."""
    rows = []
    for (name, horizon), ours in cells[OURS].items():
        regret, lints = regrets[OURS, name, horizon], regrets[LINTS, name, horizon]
        low, high = interval(mean_ratio, regret, lints)
        least, most = interval(tail_ratio, regret, lints)
        others = (cells.get(label, {}).get((name, horizon)) for label in OTHERS)
        rows.append(
            [
                f"`{name}`",
                power(horizon),
                number(float(lints.mean())),
                f"**{rounded(ours.ratio)}** [{rounded(low)}, {rounded(high)}]",
                f"{rounded(ours.tail)} [{rounded(least)}, {rounded(most)}]",
                f"{round(len(regret) * ours.stuck)} / {round(len(regret) * ours.lints_stuck)}",
                *("not played" if one is None else rounded(one.ratio) for one in others),
            ]
        )
    heads = ["family", "n", "regret of LinTS", "R of `Solid()` of then", "Q of it", "stuck: it / LinTS"]
    return table(heads + [f"R of {label}" for label in OTHERS], rows)


def counts(ratio, pairs, most):
    """How many cells have a ratio above `most`, and how many with their whole interval."""
    return f"{sum(ratio(*pair) > most for pair in pairs)}, {sum(interval(ratio, *pair)[0] > most for pair in pairs)}"


def summary(cells, regrets):
    """One row for each policy."""
    rows = []
    for label, ours in cells.items():
        pairs = [(regrets[label, *key], regrets[LINTS, *key]) for key in ours]
        by_horizon = ({key: cell for key, cell in ours.items() if key[1] == horizon} for horizon in HORIZONS)
        rows.append(
            [
                label,
                len(ours),
                fixed(geometric_mean(ours), 3),
                *(rounded(geometric_mean(some)) for some in by_horizon),
                rounded(max(cell.ratio for cell in ours.values())),
                counts(mean_ratio, pairs, 1.0),
                rounded(max(cell.tail for cell in ours.values())),
                counts(tail_ratio, pairs, MOST_TAIL),
                sum(int((x > 10 * np.median(y)).sum()) for x, y in pairs),
            ]
        )
    heads = [
        "policy",
        "cells",
        "geometric mean of R",
        *(f"at {power(horizon)}" for horizon in HORIZONS),
        "largest R",
    ]
    heads += [
        "R above 1: cells, beyond the interval",
        "largest Q",
        "Q above 1.1: cells, beyond the interval",
        "stuck runs",
    ]
    return table(heads, rows)


def families_table(families):
    """What is played."""
    return table(["family", "kind", "settings"], [[f"`{n}`", f.kind, f.words] for n, f in families.items()])


def long_table(lines):
    """Horizon 10⁶."""
    rows = []
    by_key = {(line["family"], line["policy"]): line for line in lines}
    for (family, label), line in by_key.items():
        lints = by_key[family, LINTS]
        regret, slope = np.array(line["regret"]), np.array(line["slope"])
        low, high = interval(mean_ratio, regret, np.array(lints["regret"]))
        ratio = regret.mean() / np.mean(lints["regret"])
        rows.append(
            [
                f"`{family}`",
                label,
                student(regret),
                f"{rounded(ratio)} [{rounded(low)}, {rounded(high)}]",
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
    names = list(SECOND)
    fig = Figure(figsize=(8, 9), layout="constrained")
    axes = fig.subplots()
    for row, name in enumerate(names):
        for place, horizon in enumerate(HORIZONS):
            if (name, horizon) not in cells[OURS]:
                continue
            y = len(names) - 1 - row + 0.25 * (1 - place)
            low, high = interval(mean_ratio, regrets[OURS, name, horizon], regrets[LINTS, name, horizon])
            first = row == 0
            axes.plot([low, high], [y, y], color=COLOURS[horizon], lw=1.5)
            axes.plot(
                cells[OURS][name, horizon].ratio,
                y,
                "o",
                color=COLOURS[horizon],
                ms=5,
                label=f"{OURS}, n = {power(horizon)}" if first else None,
            )
            for label, mark, colour in (
                (RANDUCB, "D", "#c9a227"),
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
    axes.set_xticks([0.1, 0.25, 0.5, 1, 2, 4, 10, 25], ["0.1", "0.25", "0.5", "1", "2", "4", "10", "25"])
    axes.minorticks_off()
    axes.set_xlim(0.055, 30)
    axes.set_yticks(
        range(len(names)), [f"{name}\n{SECOND[name].words}" for name in reversed(names)], fontsize=7
    )
    axes.set_xlabel("R: mean regret over that of LinTS (posterior), with 95% intervals; left of 1 is better")
    axes.legend(loc="lower right", fontsize=8, bbox_to_anchor=(1, 0.72))
    axes.grid(axis="x", lw=0.3)
    fig.savefig(path, dpi=110)


def regrets_of(path):
    """(policy, family, horizon) -> final regrets."""
    return {
        (line["policy"], line["family"], line["horizon"]): np.array(line["regret"]) for line in lines_of(path)
    }


def main(folder, docs):
    """Write them."""
    out = docs / "_tables"
    first = regrets_of(folder / "first_round.jsonl")
    second = regrets_of(folder / "held_out.jsonl")
    for name, regrets, families in (("first", first, FIRST), ("second", second, SECOND)):
        cells = all_cells(regrets)
        (out / f"randucb-{name}-families.md").write_text(families_table(families), encoding="utf-8")
        (out / f"randucb-{name}-summary.md").write_text(summary(cells, regrets), encoding="utf-8")
        (out / f"randucb-{name}-cells.md").write_text(cells_table(cells, regrets), encoding="utf-8")
    (out / "randucb-long.md").write_text(long_table(lines_of(folder / "long.jsonl")), encoding="utf-8")
    figure(all_cells(second), second, docs / "_static" / "randucb.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
