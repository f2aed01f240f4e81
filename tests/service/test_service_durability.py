"""What was answered is in the log, and the model is what its log says: through failures, kills and replays."""

import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

import solid_bandits.service.model as model_module
from served import PATIENCE, SPEC, TWO, process, replayed, service, stored, tampering
from solid_bandits.live.snapshots import opened, sealed
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.store import FencedError, FullError, StoreError
from solid_bandits.live.stored import StoredHistory
from solid_bandits.service.model import caught_up_model
from solid_bandits.service.open_store import FILE


class Recording(SqliteStore):
    """Notes when a commit has ended, waits or fails when told to."""

    def __init__(self, directory):
        super().__init__(directory / FILE, create=True)
        self.committed = []
        self.gate = threading.Event()
        self.gate.set()
        self.failure = None
        self.after = False

    def append(self, model, fence, events, snapshot=None, erased=()):
        assert self.gate.wait(PATIENCE)
        if self.failure is not None and not self.after:
            raise self.failure
        super().append(model, fence, events, snapshot, erased)
        self.committed += [event.event_id for event in events]
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def recording(tmp_path):
    store = Recording(tmp_path)
    with service(store) as client:
        client.post("/v1/models", json=SPEC)
        yield client, store
    store.close()


def decide(client, event_id, **asked):
    return client.post("/v1/models/news/decisions", json={"event_id": event_id, "features": TWO} | asked)


def learn(client, event_id, reward=1.0):
    return client.post("/v1/models/news/rewards", json={"event_id": event_id, "reward": reward})


def test_no_answer_before_the_commit(recording):
    """While the commit waits nothing is answered, also not an id that memory knows already; then all of it is."""
    client, store = recording
    store.gate.clear()
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(decide, client, event_id) for event_id in ("a", "b", "b", "c")]
        with pytest.raises(TimeoutError):
            calls[0].result(timeout=0.5)
        assert not any(call.done() for call in calls)
        assert store.committed == []
        store.gate.set()
        answers = [call.result(timeout=PATIENCE) for call in calls]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert sorted(store.committed) == ["a", "b", "c"]
    assert answers[1].json()["arm"] == answers[2].json()["arm"]


def test_the_service_answers_others_while_a_commit_waits(recording):
    client, store = recording
    store.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(decide, client, "a")
        assert client.get("/health").status_code == 200
        assert client.get("/v1/models").status_code == 200
        store.gate.set()
        assert call.result(timeout=PATIENCE).status_code == 200


@pytest.mark.parametrize(
    ("failure", "status"), [(FullError("full"), 507), (StoreError("gone"), 503), (FencedError("fenced"), 503)]
)
@pytest.mark.parametrize("after", [False, True], ids=["nothing written", "written, but nobody knows"])
def test_a_failed_commit_leaves_the_model_where_its_log_is(recording, failure, status, after):
    """Whether it was written or not: a retry gets what the log has, and the log replays."""
    client, store = recording
    assert decide(client, "a").status_code == 200
    store.failure, store.after = failure, after
    for answer in (decide(client, "b"), learn(client, "a")):
        assert answer.status_code == status
        assert int(answer.headers["retry-after"]) >= 1
    store.failure = None
    again = decide(client, "b").json()
    assert again["again"] == after
    assert learn(client, "a").json()["status"] == ("again" if after else "learned")
    kinds = [(event.kind, event.event_id) for event in store.read(1)]
    assert sorted(kinds) == [("decision", "a"), ("decision", "b"), ("reward", "a")]
    caught_up_model(None, store.models()[0], store)  # a ReplayDiverged otherwise


def test_a_fault_in_the_model_is_one_sentence_and_leaves_it_as_it_was(recording, monkeypatch):
    client, store = recording
    decide(client, "a")

    def broken(self, decision, kind="decision"):
        raise ZeroDivisionError("secret words")

    with monkeypatch.context() as patched:
        patched.setattr(StoredHistory, "made", broken)
        answer = decide(client, "b")
    assert answer.status_code == 500
    assert answer.json() == {"error": "this is a fault of the service; its log says more"}
    assert not decide(client, "b").json()["again"]
    assert [event.event_id for event in store.read(1)] == ["a", "b"]


def test_snapshots_and_replays_are_the_same_state(tmp_path, monkeypatch):
    """Snapshots every 20 events, with open decisions in them: from each, the rest of the log follows."""
    monkeypatch.setattr("solid_bandits.live.stored.SNAPSHOT_EVERY", 20)
    with stored(tmp_path) as client:
        client.post("/v1/models", json=SPEC | {"policy": "lints", "half_life": 30})
        for place in range(60):
            decide(client, f"e{place}", arms=["red", 7])
            if place % 3:
                learn(client, f"e{place - place % 3}", place / 10)
    store = SqliteStore(tmp_path / FILE)
    assert len(store.snapshots(1)) == 2
    row = store.models()[0]
    by_snapshot = caught_up_model(None, row, store)
    with monkeypatch.context() as patched:
        patched.setattr(store, "snapshot", lambda model, until=None: None)
        by_events = caught_up_model(None, row, store)
    kept = [opened(one.history.pack().content)["bandit"] for one in (by_snapshot, by_events)]
    assert kept[0] == kept[1]
    assert len(kept[0]["decisions"]) == 40
    assert by_snapshot.stats.answer(1)["decisions"] == by_events.stats.answer(1)["decisions"] == 60
    store.close()
    status, words = replayed(tmp_path)
    assert status == 0
    assert (
        "model 'news': 60 decisions, 20 rewards, 2 snapshots compared (events 1 to 80), identical\n" in words
    )


@pytest.mark.parametrize("damaged", [1, 2])
def test_a_damaged_snapshot_is_not_believed(tmp_path, monkeypatch, damaged):
    """An earlier one or the log itself takes its place. The next one heals the newest; replay says which is left."""
    monkeypatch.setattr("solid_bandits.live.stored.SNAPSHOT_EVERY", 10)
    with stored(tmp_path) as client:
        client.post("/v1/models", json=SPEC)
        made = [decide(client, f"e{place}").json() for place in range(25)]
    with tampering(tmp_path) as connection:
        rows = connection.execute("SELECT rowid, content FROM snapshots ORDER BY sequence DESC").fetchall()
        assert len(rows) == 2
        for row, content in rows[:damaged]:
            place = content.index(b'"counters":[') + len(b'"counters":[')
            wrong = content[:place] + b"9" + content[place + 1 :]
            connection.execute("UPDATE snapshots SET content=? WHERE rowid=?", (wrong, row))
    with stored(tmp_path) as client:
        assert decide(client, "e24").json() == made[24] | {"again": True}
        assert client.get("/v1/models/news/stats").json()["open"] == 25
    status, said = replayed(tmp_path)
    assert status == damaged - 1
    if damaged == 2:
        assert "event 20 (decision): it is not what was written" in said


def test_the_numbers_of_a_release_that_counted_otherwise_are_counted_again(tmp_path):
    with stored(tmp_path) as client:
        client.post("/v1/models", json=SPEC)
        for place in range(30):
            decide(client, f"e{place}")
            if place % 2:
                learn(client, f"e{place}", place / 30)
        before = client.get("/v1/models/news/stats").json()
    with tampering(tmp_path) as connection:
        row, content = connection.execute("SELECT rowid, content FROM snapshots").fetchone()
        other = sealed(opened(content) | {"beside": {"counted": "otherwise"}})
        connection.execute("UPDATE snapshots SET content=? WHERE rowid=?", (other, row))
    with stored(tmp_path) as client:
        after = client.get("/v1/models/news/stats").json()
    for name in ("decisions", "rewards", "arms", "values", "open"):
        assert after[name] == before[name]


def test_ids_are_known_after_a_restart_and_beyond_the_window(tmp_path):
    spec = SPEC | {"window": 5}
    with stored(tmp_path) as client:
        client.post("/v1/models", json=spec)
        first = [decide(client, f"e{place}").json() for place in range(10)]
        learn(client, "e9")
        learn(client, "e0", 3.0)  # forgotten, so it is too late
    with stored(tmp_path) as client:
        for place, before in enumerate(first):
            assert decide(client, f"e{place}").json() == before | {"again": True}
        assert learn(client, "e9").json()["status"] == "again"
        assert learn(client, "e9", 2.0).status_code == 409
        late = learn(client, "e0")
        assert late.status_code == 409
        assert "had expired" in late.json()["error"]
        assert decide(client, "e9", arms=["x", "y"]).status_code == 409
    assert replayed(tmp_path)[0] == 0


def test_rewards_that_do_not_come_get_their_default_in_the_log(tmp_path):
    store = SqliteStore(tmp_path / FILE, create=True)
    spec = model_module.ModelSpec(**SPEC, default_reward=0.25, wait=60)
    row = store.add_model("news", spec.model_dump_json(), 0)
    model = caught_up_model(None, row, store)
    asked = [model_module.DecisionAsked(features=TWO, event_id=f"e{place}") for place in range(3)]
    for place, one in enumerate(asked):
        model.decide([one], now=1_000_000 * (place + 1))
    model.learn([model_module.RewardGiven(event_id="e1", reward=9.0)], now=5_000_000)
    assert model.expire(60_999_999) == 0
    assert model.expire(62_500_000) == 1  # e0; e1 has its reward, e2 has not waited long enough
    assert model.expire(63_000_000) == 1
    model.history.fence = 1
    model.history.commit()
    closing = [(one.kind, one.event_id, one.time) for one in store.read(row.id) if one.kind != "decision"]
    assert closing == [
        ("reward", "e1", 5_000_000),
        ("expiry", "e0", 62_500_000),
        ("expiry", "e2", 63_000_000),
    ]
    late = model.learn([model_module.RewardGiven(event_id="e0", reward=1.0)], now=64_000_000)[0]
    assert (late.status, late.reward) == ("late", 0.25)
    again = caught_up_model(None, row, store)
    assert again.history.pack().content == model.history.pack().content
    store.close()


def test_times_in_a_log_are_those_of_the_clock(tmp_path):
    """One that was wrong for a while is not followed by all later events: times of before would be for ever."""
    store = SqliteStore(tmp_path / FILE, create=True)
    row = store.add_model("news", model_module.ModelSpec(**SPEC).model_dump_json(), 0)
    model = caught_up_model(None, row, store)
    for now in (2_000_000, 1_000_000, 3_000_000):  # a clock that was set back
        model.decide([model_module.DecisionAsked(features=TWO)], now=now)
    assert [event.time for event in model.history.fresh] == [2_000_000, 1_000_000, 3_000_000]
    store.close()


def test_a_persons_events_are_erased_and_what_was_learnt_stays(tmp_path):
    with stored(tmp_path) as client:
        client.post("/v1/models", json=SPEC)
        for place in range(12):
            decide(client, f"e{place}", subject="anna-the-secret" if place < 4 else None)
        learn(client, "e0", 1.0)
        before = decide(client, "x").json()["version"]
        answer = client.post("/v1/models/news/deletions", json={"subject": "anna-the-secret"})
        assert answer.json() == {"decisions": 4}
        # By another process: SQLite's locks of this one would end with the first file that it closes.
        content = subprocess.run(["cat", *tmp_path.iterdir()], capture_output=True, check=True).stdout
        assert b"anna-the-secret" not in content
        assert b"e4" in content
        assert learn(client, "e1").status_code == 404
        assert decide(client, "y").json()["version"] == before  # one reward was learnt, and is
        table = client.get("/v1/models/news/log?format=dsjson").text
        assert '"e3"' not in table
        assert '"e4"' in table
        assert client.post("/v1/models/news/deletions", json={"event_ids": ["e4", "no"]}).json() == {
            "decisions": 1
        }
        assert client.post("/v1/models/news/deletions", json={"event_ids": ["no"]}).json() == {"decisions": 0}
        assert not decide(client, "e0").json()["again"]
        assert client.post("/v1/models/news/deletions", json={"before": 1e10}).json() == {"decisions": 10}
        assert client.get("/v1/models/news/stats").json()["open"] == 0
        decide(client, "z")
    with stored(tmp_path) as client:
        assert decide(client, "z").json()["again"]
    status, words = replayed(tmp_path)
    assert status == 0
    assert "partly erased" in words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE events SET body=replace(body, ',', ', ') WHERE sequence=5", "event 5 (decision): the event is not"),
        ("UPDATE events SET numbers=zeroblob(64) WHERE sequence=3", "event 3 (decision): the event is not"),
        ("UPDATE events SET time=time+1 WHERE sequence=2", "event 2 (reward): the event is not"),
        ("DELETE FROM events WHERE sequence=4", "event 5 (decision): event 4 is missing"),
        ("DELETE FROM events WHERE sequence=1", "event 2 (reward): event 1 is missing"),
    ],
)  # fmt: skip
def test_a_damaged_log_is_found_by_replay(tmp_path, change, words):
    with stored(tmp_path) as client:
        client.post("/v1/models", json=SPEC)
        for place in range(5):
            decide(client, f"e{place}")
            if place == 0:
                learn(client, "e0")
    with tampering(tmp_path) as connection:
        connection.execute(change)
    status, said = replayed(tmp_path)
    assert status == 1
    assert f"model 'news', {words}" in said


def test_a_decision_that_does_not_follow_is_found_by_replay(tmp_path):
    """A sound row that says what this seed would not have decided: here another seed is told."""
    with stored(tmp_path) as client:
        client.post("/v1/models", json=SPEC)
        for place in range(30):
            decide(client, f"e{place}")
            learn(client, f"e{place}", place % 3)
    with tampering(tmp_path) as connection:
        connection.execute("UPDATE models SET spec=replace(spec, '\"seed\":7', '\"seed\":8')")
    status, said = replayed(tmp_path)
    assert status == 1
    assert "(decision): the" in said or "is chosen, the log says" in said
    assert "digest" not in said


def test_killed_right_after_the_answer(tmp_path):
    """A process of its own, SIGKILL after the answer: what was answered is there, and the rest goes on."""
    with process(tmp_path) as server:
        server.client.post("/v1/models", json=SPEC)
        answers = [decide(server.client, f"e{place}").json() for place in range(5)]
        assert learn(server.client, "e3").status_code == 200
        server.kill()
        key = server.key
        with pytest.raises(httpx.TransportError):
            server.client.get("/health")
    with process(tmp_path, key=key) as server:
        for place, before in enumerate(answers):
            assert decide(server.client, f"e{place}").json() == before | {"again": True}
        assert learn(server.client, "e3").json()["status"] == "again"
        assert server.end() == 0
    assert replayed(tmp_path)[0] == 0
    store = SqliteStore(tmp_path / FILE)
    assert [sequence for sequence, _, _ in store.snapshots(1)] == [6]  # of the end in order
    store.close()
