"""Defaults of policies with theorems (plan.md, part 1), from what is played already on.

Usage: python studies/positive/tune.py
"""

import sys
from functools import partial
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.append(str(FOLDER.parent / "untold"))

from measure import Cell, geometric_mean, measures_of, objective, play_cells, regrets_of  # noqa: E402
from players import LINTS, Player  # noqa: E402
from sides import TUNED_ON  # noqa: E402

import solid_bandits as sb  # noqa: E402

HORIZON, RUNS, SEED = 1_000, 20, 61
PATH = FOLDER / "tuning.jsonl"
COORDINATES = {
    "LinUCB": (partial(sb.LinUCB, ridge="evidence"), [{"scale": (0.25, 0.35, 0.5, 0.7, 1.0)}]),
    "LinMED": (
        sb.rivals.LinMED,
        [{"scale": (0.25, 0.5, 1.0)}, {"empirical": (0.5, 0.9, 0.99), "design": (0.25, 0.05, 0.005)}],
    ),
    "LinIMED-3": (sb.rivals.LinIMED, [{"scale": (0.25, 0.5, 1.0)}]),
    "SquareCB": (sb.rivals.SquareCB, [{"scale": (1.0, 4.0, 16.0, 64.0)}]),
    "FALCON": (sb.rivals.FALCON, [{"scale": (1.0, 4.0, 16.0, 64.0)}]),
    "FeelGoodTS": (sb.rivals.FeelGoodTS, [{"feel_good": (0.05, 0.2, 0.5, 1.0)}]),
}
"""Policy -> its class, and its coordinates in their order; what is written together changes together."""
ONE = {"LinMED": {"empirical": 0.9, "design": 0.05}}
"""What the first coordinate is tried with."""


def _same(player, family, problem):
    return player


def play(players):
    """Every cell of these players that is missing."""
    done = set(regrets_of(PATH))
    for name, family in TUNED_ON.items():
        missing = {
            label: partial(_same, player)
            for label, player in players.items()
            if Cell(label, name, HORIZON) not in done
        }
        if missing:
            play_cells(PATH, name, family, HORIZON, missing, RUNS, SEED)


def score(label):
    """The objective of a candidate, printed with what it is made of."""
    measures = measures_of(regrets_of(PATH), label, TUNED_ON)
    value, mean = objective(measures, TUNED_ON), geometric_mean(measures, TUNED_ON)
    stuck = round(sum(one.stuck for one in measures.values()) * RUNS)
    print(
        f"{label}: objective {value:.4f}, R {mean:.4f}, stuck {stuck} of {len(measures) * RUNS}", flush=True
    )
    return value


def main():
    """All coordinates of all policies."""
    play({LINTS: Player(sb.LinTS(), True)})
    for name, (make, coordinates) in COORDINATES.items():
        best = dict(ONE.get(name, {}))
        for coordinate in coordinates:
            points = [
                best | dict(zip(coordinate, values, strict=True))
                for values in zip(*coordinate.values(), strict=True)
            ]
            labels = {
                f"{name}({', '.join(f'{key}={value}' for key, value in point.items())})": point
                for point in points
            }
            play({label: Player(make(**point), False) for label, point in labels.items()})
            best = labels[min(labels, key=score)]
        print(f"{name}: {best}", flush=True)


if __name__ == "__main__":
    main()
