"""Play every decision policy on every set that is installed (plan.md); one line of runs.jsonl for each run.

    python studies/streams/play.py [SET ...]

Sets that are in runs.jsonl already are not played again.
"""

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
from sets import SETS

import solid_bandits as sb
from solid_bandits.report.figure import save_figure
from solid_bandits.report.stream_figure import stream_figure

HERE = Path(__file__).parent
LINES = HERE / "runs.jsonl"
DOCS = HERE.parents[1] / "docs"
RUNS = 20
POLICIES = {
    "RandUCB": sb.RandUCB(),
    "LinTS (posterior)": sb.LinTS(),
    "LinTS (paper)": sb.LinTS(scale="paper"),
    "LinUCB": sb.LinUCB(radius="paper"),
    "Epsilon-greedy": sb.EpsilonGreedy(),
    "Greedy": sb.Greedy(),
    "Uniform": sb.EpsilonGreedy(epsilon=1.0),
}
DEAR = {"VIDS": sb.VIDS()}
DEAR_SETS = ("Swissmetro", "MovieLens-100k")
"""Where a run of VIDS takes seconds; on the others it takes minutes."""
CHECKPOINTS = 40
"""Of the curves in a line."""


def play(name: str, stream: sb.streams.Stream) -> None:
    """Play one set, and write its lines."""
    policies = POLICIES | (DEAR if name in DEAR_SETS else {})
    results = sb.simulate(stream, policies, runs=RUNS, seed=0, jobs=1)
    save_figure(stream_figure(results), DOCS / "_static" / f"real-data-{name.lower()}.png")
    steps = np.unique(results.table["step"].to_numpy())
    kept = steps[np.unique(np.linspace(0, len(steps) - 1, CHECKPOINTS).round().astype(int))]
    fit = stream.fit
    facts = {
        "set": name,
        "rounds": stream.length,
        "arms": stream.n_arms,
        "dim": stream.dim,
        "noise_std": fit.noise_std,
    }
    facts |= {"r_squared": fit.r_squared, "fingerprint": stream.fingerprint}
    with LINES.open("a", encoding="utf-8") as file:
        for (policy, run), rows in results.table.group_by("policy", "run", maintain_order=True):
            curve = rows.filter(pl.col("step").is_in(kept.tolist()))
            last = rows.filter(pl.col("step") == stream.length)
            line = {**facts, "policy": policy, "run": run, "seconds": results.seconds[policy] / RUNS}
            line |= {key: last[key].item() for key in ("reward", "regret", "ridge_regret", "explored")}
            line |= {"step": curve["step"].to_list(), "rewards": curve["reward"].to_list()}
            file.write(json.dumps(line) + "\n")


def main() -> None:
    """Play what was asked for, or all."""
    done = {json.loads(line)["set"] for line in LINES.read_text().splitlines()} if LINES.exists() else set()
    for name in sys.argv[1:] or SETS:
        if name in done:
            print(f"{name}: played already")
            continue
        stream = SETS[name]()
        if stream is None:
            print(f"{name}: not installed, skipped")
            continue
        print(f"{name}: {stream}, R² {stream.fit.r_squared:.3f}, σ {stream.fit.noise_std:.3f}", flush=True)
        play(name, stream)


if __name__ == "__main__":
    main()
