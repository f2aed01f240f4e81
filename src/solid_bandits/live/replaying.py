"""A log as the calls that led to it: decisions and rewards, one after the other."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from solid_bandits._types import Floats
from solid_bandits.live.memory import EXPIRED, LEARNED, OPEN, Record
from solid_bandits.logs.schema import check_log
from solid_bandits.setting import check_features


class Row:
    """A decision of the log."""

    __slots__ = ("features", "numbered", "place", "values")

    def __init__(self, values: dict[str, Any], features: Floats) -> None:
        self.values = values
        self.features = features
        self.place: int = values["arms"].index(values["arm"])
        self.numbered: int | None = None
        """Which decision of the agent it became."""

    def record(self, number: int, sequence: int, policy_number: int | None) -> Record:
        """As a bandit remembers it."""
        values = self.values
        known = values["probabilities"] is not None
        # Without probabilities it could not be logged again: nothing is waited for.
        status = OPEN if known and values["reward_time"] is None else EXPIRED
        return Record(
            event_id=values["event_id"],
            number=number,
            policy_number=policy_number,
            sequence=sequence,
            time=values["time"] or 0,
            arms=tuple(values["arms"]),
            place=self.place,
            probabilities=np.array(values["probabilities"])
            if known
            else np.full(len(values["arms"]), np.nan),
            explored=bool(values["explored"]),
            version=values["model_version"] or "",
            features=self.features,
            status=status if values["reward"] is None else LEARNED,
            reward=values["reward"],
        )


class History:
    """Pairs of a row and None, where it was decided, or its reward, where that came; in order."""

    def __init__(self, rows: list[Row], order: list[tuple[Any, int, int]]) -> None:
        self._rows = rows
        self._order = order
        self.ids = [row.values["event_id"] for row in rows]

    def __iter__(self) -> Iterator[tuple[Row, float | None]]:
        for _, kind, place in self._order:
            row = self._rows[place]
            yield row, row.values["reward"] if kind else None


def history(log: pl.DataFrame, dim: int) -> History:
    """The decisions and rewards of a log, checked whole before the first is replayed.

    In the order of their sequence numbers where rewards have them; else by decisions, each reward right after its own.
    """
    table = check_log(log).with_columns(pl.col("time", "reward_time").dt.epoch("us"))
    if table["event_id"].n_unique() < table.height:
        raise ValueError("log must have each event_id once")
    rows = []
    for place, values in enumerate(table.iter_rows(named=True)):
        if values["features"] is None:
            raise ValueError(f"log row {place} (event_id {values['event_id']!r}) must have features")
        features = check_features(f"features of log row {place}", values["features"], "arms", "dim")
        if features.shape[1] != dim:
            raise ValueError(f"log row {place} must have features of dim {dim}, got {features.shape[1]}")
        rows.append(Row(values, features))
    rewarded = table.filter(pl.col("reward").is_not_null())
    exact = not table["sequence"].null_count() and not rewarded["reward_sequence"].null_count()
    order: list[tuple[Any, int, int]] = []
    for place, row in enumerate(rows):
        values = row.values
        here = values["sequence"] if exact else (values["time"] or 0, values["sequence"] or place)
        order.append((here, 0, place))
        if values["reward"] is not None:
            order.append((values["reward_sequence"] if exact else here, 1, place))
    # Of two that have the same place in time the decision comes first, and each reward right after its own.
    order.sort(key=lambda one: (one[0], one[1]) if exact else (one[0], one[2], one[1]))
    return History(rows, order)
