"""The test of linear rewards within a range, which needs no σ: the likelihood of coins.

For a reward r on [0, 1] with mean p, E[(q/p)^r ((1 - q)/(1 - p))^(1 - r)] <= 1 for any q that the past determines:
the ratio is convex in r, and has the mean 1 where r is 0 or 1. So with q_t the least-squares prediction of row t from
the rows before it, and p_t = φ_tᵀθ,

    Π_t (q_t / p_t)^{r_t} ((1 - q_t) / (1 - p_t))^{1 - r_t}

is a supermartingale for the true θ, whoever chose the arms, and one may stop where the smallest of it over all θ with
θᵀx <= -ε has reached 1/δ. Its logarithm is concave in θ with the sign turned: Newton's method finds the largest
likelihood of the alternatives. By the same argument it happens with probability at most δ that no θ at all is more than
δ times as likely as the predictions: rewards are then not linear with means on [0, 1], and there is no answer. Where
p_t < `LEAST`, the parabola that touches log there stands for log p_t; it is nowhere below, so that the largest
likelihood is not taken for less than it is. For rewards 0 and 1 the spread is that of coins, √(p (1 - p)), which at a
rate of 2% is about a quarter of the 1/2 that half the range stands for.
"""

from collections.abc import Mapping

import numpy as np

from solid_bandits._internal.compiling import jit_apart
from solid_bandits._internal.types import Floats
from solid_bandits.estimation.estimator import Estimator, make_estimator, observe

LEAST = 1e-4
"""Probabilities below are not those of a parameter that counts."""
STEPS, ENOUGH = 100, 1e-9
"""Newton steps at most, and the decrement at which they end."""


@jit_apart
def predict(
    features: Floats, reward: Floats, targets: Estimator, row: Floats, gains: Floats, found: Floats
) -> None:
    """Write the prediction of each row from the rows before, kept away from 0 and 1 by 1 / (2t + 2)."""
    for t in range(reward.shape[0]):
        for i in range(row.shape[0]):
            row[i] = features[t, i]
        value = 0.0
        for i in range(row.shape[0]):  # φᵀθ-hat = (U^-T φ)ᵀ t
            value += row[i] * targets.targets[i]
            for j in range(i + 1, row.shape[0]):
                row[j] -= row[i] * targets.triangle[i, j]
        edge = 0.5 / (t + 1.0)
        found[t] = min(max(value, edge), 1.0 - edge)
        observe(targets, features[t], reward[t], row, gains)


def extended_log(p: Floats) -> tuple[Floats, Floats, Floats]:
    """Log p, or the parabola above it where p < `LEAST`; with its first and its second derivative."""
    kept = np.maximum(p, LEAST)
    under = np.minimum(p - LEAST, 0.0) / LEAST
    value = np.log(kept) + under - 0.5 * under**2
    first = np.where(under < 0, (1 - under) / LEAST, 1 / kept)
    return value, first, -1 / kept**2


class Coins:
    """The rows after the first k, and what is found of them once for all groups.

    Args:
        features: of the chosen arms, shape (rows, dim).
        reward: on [0, 1], shape (rows,).
        first: k.
    """

    def __init__(self, features: Floats, reward: Floats, first: int) -> None:
        dim = features.shape[1]
        found = np.zeros(len(reward))
        ridge = 1e-9 * float((features**2).sum(axis=1).max())
        predict(
            np.ascontiguousarray(features),
            np.ascontiguousarray(reward),
            make_estimator(dim, ridge),
            np.zeros(dim),
            np.zeros(dim),
            found,
        )
        later, self._reward = found[first:], reward[first:]
        self._features = features[first:]
        self.predicted = float((self._reward * np.log(later) + (1 - self._reward) * np.log1p(-later)).sum())
        start = np.asarray(np.linalg.lstsq(self._features, self._reward, rcond=None)[0], dtype=np.float64)
        self.theta, self.most, self.ends = self._climb(start, None)

    def _at(self, theta: Floats) -> tuple[float, Floats, Floats]:
        """The log-likelihood, its gradient, and its Hessian with the sign turned."""
        mean, reward = self._features @ theta, self._reward
        one, first, second = extended_log(mean)
        none, below, curved = extended_log(1 - mean)
        slope = reward * first - (1 - reward) * below
        weight = -reward * second - (1 - reward) * curved
        hessian = (self._features * weight[:, None]).T @ self._features
        return float((reward * one + (1 - reward) * none).sum()), self._features.T @ slope, hessian

    def _climb(self, theta: Floats, along: Floats | None) -> tuple[Floats, float, bool]:
        """The largest log-likelihood, of all θ or of those that agree with this one on xᵀθ; and whether it is that."""
        value, slope, hessian = self._at(theta)
        for _ in range(STEPS):
            step = np.linalg.solve(hessian, slope)
            if along is not None:
                across = np.linalg.solve(hessian, along)
                step = step - across * float(along @ step) / float(along @ across)
            decrement = float(slope @ step)
            if not decrement > ENOUGH:
                return theta, value + max(decrement, 0.0), True
            size = 1.0
            while (found := self._at(theta + size * step))[0] < value + 0.25 * size * decrement:
                size /= 2
                if size < 1e-10:
                    return theta, value, False
            theta, (value, slope, hessian) = theta + size * step, found
        return theta, value, False

    def test(self, means: Mapping[str, Floats], tolerance: float) -> tuple[str, float, float] | None:
        """The best of candidates with these mean features, the statistic and what learning costs; None without one."""
        if len(means) < 2 or not self.ends:
            return None
        best = max(means, key=lambda label: float(means[label] @ self.theta))
        _, _, hessian = self._at(self.theta)
        found = []
        for label, mean in means.items():
            apart = means[best] - mean
            lead = float(apart @ self.theta) + tolerance
            if label == best or (tolerance and not apart.any()):
                continue
            if not apart.any() or lead <= 0:
                return best, 0.0, self.most - self.predicted
            across = np.linalg.solve(hessian, apart)
            start = self.theta - across * lead / float(apart @ across)
            _, value, ends = self._climb(start, apart)
            if not ends:
                return None
            found.append(self.most - value)
        return (best, min(found), self.most - self.predicted) if found else None
