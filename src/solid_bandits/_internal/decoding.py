"""JSON input and output: a file's content becomes a declared class, or an error names the wrong field."""

import math
import re
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from solid_bandits._internal.checks import LARGEST_INTEGER, short

T = TypeVar("T")

Integer = Annotated[int, Meta(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
Count = Annotated[int, Meta(ge=0, le=LARGEST_INTEGER)]
AtLeastOne = Annotated[int, Meta(ge=1, le=LARGEST_INTEGER)]
NotNegative = Annotated[float, Meta(ge=0)]

_DEEPEST = 50
"""Largest depth of nested tables; ours have a handful."""

_WORDS = {
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "null": "null",
    "object": "a table",
    "array": "a list",
}


class Content(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Base class for the contents of files; subclasses declare the fields and their limits."""


def encode(content: object, indent: int = 0, order: Literal["sorted"] | None = None) -> bytes:
    """Encode as JSON; finite numbers come back exactly, and other numbers as null."""
    encoded = msgspec.json.encode(content, enc_hook=_of_numpy, order=order)
    return msgspec.json.format(encoded, indent=indent) if indent else encoded


def _of_numpy(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{short(value)} is not plain data")


def _to_numpy(kind: Any, value: Any) -> Any:
    """Return lists of numbers as the array that a class declares; null among floats becomes NaN."""
    dtype = kind.__args__[1].__args__[0]
    number: Any = float | None if dtype is np.float64 else Integer
    nested = isinstance(value, list) and value and isinstance(value[0], list)
    try:
        return np.array(msgspec.convert(value, list[list[number]] if nested else list[number]), dtype=dtype)
    except ValueError:  # msgspec's own error would not locate the list
        wanted = "numbers" if dtype is np.float64 else "integers"
        raise ValueError(f"must be lists of {wanted}, equally long, got {short(value)}") from None


def decode(content: bytes) -> Any:
    """Decode JSON as plain data; raise a ValueError that says where it is malformed, too large or too deep."""
    try:
        plain = msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise ValueError(str(error).replace("`", "")) from None
    except RecursionError:
        raise ValueError(f"it is nested more than {_DEEPEST} deep") from None
    level = [plain] if isinstance(plain, dict | list) else []
    for _ in range(_DEEPEST):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return plain
    raise ValueError(f"it is nested more than {_DEEPEST} deep")


def as_plain(value: object) -> Any:
    """Return a value as a file would give it back, or as text if a file cannot hold it."""
    try:
        return decode(encode(spelled(value)))
    except (TypeError, ValueError, RecursionError):
        return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))  # an address differs from process to process


def spelled(value: object) -> Any:
    """Return a value as plain data with non-finite numbers as text, because JSON has null for all of them."""
    return _spelled(msgspec.to_builtins(value, enc_hook=_of_numpy, str_keys=True))


def _spelled(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {name: _spelled(inner) for name, inner in plain.items()}
    if isinstance(plain, list | tuple):
        return [_spelled(inner) for inner in plain]
    return repr(plain) if isinstance(plain, float) and not math.isfinite(plain) else plain


def convert(plain: object, kind: type[T]) -> T:
    """Convert plain data to a class, with arrays in place of lists of numbers.

    A ValueError names the field, what it must be and what was received.
    """
    try:
        return msgspec.convert(plain, kind, dec_hook=_to_numpy)
    except msgspec.ValidationError as error:
        raise ValueError(_explained(str(error), plain)) from None


def _explained(error: str, plain: Any) -> str:
    """Return msgspec's error in the wording of this package."""
    said, _, path = error.partition(" - at `$")
    path = path.removesuffix("`").removeprefix(".")
    field = re.fullmatch("Object (missing required|contains unknown) field `(.*)`", said)
    if field is not None:
        name = f"{path}.{field[2]}" if path else field[2]
        return f"{name} is missing" if field[1] == "missing required" else f"{name} is not a field of it"
    expected = re.fullmatch("Expected (.+?)(?:, got (.+))?", said)
    if expected is None or "`key`" in path:  # raised by a class itself
        return f"{path}{' ' if said.startswith('must') else ': '}{said}" if path else said
    wanted, got = (_in_words(part or "") for part in expected.groups())
    if "..." not in path:  # the entry of a table cannot be named
        for place, name in re.findall(r"\[(\d+)\]|(\w+)", path):
            plain = plain[int(place)] if place else plain[name]
        got = short(plain)
    return f"{path or 'it'} must be {wanted}" + (f", got {got}" if got else "")


def _in_words(types: str) -> str:
    types = re.sub(r"`([^`]*)`", lambda found: found[1].replace(" | ", " or "), types)
    return re.sub(r"\w+", lambda found: _WORDS.get(found[0], found[0]), types)
