"""Which interval is the answer, and why; the numbers that decide it."""

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2, kstest

from solid_bandits import ope
from solid_bandits.ope import adaptive
from solid_bandits.ope.answering import DRIFT
from solid_bandits.ope.diagnostics import drift, rows_per_skewness
from solid_bandits.ope.terms import Terms


def terms_of(weight, reward):
    weight, reward = np.asarray(weight, dtype=float), np.asarray(reward, dtype=float)
    nothing = np.zeros(len(weight))
    return Terms(weight, reward, nothing, nothing, weight**2, weight**3, *[nothing] * 8)


def even_log(rows, rate, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "arm": rng.integers(2, size=rows),
        "reward": (rng.random(rows) < rate).astype(float),
        "probabilities": [[0.5, 0.5]] * rows,
    }


@pytest.mark.parametrize(("logger", "first"), [("learning", "cadr"), ("fixed", "dr")])
def test_the_answer_is_the_normal_interval_where_it_can_be_trusted(logger, first):
    found = ope.evaluate(even_log(2000, 0.4), "uniform", logger=logger)
    answer = found.answer
    assert answer.estimator == first
    assert (answer.value, answer.low, answer.high) == (found.value(first), *found.interval(first))
    assert answer.why.startswith("enough effective rewards for a normal approximation")
    assert found.said("uniform").startswith("uniform earns 0.4")


def test_few_rewards_and_skewed_ones_give_way():
    few = ope.evaluate(even_log(2000, 0.01), "uniform")
    assert few.answer.estimator == "anytime"
    assert few.answer.why.startswith("fewer than 50 effective rewards")
    assert few.answer.low >= 0
    rng = np.random.default_rng(1)
    given = np.where(np.arange(6000) % 100 == 0, 0.001, 0.5)[:, None] * [1, 0] + [0, 1]
    given[:, 1] -= given[:, 0]
    arm = (rng.random(6000) > given[:, 0]).astype(int)
    log = {"arm": arm, "reward": (rng.random(6000) < 0.3).astype(float), "probabilities": given.tolist()}
    skewed = ope.evaluate(log, "always:0", logger="fixed")
    assert skewed.diagnostics["effective rewards"] < 50 or "too skewed" in skewed.answer.why
    assert skewed.answer.estimator == "anytime"
    notes = dict(zip(skewed.table["estimator"], skewed.table["note"], strict=True))
    assert "effective rewards" in notes["dr"] or "per squared skewness" in notes["dr"]


def test_under_drift_the_answer_is_that_of_the_period():
    rng = np.random.default_rng(2)
    log = even_log(4000, 0.0) | {
        "reward": (rng.random(4000) < np.where(np.arange(4000) < 2000, 0.3, 0.6)).astype(float)
    }
    found = ope.evaluate(log, "uniform")
    assert found.interval("cadr")  # still shown, with its assumption
    assert "if the value does not drift" in found.table.filter(pl.col("estimator") == "cadr")["note"][0]
    assert found.answer.estimator == "anytime"
    assert found.answer.why.startswith("the value seems to have drifted")
    assert [one for one in found.cautions if "seems to have changed over the log" in one]
    assert found.answer.low < 0.45 < found.answer.high


def test_without_a_range_there_is_an_answer_that_says_what_is_missing():
    log = even_log(300, 0.01)
    log["reward"] = log["reward"] * 3
    found = ope.evaluate(log, "uniform")
    assert (found.answer.low, found.answer.high) == (None, None)
    assert "reward_range makes bounds possible" in found.answer.why
    assert "without an interval" in found.said()
    ranged = ope.evaluate(log, "uniform", reward_range=(0, 3)).answer
    assert ranged.estimator == "anytime"
    assert 0 <= ranged.low < ranged.high <= 3


@pytest.mark.parametrize("rate", [0.03, 0.2, 0.7])
def test_rows_per_skewness_is_one_over_the_squared_skewness_of_a_mean(rate):
    rewards = (np.arange(1000) < 1000 * rate).astype(float)
    found = rows_per_skewness(terms_of(np.ones(1000), rewards), np.ones(1000))
    assert found == pytest.approx(1000 * rate * (1 - rate) / (1 - 2 * rate) ** 2)
    weight = np.random.default_rng(0).random(1000)
    inverse = np.random.default_rng(1).random(1000)
    apart = rewards - rate
    gamma = (inverse**3 * weight**3).sum() * (apart**3).mean()
    gamma /= ((inverse**2 * weight**2).sum() * (apart**2).mean()) ** 1.5
    assert rows_per_skewness(terms_of(weight, rewards), inverse) == pytest.approx(1 / gamma**2)
    assert rows_per_skewness(terms_of(weight, 3 - 2 * rewards), inverse) == pytest.approx(1 / gamma**2)


def test_symmetric_and_constant_rewards():
    assert rows_per_skewness(terms_of(np.ones(100), np.arange(100) % 2), np.ones(100)) == math.inf
    assert rows_per_skewness(terms_of(np.ones(100), np.ones(100)), np.ones(100)) == 0
    assert adaptive.inverses(terms_of(np.ones(100), np.arange(100) % 2)).shape == (100,)


def test_the_test_of_drift():
    rng = np.random.default_rng(3)
    values = rng.normal(size=400)
    parts = values.reshape(4, 100)
    errors = parts.var(axis=1, ddof=1) / 100
    centre = (parts.mean(axis=1) / errors).sum() / (1 / errors).sum()
    expected = chi2.sf(((parts.mean(axis=1) - centre) ** 2 / errors).sum(), 3)
    assert drift(terms_of(np.ones(400), values)) == pytest.approx(expected)
    assert drift(terms_of(np.ones(400), np.zeros(400))) == 1
    assert drift(terms_of(np.ones(3), np.arange(3))) == 1
    found = [drift(terms_of(np.ones(400), rng.normal(size=400))) for _ in range(400)]
    assert kstest(found, "uniform").pvalue > 1e-4  # the false-alarm rate
    assert DRIFT in ope.evaluate(even_log(100, 0.5), "uniform").diagnostics
