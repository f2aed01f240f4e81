"""What columns in different units cost: clicks, an income in euros beside shares; and one column changed.

Usage: python studies/spread.py

Prints the tables of docs/scaling.md. 20 worlds of 5,000 rounds, 4 arms, 4 columns and an intercept per arm; policies
are told nothing.
"""

import warnings

import numpy as np
import polars as pl

import solid_bandits as sb

COLUMNS = ["income", "home", "work", "leisure"]
ARMS, ROUNDS, WORLDS = 4, 5_000, 20
POLICIES = {"RandUCB()": sb.RandUCB()} | {
    f'{name}(ridge="evidence")': kind(ridge="evidence")
    for name, kind in (("LinTS", sb.LinTS), ("LinUCB", sb.LinUCB), ("Greedy", sb.Greedy))
}
FACTORS = [1, 10, 30, 100, 300, 1_000, 10_000, 100_000]


def world(number, rounds=ROUNDS):
    """Columns as they are, mean clicks and clicks of one world."""
    rng = np.random.default_rng([number, 219])
    income = 35_000 * np.exp(rng.normal(0, 0.5, rounds))
    columns = np.column_stack([income, rng.beta(2, 3, (rounds, 3))])
    means = rng.normal(0.13, 0.025, ARMS) + standardised(columns) @ rng.normal(0, 0.05, (4, ARMS))
    means = means.clip(0.005, 0.9)
    return columns, means, (rng.random((rounds, ARMS)) < means).astype(float)


def standardised(columns):
    """Each column with mean 0 and standard deviation 1."""
    return (columns - columns.mean(axis=0)) / columns.std(axis=0)


def stream_of(columns, clicks):
    """The rounds as a stream: joint features of the columns, and an intercept per arm."""
    named = dict(zip(COLUMNS, columns.T, strict=True))
    named |= {f"click_{arm}": clicks[:, arm] for arm in range(ARMS)}
    return sb.streams.from_frame(pl.DataFrame(named), reward="click_{arm}", context=COLUMNS)


def earned(of, policies=POLICIES, worlds=WORLDS):
    """Mean reward per round of each policy in each world, shape (policies, worlds)."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "features are of very different spread")
        results = sb.simulate(of, policies, runs=worlds, tell_noise=False, progress=False)
    last = results.table.filter(pl.col("step") == pl.col("step").max())
    rows = [last.filter(pl.col("policy") == name).sort("run")["reward"].to_numpy() for name in policies]
    return np.array(rows) / results.table["step"].max()


def said(values):
    """A mean and its standard error."""
    return f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def main():
    """Print both tables."""
    worlds = [world(number) for number in range(WORLDS)]
    ways = {
        "as they are": lambda columns: columns,
        "divided by their means": lambda columns: columns / columns.mean(axis=0),
        "standardised": standardised,
    }
    found = {
        way: earned(lambda run, how=how: stream_of(how(worlds[run][0]), worlds[run][2]))
        for way, how in ways.items()
    }
    print("| policy | " + " | ".join(ways) + " |\n" + "|---" * (len(ways) + 1) + "|")
    for place, name in enumerate(POLICIES):
        print(f"| `{name}` | " + " | ".join(said(found[way][place]) for way in ways) + " |")
    uniform = np.array([clicks.mean() for _, _, clicks in worlds])
    fixed = np.array([clicks.mean(axis=0).max() for _, _, clicks in worlds])
    best = np.array([means.max(axis=1).mean() for _, means, _ in worlds])
    print(f"uniform {said(uniform)}, best fixed arm {said(fixed)}, the true means known {said(best)}")

    randucb = {"RandUCB()": sb.RandUCB()}
    print("| RandUCB(), f | " + " | ".join(f"{one:,}" for one in FACTORS) + " |")
    changes = {
        "first column times f": lambda columns, f: columns * [f, 1, 1, 1],
        "first column divided by f": lambda columns, f: columns / [f, 1, 1, 1],
        "first column plus f": lambda columns, f: columns + np.array([f, 0, 0, 0]),
    }
    for name, change in changes.items():
        cells = []
        for factor in FACTORS:
            got = earned(
                lambda run, by=factor, change=change: stream_of(
                    change(standardised(worlds[run][0]), by), worlds[run][2]
                ),
                randucb,
            )
            cells.append(f"{got.mean():.3f}")
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
