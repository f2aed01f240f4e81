"""OAM beside SOLID on the toy problem, for three context distributions: the table of docs/rivals.md.

Usage: python studies/oam_toy.py --out DIR [--runs 200]

Mean regret after 50,000 steps with 95% Student intervals, and the paired difference to SOLID.
"""

import argparse
from pathlib import Path

import polars as pl

import solid_bandits as sb
from solid_bandits.report.standings import paired_differences

PROBS = (0.5, 0.9, 0.99)
HORIZON = 50_000

POLICIES = {
    "SOLID": sb.Solid.paper_toy(),
    "OAM, ε = 0": sb.OAM(epsilon=0.0),
    "OAM, ε = 0.01": sb.OAM(epsilon=0.01),
    "OAM, ε = 0.05": sb.OAM(epsilon=0.05),
    "AO-IDS, contextual variant": sb.IDS(),
    "LinUCB": sb.LinUCB(),
    "LinTS (paper)": sb.LinTS(scale="paper"),
    "LinTS (posterior)": sb.LinTS(scale="posterior"),
}


def cells_of(results):
    """Policy -> regret and difference in words."""
    differences = paired_differences(results, "SOLID")
    cells = {}
    for row in results.final().iter_rows(named=True):
        text = f"{row['mean']:.1f} ± {row['high'] - row['mean']:.1f}"
        if row["policy"] != "SOLID":
            other = differences.filter(pl.col("policy") == row["policy"]).row(0, named=True)
            text += f" ({other['difference']:+.1f} ± {other['difference_high'] - other['difference']:.1f})"
        cells[row["policy"]] = text
    return cells


def main():
    """Play, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="where results and table go")
    parser.add_argument("--runs", type=int, default=200)
    arguments = parser.parse_args()
    columns = {}
    for prob in PROBS:
        problem = sb.problems.toy(first_context_prob=prob)
        results = sb.simulate(problem, POLICIES, HORIZON, runs=arguments.runs, seed=0)
        results.save(arguments.out / f"prob{prob}")
        columns[prob] = cells_of(results)
    lines = [
        "| policy | " + " | ".join(f"$\\rho(x_1)$ = {prob}" for prob in PROBS) + " |",
        "|---|---|---|---|",
    ]
    lines += [f"| {name} | " + " | ".join(columns[prob][name] for prob in PROBS) + " |" for name in POLICIES]
    table = "\n".join(lines) + "\n"
    (arguments.out / "oam-toy.md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
