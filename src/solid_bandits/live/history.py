"""Destination of a bandit's closed decisions: nowhere, memory, or (`live.stored`) a store."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from solid_bandits._internal import extras
from solid_bandits.core.decision import Decision
from solid_bandits.live.events import DECISION

if TYPE_CHECKING:  # tables are loaded when there are some
    import polars as pl

ROWS = 10_000
"""Decisions that wait as Python objects, at most, before they become a table."""


class History:
    """No log is kept. Other histories keep one."""

    known = "the last {window:,} decisions"
    """Whose ids are known."""

    def made(self, decision: Decision, kind: str = DECISION) -> None:
        """Record a decision that was made, or adopted from another log."""

    def closed(self, decision: Decision) -> None:
        """One has its outcome; the features of all its arms go as soon as they are logged."""
        decision._offered = None

    def changed(self, sequence: int, time: int, change: Mapping[str, Any]) -> None:
        """An arm was added or removed."""

    def find(self, event_ids: Sequence[str]) -> dict[str, Decision]:
        """Return decisions that the bandit does not remember, by their ids."""
        return {}

    def select(
        self, event_ids: Sequence[str] | None, before: int | None, subject: str | None
    ) -> dict[str, None]:
        """Return the ids of logged decisions: some, those before a time, or those about someone."""
        return {}

    def erase(self, event_ids: Sequence[str], sequence: int, time: int) -> None:
        """Erase all events of these ids; that is event number `sequence`."""

    def table(self, opened: Sequence[Decision], policy: str) -> "pl.DataFrame":
        """Return the log, including these open decisions."""
        raise ValueError("log must be kept to be read: this bandit was made with log=False")

    def commit(self) -> None:
        """Write what waits to be written."""

    def close(self) -> None:
        """Let go of files."""


class MemoryHistory(History):
    """Closed decisions in memory: the last ones as they are, the others as tables."""

    def __init__(self) -> None:
        self._recent: list[Decision] = []
        self._tables: list[pl.DataFrame] = []
        """Columns of the table: those of a log, and the subject."""

    def closed(self, decision: Decision) -> None:
        """See `History`."""
        self._recent.append(decision)
        if len(self._recent) >= ROWS and extras.present("polars"):
            self._pack()

    def _pack(self) -> None:
        import polars as pl

        from solid_bandits.logs.records import as_table

        if self._recent:
            subjects = pl.Series("subject", [one.subject for one in self._recent], dtype=pl.String)
            self._tables.append(as_table(self._recent).with_columns(subjects))
            for decision in self._recent:
                decision._offered = None
            self._recent = []

    def select(
        self, event_ids: Sequence[str] | None, before: int | None, subject: str | None
    ) -> dict[str, None]:
        """See `History`."""
        if not extras.present("polars"):
            self._recent = list({one.event_id: one for one in self._recent}.values())
            return {
                one.event_id: None
                for one in self._recent
                if one.event_id in (event_ids or ())
                or (subject is not None and one.subject == subject)
                or (before is not None and one.time < before)
            }
        import polars as pl

        from solid_bandits.logs.files import in_order
        from solid_bandits.logs.schema import TIME

        self._pack()
        if not self._tables:
            return {}
        self._tables = [
            in_order(pl.concat(self._tables))
        ]  # of an id that was used again, the last decision alone
        wanted = pl.col("event_id").is_in(event_ids or [])
        if subject is not None:
            wanted = pl.col("subject") == subject
        elif before is not None:
            wanted = pl.col("time") < pl.lit(before).cast(TIME)
        return dict.fromkeys(self._tables[0].filter(wanted)["event_id"].to_list())

    def erase(self, event_ids: Sequence[str], sequence: int, time: int) -> None:
        """See `History`."""
        if self._recent:  # `select` has made a table of them, where there are tables
            gone = set(event_ids)
            self._recent = [one for one in self._recent if one.event_id not in gone]
        if self._recent or not self._tables:
            return
        import polars as pl

        kept = [table.filter(~pl.col("event_id").is_in(event_ids)) for table in self._tables]
        self._tables = [table for table in kept if table.height]

    def table(self, opened: Sequence[Decision], policy: str) -> "pl.DataFrame":
        """See `History`."""
        import polars as pl

        from solid_bandits.logs.files import in_order
        from solid_bandits.logs.records import as_table
        from solid_bandits.logs.schema import COLUMNS, empty

        tables = [table.select(*COLUMNS) for table in self._tables]
        whole = pl.concat([empty(), *tables, as_table(self._recent), as_table(opened)])
        return in_order(whole.with_columns(pl.lit(policy).alias("policy")))
