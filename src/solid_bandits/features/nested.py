"""Nested features, as VW's dsjson and Azure Personalizer have them, as names and values: `{"user": {"age": 3}}` is
`user.age`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from solid_bandits._internal.checks import ArgumentError, short
from solid_bandits.core.setting import LARGEST_FEATURE


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield names and values of nested features; what begins with an underscore is no feature."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not key.startswith("_"):
                yield from flat(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        yield path, value
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from flat(inner, f"{path}.{place}" if path else str(place))
    elif isinstance(value, bool | str):
        yield path, value
    elif isinstance(value, int | float):
        if not -LARGEST_FEATURE <= value <= LARGEST_FEATURE:
            raise ArgumentError(
                f"feature {path}", f"must be finite, at most {LARGEST_FEATURE:g} in size, got {short(value)}"
            )
        yield path, value


def merged(objects: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the names and values of a list of objects, which have no name in common."""
    found: dict[str, Any] = {}
    for one in objects:
        for name, value in flat(dict(one)):
            if name in found:
                raise ArgumentError(name, f"must be said once, got {short(found[name])} and {short(value)}")
            found[name] = value
    return found
