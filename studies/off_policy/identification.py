"""Samples until the best arm is known: five rules, two problems, two δ, beside the certified bound.

    python studies/off_policy/identification.py --runs 200 --minutes 30 --json studies/off_policy/identification.json
    python studies/off_policy/identification.py --table studies/off_policy/identification.json

Written down before anything was played. Problems: Soare, Lazaric and Munos's (2014) hard instance in d = 2, arms e1, e2
and (cos 0.1, sin 0.1) with θ = (1, 0); and the end of optimism with ξ = 0.1. σ = 1. Rules: all of `identification`,
with their defaults. δ = 0.1 and 0.01. Thresholds: the valid one, and the heuristic log((1 + log n) / δ) of the papers'
experiments. All cells of a seed are played before the next seed; a search is given up after 1,000,000 samples.

The bound: z_min kl(δ, 1 - δ) samples on average, z_min certified by `bounds.pure_exploration`.
"""

import argparse
import json
import math
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

import solid_bandits as sb
from solid_bandits import identification

PROBLEMS = {
    "Soare": sb.Problem([[[1, 0], [0, 1], [math.cos(0.1), math.sin(0.1)]]], theta=[1, 0]),
    "end of optimism": sb.problems.end_of_optimism(0.1),
}
RULES = {
    "lingape": "LinGapE",
    "lingame": "LinGame",
    "frank-wolfe": "FrankWolfe",
    "lazy-track-and-stop": "LazyTrackAndStop",
    "even": "Even",
}
THRESHOLDS = ("mixture", "heuristic")
DELTAS = (0.1, 0.01)
MOST = 1_000_000


def bound(name, delta):
    """The least number of samples on average."""
    z_min = sb.bounds.pure_exploration(PROBLEMS[name]).lower
    return z_min * (1 - 2 * delta) * math.log((1 - delta) / delta)


def page_table(found):
    """Rows of docs/identification.md: means and their 95% intervals."""
    lines = []
    for name in PROBLEMS:
        for delta in DELTAS:
            least = bound(name, delta)
            lines.append(f"| **{name}**, δ = {delta} | **bound {least:,.0f}** | | |")
            for rule, label in RULES.items():
                cells = []
                for threshold in THRESHOLDS:
                    samples = np.array(
                        [one[0] for one in found[f"{name}|{delta}|{threshold}|{rule}"]], dtype=float
                    )
                    error = 1.96 * samples.std(ddof=1) / math.sqrt(len(samples))
                    cells += [f"{samples.mean():,.0f} ± {error:,.0f}", f"{samples.mean() / least:.1f}"]
                lines.append(f"| {label} | {' | '.join(cells[:3])} |")
    return lines


def wrong(found, threshold):
    """Wrong searches and searches of a threshold."""
    runs = [one for cell, some in found.items() if f"|{threshold}|" in cell for one in some]
    return sum(not right for _, right in runs), len(runs)


def main():
    """Play or print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    if given.table:
        kept = json.loads(given.table.read_text())
        print("\n".join(page_table(kept)), *(wrong(kept, threshold) for threshold in THRESHOLDS), sep="\n")
        return
    known = json.loads(given.json.read_text()) if given.json.exists() else {}
    found = defaultdict(list, known)
    started = time.monotonic()
    for seed in range(given.runs):
        for name, problem in PROBLEMS.items():
            for delta in DELTAS:
                for threshold in THRESHOLDS:
                    for rule in RULES:
                        runs = found[f"{name}|{delta}|{threshold}|{rule}"]
                        if len(runs) > seed:
                            continue
                        if time.monotonic() - started > 60 * given.minutes:
                            return
                        options = {"delta": delta, "seed": seed, "most": MOST, "threshold": threshold}
                        one = identification.identify(problem, rule, **options)
                        runs.append([one.samples, bool(one.right and one.stopped)])
        given.json.write_text(json.dumps(found, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
