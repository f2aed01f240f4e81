"""Named features: what encoding, deciding and learning take, and decisions that change with the units of a column.

Usage: OPENBLAS_NUM_THREADS=1 python benchmarks/features.py [--part times] [--part told] [--part untold]
    [--rounds 7] [--decisions 100000] [--write FILE]

What is written is put beside what the file has of other parts.

1. Encoding 20 names (10 numbers, 10 words of four values): what a decision does to check its values, take them in
   and write its features, with columns and types known. The thread's processor time; the median over rounds and the
   extremes, beside what `json.loads` takes for the same values, in turns.
2. Times beside each other, in the same rounds: to decide and learn from these names with `Bandit` among three arms, no
   log kept; and with `Agent`, 26 blocks of 17 features (a matrix each time), from Python, with probabilities.
3. Two bandits of one seed on the same visitors and rewards, one column of the second multiplied by 1000 or 0.001, or
   with 1,000 added, with σ told and without: decisions that differ within the first 20, and afterwards. One difference
   may bring others. A tie is a decision whose two largest probabilities are within 1e-9 of each other.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np

import solid_bandits as sb
from solid_bandits.features.design import Design

NUMBERS = [f"n{number}" for number in range(10)]
WORDS = [f"w{number}" for number in range(10)]
NOISE = 0.5
CHANGES = {"times 1000": (1000.0, 0.0), "times 0.001": (0.001, 0.0), "plus 1,000": (1.0, 1000.0)}


def rows(count, rng):
    """Return rows of 20 named values."""
    for _ in range(count):
        values = {name: float(one) for name, one in zip(NUMBERS, rng.normal(10.0, 3.0, size=10), strict=True)}
        yield values | {name: "abcd"[one] for name, one in zip(WORDS, rng.integers(4, size=10), strict=True)}


def encoding(rounds):
    """Return the microseconds of encoding and of reading JSON: median and extremes."""
    rng = np.random.default_rng(0)
    design = Design(sb.Features(context=[*NUMBERS, *WORDS], arms=["a", "b", "c"]))
    for values in rows(2_000, rng):
        design.take(design.check(values, None))
    given = list(rows(2_000, rng))
    texts = [json.dumps(values) for values in given]
    found = {"encode": [], "json": []}
    for _ in range(rounds):
        began = time.thread_time_ns()
        for values in given:
            named = design.check(values, None)
            design.take(named)
            design.encode(named)
        middle = time.thread_time_ns()
        for text in texts:
            json.loads(text)
        ended = time.thread_time_ns()
        found["encode"].append((middle - began) / 1e3 / len(given))
        found["json"].append((ended - middle) / 1e3 / len(given))
    return {name: [float(np.median(one)), min(one), max(one)] for name, one in found.items()}


def playing(rounds):
    """Microseconds of deciding and learning: from 20 names, and in blocks: median and extremes."""
    rng = np.random.default_rng(3)
    names = sb.Bandit(context=[*NUMBERS, *WORDS], arms=["a", "b", "c"], seed=0, log=False, window=10)
    blocks = sb.Agent(dim=17, blocks=26, seed=0, probabilities=True)
    given = list(rows(1_000, rng))
    offers = np.empty((1_000, 26, 17))
    offers[:, :, 0] = np.arange(26)
    offers[:, :, 1:] = rng.normal(size=(1_000, 1, 16))
    rewards = rng.normal(size=1_000)
    found = {"decide and learn, 20 names": [], "decide and learn, 26 blocks of 16": []}
    for turn in range(rounds + 1):
        began = time.thread_time_ns()
        for values, reward in zip(given, rewards, strict=True):
            names.learn(names.decide(values).event_id, reward)
        middle = time.thread_time_ns()
        for offer, reward in zip(offers, rewards, strict=True):
            blocks.learn(blocks.decide(offer), reward)
        ended = time.thread_time_ns()
        if turn:  # the first compiles, and adds the columns
            for one, took in zip(found.values(), (middle - began, ended - middle), strict=True):
                one.append(took / 1e3 / 1_000)
    return {name: [float(np.median(one)), min(one), max(one)] for name, one in found.items()}


def differences(change, decisions, noise_std):
    """Decisions that differ: among the first 20, afterwards, and how many of these are ties."""
    factor, offset = change
    rng = np.random.default_rng(1)
    arms = ["climate", "football", "science"]
    pair = [
        sb.Bandit(
            arms=arms,
            context=["age", "income", "device"],
            noise_std=noise_std,
            seed=2,
            floor=0.05,
            log=False,
            window=100,
        )
        for _ in range(2)
    ]
    theta = rng.normal(size=(3, 3))
    early = late = ties = 0
    for step in range(decisions):
        age, income = float(rng.normal(40.0, 12.0)), float(np.exp(rng.normal(8.0, 0.5)))
        device = ["ios", "tv"][rng.integers(2)]
        noise = rng.normal(0.0, NOISE, size=3)
        seen = []
        for bandit, told in zip(pair, (age, factor * age + offset), strict=True):
            decision = bandit.decide({"age": told, "income": income, "device": device})
            mean = theta[decision.place] @ [(age - 40) / 12, (income - 3000) / 2000, device == "tv"]
            bandit.learn(decision.event_id, float(mean + noise[decision.place]))
            seen.append(decision)
        if seen[0].arm != seen[1].arm:
            top = np.sort(seen[0].probabilities)[-2:]
            early, late = early + (step < 20), late + (step >= 20)
            ties += step >= 20 and bool(top[1] - top[0] <= 1e-9)
    return {"first 20": early, "afterwards": late, "of them ties": ties, "decisions": decisions}


def main():
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["times", "told", "untold"], action="append", help="default: all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    parts = given.part or ["times", "told", "untold"]
    found = {}
    if given.write is not None and given.write.is_file():
        found = json.loads(given.write.read_text(encoding="utf-8"))

    def note(name, what):
        found[name] = what
        print(name, json.dumps(what), flush=True)
        if given.write is not None:
            given.write.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    if "times" in parts:
        note("machine", platform.processor() or platform.machine())
        note("encoding, µs", encoding(given.rounds))
        note("playing, µs", playing(given.rounds))
    for part, noise_std in (("told", NOISE), ("untold", None)):
        for name, change in CHANGES.items() if part in parts else ():
            note(
                name if part == "untold" else f"{name}, σ told",
                differences(change, given.decisions, noise_std),
            )


if __name__ == "__main__":
    main()
