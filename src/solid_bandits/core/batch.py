"""Decisions that were made together, as columns."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from solid_bandits._internal.checks import short, whole
from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits.core.decision import EXPLORED, KNOWN, Decision, made


class Batch:
    """Result of `Agent.decide_many`: one decision per offer, in order.

    `batch[i]` is one of them, and `len(batch)` is their number. Arrays are read-only.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.Greedy(), dim=2, noise_std=0.5)
        >>> batch = agent.decide_many(np.ones((3, 4, 2)))  # three offers of four arms
        >>> batch.places.tolist(), batch.probability.tolist(), batch[2].arm
        ([0, 0, 0], [1.0, 1.0, 1.0], 0)
        >>> agent.learn_many(batch, [1.0, 0.0, 1.0])
    """

    def __init__(
        self, shares: Floats, features: Floats, places: Ints, said: Ints, number: int | None, starts: Ints
    ) -> None:
        for array in (shares, features, places, said, starts):
            array.setflags(write=False)
        self.places = places
        """The chosen arms, each counted from 0 within its offer, shape (offers,)."""
        self.features = features
        """Features of the chosen arms, shape (offers, dim)."""
        self.number = number
        """Number of the first decision among those of the agent, from 1, if evidence fades; the others follow."""
        self._shares = shares
        self._said = said
        self._starts = starts

    @property
    def counts(self) -> Ints:
        """Number of arms in each offer, shape (offers,)."""
        counts: Ints = np.diff(self._starts)
        return counts

    @property
    def explored(self) -> Bools:
        """Whether each decision explored, shape (offers,)."""
        found: Bools = self._said & EXPLORED != 0
        return found

    @property
    def probabilities(self) -> Floats | None:
        """Probabilities of all arms on offer, shape (offers, arms), 0 beyond the arms of an offer; None if unknown.

        They are known with `Agent(..., probabilities=True)`, and without it for most policies.
        """
        if not (self._said & KNOWN).all():
            return None
        counts = self.counts
        most = int(counts.max())
        if len(self._shares) == most * len(counts):
            return self._shares.reshape(-1, most)
        found = np.zeros((len(counts), most))
        found[np.arange(most) < counts[:, None]] = self._shares
        found.setflags(write=False)
        return found

    @property
    def probability(self) -> Floats | None:
        """Probabilities of the chosen arms, shape (offers,); None if `probabilities` are unknown."""
        if not (self._said & KNOWN).all():
            return None
        found: Floats = self._shares[self._starts[:-1] + self.places]
        return found

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> Decision:
        place = whole(index)
        if place is None:
            raise TypeError(f"index of a batch must be a whole number, got {short(index)}")
        if not -len(self) <= place < len(self):
            raise IndexError(f"index of a batch must be from 0 to {len(self) - 1}, got {place}")
        return self._decision(place % len(self))

    def __iter__(self) -> Iterator[Decision]:
        return map(self._decision, range(len(self)))

    def _decision(self, row: int) -> Decision:
        first, end = self._starts[row], self._starts[row + 1]
        kept: Any = np.concatenate((self._shares[first:end], self.features[row]))
        one = made(int(self.places[row]), int(self._said[row]), kept, int(end - first))
        if self.number is not None:
            one.number = self.number + row
        return one

    def __repr__(self) -> str:
        return f"Batch({len(self)} decisions)"
