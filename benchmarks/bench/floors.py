"""A floor for each policy: the work that a step must do, times its cost on this machine (`rates`).

A *floor* is a sum of kernels for one kind of step of one policy. The estimate is a triangle U with weights D,
V = Uᵀ D U, and t = U θ-hat; a reward is rotated into it. Where there are several ways to do the same thing (`AnyOf`),
the cheapest at this size counts.

Not counted, so that the floor is low rather than high: norms recomputed to stop rounding errors from building up,
scalar arithmetic, function calls, the step counters, and the random stream that draws contexts and noise (measured
separately, `rates.draws.empty_loop`, and subtracted from the time of a step).

`size` is (contexts, arms, dim); `facts` describes the state of the run.
"""

from collections.abc import Callable
from typing import NamedTuple

from bench.terms import AnyOf, Items, Term


class Facts(NamedTuple):
    """Quantities besides the size that a step's work depends on."""

    support: int
    """Number of pairs whose weight is not lost in rounding; the others need not be summed."""
    searches: float = 1.0
    """Share of SOLID's exploring steps that need the closest alternative; 0 while λ stays at 0."""
    solves: float = 0.0
    """Solutions of the allocation problem per step."""
    newton: float = 0.0
    """Newton steps per solution."""
    active: int = 0
    """Active pairs in the allocation problem."""
    rank: int = 0
    """Dimensions outside the span of the optimal arms."""


Size = tuple[int, int, int]


def _reward(size: Size) -> Term:
    return Term("rotate", (size[2],), "the reward taken in: U, D and t")


def _means(size: Size) -> Items:
    """Return the terms of the means of the arms on offer."""
    _, arms, dim = size
    return [
        Term("unit", (dim,), "θ-hat = U^-1 t"),
        Term("columns", (dim, arms), "means of the context's arms"),
    ]


def _tables(size: Size) -> tuple[Term, ...]:
    """Return the terms of updating mean and norm of every pair by the reward's direction."""
    contexts, arms, dim = size
    return (
        Term("unit", (dim,), "the direction V^-1 φ of the reward"),
        Term("learn", (dim, contexts * arms), "mean and norm of every pair moved by it"),
    )


def _test(size: Size) -> Items:
    """Return the terms of the exploitation test when it passes: every alternative of the context is checked."""
    _, arms, dim = size
    return [
        Term("norms", (dim, arms), "U^-T φ of the context's arms, and their means"),
        Term("columns", (dim, arms), "‖φ* - φ‖² from them"),
        Term("bounds", (arms,), "the best arm, and each distance against the threshold"),
        Term("log", (), "log t in the threshold"),
    ]


def _failed_test(size: Size) -> Items:
    """Return the terms of the exploitation test when it fails: one alternative within the threshold is enough."""
    _, arms, dim = size
    return [
        Term("top", (arms,), "the best arm"),
        Term("unit", (dim,), "the norm of the one alternative that fails the test"),
        Term("log", (), "log t and log s in the thresholds", 2),
    ]


def _search(size: Size, facts: Facts) -> Items:
    """Return the terms of the closest alternative under V_ω, and of the information of every pair about it."""
    contexts, arms, dim = size
    pairs, share = contexts * arms, facts.searches
    if share == 0.0:
        return []
    why = "the closest alternative: every norm, or a test that old norms still bound, the bounds and one norm"
    return [
        Term("gram", (dim, facts.support), "V_ω over the pairs whose weight counts", share),
        Term("cholesky", (dim,), "the factor of V_ω", share),
        AnyOf(
            (
                (Term("alternatives", (dim, pairs), why, share),),
                (
                    Term("cholesky", (dim,), why, share),
                    Term("bounds", (pairs,), why, share),
                    Term("triangular", (dim,), why, share),
                ),
            ),
            why,
        ),
        Term("triangular", (dim,), "θ - θ' of it", share),
        Term("columns", (dim, pairs), "what every pair tells about it", share),
    ]


def solid_exploring(size: Size, facts: Facts) -> Items:
    """Return the terms of one exploring step of SOLID."""
    contexts, arms, _ = size
    pairs = contexts * arms
    return [
        _reward(size),
        *_tables(size),
        *_failed_test(size),
        *_search(size, facts),
        Term("gradient", (pairs,), "q_t and the constraint"),
        Term("normalise", (contexts, arms), "logits and ω moved"),
        Term("exp", (pairs,), "ω from its logits"),
        Term("uniform", (), "the arm drawn"),
    ]


def solid_exploiting(size: Size, facts: Facts) -> Items:
    """Return the terms of one exploiting step of SOLID, whose test uses the statistic itself: new norms."""
    return [_reward(size), *_test(size)]


def identified(size: Size, facts: Facts) -> Items:
    """Return the terms of one exploiting step of AO-IDS and of SPL: old norms, which have only fallen since, decide."""
    return [
        _reward(size),
        *_means(size),
        Term("bounds", (size[1],), "the best arm, and each gap against what the old norm asks"),
        Term("log", (), "log t in the threshold"),
    ]


def linucb(size: Size, facts: Facts) -> Items:
    """Return the terms of one step of LinUCB."""
    _, arms, dim = size
    return [
        _reward(size),
        Term("norms", (dim, arms), "mean and norm of the context's arms"),
        Term("upper", (arms,), "the largest bound, and whether it is the largest mean"),
        Term("log", (), "log det V and log t in the radius", 2),
    ]


def randucb(size: Size, facts: Facts) -> Items:
    """Return the terms of one step of RandUCB: LinUCB's with another width, and the rewards' triangle without a
    ridge.
    """
    return [
        *linucb(size, facts),
        Term("rotate", (size[2],), "the reward taken into the triangle without a ridge"),
        Term("uniform", (), "the width drawn"),
    ]


def lints(size: Size, facts: Facts) -> Items:
    """Return the terms of one step of LinTS."""
    _, arms, dim = size
    return [
        _reward(size),
        Term("normals", (dim,), "the draw"),
        Term("unit", (dim,), "U^-1 of it"),
        Term("columns", (dim, arms), "means of the context's arms at the draw"),
        *_means(size),
        Term("bounds", (arms,), "the best arm of both"),
    ]


VIDS_SAMPLES = 500
"""Number of models that VIDS draws by default."""


def vids(size: Size, facts: Facts) -> Items:
    """Return the terms of one step of VIDS whose samples agree on the best arm, so that no information is needed."""
    _, arms, dim = size
    return [
        _reward(size),
        Term("rotate", (dim,), "the reward taken into the triangle without a ridge"),
        Term("normals", (dim,), "the samples", VIDS_SAMPLES),
        Term("unit", (dim,), "U^-1 of each", VIDS_SAMPLES),
        Term("columns", (dim, arms), "means of the context's arms in each", VIDS_SAMPLES),
        Term("top", (arms,), "the best arm of each", VIDS_SAMPLES),
        *_means(size),
        Term("top", (arms,), "whether it is the greedy arm"),
    ]


def greedy(size: Size, facts: Facts) -> Items:
    """Return the terms of one step of greedy."""
    return [_reward(size), *_means(size), Term("top", (size[1],), "the best arm")]


def epsilon_exploiting(size: Size, facts: Facts) -> Items:
    """Return the terms of a greedy step of epsilon-greedy."""
    return [*greedy(size, facts), Term("uniform", (), "whether to explore")]


def epsilon_exploring(size: Size, facts: Facts) -> Items:
    """Return the terms of a random step of epsilon-greedy, which needs no means."""
    return [_reward(size), Term("uniform", (), "whether to explore, and the arm", 2)]


def ucb1(size: Size, facts: Facts) -> Items:
    """Return the terms of one step of UCB1: the mean and 1/√N of an arm change only when it is pulled."""
    return [
        Term("bounds", (size[1],), "the largest bound, and whether it is the largest mean"),
        Term("log", (), "log t"),
    ]


def aoids_exploring(size: Size, facts: Facts) -> Items:
    """Return the terms of one exploring step of AO-IDS."""
    contexts, arms, dim = size
    pairs = contexts * arms
    why = "‖φ* - φ‖² and φᵀV^-1φ' of every pair: from V^-1 φ of few, or from U^-T φ of all"
    cross = Term("cross", (arms, dim, facts.support), why)
    return [
        _reward(size),
        *_failed_test(size),
        AnyOf(
            (
                (
                    *_tables(size),
                    Term("solves", (dim, contexts), why),
                    Term("solves", (dim, arms), why),
                    Term("columns", (dim, pairs), why),
                    cross,
                ),
                (Term("norms", (dim, pairs), why), Term("columns", (dim, pairs), why), cross),
            ),
            why,
        ),
        Term("exp", (pairs,), "the weight of every alternative"),
        Term("information", (arms, facts.support), "the information of every arm"),
        Term("upper", (arms,), "the optimistic regret of every arm"),
        Term("mixtures", (arms,), "the best mixture of two arms"),
        Term("uniform", (), "which of the two"),
    ]


def _solve(size: Size, facts: Facts) -> Items:
    """Return the terms of the allocation: Newton steps on n pairs outside the optimal arms' span, in k dimensions."""
    contexts, arms, dim = size
    n, k = facts.active, facts.rank
    if n == 0 or k == 0 or facts.solves == 0.0:
        return []
    points, steps = facts.solves * (facts.newton + 1.0), facts.solves * facts.newton
    return [
        Term("cross", (k, dim, contexts * arms), "features outside the optimal arms' span", facts.solves),
        Term("gram", (k, n), "M = Σ x uuᵀ at every point", points),
        Term("cholesky", (k,), "its factor", points),
        Term("alternatives", (k, n), "L^-1 u of every pair at work", points),
        # K is symmetric, and so is each of the two products of the system.
        Term("gram", (n, k), "K = uᵀM^-1u", points),
        Term("gram", (n, n), "the two parts of the Newton matrix", 2.0 * steps),
        Term("cholesky", (n,), "its factor", steps),
        Term("triangular", (n,), "two solves of two triangles", 4.0 * steps),
        Term("matvec", (n,), "prices, residuals and directions", 3.0 * steps),
    ]


def oam_exploiting(size: Size, facts: Facts) -> Items:
    """Return the terms of one exploiting step of OAM, whose test needs the least gap of all contexts."""
    contexts, arms, dim = size
    pairs = contexts * arms
    why = "the means of all pairs and the norms of the context's arms"
    return [
        _reward(size),
        AnyOf(
            (
                _tables(size),
                (
                    Term("unit", (dim,), why),
                    Term("columns", (dim, pairs), why),
                    Term("norms", (dim, arms), why),
                ),
            ),
            why,
        ),
        Term("top", (pairs,), "the best arm of every context and the least gap", 2),
        Term("bounds", (arms,), "the test of each arm"),
        Term("log", (), "log t in the threshold"),
    ]


def oam_exploring(size: Size, facts: Facts) -> Items:
    """Return the terms of one exploring step of OAM with a solve."""
    return [
        *oam_exploiting(size, facts),
        *_solve(size, facts),
        Term("bounds", (size[1],), "the rarest arm and the one that lags most"),
    ]


def ossb(size: Size, facts: Facts) -> Items:
    """Return the terms of one step of OSSB, which solves in every step; both kinds do the same."""
    return [
        _reward(size),
        *_means(size),
        Term("bounds", (size[1],), "the best, the rarest and the most lagging arm"),
        *_solve(size, facts),
        Term("log", (), "log t"),
    ]


def spl_exploring(size: Size, facts: Facts) -> Items:
    """Return the terms of one exploring step of SPL: SOLID's with one context, AdaHedge instead of the gradient
    step.
    """
    _, arms, dim = size
    return [
        _reward(size),
        *_means(size),
        *_failed_test(size),
        Term("exp", (arms,), "the rates of AdaHedge and its mix", 2),
        *_search((1, arms, dim), facts),
        Term("gradient", (arms,), "gains with their intervals, a root each"),
        Term("normalise", (1, arms), "gains and rates moved"),
        Term("log", (), "log t in the clip, the rate, the mix", 3),
        Term("bounds", (arms,), "the arm that lags most"),
    ]


def end_of_optimism(size: Size, facts: Facts) -> Items:
    """Return the terms of one step after the warm-up; the solve at its end happens once and is not counted."""
    return [
        _reward(size),
        *_means(size),
        Term("top", (size[1],), "whether every mean is where it was"),
        Term("bounds", (size[1],), "the arm that lags most, and the best one"),
    ]


FLOORS: dict[tuple[str, str], Callable[[Size, Facts], Items]] = {
    ("SOLID", "exploring"): solid_exploring,
    ("SOLID", "searching"): solid_exploring,
    ("SOLID", "exploiting"): solid_exploiting,
    ("LinUCB", "any"): linucb,
    ("RandUCB", "any"): randucb,
    ("LinTS", "any"): lints,
    ("VIDS", "any"): vids,
    ("Greedy", "any"): greedy,
    ("EpsilonGreedy", "exploring"): epsilon_exploring,
    ("EpsilonGreedy", "exploiting"): epsilon_exploiting,
    ("AOIDS", "exploring"): aoids_exploring,
    ("AOIDS", "exploiting"): identified,
    ("OAM", "exploring"): oam_exploring,
    ("OAM", "exploiting"): oam_exploiting,
    ("OSSB", "exploring"): ossb,
    ("OSSB", "exploiting"): ossb,
    ("SPL", "exploring"): spl_exploring,
    ("SPL", "exploiting"): identified,
    ("UCB1", "any"): ucb1,
    ("EndOfOptimism", "any"): end_of_optimism,
}
