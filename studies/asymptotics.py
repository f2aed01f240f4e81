"""How regret grows with log n on the toy problem, against the lower bound: the numbers of docs/asymptotics.md.

Usage: python studies/asymptotics.py --out DIR   (about 10 minutes on 2 cores; finished horizons are not played again)

For each horizon n the mean regret at n and the slope over the last decade of the run, (R_n - R_{n/10}) / log 10, with
95% Student intervals over runs.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from scipy.stats import t as student

import solid_bandits as sb
from solid_bandits.report.palette import looks

RUNS = {10**4: 100, 10**5: 100, 10**6: 50, 10**7: 20}

POLICIES = {
    "SOLID": sb.Solid.paper_toy(),
    "SOLID, no bonus in g": sb.Solid(z0=30, initial_multiplier=10, constraint_bonus=0),
    "SOLID, no bonus, doubled threshold": sb.Solid(
        z0=30, initial_multiplier=10, constraint_bonus=0, threshold_scale=2
    ),
    "LinUCB": sb.LinUCB(),
    "LinTS (paper)": sb.LinTS(scale="paper"),
    "LinTS (posterior)": sb.LinTS(scale="posterior"),
}


def interval(values):
    """Mean and half-width of the 95% Student interval."""
    values = np.asarray(values)
    return values.mean(), student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))


def results_of(horizon, runs, out):
    """Play, or load what an earlier call played."""
    directory = out / f"n{horizon}"
    if (directory / "manifest.json").exists():
        return sb.Results.load(directory)
    results = sb.simulate(sb.problems.toy(), POLICIES, horizon, runs=runs, seed=0)
    results.save(directory)
    return results


def rows_of(results, horizon):
    """One row per policy: regret at the end, slope over the last decade, exploring rounds, worst run."""
    table = results.table
    steps = table["step"].unique().sort().to_numpy()
    tenth = steps[np.abs(np.log(steps / (horizon / 10))).argmin()]
    for policy in POLICIES:
        of_policy = table.filter(pl.col("policy") == policy)
        last = of_policy.filter(pl.col("step") == horizon).sort("run")
        before = of_policy.filter(pl.col("step") == tenth).sort("run")
        slopes = (last["regret"] - before["regret"]).to_numpy() / math.log(horizon / tenth)
        yield {
            "n": horizon,
            "policy": policy,
            "runs": last.height,
            "regret": interval(last["regret"]),
            "slope": interval(slopes),
            "median slope": float(np.median(slopes)),
            "worst": last["regret"].max(),
            "explored": last["explored"].mean(),
        }


def figure_of(rows, constant):
    """Slope against n for every policy, with the lower bound."""
    figure = Figure(figsize=(5.2, 4.2), layout="constrained")
    axes = figure.subplots()
    for policy, look in looks(list(POLICIES)).items():
        mine = [row for row in rows if row["policy"] == policy]
        axes.errorbar(
            [row["n"] for row in mine],
            [row["slope"][0] for row in mine],
            yerr=[row["slope"][1] for row in mine],
            color=look.colour,
            marker="o",
            ms=3,
            capsize=2,
            label=policy,
        )
    axes.axhline(constant, color="0.3", dashes=(4, 2), label=f"lower bound v* = {constant:g}")
    axes.set(xscale="log", yscale="log", xlabel="horizon n", ylabel="regret per unit of log n, last decade")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main():
    """Play, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="where results, table and figure go")
    out = parser.parse_args().out
    constant = sb.lower_bound(sb.problems.toy()).value
    rows = []
    for horizon, runs in RUNS.items():
        rows += rows_of(results_of(horizon, runs, out), horizon)
    lines = [
        "| n | policy | runs | regret at n | slope, last decade | median slope | worst run | exploring rounds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['n']:,} | {row['policy']} | {row['runs']} | {row['regret'][0]:.1f} ± {row['regret'][1]:.1f} "
        f"| {row['slope'][0]:.2f} ± {row['slope'][1]:.2f} | {row['median slope']:.2f} | {row['worst']:.0f} "
        f"| {row['explored']:,.0f} |"
        for row in rows
    ]
    table = "\n".join(lines) + "\n"
    (out / "asymptotics.md").write_text(table, encoding="utf-8")
    figure_of(rows, constant).savefig(out / "asymptotics.png", dpi=200)
    print(table)


if __name__ == "__main__":
    main()
