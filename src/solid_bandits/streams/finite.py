"""A finite problem as a stream, with the contexts and the noise that the problem itself has in the same run."""

from collections.abc import Iterator

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.compiling import jit_apart
from solid_bandits._internal.types import Floats, Ints, Plain, Words
from solid_bandits.core.loop import draw_round
from solid_bandits.core.problem import Problem
from solid_bandits.core.randomness import ENVIRONMENT, make_rng
from solid_bandits.streams.base import Stream
from solid_bandits.streams.rounds import Rounds, rounds_per_block


@jit_apart
def draw_rounds(
    context_edges: Floats, noise_std: float, environment: Words, contexts: Ints, noise: Floats
) -> None:
    """Draw rounds until the arrays are full."""
    for t in range(noise.shape[0]):
        contexts[t], noise[t] = draw_round(context_edges, noise_std, environment)


class FiniteStream(Stream):
    """The rounds of a finite problem."""

    def __init__(self, problem: Problem) -> None:
        if not isinstance(problem, Problem):
            raise checks.ArgumentError("problem", f"must be a Problem, got {checks.short(problem)}")
        self.problem = problem
        self.dim, self.n_arms = problem.dim, problem.n_arms
        self.noise_std = problem.noise_std
        self.theta_bound = problem.B or None

    def blocks(self, seed: int, run: int) -> Iterator[Rounds]:
        """Yield the contexts and the noise that the problem has in this run."""
        environment = make_rng(seed, run, ENVIRONMENT)
        edges = np.cumsum(self.problem.context_probs)
        size = rounds_per_block(self.n_arms, self.dim)
        contexts, noise = np.zeros(size, dtype=np.int64), np.zeros(size)
        while True:
            draw_rounds(edges, self.problem.noise_std, environment, contexts, noise)
            yield Rounds(self.problem.features[contexts], self.problem.means[contexts], noise=noise)

    def parameters(self) -> Plain:
        """Return the problem's fingerprint."""
        return {"problem": self.problem.fingerprint}


def of_problem(problem: Problem) -> FiniteStream:
    """Return a finite problem as a stream, in which every decision policy pulls the same arms as in the problem.

    Example:
        >>> import solid_bandits as sb
        >>> sb.streams.of_problem(sb.problems.toy())
        FiniteStream(without end, arms=3, dim=3)
    """
    return FiniteStream(problem)
