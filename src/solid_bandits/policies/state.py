"""The state of an agent as plain numbers, and back, checked so that no impossible state is accepted."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from solid_bandits._internal.types import Plain
from solid_bandits.estimation.blocks import Blocks, each_block
from solid_bandits.estimation.estimator import Estimator, make_estimator, squared_norm, write_theta
from solid_bandits.estimation.evidence import replace_ridge
from solid_bandits.estimation.ridge import Regression
from solid_bandits.estimation.tables import TableRegression

LARGEST_COUNT = 2**53
"""Largest count of decisions and rewards: no run comes near it, and counting on does not overflow."""
LARGEST_ESTIMATE = 1e200
"""Largest entry of θ-hat: times any accepted feature it is finite."""


def _carried(state: Any) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of a state, and its parts that have any, without chosen numbers and scratch."""
    for name, value in state._asdict().items():
        if isinstance(value, tuple):
            if name != "work" and any(True for _ in _carried(value)):
                yield name, value
        elif isinstance(value, np.ndarray):
            yield name, value


def state_to_plain(state: Any) -> Plain:
    """Return a state as nested dicts and lists of numbers, which JSON stores exactly."""
    return {
        name: state_to_plain(value) if isinstance(value, tuple) else value.tolist()
        for name, value in _carried(state)
    }


def fill_state(state: Any, plain: Plain, path: str = "state") -> None:
    """Write the result of `state_to_plain` into the arrays of a new state of the same policy and setting.

    Shapes, types and ranges are checked before anything is written.
    """
    for array, values in _matched(state, plain, path):
        array[...] = values


def _matched(state: Any, plain: Any, path: str) -> list[tuple[Any, Any]]:
    fields = dict(_carried(state))
    if not isinstance(plain, dict) or set(plain) != set(fields):
        got = ", ".join(sorted(map(str, plain))) if isinstance(plain, dict) else repr(plain)
        raise ValueError(f"{path} must have the fields {', '.join(sorted(fields))}, got {got}")
    pairs: list[tuple[Any, Any]] = []
    for name, value in fields.items():
        where = f"{path}.{name}"
        if isinstance(value, tuple):
            pairs += _matched(value, plain[name], where)
        else:
            pairs.append((value, _like(value, plain[name], where)))
    if isinstance(state, Estimator):
        _check_estimator(Estimator(*(values for _, values in pairs)), state.weights, path)
    return pairs


def _like(array: Any, values: Any, where: str) -> Any:
    """Return values as an array of the same shape and kind; values must be finite, and counts not negative."""
    counts = array.dtype.kind in "iu"
    wanted = "whole numbers >= 0" if counts else "finite numbers"
    found = np.array(values, dtype=object)  # not converted yet, because that would round large whole numbers
    if array.size == found.size == 0:
        return array  # nested lists cannot show the width of zero rows
    if found.shape != array.shape:
        raise ValueError(f"{where} must have shape {array.shape}, got {found.shape}")
    kinds = (int,) if counts else (int, float)
    if not all(type(value) in kinds and (not counts or value >= 0) for value in found.flat):
        raise ValueError(f"{where} must be {wanted}")
    try:
        result = found.astype(array.dtype)
    except OverflowError:
        raise ValueError(f"{where} must be {wanted} that fit {array.dtype}") from None
    if not np.isfinite(result).all():
        raise ValueError(f"{where} must be {wanted}")
    if array.dtype.kind == "i" and result.size and result.max() > LARGEST_COUNT:
        raise ValueError(f"{where} must be {wanted}, at most {LARGEST_COUNT}")
    return result


def _check_estimator(estimator: Estimator, ridge: Any, path: str) -> None:
    """Raise a ValueError for an estimator that no rewards lead to from V = `ridge` I; a ridge of 0 is yet to be set."""
    if not _is_unit_upper(estimator.triangle):
        raise ValueError(f"{path}.triangle must be unit upper triangular")
    seen = estimator.rewards.item() > 0
    unset = not seen and not ridge.any() and not estimator.weights.any()
    if not unset and not ((estimator.weights > 0) & (estimator.weights >= ridge)).all():
        raise ValueError(f"{path}.weights must be > 0 and at least the ridge: V is not positive definite")
    theta = np.zeros(ridge.shape[-1])
    for block in each_block(estimator):
        norms = [0.0 if unset else squared_norm(block, unit) for unit in np.eye(len(theta))]
        # V is at least νI, so up to rounding these norms are at most 1/ν; rounding is large where features differ in
        # size.
        if not max(norms) <= LARGEST_ESTIMATE:
            raise ValueError(f"{path}.triangle must give V >= ridge: V is not positive definite")
        write_theta(block, theta)
        if not (np.abs(theta) <= LARGEST_ESTIMATE).all():
            raise ValueError(f"{path}.targets must give an estimate of at most {LARGEST_ESTIMATE:g}")
    sums = (estimator.residual, estimator.log_det_ratio, estimator.reward_scatter, estimator.mass)
    if min(value.item() for value in sums) < 0:
        raise ValueError(f"{path}.residual, log_det_ratio, reward_scatter and mass must be >= 0")
    if not seen and (
        estimator.targets.any()
        or estimator.reward_sum.item()
        or estimator.residual.item()
        or estimator.reward_scatter.item()
    ):
        raise ValueError(f"{path}.targets must be 0 before the first reward")
    if estimator.mass.item() > estimator.rewards.item():
        raise ValueError(f"{path}.mass must be at most the number of rewards")


def _is_unit_upper(triangle: Any) -> bool:
    """Return whether a triangle, or each of several, is unit upper triangular."""
    return bool((np.tril(triangle) == np.eye(triangle.shape[-1])).all())


NOT_NEGATIVE = (
    "residual",
    "leeway",
    "mixability",
    "tracked",
    "omega_sum",
    "shares",
    "multipliers",
    "bracket",
)
"""Fields of states that are >= 0 in every policy that has them."""


def check_counts(state: Any) -> None:
    """Raise a ValueError for contradictory counts, or for negative numbers where there can be none, in any policy's
    state.
    """
    fields = dict(_parts(state, "state"))
    for path, value in fields.items():
        name = path.rpartition(".")[2]
        if name in NOT_NEGATIVE and (value < 0).any():
            raise ValueError(f"{path} must be >= 0")
    step = fields.get("state.step", fields.get("state.regression.step"))
    explored, pulls = fields.get("state.explored"), fields.get("state.pulls")
    if step is not None and explored is not None and explored > step:
        raise ValueError("state.explored must be at most state.step")
    if step is not None and pulls is not None and pulls.sum() > step:
        raise ValueError("state.pulls must sum to state.step at most")
    for tally in ("tally", "recovery"):
        pulled, rewards = fields.get(f"state.{tally}.pulls"), fields.get(f"state.{tally}.rewards")
        if step is None or pulled is None or rewards is None:
            continue
        if (rewards > pulled).any() or pulled.sum() > step:
            raise ValueError(
                f"state.{tally}.rewards must be at most its pulls, and these sum to state.step at most"
            )
    wanted = fields.get("state.allocation.pulls")
    if wanted is not None and (wanted < 0).any():
        raise ValueError("state.allocation.pulls must be >= 0")


def _parts(state: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, value in _carried(state):
        if isinstance(value, tuple):
            yield from _parts(value, f"{path}.{name}")
        else:
            yield f"{path}.{name}", value


def check_evidence(agent: Any) -> None:
    """Raise a ValueError if the estimator does not follow from the rewards without a ridge."""
    regression = getattr(agent.state, "regression", None)
    if not isinstance(regression, Regression | Blocks) or regression.evidence is None:
        return
    evidence, estimator = regression.evidence, regression.estimator
    if regression.params.kept == 1.0 and estimator.mass.item() != estimator.rewards.item():
        raise ValueError("state.regression.estimator.mass must be the number of rewards")
    ridge, start, dim = evidence.ridge.item(), evidence.start.item(), evidence.weights.shape[-1]
    if not _is_unit_upper(evidence.triangle) or (evidence.weights < 0).any():
        raise ValueError(
            "state.regression.evidence.triangle must be unit upper triangular, and its weights >= 0"
        )
    if min(ridge, start, evidence.residual.item()) < 0 or (start > 0 and not 0 < ridge <= start):
        raise ValueError(
            "state.regression.evidence.ridge must be > 0 and at most state.regression.evidence.start, its residual >= 0"
        )
    if (ridge > 0) != bool(estimator.weights.any()):
        raise ValueError("state.regression.evidence.ridge must be that of state.regression.estimator")
    if estimator.rewards.item() == 0 and (evidence.weights.any() or evidence.targets.any()):
        raise ValueError("state.regression.evidence.weights must be 0 before the first reward")
    if ridge == 0:
        return
    for bare, block in zip(each_block(evidence), each_block(estimator), strict=True):
        other = make_estimator(dim, ridge)
        replace_ridge(bare, other, ridge, np.zeros(dim))
        # Rounding shows where columns have offsets; a state with other rewards differs by far more.
        found, kept = np.log(other.weights).sum(), np.log(block.weights).sum()
        if not np.isclose(found, kept, rtol=1e-3, atol=0.1 * dim):
            raise ValueError(
                "state.regression.estimator must be that of state.regression.evidence and its ridge"
            )


def arrays_of(state: Any) -> list[Any]:
    """Return all arrays of a state, in order."""
    return [value for _, value in _parts(state, "state")]


def check_tables(agent: Any) -> None:
    """Raise a ValueError if the tables of a table policy's agent do not follow from its estimator."""
    regression = getattr(agent.state, "regression", None)
    if not isinstance(regression, TableRegression):
        return
    tables = regression.tables
    estimator: Estimator = agent.state.regression.estimator
    features = agent.table.features
    waiting = tables.waiting.item()
    if (tables.sq_norms < 0).any():
        raise ValueError("state.regression.tables.sq_norms must be >= 0")
    if waiting <= len(tables.directions):  # otherwise norms will be recomputed, whatever they are
        rows = np.linalg.solve(estimator.triangle.T, features.reshape(-1, features.shape[2]).T)
        norms = (rows**2 / estimator.weights[:, None]).sum(axis=0).reshape(tables.sq_norms.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            taken = tables.sq_norms - ((features @ tables.directions[:waiting].T) ** 2).sum(axis=2)
        if not np.allclose(taken, norms, rtol=1e-4, atol=1e-6 * norms.max()):
            raise ValueError(
                "state.regression.tables.sq_norms must be the norms that state.regression.estimator gives"
            )
    if waiting == 0:  # otherwise means will be recomputed
        theta = np.zeros(features.shape[2])
        write_theta(estimator, theta)
        slack = 1e-6 * agent.table.feature_bound * float(np.linalg.norm(theta))
        if not np.allclose(tables.means, features @ theta, rtol=1e-4, atol=slack):
            raise ValueError(
                "state.regression.tables.means must be the means that state.regression.estimator gives"
            )
