"""Time: a clock that jumps expires nothing and is not followed for ever; time in which nobody served does not count."""

import logging

import pytest

from served import SPEC, TWO
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.service import clock as module
from solid_bandits.service.clock import Clock
from solid_bandits.service.model import GRACE, caught_up_model
from solid_bandits.service.open_store import FILE
from solid_bandits.service.schemas import DecisionAsked, ModelSpec, RewardGiven

SECOND = 1_000_000
YEAR = 365 * 86_400 * SECOND


@pytest.fixture
def time(monkeypatch):
    """Clocks that a test sets."""

    class Time:
        wall, mono = 1_800_000_000 * SECOND, 77 * SECOND

        def pass_by(self, seconds):
            self.wall += round(seconds * SECOND)
            self.mono += round(seconds * SECOND)

    found = Time()
    monkeypatch.setattr(module, "wall", lambda: found.wall)
    monkeypatch.setattr(module, "monotonic", lambda: found.mono)
    return found


@pytest.fixture
def opened(tmp_path):
    """A model of a store, as a service that starts has it; each call starts anew."""
    store = SqliteStore(tmp_path / FILE, create=True)
    row = store.add_model("news", ModelSpec(**SPEC, wait=600, default_reward=0.0).model_dump_json(), 0)

    def start(clock):
        model = caught_up_model(None, row, store)
        model.history.fence = 1
        model.begin_to_wait(clock.now(), clock.shift)
        return model

    yield start
    store.close()


def decide(model, clock, event_id):
    now = clock.now()
    model.set_clock(clock.shift)
    model.decide([DecisionAsked(features=TWO, event_id=event_id)], now)
    model.history.commit()


def expired(model, clock):
    """What a tick expires."""
    now, before = clock.now(), model.bandit.open_ids()
    model.set_clock(clock.shift)
    model.expire(now)
    model.history.commit()
    return [one for one in before if one not in model.bandit.open_ids()]


def ticks(time, model, clock, seconds):
    """A tick each second."""
    found = []
    for _ in range(seconds):
        time.pass_by(1)
        found += expired(model, clock)
    return found


@pytest.mark.parametrize("jump", [YEAR, -YEAR], ids=["ahead", "back"])
def test_a_clock_that_jumps_for_a_while_expires_nothing_and_sets_no_times(time, opened, jump, caplog):
    clock = Clock()
    model = opened(clock)
    decide(model, clock, "a")
    time.wall += jump
    assert ticks(time, model, clock, 2) == []
    decide(model, clock, "b")
    time.wall -= jump
    assert ticks(time, model, clock, 3) == []
    decide(model, clock, "c")
    times = [event.time for event in model.history.source.store.read(1)]
    assert times == [1_800_000_000 * SECOND + place * SECOND for place in (0, 2, 5)]
    assert "the clock has jumped by" in caplog.text
    assert ticks(time, model, clock, 594) == []
    assert ticks(time, model, clock, 4) == ["a", "b"]
    assert ticks(time, model, clock, 8) == ["c"]


@pytest.mark.parametrize("jump", [YEAR, -YEAR], ids=["ahead", "back"])
def test_a_clock_that_stays_where_it_jumped_to_is_followed_and_expires_nothing(time, opened, jump, caplog):
    """Else times would be wrong for ever; what waits does not wait shorter or longer."""
    clock = Clock()
    model = opened(clock)
    decide(model, clock, "a")
    time.wall += jump
    assert ticks(time, model, clock, 100) == []
    assert clock.now() == time.wall
    decide(model, clock, "b")
    assert ticks(time, model, clock, 499) == []
    assert ticks(time, model, clock, 2) == ["a"]
    assert ticks(time, model, clock, 98) == []
    assert ticks(time, model, clock, 2) == ["b"]
    assert "times are set by" in caplog.text


def test_a_clock_that_goes_wrong_slowly_is_followed_slowly(time):
    clock = Clock()
    time.wall += 4 * SECOND
    before = clock.now()
    time.pass_by(100)
    assert clock.now() - before == 101 * SECOND  # one per cent more
    time.pass_by(1_000)
    assert clock.now() == time.wall
    time.wall -= SECOND
    time.pass_by(10)
    assert time.wall < clock.now() < time.wall + SECOND


def test_time_in_which_nobody_served_does_not_count(time, opened):
    """A click that is sent again after a restart is learnt; what has waited long goes after a grace."""
    clock = Clock()
    model = opened(clock)
    decide(model, clock, "long")
    assert ticks(time, model, clock, 590) == []
    decide(model, clock, "short")
    time.pass_by(86_400)
    clock = Clock()
    model = opened(clock)
    assert ticks(time, model, clock, GRACE // SECOND - 1) == []
    (receipt,) = model.learn([RewardGiven(event_id="short", reward=1.0)], clock.now())
    assert receipt.status == "learned"
    assert ticks(time, model, clock, 2) == ["long"]


def test_a_log_from_a_clock_that_was_ahead_holds_nothing_up(time, opened):
    """Times of a wrong clock, a year ahead at first: after a restart their decisions wait as long as any others."""
    time.wall += YEAR
    clock = Clock()
    model = opened(clock)
    decide(model, clock, "ahead")
    time.wall -= YEAR
    ticks(time, model, clock, 62)
    decide(model, clock, "right")
    clock = Clock()
    model = opened(clock)
    assert clock.now() == time.wall
    assert ticks(time, model, clock, 598) == []
    assert ticks(time, model, clock, 4) == ["ahead", "right"]


def test_one_jump_is_said_once(time, caplog):
    clock = Clock()
    time.wall += YEAR
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            time.pass_by(1)
            clock.now()
    assert len(caplog.records) == 1
