"""Cells as lines of a file, and the measures of plan.md."""

import json
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from loop import final_regret
from players import LINTS

import solid_bandits as sb

FOLDER = Path(__file__).parent
BAD = 10
"""A run is stuck above so many times the median of LinTS."""


class Cell(NamedTuple):
    """Names what is played: one line of a file."""

    label: str
    family: str
    horizon: int


def lines_of(path):
    """What was written before; a line that a kill cut off is left out."""
    found = []
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def regrets_of(path):
    """Cell -> final regrets, one for each run."""
    return {
        Cell(line["label"], line["family"], line["horizon"]): np.array(line["regret"])
        for line in lines_of(path)
    }


def play_cells(path, name, family, horizon, players, runs, seed, device="cpu"):
    """Play policies, label -> function of family and problem, on one family and horizon; append a line for each."""
    problem_of = partial(family.problem_of, horizon)
    made = {label: make(family, problem_of(0)) for label, make in players.items()}
    regrets, seconds = {label: [] for label in made}, dict.fromkeys(made, 0.0)
    if device == "cpu" or family.rewards != "gaussian":
        for run in range(runs):
            # Once for all: where contexts never come twice it takes longer than a run.
            problem = problem_of(run)
            for label, player in made.items():
                clock = time.perf_counter()
                policy, told = player
                regrets[label].append(final_regret(problem, policy, horizon, seed, run, family.rewards, told))
                seconds[label] += time.perf_counter() - clock
    else:
        for label, (policy, told) in made.items():
            clock = time.perf_counter()
            results = sb.simulate(
                problem_of, {label: policy}, horizon, runs, seed, tell_noise=told, device=device
            )
            regrets[label] = results.table.filter(step=horizon).sort("run")["regret"].to_list()
            seconds[label] = time.perf_counter() - clock
    for label, player in made.items():
        write_line(path, label, name, horizon, player, seed, device, regrets[label], round(seconds[label], 2))


def write_line(path, label, name, horizon, player, seed, device, regret, seconds=None):
    """Append a cell to a file, in one write."""
    line = {
        **Cell(label, name, horizon)._asdict(),
        "parameters": player.policy.describe(),
        "told": player.told,
        "seed": seed,
        "runs": len(regret),
        "device": device,
        "seconds": seconds,
        "regret": [float(f"{value:.5g}") for value in regret],
    }
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


class Measures(NamedTuple):
    """A policy against LinTS in one cell."""

    ratio: float
    """R: of mean regrets."""
    tail: float
    """Q: of 95th percentiles."""
    stuck: float
    """Share of stuck runs."""
    lints_stuck: float


def paired(ours, theirs):
    """The runs that both have played."""
    runs = min(len(ours), len(theirs))
    return ours[:runs], theirs[:runs]


def compare(regret, lints):
    """The measures of one cell; where one has played fewer runs, those that both have."""
    regret, lints = paired(regret, lints)
    limit = BAD * np.median(lints)
    return Measures(
        float(regret.mean() / lints.mean()),
        float(np.quantile(regret, 0.95) / np.quantile(lints, 0.95)),
        float((regret > limit).mean()),
        float((lints > limit).mean()),
    )


def measures_of(regrets, label, families):
    """(family, horizon) -> measures of a policy, in the cells that both it and LinTS have played."""
    return {
        (cell.family, cell.horizon): compare(values, regrets[cell._replace(label=LINTS)])
        for cell, values in regrets.items()
        if cell.label == label and cell.family in families and cell._replace(label=LINTS) in regrets
    }


def weights_of(measures, families):
    """Every kind weighs the same, within a kind every family, within a family every horizon."""
    kinds = {}
    for family, _ in measures:
        kinds.setdefault(families[family].kind, set()).add(family)
    cells = {family: sum(one == family for one, _ in measures) for family, _ in measures}
    raw = {
        (family, horizon): 1 / (len(kinds) * len(kinds[families[family].kind]) * cells[family])
        for family, horizon in measures
    }
    return raw


def loss(one):
    """Of one cell: win on the average, lose nowhere, no heavier tail."""
    return (
        np.log(one.ratio)
        + 2 * max(np.log(one.ratio), 0)
        + max(np.log(one.tail), 0)
        + 10 * max(one.stuck - one.lints_stuck, 0)
    )


def objective(measures, families):
    """What is minimised on the tuning side."""
    weights = weights_of(measures, families)
    return float(sum(weights[cell] * loss(one) for cell, one in measures.items()))


def geometric_mean(measures, families):
    """Of R, with the weights of the objective."""
    weights = weights_of(measures, families)
    return float(np.exp(sum(weights[cell] * np.log(one.ratio) for cell, one in measures.items())))
