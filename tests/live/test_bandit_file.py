"""The file of a bandit, and snapshots: what is in them comes back, and what cannot be is refused."""

import base64
import json

import numpy as np
import pytest

import solid_bandits as sb
from bandits import ARMS, NAMES, carried, make, played
from solid_bandits.live import events
from solid_bandits.live.snapshots import ids_in, opened, packed, sealed, unpacked

FAR = 2**62


@pytest.fixture
def saved(tmp_path):
    """A bandit with three decisions, the first learned, the second expired, the third open; its file and content."""
    bandit = make(half_life=10.0)
    for place, event_id in enumerate("abc"):
        bandit.decide(ARMS, NAMES, event_id, time=place)
    bandit.learn("a", 1.0, time=5)
    bandit.expire(event_ids=["b"], time=6)
    path = tmp_path / "bandit.json"
    bandit.save(path)
    return bandit, path, opened(path.read_bytes())


def refused(path, content, message):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"bandit file .*{message}") as caught:
        sb.Bandit.load(path)
    assert "\n" not in str(caught.value)


def fields(**changes):
    def change(plain):
        plain["bandit"] |= changes

    return change


def body(line, **changes):
    """A change of what an event says: of line 0, 2 and 4 are decisions, of 1 and 3 outcomes."""

    def change(plain):
        event = plain["events"][line]
        event[5] = json.dumps(json.loads(event[5]) | changes)

    return change


def entry(line, place, value):
    def change(plain):
        plain["events"][line][place] = value

    return change


def numbers(line, *values):
    return entry(line, 6, base64.b64encode(np.array(values, dtype="<f8").tobytes()).decode())


def listed(which, place, value):
    def change(plain):
        plain["bandit"]["decisions"][which][place] = value

    return change


SIX = [1.0, 0.0, 0.0, 1.0, 0.5, 0.5]
WRONG = [
    (fields(window=0), "window must be an integer >= 1"),
    (fields(window=True), "window must be an integer >= 1, got True"),
    (fields(counters=[1, 2]), "not enough values"),
    (fields(counters=[3, 5, True]), "counters must be an integer"),
    (fields(counters=[2, 5, 1]), "decisions must be the last ones, each once, in order"),
    (fields(counters=[3, 5, 3]), "counters must have decisions and rewards among their events"),
    (fields(counters=[3, 2, 1]), "counters must have decisions and rewards"),
    (fields(seed=-1), "seed must be an integer >= 0"),
    (fields(time=FAR), "time must be an integer"),
    (fields(agent={}), "must be a file that Agent.save wrote"),
    (lambda plain: plain.pop("events"), "cannot be used"),
    (lambda plain: plain["bandit"].pop("agent"), "cannot be used"),
    (lambda plain: plain["events"].pop(), "log must have the decision 'c' of the snapshot"),
    (lambda plain: plain["events"].pop(0), "cannot be used: 'a'"),
    (numbers(4, 7.0, -3.0, -3.0, *SIX), "decision 'c' must have probabilities >= 0 that sum to 1"),
    (numbers(4, 0.5, 0.6, 0.1, *SIX), "decision 'c' must have probabilities"),
    (numbers(4, *[float("nan")] * 3, *SIX), "decision 'c' must have probabilities"),
    (numbers(0, 0.5, 0.5, float("nan")), "decision 'a' must have probabilities"),
    (numbers(4, 0.5, 0.5), "decision 'c' must have an arm among its arms, and their prob"),
    (numbers(4, 0.5, 0.3, 0.2), "features of 'c' must"),
    (
        numbers(4, 0.5, 0.3, 0.2, 1.0, 2.0, 3.0),
        r"decision 'c' must have features of dim 2 for each arm, got \(3, 1\)",
    ),
    (numbers(4, 0.5, 0.3, 0.2, 1.0, 2.0), "cannot be used"),
    (numbers(4, 0.5, 0.3, 0.2, *SIX[:5], 1e31), r"features of 'c' must be at most 1e\+30"),
    (entry(4, 6, "?"), "cannot be used"),
    (entry(4, 2, "c\n"), "event_id must be text of 1 to 200 printable characters"),
    (entry(4, 2, ""), "event_id must be text of 1 to 200 printable characters"),
    (entry(4, 2, None), "event_id must be text"),
    (entry(4, 4, FAR), "decision 'c' must have times within the years 1 to 9999"),
    (entry(1, 4, -FAR), "decision 'a' must have times within the years 1 to 9999"),
    (entry(4, 4, "now"), "decision 'c' must have times"),
    (body(4, arms=["1", "1", "2"]), "arms must be different"),
    (body(4, arms=[1, "2", "1"]), "arms must be different"),
    (body(4, arms=["1", None, "2"]), "arms must be text or whole numbers, got None"),
    (body(4, arms=["a\n", "b", "2"]), "arms must have names of 1 to 200 printable characters"),
    (body(4, place=3), "cannot be used"),
    (body(0, place=3), "decision 'a' must have an arm among its arms"),
    (body(0, place=1.5), "decision 'a' must have an arm among its arms"),
    (body(1, reward=1e300), r"decision 'a' must have a reward of at most 1e\+30 in size, got 1e\+300"),
    (body(1, reward=None), "decision 'a' must have a reward, as it was learned, got None"),
    (entry(4, 3, "anna\n"), "subject must be text of 1 to 200 printable characters"),
    (entry(4, 3, 5), "subject must be text of 1 to 200 printable characters, got 5"),
    (body(1, reward="much"), "cannot be used"),
    (listed(2, 0, "a"), "decisions must be the last ones, each once"),
    (listed(2, 1, 2), "decisions must be the last ones, each once, in order"),
    (listed(2, 3, 2), "decisions must be the last ones, each once, in order"),
    (listed(0, 3, 0), "decisions must be the last ones, each once, in order"),
    (listed(2, 2, 9), "decision.number must be an integer from 1 to 3, got 9"),
    (listed(2, 2, None), "decisions must have their number with a half-life, and only then"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_contents_that_cannot_be(saved, change, message):
    """Under a seal that is right: somebody has made the file."""
    _, path, plain = saved
    change(plain)
    refused(path, sealed(plain), message)


def test_without_a_half_life_decisions_have_no_number_of_the_agent(tmp_path):
    path = tmp_path / "bandit.json"
    bandit = make()
    bandit.decide(ARMS, NAMES, "a")
    bandit.save(path)
    plain = opened(path.read_bytes())
    listed(0, 2, 1)(plain)
    refused(path, sealed(plain), "decisions must have their number with a half-life, and only then")


def test_files_that_are_none_are_refused(saved, tmp_path):
    bandit, path, _ = saved
    content = path.read_bytes()
    line, _, text = content.partition(b"\n")
    seal = json.loads(line)
    for wrong, message in (
        (b"", "cannot be read .*not what a bandit wrote"),
        (b"{}", "cannot be read .*not what a bandit wrote"),
        (content[:-40], "cannot be read .*its digest differs"),
        (content.replace(b'"seed":4', b'"seed":5'), "cannot be read .*its digest differs"),
        (
            json.dumps(seal | {"version": 9}).encode() + b"\n" + text,
            "must be of version 4 .*, got 9: it was written",
        ),
        (json.dumps(seal | {"file": "another"}).encode() + b"\n" + text, "not what a bandit wrote"),
    ):
        assert wrong != content
        refused(path, wrong, message)
    for wrong in (5, None, [1], b"bytes"):
        with pytest.raises(ValueError, match="path must be a path, got"):
            sb.Bandit.load(wrong)
        with pytest.raises(ValueError, match="path must be a path, got"):
            bandit.save(wrong)
    path.write_bytes(content)
    assert carried(sb.Bandit.load(path)) == carried(bandit)
    with pytest.raises(ValueError, match="cannot be written"):
        bandit.save(tmp_path / "nowhere" / "bandit")


def test_a_store_is_opened_and_not_loaded(tmp_path):
    """It is not even read: that would end the locks of the bandit that has it, in the same process."""
    bandit = make(store=tmp_path / "shop.db")
    with pytest.raises(ValueError, match="got a store: open it with"):
        sb.Bandit.load(tmp_path / "shop.db")
    bandit.decide(ARMS)
    bandit.close()


def test_a_state_that_cannot_be_names_the_file(saved):
    _, path, plain = saved
    plain["bandit"]["agent"]["state"] = {}
    refused(path, sealed(plain), "cannot be used")


def test_whatever_a_bandit_took_in_comes_back(tmp_path):
    """Also decisions of a log without probabilities, and of one whose probabilities sum to 1 roughly."""
    table = {"arm": [0, 1], "reward": [1.0, None], "features": [[[1.0, 0.0], [0.0, 1.0]]] * 2}
    bandit = make()
    bandit.warm_start(sb.logs.from_table(table))
    rough = sb.logs.from_table(
        {
            "event_id": ["r"],
            "arm": ["x"],
            "arms": [["x", "y"]],
            "probabilities": [[0.5 + 9e-7, 0.5]],
            "probability": [0.5 + 9e-7],
            "features": table["features"][:1],
        }
    )
    bandit.warm_start(rough)
    played(bandit, 10, seed=2)
    bandit.save(tmp_path / "bandit.json")
    again = sb.Bandit.load(tmp_path / "bandit.json")
    assert str(carried(again)) == str(carried(bandit))  # as text: some probabilities are not a number
    assert again.recall("r").probabilities.tolist() == [0.5 + 9e-7, 0.5]


def logged(bandit):
    """The open decisions as a log has them."""
    found = [bandit.recall(event_id) for event_id in bandit.open_ids()]
    return {one.event_id: events.decision_in(events.decided(one)) for one in found}


@pytest.mark.parametrize(
    "policy", [sb.RandUCB(ridge=0.2), sb.LinTS(), sb.LinUCB(), sb.Greedy(), sb.EpsilonGreedy()]
)
@pytest.mark.parametrize("half_life", [None, 20.0])
def test_a_snapshot_beside_a_log_goes_on_exactly(policy, half_life):
    settings = {"dim": 3, "noise_std": 0.5, "floor": 0.1, "half_life": half_life, "seed": 4, "window": 15}
    bandit = sb.Bandit(policy, log=False, **settings)
    rng = np.random.default_rng(1)
    for place in range(40):
        bandit.decide(rng.normal(size=(4, 3)), ["a", 2, "c", 3], f"e{place}", time=place)
        if place % 3:
            bandit.learn(f"e{place}", rng.normal(), time=place)
    plain = opened(sealed(packed(bandit)))
    assert ids_in(plain) == bandit.open_ids() == ["e27", "e30", "e33", "e36", "e39"]  # of the last 15
    again = unpacked(plain, logged(bandit))
    assert packed(again) == packed(bandit)
    for place in range(40, 80):
        offer = rng.normal(size=(4, 3))
        for one in (bandit, again):
            one.decide(offer, ["a", 2, "c", 3], f"e{place}", time=place)
        for name in ("arm", "explored", "version", "number", "ordinal", "sequence"):
            assert getattr(bandit.recall(f"e{place}"), name) == getattr(again.recall(f"e{place}"), name)
        late, reward = bandit.open_ids()[0], rng.normal()
        for one in (bandit, again):
            one.learn(late, reward, time=place)
    assert packed(again) == packed(bandit)


def test_an_open_decision_that_the_log_has_not_is_an_error():
    bandit = sb.Bandit(sb.Greedy(), dim=1, log=False)
    bandit.decide([[1.0]], event_id="a")
    with pytest.raises(ValueError, match="log must have the decision 'a'"):
        unpacked(packed(bandit), {})


def test_plain_python_cannot_be_stored(tmp_path):
    class Mine:
        def act(self, arms, available):
            return 0

        def update(self, features, reward):
            pass

    bandit = make()
    bandit.agent = sb.Agent(Mine(), dim=2)
    with pytest.raises(
        ValueError, match="policy must keep its state in arrays to be stored, got the plain Python of Mine"
    ):
        bandit.save(tmp_path / "bandit.json")
