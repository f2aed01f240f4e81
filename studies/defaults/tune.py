"""The search for the defaults of `Solid()`, and for the scales of LinUCB and LinTS (docs/defaults.md).

Usage: python studies/defaults/tune.py FOLDER   (about half an hour on two cores)

Writes FOLDER/tuning.jsonl, a line for each set of parameters tried, and prints the winners. Four stages: random
draws and then changes of the best, both at horizons 10³ and 10⁴; the best few at all horizons with new seeds; last the
winner and some round points near it with 200 runs and seeds newer still.
"""

import json
import sys
from pathlib import Path

import numpy as np
from families import HORIZONS, RUNS, TUNING, TUNING_SEED
from measure import cells_of, geometric_mean, lints, objective, play_all

import solid_bandits as sb

FINAL_SEED, LAST_SEED = 3, 4
"""Of the two last stages; problems stay those of the tuning side."""
LAST_RUNS = 200
NEIGHBOURS = [
    (0.4, 0.3, 0.0, 0.0, 0.2),
    (0.5, 0.3, 0.0, 0.0, 0.2),
    (0.5, 0.3, 0.3, 0.0, 0.25),
    (0.5, 0.4, 0.0, 0.0, 0.3),
    (0.6, 0.3, 0.0, 0.0, 0.3),
    (0.5, 0.2, 0.0, 0.0, 0.4),
    (0.4, 0.4, 0.4, 0.05, 0.3),
    (0.6, 0.0, 0.0, 0.0, 0.4),
]
"""Round points around the best of the third stage, chosen by hand: `random_width`, `optimism_scale`, `threshold_scale`,
`dimension_scale`, `ridge`."""
DRAWS, PARENTS, CHILDREN, FINALISTS = 90, 6, 8, 8
AT_ONCE = 6
"""Sets of parameters played together, between two lines of progress."""


def draw(rng):
    """A point of the search space."""
    return {
        "random_width": rng.uniform(0, 1),
        "optimism_scale": rng.uniform(0, 0.8) * (rng.random() < 0.8),
        "threshold_scale": rng.uniform(0, 0.8) * (rng.random() < 0.8),
        "dimension_scale": rng.uniform(0, 0.6),
        "ridge": float(np.exp(rng.uniform(np.log(0.1), np.log(1)))),
        "policy_step": float(rng.choice([100, 300, 1000, 3000])),
        "z0": float(rng.choice([1, 10, 30, 100])),
    }


def change(point, rng):
    """A point near another."""
    near = {name: value * float(np.exp(rng.normal(0, 0.25))) for name, value in point.items()}
    return near | {name: point[name] for name in ("policy_step", "z0")}


class Search:
    """Sets of parameters of one policy, their scores, and the file that keeps them."""

    def __init__(self, policy, file):
        self.policy, self.file = policy, file
        self.scores = []

    def score(self, points, horizons, runs, seed, baseline, stage):
        """Play points; return them with their objectives, the best first."""
        scored = []
        for first in range(0, len(points), AT_ONCE):
            some = points[first : first + AT_ONCE]
            policies = {str(i): self.policy(**point) for i, point in enumerate(some)}
            regrets = play_all(policies, TUNING, horizons, runs, seed)
            for i, point in enumerate(some):
                cells = cells_of(regrets, baseline, str(i))
                value = objective(cells)
                line = {
                    "policy": self.policy.__name__,
                    "stage": stage,
                    "objective": round(value, 4),
                    "geometric_mean": round(geometric_mean(cells), 4),
                    "worst_ratio": round(max(cell.ratio for cell in cells.values()), 3),
                    "worst_tail": round(max(cell.tail for cell in cells.values()), 3),
                    "parameters": {name: round(number, 4) for name, number in point.items()},
                }
                self.file.write(json.dumps(line) + "\n")
                self.file.flush()
                scored.append((value, i + first, point))
            print(
                f"{self.policy.__name__}, {stage}: {len(scored)} of {len(points)}, best {min(scored)[0]:.3f}",
                flush=True,
            )
        return [(value, point) for value, _, point in sorted(scored)]


def main(folder):
    """Search."""
    rng = np.random.default_rng(TUNING_SEED)
    short = HORIZONS[:2]
    early = play_all(lints(), TUNING, short, RUNS, TUNING_SEED)
    late = play_all(lints(), TUNING, HORIZONS, RUNS, FINAL_SEED)
    grids = {
        sb.LinUCB: [
            {"scale": scale, "ridge": ridge}
            for scale in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0)
            for ridge in (0.1, 0.3, 1.0)
        ],
        sb.LinTS: [
            {"multiple": scale, "ridge": ridge}
            for scale in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
            for ridge in (0.1, 0.3, 1.0)
        ],
    }
    with (folder / "tuning.jsonl").open("w", encoding="utf-8") as file:
        for policy, grid in grids.items():
            search = Search(policy, file)
            ranked = search.score(grid, short, RUNS, TUNING_SEED, early, "grid")
            best = search.score([point for _, point in ranked[:4]], HORIZONS, RUNS, FINAL_SEED, late, "final")
            print(policy.__name__, best[0])
        search = Search(sb.Solid, file)
        ranked = search.score([draw(rng) for _ in range(DRAWS)], short, RUNS, TUNING_SEED, early, "draws")
        near = [change(point, rng) for _, point in ranked[:PARENTS] for _ in range(CHILDREN)]
        ranked = sorted(
            ranked + search.score(near, short, RUNS, TUNING_SEED, early, "changes"), key=lambda pair: pair[0]
        )
        finalists = [point for _, point in ranked[:FINALISTS]]
        best = search.score(finalists, HORIZONS, RUNS, FINAL_SEED, late, "final")
        names = ("random_width", "optimism_scale", "threshold_scale", "dimension_scale", "ridge")
        common = {"policy_step": 3000.0, "z0": 30.0}
        points = [best[0][1], *(dict(zip(names, point, strict=True)) | common for point in NEIGHBOURS)]
        last = play_all(lints(), TUNING, HORIZONS, LAST_RUNS, LAST_SEED)
        best = search.score(points, HORIZONS, LAST_RUNS, LAST_SEED, last, "last")
        print("Solid", best[0])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
