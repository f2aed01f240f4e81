"""A log in a directory: writes that fail, and what another history left there."""

import os
from errno import ENOSPC

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from bandits import ARMS, NAMES, carried, make, played, same_log
from solid_bandits.live import journal


@pytest.fixture
def few(monkeypatch):
    """Parts of five rows, of which at most two wait."""
    monkeypatch.setattr(journal, "ROWS", 5)
    monkeypatch.setattr(journal, "MOST", 2)


@pytest.fixture
def disk(monkeypatch):
    """A disk that can be full."""

    class Disk:
        full = False

    write = journal.write_whole

    def write_if_room(path, fill):
        if Disk.full:
            raise OSError(ENOSPC, "No space left on device")
        write(path, fill)

    monkeypatch.setattr(journal, "write_whole", write_if_room)
    return Disk


def decided(bandit, *names):
    for name in names:
        bandit.decide(ARMS, NAMES, name, time=1)


def rows_in(directory):
    return sum(pl.read_parquet(part).height for part in directory.glob("part-*.parquet"))


def test_a_reward_is_learnt_once_though_the_log_cannot_be_written(few, tmp_path, caplog):
    log = tmp_path / "log"
    bandit = make(log=log)
    log.write_text("not a directory")
    decided(bandit, *"abcdx")
    for name in "abcd":
        assert bandit.learn(name, 1.0).counted
    assert caplog.records == []
    assert bandit.learn("x", 1.0).counted  # the fifth row: a part is due
    assert bandit._learned == 5
    assert bandit.agent._compiled.state.estimator.rewards == 5
    assert bandit.open() == []
    for _ in range(3):
        assert not bandit.learn("x", 1.0).counted
    assert bandit._learned == 5
    assert bandit.log_pending == 5
    assert "cannot be written" in bandit.log_failure
    assert [one.message for one in caplog.records] == [f"{bandit.log_failure}; its rows wait in memory"]
    assert bandit.log().height == 5
    with pytest.raises(ValueError, match=r"log .* cannot be written"):
        bandit.flush()
    log.unlink()  # repaired
    bandit.flush()
    assert (bandit.log_pending, bandit.log_failure, rows_in(log)) == (0, None, 5)
    assert sb.logs.read(log).equals(bandit.log())


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="nothing is forbidden to this user")
def test_a_directory_without_permission(few, tmp_path):
    log = tmp_path / "log"
    log.mkdir(mode=0o500)
    bandit = make(log=log)
    decided(bandit, *"abcde")
    bandit.learn_many((name, 1.0) for name in "abcde")
    assert "Permission denied" in bandit.log_failure
    log.chmod(0o700)
    bandit.flush()
    assert rows_in(log) == 5


def test_a_decision_is_made_once_though_it_pushes_out_another(few, disk, tmp_path):
    bandit = make(window=1, log=tmp_path / "log")
    disk.full = True
    decided(bandit, *"abcdefg")  # six expire, the fifth of which fills a part
    assert (bandit.decisions, bandit.open(), bandit.log_pending) == (7, ["g"], 6)
    assert bandit.decide(ARMS, NAMES, "g").again
    disk.full = False
    decided(bandit, *"hijk")  # the next part takes the first with it
    assert (bandit.log_pending, bandit.log_failure, rows_in(tmp_path / "log")) == (0, None, 10)
    assert bandit.log()["event_id"].to_list() == list("abcdefghijk")


def test_many_expire_whole(few, disk, tmp_path):
    bandit = make(log=tmp_path / "log")
    decided(bandit, *"abcdefg")
    disk.full = True
    assert bandit.expire(reward=0.0) == list("abcdefg")
    assert (bandit._learned, bandit.open(), bandit.log_pending) == (7, [], 7)


def test_what_waits_is_bounded_and_then_calls_are_refused_whole(few, disk, tmp_path, caplog):
    bandit = make(log=tmp_path / "log")
    names = [f"e{number}" for number in range(14)]
    decided(bandit, *names)
    disk.full = True
    bandit.learn_many((name, 1.0) for name in names[:12])
    before = carried(bandit)
    for call in (
        lambda: decided(bandit, "new"),
        lambda: bandit.learn("e12", 1.0),
        lambda: bandit.learn_many({"e12": 1.0}),
        lambda: bandit.expire(),
        lambda: bandit.warm_start(make().log()),
    ):
        with pytest.raises(
            ValueError, match="12 rows wait in memory, the most that may, and nothing was changed"
        ):
            call()
        assert carried(bandit) == before
    assert bandit.decide(ARMS, NAMES, "e3").again  # what changes nothing is answered
    assert not bandit.learn("e3", 0.0).counted
    assert bandit.learn_many({"e3": 0.0})[0].counted is False
    assert len(caplog.records) == 1  # once, not at every attempt
    bandit.save(tmp_path / "bandit.zip")  # elsewhere there may be room
    again = sb.Bandit.load(tmp_path / "bandit.zip", log=tmp_path / "other")
    assert same_log(again, bandit)
    disk.full = False
    assert bandit.learn("e12", 1.0).counted
    assert (bandit.log_failure, rows_in(tmp_path / "log"), bandit.log_pending) == (None, 10, 3)
    again.flush()
    assert rows_in(tmp_path / "other") == 12


def test_a_deletion_that_fails_can_be_repeated(few, disk, tmp_path):
    bandit = make(log=tmp_path / "log")
    decided(bandit, *"abcdefg")
    bandit.learn_many((name, 1.0) for name in "abcdef")
    before = carried(bandit)
    disk.full = True
    for wrong in ({"event_id": "a"}, {"before": 2}):
        with pytest.raises(ValueError, match=r"log .* cannot be written .* delete again later"):
            bandit.delete(**wrong)
        assert carried(bandit) == before
        assert bandit.log().height == 7
    assert bandit.delete(event_id="f") == 1  # it is in memory alone
    disk.full = False
    assert bandit.delete(event_id="a") == 1
    assert bandit.log()["event_id"].to_list() == list("bcdeg")
    assert rows_in(tmp_path / "log") == 4


def test_a_log_that_cannot_be_read_says_so(few, tmp_path):
    bandit = make(log=tmp_path / "log")
    decided(bandit, *"abcde")
    bandit.expire()
    (tmp_path / "log" / "part-00000001.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"log .* cannot be read") as caught:
        bandit.log()
    assert "\n" not in str(caught.value)


# What another history left.


def test_a_loaded_bandit_has_its_own_history_alone(few, tmp_path, caplog):
    log, path = tmp_path / "log", tmp_path / "bandit.zip"
    bandit = make(log=log)
    decided(bandit, *"abco")
    bandit.learn_many((name, 1.0) for name in "abc")
    bandit.save(path)
    kept = bandit.log()
    decided(bandit, *"xyz")
    bandit.learn_many((name, 2.0) for name in "oxyz")  # also one that was open
    bandit.flush()
    assert rows_in(log) == 7
    again = sb.Bandit.load(path, log=log)
    assert again.log().equals(kept)
    assert again.decisions == 4
    assert rows_in(log) == 7  # nothing was touched: the other may still be at work
    assert caplog.records == []
    decided(again, "x")
    again.learn("x", 3.0)
    again.flush()
    assert again.log()["event_id"].to_list() == list("abcox")
    assert again.log()["sequence"].is_unique().all()
    assert sb.logs.read(log).select("event_id", "reward").rows() == [
        ("a", 1.0),
        ("b", 1.0),
        ("c", 1.0),
        ("x", 3.0),
    ]
    assert rows_in(log) == 4  # those that were in memory when it was saved were there already
    aside = sb.logs.read(log / "aside-00000001.parquet")
    assert aside.sort("event_id").select("event_id", "reward").rows() == [(name, 2.0) for name in "oxyz"]
    assert [one.message for one in caplog.records] == [
        f"log {str(log)!r}: 4 rows from after the file of this bandit was saved were moved to aside-00000001.parquet"
    ]
    later = sb.Bandit.load(path, log=log)  # once more
    decided(later, "q")
    later.expire()
    later.flush()
    assert sb.logs.read(log / "aside-00000002.parquet")["event_id"].to_list() == ["x"]
    assert sb.logs.read(log / "aside-00000001.parquet").equals(aside)
    assert later.log()["event_id"].to_list() == list("abcoq")
    assert later.delete(event_id="x") == 0  # it has no such row, but what lies aside is deleted with it
    assert sb.logs.read(log / "aside-00000001.parquet").filter(pl.col("event_id") == "x").height == 0
    assert sb.logs.read(log / "aside-00000002.parquet").height == 0


def test_one_that_left_the_window_in_another_history_is_open_again(few, tmp_path):
    log, path = tmp_path / "log", tmp_path / "bandit.zip"
    bandit = make(log=log, window=2)
    decided(bandit, *"ab")
    bandit.save(path)
    decided(bandit, *"cd")
    bandit.flush()
    assert rows_in(log) == 2
    again = sb.Bandit.load(path, log=log)
    assert again.open() == ["a", "b"]
    again.learn("b", 1.0)
    again.flush()
    assert sb.logs.read(log).select("event_id", "reward").rows() == [("b", 1.0)]


def test_rows_of_an_id_that_was_used_again_in_another_history_stay(few, tmp_path):
    log, path = tmp_path / "log", tmp_path / "bandit.zip"
    bandit = make(log=log, window=1)
    decided(bandit, "a")
    bandit.learn("a", 1.0)
    decided(bandit, "b")
    bandit.flush()
    bandit.save(path)
    decided(bandit, "a")  # forgotten: a new decision
    bandit.learn("a", 2.0)
    bandit.flush()
    again = sb.Bandit.load(path, log=log)
    assert again.log().select("event_id", "reward").rows() == [("a", 1.0), ("b", None)]


def test_moving_aside_fails_like_any_write(few, disk, tmp_path):
    log, path = tmp_path / "log", tmp_path / "bandit.zip"
    bandit = make(log=log)
    bandit.save(path)
    decided(bandit, *"abcdef")
    bandit.expire()
    again = sb.Bandit.load(path, log=log)
    disk.full = True
    decided(again, *"uvwxy")
    again.expire()
    assert "No space left" in again.log_failure
    assert again.log()["event_id"].to_list() == list("uvwxy")
    disk.full = False
    again.flush()
    assert sb.logs.read(log)["event_id"].to_list() == list("uvwxy")
    assert sb.logs.read(log / "aside-00000001.parquet").height == 5


def test_a_directory_must_be_named_again(few, tmp_path):
    log, path = tmp_path / "log", tmp_path / "bandit.zip"
    bandit = make(log=log)
    bandit.save(path)
    with pytest.raises(
        ValueError, match=r"log must be the directory of this bandit's log, .* or False .*, got None"
    ):
        sb.Bandit.load(path)
    assert sb.Bandit.load(path, log=log).log().height == 0  # nothing was written yet
    decided(bandit, *"abcdef")
    bandit.expire()
    bandit.save(path)
    assert os.fsencode(tmp_path.name) not in path.read_bytes()  # the file names no directory
    with pytest.raises(
        ValueError, match=r"log must be the directory that 5 rows were written to, got .*elsewhere"
    ):
        sb.Bandit.load(path, log=tmp_path / "elsewhere")
    for wrong in (5, True):
        with pytest.raises(ValueError, match="log must be a directory, None or False"):
            sb.Bandit.load(path, log=wrong)
    log.rename(tmp_path / "elsewhere")
    assert sb.Bandit.load(path, log=tmp_path / "elsewhere").log().height == 6
    with pytest.raises(ValueError, match="log=False"):
        sb.Bandit.load(path, log=False).log()


@pytest.mark.parametrize("kept", [None, False])
def test_a_log_may_go_to_a_directory_from_now_on(few, tmp_path, kept):
    bandit = make(log=kept)
    played(bandit, 8, seed=1)
    bandit.save(tmp_path / "bandit.zip")
    again = sb.Bandit.load(tmp_path / "bandit.zip", log=tmp_path / "log")
    settled = 0 if kept is False else bandit.log().height - bandit.waiting
    assert again.log_pending == settled
    opened = again.expire()
    again.flush()
    assert rows_in(tmp_path / "log") == settled + len(opened)
    with pytest.raises(ValueError, match="log must be a directory without decisions"):
        sb.Bandit.load(tmp_path / "bandit.zip", log=tmp_path / "log")
    assert np.array_equal(again.agent.theta, bandit.agent.theta)


def go(bandit, ids):
    for one in ids:
        bandit.decide([[1.0, 0.0], [0.0, 1.0]], arms=["a", "b"], event_id=one)
        bandit.learn(one, 1.0)


def events(table):
    return table["event_id"].to_list()


def test_a_bandit_that_was_loaded_and_saved_before_it_wrote_keeps_its_own_rows(tmp_path):
    """What the directory has from after the first file is another history for the second file too."""
    log, one, two = tmp_path / "log", tmp_path / "one.zip", tmp_path / "two.zip"
    first = sb.Bandit(sb.LinUCB(), dim=2, noise_std=0.5, log=log)
    go(first, ["a1", "a2"])
    first.flush()
    go(first, ["a3"])
    first.save(one)
    go(first, ["lost1", "lost2"])
    first.flush()  # a3 among them
    second = sb.Bandit.load(one, log=log)
    go(second, ["c1", "c2"])
    second.save(two)
    third = sb.Bandit.load(two, log=log)
    own = ["a1", "a2", "a3", "c1", "c2"]
    assert events(third.log()) == own
    go(third, ["e1"])
    third.flush()
    assert events(third.log()) == events(sb.logs.read(log)) == [*own, "e1"]
    (aside,) = log.glob("aside-*.parquet")
    assert sorted(events(pl.read_parquet(aside))) == ["lost1", "lost2"]
    again = sb.Bandit.load(two, log=log)  # the same file once more: c1 and c2 were written since
    assert events(again.log()) == own
    go(again, ["f1"])
    again.flush()
    assert events(again.log()) == events(sb.logs.read(log)) == [*own, "f1"]


def test_a_directory_must_have_the_rows_that_were_written_to_it(tmp_path):
    log, other, file = tmp_path / "log", tmp_path / "other", tmp_path / "one.zip"
    bandit = sb.Bandit(sb.LinUCB(), dim=2, noise_std=0.5, log=log)
    go(bandit, [f"x{place}" for place in range(6)])
    bandit.flush()
    assert bandit.delete(event_id="x0") == 1
    bandit.save(file)
    assert events(sb.Bandit.load(file, log=log).log()) == [f"x{place}" for place in range(1, 6)]
    stranger = sb.Bandit(sb.LinUCB(), dim=2, noise_std=0.5, log=other)
    go(stranger, [f"y{place}" for place in range(6)])
    stranger.flush()
    with pytest.raises(
        ValueError, match=r"log must be the directory that 5 rows .* is that of another bandit"
    ):
        sb.Bandit.load(file, log=other)
    for part in log.glob("part-*.parquet"):
        part.unlink()
    with pytest.raises(ValueError, match="which has 0 of the 5 rows that were written to it"):
        sb.Bandit.load(file, log=log)
    with pytest.raises(ValueError, match="has 0 of the 5 rows"):
        bandit.log()


def test_a_directory_that_may_not_be_listed_is_not_an_empty_log(tmp_path, monkeypatch):
    """As root everything may be listed, so the system's answer is made up."""
    log = tmp_path / "log"
    bandit = sb.Bandit(sb.LinUCB(), dim=2, noise_std=0.5, log=log)
    go(bandit, ["x"])
    bandit.flush()

    def forbidden(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("solid_bandits.logs.files.os.listdir", forbidden)
    for call in (
        bandit.log,
        lambda: bandit.delete(event_id="x"),
        lambda: sb.logs.read(log),
        lambda: sb.Bandit(sb.LinUCB(), dim=2, noise_std=0.5, log=log),
    ):
        with pytest.raises(ValueError, match=r"log .* cannot be (read|written) \(.*Permission denied"):
            call()
    monkeypatch.undo()
    assert bandit.recall("x") is not None
    assert bandit.delete(event_id="x") == 1
