"""Mean, variance and quantiles of any number of values in little memory; batches can be added in any order.

Numbers >= 0 are counted in bins of nearly equal ratio: each power of two is divided into `PARTS` bins. So a quantile
is known up to 1 / PARTS of its value, and adding two sketches gives the sketch of all their numbers. Bin edges are
exact: scaling all numbers by a power of two shifts the bins.
"""

from collections.abc import Callable

import msgspec
import numpy as np
from scipy.special import betainc

from solid_bandits._internal.decoding import Content, Count, Integer
from solid_bandits._internal.types import Floats, Ints
from solid_bandits.statistics.estimate import Estimate
from solid_bandits.statistics.intervals import CONFIDENCE

PARTS = 64
"""Number of bins per power of two; the widest bin spans 1.6%."""


class Moments(Content):
    """Count, mean and sum of squared deviations of each column over all batches so far."""

    count: Count
    mean: Floats
    squares: Floats
    """Σ (x - mean)² of each column."""

    @classmethod
    def none(cls, columns: int) -> "Moments":
        """Return the moments of no numbers."""
        return cls(0, np.zeros(columns), np.zeros(columns))

    def add(self, batch: Floats) -> None:
        """Add a batch, shape (numbers, columns), by the formula of Chan, Golub and LeVeque (1979)."""
        count = len(batch)
        mean = batch.mean(axis=0)
        squares = ((batch - mean) ** 2).sum(axis=0)
        total = self.count + count
        apart = mean - self.mean
        self.squares = self.squares + squares + apart**2 * (self.count * count / total)
        self.mean = self.mean + apart * (count / total)
        self.count = total

    @property
    def variance(self) -> Floats:
        """The variance with divisor count - 1; NaN for fewer than two numbers."""
        return self.squares / (self.count - 1) if self.count > 1 else np.full_like(self.mean, np.nan)


class Sketch(Content, omit_defaults=False):
    """Counts of zeros and of the numbers in each bin."""

    zeros: Count = 0
    first: Integer = 0
    """Index of the first stored bin."""
    counts: Ints = msgspec.field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def size(self) -> int:
        """How many numbers have been counted."""
        return self.zeros + int(self.counts.sum())

    def add(self, values: Floats) -> None:
        """Count numbers, all of which must be finite and >= 0."""
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError("values must be finite and >= 0")
        positive = values[values > 0]
        self.zeros += len(values) - len(positive)
        if len(positive):
            bins = bin_of(positive)
            self._make_room(int(bins.min()), int(bins.max()))
            self.counts += np.bincount(bins - self.first, minlength=len(self.counts))

    def _make_room(self, low: int, high: int) -> None:
        if not len(self.counts):
            self.first, self.counts = low, np.zeros(high - low + 1, dtype=np.int64)
        below, above = max(self.first - low, 0), max(high - self.first - len(self.counts) + 1, 0)
        if below or above:
            self.counts = np.pad(self.counts, (below, above))
            self.first -= below

    def ranked(self, rank: int) -> tuple[float, float]:
        """Return bounds on the number of this rank, that is, with `rank` numbers at or below it, itself included."""
        if not 1 <= rank <= self.size:
            raise ValueError(f"rank must be from 1 to {self.size}, got {rank}")
        if rank <= self.zeros:
            return 0.0, 0.0
        place = int(np.searchsorted(np.cumsum(self.counts), rank - self.zeros))
        return edge(self.first + place), edge(self.first + place + 1)

    def quantile(self, share: float, level: float = CONFIDENCE) -> Estimate:
        """Return the smallest number with at least this share at or below it, and an interval for the true quantile.

        The interval is that of the order statistics whose ranks the binomial distribution allows, extended to the edges
        of their bins, so it holds for every distribution. A side is unknown where there are too few numbers for it.
        """
        rank = max(int(np.ceil(share * self.size - 1e-9)), 1)
        low, high = quantile_ranks(share, self.size, level)
        return Estimate(
            float(np.mean(self.ranked(rank))),
            self.ranked(low)[0] if low >= 1 else None,
            self.ranked(high)[1] if high <= self.size else None,
        )

    def survival(self) -> tuple[Floats, Floats]:
        """Return bin edges, starting at the first bin with a number, and the share of the numbers at or above each."""
        edges = np.array([edge(self.first + place) for place in range(len(self.counts) + 1)])
        above = np.concatenate([np.cumsum(self.counts[::-1])[::-1], [0]])
        return edges, above / max(self.size, 1)


def bin_of(values: Floats) -> Ints:
    """Return the bin of each number > 0; there are PARTS equally wide bins per power of two."""
    mantissa, exponent = np.frexp(values)  # value = mantissa 2^exponent, mantissa in [½, 1)
    return exponent.astype(np.int64) * PARTS + np.floor((2.0 * mantissa - 1.0) * PARTS).astype(np.int64)


def edge(place: int) -> float:
    """Return the lower end of a bin."""
    exponent, part = divmod(place, PARTS)
    return float(np.ldexp(0.5 + 0.5 * part / PARTS, exponent))


def quantile_ranks(share: float, count: int, level: float) -> tuple[int, int]:
    """Return ranks L and H such that the true quantile lies between the L-th and the H-th number with confidence
    `level`.

    Both P(Bin(n, share) >= L) and P(Bin(n, share) < H) are at least 1 - (1 - level) / 2.
    """
    tail = (1.0 - level) / 2.0
    # P(Bin >= k) = I_share(k, n - k + 1), decreasing in k.
    low = _largest(lambda rank: _at_least(rank, share, count) >= 1.0 - tail, count)
    high = _largest(lambda rank: _at_least(rank, share, count) > tail, count) + 1
    return low, high


def _at_least(rank: int, share: float, count: int) -> float:
    return 1.0 if rank <= 0 else float(betainc(rank, count - rank + 1, share))


def _largest(holds: Callable[[int], bool], count: int) -> int:
    """Return the largest rank from 0 to `count` for which `holds` is true; it must hold for all ranks below such a
    one.
    """
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
