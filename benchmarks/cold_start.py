"""CPU seconds of a process that imports the package, plays 1,000 steps of the toy and prints: first and second time.

Usage: python benchmarks/cold_start.py [NAME ...]

Each policy has a cache folder of its own, empty the first time. CPU seconds of the whole process and its children,
user and system, so that other work on the machine counts for little.
"""

import os
import resource
import subprocess
import sys
import tempfile

NAMES = ("Greedy", "LinUCB", "LinTS", "RandUCB", "Solid", "AOIDS", "OAM")
PLAY = """
import solid_bandits as sb
results = sb.simulate(sb.problems.toy(), {{"it": sb.{name}()}}, horizon=1_000, runs=1, jobs=1)
print(results.final())
"""
BOUND = """
import solid_bandits as sb
print(sb.lower_bound(sb.problems.toy()).value)
"""


def cpu_seconds(script, cache):
    """Of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "SOLID_BANDITS_CACHE": cache}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main(names):
    """Print a table."""
    print("| | empty cache | second process |\n|---|---|---|")
    scripts = {name: PLAY.format(name=name) for name in names} | {"lower bound": BOUND}
    for name, script in scripts.items():
        with tempfile.TemporaryDirectory() as cache:
            first, second = (cpu_seconds(script, cache) for _ in range(2))
        print(f"| {name} | {first:.1f} | {second:.1f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or NAMES)
