"""An agent as one JSON file of plain numbers: which policy, in which setting, with what state, of which version."""

import hashlib
import json
import os
from dataclasses import fields
from typing import Any, NamedTuple

from solid_bandits import _check
from solid_bandits._files import first_line, path_of, read_bytes, size, write_text
from solid_bandits._types import Floats, Plain
from solid_bandits.policies.catalogue import CLASSES
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.fading import Fading
from solid_bandits.setting import Setting, check_features, make_setting

PathLike = str | os.PathLike[str]
KIND = "solid-bandits agent"
VERSION = 2
"""Of the format: raised when a state of before would be read wrongly."""
LARGEST = 2**28
"""Bytes of a file: as numbers in memory they take several times as much."""
_ZIP = b"PK\x03\x04"
"""What a zip archive begins with."""
OWNER = ("policy", "setting", "contexts", "floor")
"""What a state belongs to."""


class AgentFile(NamedTuple):
    """What the file says."""

    policy: Policy
    setting: Setting
    contexts: Floats | None
    """Features of the table, where the agent has one."""
    state: Any
    """Nested tables of numbers; in a copy of an agent in plain Python, the object itself."""
    floor: tuple[float, list[int]] | None = None
    """The floor and the words of the stream that draws for it, where there is one."""


def write_agent(path: PathLike, content: AgentFile) -> None:
    """Write the file, whole or not at all; a ValueError says why it cannot be written."""
    target = path_of("path", path)
    plain = agent_to_plain(content)
    try:
        text = json.dumps(plain, allow_nan=False) + "\n"
        if len(text) > LARGEST:
            raise ValueError(
                f"it would have {size(len(text))}, more than {size(LARGEST)}; pickle the agent instead"
            )
        write_text(target, text)
    except (OSError, ValueError) as error:
        raise ValueError(f"agent file {os.fspath(path)!r} cannot be written ({_reason(error)})") from None


def agent_to_plain(content: AgentFile) -> Plain:
    """What the file holds, as plain data."""
    policy, setting, contexts, state, floor = content
    owner: Plain = {
        "policy": policy.describe(),
        "setting": setting._asdict(),
        "contexts": None if contexts is None else contexts.tolist(),
    }
    owner["floor"] = None if floor is None else {"share": floor[0], "stream": floor[1]}
    return {"file": KIND, "version": VERSION, **owner, "state_of": _fingerprint(owner), "state": state}


def read_agent(path: PathLike, own: Policy | None = None) -> AgentFile:
    """Read the file; a ValueError says what is wrong with it. The state is checked by who knows its policy.

    `own` is the policy that was saved where it is not one of this package.
    """
    source = path_of("path", path)
    name = repr(os.fspath(source))
    try:
        content = read_bytes(source, LARGEST)
        if content.startswith(_ZIP):
            raise ValueError("it is a zip archive, as Bandit.save writes; load it with Bandit.load")
        plain = json.loads(content.decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"agent file {name} cannot be read ({_reason(error)})") from None
    return agent_from_plain(plain, f"agent file {name}", own)


def agent_from_plain(plain: Any, name: str, own: Policy | None = None) -> AgentFile:
    """The content of plain data; a ValueError that begins with `name` says what is wrong with it."""
    wanted = ("file", "version", "policy", "setting", "contexts", "floor", "state_of", "state")
    if not isinstance(plain, dict) or plain.get("file") != KIND:
        raise ValueError(f"{name} must be a file that Agent.save wrote")
    if plain.get("version") != VERSION:
        raise ValueError(
            f"{name} must have version {VERSION}, got {plain.get('version')!r}: it was written by "
            "another version of this package"
        )
    if set(plain) != set(wanted):
        raise ValueError(f"{name} must have the fields {', '.join(wanted)}, got {', '.join(plain)}")
    try:
        owner = {field: plain[field] for field in OWNER}
        if plain["state_of"] != _fingerprint(owner):
            raise ValueError("its state belongs to another policy, setting or table")
        contexts = plain["contexts"]
        table = None if contexts is None else check_features("contexts", contexts, "contexts", "arms", "dim")
        policy = _policy(plain["policy"]) if own is None else _own(plain["policy"], own)
        setting = _setting(plain["setting"])
        if table is not None and table.shape[2] != setting.dim:
            raise ValueError(f"contexts must have dim {setting.dim} as the setting has, got {table.shape[2]}")
        return AgentFile(policy, setting, table, plain["state"], _floor(plain["floor"]))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{name} cannot be used: {first_line(error)}") from None


def _floor(plain: Any) -> tuple[float, list[int]] | None:
    if plain is None:
        return None
    words = plain.get("stream") if isinstance(plain, dict) and set(plain) == {"share", "stream"} else None
    if not isinstance(words, list) or len(words) != 4 or not all(_is_word(word) for word in words):
        raise ValueError("floor must have a share and a stream of four words")
    return _check.number("floor", plain["share"], above=0, most=1), words


def _is_word(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**64


def _reason(error: Exception) -> str:
    """Why a file is of no use, in one line, its name left to whoever says it."""
    return error.strerror or first_line(error) if isinstance(error, OSError) else first_line(error)


def _fingerprint(owner: Plain) -> str:
    """A hash of policy, setting and table: a state is good for these alone."""
    return hashlib.sha256(json.dumps(owner, sort_keys=True).encode()).hexdigest()[:16]


def _policy(plain: Any) -> Policy:
    """The policy that a description names; only this package's own, so that a file cannot run code."""
    if not isinstance(plain, dict):
        raise ValueError("policy must be a table of parameters")
    parameters = dict(plain)
    if parameters.get("kind") == "Fading" and set(parameters) == {"kind", "half_life", "policy"}:
        return Fading(_policy(parameters["policy"]), parameters["half_life"])
    try:
        kind = CLASSES[_check.choice("policy.kind", parameters.pop("kind", None), CLASSES)]
    except ValueError as error:
        raise ValueError(f"{error}; give one of your own to Agent.load(path, policy=...)") from None
    known = {field.name for field in fields(kind)}
    if set(parameters) != known:
        raise ValueError(f"policy must have the parameters {', '.join(sorted(known))}")
    return kind(**parameters)


def _own(plain: Any, policy: Policy) -> Policy:
    """The policy that a user gave, if it is the one that the file describes."""
    if not isinstance(policy, Policy):
        raise ValueError(f"policy must be the one that was saved, got {_check.short(policy)}")
    given = json.loads(json.dumps(policy.describe()))
    if plain != given:
        raise ValueError(f"policy must be the one that was saved, {plain}, got {given}")
    return policy


def _setting(plain: Any) -> Setting:
    if not isinstance(plain, dict) or set(plain) != set(Setting._fields):
        raise ValueError(f"setting must have the fields {', '.join(Setting._fields)}")
    return make_setting(
        plain["dim"], plain["noise_std"] or None, plain["theta_bound"] or None, plain["horizon"] or None
    )
