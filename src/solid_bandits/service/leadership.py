"""Several nodes on one database: leadership of models, and takeover by another node.

A node leads a model while its own session holds the model's advisory lock. On gaining the lock it raises the model's
*fence* by one, and writes with that number from then on. Each node renews a lease, a time of the database's clock, as
long as its own event loop responds.

**Taking over.** A lock ends with its session, so that of a dead node is free at once, or as soon as the server notices.
A node that is paused or hangs keeps its session and its lock, but not its lease: when the lease has run out, others end
all sessions of that node (`pg_terminate_backend`) and one of them gains the lock.

**Why this is safe.** Safety does not depend on the lock, the lease or any clock: those decide only *when* another node
takes over, and a wrong guess costs time, not data. It depends on the fence.

1. A write and a takeover both update the model's row in `leases`, so one of them comes first. If the write does, its
   events are committed before the new leader reads the log, and it has them. If the takeover does, the write finds
   another fence, and writes nothing (`postgres.APPEND`: one statement, in which events are inserted only if the row
   still has the fence and the end of the log that the writer knows).
2. So the log of a model is written by one leader after the other, each of which began from all that those before it
   had written: its state is that of the log, bit for bit, as replaying gives it.
3. An answer is sent after its commit, so what was acknowledged is in the log that the next leader reads. What was not
   may be there or not; the client repeats the call with the same id, and gets the decision of then or a new one,
   whichever node answers. The ids of decisions and rewards are unique in the database besides.
4. A leader of the past that goes on (SIGCONT) holds a model that may be behind. Decisions and receipts that it would
   answer from memory, too, are checked against the fence before they are sent; the first refusal makes it throw the
   model away. Numbers of a model's page are not checked: they may be as old as the last look at who leads.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

import psycopg
from psycopg import errors

from solid_bandits.live.postgres import Connection, PostgresStore

LOCKS = 0x5B01
"""First half of the keys of advisory locks; the second is the model's number."""
LEASE = 5.0
"""Seconds."""
BEATS = 5
"""Number of renewals, and of checks on what others lead, per lease."""
NOWHERE = (None, "0.0.0.0", "::")
"""Hosts that a node may listen at but cannot be reached at."""
LONGEST_END = 30.0
"""Seconds in which leads are given up; a hanging database would otherwise be waited for forever."""
FORGOTTEN = "1 day"
"""Time after which a node that is gone leaves the table."""

SURVEY = """
SELECT s.model, s.fence, n.address, h.node, h.pid, coalesce(m.until < clock_timestamp(), true)
FROM leases s
LEFT JOIN nodes n ON n.node = s.node
LEFT JOIN (
  SELECT l.objid::bigint AS model, l.pid, a.application_name AS node
  FROM pg_locks l JOIN pg_stat_activity a USING (pid)
  WHERE l.locktype = 'advisory' AND l.granted AND l.classid = %s AND l.objsubid = 2
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND a.application_name LIKE 'solid-bandits-%%'
) h ON h.model = s.model
LEFT JOIN nodes m ON m.node = h.node
ORDER BY s.model
"""
END = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = %s AND datname = current_database() AND pid <> pg_backend_pid()
"""

logger = logging.getLogger("solid_bandits.service")


class _Led(NamedTuple):
    model: int
    fence: int
    address: str | None
    """Address of the node that last raised the fence."""
    holder: str | None
    """Node whose session holds the lock."""
    pid: int | None
    """Process id of that session."""
    late: bool
    """Whether the lease of the holder has run out."""


class Leadership:
    """Models that this node leads, and the addresses of the other leaders.

    Args:
        store: store of this node.
        address: address at which other nodes reach this one, `http://host:port`.
        lease: seconds without renewal after which others may take over.
    """

    def __init__(self, store: PostgresStore, address: str, lease: float = LEASE) -> None:
        if lease <= 0:
            raise ValueError(f"lease must be > 0 seconds, got {lease:g}")
        place = urlsplit(address)
        if place.scheme not in ("http", "https") or place.hostname in NOWHERE or place.port == 0:
            raise ValueError(
                f"advertise must be where other nodes reach this one, such as http://10.0.0.5:8080, got {address!r}"
            )
        self.address = address
        self.lease = lease
        self._store = store
        store.refused = self.refused
        self._mine: dict[int, int] = {}  # model -> fence
        self._others: dict[int, str] = {}  # model -> address
        self._session: Connection | None = None
        self._lock = threading.RLock()  # guards the session and what it leads
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._answers: Callable[[], bool] = lambda: True

    def leader(self, model: int) -> str | None:
        """See `Nodes`."""
        return None if model in self._mine else self._others.get(model)

    def leads(self, model: int) -> bool:
        """See `Nodes`."""
        return model in self._mine

    def fence(self, model: int) -> int | None:
        """See `Nodes`."""
        if (
            model not in self._mine and model not in self._others
        ):  # a new model, or its leader has given it up
            with suppress(psycopg.Error), self._lock:
                if self._session is not None and not self._session.closed:
                    self._try(self._session, model)
        return self._mine.get(model)

    def refused(self, model: int, fence: int) -> None:
        """Handle the refusal of a write with this number: another node leads, so the session with all its locks was
        ended.
        """
        with self._lock:
            if self._mine.get(model) == fence:
                self._lose()

    def start(self) -> None:
        """Start as `Nodes` says; called inside an event loop, whose health is watched."""
        with suppress(RuntimeError):
            self._answers = _watch(asyncio.get_running_loop(), self.lease)
        self.beat()
        with suppress(psycopg.Error), self._lock:
            if self._session is not None:
                self._session.execute(
                    "DELETE FROM nodes WHERE until < clock_timestamp() - %s::interval", (FORGOTTEN,)
                )
        self._thread = threading.Thread(target=self._keep, name="leadership", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """See `Nodes`."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(LONGEST_END)
        if not self._lock.acquire(timeout=LONGEST_END):
            logger.error(
                "the database does not answer; what this node leads is taken over when its lease ends"
            )
            return
        try:
            if self._session is not None:
                with suppress(psycopg.Error):
                    self._session.execute("DELETE FROM nodes WHERE node = %s", (self._store.node,))
            self._lose()
        finally:
            self._lock.release()

    def _keep(self) -> None:
        while not self._ended.wait(self.lease / BEATS):
            self.beat()

    def beat(self) -> None:
        """Renew the lease, and lead models that nobody leads. Without the database nothing is led."""
        if not self._answers():
            return  # others will rightly end the sessions of this node
        with self._lock:
            had_one = self._session is not None
            try:
                self._renew_and_survey()
            except psycopg.Error:
                self._lose()
                if had_one:  # it was ended, by a restart or by a node that leads now
                    with suppress(psycopg.Error):
                        self._renew_and_survey()

    def _renew_and_survey(self) -> None:
        session = self._connected()
        self._renew(session)
        self._survey(session)

    def _connected(self) -> Connection:
        if self._session is None or self._session.closed:
            self._lose()  # the locks ended with the session
            self._session = self._store.connect()
            # Whatever it waits for, it must not miss its lease.
            self._session.execute(
                "SELECT set_config('lock_timeout', %(ms)s, false), set_config('statement_timeout', %(ms)s, false)",
                {"ms": str(max(1, int(self.lease * 500)))},
            )
        return self._session

    def _lose(self) -> None:
        self._mine.clear()
        if self._session is not None:
            self._session.close()
            self._session = None

    def _renew(self, session: Connection) -> None:
        session.execute(
            "INSERT INTO nodes VALUES (%(node)s, %(address)s, clock_timestamp() + %(lease)s * interval '1 second') "
            "ON CONFLICT (node) DO UPDATE SET until = excluded.until",
            {"node": self._store.node, "address": self.address, "lease": self.lease},
        )

    def _survey(self, session: Connection) -> None:
        """Find out which nodes lead what. Lead models without a leader; end the sessions of a node whose lease ran
        out.
        """
        rows = [_Led(*row) for row in session.execute(SURVEY, (LOCKS,)).fetchall()]
        if any(self._mine.get(row.model, row.fence) != row.fence for row in rows):
            return self._lose()
        self._others = {
            row.model: row.address
            for row in rows
            if row.address not in (None, self.address) and row.model not in self._mine
        }
        ended: set[str] = set()
        for row in rows:
            if row.model in self._mine:
                continue
            if row.holder == self._store.node:  # a session of this node whose connection was lost
                session.execute("SELECT pg_terminate_backend(%s)", (row.pid,))
            elif row.holder is not None and row.late:
                if row.holder not in ended:
                    session.execute(END, (row.holder,))
                    ended.add(row.holder)
            elif row.holder is not None:
                continue
            self._retry_lock(session, row)

    def _retry_lock(self, session: Connection, row: "_Led") -> None:
        """Try to lead, for as long as it may take an ended session to release its lock."""
        deadline = time.monotonic() + (0.0 if row.holder is None else self.lease / 4)
        while not self._try(session, row.model) and time.monotonic() < deadline:
            time.sleep(0.01)

    def _try(self, session: Connection, model: int) -> bool:
        row = session.execute("SELECT pg_try_advisory_lock(%s, %s)", (LOCKS, model)).fetchone()
        if row is None or not row[0]:
            return False
        try:
            found = session.execute(
                "UPDATE leases SET fence = fence + 1, node = %s WHERE model = %s RETURNING fence",
                (self._store.node, model),
            ).fetchone()
        except (errors.LockNotAvailable, errors.QueryCanceled):
            found = None  # a last write of the former leader holds the row; try next time
        if found is None:
            session.execute("SELECT pg_advisory_unlock(%s, %s)", (LOCKS, model))
            return False
        self._others.pop(model, None)
        self._mine[model] = found[0]
        return True


def _watch(loop: asyncio.AbstractEventLoop, patience: float) -> Callable[[], bool]:
    """Return a function that says whether an event loop has answered in time; each call also asks it again."""
    last = time.monotonic()

    def heard() -> None:
        nonlocal last
        last = time.monotonic()

    def answers() -> bool:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(heard)
        return time.monotonic() - last < patience

    return answers
