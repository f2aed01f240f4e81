"""Rounds of data as features: joint features of context and arm, computed block by block and never stored."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits.core.setting import LARGEST_DIM
from solid_bandits.streams.generated import write_blocks
from solid_bandits.streams.rounds import Rounds, rounds_per_block


class Piece(NamedTuple):
    """Rounds of data as they were given."""

    own: Floats
    """Features of each arm itself, shape (rounds, arms, own)."""
    context: Floats
    """Features that all arms share, shape (rounds, context)."""
    rewards: Floats
    """Mean rewards, shape (rounds, arms); 0 where an arm is not available."""
    available: Bools
    """Mask of the available arms, shape (rounds, arms)."""
    counts: Ints
    """Number of arms in each round, shape (rounds,)."""
    event_ids: np.ndarray
    """Names of the rounds, or the numbers of their rows."""

    def at(self, rows: slice | Ints) -> "Piece":
        """Return the rounds at these rows."""
        return Piece(*(one[rows] for one in self))  # type: ignore[arg-type]


class Layout(NamedTuple):
    """Layout of features: φ(x, a) = (own features of a, 0, ..., x and 1 in the block of a, ..., 0).

    If arms are not the same things from round to round there are no blocks, and the 1 is in one column for all.
    """

    n_arms: int
    own: int
    """Number of features of each arm itself."""
    context: int
    """Number of features of the round."""
    blocks: bool
    """Whether each arm has coefficients of its own for the context."""
    intercept: bool
    """Whether the context is extended by a constant 1."""

    @property
    def dim(self) -> int:
        """The feature dimension d."""
        joint = self.context + self.intercept
        return self.own + (self.n_arms * joint if self.blocks else joint)

    def names(self, own: Sequence[str], context: Sequence[str]) -> list[str]:
        """Return the name of each feature column; in the block of each arm, a column of x has x's name."""
        joint = [*context, *(["intercept"] if self.intercept else [])]
        return [*own, *joint * (self.n_arms if self.blocks else 1)]

    def check(self) -> None:
        """Raise an error if there would be no features, or too many."""
        if self.dim == 0:
            raise checks.ArgumentError(
                "features", "must be given, or context, or intercept=True, got none of them"
            )
        if self.dim > LARGEST_DIM:
            raise checks.ArgumentError(
                "context",
                f"must leave own features + arms * (context + 1) at most {LARGEST_DIM}, got {self.own} + "
                f"{self.n_arms} * {self.context + self.intercept}",
            )


class Encoder:
    """Encoder that writes rounds of data as features into one buffer, block after block."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.size = rounds_per_block(layout.n_arms, layout.dim)
        self.buffer = np.zeros((self.size, layout.n_arms, layout.dim))
        if layout.intercept and not layout.blocks:
            self.buffer[:, :, layout.own] = 1.0

    def encode(self, piece: Piece) -> Rounds:
        """Encode at most `size` rounds; the features are valid until the next call."""
        layout = self.layout
        count = len(piece.counts)
        features = self.buffer[:count]
        features[:, :, : layout.own] = piece.own
        if layout.blocks:
            context = piece.context
            if layout.intercept:
                context = np.column_stack([context, np.ones(count)])
            if context.shape[1] > 0:
                write_blocks(context, features, first=layout.own)
        return Rounds(features, piece.rewards, piece.available, piece.counts, event_ids=piece.event_ids)

    def encode_all(self, piece: Piece) -> Iterator[Rounds]:
        """Encode a piece of any size, block by block."""
        for first in range(0, len(piece.counts), self.size):
            yield self.encode(piece.at(slice(first, first + self.size)))
