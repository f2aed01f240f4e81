"""Several nodes of the service on one database, clients that never give up, and a count of what became of it all."""

import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psycopg

from solid_bandits.live import events
from solid_bandits.live.events import DECISION, REWARD
from solid_bandits.live.postgres import PostgresStore
from solid_bandits.live.recovery import ReplayDiverged, check
from solid_bandits.service import keys
from solid_bandits.service.model import source_of

PATIENCE = 400.0
"""Seconds for anything: the machine may be busy."""
SPEC = {"name": "news", "policy": "randucb", "dim": 3, "noise_std": 0.5, "floor": 0.1, "seed": 7}


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Place(NamedTuple):
    """Where a node is: what its command begins with, the address it listens at, and how it reaches the database."""

    begin: tuple[str, ...]
    host: str
    database: str


class Node:
    """A process that serves."""

    def __init__(self, folder: Path, place: Place, lease: float) -> None:
        self._folder, self._place, self._lease = folder, place, lease
        self._start()

    def _start(self) -> None:
        place, port = self._place, free_port()
        self.url = f"http://{place.host}:{port}"
        self._said = self._folder / f"{port}.txt"
        command = [
            *place.begin, sys.executable, "-m", "solid_bandits", "serve", "--database", place.database, "--port",
            str(port), "--host", place.host, "--advertise", self.url, "--lease", str(self._lease), "--rate", "100000",
        ]  # fmt: skip
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)

    def wait(self) -> None:
        """Until it serves; at another port, where somebody has taken the first meanwhile."""
        deadline = time.monotonic() + PATIENCE
        while "listening on" not in self.said:
            if self._process.poll() is not None and "port must be free" in self.said:
                self._start()
            elif self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"a node did not start: {self.said}")
            time.sleep(0.02)

    @property
    def said(self) -> str:
        """What it has printed."""
        return self._said.read_text()

    def signal(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def pause(self) -> None:
        """Stop it in the midst of what it does."""
        self.signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def kill(self) -> None:
        """As a machine that loses its power."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def end(self) -> int:
        """In order; its exit status."""
        self.signal(signal.SIGTERM)
        return self._process.wait(PATIENCE)

    def discard(self) -> None:
        """Whatever it is doing."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(PATIENCE)


@dataclass
class Sent:
    """One decision of a client, and what it was told."""

    event_id: str
    arm: Any = None
    probabilities: Any = None
    reward: float | None = None
    """That was acknowledged."""
    contradicted: bool = False
    """Two answers to the same call differ."""
    at: float = 0.0
    """When the decision was acknowledged, and when the call that was answered began."""
    begun: float = 0.0


@dataclass
class Outcome:
    """What was acknowledged, and what of it the log has."""

    acknowledged: int
    lost: int
    doubled: int
    leaders: int
    """Different numbers that events were written with."""
    words: str = ""
    """What replaying the log says."""
    wrong: list[str] = field(default_factory=list)

    @property
    def well(self) -> bool:
        """Whether nothing is amiss."""
        return not (self.lost or self.doubled or self.wrong) and "identical" in self.words


class Nodes:
    """Some nodes, their database, and a load on them."""

    def __init__(
        self, database: str, count: int, lease: float, folder: Path, places: Sequence[Place] = ()
    ) -> None:
        self.database = database
        self._here = Place((), "127.0.0.1", database)
        self.lease = lease
        self._folder = folder
        self.store = PostgresStore(database)
        self.key, _ = keys.create(self.store, "admin", "test")
        self.nodes = [Node(folder, place, lease) for place in places or [self._here] * count]
        for node in self.nodes:
            node.wait()
        self.headers = {"Authorization": f"Bearer {self.key}"}
        self.sent: list[Sent] = []
        self._failures: list[str] = []
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        httpx.post(
            f"{self.nodes[0].url}/v1/models", json=SPEC, headers=self.headers, timeout=PATIENCE
        ).raise_for_status()
        self.model = self.store.models()[0].id
        self.leader_there()

    def add(self) -> Node:
        """One node more."""
        node = Node(self._folder, self._here, self.lease)
        node.wait()
        self.nodes.append(node)
        return node

    def remove(self, node: Node) -> None:
        """A node that is dead."""
        self.nodes = [one for one in self.nodes if one is not node]
        node.discard()

    def leader(self) -> Node | None:
        """The one that raised the number last, if it is among these."""
        with psycopg.connect(self.database) as connection:
            row = connection.execute(
                "SELECT address FROM solid_bandits.leases JOIN solid_bandits.nodes USING (node) WHERE model = %s",
                (self.model,),
            ).fetchone()
        return next((node for node in self.nodes if row is not None and node.url == row[0]), None)

    def leader_there(self) -> Node:
        """The leader, when there is one."""
        found: list[Node] = []

        def look() -> bool:
            found.extend(node for node in [self.leader()] if node is not None and self.believes_to_lead(node))
            return bool(found)

        self.until(look, "nobody leads")
        return found[0]

    def believes_to_lead(self, node: Node) -> bool:
        """What a node itself says."""
        answer = httpx.get(f"{node.url}/v1/models/news/stats", headers=self.headers, timeout=PATIENCE)
        return answer.status_code == 200 and answer.json()["leader"]

    def ask_only(self, node: Node, name: str) -> threading.Thread:
        """A decision from one node, however long it takes; where it says that another must be asked, from that."""

        def ask() -> None:
            sent = Sent(name, begun=-1.0)  # it waits: not one that is asked for after a takeover
            body = {"event_id": name, "features": [[1.0, 0.0, 0.5], [0.0, 1.0, 0.2]]}
            try:
                with httpx.Client(headers=self.headers, timeout=PATIENCE) as client:
                    answer = client.post(f"{node.url}/v1/models/news/decisions", json=body)
                    if answer.status_code == 503 and "retry-after" in answer.headers:
                        found, _ = self._insist(client, random.Random(name), "decisions", body)
                    else:
                        found = answer.raise_for_status().json()
                sent.arm, sent.probabilities = found["arm"], found["probabilities"]
                sent.at = time.monotonic()
                self.sent.append(sent)
            except Exception as error:
                self._failures.append(f"{name}: {type(error).__name__}: {error}")

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        return thread

    def until(self, met: Any, words: str) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + PATIENCE
        while not met():
            if time.monotonic() > deadline:
                raise TimeoutError(words)
            time.sleep(0.02)

    def start(self, clients: int = 3, seed: int = 0, lasting: float = 1.5) -> None:
        """Begin a load: each client decides, asks some decisions again, and rewards them."""
        self._ended.clear()
        self._threads = [
            threading.Thread(
                target=self._noted, args=(f"{seed}-{len(self.sent)}-{place}", lasting), daemon=True
            )
            for place in range(clients)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the load; calls under way are finished first."""
        self._ended.set()
        for thread in self._threads:
            thread.join(PATIENCE)
            if thread.is_alive():
                raise TimeoutError("a client is never answered")

    def _noted(self, name: str, lasting: float) -> None:
        try:
            self._client(name, lasting)
        except Exception as error:  # a thread's errors are nobody's
            self._failures.append(f"{type(error).__name__}: {error}")

    def _client(self, name: str, lasting: float) -> None:
        chance = random.Random(name)
        with httpx.Client(headers=self.headers, timeout=httpx.Timeout(lasting, connect=1.0)) as client:
            number = 0
            while not self._ended.is_set():
                number += 1
                time.sleep(0.005)  # the nodes are on the same machine
                sent = Sent(f"{name}-{number}")
                features = [[chance.gauss(0, 1) for _ in range(3)] for _ in range(4)]
                body = {"event_id": sent.event_id, "features": features}
                answer, sent.begun = self._insist(client, chance, "decisions", body)
                sent.at = time.monotonic()
                sent.arm, sent.probabilities = answer["arm"], answer["probabilities"]
                self.sent.append(sent)
                if chance.random() < 0.2:
                    again, _ = self._insist(client, chance, "decisions", body)
                    told = (again["arm"], again["probabilities"], again["again"])
                    sent.contradicted |= told != (sent.arm, sent.probabilities, True)
                if chance.random() < 0.8:
                    reward = float(chance.random() < 0.5)
                    receipt, _ = self._insist(
                        client, chance, "rewards", {"event_id": sent.event_id, "reward": reward}
                    )
                    sent.contradicted |= receipt["reward"] != reward
                    sent.reward = reward

    def _insist(
        self, client: httpx.Client, chance: random.Random, what: str, body: dict[str, Any]
    ) -> tuple[dict[str, Any], float]:
        """Call any node until one answers; only what may be repeated is. When the call that was answered began."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            node = chance.choice(self.nodes)
            begun = time.monotonic()
            try:
                answer = client.post(f"{node.url}/v1/models/news/{what}", json=body)
            except httpx.TransportError:
                continue
            if answer.status_code == 200:
                return answer.json(), begun
            if answer.status_code != 503 or "retry-after" not in answer.headers:
                raise AssertionError(f"{what}: {answer.status_code} {answer.text}")
            time.sleep(0.02)
        raise TimeoutError(f"{what}: no answer in {PATIENCE:g} s")

    def served_again(self, since: float) -> float:
        """Wait for the first decision that was asked for after a time; how many seconds it took."""
        found: list[float] = []

        def look() -> bool:
            found.extend(one.at - since for one in list(self.sent) if one.begun >= since)
            return bool(found)

        self.until(look, "no decision is made any more")
        return min(found)

    def decide(self, count: int) -> None:
        """Wait until so many more decisions are acknowledged."""
        wanted = len(self.sent) + count
        self.until(lambda: len(self.sent) >= wanted, "no decision is made any more")

    def outcome(self) -> Outcome:
        """Compare what clients were told with the log, and replay it."""
        decisions: dict[str, list[Any]] = {}
        rewards: dict[str, list[float | None]] = {}
        for event in self.store.read(self.model):
            if event.kind == DECISION:
                decisions.setdefault(event.event_id or "", []).append(events.decision_in(event))
            elif event.kind == REWARD:
                rewards.setdefault(event.event_id or "", []).append(events.reward_in(event))
        lost = doubled = 0
        wrong = list(self._failures)
        for one in self.sent:
            made = decisions.get(one.event_id, [])
            learned = rewards.get(one.event_id, [])
            lost += (not made) + (one.reward is not None and not learned)
            doubled += (len(made) > 1) + (len(learned) > 1)
            if made and (made[0].arms[made[0].place], made[0].probabilities.tolist()) != (
                one.arm,
                one.probabilities,
            ):
                wrong.append(f"{one.event_id}: the log has another decision than the answer")
            if learned and one.reward is not None and learned[0] != one.reward:
                wrong.append(f"{one.event_id}: the log has another reward")
            if one.contradicted:
                wrong.append(f"{one.event_id}: answers contradict each other")
        with psycopg.connect(self.database) as connection:
            rows = connection.execute(
                "SELECT fence FROM solid_bandits.events WHERE model = %s ORDER BY sequence", (self.model,)
            ).fetchall()
        fences = [row[0] for row in rows]
        if fences != sorted(fences):
            wrong.append("a leader of the past has written")
        try:
            words = check(source_of(self.store.models()[0], self.store))
        except ReplayDiverged as error:
            words = str(error)
        acknowledged = len(self.sent) + sum(one.reward is not None for one in self.sent)
        return Outcome(acknowledged, lost, doubled, len(set(fences)), words, wrong)

    def said(self) -> list[str]:
        """What all nodes have printed, those that are gone included."""
        return [path.read_text() for path in sorted(self._folder.iterdir())]

    def close(self) -> None:
        """End everything."""
        self._ended.set()
        for node in self.nodes:
            node.discard()
        self.store.close()


@contextmanager
def nodes(database: str, count: int = 2, lease: float = 1.0, places: Sequence[Place] = ()) -> Iterator[Nodes]:
    """Nodes that serve, and lead a model: so many here, or one at each place."""
    with tempfile.TemporaryDirectory(prefix="nodes-") as folder:
        running = Nodes(database, count, lease, Path(folder), places)
        try:
            yield running
        finally:
            running.close()


def kill_leader(running: Nodes) -> float:
    """End the leader as a loss of power would; seconds without decisions."""
    leader = running.leader_there()
    leader.kill()
    began = time.monotonic()
    running.remove(leader)
    return running.served_again(began)


def pause_leader(running: Nodes, asked: int = 4) -> float:
    """Stop the leader with calls in its hands, and let it go on when another leads; seconds without decisions."""
    leader = running.leader_there()
    number = len(running.sent)
    clients = [running.ask_only(leader, f"paused-{number}-{place}") for place in range(asked)]
    leader.pause()
    began = time.monotonic()
    clients += [running.ask_only(leader, f"paused-{number}-{place}") for place in range(asked, 2 * asked)]
    seconds = running.served_again(began)
    running.until(lambda: running.leader() is not leader, "nobody took over")
    leader.signal(signal.SIGCONT)
    for client in clients:
        client.join(PATIENCE)
    # Where the machine is so busy that the lease of the other runs out, it may lead again, and be right.
    running.until(
        lambda: not running.believes_to_lead(leader) or running.leader() is leader,
        "the former leader does not notice",
    )
    return seconds


def take_lock(running: Nodes) -> float:
    """End the session that holds the lock, of a node that is well and writes on; seconds without decisions."""
    with psycopg.connect(running.database, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted"
        )
    return running.served_again(time.monotonic())
