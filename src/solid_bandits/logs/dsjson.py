"""VW's dsjson, one decision per line: the format of Vowpal Wabbit's tools and of the decision services around it.

A line has the actions, counted from 1 with the chosen one first, in `a`, their probabilities in `p`, the cost -reward
in `_label_cost` and the features in `c`: those of each action in `c._multi`, shared ones next to it, by name. If no
reward has come, there is no label. Data that dsjson has no place for are stored in `_log`.
"""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from solid_bandits._internal import checks
from solid_bandits._internal.checks import ArgumentError, short
from solid_bandits._internal.files import first_line, path_of, write_whole
from solid_bandits.core.decision import SAID
from solid_bandits.core.ids_and_times import microseconds
from solid_bandits.core.setting import LARGEST_FEATURE, LARGEST_REWARD
from solid_bandits.features.nested import flat, merged
from solid_bandits.logs.named import as_text
from solid_bandits.logs.schema import COLUMNS, SAME, SLACK, check_log, empty

OURS = "x"
"""Namespace of features that are numbers without names."""
CONTEXT, OWN = "context", "features"
"""The namespaces of named values, of the context and of an arm."""
SHARED, ACTION, IDENTITY = "FromUrl", "j", "i"
"""Namespaces of Azure Personalizer: what its callers said of the context and of an action, and what it adds itself."""
KEPT = {
    "sequence": int,
    "batch": int,
    "explored": bool,
    "defaulted": bool,
    "reward_sequence": int,
    "policy": str,
}
KEPT |= dict.fromkeys(SAID, str)
"""Fields that dsjson has no place for, with their types."""


def write_dsjson(table: pl.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a log as dsjson, completely or not at all; `read_dsjson` returns the same log.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import solid_bandits as sb
        >>> bandit = sb.Bandit(sb.LinTS(), dim=2, noise_std=0.5, seed=0)
        >>> choice = bandit.decide([[1.0, 0.0], [0.0, 1.0]], event_id="visit-1")
        >>> with TemporaryDirectory() as folder:
        ...     sb.logs.write_dsjson(bandit.log(), f"{folder}/log.dsjson")
        ...     Path(f"{folder}/log.dsjson").read_text()[:12]
        '{"Timestamp"'
    """
    rows, place = check_log(table), path_of("path", path)
    if rows["arms"].null_count():
        at = rows["arms"].is_null().arg_max()
        raise ValueError(f"table row {at} must have arms to be dsjson, got None")

    def write(file: Path) -> None:
        with file.open("w", encoding="utf-8") as out:
            for row in rows.iter_rows(named=True):
                out.write(
                    json.dumps(_line(row), separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n"
                )

    write_whole(place, write)


def _line(row: dict[str, Any]) -> dict[str, Any]:
    arms, chosen = row["arms"], row["arms"].index(row["arm"])
    order = [chosen, *(place for place in range(len(arms)) if place != chosen)]
    probabilities = row["probabilities"]
    line: dict[str, Any] = {}
    if row["reward"] is not None:
        line |= {"_label_cost": -row["reward"], "_label_probability": row["probability"]}
        line |= {"_label_Action": chosen + 1, "_labelIndex": chosen}
    line |= {"Timestamp": _text(row["time"]), "Version": "1", "EventId": row["event_id"]}
    line["a"] = [place + 1 for place in order]
    context: dict[str, Any] = {} if row["context"] is None else {CONTEXT: json.loads(row["context"])}
    none = [None] * len(arms)
    context["_multi"] = [
        {"_tag": arm}
        | ({} if own is None else {OURS: {str(place): value for place, value in enumerate(own)}})
        | ({} if text is None else {OWN: json.loads(text)})
        for arm, own, text in zip(arms, row["features"] or none, row["arm_features"] or none, strict=True)
    ]
    line["c"] = context
    if probabilities is not None:
        line["p"] = [probabilities[place] for place in order]
    if row["reward"] is None and (probabilities is None) != (row["probability"] is None):
        line["_label_probability"] = row["probability"]
    line["VWState"] = {"m": row["model_version"]}
    kept = {name: row[name] for name in KEPT if row[name] is not None}
    if row["reward_time"] is not None:
        kept["reward_time"] = _text(row["reward_time"])
    return line | {"_log": kept}


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")


def read_dsjson(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Return a log from dsjson. Features keep their names; names of nested ones are joined by dots (`user.age`).

    Logs of Azure Personalizer have the names that its callers used. What actions share is the context;
    `sb.logs.with_features` makes features of named values.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import solid_bandits as sb
        >>> bandit = sb.Bandit(sb.LinTS(), dim=2, noise_std=0.5, seed=0)
        >>> choice = bandit.decide([[1.0, 0.0], [0.0, 1.0]], event_id="visit-1")
        >>> with TemporaryDirectory() as folder:
        ...     sb.logs.write_dsjson(bandit.log(), f"{folder}/log.dsjson")
        ...     sb.logs.read_dsjson(f"{folder}/log.dsjson").equals(bandit.log())
        True
    """
    rows = []
    with path_of("path", path).open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                found = json.loads(line.decode("utf-8"))
                if isinstance(found, dict) and "c" in found:  # other lines are joins and checkpoints
                    rows.append(_row(found))
                    if found.get("_log") is None:  # it was not written by this package
                        rows[-1]["sequence"] = len(rows)
            except (
                ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError,
            ) as error:  # fmt: skip
                raise ValueError(
                    f"log {os.fspath(path)!r} line {number} is not dsjson ({_reason(error)})"
                ) from None
    if not rows:
        return empty()
    return check_log(pl.DataFrame(rows, schema=COLUMNS))


def _reason(error: Exception) -> str:
    if isinstance(error, ArgumentError):
        return first_line(error)
    if isinstance(error, UnicodeDecodeError):
        return f"it must be UTF-8, got byte 0x{error.object[error.start]:02x} at place {error.start}"
    return f"{type(error).__name__}: {first_line(error)}"


def _row(line: dict[str, Any]) -> dict[str, Any]:
    context = _table("c", line["c"])
    actions = context.get("_multi")
    if not isinstance(actions, list) or not actions or not all(isinstance(one, dict) for one in actions):
        raise ArgumentError("c._multi", f"must be a list of actions, got {short(actions)}")
    arms = [str(one.get("_tag", place)) for place, one in enumerate(actions)]
    if len(set(arms)) < len(arms):
        raise ArgumentError("_tag", f"must be distinct, got {short(arms)}")
    chosen, probabilities, probability = _played(line, len(arms))
    shared = {key: value for key, value in context.items() if key != "_multi"}
    own = [
        {key: value for key, value in one.items() if key != "_tag" and not _is_identity(key, value)}
        for one in actions
    ]
    numbers = [_numbers(one.get(OURS)) for one in own]
    features = None
    if None not in numbers and len({len(one or ()) for one in numbers}) == 1:
        features = numbers
        own = [{key: value for key, value in one.items() if key != OURS} for one in own]
    mine = [_named_values(one, OWN) for one in own]
    common = _named_values(shared, CONTEXT)
    kept = _table("_log", line.get("_log"))
    for name, kinds in KEPT.items():
        given: Any = kept.get(name)
        sound = given is None or (type(given) is kinds)
        if not sound or (isinstance(given, int) and not -(2**63) <= given < 2**63):
            wanted = "a whole number of 64 bits" if kinds is int else kinds.__name__
            raise ArgumentError(f"_log.{name}", f"must be {wanted}, got {short(given)}")
    version = _table("VWState", line.get("VWState")).get("m")
    cost = line.get("_label_cost")
    if cost is not None:
        cost = checks.number("_label_cost", cost, least=-LARGEST_REWARD, most=LARGEST_REWARD)
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row |= {
        "event_id": None if line["EventId"] is None else str(line["EventId"]),
        "time": _parsed(line.get("Timestamp")),
        "arms": arms,
        "features": features,
        "context": as_text(common) if shared else None,
        "arm_features": [as_text(one) for one in mine] if any(own) else None,
        "probabilities": probabilities,
        "arm": arms[chosen],
        "probability": probability,
        "reward": None if cost is None else -cost + 0.0,
        "reward_time": _parsed(kept.get("reward_time")),
        "model_version": None if version is None else str(version),
    }
    return row | {name: kept.get(name) for name in KEPT}


def _table(name: str, value: Any) -> dict[str, Any]:
    """Return a JSON object; an empty one for null."""
    if value is not None and not isinstance(value, dict):
        raise ArgumentError(name, f"must be an object, got {short(value)}")
    return value or {}


def _played(line: dict[str, Any], count: int) -> tuple[int, list[float] | None, float | None]:
    """Return the index of the chosen action, the probabilities of all by index, and that of the chosen one.

    The same is in `a` and `p`, chosen action first, and in the label; these must agree.
    """
    listed = line["a"]
    numbers = [checks.whole(one) for one in listed] if isinstance(listed, list) else []
    order = [one - 1 for one in numbers if one is not None and 1 <= one <= count]
    if not order or len(order) < len(numbers) or len(set(order)) < len(order):
        raise ArgumentError("a", f"must be different actions from 1 to {count}, got {short(listed)}")
    chosen = order[0]
    for name, first in (("_labelIndex", 0), ("_label_Action", 1)):
        if line.get(name) is not None:
            given = checks.whole(line[name])
            if given is None or not first <= given < count + first:
                raise ArgumentError(
                    name, f"must be an integer from {first} to {count - 1 + first}, got {short(line[name])}"
                )
            if given - first != chosen:
                raise ArgumentError(
                    name, f"must be {chosen + first}, as {chosen + 1} is the first action in a, got {given}"
                )
    probabilities: list[float] | None = None
    if line.get("p") is not None:
        if not isinstance(line["p"], list) or len(line["p"]) != len(order):
            raise ArgumentError(
                "p", f"must be {len(order)} probabilities, as a has actions, got {short(line['p'])}"
            )
        probabilities = [0.0] * count
        for place, one in zip(order, line["p"], strict=True):
            probabilities[place] = checks.number("p", one, least=0)
        if abs(sum(probabilities) - 1) > SLACK:
            raise ArgumentError("p", f"must sum to 1, got {short(line['p'])}")
    probability = line.get("_label_probability", None if probabilities is None else probabilities[chosen])
    if probability is not None:
        probability = checks.number("_label_probability", probability, least=0, most=1 + 1e-9)
        expected = probability if probabilities is None else probabilities[chosen]
        if abs(probability - expected) > SAME * max(probability, expected):
            raise ArgumentError(
                "_label_probability", f"must be {expected:g} as in p, got {line['_label_probability']!r}"
            )
    return chosen, probabilities, probability


def _named_values(values: dict[str, Any], ours: str) -> dict[str, Any]:
    """Names and values: as `write_dsjson` writes them in a namespace of this name alone, or else nested.

    Those of Personalizer's own namespaces are as its callers named them, so that a log has the names of the calls.
    """
    inner = values.get(ours)
    if set(values) == {ours} and isinstance(inner, dict):
        shallow = [one for one in inner.values() if not isinstance(one, dict)]
        if len(shallow) == len(inner) and all(
            isinstance(one, str) for each in shallow if isinstance(each, list) for one in each
        ):
            return inner
    found: dict[str, Any] = {}
    for name, inner in values.items():
        objects = isinstance(inner, list) and inner and all(isinstance(one, dict) for one in inner)
        if name in (SHARED, ACTION) and objects:
            found |= merged(inner)
        else:
            found |= dict(flat({name: inner}))
    return found


def _is_identity(name: str, value: Any) -> bool:
    """Whether this is what Personalizer adds to each action."""
    return name == IDENTITY and isinstance(value, dict) and set(value) == {"constant", "id"}


def _numbers(values: Any) -> list[float] | None:
    """Return features without names as `write_dsjson` writes them; None if they have names."""
    if not isinstance(values, dict) or not values or list(values) != [str(one) for one in range(len(values))]:
        return None
    if not all(
        type(one) in (int, float) and -LARGEST_FEATURE <= one <= LARGEST_FEATURE for one in values.values()
    ):
        return None
    return [float(one) for one in values.values()]


def _parsed(text: Any) -> datetime | None:
    """Return a time in ISO form, with up to seven decimals of a second."""
    if text is None:
        return None
    head, _, rest = str(text).removesuffix("Z").partition(".")
    found = datetime.fromisoformat(head)
    found = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    digits = (rest + "000000")[:6]
    exact = found + timedelta(microseconds=int(digits))
    microseconds("Timestamp", exact)
    return exact
