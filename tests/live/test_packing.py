"""A bandit without what its log says anyway goes on exactly."""

import json

import numpy as np
import pytest

import solid_bandits as sb
from solid_bandits.live.packing import Logged, open_ids, packed, unpacked


def logged(bandit, offers):
    """The open decisions as a log would have them."""
    found = []
    for event_id in bandit.open():
        record = bandit.recall(event_id)
        found.append(
            Logged(
                event_id,
                record.time,
                record.arms,
                record.place,
                record.probabilities,
                record.explored,
                record.version,
                offers[event_id],
            )
        )
    return found


@pytest.mark.parametrize(
    "policy", [sb.RandUCB(ridge=0.2), sb.LinTS(), sb.LinUCB(), sb.Greedy(), sb.EpsilonGreedy()]
)
@pytest.mark.parametrize("half_life", [None, 20.0])
def test_it_goes_on_exactly(policy, half_life):
    settings = {"dim": 3, "noise_std": 0.5, "floor": 0.1, "half_life": half_life, "seed": 4, "window": 15}
    bandit = sb.Bandit(policy, log=False, **settings)
    rng = np.random.default_rng(1)
    offers = {}
    for place in range(40):
        offers[f"e{place}"] = rng.normal(size=(4, 3))
        bandit.decide(offers[f"e{place}"], ["a", 2, "c", 3], f"e{place}", time=place)
        if place % 3:
            bandit.learn(f"e{place}", rng.normal(), time=place)
    plain = json.loads(json.dumps(packed(bandit)))
    assert open_ids(plain) == bandit.open() == ["e27", "e30", "e33", "e36", "e39"]  # of the last 15
    again = unpacked(plain, logged(bandit, offers))
    assert packed(again) == packed(bandit)
    for place in range(40, 80):
        offer = rng.normal(size=(4, 3))
        for one in (bandit, again):
            one.decide(offer, ["a", 2, "c", 3], f"e{place}", time=place)
        for name in ("arm", "explored", "version", "policy_number", "number", "sequence"):
            assert getattr(bandit.recall(f"e{place}"), name) == getattr(again.recall(f"e{place}"), name)
        late, reward = bandit.open()[0], rng.normal()
        for one in (bandit, again):
            one.learn(late, reward, time=place)
    assert packed(again) == packed(bandit)


def test_one_that_was_packed_without_its_seed_goes_on():
    bandit = sb.Bandit(sb.LinTS(), dim=2, noise_std=0.5, seed=4, log=False)
    bandit.learn(bandit.decide(np.eye(2), event_id="a").event_id, 1.0)
    plain = packed(bandit)
    del plain["seed"]
    again = unpacked(plain, [])
    assert again.decide(np.eye(2), event_id="b").arm == bandit.decide(np.eye(2), event_id="b").arm


def test_an_open_decision_that_the_log_has_not_is_an_error():
    bandit = sb.Bandit(sb.Greedy(), dim=1, log=False)
    bandit.decide([[1.0]], event_id="a")
    with pytest.raises(ValueError, match="log must have the open decision 'a'"):
        unpacked(packed(bandit), [])


def test_one_decision_expires_alone():
    bandit = sb.Bandit(sb.Greedy(), dim=1)
    for event_id in ("a", "b", "c"):
        bandit.decide([[1.0]], event_id=event_id, time=1.0)
    assert bandit.waiting == 3
    assert bandit.expire(event_id="b", reward=0.5, time=2.0) == ["b"]
    assert bandit.open() == ["a", "c"]
    assert bandit.waiting == 2
    assert bandit.expire(event_id="b") == []  # it is closed
    assert bandit.expire(event_id="c", before=0.5) == []  # not old enough
    assert bandit.log().row(1, named=True)["defaulted"]
    assert bandit.recall("nobody") is None
    with pytest.raises(ValueError, match="event_id must be"):
        bandit.expire(event_id="nobody")
    assert bandit.delete("a") == 1
    assert bandit.recall("a") is None
