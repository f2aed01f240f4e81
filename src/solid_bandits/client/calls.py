"""The calls of a client: what is sent, what the answer means, and when a call is repeated. No network here."""

import io
import json
import random
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

from solid_bandits._internal import checks, extras
from solid_bandits.core.decision import AGAIN, LEARNT, OFFER, UNKNOWN, Decision, Receipt

if TYPE_CHECKING:
    import polars as pl

Plain = dict[str, Any]

AT_ONCE = 1000
"""Decisions or rewards in one call; more are sent in several."""
LARGEST_BODY = 3 << 20
"""Bytes of a call with many; more are sent in several. A service takes 4 MiB unless told otherwise."""
BUSY = (429, 502, 503, 504)
"""Answers after which a call is repeated: too many, or nobody there for now."""
REFUSED = (400, 404, 409, 413, 422)
"""Answers that are about an argument."""
FIRST_WAIT, LONGEST_WAIT = 0.05, 5.0
"""Seconds before the first repetition, and at most."""

T = TypeVar("T")


class ServiceError(RuntimeError):
    """The service did not do what it was asked, for no fault of an argument.

    `status` is that of its last answer, None where there was none. `event_ids` are all of the call: given again, a
    decision or a reward that the service did take in is not taken in twice.

    Example:
        >>> import solid_bandits as sb
        >>> client = sb.client.Client("http://127.0.0.1:8080", key)  # doctest: +SKIP
        >>> try:  # doctest: +SKIP
        ...     client.learn("news", "visit-1", reward=1.0)
        ... except sb.client.ServiceError as error:
        ...     print(error, error.status)
    """

    def __init__(self, message: str, status: int | None = None, event_ids: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.event_ids = tuple(event_ids)


class Call(NamedTuple, Generic[T]):
    """One request, which may be sent several times."""

    method: str
    path: str
    body: bytes | None
    event_ids: tuple[str, ...]
    """The caller's whole request, also if it is sent in several calls."""
    read: Callable[[bytes, bool], T]
    """Function from the content of the answer, and whether the call was repeated, to the caller's result."""


class Patience:
    """When to repeat a call, and when to give up: waits double, and are drawn so that clients do not come together.

    Args:
        seconds: after which a call is given up.
    """

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._next = FIRST_WAIT
        self.repeated = False

    def left(self, longest: float) -> float:
        """Return the seconds that the next attempt may take; the first may take the longest."""
        return self._left if self.repeated else longest

    def wait(self, spent: float, asked: float) -> float | None:
        """Return the seconds to wait before the call is repeated; None to give up.

        Args:
            spent: seconds that the last attempt took.
            asked: seconds that the service asked for.
        """
        self._left -= spent
        drawn = max(self._next * random.uniform(0.5, 1.0), asked)
        if drawn > self._left:
            return None
        self._left -= drawn
        self._next = min(2 * self._next, LONGEST_WAIT)
        self.repeated = True
        return drawn


def decide(model: str, offer: Mapping[str, Any]) -> Call[Decision]:
    """Return the call for one decision."""
    asked = _asked(offer)
    return Call(
        "POST",
        model_path(model, "decisions"),
        _json(asked),
        (asked["event_id"],),
        lambda content, _: _decision(json.loads(content)),
    )


def decide_many(model: str, offers: Iterable[Mapping[str, Any]]) -> list[Call[list[Decision]]]:
    """Return the calls for many decisions, at most `AT_ONCE` in each."""
    asked = []
    _no_frame("offers", offers)
    for place, offer in enumerate(offers):
        try:
            asked.append(_asked(offer))
        except ValueError as error:
            raise ValueError(f"offer {place}: {error}") from None
    ids = tuple(one["event_id"] for one in asked)

    def read(content: bytes, repeated: bool) -> list[Decision]:
        return [_decision(one) for one in json.loads(content)["decisions"]]

    bodies = _bodies("decisions", asked)
    return [Call("POST", model_path(model, "decisions"), body, ids, read) for body in bodies]


def learn(model: str, event_id: str, reward: float) -> Call[Receipt]:
    """Return the call for one reward; an unknown id is a ValueError."""

    def read(content: bytes, repeated: bool) -> Receipt:
        (one,) = json.loads(content)["rewards"]
        if one["status"] == UNKNOWN:
            raise ValueError(one["message"])
        return _receipt(one, repeated)

    return _rewards(model, [_given(event_id, reward)], read)[0]


def learn_many(
    model: str, rewards: Mapping[str, float] | Iterable[tuple[str, float]]
) -> list[Call[list[Receipt]]]:
    """Return the calls for many rewards, at most `AT_ONCE` in each."""
    try:
        pairs = list(rewards.items() if isinstance(rewards, Mapping) else rewards)
        pairs = [(event_id, reward) for event_id, reward in pairs]
    except (TypeError, ValueError):
        raise ValueError(
            f"rewards must be pairs of an id and a reward, got {checks.short(rewards)}"
        ) from None

    def read(content: bytes, repeated: bool) -> list[Receipt]:
        return [_receipt(one, repeated) for one in json.loads(content)["rewards"]]

    return _rewards(model, [_given(*pair) for pair in pairs], read)


def change_arms(model: str, change: Plain) -> Call[Any]:
    """Add or remove an arm; the arms that are there then."""
    return plain("POST", model_path(model, "arms"), change, "arms")


def plain(method: str, path: str, body: Plain | None = None, field: str | None = None) -> Call[Any]:
    """A call whose answer is JSON, as it is, or one of its fields."""

    def read(content: bytes, repeated: bool) -> Any:
        found = json.loads(content)
        return found if field is None else found[field]

    return Call(method, path, None if body is None else _json(body), (), read)


def evaluate(model: str, policies: Sequence[str], after: int | None, until: int | None) -> Call[Any]:
    """Return the call for values of other policies."""
    if isinstance(policies, str):
        raise ValueError(f"policies must be a list of policies, got {policies!r}")
    return plain("GET", _with_query(model_path(model, "evaluate"), policies, after, until))


def log(model: str, after: int | None, until: int | None) -> "Call[pl.DataFrame]":
    """The log, which comes as Parquet."""

    def read(content: bytes, repeated: bool) -> "pl.DataFrame":
        frame: pl.DataFrame = extras.load("polars", "the log of a model").read_parquet(io.BytesIO(content))
        return frame

    return Call("GET", _with_query(model_path(model, "log"), (), after, until), None, (), read)


def delete(
    model: str, subject: str | None, event_ids: Sequence[str] | None, before: float | None
) -> Call[Any]:
    """Erase events."""
    asked = {
        "subject": subject,
        "event_ids": None if event_ids is None else list(event_ids),
        "before": before,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    if len(given) != 1:
        raise ValueError(f"one of {', '.join(asked)} must be given to delete, got {len(given)}")
    return plain("POST", model_path(model, "deletions"), given, "decisions")


def model_path(model: str, *parts: str) -> str:
    """Return the path of a model, or of a part of it."""
    if not isinstance(model, str) or not model:
        raise ValueError(f"model must be the name of a model, got {checks.short(model)}")
    return "/".join((f"/v1/models/{quote(model, safe='')}", *parts))


def refusal(status: int, content: bytes, where: str, event_ids: Sequence[str] = ()) -> Exception:
    """Return the exception for an answer other than the expected one."""
    try:
        said = json.loads(content)["error"]
        if not isinstance(said, str):
            raise TypeError
    except (ValueError, KeyError, TypeError):  # a proxy's own page
        said = f"an answer with status {status}, without a reason"
    if status in REFUSED:
        return ValueError(said)
    return ServiceError(f"the service at {where} answered {status}: {said}", status, event_ids)


def seconds_asked(header: str | None) -> float:
    """Return the seconds in `Retry-After`; 0 if there are none, or a date."""
    text = (header or "").strip()
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _asked(offer: Mapping[str, Any]) -> dict[str, Any]:
    known = ("context", *OFFER)
    if not isinstance(offer, Mapping) or not set(offer) <= set(known):
        raise ValueError(
            f"offers must be tables with context or features and, where wanted, {', '.join(OFFER[1:])}, "
            f"got {checks.short(offer)}"
        )
    found = {name: offer[name] for name in known if offer.get(name) is not None}
    for name in ("context", "features"):
        _no_frame(name, found.get(name))
    if "features" in found:
        found["features"] = _rows(found["features"])
    if "context" in found:
        found["context"] = _values("context", found["context"])
    for name in ("arms", "available"):
        if isinstance(found.get(name), Mapping):
            found[name] = {arm: _values(f"arms[{arm!r}]", own) for arm, own in found[name].items()}
        elif name in found:
            found[name] = _listed(found[name])
    found.setdefault("event_id", uuid.uuid4().hex)  # made here, so that a repeated call is the same decision
    return found


def _no_frame(name: str, given: Any) -> None:
    if hasattr(type(given), "columns"):  # not asked of the frame itself: a lazy one would begin to work
        raise ValueError(
            f"{name} must not be a data frame; give its rows to decide_many, "
            '[{"context": row} for row in frame.to_dicts()], or to_dict("records") in pandas'
        )


def _values(name: str, values: Any) -> dict[str, Any]:
    """Values by names as JSON can say them; the service says what they must be."""
    if not isinstance(values, Mapping):
        raise ValueError(f"{name} must be a table of values by their names, got {checks.short(values)}")
    return {one: _plain(value) for one, value in values.items()}


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return value.isoformat() if isinstance(value, date) else value


def _listed(values: Any) -> Any:
    """A list of an array, a series or any sequence; what is none of these is left to the service's own words."""
    if hasattr(values, "tolist"):
        return values.tolist()
    if isinstance(values, str) or not isinstance(values, Iterable):
        return values
    return [one.item() if hasattr(one, "item") else one for one in values]


def _rows(features: Any) -> list[list[float]]:
    """A matrix as lists of numbers, checked; without NumPy, which what is no list needs to be read, of lists alone."""
    if "numpy" in sys.modules:
        return checks.array("features", features, "arms", "dim").tolist()
    wanted = "must be an array of numbers of shape (arms, dim)"
    rows = list(features) if isinstance(features, Sequence) and not isinstance(features, str) else []
    lengths = {len(row) if isinstance(row, Sequence) and not isinstance(row, str) else 0 for row in rows}
    if len(lengths) != 1 or 0 in lengths:
        raise checks.ArgumentError("features", f"{wanted}, none of them empty, got {checks.short(features)}")
    return [
        [checks.number("features", float(one) if isinstance(one, bool) else one) for one in row]
        for row in rows
    ]


def _probabilities(values: list[float]) -> Any:
    """An array where NumPy is installed, a tuple elsewhere."""
    try:
        import numpy as np
    except ModuleNotFoundError:
        return tuple(map(float, values))
    return np.array(values, dtype=np.float64)


def _given(event_id: Any, reward: Any) -> Plain:
    if not isinstance(event_id, str):
        hint = "; give its event_id" if hasattr(event_id, "event_id") else ""
        raise ValueError(f"event_id must be text, got {checks.short(event_id)}{hint}")
    click = isinstance(reward, bool) or type(reward).__name__ == "bool"  # NumPy's own is of that name, too
    return {"event_id": event_id, "reward": float(reward) if click else checks.number("reward", reward)}


def _decision(answer: Plain) -> Decision:
    found = Decision(
        answer["arms"].index(answer["arm"]),
        probabilities=_probabilities(answer["probabilities"]),
        explored=answer["explored"],
        arms=tuple(answer["arms"]),
        event_id=answer["event_id"],
        time=round(answer.get("time", 0) * 1e6),
        version=answer.get("version", ""),
    )
    found.again = answer["again"]
    return found


def _rewards(model: str, given: list[Plain], read: Callable[[bytes, bool], T]) -> list[Call[T]]:
    ids = tuple(one["event_id"] for one in given)
    bodies = _bodies("rewards", given)
    return [Call("POST", model_path(model, "rewards"), body, ids, read) for body in bodies]


def _receipt(answer: Plain, repeated: bool) -> Receipt:
    status = answer["status"]
    if repeated and status == AGAIN:  # learnt before by this very call, whose answer was lost
        status = LEARNT
    return Receipt(answer["event_id"], status, answer["reward"], answer["message"])


def _with_query(path: str, policies: Sequence[str], after: int | None, until: int | None) -> str:
    asked = [("policy", policy) for policy in policies]
    for name, value in (("after", after), ("until", until)):
        if value is not None:
            asked.append((name, str(checks.integer(name, value, least=0))))
    return f"{path}?{urlencode(asked)}" if asked else path


def _bodies(name: str, rows: Sequence[Any]) -> list[bytes]:
    """Split rows into bodies with at most `AT_ONCE` rows and, with more than one row, `LARGEST_BODY` bytes."""
    parts: list[list[bytes]] = []
    size = 0
    for row in map(_json, rows):
        if not parts or len(parts[-1]) >= AT_ONCE or size + len(row) > LARGEST_BODY:
            parts.append([])
            size = 0
        parts[-1].append(row)
        size += len(row) + 1
    return [b'{"%s":[%s]}' % (name.encode(), b",".join(part)) for part in parts]


def _json(body: Any) -> bytes:
    try:
        return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ValueError(f"arguments must be text and finite numbers ({error})") from None
