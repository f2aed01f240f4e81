"""This package beside other bandit libraries and plain NumPy: time of a decision and its update, and regret.

Usage: python benchmarks/peers [--rounds N] [--steps N] [--only LIBRARY ...] [--table FILE] [--figure FILE]

Needs the packages of benchmarks/peers-requirements.txt; a library that is not there is a row that says so. In every round
every contender plays the same run from its start, one after the other, so that what else the machine does hits all alike;
fast ones repeat theirs. Times are CPU times of this process, which has one thread: medians over rounds; ratios are taken
within a round.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is imported

import argparse
import importlib
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from game import Contender, Game, make_game, play_batches, play_loop, play_singly
from report import Measured, draw_figure, write_table

SIZES = [(4, 8, 8), (4, 40, 64)]
CONTEXTS = [1, 4, 16, 64]
LIBRARIES = {  # distribution -> adapter
    "solid-bandits": "ours",
    "numpy": "plain_numpy",
    "vowpalwabbit": "vowpalwabbit",
    "river": "river",
    "coba": "coba",
    "contextualbandits": "contextualbandits",
    "bayesianbandits": "bayesianbandits",
    "mabwiser": "mabwiser",
}
LEAST_SECONDS = 0.2
"""A run that is shorter is repeated until this much time has passed, in each round."""


def load(libraries: list[str]) -> tuple[list[Contender], dict[str, str]]:
    """The contenders, and for each library that cannot be used the reason."""
    contenders, missing = [], {}
    for library in libraries:
        try:
            contenders += importlib.import_module(f"adapters.{LIBRARIES[library]}").CONTENDERS
        except ImportError as error:
            missing[library] = str(error)
    return contenders, missing


def measure(play, contender: Contender, game: Game, steps: int, seed: int) -> tuple[float, float]:
    """CPU seconds per step over as many runs as fit, and the regret of the first."""
    first = play(contender, game, steps, seed)
    seconds, runs = first.seconds, 1
    while seconds < LEAST_SECONDS:
        seconds += play(contender, game, steps, seed).seconds
        runs += 1
    return seconds / (runs * steps), first.regret


def measure_all(contenders: list[Contender], game: Game, steps: int, rounds: int) -> list[Measured]:
    """Every contender one at a time, and in batches where it has them, in rounds."""
    tasks = [(c, "loop" if c.in_loop else "single") for c in contenders]
    tasks += [(c, "batch") for c in contenders if c.batches]
    plays = {"single": play_singly, "loop": play_loop, "batch": play_batches}
    measured = [Measured(contender, form, game.size) for contender, form in tasks]
    for one in measured:
        plays[one.form](one.contender, game, 200, 0)  # compiles, and fills caches
    for number in range(rounds):
        for one in measured:
            seconds, regret = measure(plays[one.form], one.contender, game, steps, seed=number)
            one.seconds.append(seconds)
            one.regrets.append(regret)
        print(f"round {number + 1} of {rounds} at {game.size}", file=sys.stderr)
    return measured


def main():
    parser = argparse.ArgumentParser(
        prog="python benchmarks/peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=2000, help="of one run")
    parser.add_argument("--only", nargs="+", choices=LIBRARIES, default=list(LIBRARIES), metavar="LIBRARY")
    parser.add_argument("--table", type=Path, help="write the tables to this Markdown file")
    parser.add_argument("--figure", type=Path, help="draw the figure into this file")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of the libraries, about their own dependencies
    contenders, missing = load(arguments.only)
    start, load_before = time.perf_counter(), os.getloadavg()[0]
    measured = []
    for size in SIZES:
        measured += measure_all(contenders, make_game(*size), arguments.steps, arguments.rounds)
    ours = [c for c in contenders if c.library == "solid-bandits" and c.kind == "UCB"]
    growth = []
    for _, n_arms, dim in SIZES:
        for n_contexts in CONTEXTS:
            growth += measure_all(
                ours, make_game(n_contexts, n_arms, dim), arguments.steps, min(3, arguments.rounds)
            )
    loads = np.array([load_before, os.getloadavg()[0]])
    note = (
        f"{arguments.rounds} rounds of {arguments.steps} steps in {(time.perf_counter() - start) / 60:.0f} minutes; "
        f"load average {loads.min():.1f} to {loads.max():.1f} on {os.cpu_count()} cores."
    )
    text = write_table(measured, growth, missing, note)
    print(text)
    if arguments.table:
        arguments.table.write_text(text, encoding="utf-8")
    if arguments.figure:
        draw_figure(measured, arguments.figure)


if __name__ == "__main__":
    main()
