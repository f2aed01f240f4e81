"""An hour of mixed load on a decision service at a steady rate: memory, open files and times must not grow.

A server as a process and one client process. Of the events per second that are asked for, two fifths are single
decisions and their rewards, three fifths come in calls of ten; a tenth of the rewards never come and are expired, one
call in twenty is repeated. Besides, the statistics are asked for every five seconds, a person's events deleted and the
metrics read every ten, a log read and policies evaluated every minute. The models remember 5,000 decisions each, so
that ten minutes fill what grows by design.

Each minute: memory of the server and of the processes that it has started, its open files, bytes of its store, and of
the single decisions the median and the 99th percentile of their times. So that a machine with other work can be told
from a service that gets slower, the same minute's medians of a computation and of a commit without the service stand
beside. An attack has succeeded where memory or open files of the last five minutes are more than 1.1 times those of
the five minutes that end at the tenth, where the median time is so although the computation and the commit are not, or
where a call fails.

    python attacks/service_hour.py --minutes 60 --rate 100
"""

import argparse
import hashlib
import math
import os
import random
import re
import signal
import sqlite3
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import httpx
from counted import show

from service import Attacked, FoundError

FACTOR = 1.1
AVERAGED = 5
"""Minutes that are averaged at each end."""
SETTLED = 10
"""Minutes after which nothing may grow."""
ARMS, DIM, BATCH = 5, 8, 10
SPECS = [
    {
        "name": "singles", "policy": "randucb", "dim": DIM, "floor": 0.1, "window": 5_000, "default_reward": 0.0,
        "wait": 30.0, "seed": 1,
    },
    {
        "name": "batches", "policy": "lints", "dim": DIM, "noise_std": 0.5, "floor": 0.1, "window": 5_000,
        "half_life": 2_000, "wait": 30.0, "seed": 2,
    },
]  # fmt: skip
PEOPLE = 500
"""Subjects of decisions, whose events are deleted one after the other."""


class Minute(NamedTuple):
    """What was found in one minute."""

    events: int
    memory: float
    """MiB, of the server."""
    helpers: float
    """MiB, of the processes that it has started."""
    files: float
    """Open ones."""
    stored: float
    """MiB."""
    p50: float
    """Milliseconds, as all below."""
    p99: float
    computing: float
    committing: float
    load: float


class Client:
    """What all threads share: answers by status, and the times of single decisions."""

    def __init__(self, server: Attacked) -> None:
        self.server = server
        self.ended = threading.Event()
        self.statuses: Counter[str] = Counter()
        self.spans: deque[float] = deque()
        self.events = 0
        self.failures: list[str] = []

    def paced(
        self, seconds: float, work: Callable[[httpx.Client, random.Random, int], None], seed: int
    ) -> None:
        """Do it again and again, so many seconds apart."""
        rng, number = random.Random(seed), 0
        head = {"Authorization": f"Bearer {self.server.key}"}
        kept = httpx.Limits(keepalive_expiry=2.0)  # the service closes what idles for five seconds
        with httpx.Client(base_url=self.server.url, headers=head, timeout=300, limits=kept) as client:
            due = time.monotonic()
            while not self.ended.is_set():
                try:
                    work(client, rng, number)
                except httpx.HTTPError as error:
                    self.failures.append(f"{type(error).__name__}: {error}")
                number += 1
                due = max(due + seconds, time.monotonic() - 1)  # no more than a second is made up for
                self.ended.wait(max(due - time.monotonic(), 0))

    def noted(self, what: str, answer: httpx.Response) -> bool:
        """Count an answer; whether it is as it must be."""
        self.statuses[f"{what} {answer.status_code}"] += 1
        if answer.status_code != 200:
            self.failures.append(f"{what}: {answer.status_code} {answer.text[:200]}")
        return answer.status_code == 200

    def single(self, client: httpx.Client, rng: random.Random, number: int) -> None:
        """A decision, one in twenty twice, and its reward, nine times out of ten."""
        body = {"event_id": f"{rng.getrandbits(64):x}-{number}"} | offer(rng)
        for _ in range(1 + (rng.random() < 0.05)):
            begun = time.perf_counter()
            answer = client.post("/v1/models/singles/decisions", json=body)
            self.spans.append(time.perf_counter() - begun)
            if not self.noted("decision", answer):
                return
        self.events += 2  # a reward, or an expiry
        if rng.random() < 0.9:
            given = {"event_id": body["event_id"], "reward": float(rng.random() < 0.3)}
            self.noted("reward", client.post("/v1/models/singles/rewards", json=given))

    def batch(self, client: httpx.Client, rng: random.Random, number: int) -> None:
        """Ten decisions and their rewards."""
        ids = [f"{rng.getrandbits(64):x}-{number}-{place}" for place in range(BATCH)]
        body = {"decisions": [{"event_id": one} | offer(rng) for one in ids]}
        if self.noted("decisions", client.post("/v1/models/batches/decisions", json=body)):
            self.events += 2 * BATCH
            given = [{"event_id": one, "reward": rng.gauss(0, 1)} for one in ids if rng.random() < 0.9]
            if given:
                self.noted("rewards", client.post("/v1/models/batches/rewards", json={"rewards": given}))

    def look(self, client: httpx.Client, rng: random.Random, number: int) -> None:
        """The statistics of a model."""
        self.noted("stats", client.get(f"/v1/models/{SPECS[number % 2]['name']}/stats"))

    def erase(self, client: httpx.Client, rng: random.Random, number: int) -> None:
        """A person's events, and the metrics."""
        asked = {"subject": f"person-{number % PEOPLE}"}
        self.noted("deletion", client.post(f"/v1/models/{SPECS[number % 2]['name']}/deletions", json=asked))
        self.noted("metrics", client.get("/metrics"))

    def report(self, client: httpx.Client, rng: random.Random, number: int) -> None:
        """A log, or an evaluation."""
        name = SPECS[number // 2 % 2]["name"]
        if number % 2:
            self.noted("log", client.get(f"/v1/models/{name}/log"))
        else:
            policies = {"policy": ["uniform", "greedy"]}
            self.noted("evaluation", client.get(f"/v1/models/{name}/evaluate", params=policies))


def offer(rng: random.Random) -> dict[str, object]:
    """Features of some arms, about a person."""
    features = [[round(rng.gauss(0, 1), 4) for _ in range(DIM)] for _ in range(ARMS)]
    return {"features": features, "subject": f"person-{rng.randrange(PEOPLE)}"}


def memory(pid: int) -> float:
    """MiB that a process holds."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def children(pid: int) -> list[int]:
    """The processes that one has started."""
    found = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(one) for one in tasks.read_text().split()]
    return found


def computing() -> float:
    """Seconds for a computation that is always the same."""
    begun = time.perf_counter()
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 30_000)
    return time.perf_counter() - begun


def minute(client: Client, alone: sqlite3.Connection, until: float) -> Minute:
    """Look again and again until a time, of `time.monotonic()`."""
    assert client.server.process is not None
    pid = client.server.process.pid
    before, found = client.events, []
    client.spans.clear()
    while time.monotonic() < until:
        client.ended.wait(2.0)
        begun = time.perf_counter()
        with alone:
            alone.execute("INSERT INTO rows VALUES (?)", (os.urandom(8 * ARMS * (DIM + 1)),))
        committing, helpers = time.perf_counter() - begun, 0.0
        for child in children(pid):
            try:
                helpers += memory(child)
            except OSError:  # it has ended
                continue
        files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        found.append((memory(pid), helpers, files, computing(), committing))
    spans = sorted(client.spans) or [math.nan]  # a machine that stands still answers nobody
    stored = sum(one.stat().st_size for one in client.server.directory.iterdir()) / (1 << 20)
    held, helped, files, computed, committed = (median(column) for column in zip(*found, strict=True))
    return Minute(
        client.events - before, held, helped, files, stored, 1e3 * spans[len(spans) // 2],
        1e3 * spans[int(0.99 * (len(spans) - 1))], 1e3 * computed, 1e3 * committed, os.getloadavg()[0],
    )  # fmt: skip


def main() -> None:
    """Play, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--rate", type=float, default=100.0, help="Events per second.")
    parser.add_argument(
        "--untimed", action="store_true", help="Do not judge times: where other programs work."
    )
    given = parser.parse_args()
    if not Path("/proc/self/status").is_file():
        print("not played: memory and files of a process are read from /proc, which is not here")
        return
    began, found = time.monotonic(), list[Minute]()
    with tempfile.TemporaryDirectory() as folder:
        server = Attacked(Path(folder) / "service")
        server.start()
        client = Client(server)
        alone = sqlite3.connect(Path(folder) / "alone.db")
        alone.execute("PRAGMA journal_mode=WAL")
        alone.execute("PRAGMA synchronous=FULL")
        alone.execute("CREATE TABLE rows (content BLOB)")
        paces = [
            (2 / (0.4 * given.rate), client.single), (2 * BATCH / (0.6 * given.rate), client.batch),
            (5.0, client.look), (10.0, client.erase), (60.0, client.report),
        ]  # fmt: skip
        try:
            with httpx.Client(
                base_url=server.url, headers={"Authorization": f"Bearer {server.key}"}
            ) as admin:
                for spec in SPECS:
                    admin.post("/v1/models", json=spec, timeout=300).raise_for_status()
            threads = [
                threading.Thread(target=client.paced, args=(seconds, work, seed), daemon=True)
                for seed, (seconds, work) in enumerate(paces)
            ]
            for thread in threads:
                thread.start()
            client.ended.wait(1.0)
            start = time.monotonic()
            print("| minute | " + " | ".join(Minute._fields) + " |", flush=True)
            for number in range(1, given.minutes + 1):
                found.append(minute(client, alone, start + 60.0 * number))
                print(f"| {number} | " + " | ".join(f"{one:,.1f}" for one in found[-1]) + " |", flush=True)
            client.ended.set()
            for thread in threads:
                thread.join(300)
            server.end(signal.SIGTERM)
        finally:
            client.ended.set()
            alone.close()
            if server.process is not None and server.process.poll() is None:
                server.process.kill()
                server.process.wait()
    print(dict(sorted(client.statuses.items())))
    for words in client.failures[:10]:
        print(f"  {words}")
    wrong = judged(found, given.untimed) + bool(client.failures)
    show(f"{given.minutes} minutes of mixed load", sum(one.events for one in found), wrong, 0, began)
    if wrong:
        raise FoundError(f"{wrong} of memory, files, times and answers are not as they must be")


def judged(found: list[Minute], untimed: bool) -> int:
    """Print how the end compares with the tenth minute; how many of memory, files and times have grown too much."""
    if len(found) < SETTLED + AVERAGED:
        print(f"not judged: {SETTLED + AVERAGED} minutes at least are compared")
        return 0
    before, after = found[SETTLED - AVERAGED : SETTLED], found[-AVERAGED:]
    ratios = {
        name: median(getattr(one, name) for one in after)
        / max(median(getattr(one, name) for one in before), 1e-9)
        for name in Minute._fields
    }
    print("end / tenth minute: " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()))
    machine = max(FACTOR, FACTOR * ratios["computing"], FACTOR * ratios["committing"])
    slower = not untimed and ratios["p50"] > machine
    return (ratios["memory"] > FACTOR) + (ratios["files"] > FACTOR) + slower


if __name__ == "__main__":
    main()
