"""How much one caller may ask for, and that the service's schema allows nothing that breaks it."""

import gc
import socket
from contextlib import suppress
from types import SimpleNamespace

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, checks

from served import PATIENCE, SETTINGS, SPEC, TWO, bearer, service, stored
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.service import keys, limits
from solid_bandits.service.limits import Rate
from solid_bandits.service.open_store import FILE
from solid_bandits.service.runtime import Settings


def test_a_body_that_is_too_large_is_refused(tmp_path):
    with stored(tmp_path, largest_body=2_000) as client:
        client.post("/v1/models", json=SPEC)
        large = b'{"features": [[' + b"1," * 2_000 + b"1]]}"
        answer = client.post("/v1/models/news/decisions", content=large)
        assert answer.status_code == 413
        assert answer.json() == {"error": "the body must be at most 2,000 bytes"}
        # In pieces, without a length: as much is read as may be.
        answer = client.post("/v1/models/news/decisions", content=iter([large[:1_500], large[1_500:]]))
        assert answer.status_code == 413
        assert client.post("/v1/models/news/decisions", json={"features": TWO}).status_code == 200


@pytest.fixture
def clock(monkeypatch):
    """The clock of the limits alone, which stands still until it is moved."""
    now = SimpleNamespace(value=0.0)
    monkeypatch.setattr(limits, "time", SimpleNamespace(monotonic=lambda: now.value))
    return now


def test_a_key_may_make_so_many_requests_per_second(tmp_path, clock):
    store = SqliteStore(tmp_path / FILE, create=True)
    with service(store, settings=Settings(rate=5)) as client:
        other, _ = keys.create(store, "reader", "other")
        answers = [client.get("/v1/models") for _ in range(12)]
        assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 7
        refused = answers[5:]
        assert refused[0].headers["retry-after"] == "1"
        assert refused[0].json() == {"error": "this key may make 5 requests per second"}
        assert client.get("/health").status_code == 200
        assert client.get("/v1/models", headers=bearer(other)).status_code == 200
        clock.value = 0.4
        assert [client.get("/v1/models").status_code for _ in range(3)] == [200, 200, 429]
    store.close()


def test_a_bucket_fills_at_its_rate(clock):
    rate = Rate(10)
    assert [rate.take("a") for _ in range(10)] == [0.0] * 10
    assert rate.take("a") == pytest.approx(0.1)
    assert rate.take("b") == 0.0
    clock.value = 0.05
    assert rate.take("a") == pytest.approx(0.05)
    clock.value = 0.3
    assert [rate.take("a") > 0 for _ in range(4)] == [False, False, False, True]
    clock.value = 100.0
    assert sum(rate.take("a") == 0 for _ in range(30)) == 10  # it holds no more than a second's


def test_what_is_no_request_ends_the_connection_alone(tmp_path):
    with stored(tmp_path) as client:
        for nonsense in (
            b"\x00" * 100,
            b"POST /v1/models HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
            b"GET / HTTP/9\r\n\r\n",
        ):
            with socket.create_connection(
                (client.base_url.host, client.base_url.port), timeout=PATIENCE
            ) as raw:
                raw.sendall(nonsense)
                raw.shutdown(socket.SHUT_WR)
                assert b"Traceback" not in raw.recv(10_000)
        assert client.get("/health").status_code == 200


CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


def statuses(client, operation, mode):
    """Call an operation with what Schemathesis makes of its schema; every answer is as documented."""
    seen = set()

    @settings(
        max_examples=15,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def call(case):
        if "name" in (case.path_parameters or {}) and mode == GenerationMode.POSITIVE:
            case.path_parameters["name"] = "news"
        answer = case.call(base_url=str(client.base_url), headers=dict(client.headers), timeout=PATIENCE)
        case.validate_response(answer, checks=CHECKS)
        seen.add(answer.status_code)

    with suppress(Unsatisfiable):  # of what takes nothing, nothing wrong can be asked
        call()
    return seen


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_whatever_is_asked_is_answered_as_the_schema_says(tmp_path, mode):
    """Requests that the schema allows, and such that it does not; never 500, always as documented."""
    store = SqliteStore(tmp_path / FILE, create=True)
    with service(store, settings=Settings(**SETTINGS | {"rate": 1e6})) as client:
        client.post("/v1/models", json=SPEC)
        for place in range(20):
            client.post("/v1/models/news/decisions", json={"event_id": str(place), "features": TWO})
            client.post("/v1/models/news/rewards", json={"event_id": str(place), "reward": place % 2})
        schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
        operations = [found.ok() for found in schema.get_all_operations()]
        seen = {one.label: statuses(client, one, mode) for one in operations}
    store.close()
    assert len(seen) == 15
    wanted = {200, 422} if mode == GenerationMode.POSITIVE else {401, 422}
    assert wanted <= set.union(*seen.values()), seen


@pytest.mark.parametrize("frozen", [True, False])
def test_what_stays_is_left_out_of_the_search_for_garbage_where_asked(tmp_path, frozen):
    """From the start, and again once a model was made, whose compiled functions stay too."""
    before = gc.get_freeze_count()
    try:
        store = SqliteStore(tmp_path / FILE, create=True)
        with service(store, settings=Settings(frozen=frozen)) as client:
            started = gc.get_freeze_count()
            assert (started > before) == frozen
            kept = [[number] for number in range(10_000)]
            client.post("/v1/models", json=SPEC).raise_for_status()
            assert (gc.get_freeze_count() > started + 9_000) == frozen
        del kept
        store.close()
    finally:
        gc.unfreeze()
