"""The client: what it sends and answers, and that nothing happens twice where answers are lost."""

import asyncio
import json
import random
import socket
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import httpx
import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from served import PATIENCE, SPEC, TWO, joined, stored
from solid_bandits.client import calls
from solid_bandits.client.calls import FIRST_WAIT, LONGEST_WAIT, Patience
from solid_bandits.core.decision import Receipt

FRAME = pl.DataFrame({"age": [3, 4]})
DECISION = (
    b'{"event_id":"a","arm":0,"probability":0.5,"arms":[0,1],"probabilities":[0.5,0.5],'
    b'"explored":false,"again":false}'
)


@contextmanager
def answering(answer):
    """A server whose answers are `answer(handler, body)`: status, headers and content, or None to lose it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            found = answer(self, body)
            if found is None:
                self.close_connection = True
                self.connection.close()
                return
            status, headers, content = found
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = handle_any  # noqa: N815

        def log_message(self, *_):
            pass

        def finish(self):
            with suppress(OSError, ValueError):  # its connection was closed on purpose
                super().finish()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        joined(thread)
        server.server_close()


def of(kind, url, key="key", **settings):
    """A client that does not give up, nor ask again, because the machine is slow."""
    return kind(url, key, **{"timeout": PATIENCE, "patience": PATIENCE} | settings)


@pytest.fixture
def waits(monkeypatch):
    """The waits that a client asked for; none is waited for, and no other time passes."""
    found = []
    # Of the client alone: the service sleeps as ever.
    clock = SimpleNamespace(monotonic=lambda: 0.0, sleep=found.append)
    monkeypatch.setattr("solid_bandits.client.http.clock", clock)

    async def at_once(seconds):
        found.append(seconds)

    monkeypatch.setattr(
        "solid_bandits.client.http.asyncio", SimpleNamespace(sleep=at_once, timeout=asyncio.timeout)
    )
    return found


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A service, and its admin key."""
    with stored(tmp_path_factory.mktemp("service")) as http:
        http.post("/v1/models", json=SPEC).raise_for_status()
        yield str(http.base_url), http.headers["authorization"].removeprefix("Bearer ")


@pytest.fixture
def client(address):
    with of(sb.client.Client, *address) as client:
        yield client


def test_decide_and_learn(client):
    choice = client.decide("news", np.array(TWO), arms=["red", 7], event_id="visit-1", subject="Ann")
    assert isinstance(choice, sb.Decision)
    assert choice.event_id == "visit-1"
    assert choice.arms == ("red", 7)
    assert choice.arm in choice.arms
    assert choice.probabilities[choice.arms.index(choice.arm)] == choice.probability
    assert not choice.again
    again = client.decide("news", TWO, arms=["red", 7], event_id="visit-1", subject="Ann")
    assert again.again
    assert again.arm == choice.arm
    receipt = client.learn("news", "visit-1", True)
    assert isinstance(receipt, Receipt)
    assert (receipt.counted, receipt.reward) == (True, 1.0)
    other = client.learn("news", "visit-1", 0.0)
    assert (other.counted, other.reward) == (False, 1.0)
    with pytest.raises(ValueError, match="never"):
        client.learn("news", "never", 1.0)


def test_an_id_is_made_where_none_is_given(client):
    one, other = (client.decide("news", TWO) for _ in range(2))
    assert one.event_id != other.event_id
    assert len(one.event_id) == 32
    assert client.learn("news", one.event_id, 0.5).counted


def test_batches_are_cut_by_their_size():
    """1,000 offers of 20 arms with 20 features are more than the 4 MiB that a service takes."""
    features = np.random.default_rng(0).normal(size=(20, 20))
    parts = calls.decide_many("news", [{"features": features, "event_id": f"e{one}"} for one in range(1_000)])
    assert len(parts) > 1
    assert all(len(call.body) < 4 << 20 for call in parts)
    sent = [one["event_id"] for call in parts for one in json.loads(call.body)["decisions"]]
    assert sent == [f"e{one}" for one in range(1_000)]
    assert all(call.event_ids == tuple(sent) for call in parts)


def test_the_error_of_a_later_part_has_all_ids(monkeypatch):
    monkeypatch.setattr(calls, "AT_ONCE", 1)

    def answer(handler, body):
        return (200, {}, b'{"decisions":[' + DECISION + b"]}") if b'"a"' in body else (500, {}, b"{}")

    with (
        answering(answer) as url,
        of(sb.client.Client, url) as client,
        pytest.raises(sb.client.ServiceError) as failed,
    ):
        client.decide_many("news", [{"features": TWO, "event_id": one} for one in "abc"])
    assert failed.value.event_ids == ("a", "b", "c")


def test_batches_are_cut_to_what_a_call_may_have(client, monkeypatch):
    monkeypatch.setattr(calls, "AT_ONCE", 4)
    choices = client.decide_many(
        "news", [{"features": TWO, "arms": ["a", "b"], "event_id": f"many-{one}"} for one in range(10)]
    )
    assert [choice.event_id for choice in choices] == [f"many-{one}" for one in range(10)]
    receipts = client.learn_many("news", {f"many-{one}": one / 10 for one in range(11)})
    assert [receipt.counted for receipt in receipts] == [True] * 10 + [False]
    assert receipts[-1].reward is None
    assert "many-10" in receipts[-1].message
    assert client.learn_many("news", []) == []


def test_what_a_reader_asks(client, address):
    ids = [f"read-{one}" for one in range(60)]
    client.decide_many("news", [{"features": TWO, "event_id": one} for one in ids])
    client.learn_many("news", [(one, place % 3 / 2) for place, one in enumerate(ids)])
    assert "news" in [model["name"] for model in client.models()]
    stats = client.stats("news")
    assert stats["decisions"] >= 60
    log = client.log("news")
    assert set(ids) <= set(log["event_id"].to_list())
    first, second = log["sequence"].sort()[:2]
    assert client.log("news", after=first, until=second)["sequence"].to_list() == [second]
    sb.ope.evaluate(log, "uniform", ["dr"])  # it is a log as any other
    found = client.evaluate("news", ["uniform", "greedy"])
    assert [one["policy"] for one in found["policies"]] == ["uniform", "Greedy, of the first half"]


def test_create_and_delete(client):
    facts = client.create("other", dim=3, policy="lints", noise_std=0.5, seed=1)
    assert facts["name"] == "other"
    client.decide("other", TWO, event_id="one", subject="Ann")
    client.decide("other", TWO, event_id="two", subject="Bob")
    assert client.delete("other", subject="Ann") == 1
    assert client.delete("other", event_ids=["two", "three"]) == 1
    assert client.log("other").height == 0
    with pytest.raises(ValueError, match="one of subject, event_ids, before must be given to delete, got 0"):
        client.delete("other")
    with pytest.raises(ValueError, match="other"):
        client.create("other", dim=3)


def test_the_same_for_asynchronous_programs(address):
    async def played():
        async with of(sb.client.AsyncClient, *address) as client:
            choices = await asyncio.gather(
                *(client.decide("news", TWO, event_id=f"async-{n}") for n in range(20))
            )
            receipts = await client.learn_many("news", {one.event_id: 1.0 for one in choices})
            many = await client.decide_many("news", [{"features": TWO}] * 3)
            one = await client.learn("news", many[0].event_id, 0.0)
            await client.create("asynchronous", dim=3)
            assert "asynchronous" in [model["name"] for model in await client.models()]
            assert (await client.stats("asynchronous"))["decisions"] == 0
            assert (await client.log("news")).height > 20
            assert (await client.evaluate("news", ["uniform"]))["policies"]
            assert await client.delete("news", event_ids=[many[1].event_id]) == 1
            assert repr(client) == f"AsyncClient({address[0]!r})"
            return choices, receipts, one

    choices, receipts, one = asyncio.run(played())
    assert [choice.event_id for choice in choices] == [f"async-{n}" for n in range(20)]
    assert all(receipt.counted for receipt in [*receipts, one])


@pytest.mark.parametrize("before", [True, False], ids=["request lost", "answer lost"])
def test_nothing_is_lost_or_done_twice_where_half_of_all_calls_fail(address, waits, before):
    """A proxy drops the connection before or after the service has done what it was asked, in half of all calls."""
    url, key = address
    rng, lost = random.Random(1), []
    forward = httpx.Client(base_url=url, timeout=PATIENCE)

    def answer(handler, body):
        fails = rng.random() < 0.5
        lost.append(fails)
        if fails and before:
            return None
        headers = {name: handler.headers[name] for name in ("authorization", "content-type")}
        found = forward.request(handler.command, handler.path, content=body, headers=headers)
        return None if fails else (found.status_code, {}, found.content)

    with of(sb.client.Client, url, key) as direct:
        held = {one["event_id"] for one in direct.log("news").iter_rows(named=True)}
        with answering(answer) as proxy, of(sb.client.Client, proxy, key) as client:
            choices = [client.decide("news", TWO, arms=["a", "b"]) for _ in range(30)]
            receipts = [client.learn("news", one.event_id, 1.0) for one in choices]
        log = direct.log("news")
    forward.close()
    assert sum(lost) > 20
    assert len(waits) == sum(lost)
    new = log.filter(~log["event_id"].is_in(list(held)))
    assert sorted(new["event_id"].to_list()) == sorted(one.event_id for one in choices)
    assert new["reward"].to_list() == [1.0] * 30
    arms = dict(zip(new["event_id"], new["arm"], strict=True))
    assert all(arms[one.event_id] == one.arm for one in choices)
    assert all(receipt.counted for receipt in receipts)


@pytest.mark.parametrize("status", calls.BUSY)
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_busy_service_is_asked_again_when_it_says(status, kind, waits):
    calls = []

    def answer(handler, body):
        calls.append(body)
        if len(calls) < 4:
            return status, {"Retry-After": "3"}, b'{"error": "too many requests"}'
        return 200, {}, DECISION

    with answering(answer) as url:
        if kind == "plain":
            with of(sb.client.Client, url) as client:
                choice = client.decide("news", TWO)
        else:

            async def played():
                async with of(sb.client.AsyncClient, url) as client:
                    return await client.decide("news", TWO)

            choice = asyncio.run(played())
    assert choice.arm == 0
    assert len(calls) == 4
    assert len(set(calls)) == 1  # the same event id each time
    assert waits == [3, 3, 3]


def test_patience_ends(waits):
    """The service asks for 500 of 1,300 seconds each time; the last 300 are no time for another."""

    def answer(handler, body):
        return 503, {"Retry-After": "500"}, b'{"error": "no leader"}'

    with answering(answer) as url, of(sb.client.Client, url, patience=1_300) as client:  # noqa: SIM117
        with pytest.raises(
            sb.client.ServiceError, match=r"gave no answer within 1300 s \(answered 503: no leader\)"
        ) as failed:
            client.decide("news", TWO, event_id="visit-9")
    assert failed.value.status == 503
    assert failed.value.event_ids == ("visit-9",)
    assert waits == [500] * 2


def test_unreachable_service(waits):
    with answering(lambda *_: None) as url:
        pass
    with sb.client.Client(url, "key", patience=0) as client, pytest.raises(sb.client.ServiceError) as failed:
        client.models()
    assert failed.value.status is None
    assert "event_id" not in str(failed.value)
    assert waits == []


def test_waits_double_and_are_spread():
    patience = Patience(1e9)
    waits = [patience.wait(0.0, 0.0) for _ in range(12)]
    bound = FIRST_WAIT
    for wait in waits:
        assert bound / 2 <= wait <= bound
        bound = min(2 * bound, LONGEST_WAIT)
    assert len(set(waits)) == 12
    assert Patience(10.0).wait(0.0, 7.0) == 7.0
    assert Patience(10.0).wait(8.0, 7.0) is None


def test_a_slow_answer_is_not_waited_for():
    ended = threading.Event()

    def answer(handler, body):
        ended.wait(PATIENCE)
        return None

    with answering(answer) as url:
        with (
            sb.client.Client(url, "key", timeout=0.2, patience=0.5) as client,
            pytest.raises(sb.client.ServiceError),
        ):
            client.models()
        ended.set()


@pytest.mark.parametrize(
    "head", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"], ids=["head", "body"]
)
@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
def test_an_answer_that_comes_in_drops_is_not_waited_for(head, kind):
    """Each byte comes in time, the answer never does, however long: patience is a deadline for all of it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ended = threading.Event()

        def drip():
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                connection.sendall(head)
                while not ended.wait(0.05):
                    connection.sendall(b"H" if not head else b" ")

        dripping = threading.Thread(target=drip, daemon=True)
        dripping.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"

        async def awaited():
            async with sb.client.AsyncClient(url, "key", timeout=0.5, patience=0.5) as client:
                await client.models()

        def asked():
            with sb.client.Client(url, "key", timeout=0.5, patience=0.5) as client:
                client.models()

        with pytest.raises(sb.client.ServiceError, match=r"gave no answer within 0\.5 s"):
            asked() if kind == "Client" else asyncio.run(awaited())
        ended.set()
        joined(dripping)


@pytest.mark.parametrize(
    ("status", "content", "kind", "words"),
    [
        (
            401,
            b'{"error": "this key is not known"}',
            sb.client.ServiceError,
            "answered 401: this key is not known",
        ),
        (403, b'{"error": "writer"}', sb.client.ServiceError, "answered 403: writer"),
        (404, b'{"error": "there is no model news"}', ValueError, "^there is no model news$"),
        (422, b'{"error": "dim must be 3, got 2"}', ValueError, "^dim must be 3, got 2$"),
        (507, b'{"error": "the disk is full"}', sb.client.ServiceError, "answered 507: the disk is full"),
        (
            500,
            b"<html>oops</html>",
            sb.client.ServiceError,
            "answered 500: an answer with status 500, without a reason",
        ),
        (301, b"", sb.client.ServiceError, "answered 301"),
        (200, b"<html>hello</html>", sb.client.ServiceError, "answered something else than decisions"),
        (200, b"{}", sb.client.ServiceError, "answered something else than decisions"),
        (200, b'"\xff"', sb.client.ServiceError, "answered something else than decisions"),
    ],
)
def test_refusals_are_not_repeated(status, content, kind, words):
    calls = []

    def answer(handler, body):
        calls.append(body)
        return status, {}, content

    with answering(answer) as url, of(sb.client.Client, url) as client:  # noqa: SIM117
        with pytest.raises(kind, match=words):
            client.decide("news", TWO)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda client: client.decide("news", [[1, np.nan]]), r"features must be finite everywhere"),
        (
            lambda client: client.decide("news", [1, 2]),
            r"features must be an array of numbers of shape \(arms, dim\)",
        ),
        (lambda client: client.decide("", TWO), "model must be the name of a model, got ''"),
        (
            lambda client: client.decide("news", TWO, arms=[object(), 1]),
            "arguments must be text and finite numbers",
        ),
        (
            lambda client: client.decide_many("news", [{"rows": TWO}]),
            "offer 0: offers must be tables with context or features",
        ),
        (lambda client: client.learn("news", "a", float("nan")), "reward must be"),
        (lambda client: client.learn("news", 3, 1.0), "event_id must be text, got 3"),
        (lambda client: client.learn_many("news", 3), "rewards must be pairs of an id and a reward, got 3"),
        (lambda client: client.decide("news", FRAME), "features must not be a data frame; give its rows to"),
        (
            lambda client: client.decide_many("news", FRAME),
            "offers must not be a data frame; give its rows to",
        ),
        (
            lambda client: client.decide_many("news", [{"context": FRAME.lazy()}]),
            "offer 0: context must not be a data frame",
        ),
        (lambda client: client.log("news", after=-1), "after must be"),
        (
            lambda client: client.evaluate("news", "uniform"),
            "policies must be a list of policies, got 'uniform'",
        ),
    ],
)
def test_bad_arguments_are_not_sent(call, words):
    with answering(lambda *_: pytest.fail("it was sent")) as url, of(sb.client.Client, url) as client:  # noqa: SIM117
        with pytest.raises(ValueError, match=words):
            call(client)


def test_a_choice_is_no_id():
    choice = sb.Decision(0, event_id="a")
    with (
        sb.client.Client("http://127.0.0.1:1", "key") as client,
        pytest.raises(ValueError, match="give its event_id"),
    ):
        client.learn("news", choice, 1.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("127.0.0.1:8080", "key"), "url must begin with http:// or https://"),
        (("http://[::1", "key"), "url must be an address, got"),
        (("http://127.0.0.1", ""), "key must be what `solid-bandits keys create` printed"),
        (("http://127.0.0.1", "a\nb"), "key must be what"),
    ],
)
def test_a_client_of_nothing(arguments, words):
    with pytest.raises(ValueError, match=words) as failed:
        sb.client.Client(*arguments)
    assert "a\\nb" not in str(failed.value)


def test_the_key_is_not_shown():
    with sb.client.Client("http://127.0.0.1:1/", "sb_secret") as client:
        assert repr(client) == "Client('http://127.0.0.1:1')"
        assert "sb_secret" not in repr(vars(client))
