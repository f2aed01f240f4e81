"""The numbers of a model's page: counted by hand, restored exactly, and silent where the log cannot answer."""

import json

import numpy as np
import pytest

import solid_bandits as sb
from solid_bandits.service import stats as module
from solid_bandits.service.stats import MINUTE, Stats

NOW = 1_800_000_000 * 1_000_000
OFFER = np.array([[1.0, 0.0], [0.0, 1.0]])
HALVES = np.array([0.5, 0.5])


def fed(stats, rows, seed=0, start=NOW, probabilities=HALVES):
    """Decisions one second apart, the arm and its reward drawn: 1 with probability 0.2 and 0.6."""
    rng = np.random.default_rng(seed)
    for row in range(rows):
        time = start + row * 1_000_000
        place = int(rng.random() < 0.5)
        stats.decided(time, ("red", 7), place)
        stats.settled(time, ("red", 7), place, probabilities, OFFER, float(rng.random() < (0.2, 0.6)[place]))
    return stats


def test_counts_rates_shares_and_means():
    stats = fed(Stats(2), 1000)
    answer = stats.answer(NOW + 999 * 1_000_000)
    assert answer["decisions"] == answer["rewards"] == 1000
    assert (answer["defaulted"], answer["expired"], answer["notes"]) == (0, 0, [])
    minutes = answer["minutes"]
    assert len(minutes["decisions"]) == 61
    assert minutes["last"] == (NOW + 999 * 1_000_000) // MINUTE * 60
    assert sum(minutes["decisions"]) == sum(minutes["rewards"]) == 1000
    assert max(minutes["decisions"]) == 60
    assert [arm["arm"] for arm in answer["arms"]] in (["red", "7"], ["7", "red"])
    assert sum(arm["share"]["value"] for arm in answer["arms"]) == pytest.approx(1)
    for arm in answer["arms"]:
        truth = {"red": 0.2, "7": 0.6}[arm["arm"]]
        assert arm["mean"]["low"] < truth < arm["mean"]["high"]
        assert arm["share"]["low"] < 0.5 < arm["share"]["high"]
    values = answer["values"]
    assert values["rows"] == 1000
    # Here the policy is uniform, so the two differ by the weights' noise alone; Greedy earns 0.6 of it.
    assert values["over_uniform"]["low"] < 0 < values["over_uniform"]["high"]
    assert values["greedy"]["low"] < 0.6 < values["greedy"]["high"]
    assert values["over_greedy"]["high"] < 0
    json.dumps(answer, allow_nan=False)


def test_it_agrees_with_the_evaluation_of_the_log():
    rng = np.random.default_rng(3)
    bandit, stats = sb.Bandit(sb.RandUCB(), dim=2, floor=0.1, seed=3), Stats(2)
    for _ in range(300):
        offer = rng.normal(size=(3, 2))
        choice = bandit.decide(offer)
        reward = float(offer[choice.arm, 0] + rng.normal())
        stats.decided(NOW, choice.arms, choice.arm)
        stats.settled(NOW, choice.arms, choice.arm, choice.probabilities, offer, reward)
        bandit.learn(choice.event_id, reward)
    found = sb.ope.evaluate(bandit, "uniform", ["dr"], logger="fixed")
    values = stats.answer(NOW)["values"]
    assert values["uniform"]["value"] == pytest.approx(found.value("dr"), rel=1e-12)
    assert values["policy"]["value"] == pytest.approx(bandit.log()["reward"].mean(), rel=1e-12)


def test_restored_it_goes_on_exactly():
    one, other = fed(Stats(2), 300), fed(Stats(2), 300)
    plain = json.loads(json.dumps(other.state(), allow_nan=False))
    again = Stats.restored(plain)
    later = NOW + 400 * 1_000_000
    assert fed(again, 77, 1, later).answer(later) == fed(one, 77, 1, later).answer(later)
    assert again.state() == one.state()
    with pytest.raises(ValueError, match="stats must be what"):
        Stats.restored({"dim": 2})
    with pytest.raises(ValueError, match="4 moments of each arm"):
        Stats.restored({**plain, "arms": {"red": [1, 2, 3]}})


def test_an_answer_changes_nothing():
    other = Stats(2)
    for start in range(3):  # asked in the middle of a block
        fed(other, 100, start, NOW + start * 100_000_000)
        other.answer(NOW)
    again = Stats(2)
    for start in range(3):
        fed(again, 100, start, NOW + start * 100_000_000)
    assert again.state() == other.state()
    assert again.answer(NOW) == other.answer(NOW)


def test_without_a_floor_it_says_that_the_log_cannot_answer():
    answer = fed(Stats(2), 100, probabilities=np.array([1.0, 0.0])).answer(NOW)
    assert answer["values"]["uniform"] == answer["values"]["over_uniform"]
    assert answer["values"]["uniform"]["value"] is None
    assert answer["values"]["policy"]["value"] is not None
    assert "Make the model with a floor" in answer["notes"][0]


def test_open_expired_and_defaulted_decisions_are_told_apart():
    stats = fed(Stats(2), 100)
    for _ in range(10):
        stats.decided(NOW, ("red", "blue"), 0)
    stats.settled(NOW, ("red", "blue"), 0, HALVES, OFFER, None)
    stats.settled(NOW, ("red", "blue"), 0, HALVES, OFFER, 0.0, defaulted=True)
    answer = stats.answer(NOW)
    assert (answer["decisions"], answer["rewards"], answer["defaulted"], answer["expired"]) == (
        110,
        100,
        1,
        1,
    )
    assert sum(answer["minutes"]["rewards"]) == sum(fed(Stats(2), 100).answer(NOW)["minutes"]["rewards"])
    assert answer["notes"] == [
        "Still open, and in no mean: 8 of 110 decisions. Where good news comes sooner than bad, means are too high.",
        "Expired without a reward, and in no mean: 1 of 110 decisions.",
    ]


def test_more_arms_than_are_kept_are_counted_together(monkeypatch):
    monkeypatch.setattr(module, "MOST_ARMS", 5)
    monkeypatch.setattr(module, "SHOWN", 3)
    stats = Stats(2)
    for arm in [*range(8), 0, 0]:
        stats.decided(NOW, (arm, "other"), 0)
        stats.settled(NOW, (arm, "other"), 0, HALVES, OFFER, 1.0)
    answer = stats.answer(NOW)
    assert [arm["arm"] for arm in answer["arms"]] == ["0", "1", "2"]
    assert answer["arms"][0]["decisions"] == answer["arms"][0]["rewards"] == 3
    assert answer["other_arms"]["decisions"] == 5
    assert len(stats.state()["arms"]) == 5


def test_old_minutes_go():
    stats = Stats(2)
    for minute in range(1000):
        stats.decided(NOW + minute * MINUTE, ("red",), 0)
    assert len(stats.state()["minutes"]) <= 2 * module.MINUTES
    assert stats.answer(NOW + 999 * MINUTE)["minutes"]["decisions"] == [1] * 61


def test_a_new_model_has_no_numbers_yet():
    answer = Stats(2).answer(NOW)
    assert answer["arms"] == []
    assert answer["values"]["policy"] == {"value": None, "low": None, "high": None}
    assert answer["other_arms"] == {"arms": 0, "decisions": 0}


@pytest.mark.parametrize("arms", [16, 17, 40])
def test_any_number_of_arms_is_restored(arms):
    """Their table grows on the way; one of more than sixteen arms once kept a service from starting again."""
    stats, names = Stats(2), tuple(range(arms))
    offer, probabilities = np.ones((arms, 2)), np.full(arms, 1 / arms)
    for place in names:
        stats.decided(NOW, names, place)
        stats.settled(NOW, names, place, probabilities, offer, float(place))
    again = Stats.restored(json.loads(json.dumps(stats.state())))
    assert again.state() == stats.state()
    means = {int(arm["arm"]): arm["rewards"] for arm in again.answer(NOW)["arms"]}
    assert means == dict.fromkeys(names, 1)
