"""Estimated probabilities: close to the true ones, calibrated, doubted by a factor, refused where all is certain."""

import numpy as np
import pytest
from scipy.optimize import linprog

from solid_bandits import ope
from solid_bandits.ope.propensities import extremes


def logged(rows=4000, seed=0, steep=1.0):
    rng = np.random.default_rng(seed)
    age = rng.normal(size=rows)
    utility = np.stack([0 * age, 0.5 + steep * age, -steep * age], axis=1)
    given = np.exp(utility) / np.exp(utility).sum(axis=1, keepdims=True)
    arm = (given.cumsum(axis=1) < rng.random(rows)[:, None]).sum(axis=1)
    reward = (rng.random(rows) < 0.3 + 0.2 * (arm == 1) + 0.1 * np.tanh(age)).astype(float)
    return {"arm": arm, "reward": reward, "age": age}, given


def test_estimates_are_close_to_what_the_logger_did():
    log, given = logged()
    found = ope.estimated(log, context=["age"])
    order = [found.log["arms"][0].to_list().index(str(arm)) for arm in range(3)]
    estimates = np.array(found.log["probabilities"].to_list())[:, order]
    assert np.abs(estimates - given).mean() < 0.02
    assert found.calibration["rows"].sum() == 12_000
    apart = (found.calibration["estimated"] - found.calibration["chosen"]).abs()
    assert (apart < 4 * found.calibration["standard error"]).all()
    assert len(found.cautions) <= 2  # that they are estimated, and small ones
    answer = ope.evaluate(found.log, "always:1", logger="fixed").answer
    assert answer.low < 0.5 < answer.high


def test_a_model_that_does_not_fit_is_seen():
    """A logger that goes by the third power of age more than the model knows, in a zigzag."""
    rng = np.random.default_rng(1)
    age = rng.uniform(-3, 3, size=6000)
    chance = 0.5 + 0.45 * np.sin(4 * age)
    log = {"arm": (rng.random(6000) < chance).astype(int), "reward": rng.random(6000), "age": age}
    found = ope.estimated(log, context=["age"])
    assert found.calibration["estimated"].max() - found.calibration["estimated"].min() < 0.3


def test_arms_that_come_and_go_have_no_probability_where_they_are_not():
    rng = np.random.default_rng(2)
    offers = [["a", "b"] if one else ["a", "b", "c"] for one in rng.integers(2, size=500)]
    log = {
        "arm": [offer[rng.integers(len(offer))] for offer in offers],
        "arms": offers,
        "reward": rng.random(500),
    }
    found = ope.estimated(log)
    for offer, chances in zip(offers, found.log["probabilities"].to_list(), strict=True):
        assert len(chances) == len(offer)
        assert sum(chances) == pytest.approx(1)


def test_features_of_the_arms_count():
    rng = np.random.default_rng(3)
    features = rng.normal(size=(3000, 2, 1))
    chance = 1 / (1 + np.exp(-2 * (features[:, 1, 0] - features[:, 0, 0])))
    arm = (rng.random(3000) < chance).astype(int)
    log = {"arm": arm, "reward": rng.random(3000), "features": features.tolist()}
    estimates = np.array(ope.estimated(log).log["probabilities"].to_list())
    place = [ope.estimated(log).log["arms"][0].to_list().index("1")]
    assert np.abs(estimates[:, place[0]] - chance).mean() < 0.03


def test_deterministic_loggers_are_refused():
    rng = np.random.default_rng(4)
    age = rng.normal(size=2000)
    log = {"arm": (age > 0).astype(int), "reward": rng.random(2000), "age": age}
    with pytest.raises(
        ValueError, match=r"cannot answer: the logger's choice can be foretold in .* deterministic"
    ):
        ope.estimated(log, context=["age"])


@pytest.mark.parametrize("factor", [1.0, 1.3, 3.0])
def test_the_extremes_are_those_of_a_linear_program(factor):
    """Σ w r / Σ w over 1/Γ <= λ <= Γ, as a linear program after the transformation of Charnes and Cooper."""
    rng = np.random.default_rng(5)
    reward, matched = np.sort(rng.random(12)), rng.random(12)
    odds = 1 / rng.uniform(0.1, 0.9, size=12) - 1
    found = extremes(reward, matched, odds, factor)
    small, large = matched * (1 + odds / factor), matched * (1 + odds * factor)
    # Variables: w t and t, with Σ w t = 1.
    bounds = np.vstack([np.hstack([np.eye(12), -large[:, None]]), np.hstack([-np.eye(12), small[:, None]])])
    total = np.append(np.ones(12), 0.0)[None]
    for sign, value in ((1, found[0]), (-1, found[1])):
        goal = linprog(sign * np.append(reward, 0.0), bounds, np.zeros(24), total, [1.0])
        assert value == pytest.approx(sign * goal.fun, rel=1e-9)


def test_bands_contain_each_other():
    log, _ = logged(1500)
    found = ope.estimated(log, context=["age"])
    band = found.band("always:1", [1.0, 1.5, 3.0], samples=50)
    assert band["least"][0] == pytest.approx(band["largest"][0])
    assert band["least"][0] == pytest.approx(
        ope.evaluate(found.log, "always:1", ["snips"], logger="fixed").value("snips")
    )
    for low in ("low", "least"):
        assert band[low].is_sorted(descending=True)
    for high in ("high", "largest"):
        assert band[high].is_sorted()
    with pytest.raises(ValueError, match="gammas must be"):
        found.band("always:1", [0.5])
