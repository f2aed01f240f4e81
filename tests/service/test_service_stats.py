"""The numbers of a model's page: counted by hand, restored exactly, and silent where the log cannot answer."""

import json

import numpy as np
import pytest

import solid_bandits as sb
from solid_bandits.core.decision import EXPIRED, LEARNED, Decision
from solid_bandits.service import stats as module
from solid_bandits.service.stats import MINUTE, Stats

NOW = 1_800_000_000 * 1_000_000
OFFER = np.array([[1.0, 0.0], [0.0, 1.0]])
HALVES = np.array([0.5, 0.5])


def decided(stats, time, arms, place):
    stats.take(Decision(place, arms=arms, time=time))


def settled(stats, time, arms, place, probabilities, offer, reward, defaulted=False):
    status = EXPIRED if defaulted or reward is None else LEARNED
    closed = {"status": status, "reward": reward, "reward_time": time}
    stats.take(Decision(place, probabilities=probabilities, arms=arms, offered=offer, **closed))


def fed(stats, rows, seed=0, start=NOW, probabilities=HALVES):
    """Decisions one second apart, the arm and its reward drawn: 1 with probability 0.2 and 0.6."""
    rng = np.random.default_rng(seed)
    for row in range(rows):
        time = start + row * 1_000_000
        place = int(rng.random() < 0.5)
        decided(stats, time, ("red", 7), place)
        settled(stats, time, ("red", 7), place, probabilities, OFFER, float(rng.random() < (0.2, 0.6)[place]))
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
        decided(stats, NOW, choice.arms, choice.arm)
        settled(stats, NOW, choice.arms, choice.arm, choice.probabilities, offer, reward)
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
    with pytest.raises(ValueError, match="9 sums of each arm"):
        Stats.restored({**plain, "arms": {"red": [1, 0, 2, 3]}})


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
        decided(stats, NOW, ("red", "blue"), 0)
    settled(stats, NOW, ("red", "blue"), 0, HALVES, OFFER, None)
    settled(stats, NOW, ("red", "blue"), 0, HALVES, OFFER, 0.0, defaulted=True)
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
    monkeypatch.setattr(module, "FEWEST", 1)
    monkeypatch.setattr(module, "SHOWN", 3)
    stats = Stats(2)
    for arm in [*range(8), 0, 0]:
        decided(stats, NOW, (arm, "other"), 0)
        settled(stats, NOW, (arm, "other"), 0, HALVES, OFFER, 1.0)
    answer = stats.answer(NOW)
    assert [arm["arm"] for arm in answer["arms"]] == ["0", "1", "2"]
    assert answer["arms"][0]["decisions"] == answer["arms"][0]["rewards"] == 3
    assert answer["other_arms"]["decisions"] == 5
    assert len(stats.state()["arms"]) == 5


def test_old_minutes_go():
    stats = Stats(2)
    for minute in range(1000):
        decided(stats, NOW + minute * MINUTE, ("red",), 0)
    assert len(stats.state()["minutes"]) <= 2 * module.MINUTES
    assert stats.answer(NOW + 999 * MINUTE)["minutes"]["decisions"] == [1] * 61


def test_a_new_model_has_no_numbers_yet():
    answer = Stats(2).answer(NOW)
    assert answer["arms"] == []
    assert answer["values"]["policy"] == {"value": None, "low": None, "high": None}
    assert answer["other_arms"] == {"arms": 0, "decisions": 0}


@pytest.mark.parametrize("arms", [16, 17, 40])
def test_any_number_of_arms_is_restored(arms, monkeypatch):
    """Their table grows on the way; one of more than sixteen arms once kept a service from starting again."""
    monkeypatch.setattr(module, "FEWEST", 1)
    stats, names = Stats(2), tuple(range(arms))
    offer, probabilities = np.ones((arms, 2)), np.full(arms, 1 / arms)
    for place in names:
        decided(stats, NOW, names, place)
        settled(stats, NOW, names, place, probabilities, offer, float(place))
    again = Stats.restored(json.loads(json.dumps(stats.state())))
    assert again.state() == stats.state()
    means = {int(arm["arm"]): arm["rewards"] for arm in again.answer(NOW)["arms"]}
    assert means == dict.fromkeys(names, 1)


def settled_for(stats, arm, rewards):
    for reward in rewards:
        decided(stats, NOW, (arm, "other"), 0)
        settled(stats, NOW, (arm, "other"), 0, HALVES, OFFER, reward)


def test_an_arm_that_only_the_erased_were_shown_is_gone():
    """From the answer and from what goes into snapshots, with their rewards; sums over all decisions stay."""
    stats = Stats(2)
    settled_for(stats, "red", [0.0] * 20)
    settled_for(stats, "hers", [0.731] * 6)
    before = stats.answer(NOW)
    stats.forget(["hers"] * 6)
    answer, plain = stats.answer(NOW), stats.state()
    assert "hers" not in json.dumps(answer)
    assert "hers" not in json.dumps(plain)
    assert "0.731" not in json.dumps(plain["arms"])
    assert [arm["arm"] for arm in answer["arms"]] == ["red"]
    assert answer["other_arms"] == {"arms": 1, "decisions": 6}
    assert (answer["decisions"], answer["values"]) == (before["decisions"], before["values"])


@pytest.mark.parametrize(("erased", "shown"), [(5, True), (6, False)])
def test_an_arm_of_which_fewer_than_five_decisions_are_left_is_not_told_apart(erased, shown):
    """Else the rewards of the erased would follow from those of the few others."""
    stats = Stats(2)
    settled_for(stats, "first", [1.0] * 7)
    settled_for(stats, "few", [0.731] * 10)
    settled_for(stats, "last", [0.25] * 8)
    stats.forget(["few"] * erased)
    answer = stats.answer(NOW)
    rest = {arm["arm"]: (arm["decisions"], arm["rewards"], arm["mean"]["value"]) for arm in answer["arms"]}
    assert rest.pop("few", None) == ((10, 10, pytest.approx(0.731)) if shown else None)
    assert rest == {"first": (7, 7, 1.0), "last": (8, 8, 0.25)}
    assert ("few" in stats.state()["arms"]) == shown
    settled_for(stats, "last", [0.25])  # arms have changed places
    again = Stats.restored(json.loads(json.dumps(stats.state())))
    assert again.answer(NOW)["arms"] == stats.answer(NOW)["arms"]


def test_arms_with_fewer_than_five_decisions_are_counted_together():
    stats = Stats(2)
    settled_for(stats, "four", [1.0] * 4)
    settled_for(stats, "five", [1.0] * 5)
    answer = stats.answer(NOW)
    assert [arm["arm"] for arm in answer["arms"]] == ["five"]
    assert answer["other_arms"] == {"arms": 1, "decisions": 4}
    settled_for(stats, "four", [1.0])
    assert len(stats.answer(NOW)["arms"]) == 2


def test_rows_that_wait_take_little_memory(monkeypatch):
    """A block is as wide as its widest row: it is taken in before it is too large, and nothing differs."""
    one, other = Stats(2), Stats(2)
    monkeypatch.setattr(module, "BLOCK_NUMBERS", 2 * 2 * 10)
    for rows in (30, 3):
        fed(one, rows)
        assert len(one._queue) <= 11
    monkeypatch.setattr(module, "BLOCK_NUMBERS", 1 << 30)
    for rows in (30, 3):
        fed(other, rows)
    assert one.state() == other.state()


def test_the_adjusted_mean_is_what_the_arm_would_have_earned_from_all():
    """Half of the customers earn 0.9 with red and are offered it nine times in ten; the others 0.1, one time in ten.

    Its own rewards have the mean 0.82, to all it would earn 0.5; the standard error of 4,000 rows is about 0.02.
    """
    stats, rng = Stats(2), np.random.default_rng(0)
    for row in range(4000):
        good = rng.random() < 0.5
        chances = np.array([0.9, 0.1] if good else [0.1, 0.9])
        place = int(rng.random() < chances[1])
        reward = float(rng.random() < (0.9 if good else 0.1)) if place == 0 else 0.0
        decided(stats, NOW + row, ("red", 7), place)
        settled(stats, NOW + row, ("red", 7), place, chances, OFFER, reward)
    red = next(arm for arm in stats.answer(NOW)["arms"] if arm["arm"] == "red")
    assert red["mean"]["value"] == pytest.approx(0.82, abs=0.03)
    assert red["adjusted"]["low"] < 0.5 < red["adjusted"]["high"]
    assert red["adjusted"]["value"] == pytest.approx(0.5, abs=0.08)


def test_an_arm_with_few_rewards_has_an_adjusted_mean_without_an_interval():
    stats = fed(Stats(2), 60)
    assert all(arm["adjusted"]["low"] is None for arm in stats.answer(NOW)["arms"])
    assert all(arm["adjusted"]["low"] is not None for arm in fed(Stats(2), 1000).answer(NOW)["arms"])


def test_values_over_time_add_up_to_the_values():
    stats = fed(Stats(2), 1000)
    answer = stats.answer(NOW)
    points = answer["over_time"]
    rows = sum(point["rows"] for point in points)
    assert 900 <= rows <= 1000
    assert len(points) <= module.POINTS
    assert [point["time"] for point in points] == sorted(point["time"] for point in points)
    exact = fed(Stats(2), rows).answer(NOW)["values"]
    for name in ("policy", "uniform", "greedy"):
        total = sum(point["rows"] * point[name] for point in points) / rows
        assert total == pytest.approx(exact[name]["value"], rel=1e-9)


def test_shares_since_a_time():
    """One arm at first, another later; stretches grow so that there are never more than are kept."""
    stats = Stats(2)
    for row in range(600):
        decided(stats, NOW + row * MINUTE, ("red", 7), int(row >= 300))
    answer = stats.answer(NOW)
    assert len(answer["since"]) <= module.STRETCHES
    shares = {arm["arm"]: arm["shares_since"] for arm in answer["arms"]}
    assert (shares["red"][0], shares["7"][0]) == (0.5, 0.5)
    assert (shares["red"][-1], shares["7"][-1]) == (0.0, 1.0)
    assert shares["7"] == sorted(shares["7"])
    stats.forget(["red"] * 300)
    assert all(counts["red"] == 0 for counts in stats._stretches.values())
