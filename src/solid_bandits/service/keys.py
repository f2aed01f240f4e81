"""Keys and their roles. A key is random; the store holds its SHA-256, so that reading the store reveals no key."""

import asyncio
import hashlib
import hmac
import math
import os
import secrets
import time
from pathlib import Path
from typing import Literal, get_args

from solid_bandits._internal import checks
from solid_bandits.live.arguments import now
from solid_bandits.live.store import KeyRow, Store

Role = Literal["reader", "writer", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Roles from the least to the greatest: each includes those before it."""
FRESH = 1.0
"""Seconds for which keys are believed without querying the store: a revoked one works at most this long."""
APART = 0.05
"""Least number of seconds between two queries about unknown keys, which anybody may send."""
PREFIX = "sb"
FIRST_KEY = "admin.key"
"""File name of the first key, in the directory of the log."""


def create(store: Store, role: str, name: str) -> tuple[str, KeyRow]:
    """Make a key; it is returned here once and stored nowhere."""
    checks.choice("role", role, list(ROLES))
    if not 0 < len(name) <= 100 or not name.isprintable():
        raise ValueError(f"name must be 1 to 100 printable characters, got {name!r}")
    identity = secrets.token_hex(6)
    key = f"{PREFIX}_{identity}_{secrets.token_urlsafe(32)}"
    row = KeyRow(identity, name, role, digest(key), now(), None)
    store.add_key(row)
    return key, row


def create_in_file(store: Store, path: Path) -> None:
    """Make the first admin key and write it to a new file that only its owner may read.

    Not to standard output, which service managers keep in logs that many can read. Raises a ValueError if the file
    fails.
    """
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ValueError(
            f"key_file must be a new file, got {os.fspath(path)!r} ({error.strerror}); give another with --key-file"
        ) from None
    try:
        key, _ = create(store, "admin", "first")
        with os.fdopen(file, "w") as written:
            written.write(f"{key}\n")
            written.flush()
            os.fsync(written.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def digest(key: str) -> bytes:
    """Return the stored hash of a key, which has 256 random bits, so that nothing slower than SHA-256 is needed."""
    return hashlib.sha256(key.encode()).digest()


class Keyring:
    """The keys of a store, as a server holds them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: dict[str, KeyRow] = {}
        self._read = -math.inf
        self._asking = asyncio.Lock()

    @property
    def stale(self) -> bool:
        """Whether the store must be queried again."""
        return time.monotonic() - self._read >= FRESH

    async def known(self, key: str) -> KeyRow | None:
        """Return the row of a key; None if it is unknown or revoked. A new key is known at once."""
        if self.stale:
            async with self._asking:  # one task queries for all that wait
                if self.stale:
                    await asyncio.to_thread(self.refresh)
        found, asked = self.find(key), time.monotonic()
        if found is None:
            async with self._asking:
                if self._read < asked:  # otherwise an earlier task has already queried
                    await asyncio.sleep(self._read + APART - asked)
                    await asyncio.to_thread(self.refresh)
            found = self.find(key)
        return found

    def refresh(self) -> None:
        """Read the keys; may wait for the store."""
        begun = time.monotonic()
        rows = self._store.keys()
        self._rows = {row.id: row for row in rows if row.revoked is None}
        self._read = begun

    def find(self, key: str) -> KeyRow | None:
        """Return the row of a key; None if it is unknown or revoked."""
        parts = key.split("_", 2)
        row = self._rows.get(parts[1]) if len(parts) == 3 and parts[0] == PREFIX else None
        # Compared even if there is no such row, so that timing reveals nothing about ids.
        same = hmac.compare_digest(digest(key), bytes(32) if row is None else row.digest)
        return row if same else None


def may(row: KeyRow, role: Role) -> bool:
    """Return whether a key has this role, or a greater one."""
    return row.role in ROLES and ROLES.index(row.role) >= ROLES.index(role)
