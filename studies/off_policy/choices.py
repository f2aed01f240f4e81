"""How often `choose` chooses well, in worlds where it answers, and how often it answers.

    python studies/off_policy/choices.py --worlds 500 --minutes 30 --json studies/off_policy/choices.json   # resumable
    python studies/off_policy/choices.py --table studies/off_policy/choices.json

This plan was committed before anything was played.

A world: 100 contexts of 3 arms in R^4, rewards θᵀφ plus Gaussian noise of σ 0.5, |θ| log-uniform between 0.05 and 1.
The log has 4,000 rows of uniform choices. Candidates: EpsilonGreedy(ε) for two ε drawn from 0.02 to 0.8 (log-uniform),
and RandUCB. `choose` with 10 blocks, so that runs have about 133 decisions. The truth: the mean expected reward of the
first 133 decisions of each candidate, over 300 live runs of it in the same world.

Counted: worlds in which it answers; of those, the share in which its choice is within one standard error (of the
difference, as the table has it) of the best by the truth. And the worlds in which the true gap between the best and the
second exceeds 3 standard errors of their difference: the share in which it answers. Wanted: at least 90%, and 70%.
"""

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
from intervals import rows

import solid_bandits as sb
from solid_bandits import ope
from solid_bandits.core.randomness import ENVIRONMENT, POLICY, make_rng
from solid_bandits.policies import contract

ROWS, ARMS, DIM, SIGMA, BLOCKS = 4000, 3, 4, 0.5, 10
LENGTH = ROWS // BLOCKS // ARMS
LIVE = 300
CONTEXTS = 100


def world(seed):
    """Contexts, mean rewards, the log and the candidates."""
    rng = np.random.default_rng([seed, 23])
    theta = rng.normal(size=DIM)
    theta *= math.exp(rng.uniform(math.log(0.05), 0.0)) / np.linalg.norm(theta)
    contexts = rng.normal(size=(CONTEXTS, ARMS, DIM))
    features = contexts[rng.integers(CONTEXTS, size=ROWS)]
    arm = rng.integers(ARMS, size=ROWS)
    reward = features[np.arange(ROWS), arm] @ theta + SIGMA * rng.normal(size=ROWS)
    log = {
        "arm": arm,
        "reward": reward,
        "probabilities": np.full((ROWS, ARMS), 1 / ARMS).tolist(),
        "features": features.tolist(),
    }
    exploring = np.exp(rng.uniform(math.log(0.02), math.log(0.8), size=2))
    candidates = {f"ε = {one:.4f}": sb.EpsilonGreedy(epsilon=float(one)) for one in exploring}
    return contexts, contexts @ theta, log, candidates | {"RandUCB": sb.RandUCB()}


def live(policy, contexts, means, seed, noise_std):
    """The mean expected reward of live runs."""
    total = 0.0
    agent = sb.Agent(policy, dim=DIM, noise_std=noise_std, seed=seed, probabilities=True)
    for run in range(LIVE):
        # As an agent of its own with this seed; to construct one takes longer than its run.
        own = make_rng(seed * LIVE + run, 0, POLICY)
        learner = contract.start(agent.policy, agent._setting, None, own)
        rng = make_rng(seed, run, ENVIRONMENT)
        noise = SIGMA * np.random.default_rng([seed, run]).normal(size=LENGTH)
        context, arm = np.zeros(LENGTH, dtype=np.int64), np.zeros(LENGTH, dtype=np.int64)
        log = (context, arm, np.zeros(LENGTH), np.zeros((LENGTH, ARMS)))
        rows(learner, contexts, means, noise, 0.0, agent._floor_rng, rng, *log)
        total += float(means[context, arm].mean())
    return total / LIVE


def one(seed):
    """A world."""
    contexts, means, log, candidates = world(seed)
    found = ope.choose(log, candidates, blocks=BLOCKS, seed=seed)
    spread = float(np.std(log["reward"], ddof=1))
    truth = {label: live(policy, contexts, means, seed, spread) for label, policy in candidates.items()}
    errors = dict(zip(found.table["policy"], found.table["standard error"], strict=True))
    best, second = sorted(truth, key=truth.get, reverse=True)[:2]
    first = found.table["policy"][0]
    # The table has standard errors of differences to its first; of best and second, the larger of theirs to it.
    between = max(errors[best], errors[second])
    behind = truth[best] - truth[first]
    return {
        "seed": seed,
        "answers": found.best is not None,
        "good": behind <= (errors[best] if best != first else 0.0),
        "gap": truth[best] - truth[second],
        "error": between,
    }


def table(lines):
    """Print the shares."""
    answered = [line for line in lines if line["answers"]]
    wide = [line for line in lines if line["gap"] > 3 * line["error"]]
    print(f"{len(lines)} worlds, {len(answered)} answered")
    print(f"good of those: {np.mean([line['good'] for line in answered]):.3f}")
    print(
        f"gap above 3 standard errors: {len(wide)}, answered {np.mean([line['answers'] for line in wide]):.3f}"
    )


def main():
    """Play or print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    if given.table:
        table(json.loads(given.table.read_text()))
        return
    lines = json.loads(given.json.read_text()) if given.json.exists() else []
    for seed in range(len(lines), given.worlds):
        if time.process_time() > 60 * given.minutes:
            break
        lines.append(one(seed))
        given.json.write_text(json.dumps(lines, separators=(",", ":")) + "\n")
    table(lines)


if __name__ == "__main__":
    main()
