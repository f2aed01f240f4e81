"""The held-out side (plan.md), from what is played already on; the choice must have been committed.

Usage: SOLID_BANDITS_DATA=folder python studies/untold/held_out.py [--runs 10000 --device gpu]
"""

import argparse
import os
from typing import NamedTuple

from measure import FOLDER, Cell, play_cells, regrets_of
from players import COMPARED, CONTROL, FINITE_ONLY, LINTS, OURS
from sides import FRESH, HELD_OUT, OFFSET

SEED = 23
RUNS = 100
LONG = 1_000_000
LONG_FAMILIES = ("toy-H", "random-H")


class Stage(NamedTuple):
    """What is played together."""

    horizon: int
    labels: tuple[str, ...]
    runs: int
    families: tuple[str, ...] = tuple(HELD_OUT)


JUDGED = (LINTS, OURS, CONTROL)
VARIED = tuple(name for name, family in HELD_OUT.items() if family.kind in (FRESH, OFFSET))
CHEAP = tuple(label for label in COMPARED if label != "VIDS")
STAGES = (
    Stage(1_000, CHEAP, RUNS),
    Stage(10_000, tuple(label for label in CHEAP if label not in FINITE_ONLY), RUNS, VARIED),
    Stage(10_000, JUDGED, RUNS),
    Stage(10_000, tuple(label for label in CHEAP if label not in FINITE_ONLY), RUNS),
    Stage(1_000, ("VIDS",), 20),
    Stage(100_000, JUDGED, RUNS, LONG_FAMILIES),
    Stage(LONG, JUDGED, RUNS, LONG_FAMILIES),
    Stage(100_000, JUDGED, RUNS),
    Stage(10_000, FINITE_ONLY, RUNS),
    Stage(100_000, tuple(label for label in CHEAP if label not in JUDGED), 20),
    Stage(10_000, ("VIDS",), 10),
)
"""In this order, with so many runs: plan.md and its amendments."""


def is_played(label, name, horizon):
    """What the plan leaves out is not."""
    kind = HELD_OUT[name].kind
    if kind == "Jester" and (horizon > 10_000 or "SOLID_BANDITS_DATA" not in os.environ):
        return False
    fresh, wide = kind in (FRESH, OFFSET), kind in ("d = 50", "100 arms")
    return label not in FINITE_ONLY or not (fresh or (wide and horizon > 10_000))


def main():
    """Play what is missing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--runs", type=int, help="of every cell, in a file of their own")
    parser.add_argument("--stages", type=int, nargs="*", help="these alone, counted from 0")
    parser.add_argument("--only", nargs="*", help="these policies alone")
    asked = parser.parse_args()
    path = FOLDER / ("held_out.jsonl" if asked.runs is None else f"held_out_{asked.runs}.jsonl")
    done = set(regrets_of(path))
    for stage in STAGES if asked.stages is None else [STAGES[place] for place in asked.stages]:
        for name in stage.families:
            players = {
                label: COMPARED[label]
                for label in stage.labels
                if label in (asked.only or COMPARED)
                and is_played(label, name, stage.horizon)
                and Cell(label, name, stage.horizon) not in done
            }
            if players:
                runs = asked.runs or stage.runs
                play_cells(path, name, HELD_OUT[name], stage.horizon, players, runs, SEED, asked.device)
                done |= {Cell(label, name, stage.horizon) for label in players}
                print(name, stage.horizon, len(players), flush=True)


if __name__ == "__main__":
    main()
