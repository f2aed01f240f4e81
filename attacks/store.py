"""A bandit with a store, killed at random moments: nothing acknowledged is lost, and nothing is stored twice.

In each round a forked process opens the store, decides, learns, expires and (in groups) deletes, and reports what each
call returned; at a random moment it gets a SIGKILL. Then the log is read: every call that returned is in it once, as it
returned. With `commit_every` n, only the last n - 1 calls before the kill may be missing. The next process repeats some
calls, and those in the log must give their first answer. At the end the log is replayed, and every decision and
snapshot compared. In some rounds the disk fills up instead (a small one is mounted): calls are then refused completely,
until there is room.

    python attacks/store.py --kills 200 --full 5 --seed 0
"""

import argparse
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from counted import show

import solid_bandits as sb
from solid_bandits.live import events
from solid_bandits.live.recovery import check
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.store import StoreError
from solid_bandits.live.stored import source_of
from solid_bandits.live.tables import is_store

DIM, ARMS = 3, 4
REPEATED = 3
"""Number of calls that the next process repeats."""


class FoundError(Exception):
    """Raised for a finding."""


def opened(path: Path, every: int) -> sb.Bandit:
    """Return the bandit of the store, or a new one."""
    if path.exists():
        with_one = SqliteStore(path, create=True)  # its tables may be missing
        there = bool(with_one.models())  # otherwise its first process was killed too early
        with_one.close()
        if there:
            return sb.Bandit.open(path, commit_every=every)
    settings = {"dim": DIM, "noise_std": 1.0, "floor": 0.1, "half_life": 300.0, "seed": 1, "window": 400}
    return sb.Bandit(sb.LinTS(), **settings, store=path, commit_every=every)


def deleted_by(number: int) -> str | None:
    """Return the decision that a call deletes, if it does."""
    return f"e{number // 2 - 5}" if number % 94 == 93 else None


def call(bandit: sb.Bandit, number: int, deleting: bool) -> list[object]:
    """Make call number `number`, always the same one; return its result. A log is replayed from its last deletion."""
    rng = random.Random(number)
    name = f"e{number // 2}"
    if number % 2 == 0:
        features = np.random.default_rng(number).normal(size=(ARMS, DIM))
        made = bandit.decide(features, event_id=name, subject=f"s{number % 7}", time=float(number))
        return ["decision", name, made.place, made.probabilities.tolist()]
    if deleting and (gone := deleted_by(number)):
        return ["deletion", gone, bandit.delete(gone), 0]
    kind = rng.random()
    if kind < 0.75:
        receipt = bandit.learn(name, reward := round(rng.random(), 3), time=float(number))
        return ["reward", name, receipt.reward if receipt.status != "late" else None, reward]
    if kind < 0.85:
        expired = bandit.expire(event_ids=[name], reward=0.0, time=float(number))
        return ["expiry", name, 0.0 if expired else None, 0.0]
    return ["nothing", name, None, None]


def play(path: Path, start: int, every: int, said: int) -> None:
    """Make calls, in its own process, until killed."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    bandit, number = opened(path, every), start
    while True:
        try:
            line = json.dumps([number, *call(bandit, number, every > 1)])
            if number % 50 == 0:
                is_store(path)  # checks the store in the process that holds its locks
            number += 1
        except StoreError as error:
            line = json.dumps([number, "refused", str(error), None, None])
        os.write(said, (line + "\n").encode())


class Told:
    """Results of the calls, in order."""

    def __init__(self) -> None:
        self.calls: dict[int, list[object]] = {}
        self.refused = 0

    def hear(self, text: str) -> int:
        """Parse the output of a process; return how many calls were refused at the end."""
        refused = 0
        for line in text.splitlines(keepends=True):
            if not line.endswith("\n"):
                break
            number, kind, *rest = json.loads(line)
            refused = refused + 1 if kind == "refused" else 0
            self.refused += kind == "refused"
            if kind in ("refused", "nothing"):
                continue
            before = self.calls.get(number)
            if before is not None and kind == "decision" and before != [kind, *rest]:
                raise FoundError(f"call {number} returned {before}, and then {[kind, *rest]}")
            self.calls[number] = [kind, *rest]
        return refused

    @property
    def next(self) -> int:
        """The number of the first call that did not return."""
        return max(self.calls, default=-1) + 1


def compare(path: Path, told: Told, every: int) -> int:
    """Compare the log with the results of calls; forget those that may be lost, and count them."""
    store = SqliteStore(path, create=True)
    logged: dict[tuple[str, str], object] = {}
    for count, event in enumerate(store.read(1) if store.models() else (), start=1):
        if event.sequence != count or not events.is_sound(event):
            raise FoundError(f"event {count} of the log is {event}")
        if event.event_id is None:
            continue
        kind = "decision" if event.kind in events.DECIDED else "closing"
        if (kind, event.event_id) in logged:
            raise FoundError(f"{event} is there twice")
        one = events.decision_in(event) if kind == "decision" else None
        said = events.reward_in(event) if one is None else [one.place, one.probabilities.tolist()]
        logged[kind, event.event_id] = said
    store.close()
    numbers = sorted(told.calls)
    lost = []
    # The next call may have been executed without returning.
    deleted = {deleted_by(number) for number in range(told.next + 1)} if every > 1 else set()
    for number in numbers:
        kind, name, *returned = told.calls[number]
        if kind == "deletion" or name in deleted:
            continue
        if kind == "decision":
            sound = logged.get(("decision", str(name))) == returned
        else:  # the reward that counts, whatever its source
            sound = returned[0] is None or logged.get(("closing", str(name))) == returned[0]
        if not sound:
            lost.append(number)
    allowed = set(numbers[-(every - 1) :]) if every > 1 else set()
    if not set(lost) <= allowed:
        raise FoundError(
            f"calls {lost[:5]} returned and are not in the log as they did; the last was {numbers[-1]}"
        )
    if lost:
        for number in [one for one in numbers if one >= lost[0]]:
            del told.calls[number]
    return len(lost)


def round_of(path: Path, told: Told, every: int, wait: float, full: bool) -> None:
    """Run one process, killed after some seconds of calls, or once the disk is full."""
    reading, writing = os.pipe()
    start = max(told.next - REPEATED, 0)
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            play(path, start, every, writing)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(9)
    os.close(writing)
    text, began, deadline = b"", None, time.monotonic() + 120
    while True:
        ready, _, _ = select.select([reading], [], [], 0.005)
        part = os.read(reading, 1 << 20) if ready else None
        if part == b"":
            break  # it ended by itself
        text += part or b""
        if text:
            SqliteStore(
                path
            ).close()  # the last one to close deletes the write-ahead log, so it must not be taken for that
        began = began or (time.monotonic() if text else None)
        enough = text.count(b'"refused"') >= 5 if full else began and time.monotonic() - began > wait
        if enough:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            raise FoundError(f"no end: {text[-300:]!r}")
    os.kill(child, signal.SIGKILL)
    while part := os.read(reading, 1 << 20):
        text += part
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        raise FoundError("the process ended by itself")
    told.hear(text.decode())


def kill(path: Path, every: int, kills: int, rng: random.Random, seconds: float) -> tuple[Told, int]:
    """Run several processes on one store; return the results, and how many calls of groups were lost."""
    told, lost = Told(), 0
    for _ in range(kills):
        round_of(path, told, every, rng.uniform(0, seconds), full=False)
        lost += compare(path, told, every)
    return told, lost


def fill(folder: Path, rounds: int) -> str:
    """Fill a small disk: calls must be refused completely, and succeed once there is room."""
    place = folder / "small"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", place], capture_output=True
    ).returncode:
        return "no small disk could be mounted"
    try:
        told = Told()
        for number in range(rounds):
            size = f"remount,size={700 * (number + 1)}k"
            subprocess.run(["mount", "-o", size, place], check=True)
            round_of(place / "bandit.db", told, 1, 0.0, full=True)
            compare(place / "bandit.db", told, 1)
        subprocess.run(["mount", "-o", "remount,size=64m", place], check=True)
        before = told.refused
        round_of(place / "bandit.db", told, 1, 0.5, full=False)
        compare(place / "bandit.db", told, 1)
        if told.refused > before:
            raise FoundError("calls are refused with room on the disk")
        replayed(place / "bandit.db")
        return f"full disk: {told.refused} calls refused whole, {len(told.calls)} in the log"
    finally:
        subprocess.run(["umount", "-l", place], check=False)


def replayed(path: Path) -> str:
    """Compare the log with its replay and return a summary; raise a ReplayDiverged if they differ."""
    store = SqliteStore(path)
    try:
        return check(source_of(store))
    finally:
        store.close()


def main() -> None:
    """Attack, and print one row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--full", type=int, default=3, help="rounds with a full disk")
    parser.add_argument("--seconds", type=float, default=0.6, help="longest time until a kill")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder in which the stores are kept")
    given = parser.parse_args()
    began, rng = time.monotonic(), random.Random(given.seed)
    folder = given.out or Path(tempfile.mkdtemp(prefix="attacked-"))
    folder.mkdir(parents=True, exist_ok=True)
    warm = folder / "warm.db"
    with opened(warm, 1) as bandit:  # compiled once, because the processes are forked
        for number in range(200):
            call(bandit, number, deleting=True)
    failed = 0
    try:
        for every, kills in ((1, given.kills - given.kills // 4), (8, given.kills // 4)):
            path = folder / f"every-{every}.db"
            told, lost = kill(path, every, kills, rng, given.seconds)
            print(
                f"commit_every={every}: {kills} kills, {len(told.calls)} calls returned and are there, {lost} lost"
            )
            print(replayed(path))
        if given.full:
            print(fill(folder, given.full))
    except FoundError as error:
        failed = 1
        print(f"found: {error}", file=sys.stderr)
    finally:
        if given.out is None:
            shutil.rmtree(folder, ignore_errors=True)
    show("bandit with a store, killed", given.kills, failed, given.seed, began)
    sys.exit(failed)


if __name__ == "__main__":
    main()
