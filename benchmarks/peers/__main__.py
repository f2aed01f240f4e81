"""This package compared with other bandit libraries and plain NumPy: time of a decision and its update, and regret.

Usage: python benchmarks/peers [--rounds N] [--steps N] [--seconds S] [--only LIBRARY ...] [--table FILE]
       [--figure FILE]

Needs the packages of benchmarks/peers-requirements.txt; a missing library gets a row that says so. In every round every
contender plays the same run from its start, one after the other, so that other work on the machine affects all alike;
short runs are repeated. Times are CPU times of this process, which has one thread: medians over rounds; ratios are
taken within a round.
"""

import argparse
import importlib
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from game import Contender, Game, make_game, play_batches, play_loop, play_singly
from threadpoolctl import threadpool_limits

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


def load(libraries: list[str]) -> tuple[list[Contender], dict[str, str]]:
    """Return the contenders, and for each unusable library the reason."""
    contenders, missing = [], {}
    for library in libraries:
        try:
            contenders += importlib.import_module(f"adapters.{LIBRARIES[library]}").CONTENDERS
        except ImportError as error:
            missing[library] = str(error)
    return contenders, missing


def measure(play, contender: Contender, game: Game, seed: int, least: float) -> tuple[float, float]:
    """Return CPU seconds per step of runs that take `least` seconds together, and the regret of the first."""
    first = play(contender, game, seed)
    seconds, runs = first.seconds, 1
    while seconds < least:
        seconds += play(contender, game, seed).seconds
        runs += 1
    return seconds / (runs * game.steps), first.regret


def measure_all(contenders: list[Contender], game: Game, rounds: int, least: float) -> list[Measured]:
    """Measure every contender one at a time, and in batches where it supports them, in rounds."""
    tasks = [(c, "loop" if c.in_loop else "single") for c in contenders]
    tasks += [(c, "batch") for c in contenders if c.batches]
    plays = {"single": play_singly, "loop": play_loop, "batch": play_batches}
    measured = [Measured(contender, form, game) for contender, form in tasks]
    for one in measured:
        plays[one.form](one.contender, game, 0)  # compiles, and fills caches
    for number in range(rounds):
        for one in measured:
            seconds, regret = measure(plays[one.form], one.contender, game, number, least)
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
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2000, help="number of steps of one run")
    parser.add_argument(
        "--seconds", type=float, default=0.2, help="seconds for which shorter runs are repeated"
    )
    parser.add_argument("--only", nargs="+", choices=LIBRARIES, default=list(LIBRARIES), metavar="LIBRARY")
    parser.add_argument("--table", type=Path, help="write the tables to this Markdown file")
    parser.add_argument("--figure", type=Path, help="draw the figure into this file")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of the libraries, about their own dependencies
    contenders, missing = load(arguments.only)
    threadpool_limits(1)
    start, load_before = time.perf_counter(), os.getloadavg()[0]
    measured = []
    for size in SIZES:
        measured += measure_all(
            contenders, make_game(*size, arguments.steps), arguments.rounds, arguments.seconds
        )
    ours = [c for c in contenders if c.library == "solid-bandits" and c.kind == "UCB"]
    growth = []
    for _, n_arms, dim in SIZES:
        for n_contexts in CONTEXTS:
            game = make_game(n_contexts, n_arms, dim, arguments.steps)
            growth += measure_all(ours, game, min(3, arguments.rounds), arguments.seconds)
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
