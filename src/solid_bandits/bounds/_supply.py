"""What z steps supply: how many pulls there are of what."""

from typing import NamedTuple

import numpy as np

from solid_bandits._types import Bools, Floats
from solid_bandits.problem import Problem


class Supply(NamedTuple):
    """Groups of pairs, the share of the steps that each group has, and the pairs that may be pulled.

    A policy ω over it has a row for each group, which sums to 1; its pulls are z · share · ω.
    """

    share: Floats
    """(groups,)."""
    allowed: Bools
    """(groups, pairs of a group): in the order of the table of pairs."""

    def pulls(self, policy: Floats) -> Floats:
        """Pulls per step of a policy, (groups, pairs of a group)."""
        return self.share[:, None] * policy

    def largest(self, values: Floats) -> Floats:
        """The largest of some values of the pairs in each group, among pairs that may be pulled, (groups,)."""
        return np.where(self.allowed, values.reshape(self.allowed.shape), -np.inf).max(axis=1)


def by_context(problem: Problem, support: Bools | None = None) -> Supply:
    """Contexts come as ρ draws them: (P_z); or (P̃_α), where only the pairs of a support may be pulled."""
    every = np.ones((problem.n_contexts, problem.n_arms), dtype=np.bool_)
    return Supply(problem.context_probs, every if support is None else support)


def in_total(problem: Problem) -> Supply:
    """Any pair, whatever its context: (P̃_z)."""
    return Supply(np.ones(1), np.ones((1, problem.n_contexts * problem.n_arms), dtype=np.bool_))
