"""Every policy on the one-context instances of "The end of optimism": the table and figure of docs/rivals.md.

Usage: python studies/end_of_optimism.py --out DIR [--runs 100]   (finished instances are not played again)

theta = e1, arms e1, e2 and (1 - xi, 2 xi), noise 1, horizon 100,000: optimism pulls the informative arm e2 too rarely,
and pays for the arm that is xi worse than the best. The best arm is the last one, so that breaking ties by index helps
nobody.
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

XIS = (0.01, 0.1)
HORIZON = 100_000

POLICIES = {
    "SOLID (toy)": sb.Solid.paper_toy(),
    "SOLID (random)": sb.Solid.paper_random(3),
    "OAM 0.01": sb.OAM(epsilon=0.01),
    "OAM 0": sb.OAM(epsilon=0.0),
    "AO-IDS": sb.IDS(),
    "OSSB": sb.OSSB(),
    "SPL": sb.SPL(),
    "End of optimism": sb.EndOfOptimism(),
    "LinUCB": sb.LinUCB(),
    "LinUCB (theorem)": sb.LinUCB(radius="theorem"),
    "LinTS (paper)": sb.LinTS(scale="paper"),
    "LinTS (posterior)": sb.LinTS(scale="posterior"),
    "Epsilon-greedy": sb.EpsilonGreedy(),
    "UCB1": sb.UCB1(),
    "Greedy": sb.Greedy(),
}


def instance(xi):
    """The problem, its best arm last."""
    return sb.Problem([[[0, 1], [1 - xi, 2 * xi], [1, 0]]], theta=[1, 0])


def results_of(xi, runs, out):
    """Play, or load what an earlier call played."""
    directory = out / f"xi{xi}"
    if (directory / "manifest.json").exists():
        return sb.Results.load(directory)
    results = sb.simulate(instance(xi), POLICIES, HORIZON, runs=runs, seed=0)
    results.save(directory)
    return results


def interval(values):
    """Mean and half-width of the 95% Student interval."""
    return values.mean(), student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))


def measured(results, policy):
    """Regret at the end and slope per unit of log t over the last decade, each with its interval, and the median."""
    table = results.table.filter(pl.col("policy") == policy)
    steps = table["step"].unique().sort().to_numpy()
    tenth = steps[np.abs(np.log(steps * 10 / HORIZON)).argmin()]
    last = table.filter(pl.col("step") == HORIZON).sort("run")["regret"].to_numpy()
    before = table.filter(pl.col("step") == tenth).sort("run")["regret"].to_numpy()
    return interval(last), interval((last - before) / math.log(HORIZON / tenth)), np.median(last)


def figure_of(results, constants):
    """Mean regret against log time, one panel per instance."""
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    panels = figure.subplots(1, len(results), sharey=True)
    for axes, (xi, one) in zip(panels, results.items(), strict=True):
        summary = one.summary()
        for policy, look in looks(list(POLICIES)).items():
            curve = summary.filter(pl.col("policy") == policy)
            style = {"solid": "-", "dot": ":", "dashdot": "-.", "dash": "--"}[look.dash]
            axes.plot(curve["step"], curve["mean"], color=look.colour, ls=style, lw=1.2, label=policy)
            axes.fill_between(curve["step"], curve["low"], curve["high"], color=look.colour, alpha=0.15, lw=0)
        steps = np.geomspace(1, HORIZON, 100)
        axes.plot(steps, constants[xi] * np.log(steps), color="0.2", dashes=(4, 2), lw=1, label="v* log t")
        axes.set(xscale="log", xlabel="step t", title=f"ξ = {xi:g}", ylim=(0, 500), xlim=(10, HORIZON))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("mean cumulative regret (cut at 500)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=7)
    return figure


def main():
    """Play, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="where results, table and figure go")
    parser.add_argument("--runs", type=int, default=100)
    arguments = parser.parse_args()
    results = {xi: results_of(xi, arguments.runs, arguments.out) for xi in XIS}
    constants = {xi: sb.lower_bound(instance(xi)).value for xi in XIS}
    lines = [
        "| policy | " + " | ".join(f"ξ = {xi:g}: regret (median) | slope, last decade" for xi in XIS) + " |",
        "|---" * (1 + 2 * len(XIS)) + "|",
    ]
    for policy in POLICIES:
        cells = []
        for xi in XIS:
            regret, slope, median = measured(results[xi], policy)
            cells.append(
                f"{regret[0]:,.1f} ± {regret[1]:,.1f} ({median:,.0f}) | {slope[0]:,.1f} ± {slope[1]:,.1f}"
            )
        lines.append(f"| {policy} | {' | '.join(cells)} |")
    lines.append(
        "| v* log n, v* | "
        + " | ".join(f"{constants[xi] * math.log(HORIZON):.1f} | {constants[xi]:.1f}" for xi in XIS)
        + " |"
    )
    table = "\n".join(lines) + "\n"
    (arguments.out / "end-of-optimism.md").write_text(table, encoding="utf-8")
    figure_of(results, constants).savefig(arguments.out / "end-of-optimism.png", dpi=200)
    print(table)


if __name__ == "__main__":
    main()
