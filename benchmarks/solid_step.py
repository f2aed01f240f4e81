"""A step of SOLID by kind, compared with the plain NumPy reference: exploring with and without information, exploiting.

Usage: OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/solid_step.py [--rounds K] [--write FILE]

Thresholds of (nearly) 0 and infinity make every step exploit or explore. While the multiplier is 0 and stays there, an
exploring step needs no closest alternative; without the bonus in g_t it is positive, and every step needs it. Greedy is
included because its step is a lower limit for SOLID's: the loop's random numbers, one least-squares update, one best
arm. Compiled code and reference alternate; reported are medians of the thread's CPU time.
"""

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import solid_bandits as sb
from solid_bandits.core.loop import play

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import naive

SIZES = [(2, 3, 3), (4, 8, 8), (4, 32, 8), (50, 20, 16)]
ALWAYS = 1e12
NAIVE_STEPS = 200


def problem_of(size):
    if size == (2, 3, 3):
        return sb.problems.toy()
    contexts, arms, dim = size
    if contexts <= 4:
        return sb.problems.random(n_contexts=contexts, n_arms=arms, dim=dim, seed=0)
    rng = np.random.default_rng(0)
    return sb.Problem(features=rng.normal(size=size), theta=rng.normal(size=dim), noise_std=0.5)


def policies(n_arms):
    paper = replace(sb.Solid.paper_random(n_arms), bonus="theorem")
    return {
        "exploring, multiplier 0": replace(paper, threshold_scale=ALWAYS),
        "exploring, multiplier > 0": replace(paper, threshold_scale=ALWAYS, bonus="none"),
        "exploiting": replace(paper, threshold_scale=0.0),
        "Greedy": sb.Greedy(),
    }


def compiled_seconds(problem, policy, steps):
    start = time.thread_time_ns()
    trace = play(problem, policy, steps, seed=0, run=0, steps=np.array([steps]))
    return (time.thread_time_ns() - start) * 1e-9 / steps, trace.explored[-1] / steps


def naive_seconds(problem, policy):
    start = time.thread_time_ns()
    for _ in naive.steps(problem, policy, NAIVE_STEPS, seed=0, run=0):
        pass
    return (time.thread_time_ns() - start) * 1e-9 / NAIVE_STEPS


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rounds", type=int, default=9, help="number of rounds of compiled code and reference"
    )
    parser.add_argument("--write", type=Path, help="also write the table to this Markdown file")
    arguments = parser.parse_args()
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        parser.error("set OPENBLAS_NUM_THREADS=1: this compares one thread with one thread")
    lines = [
        "| contexts, arms, dim | steps | exploring | compiled us/step | NumPy us/step | ratio |",
        "|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for size in SIZES:
        problem = problem_of(size)
        steps = 20_000 if size[0] <= 4 else 2_000
        for name, policy in policies(problem.n_arms).items():
            compiled_seconds(problem, policy, 10)  # compiles
            fast, slow = [], []
            for _ in range(arguments.rounds):
                spent, exploring = compiled_seconds(problem, policy, steps)
                fast.append(spent)
                slow.append(naive_seconds(problem, policy))
            ours, reference = np.median(fast), np.median(slow)
            lines.append(
                f"| {', '.join(map(str, size))} | {name} | {exploring:.0%} | {ours * 1e6:.3f} | {reference * 1e6:.0f} "
                f"| {reference / ours:.0f} |"
            )
            print(lines[-1], flush=True)
    if arguments.write:
        arguments.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
