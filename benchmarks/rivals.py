"""OAM re-solving (P) at every exploring round, compared with the exact solver on the same estimates.

Usage: python benchmarks/rivals.py [--rounds N] [--write FILE]

OAM plays a problem one decision at a time; its estimates at every exploring round are kept. The compiled, warm-started
solver is then timed on this sequence, as OAM calls it, and `sb.bounds.lower_bound` on every 50th of them, at the
tolerance of the compiled one (1e-2) and at its own (1e-6). `OAM round` is a whole exploring round: test, solve, choice
and update, the call from Python included. Medians; one thread.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import solid_bandits as sb
from solid_bandits.planning.allocation import make_allocation, solve_allocation

SIZES = [(2, 3, 3), (4, 4, 8), (4, 8, 8), (4, 16, 8), (4, 32, 8)]


def problem_of(size):
    contexts, arms, dim = size
    return sb.problems.toy() if size == (2, 3, 3) else sb.problems.random(contexts, arms, dim, seed=0)


def play(problem, rounds):
    """Return estimates and seconds of `rounds` exploring rounds of OAM."""
    agent = sb.Agent(
        sb.rivals.OAM(),
        contexts=problem.features,
        noise_std=problem.noise_std,
        theta_bound=problem.B,
        horizon=50_000,
    )
    rng = np.random.default_rng(0)
    estimates, seconds = [], []
    for _ in range(20 * rounds):
        context = int(rng.choice(problem.n_contexts, p=problem.context_probs))
        theta = agent.theta
        start = time.perf_counter()
        decision = agent.decide(context=context)
        agent.learn(decision, problem.means[context, decision.arm] + problem.noise_std * rng.normal())
        if decision.explored:
            seconds.append(time.perf_counter() - start)
            estimates.append(theta)
        if len(estimates) == rounds:
            break
    return estimates, seconds


def compiled_seconds(problem, estimates):
    solution, work = make_allocation(*problem.features.shape)
    seconds, steps, values = [], [], []
    for theta in estimates:
        means = problem.features @ theta
        start = time.perf_counter()
        solve_allocation(problem.features, problem.noise_std, means, solution, work)
        seconds.append(time.perf_counter() - start)
        steps.append(solution.steps.item())
        values.append(solution.bracket[1])
    return seconds, steps, values


def exact_seconds(problem, estimates, tol):
    seconds, values = [], []
    previous = None
    for theta in estimates:
        moved = sb.Problem(problem.features, theta, problem.context_probs, noise_std=problem.noise_std)
        start = time.perf_counter()
        previous = sb.bounds.lower_bound(moved, tol, warm_start=previous)
        seconds.append(time.perf_counter() - start)
        values.append(previous.value)
    return seconds, values


def microseconds(seconds):
    return f"{np.median(seconds) * 1e6:,.0f}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1000, help="exploring rounds")
    parser.add_argument("--write", type=Path, help="also write the table to this Markdown file")
    arguments = parser.parse_args()
    lines = [
        "| contexts, arms, dim | OAM round us | solve us | 99th percentile us | Newton steps "
        "| `lower_bound` 1e-2 us | `lower_bound` 1e-6 us | largest difference |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for size in SIZES:
        problem = problem_of(size)
        play(problem, 5)  # compiles
        estimates, rounds = play(problem, arguments.rounds)
        seconds, steps, values = compiled_seconds(problem, estimates)
        some = slice(1, None, 50)
        exact_seconds(problem, estimates[1:3], 1e-2)
        rough, _ = exact_seconds(problem, estimates[some], 1e-2)
        fine, exact = exact_seconds(problem, estimates[some], 1e-6)
        pairs = [(value, true) for value, true in zip(values[some], exact, strict=True) if true > 0]
        difference = max((abs(value / true - 1) for value, true in pairs), default=0)
        lines.append(
            f"| {', '.join(map(str, size))} | {microseconds(rounds)} | {microseconds(seconds)} "
            f"| {np.percentile(seconds, 99) * 1e6:,.0f} | {np.mean(steps):.1f} | {microseconds(rough)} "
            f"| {microseconds(fine)} | {difference:.2%} |"
        )
        print(lines[-1], flush=True)
    if arguments.write:
        arguments.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
