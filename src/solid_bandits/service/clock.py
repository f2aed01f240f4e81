"""The time of events: the wall clock's, unless it jumps. Waits are measured by a clock that never does."""

import logging
import threading
import time

JUMP = 5_000_000
"""Microseconds between wall clock and monotonic clock that count as a jump; smaller differences are followed slowly."""
SLEW = 100
"""Largest correction is one part in this many of the elapsed time, so that durations are right to one per cent."""
SETTLED = 60_000_000
"""Microseconds after which a wall clock that has jumped, and is steady since, is believed."""
logger = logging.getLogger("solid_bandits.service")


def wall() -> int:
    """Return the wall clock's time, in microseconds since 1970."""
    return time.time_ns() // 1_000


def monotonic() -> int:
    """Return the time of a clock that never jumps, in microseconds."""
    return time.monotonic_ns() // 1_000


class Clock:
    """Evenly passing times for events. May be shared between threads.

    A jump of the wall clock is not followed at first. After the clock has been steady for a minute it is believed, and
    the jump is added to `shift`, so that a wait measured by these times can be corrected for it.
    """

    def __init__(self) -> None:
        self.shift = 0
        """Total microseconds by which these times have been changed."""
        self._lock = threading.Lock()
        self._stamp, self._read = wall(), monotonic()
        self._jumped: tuple[int, int] | None = None
        """When the wall clock was found to have jumped, and by how much."""

    def now(self) -> int:
        """Return the time, in microseconds since 1970."""
        with self._lock:
            read = monotonic()
            passed = read - self._read
            off = wall() - self._stamp - passed
            step = 0
            if abs(off) <= JUMP:
                step = max(-(passed // SLEW), min(off, passed // SLEW))
                self._jumped = None
            elif self._jumped is None or abs(off - self._jumped[1]) > JUMP:
                self._jumped = read, off
                logger.warning(
                    "the clock has jumped by %+.0f s; no decision expires by that, and times go on as before",
                    off / 1e6,
                )
            elif read - self._jumped[0] >= SETTLED:
                step, self._jumped = off, None
                self.shift += off
                logger.warning("the clock stays where it jumped to: times are set by %+.0f s", off / 1e6)
            self._stamp += passed + step
            self._read = read
            return self._stamp
