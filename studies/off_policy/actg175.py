"""ACTG 175: 2,139 patients, four treatments at random with known probabilities; policies against the trial's own means.

    python studies/off_policy/actg175.py --out DIR

The data are in the package `lifelines` (0.30.3 or later), which is not needed otherwise. The reward is the change of
the CD4 count in 20 weeks, in hundreds, taken to be within 10 either way for the anytime-valid bounds. The trial
assigned each treatment with probability 1/4.
"""

import argparse
from importlib.util import find_spec
from pathlib import Path

import polars as pl

import solid_bandits as sb
from solid_bandits import logs, ope
from solid_bandits.report.evaluation import evaluation_table, write_evaluation
from solid_bandits.statistics.intervals import student

CONTEXT = [
    "age",
    "wtkg",
    "hemo",
    "homo",
    "drugs",
    "karnof",
    "z30",
    "preanti",
    "race",
    "gender",
    "symptom",
    "cd40",
    "cd80",
]
RANGE = (-10.0, 10.0)
ARMS = {0: "zidovudine", 1: "zidovudine and didanosine", 2: "zidovudine and zalcitabine", 3: "didanosine"}


def trial():
    """One row per patient, in random order: arm, reward, probability and the standardised context."""
    home = find_spec("lifelines")  # found, not imported: its data are all that is needed
    if home is None:
        raise SystemExit("the data are in the package lifelines: pip install --no-deps 'lifelines>=0.30.3'")
    data = Path(home.submodule_search_locations[0]) / "datasets" / "ACTG175.csv"
    table = pl.read_csv(data, null_values="NA")
    table = table.sample(fraction=1.0, shuffle=True, seed=0)
    return table.select(
        pl.col("arms").replace_strict(ARMS).alias("arm"),
        ((pl.col("cd420") - pl.col("cd40")) / 100).alias("reward"),
        pl.lit([0.25] * 4).alias("probabilities"),
        *((pl.col(name) - pl.col(name).mean()) / pl.col(name).std() for name in CONTEXT),
    )


def main():
    """Print every policy by every estimator, beside the trial's means; write the figure and the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    log = logs.crossed(logs.from_table(trial(), context=CONTEXT, arms=list(ARMS.values())))
    found = {"uniform": ope.evaluate(log, "uniform", logger="fixed", reward_range=RANGE)}
    print(f"{log.height} patients; mean of all {student(log['reward'].to_numpy())}")
    for arm in ARMS.values():
        found[arm] = ope.evaluate(log, f"always:{arm}", logger="fixed", reward_range=RANGE)
        own = student(log.filter(arm=arm)["reward"].to_numpy())
        print(f"{arm}: mean of its {log.filter(arm=arm).height} patients {own}")
    agent, rest = ope.fitted(log, sb.Greedy(ridge=10.0))
    found["greedy, learnt from the first half"] = ope.evaluate(
        rest, agent, logger="fixed", reward_range=RANGE
    )
    from rich.console import Console

    console = Console(width=150)
    for label, one in found.items():
        console.print(evaluation_table(label, one))
    if given.out is not None:
        write_evaluation(found, given.out, "ACTG 175")


if __name__ == "__main__":
    main()
