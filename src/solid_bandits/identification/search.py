"""`identify`: play a problem until its best arms are known."""

from dataclasses import dataclass

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.checks import ArgumentError
from solid_bandits._internal.types import Floats
from solid_bandits.core.problem import Problem
from solid_bandits.identification.contract import Rule
from solid_bandits.identification.explorer import Explorer, play

FIRST_BLOCK, LARGEST_BLOCK = 256, 65536
"""Rounds that are drawn at once, twice as many each time."""
CONTEXTS, NOISE = 0, 1


@dataclass(frozen=True)
class Identified:
    """What a search found.

    Args:
        arms: the arm that is answered in each context.
        samples: rewards until the stop, or `most`.
        stopped: whether the test stopped; if not, `arms` are a guess.
        right: whether the answer is the problem's.
        counts: how often each arm was pulled, shape (contexts, arms).
        statistic: how much speaks against all alternatives, in units of log-likelihood.
        threshold: what it had to exceed.

    Example:
        >>> import solid_bandits as sb
        >>> from solid_bandits import identification
        >>> found = identification.identify(sb.problems.end_of_optimism(0.5), delta=0.1, seed=1)
        >>> found.stopped, found.right, found.statistic > found.threshold
        (True, True, True)
    """

    arms: list[int]
    samples: int
    stopped: bool
    right: bool
    counts: Floats
    statistic: float
    threshold: float


def identify(
    problem: Problem,
    rule: Rule | str = "lazy-track-and-stop",
    *,
    delta: float = 0.05,
    seed: int = 0,
    most: int = 10_000_000,
    threshold: str = "mixture",
) -> Identified:
    """Play until the best arm of every context is known with probability 1 - δ.

    The test knows σ and the features. It is valid for any rule (`knowledge` says why): the probability that it ever
    stops with a wrong answer is at most δ, with sub-Gaussian noise. At least `bounds.pure_exploration(problem).z_min` *
    kl(δ, 1 - δ) samples are needed on average by whatever is wrong with probability at most δ.

    Args:
        problem: the problem. It is played with Gaussian noise of its σ.
        rule: a rule, or its name: lingape, lingame, frank-wolfe, lazy-track-and-stop or even.
        delta: the probability with which the answer may be wrong.
        seed: of contexts and noise.
        most: samples after which the search is given up.
        threshold: mixture, which is valid; or heuristic, log((1 + log n) / δ), by which papers compare rules in
            experiments: nothing is proven of it.

    Raises:
        ValueError: features do not span, or an argument is not as it should be.

    Example:
        >>> import solid_bandits as sb
        >>> from solid_bandits import identification
        >>> problem = sb.problems.end_of_optimism(0.3)
        >>> found = identification.identify(problem, "lingape", delta=0.05)
        >>> found.arms, found.samples > sb.bounds.pure_exploration(problem).z_min
        ([2], True)
    """
    if not isinstance(problem, Problem):
        raise ArgumentError("problem", f"must be a Problem, got {type(problem).__name__}")
    seed, most = checks.integer("seed", seed, least=0), checks.integer("most", most, least=1)
    search = Explorer(problem.features, rule, delta=delta, noise_std=problem.noise_std, threshold=threshold)
    draws = np.random.default_rng([seed, CONTEXTS]), np.random.default_rng([seed, NOISE])
    edges = np.cumsum(problem.context_probs)[:-1]
    size, contexts, noise, at, found = FIRST_BLOCK, np.zeros(0, dtype=np.int64), np.zeros(0), 0, False
    while not found and search.samples < most:
        if at == len(noise):
            contexts = np.searchsorted(edges, draws[0].random(size), side="right")
            noise = problem.noise_std * draws[1].standard_normal(size)
            size, at = min(2 * size, LARGEST_BLOCK), 0
        room = min(search.prepare(), most) - search.samples
        end = at + int(max(min(room, len(noise) - at), 1))
        at, found = play(search.at_work, search.known, contexts, problem.means, noise, at, end)
    arms = search.arms
    right = all(problem.gaps[context, arm] == 0 for context, arm in enumerate(arms))
    return Identified(
        arms,
        search.samples,
        bool(found),
        right,
        search.known.counts.copy(),
        search.statistic,
        search.threshold,
    )
