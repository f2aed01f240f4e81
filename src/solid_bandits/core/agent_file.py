"""An agent as one JSON file of plain numbers: its policy, its setting, its state, and its version."""

import hashlib
import os
from dataclasses import fields
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Raw

from solid_bandits._internal import checks
from solid_bandits._internal.decoding import Content, Count, convert, decode, encode, spelled
from solid_bandits._internal.files import first_line, path_of, read_bytes, size, write_bytes
from solid_bandits._internal.types import Floats, Plain
from solid_bandits.core.setting import Setting, check_features, make_setting
from solid_bandits.policies.contract import Policy

PathLike = str | os.PathLike[str]
KIND = "solid-bandits agent"
VERSION = 4
"""Format version, increased when older states would be read wrongly."""
LARGEST = 2**28
"""Largest size of a file in bytes; as numbers in memory it takes several times as much."""
BANDIT_FILE = b'{"file": "solid-bandits bandit"'
"""First bytes of a bandit's file."""
OWNER = ("policy", "setting", "contexts", "floor")
"""Fields that a state belongs to."""


class AgentFile(NamedTuple):
    """Contents of the file."""

    policy: Policy
    setting: Setting
    contexts: Floats | None
    """Features of the table, if the agent has one."""
    state: Any
    """Nested tables of numbers; in a copy of an agent in plain Python, the object itself."""
    floor: tuple[float, list[int]] | None = None
    """The floor and the random numbers that draw for it, if there is one."""


def write_agent(path: PathLike, content: AgentFile) -> None:
    """Write the file, completely or not at all; a ValueError says why it cannot be written."""
    target = path_of("path", path)
    try:
        state = encode(content.state)
        if b"null" in state:  # how JSON encodes numbers that are not finite
            raise ValueError("its state has numbers that are not finite")
        text = encode({**agent_to_plain(content), "state": Raw(state)}) + b"\n"
        if len(text) > LARGEST:
            raise ValueError(
                f"it would have {size(len(text))}, more than {size(LARGEST)}; pickle the agent instead"
            )
        write_bytes(target, text)
    except (OSError, ValueError) as error:
        raise ValueError(f"agent file {os.fspath(path)!r} cannot be written ({_reason(error)})") from None


def agent_to_plain(content: AgentFile) -> Plain:
    """Return the contents of the file as plain data."""
    policy, setting, contexts, state, floor = content
    owner: Plain = {
        "policy": spelled(policy.describe()),
        "setting": setting._asdict(),
        "contexts": None if contexts is None else contexts.tolist(),
    }
    owner["floor"] = None if floor is None else {"share": floor[0], "rng": floor[1]}
    return {"file": KIND, "version": VERSION, **owner, "state_of": _fingerprint(owner), "state": state}


def read_agent(path: PathLike, own: Policy | None = None) -> AgentFile:
    """Read the file; a ValueError says what is wrong with it. The state is checked later, by its policy.

    `own` is the policy that was saved, if it is not one of this package.
    """
    source = path_of("path", path)
    name = repr(os.fspath(source))
    try:
        content = read_bytes(source, LARGEST)
        if content.startswith(BANDIT_FILE):
            raise ValueError("it is a bandit's, as Bandit.save writes; load it with Bandit.load")
        plain = decode(content)
    except (OSError, ValueError) as error:
        raise ValueError(f"agent file {name} cannot be read ({_reason(error)})") from None
    return agent_from_plain(plain, f"agent file {name}", own)


class _Floor(Content):
    share: Annotated[float, Meta(gt=0, le=1)]
    rng: Annotated[list[Annotated[int, Meta(ge=0)]], Meta(min_length=4, max_length=4)]

    def __post_init__(self) -> None:
        if max(self.rng) >= 2**64:  # msgspec's own limits end at 2⁶³
            raise ValueError(f"rng must be words of 64 bits, got {max(self.rng)}")


class _Setting(Content):
    dim: Count
    noise_std: float
    theta_bound: float
    horizon: Count
    blocks: Count
    grows: bool


class _Saved(Content):
    """Fields of the file."""

    file: str
    version: int
    policy: Plain
    setting: _Setting
    contexts: list[list[list[float]]] | None
    floor: _Floor | None
    state_of: str
    state: Any


def agent_from_plain(plain: Any, name: str, own: Policy | None = None) -> AgentFile:
    """Return the content of plain data; a ValueError that begins with `name` says what is wrong with it."""
    if not isinstance(plain, dict) or plain.get("file") != KIND:
        raise ValueError(f"{name} must be a file that Agent.save wrote")
    if plain.get("version") != VERSION:
        raise ValueError(
            f"{name} must have version {VERSION}, got {plain.get('version')!r}: it was written by "
            "another version of this package"
        )
    try:
        saved = convert(plain, _Saved)
        if saved.state_of != _fingerprint({field: plain[field] for field in OWNER}):
            raise ValueError("its state belongs to another policy, setting or table")
        contexts = saved.contexts
        table = None if contexts is None else check_features("contexts", contexts, "contexts", "arms", "dim")
        policy = policy_from_plain(saved.policy, own)
        given = saved.setting
        setting = make_setting(
            given.dim,
            given.noise_std or None,
            given.theta_bound or None,
            given.horizon or None,
            given.blocks,
            given.grows,
        )
        if table is not None and table.shape[2] != setting.dim:
            raise ValueError(f"contexts must have dim {setting.dim} as the setting has, got {table.shape[2]}")
        floor = None if saved.floor is None else (saved.floor.share, saved.floor.rng)
        return AgentFile(policy, setting, table, saved.state, floor)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{name} cannot be used: {first_line(error)}") from None


def _reason(error: Exception) -> str:
    """Return why a file is unusable, in one line; the caller adds its name."""
    return error.strerror or first_line(error) if isinstance(error, OSError) else first_line(error)


def _fingerprint(owner: Plain) -> str:
    """Return a hash of policy, setting and table, which a state belongs to."""
    return hashlib.sha256(encode(owner, order="sorted")).hexdigest()[:16]


def policy_from_plain(plain: Plain, own: Policy | None = None) -> Policy:
    """Return the policy that a description names: `own`, or one of this package, so that a file cannot run code."""
    if own is not None:
        return _own(plain, own)
    from solid_bandits.policies.catalogue import CLASSES  # which loads every policy

    parameters = dict(plain)
    try:
        kind = CLASSES[checks.choice("policy.kind", parameters.pop("kind", None), CLASSES)]
    except ValueError as error:
        raise ValueError(f"{error}; give one of your own to Agent.load(path, policy=...)") from None
    known = {field.name for field in fields(kind)}
    if set(parameters) != known:
        raise ValueError(f"policy must have the parameters {', '.join(sorted(known))}")
    return kind(**parameters)


def _own(plain: Plain, policy: Policy) -> Policy:
    """Return the policy that a user gave; raise a ValueError unless it is the one that the file describes."""
    if not isinstance(policy, Policy):
        raise ValueError(f"policy must be the one that was saved, got {checks.short(policy)}")
    given = decode(encode(spelled(policy.describe())))
    if spelled(plain) != given:
        raise ValueError(f"policy must be the one that was saved, {plain}, got {given}")
    return policy
