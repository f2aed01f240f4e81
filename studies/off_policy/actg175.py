"""ACTG 175: 2,139 patients, four treatments at random with known probabilities; policies against the trial's own means.

    python studies/off_policy/actg175.py --out DIR --json studies/off_policy/actg175.json
    python studies/off_policy/actg175.py --table studies/off_policy/actg175.json

The second prints the table of docs/evaluation.md. The data are in the package `lifelines` (0.30.3 or later), which is
not needed otherwise. The reward is the change of the CD4 count in 20 weeks, in hundreds, taken to be within 10 either
way for the anytime-valid bounds. The trial assigned each treatment with probability 1/4.
"""

import argparse
import json
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl

import solid_bandits as sb
from solid_bandits import logs, ope
from solid_bandits._internal import wording
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


def page_table(policies):
    """The table of docs/evaluation.md, from what the JSON file has."""
    names = list(policies[0]["estimates"])
    yield f"| policy | trial's mean | {' | '.join(f'`{name}`' for name in names)} |"
    yield "|---" * (len(names) + 2) + "|"
    for one in policies:
        mean = "–" if one["mean"] is None else wording.fixed(one["mean"], 3)
        yield f"| {one['policy']} | {mean} | {' | '.join(_cell(*cell) for cell in one['estimates'].values())} |"


def _cell(value, low, high):
    if low is None:
        return wording.number(value, 4)
    return f"{wording.measured(value, (high - low) / 2)} {wording.ends(low, high)}"


def numbers(found, means):
    """What the JSON file has: value, low and high by policy and estimator, and the trial's own means."""
    policies = []
    for label, one in found.items():
        rows = one.table.select("estimator", "value", "low", "high").rows()
        estimates = {
            name: [None if cell is None else float(f"{cell:.10g}") for cell in cells] for name, *cells in rows
        }
        policies.append({"policy": label, "mean": means.get(label), "estimates": estimates})
    return policies


def crossed(log: pl.DataFrame) -> pl.DataFrame:
    """The log with features of each arm: the context as it is, not standardised, and a 1, in the arm's own places."""
    contexts = logs.values(log).select(CONTEXT).cast(pl.Float64).to_numpy()
    rows = np.hstack([contexts, np.ones((log.height, 1))])
    features = [[np.kron(own, row).tolist() for own in np.eye(len(ARMS))] for row in rows]
    return log.with_columns(pl.Series("features", features, dtype=pl.List(pl.List(pl.Float64))))


def main():
    """Print every policy by every estimator, beside the trial's means; write the figure, the page and the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", type=Path, help="write the numbers here")
    parser.add_argument(
        "--table", type=Path, help="print the page's table from such a file, and do nothing else"
    )
    given = parser.parse_args()
    if given.table is not None:
        print("\n".join(page_table(json.loads(given.table.read_text(encoding="utf-8"))["policies"])))
        return
    log = crossed(logs.from_table(trial(), context=CONTEXT, arms=list(ARMS.values())))
    found = {"uniform": ope.evaluate(log, "uniform", logger="fixed", reward_range=RANGE)}
    means = {"uniform": student(log["reward"].to_numpy()).value}
    print(f"{log.height} patients; mean of all {student(log['reward'].to_numpy())}")
    for arm in ARMS.values():
        found[arm] = ope.evaluate(log, f"always:{arm}", logger="fixed", reward_range=RANGE)
        own = student(log.filter(arm=arm)["reward"].to_numpy())
        means[arm] = own.value
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
    if given.json is not None:
        day = f"{datetime.now(UTC):%Y-%m-%d}"
        content = {"day": day, "patients": log.height, "policies": numbers(found, means)}
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        given.json.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
