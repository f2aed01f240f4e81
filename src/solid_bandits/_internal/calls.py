"""Names with parameters, as people type them: `randucb(ridge=0.05)` or `toy(xi=0.3)`."""

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from solid_bandits._internal import checks
from solid_bandits._internal.checks import ArgumentError


def parsed(argument: str, text: str) -> tuple[str, dict[str, Any]]:
    """Return name and parameters of `name` or `name(parameter=value, ...)`; values are plain Python literals."""
    name, bracket, rest = text.partition("(")
    if not bracket:
        return text, {}
    wanted = f"must look like name or name(parameter=value), got {text!r}"
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError
        for one in call.keywords:
            if one.arg and isinstance(one.value, ast.Name):
                raise ArgumentError(argument, _unquoted(one.arg, one.value.id, text))
        parameters = {one.arg: ast.literal_eval(one.value) for one in call.keywords if one.arg}
        if len(parameters) < len(call.keywords):  # a repeated parameter, or one with two stars
            raise ValueError
    except ArgumentError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ArgumentError(argument, wanted) from None
    return name.strip(), parameters


def made(make: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    """Call a class or a function with named parameters; an error lists the known ones."""
    known = inspect.signature(make)
    if all(one.kind is not one.VAR_KEYWORD for one in known.parameters.values()):
        check_names(parameters, known.parameters)
    try:
        known.bind(**parameters)
    except TypeError as error:
        raise ArgumentError("parameters", f"must be those of {known} ({error})") from None
    return make(**parameters)


def check_names(parameters: Iterable[str], known: Iterable[str]) -> None:
    """Raise an ArgumentError for a parameter that is not among the known ones; the error carries the parameter's
    name.
    """
    for name in parameters:
        try:
            checks.choice("parameter", name, known)
        except ArgumentError as error:
            error.argument = name  # a reader of files finds the line by this name
            raise


def _unquoted(parameter: str, word: str, text: str) -> str:
    """Return the complaint about a bare word as a value."""
    if word.capitalize() in ("True", "False", "None"):
        return f"must have {parameter}={word.capitalize()}, with a capital letter, got {text!r}"
    return f'needs quotes around text values: {parameter}="{word}", got {text!r}'
