"""A bandit in a store: what it answers is in the log, and it is what its log says, however it ended."""

import math
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import solid_bandits as sb
from bandits import ARMS, NAMES, carried, make, played, same_log
from solid_bandits.live import stored
from solid_bandits.live.recovery import ReplayDiverged, check
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.store import FencedError, FullError, StoreError
from solid_bandits.policies.own import OwnPolicyError

ATTACK = Path(__file__).parents[2] / "attacks" / "store.py"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "shop.db"


def elsewhere(script, *arguments):
    """What a process of its own prints: this one would lose its locks on a file that it reads past SQLite."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=True).stdout


CONTENT = "import sys; [sys.stdout.buffer.write(open(one, 'rb').read()) for one in sys.argv[1:]]"
COUNTED = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(*connection.execute("SELECT count(*) FROM events").fetchone())
connection.close()
"""


def replayed(path):
    with closing(SqliteStore(path)) as store:
        return check(stored.source_of(store))


@pytest.mark.parametrize("half_life", [None, 20.0])
@pytest.mark.parametrize(
    "policy", [sb.LinTS(), sb.RandUCB(ridge=0.2), sb.LinUCB(), sb.EpsilonGreedy()], ids=repr
)
def test_it_answers_as_in_memory_and_goes_on_bit_for_bit(path, policy, half_life, monkeypatch):
    """Opened again and again, from snapshots and from events; the window is short, so some expire and are forgotten."""
    monkeypatch.setattr(stored, "SNAPSHOT_EVERY", 37)
    held = make(policy, half_life=half_life, window=20)
    kept = make(policy, half_life=half_life, window=20, store=path)
    for part in range(4):
        for one in (held, kept):
            played(one, 30, seed=part, start=30 * part)
        assert carried(kept, only_open=True) == carried(held, only_open=True)
        assert same_log(kept, held)
        kept.close()
        kept = sb.Bandit.open(path)
    kept.close()
    assert "identical" in replayed(path)


@pytest.mark.parametrize("every", [1, 7])
def test_a_copy_of_the_files_of_any_moment_is_the_bandit_of_that_moment(path, tmp_path, every):
    """As a kill leaves them: with commit_every=7 up to six calls are not there yet, and none of those before."""
    bandit, twin = make(store=path, commit_every=every), make()
    for number in range(40):
        bandit.decide(ARMS, NAMES, f"e{number}", time=number)
        killed = tmp_path / f"killed-{number}"
        killed.mkdir()
        for one in path.parent.glob("shop.db*"):
            shutil.copy(one, killed / one.name)
        with sb.Bandit.open(killed / path.name) as again:
            assert again.decisions == number + 1 - (number + 1) % every
            while twin.decisions < again.decisions:
                twin.decide(ARMS, NAMES, f"e{twin.decisions}", time=twin.decisions)
            assert carried(again) == carried(twin)
    bandit.flush()
    with closing(SqliteStore(path)) as store:
        assert store.last(1) == 40
    bandit.close()


def test_what_was_not_synced_may_be_lost(path, tmp_path):
    """A power loss may take whatever was written after the last sync, which a commit ends with: cut anywhere there."""
    bandit, synced = make(store=path), []
    wal = Path(f"{path}-wal")
    for number in range(30):
        bandit.decide(ARMS, NAMES, f"e{number}", time=number)
        synced.append(wal.stat().st_size)
    rng = np.random.default_rng(0)
    for number in range(0, 29, 4):
        lost = tmp_path / f"lost-{number}"
        lost.mkdir()
        shutil.copy(path, lost / path.name)
        content = wal.read_bytes()[: int(rng.integers(synced[number], synced[number + 1]))]
        (lost / wal.name).write_bytes(content)
        with sb.Bandit.open(lost / path.name) as again:
            assert again.open_ids() == [f"e{one}" for one in range(number + 1)]
    bandit.close()


def test_every_commit_is_synced(path):
    """FULL in write-ahead mode: the log is synced before COMMIT returns."""
    with make(store=path) as bandit:
        connection = bandit._history.source.store._writing
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


STRACE = shutil.which("strace")
TRACED = """
import sys
import numpy as np
import solid_bandits as sb
bandit = sb.Bandit(sb.Greedy(), dim=2, noise_std=1.0, store=sys.argv[1], commit_every=int(sys.argv[2]))
for number in range(12):
    bandit.decide(np.eye(2), event_id=f"e{number}")
    print("returned", flush=True)
"""


@pytest.mark.skipif(STRACE is None, reason="needs strace")
@pytest.mark.parametrize("every", [1, 4])
def test_the_disk_has_it_before_the_call_returns(path, tmp_path, every):
    """By the system calls of a process: between two calls that return, or between two groups, the log is synced."""
    trace = tmp_path / "trace"
    command = [STRACE, "-f", "-y", "-e", "trace=fsync,fdatasync,write", "-o", trace]
    done = subprocess.run(
        [*command, sys.executable, "-c", TRACED, path, str(every)],
        capture_output=True,
        text=True,
    )
    if done.returncode and "ptrace" in done.stderr:
        pytest.skip(f"processes may not be traced here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    order = [
        "synced" if "sync(" in line else "returned"
        for line in trace.read_text(errors="replace").splitlines()
        if ("sync(" in line and "-wal>" in line) or '"returned' in line
    ]
    assert order.count("returned") == 12
    groups = "".join(one[0] for one in order).split("r" * every if every > 1 else "r")
    calls = [place for place, one in enumerate(order) if one == "returned"]
    for first in range(every - 1, 12, every):  # the last call of each group
        assert order[calls[first] - 1] == "synced", groups


def test_a_second_opener_and_a_fork_are_refused(path):
    bandit = make(store=path)
    bandit.decide(ARMS, NAMES, "a")
    script = "import sys, solid_bandits as sb; sb.Bandit.open(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True)
    assert "is open already, here or in another process; close it there first" in done.stderr
    with pytest.raises(StoreError, match=r"shop\.db' is open already"):
        sb.Bandit.open(path)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        words = []
        for call in (lambda: bandit.decide(ARMS), bandit.log, bandit.flush, bandit.open_ids):
            try:
                call()
            except StoreError as error:
                words.append(str(error))
        bandit.close()  # does nothing to the files of the parent
        os.write(writing, "\n".join(words).encode())
        os._exit(0)
    os.waitpid(child, 0)
    words = os.read(reading, 10_000).decode().splitlines()
    assert len(words) == 4
    assert all(f"was opened by process {os.getpid()}, of which this one is a fork" in one for one in words)
    bandit.decide(ARMS, NAMES, "b")
    with pytest.raises(StoreError, match="is open already"):  # the lock is the parent's still
        sb.Bandit.open(path)
    bandit.close()
    with pytest.raises(StoreError, match="is closed"):
        bandit.decide(ARMS)
    with sb.Bandit.open(path) as again:
        assert again.open_ids() == ["a", "b"]


def test_a_fork_while_another_thread_is_at_work_does_not_hang(path):
    bandit = make(store=path)
    bandit._history._lock.acquire()
    child = os.fork()
    if child == 0:
        try:
            bandit.decide(ARMS)
        except StoreError:
            os._exit(0)
        os._exit(1)
    bandit._history._lock.release()
    assert os.waitpid(child, 0)[1] == 0
    bandit.close()


def refused(call, *given, **named):
    with pytest.raises(StoreError, match="is open already"):
        call(*given, **named)


@pytest.mark.parametrize(
    "look",
    [
        lambda path: sb.ope.evaluate(path, "uniform"),
        lambda path: refused(make, store=path),
        lambda path: refused(sb.Bandit.open, path),
        lambda path: SqliteStore(path).close(),
    ],
    ids=["evaluate", "make", "open", "read"],
)
def test_what_looks_at_an_open_store_leaves_its_locks(path, look):
    """Without them the next process that closes it takes the write-ahead log away, and with it what comes later."""
    bandit = make(store=path)
    bandit.decide(ARMS, NAMES, "a", time=1)
    bandit.learn("a", 1.0, time=2)
    look(path)
    assert elsewhere(COUNTED, path) == b"2\n"
    bandit.decide(ARMS, NAMES, "b", time=3)
    assert elsewhere(COUNTED, path) == b"3\n"
    bandit.close()


def test_a_store_whose_locks_are_lost_acknowledges_nothing_that_is(path, tmp_path):
    bandit = make(store=path)
    bandit.decide(ARMS, NAMES, "a")
    shutil.copy(path, tmp_path / "copy")  # reads it past SQLite
    bandit.decide(ARMS, NAMES, "b")
    ahead = Path(f"{path}-wal")
    known = ahead.stat().st_ino
    assert elsewhere(COUNTED, path) == b"2\n"
    if ahead.exists() and ahead.stat().st_ino == known:
        bandit.close()
        pytest.skip("this SQLite keeps its locks: nothing was taken away")
    for _ in range(2):
        with pytest.raises(StoreError, match="another process has taken"):
            bandit.decide(ARMS, NAMES, "c")
    bandit.close()
    with sb.Bandit.open(path) as again:
        assert again.open_ids() == ["a", "b"]


@pytest.mark.parametrize("name", ["hard", "link"])
def test_another_name_of_an_open_store_is_refused(path, name):
    with make(store=path) as bandit:
        bandit.decide(ARMS, NAMES, "a")
        other = path.with_name("other.db")
        (other.hardlink_to if name == "hard" else other.symlink_to)(path)
        with pytest.raises(StoreError, match="hard links" if name == "hard" else "is open already"):
            sb.Bandit.open(other)


def test_databases_of_something_else_are_left_as_they_are(path):
    with closing(sqlite3.connect(path)) as other:
        other.executescript("CREATE TABLE mine (x); INSERT INTO mine VALUES (1)")
    before = path.read_bytes()
    for wrong in (
        lambda: sb.Bandit.open(path),
        lambda: make(store=path),
        lambda: sb.ope.evaluate(path, "uniform"),
    ):
        with pytest.raises(StoreError, match="is a database of something else"):
            wrong()
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_removing_the_lock_lets_another_go_on_and_loses_nothing(path):
    """The former holder is refused at its next call, also one that would answer from memory alone."""
    bandit = make(store=path)
    bandit.decide(ARMS, NAMES, "a")
    Path(f"{path}.lock").unlink()
    with sb.Bandit.open(path) as other:
        other.decide(ARMS, NAMES, "b")
        with pytest.raises(FencedError, match="was opened by another process meanwhile"):
            bandit.decide(ARMS, NAMES, "c")
        other.decide(ARMS, NAMES, "d")
        assert other.open_ids() == ["a", "b", "d"]
    with pytest.raises(StoreError):
        bandit.learn("a", 1.0)
    assert "3 decisions, 0 rewards, 1 snapshot compared (events 1 to 3), identical" in replayed(path)


def test_settings_are_in_the_store_and_a_new_bandit_needs_a_new_file(path, tmp_path):
    settings = {"dim": 4, "noise_std": 0.7, "floor": 0.2, "half_life": 50.0, "theta_bound": 3.0, "seed": 9}
    with sb.Bandit(sb.LinUCB(scale=2.0), window=7, store=path, **settings) as bandit:
        words = repr(bandit)
    with sb.Bandit.open(path) as again:
        assert repr(again) == words
        assert again.agent._setting == bandit.agent._setting
        assert again._version == bandit._version
        assert again._remembered.window == 7
    with pytest.raises(ValueError, match=r"store must be a new file, got .*go on with Bandit.open"):
        make(store=path)
    with pytest.raises(StoreError, match="must be a store, but there is no such file"):
        sb.Bandit.open(tmp_path / "none.db")
    SqliteStore(tmp_path / "empty.db", create=True).close()  # of a process that was killed early
    with pytest.raises(StoreError, match="must be the store of one bandit"):
        sb.Bandit.open(tmp_path / "empty.db")
    make(store=tmp_path / "empty.db").close()
    for wrong in (5, b"shop.db"):
        with pytest.raises(ValueError, match="store must be a path"):
            make(store=wrong)


def failing(monkeypatch, failure, after):
    append = SqliteStore.append

    def broken(self, *given):
        if after:
            append(self, *given)
        raise failure

    monkeypatch.setattr(SqliteStore, "append", broken)


@pytest.mark.parametrize("failure", [FullError("full"), StoreError("gone"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("after", [False, True], ids=["nothing written", "written, but nobody knows"])
@pytest.mark.parametrize("every", [1, 3])
def test_a_commit_that_fails_leaves_the_bandit_where_its_log_is(path, monkeypatch, failure, after, every):
    bandit, twin = make(store=path, commit_every=every), make()
    for one in (bandit, twin):
        one.decide(ARMS, NAMES, "a", time=0)
    bandit.flush()
    with monkeypatch.context() as patch:
        failing(patch, failure, after)
        *others, last = enumerate("bcd"[:every])
        for place, name in others:
            bandit.decide(ARMS, NAMES, name, time=place)
        with pytest.raises(type(failure)):
            bandit.decide(ARMS, NAMES, last[1], time=last[0])
    if after:
        for place, name in enumerate("bcd"[:every]):
            twin.decide(ARMS, NAMES, name, time=place)
    assert bandit.open_ids() == twin.open_ids()
    assert carried(bandit) == carried(twin)
    for one in (bandit, twin):
        one.learn("a", 1.0, time=9)
    assert carried(bandit) == carried(twin)
    bandit.close()
    assert "identical" in replayed(path)


def test_a_real_disk_that_is_full(path):
    """SQLite's own limit of pages: what did not fit changed nothing, and with room the same call goes through."""
    bandit = make(store=path)
    writing = bandit._history.source.store._writing
    writing.execute(f"PRAGMA max_page_count={writing.execute('PRAGMA page_count').fetchone()[0] + 3}")
    number, refused = 0, 0
    while refused < 3:
        before = carried(bandit)
        try:
            bandit.decide(ARMS, NAMES, f"e{number}", time=number)
            number += 1
        except FullError:
            refused += 1
            bandit.open_ids()
            assert carried(bandit) == before
    writing.execute("PRAGMA max_page_count=1000000")
    assert not bandit.decide(ARMS, NAMES, f"e{number}", time=number).again
    bandit.close()
    assert f"{number + 1} decisions" in replayed(path)


def test_groups_on_a_full_disk_lose_one_group_at_most(path):
    """After the first that does not fit each call is committed, and refused where it does not fit either."""
    bandit = make(store=path, commit_every=4)
    writing = bandit._history.source.store._writing
    writing.execute(f"PRAGMA max_page_count={writing.execute('PRAGMA page_count').fetchone()[0] + 3}")
    returned, words = [], []
    for number in range(2_000):
        if len(words) == 9:
            break
        try:
            bandit.decide(ARMS, NAMES, f"e{number}", time=number)
            returned.append(f"e{number}")
        except FullError as error:
            words.append(str(error))
    assert "; the last 4 calls may not be on the disk" in words[0]
    assert not any("calls" in one for one in words[1:])
    kept = bandit.open_ids()
    assert len(returned) - len(kept) == 3
    assert set(kept) < set(returned)
    writing.execute("PRAGMA max_page_count=1000000")
    for name in "abcd":
        bandit.decide(ARMS, NAMES, name, time=100)
    with closing(SqliteStore(path)) as store:
        assert store.last(1) == len(kept) + 1  # a group again: three wait
    bandit.close()
    assert "identical" in replayed(path)


def test_a_snapshot_that_cannot_be_made_fails_its_call(path, monkeypatch):
    monkeypatch.setattr(stored, "SNAPSHOT_EVERY", 3)
    bandit, twin = make(store=path), make()
    for one in (bandit, twin):
        for name in "ab":
            one.decide(ARMS, NAMES, name, time=1)
    with monkeypatch.context() as patch:
        patch.setattr(stored, "packed", lambda bandit: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            bandit.decide(ARMS, NAMES, "c", time=2)
    assert bandit.open_ids() == ["a", "b"]
    assert carried(bandit) == carried(twin)
    bandit.close()


class Failing:
    """The agent of a bandit, whose next decision is a fault after it changed its state."""

    def __init__(self, agent):
        self._agent = agent

    def __getattr__(self, name):
        return getattr(self._agent, name)

    def decide(self, features):
        self._agent.decide(features)
        raise OwnPolicyError("act must return an available arm")


@pytest.mark.parametrize("every", [1, 10])
def test_a_call_that_fails_halfway_is_undone(path, every):
    """What was answered before it stays, also where it waited for its group."""
    bandit, twin = make(store=path, commit_every=every), make()
    for one in (bandit, twin):
        for name in "abc":
            one.decide(ARMS, NAMES, name, time=1)
    bandit.agent = Failing(bandit.agent)
    with pytest.raises(OwnPolicyError):
        bandit.decide(ARMS, NAMES, "d", time=2)
    assert bandit.open_ids() == ["a", "b", "c"]
    assert carried(bandit) == carried(twin)
    bandit.close()
    assert "3 decisions" in replayed(path)


def test_a_bad_call_is_not_a_reason_to_read_the_log_again(path, monkeypatch):
    bandit = make(store=path)
    bandit.decide(ARMS, NAMES, "a")
    monkeypatch.setattr(stored, "caught_up", None)
    for wrong in (
        lambda: bandit.learn("nobody", 1.0),
        lambda: bandit.decide(ARMS[:2], NAMES[:2], "a"),
        lambda: bandit.decide(ARMS[:, :1]),
        lambda: bandit.expire(event_ids=["nobody"]),
    ):
        with pytest.raises(ValueError, match=r"event_id|features"):
            wrong()
    assert bandit.learn("a", 1.0).counted
    bandit.close()


def test_ids_are_known_beyond_the_window_and_after_opening(path):
    with make(store=path, window=3) as bandit:
        made = [bandit.decide(ARMS, NAMES, f"e{number}", time=number) for number in range(8)]
        bandit.learn("e6", 1.0, time=9)
    with sb.Bandit.open(path) as again:
        for one in made:
            same = again.decide(ARMS, NAMES, one.event_id)
            assert same.again
            assert (same.arm, same.probabilities.tolist()) == (one.arm, one.probabilities.tolist())
        assert again.learn("e6", 1.0).status == "again"
        assert again.learn("e6", 2.0).status == "conflict"
        late = again.learn("e0", 1.0)
        assert (late.status, late.reward) == ("late", None)
        with pytest.raises(ValueError, match="event_id must be that of one"):
            again.learn("nobody", 1.0)
        assert again.decide(ARMS, NAMES).event_id == "decision-9"
        assert again.recall("e0").status == "expired"
        assert again.open_ids() == ["e7", "decision-9"]


def test_deleted_decisions_leave_the_files_and_ids_may_be_used_again(path):
    secret = "anna-who-is-secret"
    bandit = make(store=path, commit_every=5)
    for number in range(6):
        bandit.decide(ARMS, NAMES, f"e{number}", time=number, subject=secret if number < 2 else None)
    bandit.learn("e0", 1.0, time=8)
    assert bandit.delete(subject=secret) == 2  # committed at once
    assert secret.encode() not in elsewhere(CONTENT, *path.parent.glob("shop.db*"))
    assert bandit.delete(subject=secret) == 0
    assert bandit.delete(before=3.0) == 1
    assert bandit.delete(["e3", "e4", "no"]) == 2
    assert bandit.log()["event_id"].to_list() == ["e5"]
    assert not bandit.decide(ARMS, NAMES, "e0", time=9).again
    bandit.close()
    assert "partly erased" in replayed(path)
    with sb.Bandit.open(path) as again:
        assert again.open_ids() == ["e5", "e0"]


READING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT * FROM events").fetchall()
print("reads", flush=True)
sys.stdin.read()
"""


def test_a_reader_keeps_what_was_deleted_only_while_it_reads(path):
    """The deletion does not wait for it long; the next call empties the write-ahead log."""
    secret = "anna-who-is-secret"
    bandit = make(store=path)
    bandit.decide(ARMS, NAMES, "a", subject=secret)
    command = [sys.executable, "-c", READING, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdout.readline() == b"reads\n"
        assert bandit.delete(subject=secret) == 1  # while it reads: nobody ends it but this test
        bandit.decide(ARMS, NAMES, "b")
        assert secret.encode() in elsewhere(CONTENT, *path.parent.glob("shop.db*"))
        reader.stdin.close()
        reader.wait()
    bandit.decide(ARMS, NAMES, "c")
    assert secret.encode() not in elsewhere(CONTENT, *path.parent.glob("shop.db*"))
    bandit.close()


def test_a_deletion_that_fails_can_be_repeated(path, monkeypatch):
    bandit = make(store=path, window=3)
    for name in "abcde":
        bandit.decide(ARMS, NAMES, name, time=1, subject="anna" if name in "ae" else None)
    before = carried(bandit)
    for wrong in ({"event_id": "a"}, {"before": 2}, {"subject": "anna"}):
        with monkeypatch.context() as patch:
            failing(patch, FullError("full"), after=False)
            with pytest.raises(FullError):
                bandit.delete(**wrong)
        assert bandit.open_ids() == ["c", "d", "e"]
        assert carried(bandit) == before
        assert bandit.log().height == 5
    assert bandit.delete(subject="anna") == 2
    assert bandit.log()["event_id"].to_list() == ["b", "c", "d"]
    bandit.close()


def test_what_a_group_has_deleted_is_deleted_once(path):
    """As the service has it, which commits many calls together."""
    bandit = make(store=path)
    bandit.decide(ARMS, NAMES, "a", subject="anna")
    bandit._history.commit_every = 0
    assert bandit.delete(subject="anna") == 1
    assert bandit.delete(subject="anna") == 0
    bandit.decide(ARMS, NAMES, "b", subject="anna")
    assert bandit.delete(subject="anna") == 1
    bandit.decide(ARMS, NAMES, "b", subject="bob")
    assert bandit.delete(subject="anna") == 0
    bandit.flush()
    assert bandit.log()["event_id"].to_list() == ["b"]
    bandit.close()


def test_what_many_say_is_not_read_to_delete_them(path, monkeypatch):
    """Ids and numbers of events alone: what they say may be gigabytes."""
    with make(store=path) as bandit:
        for number in range(11):
            bandit.decide(ARMS, NAMES, f"e{number}", time=number)
        monkeypatch.setattr(SqliteStore, "find", None)
        assert bandit.delete(before=10.0) == 10
        assert bandit.open_ids() == ["e10"]


def test_a_warm_start_is_in_the_log_and_replayed(path):
    first = make(sb.LinUCB(), window=500, floor=0.3)
    played(first, 120, seed=6)
    table = {"arm": [0, 1], "reward": [1.0, None], "features": [[[1.0, 0.0], [0.0, 1.0]]] * 2}
    foreign = sb.logs.from_table(table)  # without probabilities
    settings = {"noise_std": 0.5, "floor": 0.3}
    held = sb.Bandit.from_log(first.log(), sb.LinUCB(), **settings)
    with sb.Bandit.from_log(first.log(), sb.LinUCB(), store=path, **settings) as kept:
        for one in (held, kept):
            one.warm_start(foreign)
            one.learn(first.open_ids()[0], 2.0, time=500)
        assert same_log(held, kept)
        assert kept.log().height == 122
    assert "122 adopted decisions" in replayed(path)
    with sb.Bandit.open(path) as again:
        assert again.open_ids() == held.open_ids()
        assert np.array_equal(again.agent.theta, held.agent.theta)


def test_threads_take_turns_in_a_store(path):
    bandit, failures = make(sb.Greedy(), store=path, commit_every=20), []

    def work(who):
        try:
            for number in range(60):
                bandit.decide(ARMS, NAMES, f"{who}-{number}")
                assert bandit.learn(f"{who}-{number}", 1.0).counted
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failures == []
    bandit.close()
    assert "180 decisions, 180 rewards" in replayed(path)


def test_a_damaged_log_is_not_gone_on_with(path):
    with make(store=path) as bandit:
        played(bandit, 20, seed=1)
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM snapshots")
    connection.execute("UPDATE events SET time = time + 1 WHERE sequence = 7")
    connection.commit()
    connection.close()
    with pytest.raises(ReplayDiverged, match=r"event 7 .*the event is not what was written"):
        sb.Bandit.open(path)
    with pytest.raises(ReplayDiverged, match="event 7"):
        replayed(path)


def test_a_snapshot_of_another_release_is_replayed_instead(path, monkeypatch):
    """Settings and events are enough, as long as the same decisions follow from them."""
    with make(store=path, half_life=30.0) as bandit:
        played(bandit, 30, seed=3)
        before = carried(bandit, only_open=True)
    monkeypatch.setattr("solid_bandits.core.agent_file.VERSION", 99)
    with sb.Bandit.open(path) as again:
        assert carried(again, only_open=True) == before


class Own(sb.Greedy):
    """A policy that this package does not know by name."""


def test_own_policies_are_named_again(path):
    """Their code is nowhere in the file."""
    with sb.Bandit(Own(), dim=2, noise_std=1.0, store=path) as bandit:
        played(bandit, 20, seed=3)
        opened = bandit.open_ids()
    with pytest.raises(StoreError, match=r"give one of your own to"):
        sb.Bandit.open(path)
    with sb.Bandit.open(path, policy=Own()) as again:
        assert again.open_ids() == opened


@pytest.mark.long
def test_a_store_withstands_a_small_attack(tmp_path):
    counts = [
        "--kills",
        "8",
        "--full",
        "1",
        "--seconds",
        "0.3",
        "--seed",
        "2",
        "--out",
        str(tmp_path / "attacked"),
    ]
    done = subprocess.run([sys.executable, str(ATTACK), *counts], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "| bandit with a store, killed | 8 | 0 | 2 |" in done.stdout
    # The second deletes: its snapshot may come after all events.
    assert done.stdout.count("identical") + done.stdout.count("all there is") == 2


@dataclass(frozen=True)
class Capped(sb.Greedy):
    cap: float | None = None


def test_a_parameter_that_is_not_finite_is_no_other(tmp_path):
    path = tmp_path / "own.db"
    sb.Bandit(Capped(cap=math.inf), dim=2, store=path).close()
    sb.Bandit.open(path, policy=Capped(cap=math.inf)).close()
    for other in (None, math.nan, -math.inf):
        with pytest.raises(StoreError, match="policy must be the one that was saved"):
            sb.Bandit.open(path, policy=Capped(cap=other))


def test_a_half_life_is_written_the_same_after_each_opening(tmp_path):
    """A whole number stays one: else versions in the log would differ from one start to the next."""
    made = set()
    with sb.Bandit(sb.RandUCB(), dim=2, half_life=10_000, store=tmp_path / "a.db") as bandit:
        made.add((bandit._policy, bandit._version, bandit.decide([[1, 0], [0, 1]]).version))
    for _ in range(2):
        with sb.Bandit.open(tmp_path / "a.db") as bandit:
            made.add((bandit._policy, bandit._version, bandit.decide([[1, 0], [0, 1]]).version))
    assert len(made) == 1, made
