"""Cases to play: sizes, problems, policies, and the cells of the table."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

import solid_bandits as sb
from bench.floors import FLOORS, VIDS_SAMPLES
from solid_bandits.policies.catalogue import CLASSES
from solid_bandits.policies.contract import Policy

SIZES = [(2, 3, 3), (4, 8, 8), (4, 32, 8), (50, 20, 16), (191, 40, 65)]
BASE = (50, 20, 16)
ONE_CONTEXT = ("OSSB", "SPL", "UCB1", "EndOfOptimism")
MOST_PAIRS_TO_SOLVE = 256
"""Largest number of pairs for OAM's exploring steps, because its solve takes O(P³)."""


def problem_of(size: tuple[int, int, int], noise: float = 1.0) -> sb.Problem:
    """Return the toy, the paper's random problems, or Gaussian features where those cannot be drawn."""
    contexts, arms, dim = size
    if size == (2, 3, 3):
        toy = sb.problems.toy()
        return sb.Problem(toy.features, toy.theta, toy.context_probs, noise_std=noise * toy.noise_std)
    if size in ((4, 8, 8), (4, 32, 8)):
        return sb.problems.random(contexts, arms, dim, noise_std=noise, seed=0)
    rng = np.random.default_rng(0)
    features = rng.normal(size=(contexts, arms, dim)) / np.sqrt(dim)
    return sb.Problem(features, rng.normal(size=dim), noise_std=noise)


def policy_of(label: str, kind: str, n_arms: int) -> Policy:
    """Return the policy, set to explore or exploit if it has such a parameter."""
    if label == "SOLID":
        # The bonus in the constraint keeps λ at 0 for long; without it the closest alternative is needed.
        return replace(
            sb.Solid.paper_random(n_arms),
            threshold_scale=0.0 if kind == "exploiting" else 1e9,
            bonus="none" if kind == "searching" else "theorem",
        )
    if label == "EpsilonGreedy":
        return sb.EpsilonGreedy(epsilon=1.0 if kind == "exploring" else 0.0)
    return CLASSES[label]()


class Cell(NamedTuple):
    """One line of the table."""

    label: str
    kind: str
    size: tuple[int, int, int]

    @property
    def key(self) -> str:
        """Name in `bench.json`."""
        return f"{self.label} {self.kind} {','.join(map(str, self.size))}"


def cells_of(size: tuple[int, int, int], labels: set[str]) -> list[Cell]:
    """Return every policy and kind at this size; policies for one context use 1 as the first number."""
    found = []
    for label, kind in FLOORS:
        if label in labels:
            contexts, arms, dim = size
            found.append(Cell(label, kind, (1 if label in ONE_CONTEXT else contexts, arms, dim)))
    return found


def is_run(cell: Cell) -> bool:
    """Return whether the cell is run: not OAM's exploring steps with so many pairs that one takes seconds or
    minutes.
    """
    contexts, arms, _ = cell.size
    return (cell.label, cell.kind) != ("OAM", "exploring") or contexts * arms <= MOST_PAIRS_TO_SOLVE


def settling_steps(cell: Cell) -> int:
    """Return the number of steps into the lasting regime, fewer where they are expensive.

    It depends on the size and not on the clock, so that every run times the same steps.
    """
    contexts, arms, dim = cell.size
    pairs = contexts * arms
    dear = {
        "SOLID": pairs * dim * dim,
        "AOIDS": pairs * dim * arms,
        "OAM": 5 * pairs**3,
        "VIDS": VIDS_SAMPLES * dim * (dim + arms),
    }
    work = pairs * dim if cell.kind == "exploiting" else dear.get(cell.label, pairs * dim)
    return int(np.clip(6e9 / work, 60, 1500))
