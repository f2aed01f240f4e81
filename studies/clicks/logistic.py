"""RandUCB over a logistic regression in one pass: each reward is a weighted row of least squares."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import solid_bandits as sb
from solid_bandits import extend

LARGEST_LOGIT = 8.0


class Logistic(NamedTuple):
    """The parts of the package's ridge regression, read as a quadratic approximation of the log-likelihood."""

    params: Any
    estimator: Any
    evidence: Any
    step: Any
    work: Any


@extend.jit
def probability(logit):
    """1 / (1 + e^-u), u within ±8."""
    return 1.0 / (1.0 + math.exp(-min(max(logit, -LARGEST_LOGIT), LARGEST_LOGIT)))


@extend.jit
def observe_reward(regression, features, reward, age):
    """One Newton step: a row of weight p (1 - p), p the estimate before; its target is u + (y - p) / (p (1 - p))."""
    row = regression.work.theta
    extend.write_theta(regression, row)
    u = min(max(extend.dot(features, row), -LARGEST_LOGIT), LARGEST_LOGIT)
    p = probability(u)
    root = math.sqrt(p * (1.0 - p))
    for i in range(row.shape[0]):
        row[i] = root * features[i]
    extend.observe_row(regression, row, root * u + (reward - p) / root)


@extend.jit
def predict_reward(regression, vector):
    """The probability of a click."""
    extend.write_theta(regression, regression.work.theta)
    return probability(extend.dot(vector, regression.work.theta))


MINE = {"observe_reward": observe_reward, "predict_reward": predict_reward}
extend.register_regression(Logistic, **(extend.OF_A_TRIANGLE | MINE))


@dataclass(frozen=True)
class LogisticRandUCB(sb.RandUCB):
    """The rule of RandUCB on logits; σ = 1, since rows are weighted by their variance."""

    ridge: float | str = 1.0

    def make_regression(self, setting, norms=False, relative=False):
        """A triangle with a ridge that is a number."""
        ours = super().make_regression(setting._replace(noise_std=1.0), norms, relative)
        return Logistic(ours.params, ours.estimator, ours.evidence, ours.step, ours.work)
