"""What a bandit leaves for later, or to its agent, so that a decision is quick: it is the same for those who ask."""

import copy
import pickle

import numpy as np
import pytest

import solid_bandits as sb
from bandits import ARMS, NAMES, carried, make
from solid_bandits.core.decision import AGAIN, CONFLICT, LATE, LEARNT, UNKNOWN, Receipt
from solid_bandits.live.remembered import Remembered
from solid_bandits.live.weighed import Weighed

WRONG = {
    "not a number": np.where(np.arange(ARMS.size).reshape(ARMS.shape) == 3, np.nan, ARMS),
    "infinite": np.where(np.arange(ARMS.size).reshape(ARMS.shape) == 0, np.inf, ARMS),
    "too large": ARMS * 1e31,
    "no arms": ARMS[:0],
    "another dim": np.ones((3, 7)),
    "one axis": ARMS[0],
    "complex": ARMS.astype(complex),
    "masked": np.ma.masked_array(ARMS, mask=ARMS > 0.5),
    "text": ARMS.astype(str),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("kept", [False, True])
def test_an_offer_that_is_refused_changes_nothing(wrong, kept, tmp_path):
    """Also where it would have been the end of the wait for another decision; the store is not read again."""
    with make(window=3, **({"store": tmp_path / "shop.db"} if kept else {})) as bandit:
        for number in range(130):  # past the first decisions, which are looked at more closely
            bandit.decide(ARMS, event_id=f"{number}", time=number)
        before, agent = carried(bandit), bandit.agent
        for event_id in ("new", "129"):
            with pytest.raises(ValueError, match="features"):
                bandit.decide(wrong, event_id=event_id, time=200)
        assert carried(bandit) == before
        assert bandit.open_ids() == ["127", "128", "129"]
        bandit.decide(ARMS, event_id="next", time=201)
        assert bandit.agent is agent
        assert bandit.open_ids() == ["128", "129", "next"]


@pytest.mark.parametrize(
    "given",
    [
        np.asfortranarray(ARMS),
        np.repeat(ARMS, 2, axis=0)[::2],
        ARMS.astype(ARMS.dtype.newbyteorder()),
        ARMS.tolist(),
    ],
    ids=["columns first", "with gaps", "bytes the other way round", "lists"],
)
def test_the_same_numbers_in_other_forms_are_the_same_offer(given):
    bandit, twin = make(), make()
    for number in range(140):
        one = bandit.decide(given, event_id=f"{number}", time=0)
        other = twin.decide(ARMS, event_id=f"{number}", time=0)
        assert (one.offered == other.offered).all()
        assert (one.place, one.probabilities.tobytes()) == (other.place, other.probabilities.tobytes())
    assert carried(bandit) == carried(twin)


def test_the_record_has_a_copy_of_what_was_offered():
    bandit, mine = make(), ARMS.copy()
    decision = bandit.decide(mine)
    mine[:] = 9.0
    assert (decision.offered == ARMS).all()
    assert (decision.features == ARMS[decision.place]).all()


def test_what_nobody_wrote_has_its_default_and_anything_else_is_no_attribute():
    decision = sb.Agent(dim=2).decide(ARMS)
    assert (decision.event_id, decision.status, decision.time, decision.again) == ("", "open", 0, False)
    assert (
        decision.subject is decision.reward is decision.context is decision.batch is decision.offered is None
    )
    with pytest.raises(AttributeError, match="no attribute 'rewrad'"):
        _ = decision.rewrad
    with pytest.raises(AttributeError, match="no attribute 'rewrad'"):
        decision.rewrad = 1.0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_of_a_record_has_all_that_was_written(copied):
    bandit = make()
    first = bandit.decide(ARMS, NAMES, "a", time=7, subject="anna")
    found = copied(first)
    bandit.learn("a", 0.5)
    for name in ("event_id", "place", "arm", "explored", "version", "subject", "time", "sequence", "ordinal"):
        assert getattr(found, name) == getattr(first, name)
    assert (found.probabilities == first.probabilities).all()
    assert (found.features == first.features).all()
    assert (found.status, first.status) == ("open", "learned")
    assert (found.reward, first.reward) == (None, 0.5)


def test_the_version_says_how_much_had_been_learnt():
    bandit = make()
    first = bandit.decide(ARMS)
    bandit.learn(first.event_id, 1.0)
    second = bandit.decide(ARMS)
    assert (first.version, second.version) == (f"{bandit._version}/0", f"{bandit._version}/1")
    assert bandit.log()["model_version"].to_list() == [first.version, second.version]


@pytest.mark.parametrize(
    ("status", "reward", "words"),
    [
        (LEARNT, 0.5, "learned 0.5"),
        (AGAIN, 0.5, "had learned 0.5 before"),
        (CONFLICT, 1.0, "had learned 1; 0.5 was not taken in"),
        (LATE, None, "had expired without a reward; 0.5 was not taken in"),
        (LATE, 0.0, "had expired with reward 0; 0.5 was not taken in"),
        (UNKNOWN, None, "is of no decision"),
    ],
)
def test_a_receipt_says_what_became_of_the_reward(status, reward, words):
    receipt = Receipt("visit", status, reward, 0.5)
    assert receipt.message == f"event_id 'visit' {words}"
    assert receipt.counted == (status == LEARNT)
    assert Receipt("visit", status, reward, "in a server's words").message == "in a server's words"


def test_names_of_an_offer_are_kept_apart_from_places():
    """The names of the last offer are checked once; an offer without names, or with others, is not taken for it."""
    bandit = make()
    for arms, expected in ((NAMES, tuple(NAMES)), (None, (0, 1, 2)), (["x", "y", "z"], ("x", "y", "z"))):
        for _ in range(2):
            assert bandit.decide(ARMS, arms).arms == expected
    assert bandit.decide(ARMS[:2]).arms == (0, 1)
    with pytest.raises(ValueError, match="arms must be different from each other"):
        bandit.decide(ARMS, ["x", "y", "x"])
    assert bandit.decide(ARMS, ["x", "y", "z"]).arms == ("x", "y", "z")


def test_what_was_remembered_is_weighed_like_what_comes():
    plain = Remembered(10)
    bandit = make()
    for place in range(6):
        one = bandit.decide(ARMS, NAMES, f"{place}")
        plain.add(one)
    bandit.learn("2", 1.0)
    plain.close(plain.find("2"))
    found = Weighed(plain, {})
    assert list(found) == list(plain)
    assert [one.event_id for one in found.open()] == ["0", "1", "3", "4", "5"]
    assert found.bytes > 6_000
    assert found.shed(0)
    assert found.bytes == 0
    assert [one.event_id for one in found.open()] == ["0", "1", "3", "4", "5"]
    assert found.find("2") is None
