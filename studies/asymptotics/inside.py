"""Slopes at the longest horizon; λ_t, z_k and ω_t against ω*_z on the way: tables and figure of docs/asymptotics.md.

Usage: python studies/asymptotics/inside.py RESULTS [DOCS] [--part n-107]

RESULTS is a directory that `solid-bandits reproduce asymptotics asymptotics-random --scale paper` filled.
"""

import argparse
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.figure import Figure

import solid_bandits as sb
from solid_bandits._internal.wording import number, plus_minus
from solid_bandits.paper.readings import READINGS, played_label
from solid_bandits.report.diagnostics import Targets, distances
from solid_bandits.report.figure import DPI, save_figure
from solid_bandits.report.palette import looks
from solid_bandits.statistics.intervals import student
from solid_bandits.statistics.metrics import slope

PROBLEMS = {
    "asymptotics": ("toy", sb.problems.toy()),
    "asymptotics-random": ("random", sb.problems.random(n_arms=4, seed=0)),
}
DASHES = {"theorem": "-", "plain": (0, (1, 1.2)), "local": "-", "none": (0, (5, 1.2, 1, 1.2))}
SOLID, DOUBLED = "SOLID", "SOLID, doubled threshold"
PROMISED = {SOLID: 0.5, DOUBLED: 1.0}
"""The slope that β promises, in units of v*: the experiments' β has σ² log t where the theorem's has 2σ² log n."""


def table(heads, rows):
    """Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def shown(values):
    """Mean ± half the 95% Student interval."""
    found = student(values)
    return plus_minus(found.value, None if found.low is None else (found.high - found.low) / 2)


def slopes(results):
    """One row per policy, by its slope."""
    bound = results.bound
    rows = []
    for label in results.policies:
        last = results.table.filter((pl.col("policy") == label) & (pl.col("step") == results.horizon))
        values = slope(results, label, 1.0)
        base = label.split(" [")[0]
        promised = f"{PROMISED[base] * bound:.3g}" if base in PROMISED else ""
        share = (last["explored"] / last["step"]).mean()
        rows.append(
            (
                values.mean(),
                [
                    label,
                    shown(values),
                    number(values.mean() / bound, 2),
                    promised,
                    shown(last["regret"].to_numpy()),
                    f"{share:.2%}",
                ],
            )
        )
    heads = ["policy", "slope", "slope / v\\*", "β promises", "regret at the end", "exploring rounds"]
    return table(heads, [row for _, row in sorted(rows, key=lambda one: one[0])])


def targets_of(problem, zs):
    """What (P_z) has at every z_k that was used; below z_min, where it is infeasible, pure exploration's policy."""
    pure = sb.bounds.pure_exploration(problem, tol=1e-4)
    at = []
    for z in sorted(zs):
        if z <= pure.upper:
            at.append({"z": z, "omega": pure.policy.tolist(), "multiplier": None, "value": None})
            continue
        answer = sb.bounds.lower_bound_at(problem, z, tol=1e-4, exploration=pure)
        at.append(
            {"z": z, "omega": answer.policy.tolist(), "multiplier": answer.multiplier, "value": answer.value}
        )
    return Targets(
        {"targets": {"context_probs": problem.context_probs.tolist(), "n_arms": problem.n_arms, "at": at}}
    )


def inside(results, problem):
    """Reading -> per checkpoint: step, λ_t, z_k (median), λ* at it, distance of ω_t to ω*_z (means over runs)."""
    rows = results.diagnostics.filter(pl.col("multiplier").is_not_null())
    targets = targets_of(problem, rows["normalisation"].unique().to_list())
    found = {}
    for reading in READINGS:
        own = rows.filter(pl.col("policy") == played_label(SOLID, reading))
        means = (
            own.group_by("step")
            .agg(
                pl.col("multiplier").mean(),
                (pl.col("multiplier") > 0).mean().alias("awake"),
                pl.col("normalisation").quantile(0.5, "lower").alias("z"),
                pl.col("explored").mean(),
            )
            .sort("step")
        )
        apart = distances(own, targets).group_by("step").agg(pl.col("distance").mean(), runs=pl.len())
        # Where only some runs have reached a feasible z_k their mean would say something of those only.
        complete = apart.filter(pl.col("runs") == own["run"].n_unique()).drop("runs")
        joined = means.join(complete, on="step", how="left").sort("step")
        found[reading] = joined.with_columns(
            pl.Series("target", [targets.multiplier(z) for z in joined["z"]], dtype=pl.Float64)
        )
    return found


def inside_table(found):
    """A row for each reading and power of ten."""
    rows = []
    for reading, frame in found.items():
        steps = frame["step"].to_numpy()
        for power in range(3, 1 + round(np.log10(steps[-1]))):
            one = frame.row(int(np.abs(steps - 10**power).argmin()), named=True)
            rows.append(
                [
                    f"`{reading}`",
                    f"10{'⁰¹²³⁴⁵⁶⁷⁸'[power]}",
                    number(one["multiplier"], 3),
                    f"{one['awake']:.0%}",
                    "" if one["target"] is None else number(one["target"], 3),
                    number(one["z"], 3),
                    "" if one["distance"] is None else number(one["distance"], 2),
                    f"{one['explored'] / one['step']:.2%}",
                ]
            )
    heads = [
        "reading",
        "t",
        "λ_t",
        "runs with λ_t > 0",
        "λ\\*(z_k)",
        "z_k",
        "‖ω_t − ω\\*_z‖",
        "exploring rounds",
    ]
    return table(heads, rows)


def picture(every):
    """λ_t, z_k and the distance of ω_t to ω*_z, by reading; one column for each problem."""
    figure = Figure(figsize=(7.0, 5.6), dpi=DPI, layout="constrained")
    axes = figure.subplots(3, len(every), sharex=True, squeeze=False)
    styles = looks(READINGS)
    for column, (name, found) in enumerate(every.items()):
        for reading, frame in found.items():
            look = styles[reading]
            line = {"color": look.colour, "linewidth": 1.3, "linestyle": DASHES[reading]}
            late = frame.filter(pl.col("step") >= 10)
            for row, quantity in enumerate(("multiplier", "z", "distance")):
                label = reading if row == column == 0 else None
                axes[row, column].plot(late["step"], late[quantity], label=label, **line)
        top, middle, bottom = axes[:, column]
        least = sb.bounds.pure_exploration(PROBLEMS[name][1], tol=1e-3).upper
        top.set_title(f"{PROBLEMS[name][0]}, $z_{{\\min}}$ = {number(least, 3)}", fontsize=9, loc="left")
        top.set_yscale("symlog", linthresh=1)
        middle.set_yscale("log")
        bottom.set_ylim(0, 1)
        bottom.set_xlabel("step $t$", fontsize=8)
        for one in axes[:, column]:
            one.set_xscale("log")
            one.grid(color="#E6E6E6")
            one.set_axisbelow(True)
            one.spines[["top", "right"]].set_visible(False)
            one.tick_params(labelsize=7)
    for row, words in enumerate(
        (r"multiplier $\lambda_t$", r"$z_k$ (median)", r"distance of $\omega_t$ to $\omega^\star_z$")
    ):
        axes[row, 0].set_ylabel(words, fontsize=8)
    figure.legend(loc="outside upper right", ncols=len(READINGS), fontsize=8, frameon=False)
    return figure


def main():
    """Read, compute and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("docs", type=Path, nargs="?", default=Path(__file__).parents[2] / "docs")
    parser.add_argument("--part", default="n-107")
    arguments = parser.parse_args()
    every = {}
    for experiment, (name, problem) in PROBLEMS.items():
        part = arguments.results / experiment / arguments.part
        if not (part / "manifest.json").exists():
            print(f"{part} is not complete; left out")
            continue
        results = sb.Results.load(part)
        (arguments.docs / "_tables" / f"asymptotics-{name}.md").write_text(slopes(results), encoding="utf-8")
        every[experiment] = inside(results, problem)
        (arguments.docs / "_tables" / f"asymptotics-{name}-inside.md").write_text(
            inside_table(every[experiment]), encoding="utf-8"
        )
    save_figure(picture(every), arguments.docs / "_static" / "asymptotics-inside.png")


if __name__ == "__main__":
    main()
