"""A million runs of the toy problem: joins what `benchmarks/gpu.py tails` wrote, and makes the table and the figure.

Usage: python studies/tails/join.py [FOLDER]

With a folder of summaries, toy.json is made anew from them, with the last checkpoint of each policy; without, the table
and the figure of docs/gpu.md are made from toy.json.
"""

import sys
from pathlib import Path

from solid_bandits.report.figure import save_figure
from solid_bandits.report.tails import HEADINGS, survival_figure, tails_rows
from solid_bandits.simulation.summary import PolicySummary, Summary
from solid_bandits.statistics.sketch import Moments

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
FILE = HERE / "toy.json"
ORDER = (
    "SOLID, theorem",
    "SOLID, plain",
    "SOLID, local",
    "SOLID, none",
    "LinUCB",
    "LinTS (paper)",
    "LinTS (posterior)",
    "RandUCB",
    "AO-IDS",
    "EpsilonGreedy",
    "Greedy",
)
FOR_THE_FIGURE = ("SOLID, theorem", "SOLID, local", "LinTS (posterior)", "RandUCB", "LinUCB", "AO-IDS")


def last(one, worst=100):
    """A policy's summary at its last checkpoint alone."""
    regret = Moments(one.runs, one.regret.mean[-1:], one.regret.squares[-1:])
    explored = Moments(one.runs, one.explored.mean[-1:], one.explored.squares[-1:])
    return PolicySummary(one.steps[-1:], regret, explored, one.sketches[-1:], one.worst[:worst], one.seconds)


def join(folder):
    """One summary of all in a folder."""
    joined = None
    policies = {}
    for path in sorted(folder.glob("*.json")):
        summary = Summary.load(path)
        joined = joined or summary
        joined.configuration["policies"].update(summary.configuration["policies"])
        policies.update({label: last(one) for label, one in summary.policies.items()})
    joined.policies = {label: policies[label] for label in ORDER if label in policies}
    joined.save(FILE)


def main():
    """Join, if there is anything to join; then table and figure."""
    if len(sys.argv) > 1:
        join(Path(sys.argv[1]))
    summary = Summary.load(FILE)
    rows = tails_rows(summary)
    lines = ["| " + " | ".join(HEADINGS) + " |", "|---|" + "---:|" * (len(HEADINGS) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    (DOCS / "_tables" / "tails.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    shown = Summary(
        summary.configuration, summary.device, {label: summary.policies[label] for label in FOR_THE_FIGURE}
    )
    save_figure(survival_figure(shown), DOCS / "_static" / "tails.png")


if __name__ == "__main__":
    main()
