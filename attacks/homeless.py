"""A read-only installation run by a user without a home, as in a usual container. Everything must work, with one
warning.

The package is copied to a read-only place and run without a folder for compiled code: no home, a home that is missing,
a file, or read-only, and the same for the folder that a variable names. Root, who may write anywhere, becomes a user
unknown to the system (with `setpriv`). Each command must succeed, warn once that compiled code cannot be kept (also
when two workers compile), and write nothing but its output.

    python attacks/homeless.py [--every N]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from counted import HEAD, show

import solid_bandits as sb

WARNING = "the compile cache cannot be used"
AGENT = """
import solid_bandits as sb
agent = sb.Agent(sb.Greedy(), dim=2, noise_std=1.0)
agent.learn(agent.decide([[1, 0], [0, 1]]), 1.0)
"""
SIMULATION = """
import solid_bandits as sb
if __name__ == "__main__":
    policies = {"a": sb.Greedy(), "b": sb.EpsilonGreedy()}
    results = sb.simulate(sb.problems.toy(), policies, horizon=100, runs=4, jobs=2)
    assert len(results.final()) == 2
"""
UNKNOWN = 54321
SECONDS = 600


class House:
    """The copy of the package, and places where nothing can be written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.site = folder / "site"
        source = Path(sb.__file__).parent
        shutil.copytree(source, self.site / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        self.script = folder / "script.py"
        self.closed = folder / "closed"
        self.closed.mkdir()
        self.file = folder / "file"
        self.file.write_text("")
        for path in (self.site, *self.site.rglob("*"), self.closed, self.file):
            path.chmod(0o555 if path.is_dir() else 0o444)
        folder.chmod(0o755)

    def environments(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the variables of users who have no place for compiled code."""
        yield "no home", {}
        yield "a home that is missing", {"HOME": str(self.closed / "gone")}
        yield "a home to be read only", {"HOME": str(self.closed)}
        yield "a file for a home", {"HOME": str(self.file)}
        yield "a cache to be read only", {"XDG_CACHE_HOME": str(self.closed)}
        yield "a folder that cannot be made", {"SOLID_BANDITS_CACHE": str(self.closed / "cache")}
        yield "a file for a folder", {"SOLID_BANDITS_CACHE": str(self.file)}

    def commands(self, out: Path) -> Iterator[tuple[str, list[str], int]]:
        """Yield each command, and how often it must warn."""
        yield "an agent", ["-c", AGENT], 1
        self.script.write_text(SIMULATION)
        yield "a simulation by two workers", [str(self.script)], 1
        arguments = [
            "--policy",
            "greedy",
            "--horizon",
            "50",
            "--runs",
            "4",
            "--jobs",
            "2",
            "--out",
            str(out / "compared"),
        ]
        yield "compare", ["-m", "solid_bandits", "compare", "toy", *arguments], 1
        yield "bound", ["-m", "solid_bandits", "bound", "toy"], 0

    def run(
        self, arguments: list[str], variables: dict[str, str], out: Path
    ) -> "subprocess.CompletedProcess[str]":
        """Run Python as the stranger."""
        usual = {
            "PATH": os.environ.get("PATH", ""),
            "PYTHONPATH": str(self.site),
            "MPLCONFIGDIR": str(out),
            "NUMBA_OPT": "1",
        }
        return subprocess.run(
            [*stranger(), sys.executable, *arguments],
            env={**usual, **variables},
            cwd=out,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )

    def tree(self) -> set[str]:
        """Return all files where nothing may be written."""
        return {str(path) for place in (self.site, self.closed) for path in place.rglob("*")}


def stranger() -> list[str]:
    """Return the command prefix that makes root an unknown user who may read everything; empty for other users."""
    if os.getuid():
        return []
    rights = ["--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"]
    return ["setpriv", "--reuid", str(UNKNOWN), "--regid", str(UNKNOWN), "--clear-groups", *rights]


def attack(every: int = 1, verbose: bool = True) -> tuple[int, int]:
    """Try all attacks, or one in `every`; return the number tried and the number failed."""
    tried = failed = number = 0
    with tempfile.TemporaryDirectory(prefix="attack-homeless-") as name:
        house = House(Path(name))
        for where, variables in house.environments():
            out = house.folder / f"out{number}"
            out.mkdir()
            out.chmod(0o777)  # whatever user the stranger is
            if not os.getuid() and "no home" in where:
                pass  # the system lists a home for root, but none for the stranger
            elif "HOME" not in variables:
                variables = {**variables, "HOME": str(house.closed / "gone")}
            for what, arguments, warnings in house.commands(out):
                number += 1
                if number % every:
                    continue
                tried += 1
                before = house.tree()
                done = house.run(arguments, variables, out)
                wrong = ""
                if done.returncode or "Traceback" in done.stderr:
                    wrong = f"status {done.returncode}: {done.stderr[-600:]}"
                elif done.stderr.count(WARNING) != warnings:
                    wrong = f"warned {done.stderr.count(WARNING)} times: {done.stderr[-600:]}"
                elif house.tree() != before:
                    wrong = f"wrote {house.tree() - before}"
                if wrong:
                    failed += 1
                    if verbose:
                        print(f"  {where}, {what}: {wrong}", file=sys.stderr, flush=True)
        for path in (house.site, *house.site.rglob("*"), house.closed):
            path.chmod(0o755)  # so that it can be removed
    return tried, failed


def main() -> None:
    """Attack from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--every", type=int, default=1, help="try only one in EVERY")
    given = parser.parse_args()
    began = time.monotonic()
    print(HEAD)
    tried, failed = attack(given.every)
    show("read-only installation without a home", tried, failed, 0, began)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
