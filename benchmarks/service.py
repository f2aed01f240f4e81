"""Load on the decision service, with the client on the same machine: 20 features, 20 arms.

    python benchmarks/service.py --out DIR            # everything, written to benchmarks/service.md
    python benchmarks/service.py --out DIR --only singles batches

*singles* (open loop): requests are sent on schedule, whether or not earlier ones have been answered, so that waiting
for a slow answer does not hide it; each is timed from its scheduled time. *batches*: calls of 10 decisions, then of
their 10 rewards, from 4 connections, as fast as possible. *start*: a log of a million decisions, made by the service's
own model without HTTP (once: it stays in DIR); then the time from the command to "listening" with a snapshot. *replay*:
of that whole log.

Since the sync of a commit depends on the disk, the same commits without a service are timed next to each number.
Measurements that a run leaves out stay unchanged on the page.
"""

import argparse
import asyncio
import gc
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import numpy as np

ARMS, DIM = 20, 20
PAGE = Path(__file__).with_suffix(".md")
PATIENCE = 120.0
"""Seconds to wait for an answer, a start or an end before the service is reported as stuck."""
SPEC = {"name": "load", "policy": "randucb", "dim": DIM, "noise_std": 0.5, "floor": 0.05, "seed": 1}


TITLES = {"singles": "Single decisions", "batches": "Batches", "start": "Start", "replay": "Replay"}
INTRODUCTION = f"""# Load on the decision service

`python benchmarks/service.py`: {os.cpu_count()} cores, client included; d = {DIM}, {ARMS} arms,
SQLite with `synchronous=FULL`.
*Commit alone* is SQLite's own commit of one such row in the same directory just before, without a service:
the disk's share. *CPU* is the server's processor time for a decision and its reward, which other programs on
the machine do not lengthen as they do waiting. *Load* is the load average at the end of each line: what else
the machine was doing, this measurement included; *nice* is the priority that client and service had, where other
programs could not be kept away."""
IDLE = 3.0
"""Seconds."""
HEAD = """| decisions/s asked | played | p50 ms | p99 ms | max ms | failed | CPU ms | commit alone, ms | load |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""


class Served:
    """A server as a process."""

    def __init__(self, directory, key=None):
        command = [
            sys.executable,
            "-m",
            "solid_bandits",
            "serve",
            "--data",
            os.fspath(directory),
            "--port",
            "0",
        ]
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, "--rate", "1e6", "--key-bytes", "1e9"], stdout=subprocess.PIPE, text=True
        )
        giving_up = threading.Timer(PATIENCE, self.process.kill)  # then the line is empty
        giving_up.start()
        said = self.process.stdout.readline()
        if said.startswith("admin key"):
            file = Path(said.removeprefix("admin key in ").strip())
            key, said = file.read_text().strip(), self.process.stdout.readline()
        giving_up.cancel()
        self.seconds = time.perf_counter() - self.begun
        if not said.startswith("listening"):
            self.process.kill()
            raise SystemExit(f"the service did not listen within {PATIENCE:g} s")
        self.url, self.key = said.split()[-1], key
        self.headers = {"Authorization": f"Bearer {key}", "content-type": "application/json"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Stop the service in any case: one that stays would keep this program's output open for its reader."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE)
        self.process.stdout.close()


def bodies(count, seed):
    """Return offers as JSON, made before the clock starts."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, ARMS, DIM)).round(4)
    return [{"event_id": f"{seed}-{place}", "features": one.tolist()} for place, one in enumerate(features)]


def sync(directory, count=300):
    """Return milliseconds, median and 99th percentile, of SQLite's commit of one such row alone."""
    path = directory / "alone.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE rows (content BLOB)")
    spans = []
    for _ in range(count):
        begun = time.perf_counter()
        connection.execute("INSERT INTO rows VALUES (?)", (os.urandom(8 * ARMS * (DIM + 1)),))
        spans.append(time.perf_counter() - begun)
    connection.close()
    for one in directory.glob("alone.db*"):
        one.unlink()
    return np.percentile(spans, [50, 99]) * 1000


class Connection:
    """A minimal HTTP/1.1 connection, because the client shares the cores with the service."""

    def __init__(self, served):
        self._served = served
        host, port = served.url.removeprefix("http://").split(":")
        self._place = host, int(port)
        self._streams, self._used = None, 0.0

    async def post(self, path, content):
        """Post and return the status. The service closes a connection that idled for 5 s, so it is renewed before
        that.
        """
        if self._streams is not None and time.perf_counter() - self._used > IDLE:
            self.close()
            self._streams = None
        async with asyncio.timeout(PATIENCE):
            status = await self._post(path, content)
        self._used = time.perf_counter()
        return status

    async def _post(self, path, content):
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._place)
        reader, writer = self._streams
        head = (
            f"POST /v1/models/load/{path} HTTP/1.1\r\nHost: {self._place[0]}\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {self._served.key}\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        writer.write(head.encode() + content)
        said = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(said.split(b"content-length: ")[1].split(b"\r\n")[0]))
        return int(said.split(b" ", 2)[1])

    def close(self):
        if self._streams is not None:
            self._streams[1].close()


async def singles(served, rate, seconds, connections=64):
    """Return answer times in milliseconds of decisions at a rate, each followed by its reward; and the failures."""
    count = rate * seconds
    made = bodies(count, seed=time.time_ns() % 10**9)
    offers = [json.dumps(one).encode() for one in made]
    rewards = [
        json.dumps({"event_id": one["event_id"], "reward": float(place % 3)})
        for place, one in enumerate(made)
    ]
    del made
    gc.collect()
    gc.freeze()  # pauses of the client must not count as the service's
    spans, failed = [], 0
    free = [Connection(served) for _ in range(connections)]
    room = asyncio.Semaphore(connections)
    start = time.perf_counter() + 0.1

    async def one(place, due):
        nonlocal failed
        async with room:
            connection = free.pop()
            failed += await connection.post("decisions", offers[place]) != 200
            spans.append(time.perf_counter() - due)
            failed += await connection.post("rewards", rewards[place].encode()) != 200
            free.append(connection)

    async with asyncio.TaskGroup() as group:
        for place in range(count):
            due = start + place / rate
            wait = due - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            # Not all at once beforehand, because making thousands of tasks takes longer than the first answers.
            group.create_task(one(place, due))
    took = time.perf_counter() - start
    for connection in free:
        connection.close()
    return np.array(spans) * 1000, failed, count / took


async def batches(served, calls, connections=4):
    """Return decisions per second, in calls of 10, each call followed by the rewards of its 10."""
    offers = bodies(calls * 10, seed=time.time_ns() % 10**9)
    groups = [offers[place : place + 10] for place in range(0, calls * 10, 10)]
    sent = [json.dumps({"decisions": group}).encode() for group in groups]
    given = [
        json.dumps({"rewards": [{"event_id": one["event_id"], "reward": 1.0} for one in group]}).encode()
        for group in groups
    ]
    failed = 0
    waiting = iter(range(calls))

    async def play():
        nonlocal failed
        connection = Connection(served)
        for place in waiting:
            failed += await connection.post("decisions", sent[place]) != 200
            failed += await connection.post("rewards", given[place]) != 200
        connection.close()

    begun = time.perf_counter()
    await asyncio.gather(*(play() for _ in range(connections)))
    return calls * 10 / (time.perf_counter() - begun), failed


def cpu(served):
    """Return the CPU seconds that the server has used."""
    parts = Path(f"/proc/{served.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def fill(directory, decisions):
    """Write a log of `decisions` decisions, 90% with rewards, by the service's own model, in groups of 500."""
    from solid_bandits.live.sqlite import SqliteStore
    from solid_bandits.service import keys
    from solid_bandits.service.model import caught_up_model
    from solid_bandits.service.open_store import FILE
    from solid_bandits.service.schemas import DecisionAsked, ModelSpec, RewardGiven

    store = SqliteStore(directory / FILE, create=True)
    key, _ = keys.create(store, "admin", "load")
    row = store.add_model("load", ModelSpec(**SPEC).model_dump_json(), 1)
    model = caught_up_model(None, row, store)
    model.history.fence = store.fence
    rng = np.random.default_rng(0)
    for start in range(0, decisions, 500):
        features = rng.normal(size=(500, ARMS, DIM))
        asked = [
            DecisionAsked.model_construct(
                features=one.tolist(), arms=None, available=None, event_id=f"e{start + place}", subject=None
            )
            for place, one in enumerate(features)
        ]
        model.decide(asked, now=1_000 * start)
        given = [
            RewardGiven(event_id=one.event_id, reward=float(place % 3)) for place, one in enumerate(asked)
        ]
        model.learn([one for place, one in enumerate(given) if place % 10], now=1_000 * start)
        model.history.commit()
    store.close()
    return key


def load():
    """Return the load average, and the priority of this program and its service if it is not the default."""
    priority = os.nice(0)
    return f"{os.getloadavg()[0]:.1f}" + (f", nice {priority}" if priority else "")


def measure_singles(served, place, rates, seconds):
    """Return the rows of the table, by their rate."""
    rows = {}
    for rate in rates:
        alone, before = sync(place), cpu(served)
        spans, failed, played = asyncio.run(singles(served, rate, seconds))
        p50, p99 = np.percentile(spans, [50, 99])
        rows[str(rate)] = (
            f"| {rate} | {played:.0f} | {p50:.1f} | {p99:.1f} | {spans.max():.0f} | {failed} | "
            f"{(cpu(served) - before) / spans.size * 1000:.2f} | "
            f"{alone[0]:.1f}, {alone[1]:.1f} | {load()} |"
        )
        print(rows[str(rate)], flush=True)
    return rows


def measure_batches(served, place, calls):
    alone, before = sync(place), cpu(served)
    rate, failed = asyncio.run(batches(served, calls))
    return (
        f"In calls of 10, each followed by its 10 rewards, over 4 connections: **{rate:,.0f} decisions/s and as many "
        f"rewards/s**, {failed} failed (CPU {(cpu(served) - before) / calls * 100:.2f} ms; commit alone "
        f"{alone[0]:.1f}, {alone[1]:.1f} ms; load {load()})."
    )


def measure_start(place, key, count):
    busy = load()
    with Served(place, key) as served:
        facts = httpx.get(
            f"{served.url}/v1/models/load/stats", headers=served.headers, timeout=PATIENCE
        ).json()
        used = cpu(served)
        served.process.kill()  # no snapshot at the end, so that the next start has the same work
    size = sum(one.stat().st_size for one in place.iterdir()) / 1e9
    return (
        f"{count} logged decisions ({facts['last_sequence']:,} events, {size:.1f} GB, {facts['open']:,} open): from "
        f"the command to *listening* by snapshot **{served.seconds:.1f} s**, of which {used:.1f} s of processor time "
        f"(load {busy})."
    )


def measure_replay(place, count):
    begun, before = time.perf_counter(), os.times()
    command = [sys.executable, "-m", "solid_bandits", "replay", os.fspath(place)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds, after = time.perf_counter() - begun, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return (
        f"`solid-bandits replay` of all of a log of {count} decisions: **{seconds:,.0f} s**, of which {used:,.0f} s of "
        f"processor time (load {load()}): {ended.stdout.strip()}."
    )


def kept(page):
    """Return the parts of a page by their titles, and the rows of its table by their rates."""
    _, *parts = page.split("\n## ")
    found = {title: text.strip() for title, _, text in (part.partition("\n") for part in parts)}
    rows = [line for line in found.get(TITLES["singles"], "").splitlines() if line[2:3].isdigit()]
    return found, {line.split("|")[1].strip(): line for line in rows}


def written(page, rows, parts):
    """Return the page with the new measurements, and the old ones where there are none."""
    found, before = kept(page)
    rows = dict(sorted((before | rows).items(), key=lambda row: int(row[0])))
    found |= {TITLES[name]: text for name, text in parts.items()}
    if rows:
        found[TITLES["singles"]] = "\n".join([HEAD, *rows.values()])
    return (
        "\n\n".join(
            [INTRODUCTION, *(f"## {title}\n\n{found[title]}" for title in TITLES.values() if title in found)]
        )
        + "\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="Directory for the services' data.")
    parser.add_argument("--only", nargs="*", choices=TITLES, default=list(TITLES))
    parser.add_argument("--rates", nargs="*", type=int, default=[200, 300, 500])
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=1_000)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    arguments = parser.parse_args()
    rows, parts = {}, {}

    def note(name, words):
        parts[name] = words
        print(words, flush=True)

    if {"singles", "batches"} & set(arguments.only):
        place = arguments.out / f"load-{time.time_ns()}"
        with Served(place) as served:
            httpx.post(
                f"{served.url}/v1/models", headers=served.headers, json=SPEC, timeout=PATIENCE
            ).raise_for_status()
            asyncio.run(batches(served, 20))  # compiles whatever the first calls need
            if "singles" in arguments.only:
                rows = measure_singles(served, place, arguments.rates, arguments.seconds)
            if "batches" in arguments.only:
                note("batches", measure_batches(served, place, arguments.calls))
    place, count = arguments.out / f"log-{arguments.decisions}", f"{arguments.decisions:,}"
    secret = arguments.out / f"log-{arguments.decisions}.key"
    if {"start", "replay"} & set(arguments.only) and not secret.exists():
        begun = time.perf_counter()
        shutil.rmtree(place, ignore_errors=True)  # left by an interrupted run
        secret.write_text(fill(place, arguments.decisions))
        print(f"{count} decisions written in {time.perf_counter() - begun:,.0f} s", flush=True)
    if "start" in arguments.only:
        note("start", measure_start(place, secret.read_text(), count))
    if "replay" in arguments.only:
        note("replay", measure_replay(place, count))
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    PAGE.write_text(written(page, rows, parts), encoding="utf-8")


if __name__ == "__main__":
    main()
