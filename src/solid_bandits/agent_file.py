"""An agent as one JSON file of plain numbers: which policy, in which setting, with what state, of which version."""

import hashlib
import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from solid_bandits import _check
from solid_bandits._files import first_line, write_text
from solid_bandits._types import Floats, Plain
from solid_bandits.policies.catalogue import CLASSES
from solid_bandits.policies.contract import Policy
from solid_bandits.setting import Setting, check_features, make_setting

PathLike = str | os.PathLike[str]
KIND = "solid-bandits agent"
VERSION = 1
"""Of the format: raised when a state of before would be read wrongly."""


class AgentFile(NamedTuple):
    """What the file says."""

    policy: Policy
    setting: Setting
    contexts: Floats | None
    """Features of the table, where the agent has one."""
    state: Any
    """Nested tables of numbers; in a copy of an agent in plain Python, the object itself."""


def write_agent(path: PathLike, content: AgentFile) -> None:
    """Write the file, whole or not at all; a ValueError says why it cannot be written."""
    policy, setting, contexts, state = content
    owner: Plain = {
        "policy": policy.describe(),
        "setting": setting._asdict(),
        "contexts": None if contexts is None else contexts.tolist(),
    }
    plain = {"file": KIND, "version": VERSION, **owner, "state_of": _fingerprint(owner), "state": state}
    try:
        write_text(Path(path), json.dumps(plain, allow_nan=False) + "\n")
    except (OSError, ValueError) as error:
        raise ValueError(f"agent file {os.fspath(path)!r} cannot be written ({_reason(error)})") from None


def read_agent(path: PathLike, own: Policy | None = None) -> AgentFile:
    """Read the file; a ValueError says what is wrong with it. The state is checked by who knows its policy.

    `own` is the policy that was saved where it is not one of this package.
    """
    name = repr(os.fspath(path))
    try:
        plain = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"agent file {name} cannot be read ({_reason(error)})") from None
    wanted = ("file", "version", "policy", "setting", "contexts", "state_of", "state")
    if not isinstance(plain, dict) or plain.get("file") != KIND:
        raise ValueError(f"agent file {name} must be a file that Agent.save wrote")
    if plain.get("version") != VERSION:
        raise ValueError(
            f"agent file {name} must have version {VERSION}, got {plain.get('version')!r}: it was written by "
            "another version of this package"
        )
    if set(plain) != set(wanted):
        raise ValueError(
            f"agent file {name} must have the fields {', '.join(wanted)}, got {', '.join(plain)}"
        )
    try:
        owner = {field: plain[field] for field in ("policy", "setting", "contexts")}
        if plain["state_of"] != _fingerprint(owner):
            raise ValueError("its state belongs to another policy, setting or table")
        contexts = plain["contexts"]
        table = None if contexts is None else check_features("contexts", contexts, "contexts", "arms", "dim")
        policy = _policy(plain["policy"]) if own is None else _own(plain["policy"], own)
        setting = _setting(plain["setting"])
        if table is not None and table.shape[2] != setting.dim:
            raise ValueError(f"contexts must have dim {setting.dim} as the setting has, got {table.shape[2]}")
        return AgentFile(policy, setting, table, plain["state"])
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"agent file {name} cannot be used: {first_line(error)}") from None


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
        raise ValueError(f"policy must be the one that was saved, got {policy!r}")
    given = json.loads(json.dumps(policy.describe()))
    if plain != given:
        raise ValueError(f"policy must be the one that was saved, {plain}, got {given}")
    return policy


def _setting(plain: Any) -> Setting:
    if not isinstance(plain, dict) or set(plain) != set(Setting._fields):
        raise ValueError(f"setting must have the fields {', '.join(Setting._fields)}")
    return make_setting(
        plain["dim"], plain["noise_std"], plain["theta_bound"] or None, plain["horizon"] or None
    )
