"""Consecutive rounds of a stream: the arms on offer in each, and the mean reward of each arm."""

from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from solid_bandits._internal import checks
from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits.core.setting import LARGEST_FEATURE, LARGEST_REWARD

NUMBERS = 2**18
"""Approximate number of features in a block: 2 MiB, which fits in a processor's cache."""
MOST_ROUNDS = 4096


def rounds_per_block(n_arms: int, dim: int) -> int:
    """Return the number of rounds in a block, for rounds of this size."""
    return max(1, min(MOST_ROUNDS, NUMBERS // (n_arms * dim)))


EventIds = Sequence[str] | np.ndarray
"""Names of rounds."""


class RoundArrays(NamedTuple):
    """The arrays of a block as compiled code receives them; all read-only."""

    features: Floats
    """φ, shape (rounds, arms, dim)."""
    counts: Ints
    """Number of arms on offer in each round, shape (rounds,); they come first."""
    available: Bools
    """Mask of the available arms, shape (rounds, arms)."""
    means: Floats
    """μ, shape (rounds, arms)."""
    noise: Floats
    """Noise added to the mean of whichever arm is pulled, shape (rounds,)."""


_TYPES = (np.float64, np.int64, np.bool_, np.float64, np.float64)
"""The dtypes of these arrays."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """A block of consecutive rounds.

    Features, means and noise may be views of arrays into which the stream writes its next block: they are used before
    the next block is requested.

    Args:
        features: φ, shape (rounds, arms, dim).
        means: mean reward of each arm, or its reward if that is what is known, shape (rounds, arms).
        available: mask of the arms that may be pulled, shape (rounds, arms); None means all.
        counts: number of arms in each round, shape (rounds,), if they differ: the rest is padding. None means all.
        noise: noise added to the mean of whichever arm is pulled, shape (rounds,); None means none.
        event_ids: name of each round, text or a whole number; None uses the step at which it comes.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> rounds = sb.streams.Rounds(np.ones((2, 3, 1)), means=[[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
        >>> rounds.arrays.available.all().item()
        True
    """

    arrays: RoundArrays
    event_ids: EventIds | None
    _made: RoundArrays = field(repr=False)
    """The checked arrays; arrays that somebody puts in their place are checked too."""

    def __init__(
        self,
        features: ArrayLike,
        means: ArrayLike,
        available: ArrayLike | None = None,
        counts: ArrayLike | None = None,
        noise: ArrayLike | None = None,
        event_ids: EventIds | None = None,
    ) -> None:
        phi = _floats("features", features, 3, LARGEST_FEATURE)
        rounds, arms, _ = phi.shape
        mu = _floats("means", means, 2, LARGEST_REWARD)
        _check_shape("means", mu, (rounds, arms))
        mask: Bools = np.ones((rounds, arms), dtype=np.bool_)
        if available is not None:
            mask = _array("available", available)
            if mask.dtype != np.bool_:
                raise checks.ArgumentError("available", f"must be true and false, got {mask.dtype}")
            _check_shape("available", mask, (rounds, arms))
        offered: Ints = np.full(rounds, arms, dtype=np.int64)
        if counts is not None:
            offered = _array("counts", counts)
            if offered.dtype.kind not in "iu":
                raise checks.ArgumentError("counts", f"must be whole numbers, got {offered.dtype}")
            _check_shape("counts", offered, (rounds,))
            _check_counts(offered, arms)
            mask = mask & (np.arange(arms) < offered[:, None])
        if available is not None:
            none = np.flatnonzero(~mask.any(axis=1))
            if none.size:
                raise checks.ArgumentError(
                    "available", f"must have an arm in each round, got none in {none[0]}"
                )
        added = np.zeros(rounds) if noise is None else _floats("noise", noise, 1, LARGEST_REWARD)
        _check_shape("noise", added, (rounds,))
        if event_ids is not None and not isinstance(event_ids, Sized):
            raise checks.ArgumentError(
                "event_ids", f"must be a list of names, one per round, got {checks.short(event_ids)}"
            )
        if event_ids is not None and len(event_ids) != rounds:
            raise checks.ArgumentError("event_ids", f"must be {rounds}, one per round, got {len(event_ids)}")
        # Compiled code relies on the counts and the mask, so this block has its own copies.
        own = (phi, np.array(offered, dtype=np.int64), np.array(mask), mu, added)
        arrays = RoundArrays(*map(_shown, own))
        for name, value in (("arrays", arrays), ("_made", arrays), ("event_ids", event_ids)):
            object.__setattr__(self, name, value)  # the only place where the frozen fields are written

    def __len__(self) -> int:
        return len(self.arrays.counts)

    def first(self, count: int) -> "Rounds":
        """Return the first rounds of the block, or the block itself if it has no more."""
        if count >= len(self):
            return self
        ids = None if self.event_ids is None else self.event_ids[:count]
        features, counts, available, means, noise = (one[:count] for one in self.arrays)
        return Rounds(features, means, available, counts, noise, ids)


def sound_blocks(blocks: Any, dim: int, n_arms: int) -> Iterator[Rounds]:
    """Yield the blocks of a stream of this size, each checked before compiled code relies on it."""
    try:
        given = iter(blocks)
    except TypeError:
        raise ValueError(
            f"blocks must give sb.streams.Rounds one by one, got {checks.short(blocks)}"
        ) from None
    for block in given:
        yield _sound(block, dim, n_arms)


def _sound(block: Any, dim: int, n_arms: int) -> Rounds:
    if not isinstance(block, Rounds):
        raise ValueError(f"blocks must give sb.streams.Rounds, got {checks.short(block)}")
    rounds = block if _is_as_made(block) else _made_again(block)
    shape = rounds.arrays.features.shape
    if shape[2] != dim or shape[1] > n_arms:
        raise ValueError(
            f"features of a block must have shape (rounds, arms, {dim}) with at most {n_arms} arms, as dim and n_arms "
            f"of the stream say, got {shape}"
        )
    return rounds


def _is_as_made(block: Rounds) -> bool:
    """Return whether the arrays of a block are the checked ones, in the same form."""
    arrays = getattr(block, "arrays", None)
    if type(block) is not Rounds or not isinstance(arrays, RoundArrays) or arrays is not block._made:
        return False
    if arrays.features.ndim != 3:
        return False
    rounds, arms, _ = arrays.features.shape
    shapes = (arrays.features.shape, (rounds,), (rounds, arms), (rounds, arms), (rounds,))
    for one, kind, shape in zip(arrays, _TYPES, shapes, strict=True):
        flags = one.flags
        if one.dtype != kind or one.shape != shape or not flags.c_contiguous or flags.writeable:
            return False
    return bool(arrays.counts.min() >= 1 and arrays.counts.max() <= arms)


def _made_again(block: Rounds) -> Rounds:
    """Return a block with the same numbers, checked like a new one."""
    arrays, ids = (getattr(block, name, None) for name in ("arrays", "event_ids"))
    if not isinstance(arrays, RoundArrays):
        raise ValueError(
            f"blocks must give sb.streams.Rounds as they were made, got arrays {checks.short(arrays)}"
        )
    return Rounds(arrays.features, arrays.means, arrays.available, arrays.counts, arrays.noise, ids)


def _array(name: str, values: Any) -> Any:
    """Return values of any type as an array."""
    if isinstance(values, np.ma.MaskedArray):
        raise checks.ArgumentError(name, "must be an array without masked values, got one with them")
    try:
        return np.asarray(values)
    except ValueError:  # rows of different lengths
        raise checks.ArgumentError(
            name, f"must be an array, got rows of different lengths, {checks.short(values)}"
        ) from None


def _floats(name: str, values: ArrayLike, axes: int, largest: float) -> Floats:
    found = _array(name, values)
    if found.dtype.kind not in "biuf" or found.ndim != axes or 0 in found.shape:
        raise checks.ArgumentError(
            name, f"must be numbers with {axes} axes, none empty, got {found.dtype} of shape {found.shape}"
        )
    result: Floats = np.require(found, np.float64, ["C", "A"])
    # The minimum and maximum of numbers that include a NaN are NaN.
    least, most = result.min(), result.max()
    if not (-largest <= least and most <= largest):
        got = least if not least >= -largest else most
        raise checks.ArgumentError(name, f"must be finite and at most {largest:g} in size, got {got:g}")
    return result


def _check_counts(counts: Ints, arms: int) -> None:
    for got in (counts.min(), counts.max()):
        if not 1 <= got <= arms:
            raise checks.ArgumentError(
                "counts", f"must be from 1 to {arms}, the arms of the features, got {got}"
            )


def _check_shape(name: str, values: Any, shape: tuple[int, ...]) -> None:
    if values.shape != shape:
        raise checks.ArgumentError(name, f"must have shape {shape}, got {values.shape}")


def _shown(values: Any) -> Any:
    view = values.view()
    view.flags.writeable = False
    return view
