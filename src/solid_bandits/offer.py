"""What an agent is offered, as compiled code takes it: features and masks, checked."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from solid_bandits import _check
from solid_bandits._types import Bools, Floats, Ints
from solid_bandits.setting import LARGEST_FEATURE, check_features


def as_arms(features: ArrayLike | None, dim: int) -> Floats:
    """The features of the arms on offer, shape (arms, dim)."""
    if type(features) is np.ndarray and features.shape[1:] == (dim,) and is_ready(features):
        return features
    if features is None:
        raise ValueError(f"features must be given to decide, shape (arms, {dim}), got None")
    arms = check_features("features", features, "arms", "dim")
    if arms.shape[1] != dim:
        raise ValueError(f"features must have shape (arms, {dim}), got {arms.shape}")
    return arms


def is_ready(features: Floats) -> bool:
    """Whether these are sound numbers that compiled code takes as they are: asked at every decision, so it is quick."""
    flags = features.flags
    if features.dtype != np.float64 or not flags.c_contiguous or not flags.aligned or features.size == 0:
        return False
    flat = features.reshape(-1)
    return bool(flat.dot(flat) <= LARGEST_FEATURE**2)  # not so if any of them is not a number


def as_mask(available: ArrayLike | None, n_arms: int) -> Bools:
    """Which arms may be pulled, shape (arms,); None is all."""
    if available is None:
        return np.ones(n_arms, dtype=np.bool_)
    if isinstance(available, np.ma.MaskedArray):
        raise ValueError(f"available must be {n_arms} truth values, one per arm, got masked values")
    try:
        mask = np.array(available)
    except ValueError:  # rows of different lengths
        mask = np.array(None)
    if mask.dtype != np.bool_ or mask.shape != (n_arms,):
        raise ValueError(
            f"available must be {n_arms} truth values, one per arm, not indices, got {mask.dtype} of shape "
            f"{mask.shape}"
        )
    if not mask.any():
        raise ValueError("available must have at least one arm, got none")
    result: Bools = mask
    return result


def as_offers(
    features: ArrayLike, counts: ArrayLike, available: ArrayLike, dim: int
) -> tuple[Floats, Ints, Bools]:
    """Many offers: features (offers, arms, dim), how many arms each has (offers,), and masks (offers, arms)."""
    phi: Any = features
    if type(phi) is not np.ndarray or phi.ndim != 3 or not is_ready(phi):
        phi = check_features("features", features, "offers", "arms", "dim")
    offers, arms, width = phi.shape
    if width != dim:
        raise ValueError(f"features must have shape (offers, arms, {dim}), got {phi.shape}")
    offered = _counted("counts", counts, "iu", "whole numbers, one per offer", (offers,))
    for got in (offered.min(), offered.max()):
        if not 1 <= got <= arms:
            raise ValueError(f"counts must be from 1 to {arms}, the arms of the features, got {got}")
    mask = _counted("available", available, "b", "truth values, one per offer and arm", (offers, arms))
    none = np.flatnonzero(~(mask & (np.arange(arms) < offered[:, None])).any(axis=1))
    if none.size:
        raise ValueError(f"available must have at least one arm in each offer, got none in offer {none[0]}")
    shown = [one.view() for one in (phi, offered.astype(np.int64), np.require(mask, requirements=["C", "A"]))]
    for one in shown:
        one.flags.writeable = False  # whatever was given, so that compiled code is asked for one type
    return shown[0], shown[1], shown[2]


def _counted(name: str, values: ArrayLike, kinds: str, wanted: str, shape: tuple[int, ...]) -> Any:
    """An array of this shape, of values of these kinds."""
    try:
        found = np.asarray(values)
    except ValueError:  # rows of different lengths
        found = np.array(None)
    if found.dtype.kind not in kinds or found.shape != shape or isinstance(values, np.ma.MaskedArray):
        raise ValueError(
            f"{name} must be {wanted}, of shape {shape}, got {found.dtype} of shape {found.shape}"
        )
    return found


def listed(name: str, values: Iterable[Any]) -> list[Any]:
    """Values as a list."""
    try:
        return list(values)
    except TypeError:
        raise ValueError(f"{name} must be a list, got {_check.short(values)}") from None
