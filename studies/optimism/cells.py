"""The problems and the policies of the study, how far each is played, and in which order.

All problems hide a good arm behind a bad one: the best two arms can be told apart only by pulling an arm that costs 1.
"""

from dataclasses import dataclass

import numpy as np

import solid_bandits as sb
from solid_bandits import rivals
from solid_bandits.paper.readings import READINGS

LONG = 2_000_000
"""Steps: 200/ξ² for ξ = 0.01."""
LONGEST = 10_000_000
STEPS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000)
"""Checkpoints; a run has those up to its horizon, and the horizon."""
RUNS = 100
GAPS = (0.01, 0.1, 0.03, 0.3)
"""ξ."""
EMBEDDED, CONTEXTUAL = "ξ = 0.01 in 8 dimensions", "ξ = 0.01 in two contexts"
TOY = "the toy problem"
"""Where information comes by the way."""


def embedded(xi=0.01, dim=8, seed=0):
    """Build the problem in `dim` dimensions, turned at random, beside dim - 2 arms along the other axes (gap 1) and
    three that mix them (gap 0.5): none of these tells the best two apart.
    """
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.standard_normal((dim, dim)))
    arms = np.zeros((3 + dim - 2 + 3, dim))
    arms[:3, :2] = [[0, 1], [1 - xi, 2 * xi], [1, 0]]
    arms[3 : dim + 1, 2:] = np.eye(dim - 2)
    mixtures = rng.standard_normal((3, dim - 2))
    arms[dim + 1 :, 0] = 0.5
    arms[dim + 1 :, 2:] = mixtures / np.linalg.norm(mixtures, axis=1, keepdims=True)
    theta = np.eye(dim)[0]
    return sb.Problem((arms @ turn)[None], theta=theta @ turn, noise_std=1.0)


def contextual(xi=0.01):
    """Build the problem split over two contexts, equally likely: the arm that informs is on offer in the second alone.

    The second context also offers e₁, so that there is no reason but information to pull e₂.
    """
    features = [[[0.5, 0], [1 - xi, 2 * xi], [1, 0]], [[0, 1], [-1, 0], [1, 0]]]
    return sb.Problem(features, theta=[1, 0], noise_std=1.0)


INFORMATIVE = {CONTEXTUAL: (1, 0), TOY: (1, 0)}
"""Context and number of the arm that informs, where it is not the first arm of the only context."""

PROBLEMS = {f"ξ = {xi}": sb.problems.end_of_optimism(xi) for xi in GAPS} | {
    EMBEDDED: embedded(),
    CONTEXTUAL: contextual(),
    TOY: sb.problems.toy(),
}


def solid(reading, **changes):
    """SOLID with the toy's parameters."""
    return sb.Solid(z0=1.0, initial_multiplier=0.0, bonus=reading, **changes)


QUICK = {f"SOLID, {reading}": solid(reading) for reading in READINGS} | {
    "SOLID, local, threshold doubled": solid("local", threshold_scale=2.0),
    "AO-IDS": rivals.AOIDS(),
    "LinUCB": sb.LinUCB(radius="paper"),
    "LinUCB (theorem)": sb.LinUCB(radius="theorem"),
    "LinTS (posterior)": sb.LinTS(),
    "LinTS (paper)": sb.LinTS(scale="paper"),
    "RandUCB": sb.RandUCB(),
    "RandUCB, thrift 1": sb.RandUCB(thrift=1.0),
}
"""Half a second for LONG steps, or less."""
ONE_CONTEXT = {"SPL": rivals.SPL(), "UCB1": rivals.UCB1(), "End of optimism": rivals.EndOfOptimism()}
"""As quick; defined for one context alone."""
SLOW_ONE_CONTEXT = {"OSSB": rivals.OSSB()}
SLOW = {"OAM 0": rivals.OAM(epsilon=0.0), "OAM 0.01": rivals.OAM(epsilon=0.01)}
"""Seconds for LONG steps: played to 200/ξ² or 100,000 steps, whichever is more."""
TOLD_NOTHING = {
    "RandUCB, told nothing": sb.RandUCB(),
    "RandUCB, thrift 1, told nothing": sb.RandUCB(thrift=1.0),
    "LinTS by evidence, told nothing": sb.LinTS(ridge="evidence"),
    "LinUCB, told nothing": sb.LinUCB(radius="paper", ridge=1.0),
}
FAR = ("SOLID, local", "SOLID, theorem", "LinUCB", "LinTS (posterior)", "RandUCB")
"""Played to LONGEST too."""


@dataclass(frozen=True)
class Cell:
    """One policy on one problem, to one horizon."""

    problem: str
    policy: str
    horizon: int
    player: object
    tell_noise: bool = True

    @property
    def steps(self):
        """Where a run is looked at."""
        return np.array([step for step in STEPS if step < self.horizon] + [self.horizon])


def theory(problem):
    """SOLID as the theorem states it; λ_max from the problem's own gap, which a user would have to know."""
    from solid_bandits.policies.solid.policy import theory_multiplier

    least = float(problem.gaps[problem.gaps > 0].min())
    most = theory_multiplier(problem.setting(LONG, True), problem.table, least)
    return sb.Solid.theory(max_multiplier=most)


def cells():
    """Every cell, what matters most first."""
    found = []
    names = [f"ξ = {xi}" for xi in GAPS]
    for name in names:
        found += [Cell(name, label, LONG, policy) for label, policy in (QUICK | ONE_CONTEXT).items()]
        found += [Cell(name, label, LONG, policy, False) for label, policy in TOLD_NOTHING.items()]
    for name in (EMBEDDED, CONTEXTUAL):
        several = name == CONTEXTUAL
        players = QUICK if several else QUICK | ONE_CONTEXT
        found += [Cell(name, label, LONG, policy) for label, policy in players.items()]
        found += [Cell(name, label, LONG, policy, False) for label, policy in TOLD_NOTHING.items()]
    found += [Cell(name, label, LONGEST, QUICK[label]) for name in names[:2] for label in FAR]
    found += [Cell(TOY, label, LONG, policy) for label, policy in QUICK.items()]
    found += [Cell(TOY, label, LONG, policy, False) for label, policy in TOLD_NOTHING.items()]
    for name, xi in zip(names, GAPS, strict=True):
        reach = max(100_000, round(200 / xi**2))
        found += [Cell(name, label, reach, policy) for label, policy in (SLOW | SLOW_ONE_CONTEXT).items()]
        found.append(Cell(name, "VIDS", 100_000, sb.VIDS()))
    for name, xi in zip(names, GAPS, strict=True):
        reach = min(max(100_000, round(200 / xi**2)), LONG)
        found.append(Cell(name, "SOLID, theory", reach, theory(PROBLEMS[name])))
    return found
