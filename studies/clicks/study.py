"""Regret and calibration of a line and of a logistic regression on clicks (plan.md), from what is played already on.

Usage: python studies/clicks/study.py [--table]
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from logistic import LogisticRandUCB

import solid_bandits as sb

FOLDER = Path(__file__).parent
PATH = FOLDER / "runs.jsonl"
ROUNDS, RUNS, SEED, FRESH = 20_000, 20, 71, 1_000
MARKS = (2_000, ROUNDS)
POLICIES = {"linear": sb.RandUCB(), "logistic": LogisticRandUCB()}
CUT = 1e-3


class World(NamedTuple):
    """Where clicks come from."""

    rate: float
    size: float = 1.0
    """‖θ‖."""
    own: bool = False
    """Whether each of five arms has coefficients of its own."""
    linear: bool = False


WORLDS = {
    "1%": World(0.01),
    "5%": World(0.05),
    "30%": World(0.3),
    "30%, steep": World(0.3, size=3.0),
    "5%, own coefficients": World(0.05, own=True),
    "5%, linear truth": World(0.05, linear=True),
    "30%, linear truth": World(0.3, linear=True),
}
LOGISTIC = [name for name, world in WORLDS.items() if not world.linear]


def sigmoid(logits):
    """1 / (1 + e^-u)."""
    return 1.0 / (1.0 + np.exp(-logits))


class Truth:
    """One run's world: offers of features, and the true probability of each arm's click."""

    def __init__(self, world, rng):
        self.world = world
        arms, free = (5, 4) if world.own else (10, 7)
        self.arms, self.free = arms, free
        direction = rng.standard_normal((arms, free) if world.own else free)
        norm = np.abs(direction).sum() if world.linear else np.linalg.norm(direction, axis=-1, keepdims=True)
        self.theta = (0.9 if world.linear else world.size) * direction / norm
        self.intercept = 0.0 if world.linear else self._intercept(self.offers(20_000, rng)[1])

    def _intercept(self, slopes):
        """The b at which the mean rate is what it is to be, by halving."""
        low, high = -20.0, 20.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if sigmoid(middle + slopes).mean() < self.world.rate else (low, middle)
        return low

    def offers(self, count, rng):
        """Features, shape (count, arms, d), and θᵀx of each arm."""
        if self.world.own:
            x = rng.standard_normal((count, self.free)) / np.sqrt(self.free)
            slopes = x @ self.theta.T
            rows = np.column_stack([np.ones(count), x])
            features = np.zeros((count, self.arms, self.arms, 1 + self.free))
            features[:, np.arange(self.arms), np.arange(self.arms)] = rows[:, None]
            return features.reshape(count, self.arms, -1), slopes
        shape = count, self.arms, self.free
        x = (
            rng.uniform(-1, 1, shape)
            if self.world.linear
            else rng.standard_normal(shape) / np.sqrt(self.free)
        )
        return np.concatenate([np.ones((count, self.arms, 1)), x], axis=2), x @ self.theta

    def probabilities(self, slopes):
        """The true probability of a click."""
        return self.world.rate * (1 + slopes) if self.world.linear else sigmoid(self.intercept + slopes)


def calibration_error(predicted, true):
    """Mean |mean prediction - mean truth| over ten groups by prediction, over the mean rate."""
    order = np.argsort(predicted, kind="stable")
    groups = zip(np.array_split(predicted[order], 10), np.array_split(true[order], 10), strict=True)
    return float(np.mean([abs(one.mean() - other.mean()) for one, other in groups]) / true.mean())


def judge(agent, features, true):
    """Measures of the predictions for fresh offers."""
    raw = np.array([agent.predict(offer)[0] for offer in features])
    cut = np.clip(raw, CUT, 1 - CUT)
    rows, best = np.arange(len(cut)), cut.argmax(axis=1)
    return {
        "ece": calibration_error(cut.ravel(), true.ravel()),
        "ece_best": calibration_error(cut[rows, best], true[rows, best]),
        "error": float(np.sqrt(((cut - true) ** 2).mean()) / true.std()),
        "outside": float(((raw < 0) | (raw > 1)).mean()),
    }


def play(name, run):
    """Both policies on one run."""
    rng = np.random.default_rng([SEED, list(WORLDS).index(name), run])
    truth = Truth(WORLDS[name], rng)
    features, slopes = truth.offers(ROUNDS, rng)
    true = truth.probabilities(slopes)
    lots = rng.uniform(size=ROUNDS)
    fresh, fresh_slopes = truth.offers(FRESH, rng)
    fresh_true = truth.probabilities(fresh_slopes)
    line = {"world": name, "run": run}
    for label, policy in POLICIES.items():
        agent = sb.Agent(policy, dim=features.shape[2], seed=run)
        regret, line[label] = 0.0, {}
        for t in range(ROUNDS):
            decision = agent.decide(features[t])
            regret += true[t].max() - true[t, decision.arm]
            agent.learn(decision, float(lots[t] < true[t, decision.arm]))
            if t + 1 in MARKS:
                line[label][str(t + 1)] = {"regret": regret} | judge(agent, fresh, fresh_true)
    return line


def lines():
    """What was played; a line that was cut off is not counted."""
    found = []
    for text in PATH.read_text().splitlines() if PATH.exists() else []:
        try:
            found.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return found


def table():
    """The lines of the page's table."""
    played = lines()
    rng = np.random.default_rng(0)
    cell = lambda values: f"{np.mean(values):.3f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}"  # noqa: E731
    for mark in map(str, MARKS):
        print(f"\nAfter {int(mark):,} rounds\n")
        print(
            "| world | runs | regret, linear | logistic / linear | ECE, all arms | ECE, best arm | error | outside |"
        )
        print("|---|--:|--:|---|---|---|---|--:|")
        ratios = []
        for name in WORLDS:
            runs = [one for one in played if one["world"] == name]
            if len(runs) < 2:
                continue
            values = {
                label: {
                    key: np.array([one[label][mark][key] for one in runs]) for key in runs[0][label][mark]
                }
                for label in POLICIES
            }
            linear, logistic = values["linear"]["regret"], values["logistic"]["regret"]
            drawn = rng.integers(len(runs), size=(10_000, len(runs)))
            low, high = np.quantile(logistic[drawn].mean(axis=1) / linear[drawn].mean(axis=1), [0.025, 0.975])
            ratio = logistic.mean() / linear.mean()
            if name in LOGISTIC:
                ratios.append(ratio)
            both = [
                f"{cell(values['linear'][key])}; {cell(values['logistic'][key])}"
                for key in ("ece", "ece_best", "error")
            ]
            print(
                f"| {name} | {len(runs)} | {linear.mean():.0f} | {ratio:.2f} [{low:.2f}, {high:.2f}] | "
                f"{' | '.join(both)} | {values['linear']['outside'].mean():.1%} |"
            )
        if ratios:
            print(f"\nGeometric mean where the truth is logistic: {np.exp(np.log(ratios).mean()):.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", action="store_true", help="write the tables of what was played")
    if parser.parse_args().table:
        table()
    else:
        done = {(one["world"], one["run"]) for one in lines()}
        for run in range(RUNS):
            for name in WORLDS:
                if (name, run) not in done:
                    with PATH.open("a") as file:
                        file.write(json.dumps(play(name, run)) + "\n")
