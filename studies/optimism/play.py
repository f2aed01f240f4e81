"""Plays the cells of `cells.py`, 25 runs at a time; each line of runs.jsonl is 25 runs of a cell.

Usage: nice python studies/optimism/play.py [--runs 100]

Stopped at any time, it goes on with what is not in runs.jsonl.
"""

import argparse
import json
import time
from pathlib import Path

from cells import INFORMATIVE, PROBLEMS, RUNS, cells

from solid_bandits.core.loop import play_recorded
from solid_bandits.simulation.workers import identity

FILE = Path(__file__).with_name("runs.jsonl")
TOGETHER = 25
SEED = 0


def lines():
    """Every line that is there."""
    if not FILE.exists():
        return []
    return [json.loads(text) for text in FILE.read_text(encoding="utf-8").splitlines()]


def play_some(cell, first):
    """Play some runs of a cell; return what their line says."""
    context, arm = INFORMATIVE.get(cell.problem, (0, 0))
    regret, pulls = [], []
    start = time.thread_time()
    for run in range(first, first + TOGETHER):
        trace, rows = play_recorded(
            PROBLEMS[cell.problem],
            cell.player,
            cell.horizon,
            SEED,
            run,
            cell.steps,
            diagnostics=False,
            pulls=True,
            tell_noise=cell.tell_noise,
        )
        regret.append([float(f"{value:.6g}") for value in trace.regret])
        pulls.append([row["pulls"][context][arm] for row in rows])
    return {
        "problem": cell.problem,
        "policy": cell.policy,
        "horizon": cell.horizon,
        "first": first,
        "steps": cell.steps.tolist(),
        "regret": regret,
        "informative": pulls,
        "seconds": round(time.thread_time() - start, 2),
        "made_by": identity(),
    }


def main():
    """Play what is missing, cell by cell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=RUNS)
    runs = parser.parse_args().runs
    done = {(line["problem"], line["policy"], line["horizon"], line["first"]) for line in lines()}
    for cell in cells():
        for first in range(0, runs, TOGETHER):
            if (cell.problem, cell.policy, cell.horizon, first) in done:
                continue
            line = play_some(cell, first)
            with FILE.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
            print(cell.problem, cell.policy, cell.horizon, first, line["seconds"], flush=True)


if __name__ == "__main__":
    main()
