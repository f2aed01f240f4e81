"""Offers to an agent in compiled form: features and masks, checked."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from solid_bandits._internal import checks
from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits.core.setting import LARGEST_FEATURE, check_features

FLOAT, BOOL = np.dtype(np.float64), np.dtype(np.bool_)
LARGEST_SQUARE = LARGEST_FEATURE**2
MOST_AT_ONCE = 8_192
"""Numbers whose product with themselves is taken: beyond ten thousand OpenBLAS shares it among threads, and where the
machine is busy waits for them a thousand times as long as the product takes."""
ALL: Bools = np.ones(0, dtype=np.bool_)
"""Stands for a mask of every arm."""


def as_arms(features: ArrayLike | None, dim: int) -> Floats:
    """Return the features of the arms on offer, shape (arms, dim)."""
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
    if features.dtype != FLOAT or not flags.c_contiguous or not flags.aligned or features.size == 0:
        return False
    if features.size > MOST_AT_ONCE:
        return bool(features.max() <= LARGEST_FEATURE and features.min() >= -LARGEST_FEATURE)
    return bool(np.vdot(features, features) <= LARGEST_SQUARE)  # not so if any of them is not a number


def is_mask(available: ArrayLike, n_arms: int) -> bool:
    """Return whether compiled code accepts this as the mask of `arms` arms; it checks itself that one is available."""
    return (
        type(available) is np.ndarray
        and available.dtype == BOOL
        and available.shape == (n_arms,)
        and available.flags.c_contiguous
    )


def as_mask(available: ArrayLike | None, n_arms: int) -> Bools:
    """Return the mask of the arms that may be pulled, shape (arms,); None means all."""
    if available is None:
        return np.ones(n_arms, dtype=np.bool_)
    if checks.is_masked(available):
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


def as_many(
    features: Any, available: Any, dim: int, arms_of: Callable[[Any], Floats]
) -> tuple[Floats, Ints, Bools]:
    """Many offers, one after the other: features of all their arms (all arms, dim), where each begins, and the end of
    the last, and masks (all arms,), of length 0 for all.

    Args:
        features: shape (offers, arms, dim), or a list with an array (arms, dim) for each offer.
        available: shape (offers, arms), or a list with a mask, or None, for each offer; None is all.
        dim: d.
        arms_of: checks the features of one offer.
    """
    if isinstance(features, list | tuple):
        shown = list(features)
        if not shown:
            raise ValueError("features must have at least one offer, got an empty list")
        masks = [None] * len(shown) if available is None else listed("available", available)
        if len(masks) != len(shown):
            raise ValueError(f"available must have {len(shown)} masks, one per offer, got {len(masks)}")
        checked, open_to = [], []
        for place, (own, mask) in enumerate(zip(shown, masks, strict=True)):
            try:
                checked.append(arms_of(own))
                open_to.append(as_mask(mask, len(checked[-1])) if available is not None else ALL)
            except ValueError as error:
                raise ValueError(f"offer {place} of {len(shown)}: {error}") from None
        starts = np.zeros(len(shown) + 1, dtype=np.int64)
        np.cumsum([len(own) for own in checked], out=starts[1:])
        return np.concatenate(checked), starts, np.concatenate(open_to)
    phi: Any = features
    if type(phi) is not np.ndarray or phi.ndim != 3 or not is_ready(phi):
        phi = check_features("features", phi, "offers", "arms", "dim")
    offers, arms, width = phi.shape
    if width != dim:
        raise ValueError(f"features must have shape (offers, arms, {dim}), got {phi.shape}")
    rows, mask = arms_of(phi.reshape(-1, dim)), ALL
    if available is not None:
        wanted = "truth values, one per offer and arm"
        mask = _counted("available", available, "b", wanted, (offers, arms))
        none = np.flatnonzero(~mask.any(axis=1))
        if none.size:
            raise ValueError(
                f"available must have at least one arm in each offer, got none in offer {none[0]}"
            )
        mask = np.array(mask).reshape(-1)
    return rows, np.arange(offers + 1, dtype=np.int64) * arms, mask


def as_offers(
    features: ArrayLike, counts: ArrayLike, available: ArrayLike, dim: int
) -> tuple[Floats, Ints, Bools]:
    """Return many offers: features (offers, arms, dim), number of arms of each (offers,), and masks (offers, arms)."""
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
    """Return an array of this shape, with values of these kinds."""
    try:
        found = np.asarray(values)
    except ValueError:  # rows of different lengths
        found = np.array(None)
    if found.dtype.kind not in kinds or found.shape != shape or checks.is_masked(values):
        raise ValueError(
            f"{name} must be {wanted}, of shape {shape}, got {found.dtype} of shape {found.shape}"
        )
    return found


def listed(name: str, values: Iterable[Any]) -> list[Any]:
    """Return values as a list."""
    try:
        return list(values)
    except TypeError:
        raise ValueError(f"{name} must be a list, got {checks.short(values)}") from None
