"""The second round's tuning side (plan-2.md): coordinate by coordinate, then the confirmation.

Usage: python studies/untold/second_tune.py [--folder FOLDER] [--processes N]   (goes on from what is played)
"""

import argparse
from pathlib import Path

from measure import FOLDER, Cell, geometric_mean, measures_of, objective, regrets_of
from players import LINTS, Player, Tried
from pool import Task, play_tasks
from sides import LOW_NOISE, SECOND_TUNED_ON
from tune import label_of

import solid_bandits as sb

SHORT, BOTH = (1_000,), (1_000, 10_000)
"""Horizons of the search and of the confirmation."""
RUNS, SEED, CONFIRMING_SEED = 100, 31, 32
COORDINATES = {
    "caution": (0.0, 1.0, 2.0, 4.0, 8.0),
    "start_ridge": (1.0, 2.0, 5.0, 20.0),
    "temperature": (0.25, 0.35, 0.5, 0.7),
    "growth": (0.05, 0.1, 0.2, 0.4),
}
BEGINNING = {"temperature": 0.5, "growth": 0.2, "start_ridge": 1.0, "rounds": 3, "caution": 0.0}
ROUNDS = 2
NEAR = 0.02
"""Of objectives: within this, the smaller largest Q decides."""


def play_points(path, points, seed, horizons, processes):
    """Every cell of these points, and of LinTS, that is missing."""
    players = {LINTS: Player(sb.LinTS(), True)}
    players |= {label_of("RandUCB", point): Player(Tried(**point), False) for point in points}
    done = set(regrets_of(path))
    tasks = []
    for name, family in SECOND_TUNED_ON.items():
        for horizon in horizons:
            missing = {
                label: player for label, player in players.items() if Cell(label, name, horizon) not in done
            }
            if missing:
                tasks.append(Task(name, family, horizon, missing, RUNS))
    if tasks:
        play_tasks(path, tasks, seed, processes)


def scores(path, points):
    """Objective, R, R without low noise, the largest Q, stuck runs and those of LinTS, of each point."""
    regrets, found = regrets_of(path), []
    for point in points:
        measures = measures_of(regrets, label_of("RandUCB", point), SECOND_TUNED_ON)
        louder = {cell: one for cell, one in measures.items() if SECOND_TUNED_ON[cell[0]].kind != LOW_NOISE}
        row = {
            "objective": objective(measures, SECOND_TUNED_ON),
            "R": geometric_mean(measures, SECOND_TUNED_ON),
            "louder": geometric_mean(louder, SECOND_TUNED_ON),
            "Q": max(one.tail for one in measures.values()),
            "stuck": round(sum(one.stuck for one in measures.values()) * RUNS),
            "lints stuck": round(sum(one.lints_stuck for one in measures.values()) * RUNS),
        }
        found.append(row)
        print(point, {name: round(value, 3) for name, value in row.items()}, flush=True)
    return found


def tune(path, processes):
    """The best point, and all that were tried."""
    best, tried = dict(BEGINNING), [BEGINNING]
    for _ in range(ROUNDS):
        before = dict(best)
        for name, values in COORDINATES.items():
            points = [best | {name: value} for value in values]
            tried += [point for point in points if point not in tried]
            play_points(path, points, SEED, SHORT, processes)
            found = [row["objective"] for row in scores(path, points)]
            best = points[found.index(min(found))]
        if best == before:
            break
    print("best:", best, flush=True)
    return tried


def confirm(path, other, tried, processes):
    """The best, where it began, and the two next best, with another seed; the choice by the plan's rule."""
    found = [row["objective"] for row in scores(path, tried)]
    order = [point for _, point in sorted(zip(found, tried, strict=True), key=lambda pair: pair[0])]
    points = order[:3] + ([BEGINNING] if BEGINNING not in order[:3] else [order[3]])
    play_points(other, points, CONFIRMING_SEED, BOTH, processes)
    rows = scores(other, points)
    least = min(row["objective"] for row in rows)
    near = [pair for pair in zip(rows, points, strict=True) if pair[0]["objective"] <= least + NEAR]
    print("choice:", min(near, key=lambda pair: pair[0]["Q"])[1], flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--processes", type=int)
    asked = parser.parse_args()
    first, second = (asked.folder / f"second_{name}.jsonl" for name in ("tuning", "confirm"))
    confirm(first, second, tune(first, asked.processes), asked.processes)
