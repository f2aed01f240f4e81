"""How often a verdict of stop is wrong, and how soon it comes, on live runs of bandits that learn.

    python studies/off_policy/verdicts.py --play LINES --kind intervals --minutes 20      # resumable: LINES grows
    python studies/off_policy/verdicts.py --play LINES --kind tests --minutes 20
    python studies/off_policy/verdicts.py --sum LINES --json studies/off_policy/verdicts.json
    python studies/off_policy/verdicts.py --table studies/off_policy/verdicts.json

This plan was committed before anything was played.

Worlds: two arms with one-hot features and mean rewards 0.4 and 0.5 (a gap), or 0.5 and 0.5 (no difference); three arms
with 0.3, 0.5, 0.5 (a tie of the best). Rewards are 0 or 1; or, for the linear test alone, Gaussian with σ = 0.5. The
first run told the linear test σ = 0.5 for both; since then it is told nothing. Loggers: RandUCB with floor 0.1, LinTS
with floor 0.1, EpsilonGreedy(0.2), and uniform choices. A run has 4,000 decisions, and 60 looks, spaced geometrically
from 30 decisions on. All of delta = 0.05 and 0.01 are from the same runs.

A run is wrong if any look has a verdict of stop for an arm that is not the best of its world, or, where the best are
several, for any arm: tolerance is 0, so that nothing may be said. Wrong runs may be at most delta + 3 standard errors.

The sample of the fixed-time test of the gap: a z-test of the difference of two means, one-sided at delta, with power
90%, under uniform choices, (z_{1-delta} + z_{0.9})² (0.24 + 0.25) 2 / 0.1² decisions. Reported: the share of runs that
stop within 3 times that number, and the median decision of those that stop, over the looks.
"""

import argparse
import json
import math
import time
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import numpy as np
from intervals import play
from scipy.stats import norm

import solid_bandits as sb
from solid_bandits.core.randomness import ENVIRONMENT, make_rng
from solid_bandits.ope.anytime import BEFORE, GRID, WEIGHTS, follow
from solid_bandits.ope.bounded import Bounding
from solid_bandits.ope.bounded_test import Coins
from solid_bandits.ope.linear_test import judged, likelihood_ratio, set_aside
from solid_bandits.ope.models import as_model
from solid_bandits.ope.rows import Rows
from solid_bandits.ope.terms import terms_of

WORLDS = {"gap": (0.4, 0.5), "no difference": (0.5, 0.5), "tie": (0.3, 0.5, 0.5)}
LOGGERS = {
    "RandUCB": (sb.RandUCB(), 0.1),
    "LinTS": (sb.LinTS(), 0.1),
    "EpsilonGreedy": (sb.EpsilonGreedy(epsilon=0.2), 0.0),
    "uniform": (sb.EpsilonGreedy(epsilon=1.0), 0.0),
}
DELTAS = (0.05, 0.01)
ROWS = 4000
LOOKS = np.unique(np.geomspace(30, ROWS, 60).astype(np.int64))


def live_run(policy, floor, means, seed, gaussian):
    """The rows of one run."""
    arms = len(means)
    agent = sb.Agent(policy, dim=arms, noise_std=0.5, seed=seed, floor=floor, probabilities=True)
    context, arm = np.zeros(ROWS, dtype=np.int64), np.zeros(ROWS, dtype=np.int64)
    reward, given = np.zeros(ROWS), np.zeros((ROWS, arms))
    features = np.eye(arms)[None]
    noise = 0.5 * np.random.default_rng([seed, 5]).normal(size=ROWS) if gaussian else np.zeros(0)
    rng = make_rng(seed, 1, ENVIRONMENT)
    log = (context, arm, reward, given)
    play(agent, features, np.array([means]), noise, rng, *log)
    every = np.arange(ROWS)
    return Rows(
        where=every,
        names=[str(a) for a in range(arms)],
        codes=np.tile(np.arange(arms), (ROWS, 1)),
        counts=np.full(ROWS, arms),
        mask=np.ones((ROWS, arms), dtype=bool),
        place=arm,
        propensity=given[every, arm],
        probabilities=given,
        reward=reward,
        features=features[context],
        context=None,
    )


def by_intervals(rows):
    """The first look with a verdict of stop for each arm, for each delta; None without one."""
    arms = rows.mask.shape[1]
    q = as_model("linear").predict(rows)
    above = np.ones((len(DELTAS), arms, len(LOOKS)), dtype=bool)
    for one, other in combinations(range(arms), 2):
        signed = np.zeros(rows.mask.shape)
        signed[:, one], signed[:, other] = 1.0, -1.0
        terms = terms_of(rows, signed, q, (0.0, 1.0), (Bounding(), Bounding()), True)
        for first, bounded, slack in (
            (one, terms.lower, terms.lower_slack),
            (other, terms.upper, terms.upper_slack),
        ):
            gains = np.zeros((len(LOOKS), len(GRID)))
            follow(bounded, slack, -1.0, LOOKS, GRID, np.zeros(len(GRID)), np.zeros(BEFORE), gains)
            # The bound is above 0 where the wealth against a mean difference of 0 has reached 1 / tail.
            wealth = np.logaddexp.reduce(np.log(WEIGHTS / WEIGHTS.sum()) + gains, axis=1)
            for place, delta in enumerate(DELTAS):
                above[place, first] &= wealth > -math.log(delta / (arms * (arms - 1)))
    return [[int(LOOKS[stops.argmax()]) if stops.any() else None for stops in of_delta] for of_delta in above]


def by_test(rows, bell):
    """The same of the linear test: of coins, or, of Gaussian rewards, with σ estimated."""
    arms = rows.mask.shape[1]
    chosen = rows.features[np.arange(ROWS), rows.place]
    means = {str(arm): np.eye(arms)[arm] for arm in range(arms)}
    found = [[None] * arms for _ in DELTAS]
    for look in LOOKS:
        features, reward = chosen[:look], rows.reward[:look]
        if bell:
            tested = likelihood_ratio(features, reward, means, None, 1.0, 0.0)
        else:
            first = set_aside(features)
            tested = None if first is None else judged(Coins(features, reward, first).test(means, 0.0), 1.0)
        for place, delta in enumerate(DELTAS):
            if tested is not None and tested.statistic > tested.threshold - math.log(delta):
                best = int(tested.best)
                if found[place][best] is None:
                    found[place][best] = int(look)
    return found


def stopped(kind, seed):
    """Where the runs of a seed stop, for each arm: by the intervals, or by the linear tests."""
    found = {}
    for world, means in WORLDS.items():
        for logger, (policy, floor) in LOGGERS.items():
            rows = live_run(policy, floor, means, seed, gaussian=False)
            if kind == "intervals":
                kinds = {"intervals, 0 or 1": by_intervals(rows)}
            else:
                bell = live_run(policy, floor, means, seed, gaussian=True)
                kinds = {
                    "linear test, 0 or 1": by_test(rows, False),
                    "linear test, Gaussian": by_test(bell, True),
                }
            for name, stops in kinds.items():
                for delta, arms in zip(DELTAS, stops, strict=True):
                    found[f"{world}|{logger}|{delta}|{name}"] = arms
    return found


def play_all(path, kind, minutes):
    """Add lines until so many minutes of CPU time are spent, from the first seed that is missing."""
    known = set()
    if path.exists():
        lines = [json.loads(text) for text in path.read_text().splitlines()]
        known = {line["seed"] for line in lines if line["kind"] == kind}
    with path.open("a") as file:
        for seed in range(10_000):
            if seed in known:
                continue
            if time.process_time() > 60 * minutes:
                return
            line = {"seed": seed, "kind": kind, "found": stopped(kind, seed)}
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
            file.flush()


def summed(path):
    """For each cell the runs, the wrong ones, and at which looks right ones stop."""
    runs = defaultdict(list)
    for text in path.read_text().splitlines():
        for cell, stops in json.loads(text)["found"].items():
            runs[cell].append(stops)
    found = {}
    for cell, arms in runs.items():
        means = WORLDS[cell.split("|")[0]]
        best = int(np.argmax(means)) if cell.startswith("gap|") else None
        wrong = sum(any(stop is not None and arm != best for arm, stop in enumerate(stops)) for stops in arms)
        right = [stops[best] for stops in arms if best is not None and stops[best] is not None]
        values, counts = np.unique(right, return_counts=True)
        at = dict(zip(map(int, values), map(int, counts), strict=True))
        found[cell] = {"runs": len(arms), "wrong": wrong, "stops": at}
    return found


def main():
    """Play, sum up, or print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--play", type=Path)
    parser.add_argument("--kind", choices=("intervals", "tests"), default="intervals")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--sum", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    if given.play:
        play_all(given.play, given.kind, given.minutes)
    if given.sum:
        given.json.write_text(json.dumps(summed(given.sum), separators=(",", ":")) + "\n")
    if given.table:
        table(json.loads(given.table.read_text()))


KINDS = ("intervals, 0 or 1", "linear test, 0 or 1, told", "linear test, Gaussian, told")
"""Of the table; the tests that are told σ are those of the first run."""


def pooled(found, kind, delta, logger=None):
    """Wrong runs and runs of all worlds, of one logger or of all."""
    some = [
        one
        for key, one in found.items()
        if key.endswith(f"|{delta}|{kind}") and (logger is None or f"|{logger}|" in key)
    ]
    return sum(one["wrong"] for one in some), sum(one["runs"] for one in some)


def page_table(found):
    """Rows of docs/evaluation.md: wrong runs of the three worlds, and of the gap how soon right ones stop."""
    lines = []
    for delta in DELTAS:
        fixed = (norm.ppf(1 - delta) + norm.ppf(0.9)) ** 2 * 0.49 * 2 / 0.1**2
        for logger in LOGGERS:
            wrong = [pooled(found, kind, delta, logger) for kind in KINDS]
            cells = [f"{bad} of {runs:,}" for bad, runs in wrong]
            for kind in KINDS[:2]:
                one = found[f"gap|{logger}|{delta}|{kind}"]
                stops = np.repeat([float(at) for at in one["stops"]], list(one["stops"].values()))
                within = 100 * (stops <= 3 * fixed).sum() / one["runs"]
                every = np.sort(np.concatenate([stops, np.full(one["runs"] - len(stops), np.inf)]))
                median = every[one["runs"] // 2]
                cells.append(f"{within:.0f}%, {f'{median:,.0f}' if median < np.inf else f'over {ROWS:,}'}")
            lines.append(f"| {delta} | {logger} | {' | '.join(cells)} |")
    return lines


def table(found):
    """Print them, and every cell."""
    for key, one in found.items():
        risk = float(key.split("|")[2])
        most = risk + 3 * math.sqrt(risk * (1 - risk) / one["runs"])
        print(f"{key}: {one['wrong']} of {one['runs']} wrong, at most {100 * most:.1f}%")
    print("\n".join(page_table(found)))


if __name__ == "__main__":
    main()
