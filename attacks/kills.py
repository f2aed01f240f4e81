"""Commands killed at random times, and a writer killed at every file it touches.

Whatever the moment: no process is left behind, each file is complete or absent, and the same command, repeated,
arrives at the same bytes. SIGKILL and SIGTERM alternate; SIGTERM ends with status 143 and no traceback.

    python attacks/kills.py --compare 50 --reproduce 100 --saves 40 --seed 0
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from counted import show

import solid_bandits as sb
from solid_bandits._internal.files import LOCK_FILE
from solid_bandits.simulation import results

SECONDS_TO_END = 45.0
"""Seconds to end: three times what a command allows itself after SIGTERM, because the machine may be busy."""
FINISHED_ONE_IN = 3

TOML = """
horizon = 100_000
runs = 20

[[problem]]
label = "even"
kind = "toy"

[[problem]]
label = "uneven"
kind = "toy"
parameters = { first_context_prob = 0.9 }

[[policy]]
name = "linucb"

[[policy]]
name = "greedy"
"""


class FoundError(Exception):
    """Raised for a finding."""


def left(session: int) -> list[int]:
    """Return the processes of a session that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry.name))
    return found


class Command:
    """A command that writes into a directory, killed again and again."""

    def __init__(self, folder: Path, name: str, arguments: list[str]) -> None:
        self.name = name
        self.arguments = [sys.executable, "-m", "solid_bandits", *arguments, "--jobs", "2", "--out"]
        self.out = folder / name / "out"
        self.errors = folder / f"{name}.txt"
        self.finish(self.out)  # compiles if nothing is compiled yet
        shutil.rmtree(self.out)
        began = time.monotonic()
        self.finish(self.out)
        self.seconds = time.monotonic() - began
        self.wanted = self.contents()
        self.names = self.tree()
        shutil.rmtree(self.out)

    def start(self, out: Path) -> "subprocess.Popen[bytes]":
        """Start it, in its own session."""
        with self.errors.open("wb") as errors:
            return subprocess.Popen(
                [*self.arguments, str(out)], stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
            )

    def finish(self, out: Path) -> None:
        """Let it finish."""
        process = self.start(out)
        if process.wait():
            raise FoundError(f"repeated, it ends with {process.returncode}: {self.errors.read_text()}")
        self.check_alone(process.pid)

    def contents(self) -> dict[str, bytes]:
        """Return the contents that must not depend on interruptions."""
        return {
            str(one.relative_to(self.out)): one.read_bytes() for one in sorted(self.out.rglob("*.parquet"))
        }

    def tree(self) -> set[str]:
        """Return the names of all files."""
        return {str(one.relative_to(self.out)) for one in self.out.rglob("*")}

    def kill(self, number: int, after: float) -> None:
        """Kill it after some seconds, and check what is left."""
        before = self.tree()  # files that earlier kills have left
        process = self.start(self.out)
        try:
            process.wait(timeout=after)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, number)
        try:
            status = process.wait(timeout=SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise FoundError(f"still there {SECONDS_TO_END:g} s after signal {number}") from None
        self.check_alone(process.pid)
        said = self.errors.read_text()
        allowed = [0, -signal.SIGKILL] if number == signal.SIGKILL else [0, 143]
        # Before the first line of the command's own code, and after its last, SIGTERM has its default effect.
        if not said or (self.out.exists() and self.tree() == self.names):
            allowed.append(-signal.SIGTERM)
        if status not in allowed:
            raise FoundError(f"signal {number} after {after:.2f} s: status {status}: {said}")
        if "Traceback" in said:
            raise FoundError(f"signal {number} after {after:.2f} s: {said}")
        # A lock file holds nothing, and newer versions of filelock leave it.
        unfinished = [
            name
            for name in self.tree() - before
            if Path(name).name.startswith(".") and Path(name).name != LOCK_FILE
        ]
        if number == signal.SIGTERM and status == 143 and unfinished:
            raise FoundError(f"SIGTERM after {after:.2f} s leaves {unfinished}")
        for manifest in self.out.rglob("manifest.json") if self.out.exists() else ():
            sb.Results.load(manifest.parent)

    def check_alone(self, session: int) -> None:
        """Raise an error if a process of the command outlives it."""
        deadline = time.monotonic() + SECONDS_TO_END
        while left(session):
            if time.monotonic() > deadline:
                orphans = left(session)
                os.killpg(session, signal.SIGKILL)
                raise FoundError(f"orphans {orphans} after {SECONDS_TO_END:g} s")
            time.sleep(0.1)

    def check_same(self) -> None:
        """Finish, and compare with an uninterrupted run."""
        self.finish(self.out)
        if self.contents() != self.wanted:
            raise FoundError("the bytes differ from those of an uninterrupted run")
        if self.tree() != self.names:
            raise FoundError(
                f"the files differ from those of an uninterrupted run: {self.tree() ^ self.names}"
            )
        shutil.rmtree(self.out)


def kill_command(command: Command, count: int, chance: random.Random, verbose: bool) -> int:
    """Kill it `count` times; return the number of failures."""

    def once(number: int) -> None:
        which = signal.SIGKILL if number % 2 else signal.SIGTERM
        command.kill(which, chance.uniform(0.05, 1.05) * command.seconds)
        if number == count - 1 or chance.randrange(FINISHED_ONE_IN) == 0:
            command.check_same()

    return failures(count, once, command.name, verbose)


def failures(count: int, once: Callable[[int], None], name: str, verbose: bool) -> int:
    """Return how many of `count` attacks fail."""
    failed = 0
    for number in range(count):
        try:
            once(number)
        except (FoundError, ValueError, subprocess.TimeoutExpired, OSError) as error:
            failed += 1
            if verbose:
                print(f"  {name} {number}: {type(error).__name__}: {error}", file=sys.stderr)
        if verbose and number % 10 == 9:
            print(f"  {name}: {number + 1} of {count}, {failed} failed", file=sys.stderr, flush=True)
    return failed


def play() -> sb.Results:
    """Return results to save."""
    return sb.simulate(sb.problems.toy(), {"LinUCB": sb.LinUCB()}, 50, runs=3, seed=0, jobs=1)


def save_and_die(out: Path, moments: list[int]) -> None:
    """Save in a child that is killed at the first of these file operations, in another at the second, and so on."""
    played = play()
    # The threads of the table library do not survive in a child, so the work that needs them is done before.
    content = results._parquet(played.table)
    results._parquet = lambda table: content
    results.check_table = lambda table, configuration: None
    for place, moment in enumerate(moments):
        home = out / str(place)
        home.parent.mkdir(parents=True, exist_ok=True)
        child = os.fork()
        if child == 0:
            seen = 0

            def die(
                event: str, arguments: tuple[object, ...], home: Path = home, moment: int = moment
            ) -> None:
                nonlocal seen
                if event.split(".")[0] in ("open", "os") and any(str(home) in str(one) for one in arguments):
                    seen += 1
                    if seen == moment:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(die)
            played.save(home)
            os._exit(0)
        os.waitpid(child, 0)


def kill_saves(count: int, folder: Path, chance: random.Random, verbose: bool) -> int:
    """Kill a writer at the first, second, ... file operation; return the number of failures."""
    whole = play()
    whole.save(folder / "whole")
    wanted = (folder / "whole" / "results.parquet").read_bytes()
    moments = [1 + number if number < 40 else chance.randrange(1, 40) for number in range(count)]
    script = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1]); import kills; "
        "kills.save_and_die(pathlib.Path(sys.argv[2]), list(map(int, sys.argv[3:])))"
    )
    here = str(Path(__file__).parent)
    arguments = [sys.executable, "-c", script, here, str(folder / "saves"), *map(str, moments)]
    subprocess.run(arguments, check=True)

    def once(number: int) -> None:
        home = folder / "saves" / str(number)
        try:
            found = sb.Results.load(home)
        except ValueError as error:
            if "holds no manifest.json" not in str(error):
                raise
        else:
            if not found.table.equals(whole.table):
                raise FoundError("the table differs")
        whole.save(home)
        if (home / "results.parquet").read_bytes() != wanted:
            raise FoundError("the bytes differ from those of an uninterrupted run")
        there = sorted(path.name for path in home.iterdir())
        if there != [".lock", "manifest.json", "results.parquet"]:
            raise FoundError(f"leaves {there}")
        sb.Results.load(home)

    return failures(count, once, "save", verbose)


def attack(
    compare: int, reproduce: int, saves: int, seed: int, verbose: bool = True
) -> list[tuple[str, int, int]]:
    """Run the attacks; return name, tried and failed of each kind, and print each when it is finished."""
    chance = random.Random(seed)
    rows = []
    began = time.monotonic()

    def through(name: str, tried: int, failed: int) -> None:
        nonlocal began
        rows.append((name, tried, failed))
        if verbose:
            show(name, tried, failed, seed, began)
        began = time.monotonic()

    with tempfile.TemporaryDirectory(prefix="attack-kills-") as name:
        folder = Path(name)
        if saves:
            through("kills of a writer", saves, kill_saves(saves, folder, chance, verbose))
        if compare:
            policies = ["--policy", "linucb", "--policy", "greedy", "--horizon", "100000", "--runs", "20"]
            command = Command(folder, "compare", ["compare", "toy", *policies])
            through("kills of compare", compare, kill_command(command, compare, chance, verbose))
        if reproduce:
            path = folder / "small.toml"
            path.write_text(TOML, encoding="utf-8")
            command = Command(folder, "reproduce", ["reproduce", str(path)])
            through("kills of reproduce", reproduce, kill_command(command, reproduce, chance, verbose))
    return rows


def main() -> None:
    """Attack from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--compare", type=int, default=50)
    parser.add_argument("--reproduce", type=int, default=100)
    parser.add_argument("--saves", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rows = attack(given.compare, given.reproduce, given.saves, given.seed)
    sys.exit(1 if any(failed for _, _, failed in rows) else 0)


if __name__ == "__main__":
    main()
