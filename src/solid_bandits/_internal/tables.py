"""polars by another name, loaded when the first table is asked for; the extra `tables` installs it.

Modules that most users need, and that only make tables of what they hold, import this instead of polars.
"""

from typing import Any

from solid_bandits._internal import extras


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(extras.load("polars", "a table"), name)
