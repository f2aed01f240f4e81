"""How often intervals hold the value of a policy, on logs of policies that learn. Truth by enumeration.

    python studies/off_policy/intervals.py --logs 1000 --steps 2000

Ten contexts of four arms in R^4, rewards 0 or 1 with linear means from 0.15 to 0.85, drawn once. Loggers learn, with a
floor of 0.05. Three targets: uniform; greedy by the true θ*; and a softmax by another θ.
"""

import argparse
import json
import math
import time

import numpy as np

import solid_bandits as sb
from solid_bandits._internal.compiling import jit_allocating
from solid_bandits.core import agent_kernels
from solid_bandits.core.randomness import ENVIRONMENT, make_rng, uniform
from solid_bandits.ope import adaptive, anytime, estimators
from solid_bandits.ope.models import as_model
from solid_bandits.ope.rows import Rows
from solid_bandits.ope.targets import Target
from solid_bandits.ope.terms import collect
from solid_bandits.policies import contract

CONTEXTS, ARMS, DIM = 10, 4, 4
LOGGERS = {
    "LinTS": sb.LinTS(),
    "RandUCB": sb.RandUCB(),
    "EpsilonGreedy": sb.EpsilonGreedy(epsilon=0.1),
}
LEVEL = 0.95


def play(agent, features, means, noise, world, context, arm, reward, probabilities):
    """One log of an `sb.Agent`, row by row: rewards are mean + noise, or 0 or 1 where there is no noise."""
    log = (context, arm, reward, probabilities)
    rows(agent._compiled, features, means, noise, agent.floor, agent._floor_rng, world, *log)


@jit_allocating
def rows(agent, features, means, noise, floor, rng, world, context, arm, reward, probabilities):
    """The rows of `play`."""
    mask = np.ones(features.shape[1], dtype=np.bool_)
    for t in range(context.shape[0]):
        x = int(uniform(world) * features.shape[0])
        a, _ = agent_kernels.act(agent, 0, features[x], mask, probabilities[t], floor, rng)
        context[t], arm[t] = x, a
        if noise.shape[0] > 0:
            reward[t] = means[x, a] + noise[t]
        else:
            reward[t] = 1.0 if uniform(world) < means[x, a] else 0.0
        contract.update(agent, 0, a, features[x, a], reward[t], 0)


def problem(arms=ARMS, rate=0.5):
    """Features, mean rewards around a rate, from 0.3 to 1.7 times it, and the targets' probabilities."""
    rng = np.random.default_rng(2026)
    features = rng.normal(size=(CONTEXTS, arms, DIM)) / math.sqrt(DIM)
    theta = rng.normal(size=DIM)
    means = features @ theta
    centre, scale = means.mean(), 0.35 / np.abs(means - means.mean()).max()
    means = 2 * rate * (0.5 + scale * (means - centre))  # linear in [features, 1]
    features = np.concatenate([features, np.ones((CONTEXTS, arms, 1))], axis=2)
    other = features[..., :DIM] @ rng.normal(size=DIM) * 2
    soft = np.exp(other) / np.exp(other).sum(axis=1, keepdims=True)
    best = np.eye(arms)[means.argmax(axis=1)]
    targets = {"uniform": np.full((CONTEXTS, arms), 1 / arms), "greedy": best, "softmax": soft}
    return features, means, targets


class Blocks:
    """A log in memory, as the estimators read it."""

    left_out = 0

    def __init__(self, rows):
        self.rows = rows

    def blocks(self):
        """All rows."""
        yield self.rows


def one_log(policy, features, means, steps, seed, floor, noise_std=0.5, noise=None):
    """The contexts and rows of one log."""
    arms = features.shape[1]
    agent = sb.Agent(
        policy, dim=features.shape[2], noise_std=noise_std, seed=seed, floor=floor, probabilities=True
    )
    context, arm = np.zeros(steps, dtype=np.int64), np.zeros(steps, dtype=np.int64)
    reward, probabilities = np.zeros(steps), np.zeros((steps, arms))
    world = make_rng(seed, 1, ENVIRONMENT)
    added = np.zeros(0) if noise is None else noise
    play(
        agent,
        features,
        means,
        added,
        world,
        context,
        arm,
        reward,
        probabilities,
    )
    every = np.arange(steps)
    return context, Rows(
        where=every,
        names=[str(a) for a in range(arms)],
        codes=np.tile(np.arange(arms), (steps, 1)),
        counts=np.full(steps, arms),
        mask=np.ones((steps, arms), dtype=bool),
        place=arm,
        propensity=probabilities[every, arm],
        probabilities=probabilities,
        reward=reward,
        features=features[context][..., :DIM],
        context=None,
    )


METHODS = {
    "IPS, Student": lambda terms: estimators.ips(terms, LEVEL),
    "SNIPS, normal": lambda terms: estimators.snips(terms, LEVEL),
    "DR, Student": lambda terms: estimators.doubly_robust(terms, LEVEL),
    "CADR": lambda terms: adaptive.cadr(terms, LEVEL),
    "anytime-valid": lambda terms: anytime.anytime(terms, LEVEL, (0.0, 1.0)),
}


def main():
    """Play, estimate, count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--floor", type=float, default=0.05)
    parser.add_argument("--out")
    given = parser.parse_args()
    features, means, targets = problem()
    results = []
    for name, policy in LOGGERS.items():
        start = time.process_time()
        found = {(target, method): [] for target in targets for method in METHODS}
        for seed in range(given.logs):
            context, rows = one_log(policy, features, means, given.steps, seed, given.floor)
            asked = {
                target: Target(lambda _, played=chosen[context]: played) for target, chosen in targets.items()
            }
            collected = collect(Blocks(rows), asked, as_model("linear"), (0.0, 1.0), True)
            for target in targets:
                terms = collected[target].terms
                for method, estimate in METHODS.items():
                    found[target, method].append(estimate(terms)[:3])
        for (target, method), values in found.items():
            truth = float((targets[target] * means).sum(axis=1).mean())
            value, low, high = np.array(values, dtype=float).T
            held = float(((low <= truth) & (truth <= high)).mean())
            error = (value - truth).mean() / (value.std(ddof=1) / math.sqrt(given.logs))
            results.append([name, target, method, held, float((high - low).mean()), float(error)])
            print(
                f"{name:14} {target:8} {method:14} covers {100 * held:5.1f}%  width {results[-1][4]:.4f}  "
                f"bias {error:+.1f} s.e.",
                flush=True,
            )
        print(f"{name}: {time.process_time() - start:.0f} CPU seconds", flush=True)
    if given.out:
        with open(given.out, "w", encoding="utf-8") as file:
            json.dump({"logs": given.logs, "steps": given.steps, "floor": given.floor, "rows": results}, file)


if __name__ == "__main__":
    main()
