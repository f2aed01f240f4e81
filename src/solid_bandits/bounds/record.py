"""The lower bound as results keep it: plain data, with the reason where there is none."""

from collections.abc import Callable

import numpy as np

from solid_bandits._types import Plain
from solid_bandits.bounds.programs import lower_bound
from solid_bandits.problem import Problem

TOLERANCE = 1e-4


def bound_record(problem: Problem | Callable[[int], Problem], runs: int = 1) -> Plain:
    """v* with its certified bracket and allocation; for a new problem in each run, the means over runs.

    Regret averaged over runs is bounded by v* averaged over runs. Where a problem has no bound (ties for the best
    arm, say), the record is the reason.
    """
    try:
        if not callable(problem):
            answer = lower_bound(problem, tol=TOLERANCE)
            return {
                "value": answer.value,
                "lower": answer.lower,
                "upper": answer.upper,
                "allocation": answer.allocation.tolist(),
            }
        answers = [lower_bound(problem(run), tol=TOLERANCE) for run in range(runs)]
    except ValueError as error:
        return {"reason": str(error)}
    means = {
        name: float(np.mean([getattr(one, name) for one in answers])) for name in ("value", "lower", "upper")
    }
    return {**means, "problems": runs}
