"""A bandit as plain data: in a store, beside the log that has its decisions; or in a file, together with them."""

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.files import first_line, path_of, read_bytes, write_bytes
from solid_bandits._internal.types import Plain
from solid_bandits.core.agent import Agent
from solid_bandits.core.agent_file import agent_from_plain, agent_to_plain
from solid_bandits.core.decision import LEARNED, OPEN, Decision
from solid_bandits.core.ids_and_times import FIRST_TIME, LAST_TIME
from solid_bandits.core.setting import LARGEST_REWARD, check_features
from solid_bandits.features.design import Design
from solid_bandits.features.spec import Features
from solid_bandits.live import events
from solid_bandits.live.arguments import checked_id, names_of
from solid_bandits.live.events import Event
from solid_bandits.live.tables import is_store
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.plain import PlainAgent
from solid_bandits.policies.state import LARGEST_COUNT

if TYPE_CHECKING:
    from solid_bandits.live.bandit import Bandit

PathLike = str | os.PathLike[str]
KIND = "solid-bandits bandit"
VERSION = 4
"""Of the format: raised when a snapshot of before would be read wrongly."""
ARCHIVE = b"PK\x03\x04"
"""What a zip file begins with: bandit files were such before version 4."""
CLOSE = 1e-5
"""By which probabilities may miss 1 in sum: more than in a log, so that a bandit made from one can be loaded."""


def sealed(plain: Plain) -> bytes:
    """Return plain data below a line with its digest, so that damage is detected."""
    text = json.dumps(plain, separators=(",", ":"), allow_nan=False).encode()
    seal = {"file": KIND, "version": VERSION, "digest": _digest(text)}
    return json.dumps(seal).encode() + b"\n" + text


def opened(content: bytes) -> Plain:
    """What was sealed; a ValueError where it is not what was written."""
    if content.startswith(ARCHIVE):
        raise ValueError(
            f"it must be of version {VERSION} of this format, got an archive: it was written by release 0.2 or earlier"
        )
    line, _, text = content.partition(b"\n")
    try:
        seal = json.loads(line)
    except ValueError:
        seal = None
    if not isinstance(seal, dict) or seal.get("file") != KIND:
        raise ValueError("it is not what a bandit wrote")
    if seal.get("version") != VERSION:
        raise ValueError(
            f"it must be of version {VERSION} of this format, got {checks.short(seal.get('version'))}: it was written "
            "by another version of this package"
        )
    if seal.get("digest") != _digest(text):
        raise ValueError("it is not what was written: its digest differs")
    found: Plain = json.loads(text)
    return found


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def packed(bandit: "Bandit", whole: bool = False) -> Plain:
    """What `unpacked` needs besides the decisions: agent, counters, and the ids of what is open, or of all that is
    remembered.
    """
    if isinstance(bandit.agent._compiled, PlainAgent):
        raise ValueError(
            "policy must keep its state in arrays to be stored, got the plain Python of "
            f"{type(bandit.agent._compiled.player).__name__}"
        )
    remembered = bandit._remembered
    return {
        "agent": agent_to_plain(bandit.agent._content()),
        "named": None
        if bandit.design is None
        else {"features": bandit.design.features.to_plain(), "state": bandit.design.state()},
        "seed": bandit._seed,
        "window": remembered.window,
        "counters": [bandit._decisions, bandit._sequence, bandit._learned],
        "time": bandit._time,
        "decisions": [
            [one.event_id, one.ordinal, one.number, one.sequence]
            for one in (remembered if whole else remembered.open())
        ],
    }


def ids_in(plain: Plain) -> list[str]:
    """Return the ids of the decisions of a packed bandit, oldest first."""
    return [one[0] for one in plain["decisions"]]


def unpacked(plain: Plain, decisions: Mapping[str, Decision], policy: Policy | None = None) -> "Bandit":
    """Return the bandit that was packed, with its decisions by their ids; it keeps no log."""
    from solid_bandits.live.bandit import Bandit

    agent = Agent._restored(agent_from_plain(plain["agent"], "snapshot", policy))
    seed = checks.integer("seed", plain["seed"], least=0)
    window = checks.integer("window", plain["window"], least=1)
    counters = [checks.integer("counters", one, least=0, most=LARGEST_COUNT) for one in plain["counters"]]
    made, sequence, learned = counters
    if made + learned > sequence:
        raise ValueError(f"counters must have decisions and rewards among their events, got {counters}")
    bandit = Bandit.__new__(Bandit)
    design = None
    if plain["named"] is not None:
        design = Design.restored(Features.from_plain(plain["named"]["features"]), plain["named"]["state"])
        blocks = len(design.arms) if design.blocked else 0
        if agent.dim != design.dim + design.blocked or agent._setting.blocks != blocks:
            raise ValueError("named values must have as many features as the agent")
    bandit._begin(agent, seed, window, design)
    bandit._decisions, bandit._sequence, bandit._learned = counters
    bandit._time = checks.integer("time", plain["time"], least=FIRST_TIME, most=LAST_TIME)
    bandit._forgetful = True
    last = max(made - window, 0), 0
    for event_id, ordinal, number, place in plain["decisions"]:
        one = decisions.get(event_id)
        if one is None:
            raise ValueError(f"log must have the decision {event_id!r} of the snapshot")
        one.ordinal, one.number, one.sequence = ordinal, number, place
        fresh = bandit._remembered.find(event_id) is None
        if not (fresh and last[0] < ordinal <= made and last[1] < place <= sequence):
            raise ValueError("decisions must be the last ones, each once, in order")
        last = ordinal, place
        if agent.fades != (number is not None):
            raise ValueError("decisions must have their number with a half-life, and only then")
        agent._check_number(number)
        bandit._remembered.add(one)
    return bandit


def save(bandit: "Bandit", path: PathLike) -> None:
    """Write one file, whole or not at all: a snapshot, and the events of all decisions that are remembered."""
    target = path_of("path", path)
    lines = []
    for one in bandit._remembered:
        if one.status == OPEN:
            lines.append(events.decided(one))
        else:
            lines += [events.decided(one.replace(offered=None)), events.closed(one)]
    plain = {"bandit": packed(bandit, whole=True), "events": [_plain(event) for event in lines]}
    try:
        write_bytes(target, sealed(plain))
    except OSError as error:
        raise ValueError(
            f"bandit file {os.fspath(target)!r} cannot be written ({error.strerror or error})"
        ) from None


def load(path: PathLike, policy: Policy | None = None) -> "Bandit":
    """Read the file; a ValueError says what is wrong with it."""
    source = path_of("path", path)
    name = f"bandit file {os.fspath(source)!r}"
    if is_store(source):
        raise ValueError(f"{name} must be what Bandit.save wrote, got a store: open it with Bandit.open")
    try:
        plain = opened(read_bytes(source))
    except (OSError, ValueError, RecursionError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or first_line(error)
        raise ValueError(f"{name} cannot be read ({reason})") from None
    try:
        decisions: dict[str, Decision] = {}
        for line in plain["events"]:
            event = Event._make([*line[:6], None if line[6] is None else base64.b64decode(line[6]), b""])
            if event.kind in events.DECIDED:
                decisions[checked_id(event.event_id)] = events.decision_in(event)
            else:
                events.close_by(decisions[checked_id(event.event_id)], event)
        bandit = unpacked(plain["bandit"], decisions, policy)
        for one in bandit._remembered:
            _check(one, bandit.agent.dim, bandit.design)
        return bandit
    except (
        ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, MemoryError,
    ) as error:  # fmt: skip
        raise ValueError(f"{name} cannot be used: {first_line(error)}") from None


def _plain(event: Event) -> list[Any]:
    numbers = None if event.numbers is None else base64.b64encode(event.numbers).decode()
    return [*event[:6], numbers]


def _check(one: Decision, dim: int, design: Design | None) -> None:
    """Raise a ValueError unless a bandit can have made this decision."""
    where = f"decision {one.event_id!r}"
    assert one.arms is not None  # it is of an event
    assert one.probabilities is not None
    count = len(one.arms)
    names_of(one.arms, count)
    if type(one.place) is not int or not 0 <= one.place < count or one.probabilities.shape != (count,):
        raise ValueError(f"{where} must have an arm among its arms, and their probabilities")
    if one.status == OPEN or not np.isnan(one.probabilities).all():
        least, total = one.probabilities.min(), one.probabilities.sum()
        if not (least >= 0 and abs(total - 1) <= CLOSE):
            shown = checks.short(one.probabilities.tolist())
            raise ValueError(f"{where} must have probabilities >= 0 that sum to 1, got {shown}")
    if one.subject is not None:
        checked_id(one.subject, "subject")
    if one.status == LEARNED and one.reward is None:
        raise ValueError(f"{where} must have a reward, as it was learned, got None")
    if one.reward is not None and not abs(one.reward) <= LARGEST_REWARD:
        raise ValueError(
            f"{where} must have a reward of at most {LARGEST_REWARD:g} in size, got {one.reward:g}"
        )
    for time in (one.time, one.reward_time or 0):
        if type(time) is not int or not FIRST_TIME <= time <= LAST_TIME:
            raise ValueError(f"{where} must have times within the years 1 to 9999, got {time} microseconds")
    if design is not None:
        if one.named is None:
            raise ValueError(f"{where} must have named values")
        arms: Any = one.named.arms
        if one.named.own is not None:
            arms = dict(zip(arms, one.named.own, strict=True))
        design.check(one.named.context, arms, made=True)
    elif one.status == OPEN:
        offered: Any = one.offered
        features = check_features(f"features of {one.event_id!r}", offered, "arms", "dim")
        if features.shape != (count, dim):
            raise ValueError(f"{where} must have features of dim {dim} for each arm, got {features.shape}")
