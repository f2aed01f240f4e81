"""Budgets: what one key may take, turns of models and keys, reports that are ended, models that cannot be used."""

import asyncio
import inspect
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from page_code import DOCS
from served import PATIENCE, SETTINGS, SPEC, TWO, bearer, process, service, stored, tampering, until
from solid_bandits.cli.serve import serve
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.store import FullError
from solid_bandits.service import keys, limits, loading, parsing, reports
from solid_bandits.service.budgets import Budgets, stated, table
from solid_bandits.service.helpers import environment
from solid_bandits.service.limits import VALUE_BYTES, Admission, RefusedError
from solid_bandits.service.open_store import FILE
from solid_bandits.service.runtime import Settings
from solid_bandits.service.turns import Turns


def test_what_serve_allows_unless_told_otherwise_is_what_budgets_state():
    told = inspect.signature(serve).parameters
    assert {name: told[name].default for name in ("rate", "key_bytes", "largest_body")} == {
        one.name: one.value for one in stated(Budgets()) if one.name in told
    }


class Call(NamedTuple):
    model: int
    key: str
    number: int


def test_models_and_keys_have_turns():
    """Whoever sends many calls waits for his own; calls of one key for one model keep their order."""
    turns = Turns()
    for number in range(100):
        turns.put(Call(1, "many", number))
    turns.put(Call(1, "few", 0))
    turns.put(Call(2, "few", 0))
    assert turns.qsize() == 102
    first, second, third = turns.take(4), turns.take(4), turns.take(4)
    many = [Call(1, "many", number) for number in range(100)]
    assert first == [many[0], Call(1, "few", 0), many[1], many[2]]
    assert second == [Call(2, "few", 0)]
    turns.put_back(third[1:])
    assert [*third[:1], *turns.take(1_000)] == many[3:]
    for number in range(40):
        turns.put(Call(1, "many", number))
    turns.put(Call(1, "few", 1))
    group = turns.take(8)
    turns.put_back(group[1:])  # as the writer does where a call took the time of a group
    assert turns.take(1) == [Call(1, "few", 1)]
    turns.take(1_000)
    turns.put(None)
    assert turns.take(4) == []


def test_a_model_that_is_held_has_no_turns():
    turns = Turns()
    turns.hold(1)
    turns.put(Call(1, "a", 0))
    turns.put(Call(2, "a", 0))
    assert turns.take(9) == [Call(2, "a", 0)]
    taken = []
    waiting = threading.Thread(target=lambda: taken.append(turns.take(9)), daemon=True)
    waiting.start()
    turns.release(1)
    waiting.join(PATIENCE)
    assert taken == [[Call(1, "a", 0)]]


@pytest.mark.parametrize(
    ("budget", "value", "status", "words"),
    [
        ("key_calls", 1, 429, "this key may make 1 calls at once"),
        ("key_memory", 150, 429, "this key may make calls of 150 bytes at once"),
        ("calls_memory", 150, 503, "too many calls are waiting; try again"),
        ("key_bytes", 150.0, 429, "this key may make bodies of 150 bytes per second"),
    ],
)
def test_what_calls_of_a_key_may_hold_at_once(budget, value, status, words):
    admission = Admission(Budgets(**{budget: value}))
    with admission.call("a", 100):
        with pytest.raises(RefusedError) as refused, admission.call("a", 100):
            pass
        assert (refused.value.status, refused.value.message) == (status, words)
        assert refused.value.retry_after == 1
        if budget != "calls_memory":
            with admission.call("b", 100):
                pass
    assert (admission.memory_in_all, dict(admission.calls), dict(admission.memory)) == (0, {}, {})
    if budget != "key_bytes":
        with admission.call("a", 100):
            pass


def test_as_many_refusals_of_a_key_wait_as_calls_may_be_at_work():
    async def asked():
        admission = Admission(Budgets(key_calls=2))
        waiting = [asyncio.create_task(admission.pause("a")) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.wait_for(admission.pause("a"), 60)  # one more does not wait
        other = asyncio.create_task(admission.pause("b"))
        await asyncio.sleep(0)
        assert not any(one.done() for one in [*waiting, other])
        for one in [*waiting, other]:
            one.cancel()
        await asyncio.gather(*waiting, other, return_exceptions=True)
        assert not admission._pausing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "PAUSE", 1e6)
        asyncio.run(asked())


def test_a_large_body_is_refused_after_a_pause_a_small_one_at_once(tmp_path, monkeypatch):
    pauses = []

    async def pause(self, key):
        pauses.append(key)

    monkeypatch.setattr(Admission, "pause", pause)
    with stored(tmp_path, key_bytes=200.0) as client:
        client.post("/v1/models", json=SPEC)
        statuses = []
        for size in (100, 100, 100, parsing.SMALL + 100):
            answer = client.post("/v1/models/news/decisions", content=b" " * size)
            statuses.append((answer.status_code, answer.headers.get("connection"), len(pauses)))
    assert statuses[-2:] == [(429, None, 0), (429, "close", 1)]


def test_values_of_a_body_are_counted_before_they_are_read():
    admission = Admission(Budgets())
    with admission.call("a", 100) as held:
        held.body(b"1,2,3", 3)
        assert admission.memory_in_all == 100 + 3 * VALUE_BYTES
        with pytest.raises(RefusedError, match="the body must have at most 3 values, got 4"):
            held.body(b"1,2,3,4", 3)


def test_a_body_has_so_many_values_at_most(tmp_path):
    with stored(tmp_path, body_values=20) as client:
        client.post("/v1/models", json=SPEC)
        made = client.post("/v1/models/news/decisions", json={"features": [[1, 2, 3]] * 7})
        assert made.status_code == 413
        assert made.json() == {"error": "the body must have at most 20 values, got 21"}
        assert client.post("/v1/models/news/decisions", json={"features": [[1, 2, 3]] * 6}).status_code == 200


class Gated(SqliteStore):
    """Commits wait where a test wants it."""

    def __init__(self, directory):
        super().__init__(directory / FILE, create=True)
        self.begun, self.gate = threading.Event(), threading.Event()

    def append(self, model, fence, events, snapshot=None, erased=()):
        self.begun.set()
        assert self.gate.wait(PATIENCE)
        super().append(model, fence, events, snapshot, erased)


def test_who_sends_much_does_not_keep_others_waiting(tmp_path):
    """While a commit hangs, one key sends 30 calls for two models, another one one for each: these are served before
    most of the others, each model by a commit of its own in turn.
    """
    store = Gated(tmp_path)
    with (
        service(store, settings=Settings(**SETTINGS | {"group_calls": 4})) as client,
        ThreadPoolExecutor(40) as pool,
    ):
        store.gate.set()
        for name in ("news", "other"):
            client.post("/v1/models", json=SPEC | {"name": name}).raise_for_status()
        key, _ = keys.create(store, "writer", "other")
        store.gate.clear()
        store.begun.clear()

        def ask(model, event_id, **more):
            body = {"event_id": event_id, "features": TWO}
            return pool.submit(client.post, f"/v1/models/{model}/decisions", json=body, **more)

        (running,) = [one for one in threading.enumerate() if one.name == "writer"]
        waiting = running._target.__self__
        asked = [ask("news", "first")]
        assert store.begun.wait(PATIENCE)
        asked += [ask("news", f"many-{place}") for place in range(24)]
        asked += [ask("other", f"many-{place}") for place in range(6)]
        until(lambda: waiting.waiting == 30, "they wait")
        asked += [ask(name, "single", headers=bearer(key)) for name in ("news", "other")]
        until(lambda: waiting.waiting == 32, "they wait")
        store.gate.set()
        assert {one.result().status_code for one in asked} == {200}
    for model in (1, 2):
        order = [event.event_id for event in store.read(model)]
        assert order.index("single") <= 5  # the first, and a group of four
    store.close()


def test_statistics_are_kept_for_a_while(tmp_path):
    with stored(tmp_path, stats_seconds=3600) as client:
        client.post("/v1/models", json=SPEC)
        before = client.get("/v1/models/news/stats").json()
        client.post("/v1/models/news/decisions", json={"features": TWO}).raise_for_status()
        assert client.get("/v1/models/news/stats").json() == before


def test_parameters_have_small_bounds_over_http(tmp_path):
    with stored(tmp_path) as client:
        client.post("/v1/models", json=SPEC)
        answer = client.get("/v1/models/news/evaluate", params={"policy": "lints(votes=1000000)"})
        assert answer.status_code == 422
        assert answer.json() == {"error": "votes must be at most 1000 over HTTP, got 1000000"}
        spec = SPEC | {"name": "other", "policy": "lints", "parameters": {"votes": 1_001}}
        answer = client.post("/v1/models", json=spec)
        assert answer.json() == {"error": "votes must be at most 1000 over HTTP, got 1001"}


def test_an_evaluation_that_takes_too_long_is_ended_and_the_next_is_answered(tmp_path):
    """Decisions, health and others' reports go on; nothing is left behind at the end."""
    with stored(tmp_path, report_seconds=0.05) as client:
        client.post("/v1/models", json=SPEC)
        for place in range(20):
            body = {"features": TWO, "event_id": f"e{place}"}
            client.post("/v1/models/news/decisions", json=body).raise_for_status()
            reward = {"event_id": f"e{place}", "reward": place % 3}
            client.post("/v1/models/news/rewards", json=reward).raise_for_status()
        answer = client.get("/v1/models/news/evaluate")  # the process has not even begun
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "60"
        assert "it took more than 0.05 s" in answer.json()["error"]
        assert client.post("/v1/models/news/decisions", json={"features": TWO}).status_code == 200
    with stored(tmp_path) as client:
        assert client.get("/v1/models/news/evaluate").status_code == 200


def test_processes_beside_the_service_have_one_thread_unless_it_was_told_otherwise(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    found = environment()
    assert (found["OPENBLAS_NUM_THREADS"], found["OMP_NUM_THREADS"]) == ("1", "3")
    assert found["PATH"] == os.environ["PATH"]


def test_reports_that_wait_have_a_bound(tmp_path, monkeypatch):
    """One is at work, held here until the others have come; one waits, four are refused."""
    gate, line = threading.Event(), reports.Reports._line
    monkeypatch.setattr(reports.Reports, "_line", lambda *given: gate.wait(PATIENCE) and line(*given))
    with stored(tmp_path, reports_waiting=1) as client, ThreadPoolExecutor(6) as pool:
        client.post("/v1/models", json=SPEC)
        client.post("/v1/models/news/decisions", json={"features": TWO}).raise_for_status()
        asked = [pool.submit(client.get, "/v1/models/news/evaluate") for _ in range(6)]
        until(lambda: sum(one.done() for one in asked) == 4, "what is too much is refused")
        gate.set()
        refused = [one.result() for one in asked if one.result().status_code == 503]
        assert len(refused) == 4
        assert all("are waiting" in one.json()["error"] for one in refused)
        assert all(int(one.headers["retry-after"]) >= 1 for one in refused)


def damage(directory):
    """Change the first event of the first model."""
    with tampering(directory) as connection:
        connection.execute("DELETE FROM snapshots WHERE model = 1")
        connection.execute("UPDATE events SET body=replace(body, ',', ', ') WHERE sequence=1 AND model=1")


def test_a_damaged_model_is_remembered_told_at_once_and_tried_again_later(tmp_path, monkeypatch, caplog):
    """Others are served; health and metrics tell of it; each time in a row it is left alone for longer."""
    with stored(tmp_path) as client:
        for name in ("news", "other"):
            client.post("/v1/models", json=SPEC | {"name": name})
            client.post(f"/v1/models/{name}/decisions", json={"features": TWO}).raise_for_status()
    damage(tmp_path)
    tried = []
    original = loading.Loading.attempt

    def noted(self, row, read):
        begun = time.monotonic()
        original(self, row, read)
        if row.name == "news":
            tried.append((begun, self.failures[row.id].wait))

    monkeypatch.setattr(loading.Loading, "attempt", noted)
    with stored(tmp_path) as client:
        begun = time.monotonic()
        while len(tried) < 3 and time.monotonic() - begun < PATIENCE:
            answer = client.post("/v1/models/news/decisions", json={"features": TWO})
            assert answer.status_code == 503
            assert "does not follow from its log" in answer.json()["error"]
            assert int(answer.headers["retry-after"]) >= 1
            assert client.post("/v1/models/other/decisions", json={"features": TWO}).status_code == 200
        health = client.get("/health")
        assert health.status_code == 200
        assert (health.json()["leading"], health.json()["failed"]) == (2, 1)
        metrics = client.get("/metrics").text
        assert re.search(r'solid_bandits_failed_model\{model="news"\} \d', metrics)
        assert "solid_bandits_models 1.0" in metrics
    assert [wait for _, wait in tried] == [0.5 * 2**place for place in range(len(tried))]
    assert len(tried) >= 3
    assert all(later[0] - earlier[0] >= earlier[1] for earlier, later in itertools.pairwise(tried))
    assert len(tried) <= caplog.text.count("model 'news' cannot be loaded") <= len(tried) + 1


def test_health_says_when_no_write_succeeds_and_when_one_does_again(tmp_path, monkeypatch):
    store = SqliteStore(tmp_path / FILE, create=True)
    with service(store) as client:
        client.post("/v1/models", json=SPEC)

        def full(*_, **__):
            raise FullError("no room")

        with monkeypatch.context() as patched:
            patched.setattr(store, "append", full)
            patched.setattr(store, "probe", full)
            assert client.get("/health").status_code == 200  # nothing was tried
            assert client.post("/v1/models/news/decisions", json={"features": TWO}).status_code == 507
            answer = client.get("/health")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert answer.json() == {"error": "no write succeeds: the disk is full"}
            assert "solid_bandits_writing 0.0" in client.get("/metrics").text
            time.sleep(1.5)
            assert client.get("/health").status_code == 503
        until(
            lambda: client.get("/health").status_code == 200, "what was tried again succeeds"
        )  # without any call
        assert client.get("/health").json()["commit_age"] >= 0
    store.close()


def test_every_budget_is_in_the_page_the_schema_and_the_metrics(tmp_path):
    page = (DOCS / "service.md").read_text(encoding="utf-8")
    assert table(Budgets()) in page
    with stored(tmp_path) as client:
        assert table(Settings(**SETTINGS)) in client.get("/openapi.json").json()["info"]["description"]
        metrics = client.get("/metrics").text
    for one in stated(Budgets()):
        assert f'solid_bandits_budget{{budget="{one.name}",unit="{one.unit}"}}' in metrics


def test_a_service_whose_end_hangs_ends(tmp_path):
    """Whatever hangs, here an answer that nobody takes in time and a thread of the loop's."""
    hanging = (
        "import sys, time\n"
        "from solid_bandits.service import budgets, runtime\n"
        "from solid_bandits.cli import main\n"
        "runtime.Service.stop = lambda self: __import__('asyncio').to_thread(time.sleep, 600)\n"
        "budgets.Budgets.__dataclass_fields__['end_seconds'].default = 1.0\n"
        "init = runtime.Settings.__init__\n"
        "runtime.Settings.__init__ = lambda self, **more: init(self, end_seconds=1.0, **more)\n"
        "main()\n"
    )
    (tmp_path / "hanging.py").write_text(hanging)
    out = tmp_path / "out.txt"
    with out.open("w") as said:
        command = [
            sys.executable,
            tmp_path / "hanging.py",
            "serve",
            "--data",
            tmp_path / "data",
            "--port",
            "0",
        ]
        running = subprocess.Popen(command, stdout=said, stderr=said, env=os.environ)
    try:
        until(lambda: "listening on" in out.read_text(), "it listens")
        running.terminate()
        assert running.wait(PATIENCE) == 5
        assert "did not end within 1 s of its signal" in out.read_text()
        assert "Traceback" not in out.read_text()
    finally:
        running.kill()
        running.wait()
    with process(tmp_path / "data", key="none") as again:  # the directory can be served again
        assert again.client.get("/health").status_code == 200


BODY = json.dumps(  # larger than what the event loop reads itself
    {"decisions": [{"event_id": f"e{place}", "features": [[0.25, -1.5, place]] * 60} for place in range(200)]}
).encode()


def test_large_bodies_are_read_by_another_process_to_the_same_answers(tmp_path):
    """Decided in one call, in small ones, and what is wrong with a large one, in the same words."""
    with stored(tmp_path / "a") as one, stored(tmp_path / "b") as other:
        for client in (one, other):
            client.headers["content-type"] = "application/json"
            client.post("/v1/models", json=SPEC).raise_for_status()
        assert len(BODY) > parsing.SMALL
        large = one.post("/v1/models/news/decisions", content=BODY)
        assert large.status_code == 200, large.text
        offers = json.loads(BODY)["decisions"]
        small = [other.post("/v1/models/news/decisions", json=offer).json() for offer in offers]
        for found, expected in zip(large.json()["decisions"], small, strict=True):
            assert found | {"time": 0} == expected | {"time": 0}
        ids = [offer["event_id"] for offer in offers]
        rewards = {"rewards": [{"event_id": name, "reward": 1.0} for name in ids]}
        padded = json.dumps(rewards).encode() + b" " * parsing.SMALL
        assert one.post("/v1/models/news/rewards", content=padded).json()["rewards"][199]["counted"]
        for wrong in (
            {"features": [[1, 2, "x"]]},
            {"features": [[1, 2]]},
            {"features": [[1, 2, 3], [1]]},
            {},
        ):
            answers = [
                client.post("/v1/models/news/decisions", content=json.dumps(wrong).encode() + more)
                for client, more in ((one, b" " * parsing.SMALL), (other, b""))
            ]
            assert answers[0].status_code == answers[1].status_code == 422
            assert answers[0].json() == answers[1].json()
        nonsense = one.post("/v1/models/news/decisions", content=b"{" + b" " * parsing.SMALL)
        assert nonsense.status_code == 422
        assert nonsense.json()["error"].startswith("the body must be JSON")
