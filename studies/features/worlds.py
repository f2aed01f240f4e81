# ruff: noqa: RUF012 (what a world has does not change)
"""Regret of named features beside features made by hand, and beside raw ones, on three worlds of mixed columns.

Usage: OPENBLAS_NUM_THREADS=1 python studies/features/worlds.py [--runs 100] [--first 0] [--steps 2000]
    [--world shop] [--write FILE]

The plan is in plan.md.
"""

import argparse
import json
from pathlib import Path

import numpy as np

import solid_bandits as sb

NOISE = 0.5
TAGS = [f"t{number}" for number in range(6)]


class World:
    """A world: how contexts are drawn, and what features made by hand are."""

    arms = 0
    numbers: dict = {}
    """Name -> true mean and spread."""
    words: dict = {}
    """Name -> all words."""
    missing: tuple = ()

    def draw(self, rng):
        """One context."""
        raise NotImplementedError

    def by_hand(self, values, raw=False):
        """The features of a context, as somebody who knows the world would make them."""
        row = [1.0]
        for name, (mean, spread) in self.numbers.items():
            value = values.get(name)
            row.append(0.0 if value is None else value if raw else (value - mean) / spread)
            if name in self.missing:
                row.append(float(value is None))
        for name, words in self.words.items():
            said = values[name] if isinstance(values[name], list) else [values[name]]
            row += [float(word in said) for word in words]
        return np.array(row)


def one_of(words, rng):
    """A word, the k-th with weight 1/k."""
    weights = 1.0 / np.arange(1, len(words) + 1)
    return words[rng.choice(len(words), p=weights / weights.sum())]


class Shop(World):
    """Ages, incomes in cents, devices, members."""

    arms = 3
    numbers = {
        "age": (40.0, 12.0),
        "income": (np.exp(14.9 + 0.125), np.exp(14.9 + 0.125) * np.sqrt(np.expm1(0.25))),
    }
    words = {"device": ["ios", "android", "web"], "member": [True]}

    def draw(self, rng):
        """One visitor."""
        return {
            "age": float(rng.normal(40, 12)),
            "income": float(np.exp(rng.normal(14.9, 0.5))),
            "device": one_of(self.words["device"], rng),
            "member": bool(rng.random() < 0.2),
        }


class Plant(World):
    """Numbers with large offsets, and many words."""

    arms = 5
    numbers = {"kelvin": (290.0, 6.0), "year": (2023.0, 2.0), "pressure": (101_325.0, 900.0)}
    words = {"line": [f"line {number}" for number in range(12)]}

    def draw(self, rng):
        """One batch."""
        return {
            "kelvin": float(rng.normal(290, 6)),
            "year": int(rng.integers(2020, 2027)),
            "pressure": float(rng.normal(101_325, 900)),
            "line": one_of(self.words["line"], rng),
        }


class Visits(World):
    """Missing values, many words, tags."""

    arms = 8
    numbers = {"minutes": (20.0, 20.0), "score": (0.5, np.sqrt(1 / 12))}
    words = {"country": [f"c{number}" for number in range(20)], "tags": TAGS}
    missing = ("minutes",)

    def draw(self, rng):
        """One visit."""
        values = {
            "score": float(rng.random()),
            "country": one_of(self.words["country"], rng),
            "tags": [tag for tag in TAGS if rng.random() < 0.3],
        }
        minutes = float(rng.exponential(20.0))
        return values if rng.random() < 0.25 else {"minutes": minutes, **values}


WORLDS = {"shop": Shop(), "plant": Plant(), "visits": Visits()}


def play(world, seed, steps):
    """Regrets of the three in one run."""
    rng = np.random.default_rng([31, seed])
    rows, values = [], []
    for _ in range(steps):
        values.append(world.draw(rng))
        rows.append(world.by_hand(values[-1]))
    rows = np.array(rows)
    theta = rng.normal(size=(world.arms, rows.shape[1])) / np.sqrt(rows.shape[1])
    means = rows @ theta.T
    rewards = means + rng.normal(0.0, NOISE, size=means.shape)
    arms = [f"arm {number}" for number in range(world.arms)]
    names = list(dict.fromkeys([*world.numbers, *world.words]))
    named = sb.Bandit(arms=arms, context=names, seed=seed, log=False)
    hand, raw = (
        sb.Agent(dim=1 + rows.shape[1], blocks=world.arms, seed=seed, probabilities=True) for _ in range(2)
    )
    regret = np.zeros(3)
    numbers = np.arange(world.arms)[:, None]
    for step, told in enumerate(values):
        decision = named.decide(told)
        named.learn(decision.event_id, rewards[step, decision.place])
        best = means[step].max()
        regret[0] += best - means[step, decision.place]
        for place, agent, row in ((1, hand, rows[step]), (2, raw, world.by_hand(told, raw=True))):
            decision = agent.decide(np.hstack([numbers, np.tile(row, (world.arms, 1))]))
            agent.learn(decision, rewards[step, decision.place])
            regret[place] += best - means[step, decision.place]
    return regret


def ratio(one, other):
    """Ratio of means of pairs and its 95% interval, by the delta method."""
    value = one.mean() / other.mean()
    half = 1.96 * np.std(one - value * other, ddof=1) / np.sqrt(len(one)) / other.mean()
    return value, value - half, value + half


def main():
    """Play, print a table, and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="seed of the first run")
    parser.add_argument("--world", choices=list(WORLDS), action="append", help="default: all")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    found = {}
    for name in given.world or WORLDS:
        seeds = range(given.first, given.first + given.runs)
        regrets = np.array([play(WORLDS[name], seed, given.steps) for seed in seeds])
        value, low, high = ratio(regrets[:, 0], regrets[:, 1])
        beside_raw = ratio(regrets[:, 0], regrets[:, 2])
        found[name] = {
            "regrets": np.round(regrets, 4).tolist(),
            "ratio": [value, low, high],
            "raw": list(beside_raw),
        }
        print(
            f"{name}: named {regrets[:, 0].mean():.1f}, by hand {regrets[:, 1].mean():.1f}, raw "
            f"{regrets[:, 2].mean():.1f}; named / by hand {value:.4f} [{low:.4f}, {high:.4f}], named / raw "
            f"{beside_raw[0]:.3f} [{beside_raw[1]:.3f}, {beside_raw[2]:.3f}]",
            flush=True,
        )
        if given.write is not None:
            given.write.write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
