"""What the runs say: arrays of every cell, pulls against η* log n, and LinUCB on rewards without noise."""

import json
import math
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("runs.jsonl")


def lines_of(path=FILE):
    """Every line: 25 runs of a cell."""
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]


class Played:
    """The finished runs of one cell."""

    def __init__(self, lines):
        """Put the runs of these lines in order."""
        lines = sorted(lines, key=lambda line: line["first"])
        self.problem, self.policy, self.horizon = (lines[0][key] for key in ("problem", "policy", "horizon"))
        self.steps = lines[0]["steps"]
        self.regret = np.concatenate([line["regret"] for line in lines])
        self.informative = np.concatenate([line["informative"] for line in lines])
        self.seconds = sum(line["seconds"] for line in lines) / len(self.regret)

    @property
    def runs(self):
        """How many there are."""
        return len(self.regret)

    def at(self, step):
        """Regret of every run after so many steps."""
        return self.regret[:, self.steps.index(step)]

    @property
    def last(self):
        """Regret of every run at the horizon."""
        return self.regret[:, -1]


def cells_of(lines):
    """(problem, policy, horizon) -> its finished runs."""
    found = {}
    for line in lines:
        found.setdefault((line["problem"], line["policy"], line["horizon"]), []).append(line)
    return {key: Played(these) for key, these in found.items()}


def linucb_without_noise(xi, steps, ridge=1.0):
    """Return the regret of the paper's LinUCB at these steps if every reward is its mean, told σ = 1: no runs needed.

    V is 2 × 2, so its inverse and determinant are written out; b = V θ-hat.
    """
    arms = ((0.0, 1.0), (1.0 - xi, 2.0 * xi), (1.0, 0.0))
    gaps = (1.0, xi, 0.0)
    a, b, c = ridge, 0.0, ridge
    u = v = regret = 0.0
    found, wanted = [], iter(steps)
    target = next(wanted)
    for t in range(1, steps[-1] + 1):
        det = a * c - b * b
        width = math.sqrt(math.log(det / ridge**2) + math.log(t))
        best, largest = 0, -math.inf
        for arm, (x, y) in enumerate(arms):
            mean = (x * (c * u - b * v) + y * (a * v - b * u)) / det
            norm = (c * x * x - 2.0 * b * x * y + a * y * y) / det
            value = mean + width * math.sqrt(norm)
            if value > largest:
                best, largest = arm, value
        x, y = arms[best]
        a, b, c = a + x * x, b + x * y, c + y * y
        u, v = u + x * x, v + x * y  # the reward is φᵀe₁ = x
        regret += gaps[best]
        if t == target:
            found.append(regret)
            target = next(wanted, 0)
    return found
