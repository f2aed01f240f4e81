"""Supply of pulls that z steps give, and a problem as the programs with such a supply see it."""

from typing import NamedTuple

import numpy as np

from solid_bandits._internal.types import Bools, Floats
from solid_bandits.bounds import _geometry
from solid_bandits.core.problem import Problem


class Supply(NamedTuple):
    """Groups of pairs, the share of the steps that each group has, and the pairs that may be pulled.

    A policy ω over it has a row for each group, which sums to 1; its pulls are z · share · ω.
    """

    share: Floats
    """(groups,)."""
    allowed: Bools
    """(groups, pairs of a group), in the order of the table of pairs."""

    def pulls(self, policy: Floats) -> Floats:
        """Return the pulls per step of a policy, (groups, pairs of a group)."""
        return self.share[:, None] * policy

    def largest(self, values: Floats) -> Floats:
        """Return the largest of the values in each group, among pairs that may be pulled, shape (groups,)."""
        return np.where(self.allowed, values.reshape(self.allowed.shape), -np.inf).max(axis=1)


def by_context(problem: Problem, support: Bools | None = None) -> Supply:
    """Return the supply of contexts drawn by ρ: (P_z), or (P̃_α), where only the pairs of a support may be pulled."""
    every = np.ones((problem.n_contexts, problem.n_arms), dtype=np.bool_)
    return Supply(problem.context_probs, every if support is None else support)


def in_total(problem: Problem) -> Supply:
    """Return the supply in which any pair may be pulled, whatever its context: (P̃_z)."""
    return Supply(np.ones(1), np.ones((1, problem.n_contexts * problem.n_arms), dtype=np.bool_))


class Setup(NamedTuple):
    """A problem with a supply of steps, and the quantities that both the solver and the certificate start from."""

    problem: Problem
    gaps: _geometry.Gaps
    whole: _geometry.Whole
    supply: Supply


def set_up(problem: Problem, supply: Supply | None = None) -> Setup:
    """Prepare a problem once for solver and certificate; its contexts are drawn by ρ, unless another supply is
    given.
    """
    gaps, whole = _geometry.gaps(problem), _geometry.whole(problem)
    return Setup(problem, gaps, whole, by_context(problem) if supply is None else supply)


def greedy(problem: Problem) -> Bools:
    """Return a mask of the optimal pairs, shape (contexts, arms)."""
    best = np.zeros((problem.n_contexts, problem.n_arms), dtype=np.bool_)
    best.flat[_geometry.optimal_pairs(problem)] = True
    return best
