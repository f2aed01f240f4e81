"""The tuning of the second round: round points near the first round's, on the families of both sides of the first.

Usage: python studies/defaults/second_tuning.py FOLDER   (about four minutes on two cores)

Writes FOLDER/second_tuning.jsonl, a line for each point and cell, and prints the points within 0.05 of the least
objective, the one with the smallest worst tail first: the first printed is the choice.
"""

import json
import sys
from pathlib import Path

from families import FIRST, HORIZONS, RUNS, TUNING
from measure import cells_of, geometric_mean, lints, objective, play_all

import solid_bandits as sb

SEED = 6
NOISE = 0.05
"""What the objective moves by with the seeds."""
POINTS = [
    (0.5, 0.2, 0.4),
    (0.5, 0.2, 0.2),
    (0.5, 0.2, 0.1),
    (0.5, 0.3, 0.2),
    (0.5, 0.3, 0.1),
    (0.4, 0.3, 0.2),
    (0.4, 0.3, 0.1),
    (0.6, 0.1, 0.1),
    (0.6, 0.2, 0.15),
    (0.5, 0.2, 0.05),
]
"""`random_width`, `optimism_scale`, `ridge`; the first is the choice of the first round."""


def main(folder):
    """Play the points and rank them."""
    families = TUNING | {name: family for name, family in FIRST.items() if family.kind != "Jester"}
    horizons = HORIZONS[:2]
    policies = {
        str(point): sb.Solid(random_width=point[0], optimism_scale=point[1], ridge=point[2])
        for point in POINTS
    }
    baseline = play_all(lints(), families, horizons, RUNS, SEED)
    regrets = play_all(policies, families, horizons, RUNS, SEED)
    scored = []
    with (folder / "second_tuning.jsonl").open("w", encoding="utf-8") as file:
        for point in POINTS:
            cells = cells_of(regrets, baseline, str(point))
            for (family, horizon), cell in cells.items():
                line = {"point": point, "family": family, "horizon": horizon, **cell._asdict()}
                file.write(json.dumps(line) + "\n")
            worst = max(cell.tail for cell in cells.values())
            scored.append((objective(cells), worst, geometric_mean(cells), point))
    least = min(scored)[0]
    for value, worst, mean, point in sorted(scored, key=lambda one: (one[0] > least + NOISE, one[1])):
        print(f"{point}: objective {value:.3f}, worst tail {worst:.2f}, geometric mean {mean:.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
