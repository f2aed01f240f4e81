"""Steps per second of each policy in the compiled loop, beside the plain NumPy reference, in one run.

Usage: python benchmarks/policies.py [--seconds S] [--write FILE]

Both play the same problem with the same seed; horizons differ, because the reference is slow, but the compiled loop
is also stopped at the reference's horizon, so that the share of exploring rounds is the same. One thread.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import solid_bandits as sb
from solid_bandits.loop import play

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import naive

SIZES = [(2, 3, 3), (4, 8, 8), (4, 32, 8)]
NAIVE_STEPS = 2000


def problem_of(size):
    contexts, arms, dim = size
    if size == (2, 3, 3):
        return sb.problems.toy()
    return sb.problems.random(n_contexts=contexts, n_arms=arms, dim=dim, seed=0)


def policies(n_arms):
    return {
        "SOLID": sb.Solid.paper_random(n_arms),
        "LinUCB": sb.LinUCB(),
        "LinTS": sb.LinTS(),
        "Greedy": sb.Greedy(),
    }


def naive_seconds(problem, policy):
    start = time.perf_counter()
    for _ in naive.steps(problem, policy, NAIVE_STEPS, seed=0, run=0):
        pass
    return (time.perf_counter() - start) / NAIVE_STEPS


def compiled_seconds(problem, policy, seconds):
    """Best of the repetitions that fit into `seconds`: the machine's noise only ever adds time."""
    steps = np.array([NAIVE_STEPS])
    trace = play(problem, policy, NAIVE_STEPS, seed=0, run=0, steps=steps)  # compiles
    best, deadline = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        start = time.perf_counter()
        play(problem, policy, NAIVE_STEPS, seed=0, run=0, steps=steps)
        best = min(best, time.perf_counter() - start)
    return best / NAIVE_STEPS, trace.explored[-1] / NAIVE_STEPS


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="for each compiled measurement")
    parser.add_argument("--write", type=Path, help="also write the table to this Markdown file")
    arguments = parser.parse_args()
    lines = [
        "| contexts, arms, dim | policy | exploring rounds | compiled us/step | steps/s | NumPy us/step | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for size in SIZES:
        problem = problem_of(size)
        for name, policy in policies(problem.n_arms).items():
            slow = min(naive_seconds(problem, policy) for _ in range(2))
            fast, exploring = compiled_seconds(problem, policy, arguments.seconds)
            lines.append(
                f"| {', '.join(map(str, size))} | {name} | {exploring:.0%} | {fast * 1e6:.2f} | {1 / fast:,.0f} "
                f"| {slow * 1e6:.0f} | {slow / fast:.0f} |"
            )
            print(lines[-1], flush=True)
    if arguments.write:
        arguments.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
