"""A decision service killed under load: nothing acknowledged is lost, and nothing counts twice.

Each round runs a server as a process and clients that decide and learn over several connections, repeating with the
same ids every call without an answer and some of the answered ones. At a random time the server gets SIGKILL (SIGTERM
in every fourth round, after which it starts from a snapshot). After each round the log is read: every acknowledged
decision and reward is in it once, as it was answered, and no id is in it twice. At the end `solid-bandits replay`
compares all decisions and snapshots. In some rounds a disk fills up instead, where a small one can be mounted.

    python attacks/service.py --kills 100 --full 5 --seed 0
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
from counted import show

from solid_bandits.live import events
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.service.open_store import FILE

CLIENTS = 4
PATIENCE = 120.0
"""Seconds to wait for a start, an end or an answer before the service counts as stuck."""
MOST_KEPT = 1_000
"""Number of answered calls, any of which may be repeated."""
DIM = 5
SPEC = {
    "name": "attacked", "policy": "lints", "dim": DIM, "noise_std": 1.0, "floor": 0.1, "half_life": 500,
    "default_reward": 0.0, "wait": 2.0, "seed": 1,
}  # fmt: skip


class FoundError(Exception):
    """Raised for a finding."""


class Attacked:
    """A server as a process, started again and again in the same directory."""

    def __init__(self, directory: Path, rate: str | None = "100000") -> None:
        self.directory = directory
        self._more = [] if rate is None else ["--rate", rate]
        self.key = ""
        self.process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> None:
        """Start it, on a new port each time."""
        command = [
            sys.executable,
            "-m",
            "solid_bandits",
            "serve",
            "--data",
            os.fspath(self.directory),
            "--port",
            "0",
        ]
        self.process = subprocess.Popen(
            [*command, *self._more],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Linux shares processors among sessions: the attackers' is not the server's
        )
        assert self.process.stdout is not None
        giving_up = threading.Timer(PATIENCE, self.process.kill)  # then the line is empty
        giving_up.start()
        said = self.process.stdout.readline()
        if said.startswith("admin key"):
            file = Path(said.removeprefix("admin key in ").strip())
            self.key, said = file.read_text().strip(), self.process.stdout.readline()
        giving_up.cancel()
        if not said.startswith("listening"):
            raise FoundError(f"the server did not start again: {said!r}")
        self.url = said.split()[-1]

    def made(self, role: str) -> str:
        """Return a new key."""
        command = [
            sys.executable,
            "-m",
            "solid_bandits",
            "keys",
            "create",
            role,
            "--data",
            os.fspath(self.directory),
        ]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1]

    def end(self, number: int) -> None:
        """Send it a signal and wait for its end."""
        assert self.process is not None
        self.process.send_signal(number)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise FoundError(f"the server did not end within {PATIENCE:g} s of signal {number}") from None
        assert self.process.stdout is not None
        self.process.stdout.close()


class Acknowledged:
    """The answers that the clients received."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.decisions: dict[str, tuple[object, list[float]]] = {}
        self.rewards: dict[str, float] = {}
        self.repeated = 0
        self.unanswered: list[tuple[str, dict[str, object]]] = []
        """Calls without an answer, to be repeated in the next round."""
        self.answered: list[tuple[str, dict[str, object]]] = []
        """Some answered calls; repeated, they must get the same answer."""


def reward_of(event_id: str) -> float:
    """Return the reward of a decision, always the same, so that a repeated call gives no other reward."""
    return round(random.Random(event_id).random(), 3)


def play(server: Attacked, told: Acknowledged, seed: int, ended: threading.Event) -> None:
    """Run one client: decide, alone or in batches, learn, repeat unanswered calls."""
    rng = random.Random(seed)
    number = 0
    with httpx.Client(
        base_url=server.url, headers={"Authorization": f"Bearer {server.key}"}, timeout=20
    ) as client:
        while not ended.is_set():
            with told.lock:
                call = told.unanswered.pop() if told.unanswered else None
                before = rng.choice(told.answered) if told.answered and rng.random() < 0.1 else None
            if call is None and before is not None:
                told.repeated += 1
                if _called(client, told, before) is None:
                    return
                continue
            if call is None:
                number += 1
                ids = [f"{seed}-{number}-{place}" for place in range(rng.choice([1, 1, 3]))]
                asked = [
                    {"event_id": one, "features": [[rng.gauss(0, 1) for _ in range(DIM)] for _ in range(3)]}
                    for one in ids
                ]
                call = ("decisions", {"decisions": asked})
            else:
                told.repeated += 1
            answered = _called(client, told, call)
            if answered is None:
                return
            if answered and call[0] == "decisions":  # otherwise there is nothing to reward yet
                rewards = [
                    {"event_id": one["event_id"], "reward": reward_of(str(one["event_id"]))}  # type: ignore[index]
                    for one in call[1]["decisions"]  # type: ignore[attr-defined]
                    if rng.random() < 0.8
                ]
                if rewards and _called(client, told, ("rewards", {"rewards": rewards})) is None:
                    return


def _called(client: httpx.Client, told: Acknowledged, call: tuple[str, dict[str, object]]) -> bool | None:
    """Return whether a call succeeded; None without an answer. Record successes, and queue the others for
    repetition.
    """
    path, body = call
    try:
        answer = client.post(f"/v1/models/attacked/{path}", json=body)
    except httpx.TransportError:
        with told.lock:
            told.unanswered.append(call)
        return None
    if answer.status_code in (503, 507):
        with told.lock:
            told.unanswered.append(call)
        time.sleep(0.05)
        return False
    if answer.status_code != 200:
        raise FoundError(f"{path}: {answer.status_code} {answer.text}")
    with told.lock:
        if len(told.answered) < MOST_KEPT:
            told.answered.append(call)
        else:
            told.answered[random.randrange(MOST_KEPT)] = call
        for one in answer.json()[path]:
            if path == "decisions":
                before = told.decisions.setdefault(one["event_id"], (one["arm"], one["probabilities"]))
                if before != (one["arm"], one["probabilities"]):
                    raise FoundError(f"{one['event_id']} was decided twice: {before}, {one}")
            elif one["status"] in ("learned", "again"):
                told.rewards[one["event_id"]] = one["reward"]
            elif one["status"] != "late":
                raise FoundError(f"a reward was answered {one}")
    return True


def check(directory: Path, told: Acknowledged) -> tuple[int, int]:
    """Compare the log with the clients' answers; return its number of events and expiries."""
    store = SqliteStore(directory / FILE)
    decisions: dict[str, tuple[object, list[float]]] = {}
    closed: dict[str, float | None] = {}
    expired = count = 0
    for count, event in enumerate(store.read(1), start=1):
        if event.sequence != count or not events.is_sound(event) or event.event_id is None:
            raise FoundError(f"event {count} of the log is {event}")
        if event.kind == "decision":
            decided = events.decision_in(event)
            if event.event_id in decisions:
                raise FoundError(f"{event.event_id} is there twice")
            decisions[event.event_id] = (decided.arms[decided.place], decided.probabilities.tolist())
        else:
            if event.event_id in closed:
                raise FoundError(f"{event.event_id} was closed twice")
            closed[event.event_id] = events.reward_in(event)
            expired += event.kind == "expiry"
    store.close()
    for event_id, answer in told.decisions.items():
        if decisions.get(event_id) != answer:
            raise FoundError(
                f"{event_id} was acknowledged as {answer}, the log has {decisions.get(event_id)}"
            )
    for event_id, reward in told.rewards.items():
        if closed.get(event_id) != reward:
            raise FoundError(
                f"reward {reward} of {event_id} was acknowledged, the log has {closed.get(event_id)}"
            )
    return count, expired


def attack(server: Attacked, told: Acknowledged, rng: random.Random, seconds: float, number: int) -> None:
    """Play one round: load, and a signal after a while."""
    server.start()
    if not told.decisions:
        made = httpx.post(
            f"{server.url}/v1/models",
            headers={"Authorization": f"Bearer {server.key}"},
            json=SPEC,
            timeout=120,
        )
        if made.status_code not in (201, 409):
            raise FoundError(made.text)
    ended = threading.Event()
    failures: list[BaseException] = []

    def guarded(seed: int) -> None:
        try:
            play(server, told, seed, ended)
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=guarded, args=(rng.randrange(10**9),), daemon=True) for _ in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    time.sleep(rng.uniform(0.2, 1.0) * seconds)
    server.end(number)
    ended.set()
    for thread in threads:
        thread.join(PATIENCE)
        if thread.is_alive():
            raise FoundError(f"a client was not answered within {PATIENCE:g} s")
    if failures:
        raise failures[0]


def replayed(directory: Path) -> str:
    """Return the output of `solid-bandits replay`."""
    ended = subprocess.run(
        [sys.executable, "-m", "solid_bandits", "replay", os.fspath(directory)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=3_600,
    )
    if ended.returncode:
        raise FoundError(ended.stdout)
    return ended.stdout.strip()


def full(directory: Path, seed: int) -> str:
    """Run a service on a disk of a few megabytes until it is full: it answers 507 and loses nothing acknowledged."""
    directory.mkdir()
    size = f"size={3 + seed % 3}m"
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", directory], stderr=subprocess.DEVNULL
    ).returncode:
        return "not played: a small disk cannot be mounted here"
    server, told = Attacked(directory), Acknowledged()
    try:
        server.start()
        head = {"Authorization": f"Bearer {server.key}"}
        statuses = []
        with httpx.Client(base_url=server.url, headers=head, timeout=60) as client:
            client.post("/v1/models", json=SPEC | {"wait": None, "default_reward": None}).raise_for_status()
            for number in range(3_000):
                rng = random.Random(f"{seed}-{number}")
                rows = [[rng.gauss(0, 1) for _ in range(DIM)] for _ in range(50)]
                body = {
                    "decisions": [{"event_id": f"{number}-{place}", "features": rows} for place in range(5)]
                }
                answer = client.post("/v1/models/attacked/decisions", json=body)
                statuses.append(answer.status_code)
                if answer.status_code == 200:
                    for one in answer.json()["decisions"]:
                        told.decisions[one["event_id"]] = (one["arm"], one["probabilities"])
                elif statuses[-5:] == [507] * 5:
                    break
            if statuses[-5:] != [507] * 5 or set(statuses) != {200, 507}:
                raise FoundError(f"a full disk was answered {sorted(set(statuses))}")
            if client.get("/health").status_code != 503 or client.get("/v1/models").status_code != 200:
                raise FoundError("a full disk ended the service")
            subprocess.run(["mount", "-o", "remount,size=64m", directory], check=True)
            answer = client.post("/v1/models/attacked/decisions", json=body)  # the same ids, now with room
            if answer.status_code != 200 or any(one["again"] for one in answer.json()["decisions"]):
                raise FoundError(f"with room again: {answer.status_code} {answer.text[:200]}")
            for one in answer.json()["decisions"]:
                told.decisions[one["event_id"]] = (one["arm"], one["probabilities"])
        server.end(signal.SIGKILL)
        check(directory, told)
        replayed(directory)
        return f"{len(told.decisions)} decisions acknowledged, then 507, then on with room"
    finally:
        if server.process is not None and server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        subprocess.run(["umount", directory], check=True)


def main() -> None:
    """Attack, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--full", type=int, default=5, help="Number of rounds with a full disk.")
    parser.add_argument("--seconds", type=float, default=2.0, help="Longest load before a kill.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--out", type=Path, default=None, help="Directory for the data; a temporary one if not given."
    )
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    home = Path(tempfile.mkdtemp()) if arguments.out is None else arguments.out
    server, told = Attacked(home / "service"), Acknowledged()
    began = time.monotonic()
    for place in range(1, arguments.kills + 1):
        attack(server, told, rng, arguments.seconds, signal.SIGTERM if place % 4 == 2 else signal.SIGKILL)
        count, expired = check(server.directory, told)
        print(
            f"{place} ends: {count:,} events, {expired:,} expired; {len(told.decisions):,} decisions and "
            f"{len(told.rewards):,} rewards acknowledged, {told.repeated:,} calls repeated",
            flush=True,
        )
    if arguments.kills:
        settle(server, told)
        check(server.directory, told)
        print(replayed(server.directory), flush=True)
        show("decision service killed under load", arguments.kills, 0, arguments.seed, began)
    began = time.monotonic()
    for place in range(arguments.full):
        print(full(home / f"full-{place}", arguments.seed + place), flush=True)
    if arguments.full:
        show("decision service on a disk that fills up", arguments.full, 0, arguments.seed, began)
    if arguments.out is None:
        shutil.rmtree(home)


def settle(server: Attacked, told: Acknowledged) -> None:
    """Repeat the last unanswered calls, and stop the server cleanly."""
    server.start()
    head = {"Authorization": f"Bearer {server.key}"}
    with httpx.Client(base_url=server.url, headers=head, timeout=60) as client:
        deadline = time.monotonic() + PATIENCE
        while told.unanswered:
            if time.monotonic() > deadline:
                raise FoundError(f"{len(told.unanswered)} calls are refused for more than {PATIENCE:g} s")
            _called(client, told, told.unanswered.pop())
            told.repeated += 1
    server.end(signal.SIGTERM)


if __name__ == "__main__":
    main()
