"""Text of a TOML file that can locate values: errors name the line of the value at a path."""

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from solid_bandits._internal.checks import ArgumentError
from solid_bandits._internal.types import Plain

Path = tuple[str | int, ...]
"""Tables, indices and keys that lead to a value, such as ("policy", 1, "parameters", "z0")."""


class TomlError(ValueError):
    """Raised for an error in a TOML file, with its name and line."""


class Source:
    """A TOML file with its text.

    Args:
        name: name of the file, for error messages.
        text: content of the file.

    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.lines = text.splitlines()
        try:
            self.content: Plain = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise TomlError(f"{name} is not TOML: {error}") from None

    def error(self, path: Path, complaint: object) -> TomlError:
        """Return the error for an invalid value."""
        return TomlError(f"{self.name}, line {self.line(path)}: {complaint}")

    @contextmanager
    def at(self, *path: str | int) -> Iterator[None]:
        """Attribute errors raised within to the value at this path, or to the argument below it that they name."""
        try:
            yield
        except TomlError:
            raise
        except ArgumentError as error:
            raise self.error((*path, error.argument), error) from None
        except ValueError as error:
            raise self.error(path, error) from None

    def line(self, path: Path) -> int:
        """Return the line on which a value begins; if it is absent, the line of the nearest table around it.

        TOML's parser does not report lines. A value begins after the last line up to which the text parses without it.
        """
        while not _holds(self.content, path):
            path = path[:-1]
        if not path:
            return 1
        whole = 0
        for count in range(1, len(self.lines) + 1):
            try:
                content = tomllib.loads("\n".join(self.lines[:count]))
            except tomllib.TOMLDecodeError:
                continue
            if _holds(content, path):
                break
            whole = count
        return whole + 1


def _holds(content: Any, path: Path) -> bool:
    for key in path:
        if isinstance(key, int):
            if not isinstance(content, list) or key >= len(content):
                return False
        elif not isinstance(content, dict) or key not in content:
            return False
        content = content[key]
    return True
