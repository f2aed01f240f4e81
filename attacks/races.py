"""Two concurrent writers into one new directory: one is refused, and the directory holds the complete work of the
other.

Most pairs save existing results; one in twenty plays complete commands, `compare` against `compare`.

    python attacks/races.py --count 600 --seed 0
"""

import argparse
import contextlib
import io
import multiprocessing
import random
import shutil
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from counted import show

import solid_bandits as sb

REFUSALS = ("in use by another process", "already holds other results")
FILES = {".lock", "manifest.json", "results.parquet"}
COMMAND_FILES = FILES | {"regret.png", "report.html"}
ONE_COMMAND_IN = 20


def play(seed: int) -> sb.Results:
    """Return results that differ by seed."""
    return sb.simulate(sb.problems.toy(), {"LinUCB": sb.LinUCB()}, 50, runs=3, seed=seed, jobs=1)


def saved(results: sb.Results, out: Path) -> str:
    """Save the results; return the error message, if any."""
    try:
        results.save(out)
    except ValueError as error:
        return str(error)
    return ""


def compared(seed: int, out: Path) -> str:
    """Run the command in this process; return its error message, if any."""
    from solid_bandits import cli

    sys.argv = ["solid-bandits", "compare", "toy", "--policy", "linucb", "--horizon", "50", "--runs", "3"]
    sys.argv += ["--seed", str(seed), "--jobs", "1", "--out", str(out)]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            cli.main()
    except SystemExit as ended:
        text = said.getvalue()
        if ended.code in (0, None):
            return ""
        if text.count("\n") != 1:
            return f"refused only after it had simulated: {text}"
        return text.strip()
    return "did not end"


def writer(seed: int, pipe: Connection, start: Any) -> None:
    """Write, in its own process, when told to."""
    results = play(seed)
    pipe.send("ready")
    while True:
        told = pipe.recv()
        if told is None:
            return
        out, command, delay = told
        start.wait()
        began = time.perf_counter()
        while time.perf_counter() - began < delay:
            pass  # busy wait, because microseconds matter
        try:
            pipe.send(compared(seed, out) if command else saved(results, out))
        except Exception as error:
            pipe.send(f"{type(error).__name__}: {error}")


def complaint(out: Path, said: list[str], tables: list[Any], files: set[str]) -> str:
    """Return what is wrong after a race, or empty text."""
    winners = [place for place, one in enumerate(said) if not one]
    if len(winners) != 1:
        return f"{len(winners)} of 2 succeeded: {said}"
    if not any(words in said[1 - winners[0]] for words in REFUSALS):
        return f"refused with {said[1 - winners[0]]}"
    found = sb.Results.load(out)
    if found.manifest["configuration"]["seed"] != winners[0] or not found.table.equals(tables[winners[0]]):
        return "the manifest or the table is the other's"
    there = {path.name for path in out.iterdir()}
    return "" if there == files else f"holds {sorted(there)}"


def attack(count: int, seed: int, verbose: bool = True) -> tuple[int, int]:
    """Try `count` pairs; return the number tried and the number failed."""
    chance = random.Random(seed)
    spawn = multiprocessing.get_context("spawn")
    start = spawn.Barrier(2)
    pipes, processes, failed = [], [], 0
    try:
        for number in range(2):
            ours, theirs = spawn.Pipe()
            process = spawn.Process(target=writer, args=(number, theirs, start), daemon=True)
            process.start()
            pipes.append(ours)
            processes.append(process)
        tables = [play(number).table for number in range(2)]
        for pipe in pipes:
            assert pipe.recv() == "ready"
        with tempfile.TemporaryDirectory(prefix="attack-races-") as folder:
            for number in range(count):
                command = number % ONE_COMMAND_IN == ONE_COMMAND_IN - 1
                out = Path(folder) / f"pair{number}" / "below"
                longest = chance.choice([0, 1e-4, 1e-3, 1e-2] if not command else [0, 0.1, 0.5])
                for pipe in pipes:
                    pipe.send((out, command, chance.uniform(0, longest)))
                said = [pipe.recv() for pipe in pipes]
                try:
                    wrong = complaint(out, said, tables, COMMAND_FILES if command else FILES)
                except Exception as error:
                    wrong = f"{type(error).__name__}: {error}"
                if wrong:
                    failed += 1
                    if verbose:
                        print(f"  pair {number}: {wrong}", file=sys.stderr)
                shutil.rmtree(out.parent, ignore_errors=True)
        for pipe in pipes:
            pipe.send(None)
    finally:
        for process in processes:
            process.join(10)
            process.kill()
    return count, failed


def main() -> None:
    """Attack from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    began = time.monotonic()
    tried, failed = attack(given.count, given.seed)
    show("pairs of writers", tried, failed, given.seed, began)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
