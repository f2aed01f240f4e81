"""An answer against the evidence inside it."""

import numpy as np

from solid_bandits.bounds import _geometry
from solid_bandits.bounds._answer import Answer, check_answer
from solid_bandits.bounds._supply import Supply, by_context, in_total
from solid_bandits.bounds.certificate import (
    SLACK,
    Proof,
    least_steps,
    nonnegative,
    prove_at,
    prove_free,
    prove_least,
)
from solid_bandits.bounds.results import (
    Alternatives,
    BestExecution,
    LowerBound,
    LowerBoundAt,
    LowerBoundInTotal,
    PureExploration,
)
from solid_bandits.problem import Problem


def verify(problem: Problem, answer: Answer) -> Proof:
    """Recompute what the evidence inside an answer proves, and reject the answer if it claims more.

    Args:
        problem: the problem the answer is about.
        answer: of `lower_bound`, `lower_bound_at`, `pure_exploration`, `lower_bound_in_total` or `best_execution`, or
            one made by hand.

    Returns:
        The bracket that the allocation (or policy) and the alternatives prove.

    Raises:
        ValueError: the allocation is infeasible, an alternative is none, or the claimed bracket is not proven.

    Example:
        >>> import solid_bandits as sb
        >>> proof = sb.bounds.verify(sb.problems.toy(noise_std=1), sb.lower_bound(sb.problems.toy(noise_std=1)))
        >>> bool(proof.lower <= 10 <= proof.upper)
        True

    Reference: (P), (P_z), the first statement of Lemma 1, (P̃_z) and (P̃_α).

    """
    gaps = _geometry.gaps(problem)
    check_answer(problem, answer)
    proven = _proven(problem, gaps, answer)
    if proven.lower == np.inf:
        return proven
    if proven.information < 1 - SLACK:
        raise ValueError(
            f"certificate: the answer gives information {proven.information:.9g} against its closest alternative; "
            "it needs 1"
        )
    value = answer.z_min if isinstance(answer, PureExploration) else answer.value
    scale = SLACK * max(abs(answer.upper), abs(answer.lower))
    if not answer.lower <= proven.lower + scale:
        raise ValueError(
            f"certificate: lower is {answer.lower!r}; the alternatives prove only {proven.lower!r}"
        )
    if not answer.upper >= proven.upper - scale:
        raise ValueError(
            f"certificate: upper is {answer.upper!r}; the allocation proves only {proven.upper!r}"
        )
    if not answer.lower - scale <= value <= answer.upper + scale:
        raise ValueError(f"certificate: the value {value!r} is outside [{answer.lower!r}, {answer.upper!r}]")
    return proven


def _proven(problem: Problem, gaps: _geometry.Gaps, answer: Answer) -> Proof:
    evidence = answer.alternatives
    if isinstance(answer, LowerBound):
        if answer.exploration_free and not _is_exploration_free(problem, gaps):
            raise ValueError(
                "certificate: exploration_free is claimed, but some alternative agrees on optimal arms"
            )
        return prove_free(problem, gaps, answer.allocation, evidence)
    if isinstance(answer, LowerBoundAt):
        return prove_at(problem, gaps, answer.policy, answer.z, evidence)
    if isinstance(answer, LowerBoundInTotal):
        eta = nonnegative("allocation", answer.allocation, problem).reshape(1, -1)
        return prove_at(problem, gaps, eta / answer.z, answer.z, evidence, supply=in_total(problem))
    if isinstance(answer, BestExecution):
        supply = by_context(problem, answer.support)
        if answer.lower == np.inf:
            return _prove_impossible(problem, gaps, answer, supply)
        return prove_at(problem, gaps, answer.policy, answer.z, evidence, supply=supply)
    return prove_least(problem, gaps, answer.policy, evidence)


def _prove_impossible(problem: Problem, gaps: _geometry.Gaps, answer: BestExecution, supply: Supply) -> Proof:
    if supply.allowed.any(axis=1).all():
        steps = least_steps(problem, gaps, answer.alternatives, _geometry.whole(problem), supply)
        if not steps > answer.z:
            raise ValueError(
                f"certificate: z is {answer.z!r}; the alternatives prove only that z >= {steps!r}"
            )
    return Proof(np.inf, np.inf, 0.0)


def _is_exploration_free(problem: Problem, gaps: _geometry.Gaps) -> bool:
    nothing = np.zeros((problem.n_contexts, problem.n_arms))
    none = np.zeros(0, dtype=np.int64)
    evidence = Alternatives(np.zeros((0, problem.dim)), none, none, np.zeros(0))
    return prove_free(problem, gaps, nothing, evidence).information == np.inf
