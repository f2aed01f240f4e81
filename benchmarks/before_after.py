"""Steps of every policy in two versions of the package, in alternation: how many times slower or faster the second is.

Usage: python benchmarks/before_after.py OLD/src NEW/src [--sizes N] [--rounds N] [--seconds S] [--only POLICY ...]

Each tree is loaded by its own process; only one of the two works at a time, and the next cell follows when both have
had their turns. A cell is played as in `bench`: from a state in which the policy only explores or only exploits, in the
simulation's compiled loop, the same steps in every round, timed in CPU seconds of the thread. The ratio is taken round
by round; the median and the quartiles are printed.
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]


def support_old_views() -> None:
    """Make `bench` play a tree from before the setting and the table were separate."""
    import solid_bandits as sb
    from bench import player

    def policy_of(label: str, kind: str, n_arms: int) -> Any:
        if label == "SOLID":
            return replace(
                sb.Solid.paper_random(n_arms),
                threshold_scale=0.0 if kind == "exploiting" else 1e9,
                constraint_bonus=0.0 if kind == "searching" else 1.0,
            )
        if label == "EpsilonGreedy":
            return sb.EpsilonGreedy(epsilon=1.0 if kind == "exploring" else 0.0)
        return getattr(sb, "IDS" if label == "AOIDS" else label)()

    player.policy_of = policy_of
    player.with_noise = lambda agent, noise_std: agent._replace(
        known=agent.known._replace(noise_std=noise_std)
    )


def serve() -> None:
    """Answer lines on standard input: a list of cells to prepare, or the index of the one to play a round of."""
    import solid_bandits.core.problem
    from bench.cases import Cell
    from bench.player import Player

    if hasattr(solid_bandits.core.problem, "View"):
        support_old_views()
    players: list[Player] = []
    for line in sys.stdin:
        order = json.loads(line)
        if "cells" in order:
            players = [
                Player(Cell(label, kind, tuple(size)), order["seconds"])
                for label, kind, size in order["cells"]
            ]
            answer: list[float] = []
        else:
            answer = list(players[order["place"]].round())
        print(json.dumps(answer), flush=True)


class Tree:
    """A process that plays one tree."""

    def __init__(self, source: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": str(source.resolve())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, order: dict[str, Any]) -> list[float]:
        """Send an order and return the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a tree could not be played; its message is above")
        answer: list[float] = json.loads(line)
        return answer


def main() -> None:
    """Measure and print."""
    if sys.argv[1:] == ["--serve"]:
        serve()
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--sizes", type=int, default=5, help="number of bench's sizes, smallest first")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.01, help="seconds of each tree in each round")
    parser.add_argument("--only", nargs="+", help="only these policies")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.new.resolve()))
    from bench.cases import SIZES, cells_of, is_run
    from bench.floors import FLOORS
    from bench.table import row, table

    labels = set(arguments.only or (label for label, _ in FLOORS if label != "RandUCB"))
    trees = [Tree(arguments.old), Tree(arguments.new)]
    print("\n".join(table("size", "policy", "steps", "before us", "after us", "after / before", "quartiles")))
    for size in SIZES[: arguments.sizes]:
        cells = [cell for cell in cells_of(size, labels) if is_run(cell)]
        for tree in trees:
            tree.ask({"cells": cells, "seconds": arguments.seconds})
        times = np.zeros((arguments.rounds, len(cells), 2))
        for number in range(arguments.rounds):
            for place in range(len(cells)):
                for which in (0, 1) if number % 2 == 0 else (1, 0):
                    times[number, place, which] = trees[which].ask({"place": place})[0]
        for place, cell in enumerate(cells):
            before, after = times[:, place].T
            low, middle, high = np.percentile(after / before, [25, 50, 75])
            print(
                row(
                    ", ".join(map(str, cell.size)),
                    cell.label,
                    "" if cell.kind == "any" else cell.kind,
                    f"{np.median(before) * 1e6:.3g}",
                    f"{np.median(after) * 1e6:.3g}",
                    f"{middle:.2f}",
                    f"{low:.2f} to {high:.2f}",
                ),
                flush=True,
            )
    print(f"\nLoad average {' '.join(f'{value:.1f}' for value in os.getloadavg())}.")


if __name__ == "__main__":
    main()
