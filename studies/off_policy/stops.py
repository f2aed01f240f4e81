"""How soon any valid verdict can stop: the most that a test of the same runs could reach, and what arms were given.

    python studies/off_policy/stops.py --runs 400 --json studies/off_policy/stops.json

The world with a gap of `verdicts.py`: two arms that earn 0.4 and 0.5. A verdict that is wrong with probability at most
delta where the weaker arm earns 0.5 as well stops by decision T with at most the power at level delta of the best test
of these two worlds from the first T decisions. The logger's choices are the same function of what it has seen in both,
so they cancel, and so do the rewards of the better arm: the likelihood ratio is that of the weaker arm's rewards, 0.5^n
/ (0.4^s 0.6^(n - s)) with n of them and s successes (Neyman and Pearson). Its distribution in both worlds is found by
playing; runs of the second world give the level. T is 3 times the sample of the fixed-time test, as in `verdicts.py`.

Also: the decisions after which a z-test with what the arms were given in fact, n_1 n_2 / (n_1 + n_2), has the power
that the fixed-time test has under uniform choices, by the median run.
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np
from intervals import rows
from scipy.stats import norm
from verdicts import DELTAS, LOGGERS

import solid_bandits as sb
from solid_bandits.core.randomness import ENVIRONMENT, FLOOR, POLICY, make_rng
from solid_bandits.policies import contract

LONG = 6_000


def runs_of(policy, floor, means, runs, first):
    """Arms and rewards, shape (runs, decisions)."""
    arms, rewards = np.zeros((runs, LONG), dtype=np.int8), np.zeros((runs, LONG), dtype=np.int8)
    agent = sb.Agent(policy, dim=2, noise_std=0.5, seed=first, floor=floor, probabilities=True)
    for run in range(runs):
        seed = first + run
        # As an agent of its own with this seed; to construct one takes longer than its run.
        learner = contract.start(agent.policy, agent._setting, None, make_rng(seed, 0, POLICY))
        log = (
            np.zeros(LONG, dtype=np.int64),
            np.zeros(LONG, dtype=np.int64),
            np.zeros(LONG),
            np.zeros((LONG, 2)),
        )
        world, floors = make_rng(seed, 1, ENVIRONMENT), make_rng(seed, 0, FLOOR)
        rows(learner, np.eye(2)[None], np.array([means]), np.zeros(0), floor, floors, world, *log)
        arms[run], rewards[run] = log[1], log[2]
    return arms, rewards


def ratio(arms, rewards, until):
    """The logarithm of the likelihood ratio of each run."""
    weak = arms[:, :until] == 0
    good = (rewards[:, :until] * weak).sum(axis=1)
    return good * math.log(0.4 / 0.5) + (weak.sum(axis=1) - good) * math.log(0.6 / 0.5)


def main():
    """Play and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--json", type=Path, required=True)
    given = parser.parse_args()
    found = {}
    for logger, (policy, floor) in LOGGERS.items():
        arms, rewards = runs_of(policy, floor, (0.4, 0.5), given.runs, 100_000)
        same = runs_of(policy, floor, (0.5, 0.5), given.runs, 200_000)
        weak = np.cumsum(arms == 0, axis=1)
        pairs = weak * (np.arange(1, LONG + 1) - weak) / np.arange(1, LONG + 1)
        for delta in DELTAS:
            wanted = (norm.ppf(1 - delta) + norm.ppf(0.9)) ** 2 * 0.49 / 0.1**2
            fixed = 2 * wanted
            until = int(3 * fixed)
            level = np.quantile(ratio(*same, until), 1 - delta)
            enough = np.sort(
                np.where(pairs[:, -1] >= wanted / 2, (pairs >= wanted / 2).argmax(axis=1) + 1, np.inf)
            )
            median = enough[given.runs // 2]
            found[f"{logger}|{delta}"] = {
                "runs": given.runs,
                "fixed": round(fixed),
                "share of the weaker arm": round(float(weak[:, until - 1].mean() / until), 4),
                "at most": round(float((ratio(arms, rewards, until) > level).mean()), 4),
                "z-test with these arms": None if math.isinf(median) else int(median),
            }
            print(logger, delta, found[f"{logger}|{delta}"], flush=True)
    given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
