"""The lower bound as stored with results: plain data, with the reason where there is none."""

from collections.abc import Callable, Iterable

import numpy as np

from solid_bandits._internal.types import Plain
from solid_bandits.bounds.programs import lower_bound, lower_bound_at, pure_exploration
from solid_bandits.core.problem import Problem

TOLERANCE = 1e-4
ENDS = ("value", "lower", "upper")


def bound_record(problem: Problem | Callable[[int], Problem], runs: int = 1) -> Plain:
    """Return v* with its certified bracket and allocation; for a new problem in each run, the means over runs.

    Regret averaged over runs is bounded by v* averaged over runs. Where a problem has no bound (for instance, ties for
    the best arm), the record is the reason.
    """
    try:
        if not callable(problem):
            answer = lower_bound(problem, tol=TOLERANCE)
            return {name: getattr(answer, name) for name in ENDS} | {"allocation": answer.allocation.tolist()}
        answers = [lower_bound(problem(run), tol=TOLERANCE) for run in range(runs)]
    except ValueError as error:
        return {"reason": str(error)}
    except Exception as error:  # a missing line in a figure must not lose a simulation
        return {"reason": f"{type(error).__name__}: {error}"}
    means = {name: float(np.mean([getattr(one, name) for one in answers])) for name in ENDS}
    return {**means, "problems": runs}


def targets_record(problem: Problem, zs: Iterable[float]) -> Plain:
    """Return ω*_z and λ* at each normalisation z; null where (P_z) is infeasible or has no solution."""
    at: list[Plain] = []
    exploration = None
    for z in sorted(set(zs)):
        try:
            exploration = exploration or pure_exploration(problem, tol=TOLERANCE)
            answer = lower_bound_at(problem, z, tol=TOLERANCE, exploration=exploration)
        except ValueError:
            at.append({"z": z, "omega": None, "multiplier": None, "value": None})
        else:
            omega = answer.policy.tolist()
            at.append({"z": z, "omega": omega, "multiplier": answer.multiplier, "value": answer.value})
    return {"context_probs": problem.context_probs.tolist(), "n_arms": problem.n_arms, "at": at}
