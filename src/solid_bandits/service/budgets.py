"""Budgets of callers, each with its unit: the only place where they are stated.

The table of docs/service.md, the schema's description and `solid_bandits_budget` of `GET /metrics` are made from it.
"""

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

MIB = 1 << 20


def _budget(default: float, unit: str, words: str, status: int | None) -> Any:
    return field(default=default, metadata={"unit": unit, "words": words, "status": status})


@dataclass(frozen=True)
class Budgets:
    """Budgets of one key, one model and all together."""

    rate: float = _budget(1_000.0, "requests per second", "requests of a key", 429)
    key_bytes: float = _budget(
        8.0 * MIB, "bytes per second", "bodies of a key; one second's may come at once", 429
    )
    key_calls: int = _budget(256, "calls", "calls of a key that are not answered yet", 429)
    key_memory: int = _budget(64 * MIB, "bytes", "memory of these, about", 429)
    waiting_calls: int = _budget(4_096, "calls", "calls of all keys that wait for the writer", 503)
    calls_memory: int = _budget(
        256 * MIB, "bytes", "memory of calls of all keys that are not answered yet, about", 503
    )
    largest_body: int = _budget(4 * MIB, "bytes", "body of a request", 413)
    body_values: int = _budget(200_000, "values", "numbers and words in a body", 413)
    group_calls: int = _budget(256, "calls", "calls of one model that share a commit", None)
    group_seconds: float = _budget(
        0.01, "seconds", "work on one model, before it is committed and another model has its turn", None
    )
    decisions_memory: int = _budget(
        256 * MIB, "bytes",
        "memory of remembered decisions, in equal parts for all models; older ones are read from the log", None,
    )  # fmt: skip
    windows: int = _budget(
        10_000_000, "decisions", "windows of all models together, each open decision taking about 1 kB", 507
    )
    stats_seconds: float = _budget(1.0, "seconds", "for which the statistics of a model are kept", None)
    report_seconds: float = _budget(120.0, "seconds", "work on one evaluation or log", 503)
    report_events: int = _budget(1_000_000, "events", "that one evaluation or log is made from", 422)
    report_newest: int = _budget(
        100_000, "events", "the newest, that it is made from unless told otherwise", None
    )
    report_bytes: int = _budget(512 * MIB, "bytes", "features and probabilities of these", 422)
    reports_waiting: int = _budget(4, "calls", "evaluations and logs that wait for the one at work", 503)
    end_seconds: float = _budget(
        90.0, "seconds", "from SIGTERM to the end of the process, whatever hangs", None
    )


class Stated(NamedTuple):
    """One budget."""

    name: str
    value: float
    unit: str
    words: str
    status: int | None
    """Status of the answer to a call that exceeds it; None if it is not refused."""


def stated(budgets: Budgets) -> list[Stated]:
    """Return all budgets, in the order of their declaration."""
    return [
        Stated(one.name, getattr(budgets, one.name), **one.metadata)
        for one in fields(Budgets)
        if one.metadata
    ]


def table(budgets: Budgets) -> str:
    """Return them as a table in Markdown."""
    rows = [
        f"| `{one.name}` | {one.value:,.10g} {one.unit} | {one.words} | {one.status or 'waits'} |"
        for one in stated(budgets)
    ]
    return "\n".join(["| budget | value | of what | over it |", "|---|---|---|---|", *rows])
