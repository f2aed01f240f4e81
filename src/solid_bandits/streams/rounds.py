"""Some consecutive rounds of a stream: what is offered in each, and what each arm is worth."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from solid_bandits import _check
from solid_bandits._types import Bools, Floats, Ints
from solid_bandits.setting import LARGEST_FEATURE, LARGEST_REWARD

NUMBERS = 2**18
"""Features that a block holds, about: 2 MiB, which processors keep near."""
MOST_ROUNDS = 4096


def rounds_per_block(n_arms: int, dim: int) -> int:
    """How many rounds of so many numbers make a block."""
    return max(1, min(MOST_ROUNDS, NUMBERS // (n_arms * dim)))


EventIds = list[str] | Ints
"""Names of rounds."""


class RoundArrays(NamedTuple):
    """The arrays of a block, as compiled code takes them; all read-only."""

    features: Floats
    """φ, shape (rounds, arms, dim)."""
    counts: Ints
    """Arms on offer in each round, shape (rounds,): the first ones."""
    available: Bools
    """Shape (rounds, arms)."""
    means: Floats
    """μ, shape (rounds, arms)."""
    noise: Floats
    """Added to the mean of whichever arm is pulled, shape (rounds,)."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """A block of consecutive rounds.

    The arrays may be views of ones that the stream writes its next block into: they are used before that is asked for.

    Args:
        features: φ, shape (rounds, arms, dim).
        means: the mean reward of each arm, or its reward where that is what is known, shape (rounds, arms).
        available: which arms may be pulled, shape (rounds, arms); None is all.
        counts: how many arms each round has, shape (rounds,), where they differ: the rest is padding. None is all.
        noise: what is added to the mean of whichever arm is pulled, shape (rounds,); None is nothing.
        event_ids: a name for each round, text or a whole number; None is the step at which it comes.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> rounds = sb.streams.Rounds(np.ones((2, 3, 1)), means=[[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
        >>> rounds.arrays.available.all().item()
        True
    """

    arrays: RoundArrays
    event_ids: EventIds | None

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
        mask = np.ones((rounds, arms), dtype=np.bool_) if available is None else np.asarray(available)
        if mask.dtype != np.bool_:
            raise _check.ArgumentError("available", f"must be true and false, got {mask.dtype}")
        _check_shape("available", mask, (rounds, arms))
        if counts is None:
            offered: Ints = np.full(rounds, arms, dtype=np.int64)
        else:
            offered = np.asarray(counts)
            if offered.dtype.kind not in "iu":
                raise _check.ArgumentError("counts", f"must be whole numbers, got {offered.dtype}")
            _check_shape("counts", offered, (rounds,))
            if offered.min(initial=1) < 1 or offered.max(initial=1) > arms:
                raise _check.ArgumentError("counts", f"must be from 1 to {arms}, the arms of the features")
            mask = mask & (np.arange(arms) < offered[:, None])
        none = np.flatnonzero(~mask.any(axis=1))
        if none.size:
            raise _check.ArgumentError("available", f"must have an arm in each round, got none in {none[0]}")
        added = np.zeros(rounds) if noise is None else _floats("noise", noise, 1, LARGEST_REWARD)
        _check_shape("noise", added, (rounds,))
        if event_ids is not None and len(event_ids) != rounds:
            raise _check.ArgumentError("event_ids", f"must be {rounds}, one per round, got {len(event_ids)}")
        arrays = RoundArrays(*map(_shown, (phi, offered.astype(np.int64, copy=False), mask, mu, added)))
        object.__setattr__(self, "arrays", arrays)  # the one moment at which the frozen fields are written
        object.__setattr__(self, "event_ids", event_ids)

    def __len__(self) -> int:
        return len(self.arrays.counts)

    def first(self, count: int) -> "Rounds":
        """The first rounds of the block; itself where it has no more."""
        if count >= len(self):
            return self
        ids = None if self.event_ids is None else self.event_ids[:count]
        features, counts, available, means, noise = (one[:count] for one in self.arrays)
        return Rounds(features, means, available, counts, noise, ids)


def _floats(name: str, values: ArrayLike, axes: int, largest: float) -> Floats:
    found = np.asarray(values)
    if found.dtype.kind not in "biuf" or found.ndim != axes or 0 in found.shape:
        raise _check.ArgumentError(
            name, f"must be numbers with {axes} axes, none empty, got {found.dtype} of shape {found.shape}"
        )
    result: Floats = np.ascontiguousarray(found, dtype=np.float64)
    # The least and the largest of numbers with a NaN among them are NaN.
    if not (-largest <= result.min() and result.max() <= largest):
        raise _check.ArgumentError(name, f"must be finite and at most {largest:g} in size")
    return result


def _check_shape(name: str, values: Any, shape: tuple[int, ...]) -> None:
    if values.shape != shape:
        raise _check.ArgumentError(name, f"must have shape {shape}, got {values.shape}")


def _shown(values: Any) -> Any:
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view
