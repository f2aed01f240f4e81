"""Answers as they come from outside, made by hand perhaps: of the right kinds and shapes, before anything is proved."""

import numpy as np

from solid_bandits import _check
from solid_bandits.bounds.results import (
    Alternatives,
    BestExecution,
    LowerBound,
    LowerBoundAt,
    LowerBoundInTotal,
    PureExploration,
)
from solid_bandits.problem import Problem

Answer = LowerBound | LowerBoundAt | PureExploration | LowerBoundInTotal | BestExecution


def check_kind(name: str, answer: object, kind: type[Answer]) -> None:
    """Raise a ValueError unless an answer that may be given, and need not, is of this kind."""
    if answer is not None and not isinstance(answer, kind):
        raise ValueError(f"{name} must be a {kind.__name__}, got {_check.short(answer)}")


def check_answer(problem: Problem, answer: object) -> None:
    """Raise a ValueError unless every field that a proof starts from is of its kind, and fits the problem."""
    if not isinstance(answer, Answer):
        raise ValueError(
            "answer must be a LowerBound, LowerBoundAt, PureExploration, LowerBoundInTotal or BestExecution, got "
            f"{_check.short(answer)}"
        )
    names = ("z_min",) if isinstance(answer, PureExploration) else ("value",)
    at = isinstance(answer, LowerBoundAt | LowerBoundInTotal | BestExecution)
    # That an execution is impossible is told by an infinite bracket.
    impossible = isinstance(answer, BestExecution) and answer.lower == np.inf
    claimed = () if impossible else (*names, "lower", "upper")
    for name in (*claimed, *(("z",) if at else ())):
        _check.number(f"answer.{name}", getattr(answer, name))
    if isinstance(answer, LowerBound):
        _check.switch("answer.exploration_free", answer.exploration_free)
    if isinstance(answer, LowerBound | LowerBoundInTotal):
        _check_table(problem, "allocation", answer.allocation)
    elif not impossible:
        _check_table(problem, "policy", answer.policy)
    _check_alternatives(problem, answer.alternatives)


def _check_table(problem: Problem, name: str, values: object) -> None:
    table = _check.array(f"answer.{name}", values, "contexts", "arms")  # type: ignore[arg-type]
    if table.shape != (problem.n_contexts, problem.n_arms):
        raise ValueError(
            f"answer.{name} must have shape {(problem.n_contexts, problem.n_arms)}, got {table.shape}"
        )


def _check_alternatives(problem: Problem, alternatives: object) -> None:
    if not isinstance(alternatives, Alternatives):
        raise ValueError(f"answer.alternatives must be Alternatives(...), got {_check.short(alternatives)}")
    shapes = {name: getattr(value, "shape", None) for name, value in vars(alternatives).items()}
    count = (shapes["weights"] or (0,))[0]
    wanted = {"shifts": (count, problem.dim), **dict.fromkeys(("contexts", "arms", "weights"), (count,))}
    if shapes != wanted:
        raise ValueError(f"answer.alternatives must have arrays of shapes {wanted}, got {shapes}")
    if count == 0:
        return
    _check.array("answer.alternatives.shifts", alternatives.shifts, "alternatives", "dim")
    _check.array("answer.alternatives.weights", alternatives.weights, "alternatives")
    for name in ("contexts", "arms"):  # which of them are pairs of the problem, the proof finds out
        values = getattr(alternatives, name)
        _check.array(f"answer.alternatives.{name}", values, "alternatives")
        if values.dtype.kind not in "iu":
            raise ValueError(f"answer.alternatives.{name} must be integers, got {_check.short(values)}")
