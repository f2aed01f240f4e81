"""Speed of solving and certifying the lower bound: against a conic solver, by size, and re-solved from a neighbour.

Run: python benchmarks/lower_bound.py [--quick]

Everything runs in one process on one thread and is timed in CPU seconds, so that a busy machine does not favour short
calls; the best of repeated calls counts, and compared calls alternate. Compare ratios, not seconds from different
machines. Warm solves are compared with cold ones of the same problem. The conic solver is Clarabel through cvxpy, from
`tests/oracle.py`.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from solid_bandits.bounds import lower_bound, pure_exploration, verify
from solid_bandits.core.problem import Problem
from solid_bandits.problems import random

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


def subspace_problem(n_contexts: int, n_arms: int, dim: int, unknown: int, seed: int) -> Problem:
    """Draw Gaussian features whose optimal arms lie in a subspace, so that `unknown` directions need exploration."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_contexts, n_arms, dim))
    theta = rng.normal(size=dim)
    known = dim - unknown
    theta[known:] *= 0.3
    means = features @ theta
    best = means.argmax(axis=1)
    rows = np.arange(n_contexts)
    features[rows, best, known:] = 0.0
    # Lifted along theta until they are optimal again by 0.1.
    lift = means.max(axis=1) + 0.1 - (features[rows, best] @ theta)
    features[rows, best, :known] += lift[:, None] * theta[:known] / (theta[:known] @ theta[:known])
    return Problem(features, theta)


def nearby(problem: Problem, seed: int) -> Problem:
    """Return the same features with theta changed by a thousandth, about the change of an estimate between solves."""
    change = 1 + 1e-3 * np.random.default_rng(seed).normal(size=problem.dim)
    return Problem(problem.features, problem.theta * change)


def best_times(repeats: int, *calls: Callable[[], object]) -> list[float]:
    """Return the least time of each call, taken in turns."""
    best = [np.inf] * len(calls)
    for _ in range(repeats):
        for i, call in enumerate(calls):
            start = time.process_time()
            call()
            best[i] = min(best[i], time.process_time() - start)
    return best


def cold_and_warm(problem: Problem, tol: float, changes: int, repeats: int) -> tuple[float, float, float]:
    """Return medians over small changes of theta: cold, warm, and their ratio; every warm answer is verified."""
    bound = lower_bound(problem, tol)
    times = []
    for seed in range(changes):
        moved = nearby(problem, seed)
        answer = lower_bound(moved, tol, warm_start=bound)
        assert answer.converged
        verify(moved, answer)
        times.append(
            best_times(
                repeats,
                lambda p=moved: lower_bound(p, tol),
                lambda p=moved: lower_bound(p, tol, warm_start=bound),
            )
        )
    cold, warm = np.transpose(times)
    return float(np.median(cold)), float(np.median(warm)), float(np.median(cold / warm))


def against_conic(repeats: int) -> None:
    import oracle

    ratios = []
    for seed in range(repeats):
        problem = random(4, 16, 16, seed=seed)
        ours, conic = best_times(
            3,
            lambda problem=problem: lower_bound(problem),
            lambda problem=problem: oracle.lower_bound(problem),
        )
        verify(problem, lower_bound(problem))
        ratios.append(conic / ours)
        print(
            f"  (4, 16, 16) seed {seed}: ours {ours * 1e3:.2f} ms, conic {conic * 1e3:.0f} ms, {conic / ours:.0f}x"
        )
    print(f"  median ratio {np.median(ratios):.0f}x (wanted: 20x)")


def by_size(quick: bool) -> None:
    sizes = [((20, 20, 16), 8, 1e-4), ((50, 20, 32), 16, 1e-4), ((50, 20, 32), 28, 1e-4)]
    if not quick:
        sizes += [((191, 40, 65), 25, 1e-3), ((191, 40, 65), 60, 1e-3)]
    for size, unknown, tol in sizes:
        problem = subspace_problem(*size, unknown, seed=0)
        bound = lower_bound(problem, tol)
        verify(problem, bound)
        cold, warm, ratio = cold_and_warm(problem, tol, 5, 3 if size[0] > 100 else 15)
        print(
            f"  {size}, {unknown} unknown directions, to {tol:g}: {cold * 1e3:.1f} ms cold, {warm * 1e3:.2f} ms warm "
            f"({ratio:.1f}x); gap {(bound.upper - bound.lower) / bound.upper:.1e}, certified: {bound.converged}"
        )
        start = time.process_time()
        pure = pure_exploration(problem, tol)
        took = time.process_time() - start
        print(
            f"      pure exploration {took * 1e3:.0f} ms, gap {(pure.upper - pure.lower) / pure.upper:.1e}, "
            f"converged: {pure.converged}"
        )


def small_warm() -> None:
    cold, warm, ratio = cold_and_warm(random(4, 16, 16, seed=0), 1e-6, 15, 15)
    print(f"  (4, 16, 16) to 1e-6: {cold * 1e3:.2f} ms cold, {warm * 1e3:.2f} ms warm ({ratio:.1f}x)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="omit the sizes that take a minute")
    quick = parser.parse_args().quick
    print("against the conic solver")
    against_conic(3 if quick else 7)
    print("cold and warm")
    small_warm()
    by_size(quick)


if __name__ == "__main__":
    main()
