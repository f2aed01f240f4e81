"""CPU seconds of a new process: to its first decision, relative to `import numba`; to 1,000 steps of the toy, twice.

Usage: python benchmarks/cold_start.py [--table first | play] [--rounds 15] [NAME ...]

CPU seconds of the process and its children, user and system, so that other work on the machine counts for little.

The first table has compiled code and Python's bytecode on disk, as after `pip install`; the processes alternate, and
each round compares them with its own `import numba`. The second gives each policy its own cache folder, initially
empty.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

NAMES = ("Greedy", "LinUCB", "LinTS", "RandUCB", "Solid", "AOIDS", "OAM")
PLAY = """
import solid_bandits as sb
policy = getattr(sb, "{name}", None) or getattr(sb.rivals, "{name}")
results = sb.simulate(sb.problems.toy(), {{"it": policy()}}, horizon=1_000, runs=1, jobs=1)
print(results.final())
"""
BOUND = """
import solid_bandits as sb
print(sb.bounds.lower_bound(sb.problems.toy()).value)
"""
OFFER = "[[float(row == column) for column in range(8)] for row in range(8)]"
NUMBA = "import numba"
FIRST = {
    NUMBA: NUMBA,
    "a function of one line from numba's own cache": "import plus_one; plus_one.plus_one(1.0)",
    "import solid_bandits": "import solid_bandits",
    "Agent's first decision": f"import solid_bandits as sb; sb.Agent(dim=8).decide({OFFER})",
    "Bandit's first decision": f"import solid_bandits as sb; sb.Bandit(dim=8).decide({OFFER})",
    "named Bandit's first decision": "import solid_bandits as sb; "
    "sb.Bandit(arms=['tea', 'milk'], context=['age', 'device']).decide({'age': 34, 'device': 'ios'})",
    "Agent(LinTS())'s first decision": f"import solid_bandits as sb; sb.Agent(sb.LinTS(), dim=8).decide({OFFER})",
}
PLUS_ONE = "import numba\n@numba.njit(cache=True)\ndef plus_one(number):\n    return number + 1\n"


def cpu_seconds(script, folder):
    """Return the CPU seconds of one process, whose compiled code and bytecode are in this folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "SOLID_BANDITS_CACHE": os.path.join(folder, "compiled"),
        "NUMBA_CACHE_DIR": os.path.join(folder, "numba"),
        "PYTHONPYCACHEPREFIX": os.path.join(folder, "bytecode"),
        "PYTHONPATH": os.pathsep.join(paths),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def first_decisions(rounds):
    """Print the table of first decisions."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "plus_one.py").write_text(PLUS_ONE)
        for script in FIRST.values():
            cpu_seconds(script, folder)
        load = os.getloadavg()
        taken = [{name: cpu_seconds(script, folder) for name, script in FIRST.items()} for _ in range(rounds)]
    print(f"{rounds} rounds, load {load[0]:.1f} before and {os.getloadavg()[0]:.1f} after\n")
    print("| | CPU seconds | times `import numba` (quartiles) |\n|---|---|---|")
    for name in FIRST:
        ratios = [one[name] / one[NUMBA] for one in taken]
        low, middle, high = statistics.quantiles(ratios, n=4)
        median = statistics.median(one[name] for one in taken)
        print(f"| {name} | {median:.3f} | {middle:.2f} ({low:.2f}-{high:.2f}) |")


def plays(names):
    """Print the table of simulations."""
    print("| | empty cache | second process |\n|---|---|---|")
    scripts = {name: PLAY.format(name=name) for name in names} | {"lower bound": BOUND}
    for name, script in scripts.items():
        with tempfile.TemporaryDirectory() as folder:
            cpu_seconds("import solid_bandits, numba, polars, scipy.linalg, joblib", folder)  # their bytecode
            first, second = (cpu_seconds(script, folder) for _ in range(2))
        print(f"| {name} | {first:.1f} | {second:.1f} |", flush=True)


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    parser.add_argument("--table", choices=("first", "play"))
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    if arguments.table != "play":
        first_decisions(arguments.rounds)
    if arguments.table != "first":
        plays(arguments.names)


if __name__ == "__main__":
    main()
