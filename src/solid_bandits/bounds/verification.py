"""Verification of an answer, which may come from outside or be made by hand, against the evidence inside it."""

import numpy as np

from solid_bandits._internal import checks
from solid_bandits.bounds import _geometry
from solid_bandits.bounds._supply import Setup, by_context, in_total
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
from solid_bandits.core.problem import Problem

Answer = LowerBound | LowerBoundAt | PureExploration | LowerBoundInTotal | BestExecution


def verify(problem: Problem, answer: Answer) -> Proof:
    """Recompute what the evidence inside an answer proves, and reject the answer if it claims more.

    Args:
        problem: the problem the answer is about.
        answer: an answer of `lower_bound`, `lower_bound_at`, `pure_exploration`, `lower_bound_in_total` or
            `best_execution`, or one made by hand.

    Returns:
        The bracket that the allocation (or policy) and the alternatives prove.

    Raises:
        ValueError: the allocation is infeasible, an alternative is none, or the claimed bracket is not proven.

    Example:
        >>> import solid_bandits as sb
        >>> proof = sb.bounds.verify(sb.problems.toy(noise_std=1), sb.bounds.lower_bound(sb.problems.toy(noise_std=1)))
        >>> bool(proof.lower <= 10 <= proof.upper)
        True

    Reference: (P), (P_z), the first statement of Lemma 1, (P̃_z) and (P̃_α).

    """
    gaps = _geometry.gaps(problem)
    _check_answer(problem, answer)
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
    setup = Setup(problem, gaps, _geometry.whole(problem), by_context(problem))
    if isinstance(answer, LowerBoundAt):
        return prove_at(setup, answer.policy, answer.z, evidence)
    if isinstance(answer, LowerBoundInTotal):
        eta = nonnegative("allocation", answer.allocation, problem).reshape(1, -1)
        return prove_at(setup._replace(supply=in_total(problem)), eta / answer.z, answer.z, evidence)
    if isinstance(answer, BestExecution):
        setup = setup._replace(supply=by_context(problem, answer.support))
        if answer.lower == np.inf:
            return _prove_impossible(setup, answer)
        return prove_at(setup, answer.policy, answer.z, evidence)
    return prove_least(setup, answer.policy, evidence)


def _prove_impossible(setup: Setup, answer: BestExecution) -> Proof:
    if setup.supply.allowed.any(axis=1).all():
        steps = least_steps(setup, answer.alternatives)
        if not steps > answer.z:
            raise ValueError(
                f"certificate: z is {answer.z!r}; the alternatives prove only that z >= {steps!r}"
            )
    return Proof(np.inf, np.inf, 0.0)


def _is_exploration_free(problem: Problem, gaps: _geometry.Gaps) -> bool:
    nothing = np.zeros((problem.n_contexts, problem.n_arms))
    return prove_free(problem, gaps, nothing, Alternatives.none(problem.dim)).information == np.inf


def check_kind(name: str, answer: object, kind: type[Answer]) -> None:
    """Raise a ValueError unless an optional answer is of this kind."""
    if answer is not None and not isinstance(answer, kind):
        raise ValueError(f"{name} must be a {kind.__name__}, got {checks.short(answer)}")


def _check_answer(problem: Problem, answer: object) -> None:
    """Raise a ValueError unless every field that a proof starts from has the right type and fits the problem."""
    if not isinstance(answer, Answer):
        raise ValueError(
            "answer must be a LowerBound, LowerBoundAt, PureExploration, LowerBoundInTotal or BestExecution, got "
            f"{checks.short(answer)}"
        )
    names = ("z_min",) if isinstance(answer, PureExploration) else ("value",)
    at = isinstance(answer, LowerBoundAt | LowerBoundInTotal | BestExecution)
    # An infinite bracket claims that an execution is impossible.
    impossible = isinstance(answer, BestExecution) and answer.lower == np.inf
    claimed = () if impossible else (*names, "lower", "upper")
    for name in (*claimed, *(("z",) if at else ())):
        checks.number(f"answer.{name}", getattr(answer, name))
    if isinstance(answer, LowerBound):
        checks.switch("answer.exploration_free", answer.exploration_free)
    if isinstance(answer, LowerBound | LowerBoundInTotal):
        _check_table(problem, "allocation", answer.allocation)
    elif not impossible:
        _check_table(problem, "policy", answer.policy)
    _check_alternatives(problem, answer.alternatives)


def _check_table(problem: Problem, name: str, values: object) -> None:
    table = checks.array(f"answer.{name}", values, "contexts", "arms")  # type: ignore[arg-type]
    if table.shape != (problem.n_contexts, problem.n_arms):
        raise ValueError(
            f"answer.{name} must have shape {(problem.n_contexts, problem.n_arms)}, got {table.shape}"
        )


def _check_alternatives(problem: Problem, alternatives: object) -> None:
    if not isinstance(alternatives, Alternatives):
        raise ValueError(f"answer.alternatives must be Alternatives(...), got {checks.short(alternatives)}")
    shapes = {name: getattr(value, "shape", None) for name, value in vars(alternatives).items()}
    count = (shapes["weights"] or (0,))[0]
    wanted = {"shifts": (count, problem.dim), **dict.fromkeys(("contexts", "arms", "weights"), (count,))}
    if shapes != wanted:
        raise ValueError(f"answer.alternatives must have arrays of shapes {wanted}, got {shapes}")
    if count == 0:
        return
    checks.array("answer.alternatives.shifts", alternatives.shifts, "alternatives", "dim")
    checks.array("answer.alternatives.weights", alternatives.weights, "alternatives")
    for name in ("contexts", "arms"):  # the proof checks which of them are pairs of the problem
        values = getattr(alternatives, name)
        checks.array(f"answer.alternatives.{name}", values, "alternatives")
        if values.dtype.kind not in "iu":
            raise ValueError(f"answer.alternatives.{name} must be integers, got {checks.short(values)}")
