"""The tuning side (plan.md): coordinate by coordinate, from what is played already on.

Usage: python studies/untold/tune.py randucb|confirm|others [--device gpu]
"""

import argparse
from functools import partial

from measure import FOLDER, Cell, geometric_mean, lines_of, measures_of, objective, play_cells, regrets_of
from players import LINTS, Player, Tried
from sides import TUNED_ON

import solid_bandits as sb

HORIZONS = (1_000, 10_000)
SHORT = (1_000,)
"""Of the confirmation and of what is not ours: the plan's second amendment."""
RUNS, SEED = 100, 21
PATH = FOLDER / "tuning.jsonl"
COORDINATES = {
    "start_ridge": (0.2, 0.5, 1.0, 2.0, 5.0),
    "first": (1, 4),
    "rounds": (1, 3),
    "temperature": (0.35, 0.5, 0.7, 1.0),
    "growth": (0.05, 0.1, 0.2, 0.4),
}
"""In this order, from `BEGINNING` on."""
BEGINNING = {"temperature": 0.5, "growth": 0.2, "start_ridge": 1.0, "rounds": 1, "first": 1}
ROUNDS = 2
"""Of the coordinates; the second one stops at the first that changes nothing."""
LINUCB = [{"scale": scale, "ridge": ridge} for ridge in (1.0, "evidence") for scale in (0.25, 0.35, 0.5, 0.7)]
LINTS_EVIDENCE = [{"ridge": "evidence", "multiple": multiple} for multiple in (0.6, 0.8, 1.0)]


def label_of(name, parameters):
    """The label of a candidate."""
    return f"{name}({', '.join(f'{key}={value}' for key, value in parameters.items())})"


def play_all(players, device, path=PATH, runs=RUNS, seed=SEED, horizons=HORIZONS):
    """Every tuning cell of candidates, label -> player, that is missing; then their scores, in this order."""
    done = regrets_of(path)
    for horizon in horizons:
        for name, family in TUNED_ON.items():
            missing = {
                label: partial(_same, player)
                for label, player in players.items()
                if Cell(label, name, horizon) not in done
            }
            if missing:
                play_cells(path, name, family, horizon, missing, runs, seed, device)
                print(name, horizon, flush=True)
    regrets = {cell: values for cell, values in regrets_of(path).items() if cell.horizon in horizons}
    return [score_of(regrets, label) for label in players]


def _same(player, family, problem):
    return player


def score_of(regrets, label):
    """The objective of a candidate that has played all its cells."""
    measures = measures_of(regrets, label, TUNED_ON)
    score, tail = objective(measures, TUNED_ON), max(one.tail for one in measures.values())
    mean = geometric_mean(measures, TUNED_ON)
    print(f"{label}: objective {score:.4f}, R {mean:.4f}, largest Q {tail:.2f}", flush=True)
    return score


def tune_randucb(device):
    """LinTS, then RandUCB coordinate by coordinate."""
    play_all({LINTS: Player(sb.LinTS(), True)}, device)
    best = dict(BEGINNING)
    for _ in range(ROUNDS):
        before = dict(best)
        for name, values in COORDINATES.items():
            points = [best | {name: value} for value in values]
            players = {label_of("RandUCB", point): Player(Tried(**point), False) for point in points}
            scores = dict(zip(values, play_all(players, device), strict=True))
            best[name] = min(scores, key=scores.get)
        if best == before:
            break
    print("RandUCB:", best)


def confirm(device):
    """The winner, the point where it began, and the two next best of all points, with another seed and more runs."""
    path, runs, seed = FOLDER / "confirm.jsonl", 100, 22
    regrets, parameters = regrets_of(PATH), {}
    for line in lines_of(PATH):
        if line["parameters"]["kind"] == "Tried":
            parameters[line["label"]] = {
                name: value for name, value in line["parameters"].items() if name not in ("kind", "ridge")
            }
    whole = [
        label
        for label in parameters
        if sum(cell.label == label for cell in regrets) == len(HORIZONS) * len(TUNED_ON)
    ]
    order = sorted(whole, key=lambda label: score_of(regrets, label))
    chosen = dict.fromkeys([order[0], label_of("RandUCB", BEGINNING), *order[1:3]])
    players = {LINTS: Player(sb.LinTS(), True)}
    players |= {label: Player(Tried(**parameters[label]), False) for label in chosen}
    play_all(players, device, path, runs, seed, SHORT)


def tune_others(device):
    """What RandUCB is compared with, once its choice is the package's."""
    players = {label_of("LinUCB", one): Player(sb.LinUCB(**one), True) for one in LINUCB}
    players |= {label_of("LinTS", one): Player(sb.LinTS(**one), False) for one in LINTS_EVIDENCE}
    play_all(players, device, runs=50, horizons=SHORT)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("stage", choices=("randucb", "confirm", "others"))
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    asked = parser.parse_args()
    {"randucb": tune_randucb, "confirm": confirm, "others": tune_others}[asked.stage](asked.device)
