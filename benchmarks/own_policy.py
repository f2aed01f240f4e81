"""A user's Greedy, plain and compiled as in docs/own-policy.md, compared with ours: steps per second of a simulation.

Usage: OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/own_policy.py [--rounds K] [--write FILE]

A step is everything that the simulation's loop does: context, noise, decision, update. The three alternate in one
process, in another order each round; reported are medians of the thread's CPU time, and medians over rounds of the
ratio to ours.
"""

import argparse
import os
import platform
import sys
import tempfile
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy as np

import solid_bandits as sb
from solid_bandits.core.loop import play
from solid_bandits.policies.plain import as_policy

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from page_code import read_page

SIZES = [(2, 3, 3), (4, 8, 8), (4, 32, 8), (50, 20, 16)]
STEPS = {"plain Python": 5_000, "compiled": 100_000, "ours": 100_000}
"""Steps per turn, enough for each turn to take milliseconds, so that the start of a run does not count."""


def problem_of(size):
    if size == (2, 3, 3):
        return sb.problems.toy()
    contexts, arms, dim = size
    if contexts <= 4:
        return sb.problems.random(n_contexts=contexts, n_arms=arms, dim=dim, seed=0)
    rng = np.random.default_rng(0)
    return sb.Problem(features=rng.normal(size=size), theta=rng.normal(size=dim), noise_std=0.5)


def page_policies(folder):
    """Return the page's two versions of Greedy, and ours."""
    for name in ("mine.py", "fast.py"):
        (Path(folder) / name).write_text(read_page("own-policy.md").files[name], encoding="utf-8")
    sys.path.insert(0, str(folder))
    mine, fast = import_module("mine"), import_module("fast")
    return {
        "plain Python": as_policy("plain", mine.MyGreedy()),
        "compiled": fast.FastGreedy(),
        "ours": sb.Greedy(),
    }


def seconds_per_step(problem, policy, steps):
    start = time.thread_time_ns()
    play(problem, policy, steps, seed=0, run=0, steps=np.array([steps]))
    return (time.thread_time_ns() - start) * 1e-9 / steps


def measure(problem, policies, rounds):
    """Return seconds per step, label -> one for each round."""
    for policy in policies.values():
        play(problem, policy, 10, seed=0, run=0, steps=np.array([10]))  # compiles
    labels = list(policies)
    taken = {label: [] for label in labels}
    for turn in range(rounds):
        for place in range(len(labels)):
            label = labels[(turn + place) % len(labels)]
            taken[label].append(seconds_per_step(problem, policies[label], STEPS[label]))
    return {label: np.array(times) for label, times in taken.items()}


def row(size, taken):
    cells = [", ".join(map(str, size))]
    for label in ("plain Python", "compiled", "ours"):
        speed = f"{rounded(1 / np.median(taken[label])):,}"
        ratio = np.median(taken["ours"] / taken[label])
        words = f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:#.2g}"
        cells.append(speed if label == "ours" else f"{speed} ({words})")
    return f"| {' | '.join(cells)} |"


def rounded(number):
    """Round to three significant digits."""
    return int(float(f"{number:.3g}"))


def machine():
    return (
        f"one thread of {os.cpu_count()} cores, {cpu()}, load {os.getloadavg()[0]:.1f}; Python "
        f"{platform.python_version()}, NumPy {version('numpy')}, numba {version('numba')}"
    )


def cpu():
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15, help="number of rounds")
    parser.add_argument("--write", type=Path, help="also write the table to this Markdown file")
    arguments = parser.parse_args()
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        parser.error("set OPENBLAS_NUM_THREADS=1: this compares one thread with one thread")
    lines = [
        "| contexts, arms, dim | plain Python | compiled | ours |",
        "|---|---|---|---|",
    ]
    print("\n".join(lines))
    with tempfile.TemporaryDirectory() as folder:
        policies = page_policies(folder)
        for size in SIZES:
            lines.append(row(size, measure(problem_of(size), policies, arguments.rounds)))
            print(lines[-1], flush=True)
    lines += ["", f"Steps per second, in brackets times ours; {machine()}."]
    print("\n".join(lines[-2:]))
    if arguments.write:
        arguments.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
