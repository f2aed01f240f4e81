"""Tables, verdicts and the figure of docs/streaming-solid.md from runs.jsonl: python report.py [--figure PATH]."""
# ruff: noqa: D103

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import solid_bandits as sb
from solid_bandits.report.palette import COLOURS

HERE = Path(__file__).parent


def load():
    rows = [json.loads(line) for line in (HERE / "runs.jsonl").open()]
    for row in rows:
        row["regret"] = np.array(row["regret"])
    return {(row["part"], row["family"], row["policy"]): row for row in rows}


def interval(values):
    """Mean and half width of the 95% Student interval."""
    values = np.asarray(values)
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean(), half


def final(row):
    return row["regret"][:, -1]


def slope(row):
    """Regret per unit of log t over the last decade, run by run."""
    steps = np.array(row["steps"])
    first = np.abs(steps - steps[-1] / 10).argmin()
    return (row["regret"][:, -1] - row["regret"][:, first]) / np.log(steps[-1] / steps[first])


def show(value):
    mean, half = value
    digits = 1 if mean < 100 else 0
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def table(rows, part):
    families = list(dict.fromkeys(family for p, family, _ in rows if p == part))
    policies = list(dict.fromkeys(policy for p, _, policy in rows if p == part))
    print(f"\n## {part}\n\n| | {' | '.join(policies)} |\n|{'---|' * (len(policies) + 1)}")
    for family in families:
        cells = [
            show(interval(final(rows[key]))) if (key := (part, family, policy)) in rows else ""
            for policy in policies
        ]
        print(f"| {family} | {' | '.join(cells)} |")


def ways(rows):
    families = list(dict.fromkeys(family for p, family, _ in rows if p == "ways"))
    for way in ("sums", "table", "both"):
        means = [final(rows["ways", family, way]).mean() for family in families]
        print(f"{way}: geometric mean {np.exp(np.log(means).mean()):.1f}")


def verdicts(rows):
    for k in (4, 8, 16, 32):
        ours, solid = (rows.get(("1", f"random, {k} arms", name)) for name in ("streaming", "SOLID"))
        if ours and solid:
            mean, half = interval(final(ours) - 1.1 * final(solid))
            ratio = final(ours).mean() / final(solid).mean()
            print(
                f"{k} arms: ratio {ratio:.2f}; streaming - 1.1 SOLID = {mean:.0f} ± {half:.0f}: {mean + half < 0}"
            )
    for part, names in (("2", ("LinTS", "LinUCB")), ("3", ("LinTS", "LinUCB", "RandUCB", "Greedy"))):
        for family in dict.fromkeys(family for p, family, _ in rows if p == part):
            ours = rows[part, family, "streaming"]
            for name in names:
                if (part, family, name) in rows:
                    mean, half = interval(final(rows[part, family, name]) - final(ours))
                    print(f"{family}: {name} - streaming = {mean:.1f} ± {half:.1f}")


def slopes(rows):
    for part, family, policy in rows:
        if part == "2":
            print(f"slope, {family}, {policy}: {show(interval(slope(rows[part, family, policy])))}")
    jittered = {policy: row for (part, _, policy), row in rows.items() if part == "4"}
    if jittered:
        values = np.array(
            [sb.bounds.lower_bound(sb.problems.random(4, 8, 8, seed=1000 + r)).value for r in range(30)]
        )
        for policy, row in jittered.items():
            ratios = slope(row) / values
            print(f"slope / v*, jittered random, {policy}: median {np.median(ratios):.2f}, mean of slopes over "
                  f"mean of v* {slope(row).mean() / values.mean():.2f}")  # fmt: skip


def figure(rows, path):
    shown = [
        ("2", "end of optimism, 0.02", "The end of optimism, jittered"),
        ("1", "random, 8 arms", "Random problems, 8 arms"),
        ("3", "fresh", "Contexts that never come twice (fresh)"),
    ]
    names = ["streaming", "SOLID", "LinTS", "LinUCB", "RandUCB", "no budget", "λ = 0"]
    labels = {"streaming": "streaming SOLID"}
    fig, axes = plt.subplots(1, 3, figsize=(11, 3.4), constrained_layout=True)
    for axis, (part, family, title) in zip(axes, shown, strict=True):
        for index, name in enumerate(names):
            row = rows.get((part, family, name))
            if row is None:
                continue
            mean, half = np.array([interval(column) for column in row["regret"].T]).T
            style = "--" if name in ("no budget", "λ = 0") else "-"
            color = COLOURS[index % len(COLOURS)]
            axis.plot(
                row["steps"],
                mean,
                style,
                color=color,
                label=labels.get(name, name),
                lw=2 if not index else 1.3,
            )
            axis.fill_between(row["steps"], mean - half, mean + half, color=color, alpha=0.15, lw=0)
        axis.set(title=title, xscale="log", yscale="log", xlabel="step")
        axis.title.set_fontsize(10)
        axis.set_ylim(bottom=2)
    axes[0].set_ylabel("mean regret, 95% intervals")
    handles = {}
    for axis in axes:
        handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    fig.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=7, frameon=False, fontsize=9
    )
    fig.savefig(path, dpi=110)


def main():
    rows = load()
    ways(rows)
    for part in ("ways", "1", "2", "3", "3, VIDS", "4"):
        if any(p == part for p, _, _ in rows):
            table(rows, part)
    print()
    verdicts(rows)
    slopes(rows)
    if "--figure" in sys.argv:
        figure(rows, sys.argv[sys.argv.index("--figure") + 1])


if __name__ == "__main__":
    main()
