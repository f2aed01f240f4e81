"""What a model's page shows, kept up event by event: no number here is read from the log again.

Rates by the minute, each arm's share and mean reward, and what the policy earns beside uniform and Greedy choices
(`ope.running`, which also says what the intervals are), in all and over time.

The mean of an arm's own rewards says little of the arm: a policy that learns offers it where it is good. So beside it
stands the mean weighed by 1 / g, g being the probability with which the arm was chosen,

    Σ r / g / Σ 1 / g,

which estimates what the arm would have earned in all rows in which it was on offer. Its interval is asymptotic (of the
weighed deviations, at all times at once), and there is none below `ENOUGH` effective rewards of the arm.

All of it follows from the events and their times, so that a
replay gives the same numbers.
"""

import math
import threading
from collections import Counter
from collections.abc import Iterable

import numpy as np

from solid_bandits._internal import wording
from solid_bandits._internal.types import Floats, Plain
from solid_bandits.core.decision import EXPIRED, OPEN, Decision
from solid_bandits.ope.running import (
    ENOUGH,
    MOMENTS,
    RAREST,
    SERIES,
    Running,
    add_values,
    half_width,
    mean_of,
)
from solid_bandits.statistics.estimate import UNKNOWN, Estimate

CONFIDENCE = 0.95
BLOCK = 256
"""Rows that are taken in at once: a decision does not wait for arithmetic."""
MINUTES = 60
"""Minutes shown."""
MOST_ARMS = 10_000
"""Whose numbers are kept; decisions for others are counted together."""
SHOWN = 100
"""Arms in an answer, those with most decisions."""
FEWEST = 5
"""Decisions of an arm from which its numbers are shown; fewer would say what single people did."""
BLOCK_NUMBERS = 1 << 18
"""Features of rows that wait to be taken in, about."""
MINUTE = 60_000_000
"""In microseconds."""
WEIGHED = 5
"""Sums of an arm's rewards weighed by w = 1 / g: of w, w², w r, w² r, w² r²."""
POINTS = 20
"""Points of the values over time at most; where there would be more, every other one goes."""
STRETCHES = 24
"""Stretches of time for which decisions of each arm are counted; where there would be more, two become one."""

Row = tuple[str, Floats, Floats, int, float, int]
"""Arm, probabilities, features or expectations, place, reward and its time of a decision that has one."""


class Stats:
    """The numbers of one model. It may be shared by threads.

    Args:
        dim: d, the number of features of an arm; None where features have names: decisions then bring what the bandit
            expected of their arms.
    """

    def __init__(self, dim: int | None) -> None:
        self._dim = dim
        self._running = Running(dim)
        self._queue: list[Row] = []
        self._arms: dict[str, int] = {}  # places in the next two
        self._chosen: list[int] = []
        self._erased: list[int] = []
        """Of the decisions for each arm, how many are no longer in the log."""
        self._moments = np.zeros((16, MOMENTS + WEIGHED))  # of the rewards, and the weighed sums
        self._points: list[list[float]] = []
        """Over time: when, how many rows, and the sums of the policy's, uniform's and Greedy's terms until then."""
        self._every = 1
        """Rows between two points."""
        self._stretch = MINUTE
        """The length of a stretch."""
        self._stretches: dict[int, Counter[str]] = {}
        self._size = 0
        self._minutes: dict[int, list[int]] = {}  # decisions and rewards
        self._decisions = self._defaulted = self._expired = self._others = 0
        self._lock = threading.RLock()

    def take(self, decision: Decision) -> None:
        """Count a decision that was made (it is open), or closed: with its reward, with the default, or without any."""
        if decision.status == OPEN:
            self._decided(decision.time, str(decision.arm))
        else:
            self._closed(decision)

    def _decided(self, time: int, name: str) -> None:
        with self._lock:
            self._decisions += 1
            self._minute(time)[0] += 1
            known = self._arms.get(name)
            if known is not None:
                self._chosen[known] += 1
            elif len(self._arms) < MOST_ARMS:
                self._add_arm(name, 1)
            else:
                self._others += 1
                name = ""  # of which there is no arm
            self._count_in_time(time, name)

    def _count_in_time(self, time: int, name: str) -> None:
        place = time // self._stretch
        self._stretches.setdefault(place, Counter())[name] += 1
        while len(self._stretches) > STRETCHES:
            self._stretch *= 2
            merged: dict[int, Counter[str]] = {}
            for old, counts in sorted(self._stretches.items()):
                merged.setdefault(old // 2, Counter()).update(counts)
            self._stretches = merged

    def _closed(self, one: Decision) -> None:
        reward, defaulted = one.reward, one.status == EXPIRED
        with self._lock:
            self._defaulted += defaulted and reward is not None
            if reward is None:
                self._expired += 1
                return
            assert one.reward_time is not None  # it is closed
            assert one.probabilities is not None
            described = one.offered if self._dim is not None else one.expected
            assert described is not None
            self._minute(one.reward_time)[1] += not defaulted
            self._size = max(self._size, len(one.probabilities))  # a block is as wide as its widest row
            if len(self._queue) * self._size * (self._dim or 1) > BLOCK_NUMBERS:
                self._take_in()
            row = (str(one.arm), one.probabilities, described, one.place, reward, one.reward_time)
            self._queue.append(row)
            if len(self._queue) >= BLOCK:
                self._take_in()

    def forget(self, arms: Iterable[str]) -> None:
        """Decisions for these arms were erased: arms with few or none others are no longer told apart.

        What they earned stays in the sums over all decisions, as in the estimate.
        """
        with self._lock:
            self._take_in()
            for name, count in Counter(arms).items():
                place = self._arms.get(name)
                if place is None:
                    continue
                self._erased[place] += count
                if self._chosen[place] - self._erased[place] < FEWEST:
                    self._drop_arm(name)

    def _drop_arm(self, name: str) -> None:
        """Its place is taken by the last arm."""
        for counts in self._stretches.values():
            counts[""] += counts.pop(name, 0)
        place, last = self._arms.pop(name), len(self._arms)
        self._others += self._chosen[place]
        if place != last:
            moved = next(other for other, where in self._arms.items() if where == last)
            self._arms[moved] = place
            self._chosen[place], self._erased[place] = self._chosen[last], self._erased[last]
            self._moments[place] = self._moments[last]
        self._moments[last] = 0
        del self._chosen[last], self._erased[last]

    def answer(self, now: int) -> Plain:
        """Return the numbers as of a time, in microseconds since 1970, as plain data."""
        with self._lock:
            self._take_in()
            known = [item for item in self._arms.items() if self._chosen[item[1]] >= FEWEST]
            shown = sorted(known, key=lambda item: -self._chosen[item[1]])[:SHOWN]
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
                        "mean": _plain(mean_of(self._moments[place, :MOMENTS], CONFIDENCE)),
                        "adjusted": _plain(self._adjusted(place)),
                        "shares_since": shares,
                    }
                    for (arm, place), shares in zip(shown, self._shares_since(shown), strict=True)
                ],
                "since": [place * self._stretch / 1e6 for place in sorted(self._stretches)],
                "over_time": self._over_time(),
                "other_arms": {
                    "arms": len(self._arms) - len(shown) + (self._others > 0),
                    "decisions": self._decisions - sum(self._chosen[place] for _, place in shown),
                },
                "values": self._values(),
                "notes": self._notes(),
            }

    def state(self) -> Plain:
        """Return everything as plain data, for a snapshot."""
        with self._lock:
            self._take_in()
            return {
                "dim": self._dim,
                "running": self._running.state(),
                "arms": {
                    arm: [self._chosen[place], self._erased[place], *self._moments[place].tolist()]
                    for arm, place in self._arms.items()
                },
                "minutes": [[minute, *counts] for minute, counts in self._minutes.items()],
                "counts": [self._decisions, self._defaulted, self._expired, self._others],
                "points": [self._every, *self._points],
                "stretches": [
                    self._stretch,
                    *([place, dict(counts)] for place, counts in self._stretches.items()),
                ],
            }

    @classmethod
    def restored(cls, plain: Plain) -> "Stats":
        """Restore what `state` returned, exactly; raise a ValueError for anything else."""
        try:
            found = cls(plain["dim"])
            found._running = Running.restored(plain["dim"], plain["running"])
            for arm, (chosen, erased, *moments) in plain["arms"].items():
                if len(moments) != MOMENTS + WEIGHED or not np.isfinite(moments).all():
                    raise ValueError(f"stats must have {MOMENTS + WEIGHED} sums of each arm, got {moments}")
                place = found._add_arm(str(arm), int(chosen))  # first: it may put a larger table in place
                found._erased[place] = int(erased)
                found._moments[place] = moments
            found._minutes = {int(minute): [int(a), int(b)] for minute, a, b in plain["minutes"]}
            found._decisions, found._defaulted, found._expired, found._others = map(int, plain["counts"])
            found._every, *points = plain["points"]
            found._points = [[float(one) for one in point] for point in points]
            found._stretch, *stretches = plain["stretches"]
            found._stretches = {int(place): Counter(counts) for place, counts in stretches}
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"stats must be what Stats.state gave, got {error}") from None
        return found

    def _take_in(self) -> None:
        queue, self._queue = self._queue, []
        self._size = 0
        while queue:  # in parts that end where there is to be a point, whenever somebody asks
            part = self._every - self._running.rows % self._every
            some, queue = queue[:part], queue[part:]
            names, probabilities, features, places, rewards, times = map(list, zip(*some, strict=True))
            self._running.add(features, probabilities, places, rewards)
            self._learn_arms(names, probabilities, places, rewards)
            if self._running.rows % self._every == 0:
                moments = self._running.moments[:3]
                self._points.append([float(times[-1]), *moments[0, :1], *(moments[:, 0] * moments[:, 1])])
                while len(self._points) > POINTS:
                    self._every *= 2
                    self._points = [point for point in self._points if point[1] % self._every == 0]

    def _learn_arms(
        self, names: list[str], probabilities: list[Floats], places: list[int], rewards: list[float]
    ) -> None:
        for name, chances, at, reward in zip(names, probabilities, places, rewards, strict=True):
            place = self._arms.get(name)
            if place is not None and chances[at] >= RAREST:
                weight = 1.0 / float(chances[at])
                square = weight * weight
                self._moments[place, MOMENTS:] += (
                    weight,
                    square,
                    weight * reward,
                    square * reward,
                    square * reward * reward,
                )
        known = [
            (self._arms[name], reward)
            for name, reward in zip(names, rewards, strict=True)
            if name in self._arms
        ]
        add_values(
            self._moments,
            np.array([one for one, _ in known], dtype=np.int64),
            np.array([one for _, one in known]),
        )

    def _adjusted(self, place: int) -> Estimate:
        """The weighed mean of an arm, with an interval where enough effective rewards are in it."""
        weight, square, total, crossed, power = self._moments[place, MOMENTS:].tolist()
        if not weight > 0:
            return UNKNOWN
        mean = total / weight
        _, low, high = self._running.ends
        least = math.inf
        for base in (low, high):  # u = r - low, then high - r
            spread = power - 2 * base * crossed + base * base * square
            least = min(least, (total - base * weight) ** 2 / spread if spread > 0 else 0.0)
        if least < ENOUGH:
            return Estimate(mean)
        deviation = max(power - 2 * mean * crossed + mean * mean * square, 0.0)
        half = math.sqrt(deviation / weight) * half_width(weight, 1 - CONFIDENCE)
        return Estimate(mean, mean - half, mean + half)

    def _shares_since(self, shown: list[tuple[str, int]]) -> list[list[float]]:
        """Of each arm, its share of the decisions since the beginning of each stretch, to the hundredth."""
        counts = [self._stretches[place] for place in sorted(self._stretches)]
        totals = np.cumsum([sum(one.values()) for one in counts][::-1])[::-1]
        found = []
        for name, _ in shown:
            own = np.cumsum([one[name] for one in counts][::-1])[::-1]
            found.append([round(float(share), 2) for share in own / totals])
        return found

    def _over_time(self) -> list[Plain]:
        """What was earned between two points, beside the values of uniform and Greedy choices there."""
        found, before = [], [0.0] * 5
        supported = [True, *(self._running.unsupported == 0).tolist()]
        for point in self._points:
            rows = point[1] - before[1]
            if rows >= FEWEST:
                means = [(now - old) / rows for now, old in zip(point[2:], before[2:], strict=True)]
                named = zip(SERIES, means, supported, strict=False)
                values = {name: mean if known else None for name, mean, known in named}
                found.append({"time": point[0] / 1e6, "rows": int(rows), **values})
                before = point
        return found

    def _add_arm(self, name: str, chosen: int) -> int:
        place = self._arms[name] = len(self._arms)
        self._chosen.append(chosen)
        self._erased.append(0)
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
        found = self._running.values(CONFIDENCE)
        return {"rows": self._running.rows, **{name: _plain(mean) for name, mean in found.items()}}

    def _notes(self) -> list[str]:
        """Return warnings to read before the numbers."""
        notes = []
        for name, rows in zip(("uniform", "Greedy"), self._running.unsupported.tolist(), strict=True):
            if rows:
                notes.append(
                    f"The log cannot say what {name} would have earned: in {wording.count(rows, 'decision')} an arm "
                    f"that it might choose had probability 0. Make the model with a floor, such as 0.05."
                )
        notes.extend(self._running.notes())
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


def _share(part: int, whole: int) -> Estimate:
    """Return the share over all decisions, with an interval of the arm's mean probability; one of each kind is
    added.
    """
    if whole == 0:
        return UNKNOWN
    share, added = part / whole, (part + 1) / (whole + 2)
    half = math.sqrt(added * (1 - added)) * half_width(whole, 1 - CONFIDENCE)
    return Estimate(share, max(share - half, 0.0), min(share + half, 1.0))


def _plain(mean: Estimate) -> Plain:
    return mean._asdict()
