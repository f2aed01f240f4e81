"""The log of a model as a table and as files, and what it says of other policies."""

import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from solid_bandits import logs, ope
from solid_bandits.live.journal import as_table
from solid_bandits.policies.contract import DecisionPolicy
from solid_bandits.policies.naming import by_name
from solid_bandits.service import events
from solid_bandits.service.schemas import Estimate, EvaluationAnswer, PolicyValue, plain_number
from solid_bandits.service.store import DECISION, EXPIRY, Event, Store

NEWEST = 100_000
"""Events that are read for one answer, unless told otherwise."""
MOST = 1_000_000
"""Events that one answer may be asked from."""
LARGEST = 512 << 20
"""Bytes of features and probabilities in one answer: it is made in memory."""
PART = 10_000
"""Decisions that are made a table of at a time."""


def table_of(store: Store, model: int, policy: str, after: int, until: int) -> pl.DataFrame:
    """The decisions with sequence numbers after one and until another, with their rewards, also where these are later.

    Its columns are those of `sb.logs`; erased events are not there.
    """
    closings: dict[str, Event] = {}
    decisions: list[Event] = []
    size = 0
    parts = [logs.schema.empty()]

    def finish() -> None:
        missing = [one.event_id for one in decisions if one.event_id not in closings]
        later = store.find(model, [one for one in missing if one is not None])
        closings.update({one.event_id: one for one in later if one.event_id and one.kind != DECISION})
        parts.append(as_table([_row(one, closings.get(one.event_id or ""), policy) for one in decisions]))
        decisions.clear()

    for event in store.read(model, after, until):
        if event.kind == DECISION:
            decisions.append(event)
            size += len(event.numbers or b"")
            if size > LARGEST:
                raise ValueError(
                    f"until must be at most {event.sequence - 1}: an answer has {LARGEST >> 20} MiB at most"
                )
        elif event.event_id is not None:
            closings[event.event_id] = event
        if len(decisions) >= PART:
            finish()
    finish()
    return pl.concat(parts)


def _row(event: Event, closing: Event | None, policy: str) -> dict[str, Any]:
    decided = events.decided_in(event)
    reward = None if closing is None else events.reward_in(closing)
    return {
        "event_id": event.event_id,
        "sequence": event.sequence,
        "time": event.time,
        "arms": [str(arm) for arm in decided.arms],
        "features": decided.features,
        "context": None,
        "probabilities": decided.probabilities,
        "arm": str(decided.arms[decided.place]),
        "probability": float(decided.probabilities[decided.place]),
        "explored": decided.explored,
        "reward": reward,
        "defaulted": None if closing is None or reward is None else closing.kind == EXPIRY,
        "reward_sequence": None if closing is None else closing.sequence,
        "reward_time": None if closing is None else closing.time,
        "policy": policy,
        "model_version": decided.version,
    }


def as_file(table: pl.DataFrame, kind: str) -> bytes:
    """The bytes of a Parquet or dsjson file."""
    if kind == "parquet":
        content = io.BytesIO()
        table.write_parquet(content)
        return content.getvalue()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.dsjson"
        logs.write_dsjson(table, path)
        return path.read_bytes()


def evaluated(table: pl.DataFrame, policies: Sequence[str]) -> EvaluationAnswer:
    """Values of policies by words: `uniform`, `always:ARM`, or one of ours, which learns from the first half.

    Files cannot be named, unlike on the command line: these words come from elsewhere.
    """
    targets: dict[str, Any] = {}
    rest = table
    for text in dict.fromkeys(policies):
        if text == "uniform" or (text.startswith("always:") and text != "always:"):
            targets[text] = text
            continue
        for label, policy in by_name([text], "random", 2).items():
            if not isinstance(policy, DecisionPolicy):
                raise ValueError(f"policy must be one that decides from features, got {text!r}")
            agent, rest = ope.fitted(table, policy)
            targets[f"{label}, of the first half"] = agent
    found = [_value(label, ope.evaluate(rest, target)) for label, target in targets.items()]
    rewards = rest["reward"].drop_nulls().to_numpy()
    earned = float(rewards.mean()) if rewards.size else None
    return EvaluationAnswer(rows=rest.height, earned=earned, policies=found)


def _value(label: str, evaluation: ope.Evaluation) -> PolicyValue:
    estimates = [
        Estimate(
            estimator=row["estimator"],
            value=plain_number(row["value"]),
            low=plain_number(row["low"]),
            high=plain_number(row["high"]),
            interval=row["interval"],
            note=row["note"],
        )
        for row in evaluation.table.iter_rows(named=True)
    ]
    return PolicyValue(policy=label, estimates=estimates, cautions=list(evaluation.cautions))
