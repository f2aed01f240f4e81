"""Random histories of named values: names of all types, missing values, new categories, arms that come and go."""

import numpy as np

from solid_bandits.features.spec import Features

WORDS = [f"word {number}" for number in range(30)]


def features_of(rng):
    """Declared features: some types told, some found; arms with blocks, arms with features of their own, or both."""
    kinds = ["number", "boolean", "category", "tags", "date", "weekday", "hour"]
    told = {"date", "weekday", "hour"}
    context = {}
    for number in range(rng.integers(0, 6)):
        kind = kinds[rng.integers(len(kinds))]
        context[f"c{number} {kind}"] = kind if kind in told or rng.random() < 0.5 else None
    form = rng.integers(3)
    arms = None if form == 2 else ["tea", "milk", "water"][: rng.integers(1, 4)]
    own = {} if form == 0 else {"price number": None, "kind category": "category"}
    names = [*context, *own]
    pairs = None
    if len(names) > 1 and rng.random() < 0.5:
        one, other = rng.choice(len(names), size=2, replace=False)
        pairs = [(names[one], names[other])]
    return Features(context, arms, own, pairs, categories=int(rng.integers(1, 8)))


def value_of(name, rng):
    if rng.random() < 0.15:
        return None
    kind = name.split()[-1]
    if kind == "number":
        return float(rng.normal(1000.0, 3.0)) if rng.random() < 0.8 else int(rng.integers(1000))
    if kind == "boolean":
        return bool(rng.random() < 0.3)
    if kind == "category":
        return WORDS[min(rng.geometric(0.2), 30) - 1]
    if kind == "tags":
        return [WORDS[one] for one in rng.integers(0, 12, size=rng.integers(0, 4))]
    day = f"2026-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}"
    return day if kind != "hour" and rng.random() < 0.5 else f"{day}T{rng.integers(24):02d}:15:00Z"


def row_of(names, rng):
    row = {name: value_of(name, rng) for name in names}
    return {name: value for name, value in row.items() if value is not None or rng.random() < 0.5}


def offer_of(features, rng, there):
    """Context and arms as a caller gives them; `there` are the arms with coefficients of their own."""
    context = row_of(features.context, rng)
    names = list(there) or [f"item {one}" for one in rng.integers(0, 50, size=4)]
    chosen = [name for name in dict.fromkeys(names) if rng.random() < 0.7] or names[:1]
    if features.arm_features:
        return context, {name: row_of(features.arm_features, rng) for name in chosen}
    return context, None if rng.random() < 0.5 else chosen


def seeds(count):
    return [np.random.default_rng([7, seed]) for seed in range(count)]
