"""`make service-demo`: a service on this machine, synthetic traffic, and its page, until Ctrl-C.

Two models receive requests at once. *news*: five articles, of which a visitor is shown one; a click is reported within
seconds, and no click within 20 seconds is a reward of 0. *prices*: three prices with a profit that is known a moment
later. Everything is drawn from a seed; nothing leaves this machine.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from solid_bandits._internal.signals import handled
from solid_bandits._internal.types import Floats
from solid_bandits.client.http import Client
from solid_bandits.service.keys import FIRST_KEY

LONGEST_END = 60.0
"""Seconds in which the service and each visitor must end; the service takes snapshots then."""
ARTICLES = ("climate", "football", "recipes", "science", "travel")
PRICES = ("9.90", "12.90", "14.90")
SPECS: dict[str, dict[str, Any]] = {
    "news": {"policy": "randucb", "dim": 10, "floor": 0.1, "default_reward": 0.0, "wait": 20},
    "prices": {"policy": "lints", "dim": 6, "noise_std": 2.0, "floor": 0.05},
}


class World:
    """Simulated visitors: offers with features, and the rewards of what they are shown."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def news(self) -> tuple[dict[str, Any], Floats]:
        """Return articles for a visitor, and the probability of a click on each, by article and by the visitor's
        taste.
        """
        suits = self._rng.uniform(size=len(ARTICLES))
        features = np.hstack([np.eye(len(ARTICLES)), np.diag(suits)])
        chances = np.array([0.05, 0.12, 0.08, 0.10, 0.03]) + suits * np.array([0.05, 0.25, 0.10, 0.45, 0.15])
        return {"context": features, "arms": list(ARTICLES)}, chances

    def prices(self) -> tuple[dict[str, Any], Floats]:
        """Return prices for a customer, and the mean profit of each; which is best depends on the customer's thrift."""
        thrift = self._rng.uniform()
        features = np.hstack([np.eye(len(PRICES)), thrift * np.eye(len(PRICES))])
        profits = np.array([2.0, 4.5, 6.5]) - thrift * np.array([0.5, 4.0, 8.5])
        return {"context": features, "arms": list(PRICES)}, profits

    def reward(self, model: str, expected: float) -> float | None:
        """Return the reward of a choice; None if nothing is reported."""
        if model == "news":
            return 1.0 if self._rng.uniform() < expected else None
        return float(expected + 2.0 * self._rng.normal())

    def delay(self) -> float:
        """Return the seconds until the reward is known."""
        return float(self._rng.exponential(2.0))


class Traffic(threading.Thread):
    """Visitors of one model, at a steady pace, with their own client."""

    def __init__(self, url: str, key: str, model: str, per_second: float, seed: int) -> None:
        super().__init__(daemon=True)
        self.decisions = self.rewards = 0
        self.failure: Exception | None = None
        self._client, self._model, self._world = Client(url, key), model, World(seed)
        self._pause = 1 / per_second
        self._due: list[tuple[float, str, float]] = []
        self._ended = threading.Event()

    def run(self) -> None:
        """Decide and report until told to end."""
        try:
            with self._client:
                while not self._ended.wait(self._pause):
                    self._decide()
                    self._report()
        except Exception as error:
            self.failure = error

    def end(self) -> None:
        """Ask the thread to end."""
        self._ended.set()

    def _decide(self) -> None:
        offer, expected = getattr(self._world, self._model)()
        choice = self._client.decide(self._model, **offer)
        self.decisions += 1
        reward = self._world.reward(self._model, expected[offer["arms"].index(choice.arm)])
        if reward is not None:
            self._due.append((time.monotonic() + self._world.delay(), choice.event_id, reward))

    def _report(self) -> None:
        now = time.monotonic()
        known = {event_id: reward for due, event_id, reward in self._due if due <= now}
        if known:
            self._due = [one for one in self._due if one[1] not in known]
            self.rewards += sum(receipt.counted for receipt in self._client.learn_many(self._model, known))


@contextmanager
def served(data: Path, port: int) -> Iterator[tuple[str, str]]:
    """Run a service as a separate process, with its log in a directory; yield its address and its admin key."""
    command = [sys.executable, "-m", "solid_bandits", "serve", "--data", str(data), "--port", str(port)]
    # Its own process group, because Ctrl-C is for this process, which ends the service after the traffic.
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    try:
        said = [process.stdout.readline().split() for _ in range(2)]
        if len(said[1]) < 3:
            raise SystemExit("the service did not start; its output is above")
        yield said[1][-1], (data / FIRST_KEY).read_text().strip()
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(LONGEST_END)
        except (
            subprocess.TimeoutExpired
        ):  # it must not outlive this process, because nobody else would end it
            process.kill()
            process.wait()
        process.stdout.close()


@contextmanager
def interrupted() -> Iterator[None]:
    """Turn the first SIGINT or SIGTERM into a KeyboardInterrupt, wherever it occurs; later ones do not disturb the end.

    A handler that set a `threading.Event` could deadlock on the event's lock, held by the interrupted code.
    """
    numbers = (signal.SIGINT, signal.SIGTERM)

    def interrupt(*_: object) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    with handled(interrupt, *numbers):
        yield


def reader_key(data: Path) -> str:
    """Return a key that can only read."""
    command = [sys.executable, "-m", "solid_bandits", "keys", "create", "reader", "--name", "page"]
    ended = subprocess.run([*command, "--data", str(data)], stdout=subprocess.PIPE, text=True, check=True)
    return ended.stdout.split()[-1]


def play(data: Path, port: int, per_second: float, seconds: float | None) -> None:
    """Serve, send requests and show the page until Ctrl-C or for some seconds."""
    with served(data, port) as (url, key):
        with Client(url, key) as admin:
            for name, spec in SPECS.items():
                admin.create(name, **spec)
        shown = reader_key(data)
        crowd = [
            Traffic(url, key, name, per_second / len(SPECS), seed) for seed, name in enumerate(SPECS, start=1)
        ]
        for one in crowd:
            one.start()
        begun = time.monotonic()
        try:
            print(f"\n  page  {url}/\n  key   {shown}\n\nCtrl-C ends it.", flush=True)
            while not any(one.failure for one in crowd):
                time.sleep(0.2)
                if seconds is not None and time.monotonic() - begun > seconds:
                    break
        except KeyboardInterrupt:
            pass
        for one in crowd:
            one.end()
        for one in crowd:
            one.join(LONGEST_END)  # its client gives up sooner
    total = [sum(getattr(one, name) for one in crowd) for name in ("decisions", "rewards")]
    print(f"\nended: {total[0]:,} decisions, {total[1]:,} rewards", flush=True)
    for one in crowd:
        if one.failure is not None:
            raise one.failure


def main() -> None:
    """Run the demonstration from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=8080, help="0 takes a free one")
    parser.add_argument("--per-second", type=float, default=50, help="decisions, of both models together")
    parser.add_argument(
        "--seconds", type=float, default=None, help="end automatically after this many seconds"
    )
    parser.add_argument(
        "--data", type=Path, default=None, help="a new directory to keep; otherwise a temporary one"
    )
    given = parser.parse_args()
    with ExitStack() as stack:
        data = given.data or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(interrupted())
        try:
            play(data, given.port, given.per_second, given.seconds)
        except KeyboardInterrupt:
            sys.exit("interrupted before there was a page")


if __name__ == "__main__":
    main()
