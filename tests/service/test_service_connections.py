"""What a connection may hold of the server: heads, bodies, requests ahead of answers, answers that nobody takes."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from served import PATIENCE, SPEC, process, running, service, until
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.service import server as server_module
from solid_bandits.service.connections import AHEAD, BODY_RATE, Bounds
from solid_bandits.service.open_store import FILE

MIB = 1 << 20
BEGUN = b"GET /health HTTP/1.1\r\nhost: here\r\n"
JSON = "content-type: application/json\r\n"
SHORT = Bounds(seconds=1.0)
LONG = Bounds(seconds=PATIENCE)


@contextmanager
def dialled(url):
    """A connection to a server; whatever is awaited ends in a time."""
    place = httpx.URL(str(url))
    with socket.create_connection((place.host, place.port), timeout=PATIENCE) as connection:
        yield connection


def answer_of(connection):
    """The next answer, read to its end and no further: its status and its body may come apart."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += connection.recv(1)
    head = found.lower()
    if length := re.search(rb"\r\ncontent-length: (\d+)", head):
        body = b""
        while len(body) < int(length[1]):
            body += connection.recv(int(length[1]) - len(body))
        found += body
    else:
        assert b"transfer-encoding: chunked" in head
        while not found.endswith(b"\r\n0\r\n\r\n"):
            found += connection.recv(1)
    return int(found.split()[1])


def rest_of(connection):
    """What comes until the server closes."""
    found = b""
    with suppress(ConnectionError):  # what was sent and not read takes the last of it along
        while part := connection.recv(MIB):
            found += part
    return found


def answered(said):
    """Status and sentence of a refusal."""
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    assert b"cache-control: no-store" in head
    return int(head.split()[1]), json.loads(body)["error"]


@contextmanager
def bounded(directory, bounds=LONG):
    store = SqliteStore(directory / FILE, create=True)
    try:
        with service(store, bounds=bounds) as client:
            client.post("/v1/models", json=SPEC).raise_for_status()
            yield client
    finally:
        store.close()


def drip(connection, pieces, pause=0.05):
    """Send one piece after the other until the server closes; whether it did."""
    connection.settimeout(pause)
    said = b""
    for piece in pieces:
        try:
            connection.sendall(piece)
            part = connection.recv(MIB)
        except TimeoutError:
            continue
        except ConnectionError:  # what had come before it can be read still
            return said + rest_of(connection), True
        if not part:
            return said, True
        said += part
    return said, False


def peak_of(server):
    """The most memory that a process ever had, in MiB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


FLOODS = {
    "lines": (BEGUN, b"abcdefghijkl: " + b"x" * 50 + b"\r\n"),
    "many empty lines": (BEGUN, b"a:\r\n"),
    "a value": (BEGUN + b"a: ", b"x" * 64),
    "a name": (BEGUN, b"x" * 64),
    "an address": (b"GET /", b"x" * 64),
    "requests ahead": (b"", b"GET /health HTTP/1.1\r\n\r\n"),
    "trailers": (
        b"POST /health HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"abcdef: " + b"x" * 50 + b"\r\n"
    ),
    "a trailer": (b"POST /health HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: ", b"x" * 64),
    "an extension of a chunk": (b"POST /health HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1;", b"x" * 64),
    "blank lines": (b"", b"\r\n" * 32),
}  # fmt: skip


@pytest.mark.skipif(
    not Path("/proc/self/status").is_file(), reason="the memory of a process is read from /proc"
)
def test_no_flood_takes_memory_and_others_are_answered(tmp_path):
    """64 MiB of each kind without a key; before there was a bound they took up to 2,000."""
    with process(tmp_path) as server:
        assert server.client.get("/health").status_code == 200
        before = peak_of(server)
        for name, (begin, line) in FLOODS.items():
            block = line * (MIB // len(line))
            others = []
            with dialled(server.url) as connection:
                connection.settimeout(1.0)
                try:
                    connection.sendall(begin)
                    for _ in range(64):
                        connection.sendall(block)
                        others.append(server.client.get("/health").status_code)
                except OSError:  # closed, or not read any more
                    others.append(server.client.get("/health").status_code)
            assert set(others) == {200}, name
            assert peak_of(server) - before < 32, name  # half of what was sent
        assert server.complained == ""


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"a: b\r\n" * 99, 200),
        (b"a: b\r\n" * 100, 431),
        (b"a: " + b"x" * 60_000 + b"\r\n", 200),
        (b"a: " + b"x" * 80_000 + b"\r\n", 431),
    ],
)
@pytest.mark.parametrize("before", [0, 1], ids=["first", "second"])
def test_heads_have_so_many_bytes_and_lines(tmp_path, head, status, before):
    """Of each request of a connection; what is refused does not reach the application."""
    with bounded(tmp_path) as client, dialled(client.base_url) as connection:
        for _ in range(before):
            connection.sendall(BEGUN + b"\r\n")
            assert answer_of(connection) == 200
        connection.sendall(BEGUN + head + b"\r\n")
        if status == 200:
            assert answer_of(connection) == 200
        else:
            sentence = "the head of the request must have at most 65,536 bytes and 100 lines"
            assert answered(rest_of(connection)) == (431, sentence)
        served = sum(
            float(line.split()[-1])
            for line in client.get("/metrics").text.splitlines()
            if "requests_total" in line and "/health" in line
        )
        assert served == before + (status == 200)


@pytest.mark.parametrize(
    ("begin", "piece", "words"),
    [
        (BEGUN, b"", "the head of the request must come within 1 seconds"),
        (BEGUN, b"a: b\r\n", "the head of the request must come within 1 seconds"),
        (BEGUN + b"a: ", b"x", "the head of the request must come within 1 seconds"),
        (b"", b"", None),
        (b"", b"\r\n", None),
    ],
    ids=["half a head", "lines that trickle", "a line that trickles", "nothing", "blank lines"],
)
@pytest.mark.parametrize("before", [0, 1], ids=["first", "second"])
def test_a_head_has_so_many_seconds(tmp_path, begin, piece, words, before):
    """However its bytes come; others are answered meanwhile. Where nothing was asked there is no answer."""
    with bounded(tmp_path, SHORT) as client, dialled(client.base_url) as connection:
        for _ in range(before):
            connection.sendall(BEGUN + b"\r\n")
            assert answer_of(connection) == 200
        connection.sendall(begin)
        said, closed = drip(connection, [piece] * 90)
        connection.settimeout(PATIENCE)
        if not closed:  # the keep-alive time of a connection without a request is longer
            said += rest_of(connection)
        assert said == b"" if words is None else answered(said) == (408, words)
        assert client.get("/health").status_code == 200


def test_half_sent_requests_do_not_keep_connections_from_others(tmp_path):
    """Four times as many as may be open: the oldest give way, and the newest are served."""
    store = SqliteStore(tmp_path / FILE, create=True)
    with service(store, bounds=Bounds(connections=50, seconds=PATIENCE)) as client:
        held = []
        try:
            for _ in range(200):
                held.append(
                    socket.create_connection((client.base_url.host, client.base_url.port), timeout=PATIENCE)
                )
                held[-1].sendall(BEGUN)
                if len(held) % 20 == 0:
                    assert httpx.get(client.base_url.join("/health"), timeout=PATIENCE).status_code == 200
            assert [rest_of(connection) for connection in held[:150]] == [b""] * 150
            held[-1].sendall(b"\r\n")
            assert answer_of(held[-1]) == 200
        finally:
            for connection in held:
                connection.close()
    store.close()


released = threading.Event()


async def patient(scope, receive, send):
    """An application that answers when it is told to, with as many bytes as it is asked for."""
    if scope["type"] != "http":
        raise NotImplementedError
    asked = scope["path"].strip("/")
    if asked == "wait":
        await asyncio.to_thread(released.wait, PATIENCE)
    size = int(asked) if asked.isdecimal() else 2
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x" * size})


def test_where_all_are_being_answered_a_new_one_is_refused():
    """Who waits for an answer is not cut off for another."""
    released.clear()
    with (
        running(patient, Bounds(connections=2, seconds=1.0)) as (url, server),
        dialled(url) as one,
        dialled(url) as two,
    ):
        one.sendall(b"GET /wait HTTP/1.1\r\n\r\n")
        two.sendall(b"GET /wait HTTP/1.1\r\n\r\n")
        until(lambda: len(server.server_state.tasks) == 2, "both are being answered")
        time.sleep(2.5)  # longer than a head may take
        with dialled(url) as three:
            said = rest_of(three)
            assert answered(said) == (503, "there are 2 connections already; try again")
            assert b"retry-after: 1\r\n" in said
        released.set()
        assert answer_of(one) == 200
        with dialled(url) as three:
            three.sendall(b"GET /2 HTTP/1.1\r\n\r\n")
            assert answer_of(three) == 200


def test_an_answer_that_nobody_takes_is_dropped():
    with running(patient, SHORT) as (url, server), dialled(url) as connection:
        connection.sendall(b"GET /64000000 HTTP/1.1\r\n\r\n")
        assert connection.recv(1) == b"H"  # it is being answered
        until(lambda: not server.server_state.connections, "it is dropped")


@pytest.fixture
def looks(monkeypatch):
    """A look of the server at a connection, with a time of ours; by itself it looks at none."""
    monkeypatch.setattr(server_module, "LOOK_EVERY", 1 << 60)

    def look(one, now):
        done = threading.Event()
        one.loop.call_soon_threadsafe(lambda: (one.look(now), done.set()))
        assert done.wait(PATIENCE)

    return look


def test_an_answer_that_is_taken_slowly_is_sent_to_its_end(looks):
    """For longer than the seconds of a bound, a part at a time."""
    bounds = Bounds(seconds=10.0)
    with running(patient, bounds) as (url, server), dialled(url) as connection:
        connection.sendall(b"GET /64000000 HTTP/1.1\r\nconnection: close\r\n\r\n")
        assert connection.recv(1) == b"H"
        (there,) = server.server_state.connections
        until(lambda: there.transport.get_write_buffer_size(), "it waits to be taken")
        now, count, parts = there.loop.time(), 1, 0
        looks(there, now)
        while unsent := there.transport.get_write_buffer_size():
            while there.transport.get_write_buffer_size() >= unsent:
                count += len(connection.recv(MIB))
            now, parts = now + 0.8 * bounds.seconds, parts + 1
            looks(there, now)
        assert parts > 3
        assert count + len(rest_of(connection)) > 64_000_000


def test_requests_ahead_of_answers_are_answered_in_their_order():
    """As many as fit into what is kept; then the connection goes on."""
    with running(patient, LONG) as (url, _), dialled(url) as connection:
        sizes = [place % 90 + 10 for place in range(1_500)]
        requests = b"".join(b"GET /%d HTTP/1.1\r\nhost: x\r\n\r\n" % size for size in sizes)
        assert len(requests) < AHEAD
        connection.sendall(requests)
        connection.sendall(b"GET /7 HTTP/1.1\r\nconnection: close\r\n\r\n")
        bodies = re.findall(rb"\r\n\r\n[0-9a-f]+\r\n(x+)\r\n0", rest_of(connection))
        assert [len(body) for body in bodies] == [*sizes, 7]


def test_too_many_requests_ahead_end_the_connection():
    """After the answers to those that were begun; never are there more of these than fit into a slice."""
    released.clear()
    with running(patient, LONG) as (url, server), dialled(url) as connection:
        connection.sendall(b"GET /wait HTTP/1.1\r\n\r\n")
        until(lambda: server.server_state.tasks, "it is being answered")
        (there,) = server.server_state.connections
        with suppress(OSError):
            connection.settimeout(0.5)
            for _ in range(50):
                connection.sendall(b"GET /5 HTTP/1.1\r\n\r\n" * 10_000)
        until(lambda: there.pipeline, "the next are begun")
        assert len(there.pipeline) <= 4096 / 18
        assert len(there._rest) <= AHEAD
        released.set()
        connection.settimeout(PATIENCE)
        assert 1 <= rest_of(connection).count(b"HTTP/1.1 200") <= 4096 / 18 + 2
        until(lambda: not server.server_state.connections, "it is closed")


@pytest.mark.parametrize("known", [True, False], ids=["with a key", "without"])
def test_a_body_has_so_many_seconds(tmp_path, known):
    with bounded(tmp_path, SHORT) as client, dialled(client.base_url) as connection:
        key = client.headers["authorization"] if known else "Bearer none"
        head = f"POST /v1/models/news/decisions HTTP/1.1\r\nauthorization: {key}\r\ncontent-length: 100000\r\n\r\n"
        connection.sendall(head.encode())
        said, closed = drip(connection, [b"1"] * 8_000)
        assert closed
        if known:
            assert answered(said) == (408, "the body of the request must come within 1 seconds")
        else:  # it has its answer, and no other
            assert said.startswith(b"HTTP/1.1 401")
            assert said.count(b"HTTP/1.1") == 1
        assert client.get("/health").status_code == 200


async def reading(scope, receive, send):
    """An application that reads a body, and says that it has."""
    if scope["type"] != "http":
        raise NotImplementedError
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize("enough", [True, False])
def test_a_body_has_more_seconds_the_longer_it_is(looks, enough):
    """Besides the seconds of a bound, one for each 64 KiB that came; where it is late, at the second look."""
    size, part = 400_000, 20_000
    with running(reading, Bounds(seconds=10.0)) as (url, server), dialled(url) as connection:
        connection.sendall(f"POST / HTTP/1.1\r\ncontent-length: {size}\r\n\r\n".encode())
        until(lambda: server.server_state.tasks, "its head is there")
        (there,) = server.server_state.connections
        begun = there._since
        for sent in range(part, size, part):
            connection.sendall(b" " * part)
            until(lambda sent=sent: there._body_bytes == sent, "it is read")
            for _ in range(2):
                looks(there, begun + 10 + sent / BODY_RATE - 0.01)
        if enough:
            connection.sendall(b" " * part)
            assert answer_of(connection) == 200
        else:
            for _ in range(2):
                looks(there, begun + 10 + sent / BODY_RATE + 0.01)
            assert answered(rest_of(connection)) == (
                408,
                "the body of the request must come within 16 seconds",
            )


def test_trailers_are_no_headers(tmp_path):
    """A body in chunks, with what may follow it: the key there is none."""
    with bounded(tmp_path) as client, dialled(client.base_url) as connection:
        key = f"authorization: {client.headers['authorization']}\r\n"
        body = json.dumps({"features": [[1, 0, 0], [0, 1, 0]]})
        for head, trailer, status in ((key, "a: b\r\n" * 200, 200), ("", key, 401)):
            connection.sendall(
                f"POST /v1/models/news/decisions HTTP/1.1\r\ntransfer-encoding: chunked\r\n{JSON}{head}\r\n"
                f"{len(body):x}\r\n{body}\r\n0\r\n{trailer}\r\n".encode()
            )
            assert answer_of(connection) == status


def test_an_offer_to_speak_otherwise_is_not_taken_up():
    """As some clients of HTTP/2 make with every first request: it is answered, and so is the next."""
    with running(patient, LONG) as (url, _), dialled(url) as connection:
        offer = b"GET /3 HTTP/1.1\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\n\r\n"
        connection.sendall(offer + offer + b"GET /4 HTTP/1.1\r\nconnection: close\r\n\r\n")
        assert re.findall(rb"\r\n(x+)\r\n", rest_of(connection)) == [b"xxx", b"xxx", b"xxxx"]


def test_nonsense_is_answered_in_a_sentence():
    with running(patient, LONG) as (url, _), dialled(url) as connection:
        connection.sendall(b"\x16\x03\x01 this is TLS")
        assert answered(rest_of(connection)) == (400, "this is no HTTP request")


@pytest.mark.skipif(os.name != "posix", reason="a connection is no file")
@pytest.mark.parametrize(("soft", "hard", "refused"), [(200, 300, True), (200, 2_000, False)])
def test_there_are_files_for_all_connections(tmp_path, soft, hard, refused):
    """More are asked for than a process has at first; where they cannot be had, it says how many connections can."""
    serve = f"{sys.executable} -m solid_bandits serve --data {tmp_path / 'new'} --port 0 --connections 50"
    if refused:
        ended = subprocess.run(
            ["sh", "-c", f"ulimit -Sn {soft}; ulimit -Hn {hard}; exec {serve}"],
            capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert ended.returncode == 2
        words = "connections must be at most 0 where a process may open 300 files (ulimit -Hn), got 50"
        assert words in ended.stderr
        assert not (tmp_path / "new").exists()
    else:
        script = (
            "import resource; from solid_bandits.service.server import make_room; make_room(50); "
            "print(resource.getrlimit(resource.RLIMIT_NOFILE))"
        )
        ended = subprocess.run(
            ["sh", "-c", f'ulimit -Sn {soft}; ulimit -Hn {hard}; exec "$0" -c "$1"', sys.executable, script],
            capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert ended.stdout == "(406, 2000)\n", ended.stderr


@pytest.mark.parametrize("size", [4_095, 4_096, 100_000, 300_001])
def test_what_follows_a_body_is_the_next_request(tmp_path, size):
    """Whatever comes in one piece with it: bodies are parsed at once, heads in slices."""
    with bounded(tmp_path) as client, dialled(client.base_url) as connection:
        client.post("/v1/models", json=SPEC)
        key = f"authorization: {client.headers['authorization']}\r\n"
        body = json.dumps({"event_id": "a", "features": [[1, 0, 0], [0, 1, 0]]}).ljust(size)
        asked = f"POST /v1/models/news/decisions HTTP/1.1\r\n{key}{JSON}content-length: {size}\r\n\r\n{body}"
        end = f"GET /health HTTP/1.1\r\nconnection: close\r\n{'a: b' * 10_000}: c\r\n\r\n"
        connection.sendall((asked + end).encode())
        said = rest_of(connection)
        assert re.findall(rb"HTTP/1.1 (\d+)", said) == [b"200"] * 2
        assert b'"event_id":"a"' in said
