"""Tails of the second round's finalists on `toy-K`, on the CPU: 100,000 runs, regret at 10³ and 10⁴ steps.

Usage: python studies/untold/tails.py   (some minutes on two cores; prints the table of docs/untold.md)
"""

from sides import SECOND_HELD_OUT

import solid_bandits as sb
from solid_bandits.simulation.summary import Summary

RUNS, HORIZON, SEED = 100_000, 10_000, 35
PLAYED = {"LinTS, told σ": (sb.LinTS(), True), "RandUCB, told nothing": (sb.RandUCB(), False)}


def summed(policy, told, horizon) -> Summary:
    """All runs of one policy."""
    problem = SECOND_HELD_OUT["toy-K"].problem_of(horizon, 0)
    return sb.summarise(problem, {"it": policy}, horizon, RUNS, SEED, tell_noise=told)


def main() -> None:
    """Print the table."""
    print("| policy | steps | mean | median | 99% | 99.9% | worst | stuck, in 100,000 |")
    print("|---|---|---|---|---|---|---|---|")
    for horizon in (HORIZON // 10, HORIZON):
        limit = None
        for label, (policy, told) in PLAYED.items():
            summary = summed(policy, told, horizon)
            one = summary.policies["it"]
            middle, high, higher = (one.quantile(level).value for level in (0.5, 0.99, 0.999))
            limit = limit or 10 * middle  # of LinTS, which is played first
            share = summary.share_above("it", limit)
            stuck, low, high_share = (RUNS * part for part in (share.value, share.low, share.high))
            print(
                f"| {label} | {horizon:,} | {one.regret.mean[-1]:.3g} | {middle:.3g} | {high:.3g} | {higher:.3g} | "
                f"{one.worst[0][0]:,.0f} | {stuck:.0f} [{low:.0f}, {high_share:.0f}] |",
                flush=True,
            )


if __name__ == "__main__":
    main()
