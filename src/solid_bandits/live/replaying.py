"""A log as the calls that led to it: decisions and rewards, one after the other."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from solid_bandits import _check
from solid_bandits._types import Floats
from solid_bandits.live.arguments import FIRST_TIME, LAST_TIME, NAME, is_name
from solid_bandits.live.memory import EXPIRED, LEARNED, OPEN, Record
from solid_bandits.logs.schema import check_log
from solid_bandits.setting import LARGEST_REWARD, check_features


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


def as_log(log: pl.DataFrame) -> pl.DataFrame:
    """A log, if it is one."""
    if not isinstance(log, pl.DataFrame):
        raise ValueError(
            "log must be a polars table, as sb.logs.read gives of a file and sb.logs.from_table of columns, got "
            f"{_check.short(log)}"
        )
    return check_log(log)


def width_of(log: pl.DataFrame) -> int:
    """The number of features of an arm in a log."""
    widths = as_log(log)["features"].drop_nulls().list.get(0, null_on_oob=True).list.len().unique().to_list()
    if len(widths) != 1 or not widths[0]:
        raise ValueError(f"log must have features of one dimension, got {_check.short(widths)}")
    return int(widths[0])


def history(log: pl.DataFrame, dim: int) -> History:
    """The decisions and rewards of a log, checked whole before the first is replayed.

    In the order of their sequence numbers where rewards have them; else by decisions, each reward right after its own.
    """
    table = as_log(log).with_columns(pl.col("time", "reward_time").dt.epoch("us"))
    if table["event_id"].n_unique() < table.height:
        raise ValueError("log must have each event_id once")
    rows = []
    for place, values in enumerate(table.iter_rows(named=True)):
        complaint = _complaint(values)
        if complaint:
            raise ValueError(
                f"log row {place} (event_id {_check.short(values['event_id'])}) must have {complaint}"
            )
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


def _complaint(values: dict[str, Any]) -> str:
    """What a row must have to be replayed and remembered, where it has not; `check_log` has seen it."""
    time, reward, first, second = (values[name] for name in ("time", "reward", "sequence", "reward_sequence"))
    if not is_name(values["event_id"]):
        return f"an event_id that is {NAME}"
    if values["arms"] is None:
        return "arms, got None"
    wrong = [arm for arm in values["arms"] if not is_name(arm)]
    if wrong:
        return f"arms whose names are {NAME}, got {_check.short(wrong[0])}"
    if values["features"] is None:
        return "features, got None"
    if values["probabilities"] is not None and None in values["probabilities"]:
        return f"a number for every probability, got {_check.short(values['probabilities'])}"
    if reward is not None and abs(reward) > LARGEST_REWARD:
        return f"a reward of at most {LARGEST_REWARD:g} in size, got {reward:g}"
    if time is not None and not FIRST_TIME <= time <= LAST_TIME:
        return f"a time within the years 1 to 9999, got {time} microseconds since 1970"
    if reward is not None and first is not None and second is not None and second < first:
        return f"its reward after its decision, got reward_sequence {second} and sequence {first}"
    return ""
