"""Keys that take more than their share of a decision service: others must go on, and the service must restart.

A server as a process with a small model, a client that asks it 50 times a second, and next to it, one after the other:

- a writer's key that sends calls of the largest kind for another model over 24 connections (starvation);
- a reader's key that asks for the statistics of 10,000 arms over four connections;
- a reader's key that asks for evaluations with the largest parameters, over eight connections;
- calls for a model whose log is damaged;
- a writer's key that leaves decisions of 100,000 features open: memory, and that of the start after a kill;
- SIGTERM while evaluations are at work.

An attack has succeeded where the small model's calls fail, or their 99th percentile is more than five times that
just before without the attack (50 ms at least are allowed), where the service needs more than 200 MiB above its memory
at rest and what its budgets name, or where it does not end or start again.

    python attacks/service_fairness.py --seconds 20 --open 600
"""

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path

import httpx
from counted import show
from service_connections import at_rest, peak

from service import Attacked, FoundError
from solid_bandits.service.budgets import Budgets
from solid_bandits.service.open_store import FILE

SMALL = {"name": "small", "policy": "randucb", "dim": 5, "noise_std": 1.0, "floor": 0.1, "seed": 1}
LARGE = {
    "name": "large",
    "policy": "linucb",
    "dim": 100,
    "noise_std": 1.0,
    "theta_bound": 1.0,
    "floor": 0.1,
    "seed": 1,
}
ARMS = {"name": "arms", "policy": "randucb", "dim": 2, "noise_std": 1.0, "floor": 0.1, "seed": 1}
PER_SECOND = 50
FACTOR, LEAST = 5.0, 0.05
"""Largest slowdown of calls by an attack, and the number of seconds below which slowness is ignored."""
ALLOWED = 200.0
"""Largest memory in MiB above the memory at rest and the budgets."""


class Asking:
    """Decisions and rewards of a small model at a steady pace, in a separate process that times each call."""

    def __init__(self, url: str, key: str) -> None:
        self.seconds: list[float] = []
        self.failed = 0
        self._command = [sys.executable, __file__, "--ask", url, key]

    def __enter__(self) -> "Asking":
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()  # waits until its first call is answered
        return self

    def __exit__(self, *_: object) -> None:
        said, _errors = self._process.communicate("", timeout=200)
        found = json.loads(said)
        self.seconds, self.failed = found["seconds"], found["failed"]

    def share(self, part: float) -> float:
        """Return a quantile of the seconds."""
        return sorted(self.seconds)[int(part * (len(self.seconds) - 1))]


def ask(url: str, key: str) -> None:
    """Call, in its own process, until the standard input ends."""
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    rng, seconds, failed = random.Random(time.time()), [], 0
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=120) as client:
        due, name = time.monotonic(), ""
        while not ended.is_set():
            due = max(due + 1 / PER_SECOND, time.monotonic() - 1)
            time.sleep(max(due - time.monotonic(), 0))
            path, body = "rewards", {"event_id": name, "reward": rng.random()}
            if not name:
                features = [[rng.gauss(0, 1) for _ in range(5)] for _ in range(3)]
                path, body = "decisions", {"event_id": f"{rng.random()}", "features": features}
            begun = time.perf_counter()
            try:
                failed += client.post(f"/v1/models/small/{path}", json=body).status_code != 200
            except httpx.HTTPError:
                failed += 1
            seconds.append(time.perf_counter() - begun)
            name = "" if name else str(body["event_id"])
            if len(seconds) == 1:
                print("begun", flush=True)
    print(json.dumps({"seconds": seconds[1:], "failed": failed}), flush=True)


@contextmanager
def many(
    server: Attacked, key: str, connections: int, call: Callable[[httpx.Client], httpx.Response]
) -> Iterator[dict[int, int]]:
    """Open several connections that call repeatedly; return counts of the answers."""
    ended, answers, lock = threading.Event(), dict[int, int](), threading.Lock()

    def work() -> None:
        head = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        with httpx.Client(base_url=server.url, headers=head, timeout=60) as client:
            while not ended.is_set():
                with suppress(httpx.HTTPError):
                    status = call(client).status_code
                    with lock:
                        answers[status] = answers.get(status, 0) + 1
                    if status in (429, 503):
                        ended.wait(
                            0.05
                        )  # without a pause an attacker gains no more of the service, but occupies the machine

    threads = [threading.Thread(target=work, daemon=True) for _ in range(connections)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        ended.set()
        for thread in threads:
            thread.join(70)


def largest(dim: int, size: int) -> bytes:
    """Return a call with as many values as a body may have, and nearly as many bytes."""
    values = Budgets().body_values - 1_000
    rows = values // dim // 2
    row = "[" + ",".join(["0.1234567890123456"[: max(3, size // values - 1)]] * dim) + "]"
    offer = '{"features":[' + ",".join([row] * min(rows, 1_000)) + "]}"
    return ('{"decisions":[' + ",".join([offer] * (values // (min(rows, 1_000) * dim))) + "]}").encode()


def asked(server: Attacked, name: str, seconds: float, attack: AbstractContextManager[object]) -> Asking:
    """The small model's client beside an attack; prints what it found."""
    with attack as answers, Asking(server.url, server.key) as asking:
        time.sleep(seconds)
    p50, p99, longest = asking.share(0.5), asking.share(0.99), asking.share(1.0)
    print(
        f"  {name}: {len(asking.seconds):,} calls of others, {asking.failed} failed, median {p50 * 1e3:.1f} ms, "
        f"99% {p99 * 1e3:.1f} ms, longest {longest * 1e3:.0f} ms; the attacker was answered {answers or 'nothing'}; "
        f"load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    return asking


def measured(
    server: Attacked,
    name: str,
    seconds: float,
    timed: bool,
    attack: Callable[[], AbstractContextManager[object]],
) -> bool:
    """Whether the attack has succeeded: the small model's client beside it, and without it just before."""
    before = asked(server, "alone", seconds, nullcontext()).share(0.99)
    beside = asked(server, name, seconds, attack())
    p99 = beside.share(0.99)
    print(f"    99%: {p99 / before:.1f} times that alone", flush=True)
    return beside.failed > 0 or (timed and p99 > max(FACTOR * before, LEAST))


def damage(directory: Path, model: str) -> None:
    """Change the first event of a model."""
    with closing(sqlite3.connect(directory / FILE)) as connection, connection:
        (number,) = connection.execute("SELECT id FROM models WHERE name = ?", (model,)).fetchone()
        connection.execute("DELETE FROM snapshots WHERE model = ?", (number,))
        connection.execute(
            "UPDATE events SET body=replace(body,',',', ') WHERE sequence=1 AND model=?", (number,)
        )


def main() -> None:
    """Attack, and print what was found."""
    if sys.argv[1:2] == ["--ask"]:
        ask(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="Length of each attack.")
    parser.add_argument(
        "--open", type=int, default=600, help="Number of decisions of 100,000 features that are left open."
    )
    parser.add_argument("--untimed", action="store_true", help="Do not judge times, for a busy machine.")
    given = parser.parse_args()
    began, failed, tried = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        server = Attacked(Path(folder) / "service", rate=None)
        server.start()
        try:
            head = {"Authorization": f"Bearer {server.key}"}
            with httpx.Client(base_url=server.url, headers=head, timeout=120) as admin:
                for spec in (SMALL, LARGE, ARMS):
                    admin.post("/v1/models", json=spec).raise_for_status()
                for part in range(20):
                    names = [f"arm {part * 500 + place}" for place in range(500)]
                    offers = [{"features": [[1, 0]], "arms": [name]} for name in names]
                    admin.post("/v1/models/arms/decisions", json={"decisions": offers}).raise_for_status()
            writer, reader = server.made("writer"), server.made("reader")
            timed = not given.untimed
            body = largest(100, 4 << 20)
            attacks = {
                f"calls of {len(body) / (1 << 20):.1f} MiB over 24 connections": lambda: many(
                    server, writer, 24, lambda one: one.post("/v1/models/large/decisions", content=body)
                ),
                "statistics of 10,000 arms over 4 connections": lambda: many(
                    server, reader, 4, lambda one: one.get("/v1/models/arms/stats")
                ),
                "evaluations over 8 connections": lambda: many(
                    server, reader, 8,
                    lambda one: one.get(
                        "/v1/models/small/evaluate", params={"policy": ["lints(votes=1000)", "vids(samples=500)"]}
                    ),
                ),
            }  # fmt: skip
            for name, attack in attacks.items():
                bad = measured(server, name, given.seconds, timed, attack)
                failed, tried = failed + bad, tried + 1
            answer = httpx.get(
                f"{server.url}/v1/models/small/evaluate",
                headers={"Authorization": f"Bearer {reader}"}, params={"policy": "lints(votes=1000000)"}, timeout=60,
            )  # fmt: skip
            print(f"  lints(votes=1000000): {answer.status_code} {answer.json()['error']}", flush=True)
            failed, tried = failed + (answer.status_code != 422), tried + 1
            with many(
                server, reader, 4, lambda one: one.get("/v1/models/small/evaluate", params={"policy": "vids"})
            ):
                time.sleep(1)
                since = time.monotonic()
                server.end(signal.SIGTERM)
                took = time.monotonic() - since
            print(f"  SIGTERM while evaluations are at work: ended after {took:.1f} s", flush=True)
            failed, tried = failed + (took > 30), tried + 1
            damage(server.directory, "large")
            server.start()
            bad = measured(
                server, "a model whose log is damaged, over 4 connections", given.seconds, timed,
                lambda: many(
                    server, writer, 4,
                    lambda one: one.post("/v1/models/large/rewards", json={"event_id": "a", "reward": 1}),
                ),
            )  # fmt: skip
            health = httpx.get(f"{server.url}/health", timeout=60)
            print(f"  health: {health.status_code} {health.text}", flush=True)
            failed, tried = failed + (bad or health.json().get("failed") != 1), tried + 1
            failed, tried = failed + leave_open(server, given.open), tried + 1
            server.end(signal.SIGTERM)
        finally:
            if server.process is not None and server.process.poll() is None:
                server.process.kill()
                server.process.wait()
    show("keys that take more than their share of a service", tried, failed, 0, began)
    if failed:
        raise FoundError(f"{failed} of them failed")


def leave_open(server: Attacked, count: int) -> bool:
    """Leave `count` decisions of 100,000 features open, and restart after a kill; return whether memory grew too
    much.
    """
    head = {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json"}
    with httpx.Client(base_url=server.url, headers=head, timeout=120) as client:
        spec = LARGE | {"name": "open"}
        client.post("/v1/models", json=spec).raise_for_status()
        before = at_rest(server)
        row = "[" + ",".join(["0"] * 100) + "]"
        body = ('{"features":[' + ",".join([row] * 1_000) + "]}").encode()
        for _ in range(count):
            while (answer := client.post("/v1/models/open/decisions", content=body)).status_code in (
                429,
                503,
            ):
                time.sleep(0.05)
            answer.raise_for_status()
    running = peak(server) - before
    server.end(signal.SIGKILL)
    began = time.monotonic()
    server.start()
    took = time.monotonic() - began
    start = peak(server) - before
    most = ALLOWED + Budgets().decisions_memory / (1 << 20)
    print(
        f"  {count:,} open decisions of 100,000 features ({count * 0.8:,.0f} MB): {running:,.0f} MiB more memory, the "
        f"start after a kill {start:,.0f} MiB more and {took:.1f} s; allowed {most:,.0f} MiB",
        flush=True,
    )
    return running > most or start > most


if __name__ == "__main__":
    main()
