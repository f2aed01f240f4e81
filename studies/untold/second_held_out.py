"""The second round's held-out side (plan-2.md), from what is played already on; the choice must have been committed.

Usage: SOLID_BANDITS_DATA=FOLDER python studies/untold/second_held_out.py [--processes N] [--stages 0 1 ...]
"""

import argparse
import os
from typing import NamedTuple

from measure import FOLDER, Cell, regrets_of
from players import COMPARED, CONTROL, FINITE_ONLY, LINTS, OURS, Player, Tried
from pool import Task, play_tasks
from sides import FRESH, OFFSET, SECOND_HELD_OUT

SEED, RUNS = 33, 100
PATH = FOLDER / "second_held_out.jsonl"
BEFORE = "RandUCB, c = 0"
"""As the first round chose it."""
PLAYERS = COMPARED | {
    BEFORE: lambda family, problem: Player(Tried(temperature=0.5, growth=0.2, rounds=3), False)
}
NO_TABLE = tuple(label for label in PLAYERS if label not in (*FINITE_ONLY, "VIDS"))
LONG_FAMILIES = ("toy-K", "random-K")


class Stage(NamedTuple):
    """What is played together."""

    horizon: int
    labels: tuple[str, ...]
    runs: int = RUNS
    families: tuple[str, ...] = tuple(SECOND_HELD_OUT)


STAGES = (
    Stage(1_000, (*NO_TABLE, *FINITE_ONLY)),
    Stage(10_000, NO_TABLE),
    Stage(1_000, ("VIDS",), 20),
    Stage(100_000, (LINTS, OURS), RUNS, LONG_FAMILIES),
    Stage(1_000_000, (LINTS, OURS), RUNS, LONG_FAMILIES),
    Stage(100_000, (LINTS, OURS)),
    Stage(100_000, (CONTROL, BEFORE)),
    Stage(10_000, FINITE_ONLY),
    Stage(10_000, ("VIDS",), 10),
)
"""In this order: plan-2.md and its amendments."""


def is_played(label, name, horizon):
    """Jester needs its data and has no 10⁵; tables need contexts that come again."""
    kind = SECOND_HELD_OUT[name].kind
    if kind == "Jester" and (horizon > 10_000 or "SOLID_BANDITS_DATA" not in os.environ):
        return False
    return label not in FINITE_ONLY or kind not in (FRESH, OFFSET)


def main():
    """Play what is missing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int)
    parser.add_argument("--stages", type=int, nargs="*", help="these alone, counted from 0")
    asked = parser.parse_args()
    for place in range(len(STAGES)) if asked.stages is None else asked.stages:
        stage, done = STAGES[place], set(regrets_of(PATH))
        tasks = []
        for name in stage.families:
            family = SECOND_HELD_OUT[name]
            labels = [
                label
                for label in stage.labels
                if is_played(label, name, stage.horizon) and Cell(label, name, stage.horizon) not in done
            ]
            if labels:
                problem = family.problem_of(1, 0)
                players = {label: PLAYERS[label](family, problem) for label in labels}
                tasks.append(Task(name, family, stage.horizon, players, stage.runs))
        if tasks:
            play_tasks(PATH, tasks, SEED, asked.processes)


if __name__ == "__main__":
    main()
