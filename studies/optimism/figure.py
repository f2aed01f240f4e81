"""When exploration has to be bought: the figure of docs/bought.md and of README.

Usage: python studies/optimism/figure.py [RUNS.jsonl] [DOCS]

Writes DOCS/_static/bought.png.
"""

import sys
from pathlib import Path

from cells import LONG, TOY
from matplotlib.figure import Figure
from played import FILE, cells_of, lines_of, linucb_without_noise

from solid_bandits.report.figure import DPI
from solid_bandits.report.palette import BAND_OPACITY, looks
from solid_bandits.statistics.intervals import student

SHOWN = {
    "SOLID, local": "SOLID",
    "SOLID, theorem": "SOLID as printed",
    "LinUCB": "LinUCB",
    "LinTS (posterior)": "Thompson sampling",
    "RandUCB, told nothing": "RandUCB, told nothing",
    "AO-IDS": "AO-IDS",
}
PANELS = {
    "ξ = 0.01": "Information must be bought",
    TOY: "Information comes by the way (the paper's toy problem)",
}


def draw(axes, played, problem, palette):
    """Draw mean regret and its 95% band against time, both logarithmic."""
    for label, name in SHOWN.items():
        one = played[problem, label, LONG]
        estimates = [student(column) for column in one.regret.T]
        look = palette[name]
        axes.plot(one.steps, [found.value for found in estimates], label=name, **look.line)
        low, high = zip(*((max(found.low, 1.0), found.high) for found in estimates), strict=True)
        axes.fill_between(one.steps, low, high, color=look.colour, alpha=BAND_OPACITY, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel="decisions", title=PANELS[problem])
    axes.grid(alpha=0.25)


def main():
    """Read and write."""
    played = cells_of(lines_of(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE))
    docs = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parents[2] / "docs"
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    palette = looks(SHOWN.values())
    for axes, problem in ((left, "ξ = 0.01"), (right, TOY)):
        draw(axes, played, problem, palette)
    steps = played["ξ = 0.01", "LinUCB", LONG].steps
    predicted = linucb_without_noise(0.01, steps)
    left.plot(steps, predicted, "--", color="0.3", linewidth=1, label="LinUCB without noise (prediction)")
    left.set_ylabel("mean regret, 100 runs, 95% bands")
    left.legend(fontsize=8, frameon=False)
    figure.savefig(docs / "_static" / "bought.png", dpi=DPI)


if __name__ == "__main__":
    main()
