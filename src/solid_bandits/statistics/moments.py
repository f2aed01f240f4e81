"""Mean and variance of numbers that come in batches: each batch is added as a whole, in any order."""

from dataclasses import dataclass

import numpy as np

from solid_bandits._types import Floats


@dataclass
class Moments:
    """Count, mean and sum of squared deviations of the columns of all batches so far."""

    count: int
    mean: Floats
    squares: Floats
    """Σ (x - mean)²."""

    @classmethod
    def none(cls, columns: int) -> "Moments":
        """Of no numbers yet."""
        return cls(0, np.zeros(columns), np.zeros(columns))

    def add(self, batch: Floats) -> None:
        """Take in a batch, shape (numbers, columns), by the formula of Chan, Golub and LeVeque (1979)."""
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
        """With count - 1 below; not a number where there are fewer than two."""
        return self.squares / (self.count - 1) if self.count > 1 else np.full_like(self.mean, np.nan)
