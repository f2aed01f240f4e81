"""Public names that are loaded on first use."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from solid_bandits._internal import extras


def lazy(module: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a module's `__getattr__` and `__dir__`, so that importing it loads neither compiler nor plots.

    Args:
        module: its `__name__`.
        homes: public name -> the module below `solid_bandits` that defines it under the same name, or `module:name` if
            it has another name there or is itself a module (`bounds:`).

    """
    public = importlib.import_module(module)

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, colon, other = homes[name].partition(":")
        try:
            found = importlib.import_module(f"solid_bandits.{home}")
        except ModuleNotFoundError as error:
            raise extras.missing(error, name) or error from None
        value = getattr(found, other or name) if other or not colon else found
        setattr(public, name, value)  # found directly the next time
        return value

    return get, lambda: sorted(homes)
