"""The state of an agent as plain numbers, and back: checked, so that nothing that cannot be is taken in."""

from typing import Any

import numpy as np

from solid_bandits._types import Plain
from solid_bandits.estimation.estimator import Estimator
from solid_bandits.estimation.tables import Tables


def state_to_plain(state: Any) -> Plain:
    """A state as nested dicts and lists of numbers, which JSON keeps exactly."""
    return {
        name: state_to_plain(value) if isinstance(value, tuple) else value.tolist()
        for name, value in state._asdict().items()
        if value is not None  # a part that this form of the policy does not have
    }


def fill_state(state: Any, plain: Plain, path: str = "state") -> None:
    """Write what `state_to_plain` gave into the arrays of a new state of the same policy and setting.

    Shapes, types and ranges are checked before anything is written.
    """
    for array, values in _matched(state, plain, path):
        array[...] = values


def _matched(state: Any, plain: Any, path: str) -> list[tuple[Any, Any]]:
    fields = {name: value for name, value in state._asdict().items() if value is not None}
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
        _check_estimator(Estimator(*(values for _, values in pairs)), path)
    if isinstance(state, Tables):
        _check_tables(Tables(*(values for _, values in pairs)), path)
    return pairs


def _like(array: Any, values: Any, where: str) -> Any:
    """Values as an array like this one: of its shape and kind, finite; counts not negative."""
    counts = array.dtype.kind in "iu"
    wanted = "whole numbers >= 0" if counts else "finite numbers"
    found = np.array(values, dtype=object)  # no conversion yet: it would round large whole numbers
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
    return result


def _check_estimator(estimator: Estimator, path: str) -> None:
    triangle = estimator.triangle
    if not (np.tril(triangle) == np.eye(len(triangle))).all():
        raise ValueError(f"{path}.triangle must be unit upper triangular")
    seen = estimator.rewards.item() > 0
    unset = not seen and not estimator.weights.any()  # a ridge that the first features are to set
    if not unset and not (estimator.weights > 0).all():
        raise ValueError(f"{path}.weights must be > 0: V is not positive definite")
    if estimator.residual.item() < 0 or estimator.log_det_ratio.item() < 0:
        raise ValueError(f"{path}.residual and log_det_ratio must be >= 0")
    if not seen and (estimator.targets.any() or estimator.reward_sum.item() or estimator.residual.item()):
        raise ValueError(f"{path}.targets must be 0 before the first reward")


def _check_tables(tables: Tables, path: str) -> None:
    # Differences may leave a norm a rounding error below 0, and no more.
    if tables.sq_norms.size and tables.sq_norms.min() < -1e-9 * max(float(tables.sq_norms.max()), 1e-300):
        raise ValueError(f"{path}.sq_norms must be >= 0")
