"""What a model's page shows, kept up event by event: no number here is read from the log again.

Rates by the minute, each arm's share and mean reward, and what the policy earns beside uniform and Greedy choices
(`ope.running`, which also says what the intervals are). All of it follows from the events and their times, so that a
replay gives the same numbers.
"""

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from solid_bandits import _words
from solid_bandits._types import Floats, Plain
from solid_bandits.ope.running import MOMENTS, SERIES, Mean, Running, half_width, mean_of, take_all

CONFIDENCE = 0.95
BLOCK = 256
"""Rows that are taken in at once: a decision does not wait for arithmetic."""
MINUTES = 60
"""That rates are shown for."""
MOST_ARMS = 10_000
"""Whose numbers are kept; decisions for others are counted together."""
SHOWN = 100
"""Arms in an answer, those with most decisions."""
MINUTE = 60_000_000
"""In microseconds."""

Row = tuple[str, Floats, Floats, int, float]
"""Arm, probabilities, features, place and reward of a decision that has one."""


class Stats:
    """The numbers of one model. It may be shared by threads.

    Args:
        dim: d, the number of features of an arm.
    """

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._running = Running(dim)
        self._queue: list[Row] = []
        self._arms: dict[str, int] = {}  # places in the next two
        self._chosen: list[int] = []
        self._moments = np.zeros((16, MOMENTS))  # of the rewards
        self._minutes: dict[int, list[int]] = {}  # decisions and rewards
        self._decisions = self._defaulted = self._expired = self._others = 0
        self._lock = threading.RLock()

    def decided(self, time: int, arms: Sequence[Any], place: int) -> None:
        """A new decision, at a time in microseconds since 1970, for the arm at a place among those on offer."""
        with self._lock:
            self._decisions += 1
            self._minute(time)[0] += 1
            name = str(arms[place])
            known = self._arms.get(name)
            if known is not None:
                self._chosen[known] += 1
            elif len(self._arms) < MOST_ARMS:
                self._add_arm(name, 1)
            else:
                self._others += 1

    def settled(
        self,
        time: int,
        arms: Sequence[Any],
        place: int,
        probabilities: Floats,
        features: Floats,
        reward: float | None,
        defaulted: bool = False,
    ) -> None:
        """A decision was closed: with its reward, with the default, or without any."""
        with self._lock:
            self._defaulted += defaulted and reward is not None
            if reward is None:
                self._expired += 1
                return
            self._minute(time)[1] += not defaulted
            self._queue.append((str(arms[place]), probabilities, features, place, reward))
            if len(self._queue) >= BLOCK:
                self._take_in()

    def answer(self, now: int) -> Plain:
        """The numbers as of a time, in microseconds since 1970, as plain data."""
        with self._lock:
            self._take_in()
            shown = sorted(self._arms.items(), key=lambda item: -self._chosen[item[1]])[:SHOWN]
            return {
                "confidence": CONFIDENCE,
                "decisions": self._decisions,
                "rewards": self._running.rows - self._defaulted,
                "defaulted": self._defaulted,
                "expired": self._expired,
                "minutes": self._rates(now),
                "arms": [
                    {
                        "arm": arm,
                        "decisions": self._chosen[place],
                        "share": _plain(_share(self._chosen[place], self._decisions)),
                        "rewards": int(self._moments[place, 0]),
                        "mean": _plain(mean_of(self._moments[place], CONFIDENCE)),
                    }
                    for arm, place in shown
                ],
                "other_arms": {
                    "arms": len(self._arms) - len(shown) + (self._others > 0),
                    "decisions": self._decisions - sum(self._chosen[place] for _, place in shown),
                },
                "values": self._values(),
                "notes": self._notes(),
            }

    def state(self) -> Plain:
        """All of it, as plain data, for a snapshot."""
        with self._lock:
            self._take_in()
            return {
                "dim": self._dim,
                "running": self._running.state(),
                "arms": {
                    arm: [self._chosen[place], *self._moments[place].tolist()]
                    for arm, place in self._arms.items()
                },
                "minutes": [[minute, *counts] for minute, counts in self._minutes.items()],
                "counts": [self._decisions, self._defaulted, self._expired, self._others],
            }

    @classmethod
    def restored(cls, plain: Plain) -> "Stats":
        """What `state` described; it goes on exactly. A ValueError where it is not that."""
        try:
            found = cls(plain["dim"])
            found._running = Running.restored(plain["dim"], plain["running"])
            for arm, (chosen, *moments) in plain["arms"].items():
                if len(moments) != MOMENTS or not np.isfinite(moments).all():
                    raise ValueError(f"stats must have {MOMENTS} moments of each arm, got {moments}")
                place = found._add_arm(str(arm), int(chosen))  # first: it may put a larger table in place
                found._moments[place] = moments
            found._minutes = {int(minute): [int(a), int(b)] for minute, a, b in plain["minutes"]}
            found._decisions, found._defaulted, found._expired, found._others = map(int, plain["counts"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"stats must be what Stats.state gave, got {error}") from None
        return found

    def _take_in(self) -> None:
        if not self._queue:
            return
        names, probabilities, features, places, rewards = map(list, zip(*self._queue, strict=True))
        self._queue.clear()
        self._running.add(features, probabilities, places, rewards)
        known = [
            (self._arms[name], reward)
            for name, reward in zip(names, rewards, strict=True)
            if name in self._arms
        ]
        take_all(
            self._moments,
            np.array([one for one, _ in known], dtype=np.int64),
            np.array([one for _, one in known]),
        )

    def _add_arm(self, name: str, chosen: int) -> int:
        place = self._arms[name] = len(self._arms)
        self._chosen.append(chosen)
        if place == len(self._moments):
            self._moments = np.concatenate([self._moments, np.zeros_like(self._moments)])
        return place

    def _minute(self, time: int) -> list[int]:
        minute = time // MINUTE
        counts = self._minutes.get(minute)
        if counts is None:
            counts = self._minutes[minute] = [0, 0]
            if len(self._minutes) > 2 * MINUTES:
                for old in sorted(self._minutes)[: -MINUTES - 1]:
                    del self._minutes[old]
        return counts

    def _rates(self, now: int) -> Plain:
        last = now // MINUTE
        counts = [self._minutes.get(minute, [0, 0]) for minute in range(last - MINUTES, last + 1)]
        return {
            "last": last * 60,  # when the last, which is not over, began: seconds since 1970
            "elapsed": now % MINUTE / 1e6,  # and how many seconds of it are over
            "decisions": [decisions for decisions, _ in counts],
            "rewards": [rewards for _, rewards in counts],
        }

    def _values(self) -> Plain:
        found = {
            name: mean_of(moments, CONFIDENCE)
            for name, moments in zip(SERIES, self._running.moments, strict=True)
        }
        uniform, greedy = self._running.unsupported.tolist()
        nothing = Mean(None, None, None)
        if uniform:
            found["uniform"] = found["over_uniform"] = nothing
        if greedy:
            found["greedy"] = found["over_greedy"] = nothing
        return {"rows": self._running.rows, **{name: _plain(mean) for name, mean in found.items()}}

    def _notes(self) -> list[str]:
        """What a reader should know before he believes the numbers."""
        notes = []
        for name, rows in zip(("uniform", "Greedy"), self._running.unsupported.tolist(), strict=True):
            if rows:
                notes.append(
                    f"The log cannot say what {name} would have earned: in {_words.count(rows, 'decision')} an arm "
                    f"that it might choose had probability 0. Make the model with a floor, such as 0.05."
                )
        waiting = self._decisions - self._running.rows - self._expired
        if waiting > 0.05 * self._decisions:
            notes.append(
                f"Still open, and in no mean: {waiting:,} of {self._decisions:,} decisions. Where good news comes "
                "sooner than bad, means are too high."
            )
        if self._expired:
            notes.append(
                f"Expired without a reward, and in no mean: {self._expired:,} of {self._decisions:,} decisions."
            )
        return notes


def _share(part: int, whole: int) -> Mean:
    """Of all decisions, with an interval of the mean probability of the arm; two are added, one of each kind."""
    if whole == 0:
        return Mean(None, None, None)
    share, added = part / whole, (part + 1) / (whole + 2)
    half = math.sqrt(added * (1 - added)) * half_width(whole, 1 - CONFIDENCE)
    return Mean(share, max(share - half, 0.0), min(share + half, 1.0))


def _plain(mean: Mean) -> Plain:
    return mean._asdict()
