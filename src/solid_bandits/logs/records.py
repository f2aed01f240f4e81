"""Decisions as rows of a log, and rows of a log as decisions, in the order in which they became known."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from solid_bandits._internal import checks
from solid_bandits.core.decision import EXPIRED, LEARNED, OPEN, SAID, Arm, Decision
from solid_bandits.core.ids_and_times import FIRST_TIME, LAST_TIME, NAME, is_name
from solid_bandits.core.setting import LARGEST_REWARD, check_features
from solid_bandits.features.design import Design
from solid_bandits.logs.named import as_text, raw_of, told
from solid_bandits.logs.schema import COLUMNS, TIME, check_log, empty, lists_of


def as_table(decisions: Sequence[Decision]) -> pl.DataFrame:
    """Return decisions of a bandit, which have the features of all their arms, as a log."""
    if not decisions:
        return empty()
    probabilities: list[Any] = [one.probabilities for one in decisions]
    named: list[Any] = [one.named for one in decisions]
    counts = np.array([len(one) for one in probabilities])
    flat, places = np.concatenate(probabilities), np.array([one.place for one in decisions])
    shares, arms = lists_of(counts, flat), _arms_of(decisions)
    chosen = pl.Series(flat[np.cumsum(counts) - counts + places]).fill_nan(None)
    columns: dict[str, Any] = dict.fromkeys(COLUMNS) | {
        "event_id": [one.event_id for one in decisions],
        "sequence": [one.sequence for one in decisions],
        "batch": [None if one.batch is None else one.sequence - one.batch[0] for one in decisions],
        "time": pl.Series([one.time for one in decisions], dtype=pl.Int64).cast(TIME),
        "arms": arms,
        "context": [None if one is None else as_text(one.context) for one in named],
        "arm_features": [
            None if one is None or one.own is None else [as_text(own) for own in one.own] for one in named
        ],
        "probabilities": shares,
        "arm": arms.list.get(pl.Series(places)),
        "probability": chosen,
        "explored": [one.explored for one in decisions],
        "reward": [one.reward for one in decisions],
        "defaulted": [None if one.reward is None else one.status == EXPIRED for one in decisions],
        "reward_sequence": [one.reward_sequence for one in decisions],
        "reward_time": pl.Series([one.reward_time for one in decisions], dtype=pl.Int64).cast(TIME),
        "model_version": [one.version for one in decisions],
    }
    offered: list[Any] = [one._offered for one in decisions]
    if not any(one is None for one in offered):
        columns["features"] = lists_of(counts, np.concatenate(offered))
    columns |= {name: [one.said.get(name) for one in decisions] for name in SAID}
    table = pl.DataFrame(columns, schema=COLUMNS)
    if chosen.null_count():  # from a log without probabilities
        known = pl.when(pl.col("probability").is_not_null())
        table = table.with_columns(known.then("probabilities").alias("probabilities"))
    return table


def _arms_of(decisions: Sequence[Decision]) -> pl.Series:
    """The names of the arms on offer, as text; decisions one after the other may share theirs."""
    own: list[Sequence[Arm]] = []
    index = []
    for one in decisions:
        names = one.arms or ()
        if not own or names is not own[-1]:
            own.append(names)
        index.append(len(own) - 1)
    lists = lists_of(np.array([len(names) for names in own]), [str(arm) for names in own for arm in names])
    return lists.gather(index)


class Step(NamedTuple):
    """A decision, or the outcome that arrives for it."""

    decision: Decision
    status: str
    """`open` for the decision itself."""
    reward: float | None = None
    time: int = 0
    batch: int | None = None
    """What decisions that were made together have in common."""


def steps_of(log: pl.DataFrame, dim: int, design: Design | None = None) -> list[Step]:
    """Return the decisions and outcomes of a log after checking it, with features of this dimension or named values.

    They are in the order of their sequence numbers if rewards have them, else each outcome follows its decision.
    """
    table = _as_log(log).with_columns(pl.col("time", "reward_time").dt.epoch("us"))
    if table["event_id"].n_unique() < table.height:
        raise ValueError("log must have each event_id once")
    rewarded = table.filter(pl.col("reward").is_not_null())
    exact = not table["sequence"].null_count() and not rewarded["reward_sequence"].null_count()
    found: list[tuple[Any, Step]] = []
    growth = None if design is None else design.begin_check()
    for place, values in enumerate(table.iter_rows(named=True)):
        if complaint := _complaint(values, design is None):
            raise ValueError(
                f"log row {place} (event_id {checks.short(values['event_id'])}) must have {complaint}"
            )
        if design is not None:
            try:
                decision = _decision(values, None)
                decision.named = told(design, raw_of(values, place), growth)
            except checks.ArgumentError as error:
                raise ValueError(f"log row {place}: {error}") from None
        else:
            features = check_features(f"features of log row {place}", values["features"], "arms", "dim")
            if features.shape[1] != dim:
                raise ValueError(f"log row {place} must have features of dim {dim}, got {features.shape[1]}")
            decision = _decision(values, np.array(features))
        # Of two events at the same time the decision comes first, and each outcome right after its own.
        made = values["sequence"] if exact else (values["time"] or 0, values["sequence"] or place)
        known = values["reward"] is not None
        found.append(((made, 0) if exact else (made, place, 0), Step(decision, OPEN, batch=values["batch"])))
        if known or values["reward_time"] is not None or values["probabilities"] is None:
            later = (values["reward_sequence"] or made) if exact else made
            status = LEARNED if known and not values["defaulted"] else EXPIRED
            step = Step(decision, status, values["reward"], values["reward_time"] or decision.time)
            found.append(((later, 1) if exact else (later, place, 1), step))
    found.sort(key=lambda one: one[0])
    return [step for _, step in found]


def width_of(log: pl.DataFrame) -> int:
    """Return the number of features of an arm in a log."""
    widths = _as_log(log)["features"].drop_nulls().list.get(0, null_on_oob=True).list.len().unique().to_list()
    if len(widths) != 1 or not widths[0]:
        got = checks.short(widths) if widths else "no row with features"
        raise ValueError(f"log must have features of one dimension, got {got}")
    return int(widths[0])


def _as_log(log: pl.DataFrame) -> pl.DataFrame:
    if not isinstance(log, pl.DataFrame):
        raise ValueError(
            "log must be a polars table, such as sb.logs.read and sb.logs.from_table return, got "
            f"{checks.short(log)}"
        )
    return check_log(log)


def _decision(values: dict[str, Any], features: Any) -> Decision:
    place = values["arms"].index(values["arm"])
    shares = values["probabilities"]
    probabilities = np.array(shares if shares is not None else [np.nan] * len(values["arms"]))
    probabilities.flags.writeable = False
    return Decision(
        place,
        None if features is None else features[place],
        probabilities,
        bool(values["explored"]),
        arms=tuple(values["arms"]),
        offered=features,
        event_id=values["event_id"],
        said={name: values[name] for name in SAID if values[name] is not None},
        time=values["time"] or 0,
        version=values["model_version"] or "",
    )


def _complaint(values: dict[str, Any], featured: bool) -> str:
    """Return what a row lacks to be replayed and remembered, if anything; `check_log` has already checked it."""
    time, reward, first, second = (values[name] for name in ("time", "reward", "sequence", "reward_sequence"))
    if not is_name(values["event_id"]):
        return f"an event_id that is {NAME}"
    for name in SAID:
        if values[name] is not None and not is_name(values[name]):
            return f"a {name} that is {NAME}, got {checks.short(values[name])}"
    if values["arms"] is None:
        return "arms, got None"
    wrong = [arm for arm in values["arms"] if not is_name(arm)]
    if wrong:
        return f"arms whose names are {NAME}, got {checks.short(wrong[0])}"
    if featured and values["features"] is None:
        return "features, got None"
    if values["probabilities"] is not None and None in values["probabilities"]:
        return f"a number for every probability, got {checks.short(values['probabilities'])}"
    if reward is not None and abs(reward) > LARGEST_REWARD:
        return f"a reward of at most {LARGEST_REWARD:g} in size, got {reward:g}"
    for one in (time, values["reward_time"]):
        if one is not None and not FIRST_TIME <= one <= LAST_TIME:
            return f"a time within the years 1 to 9999, got {one} microseconds since 1970"
    if reward is not None and first is not None and second is not None and second < first:
        return f"its reward after its decision, got reward_sequence {second} and sequence {first}"
    return ""
