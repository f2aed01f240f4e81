"""Policies by name, with parameters: `randucb(ridge=0.05)`; those of this package and of a user's module.

A user's module is imported when the user asks for it, and never because a file names it.
"""

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

from solid_bandits._internal import checks
from solid_bandits._internal.calls import check_names, made, parsed
from solid_bandits._internal.checks import ArgumentError
from solid_bandits.policies.catalogue import CATALOGUE, Entry
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.plain import as_policy

_OWN: dict[str, type] = {}
"""Class name -> policy class of an imported module."""


class Named(NamedTuple):
    """A policy found by name."""

    label: str
    """Label in figures and tables."""
    build: Callable[[str, int, Mapping[str, Any]], Policy]
    """Function that makes it from the problem's kind, its number of arms, and parameters."""


def import_policies(module: str) -> list[str]:
    """Import a module, so that its policies, compiled or plain, can be named; return their names."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` does
    try:
        loaded = importlib.import_module(module.strip("."))
    except Exception as error:  # the user's code may raise anything
        raise ArgumentError(
            "import", f"must be a module that can be imported, got {module!r} ({_explained(error)})"
        ) from None
    found = [
        one
        for one in vars(loaded).values()
        if isinstance(one, type) and _is_of(one.__module__, loaded.__name__) and _is_policy(one)
    ]
    if not found:
        raise ArgumentError("import", f"must be a module with a policy in it, got {module!r}, which has none")
    taken = {*CATALOGUE, *(entry.facts.label for entry in CATALOGUE.values())}
    for one in found:
        if one.__name__ in taken:
            raise ArgumentError("import", f"has a policy {one.__name__!r}, which is the name of one of ours")
        if _OWN.get(one.__name__, one) is not one:
            other = _OWN[one.__name__].__module__
            raise ArgumentError("import", f"has a policy {one.__name__!r} as {other!r} has, got {module!r}")
        _OWN[one.__name__] = one
    return [one.__name__ for one in found]


def find(argument: str, name: str) -> Named:
    """Return the policy of this name; an error suggests the nearest one."""
    checks.choice(argument, name, [*CATALOGUE, *_OWN])
    if name in _OWN:
        return Named(name, lambda kind, n_arms, parameters: as_policy("policy", made(_OWN[name], parameters)))
    entry = CATALOGUE[name]
    return Named(
        entry.facts.label, lambda kind, n_arms, parameters: _changed(entry, kind, n_arms, parameters)
    )


def by_name(texts: list[str], kind: str, n_arms: int) -> dict[str, Policy]:
    """Return label -> policy for texts such as `linucb` and `randucb(ridge=0.05)`; each at most once."""
    policies: dict[str, Policy] = {}
    for text in texts:
        name, parameters = parsed("policy", text)
        named = find("policy", name)
        words = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
        label = f"{named.label} ({words})" if parameters else named.label
        if label in policies:
            raise ArgumentError("policy", f"must be named once, got {text!r} twice")
        policies[label] = named.build(kind, n_arms, parameters)
    return policies


def _is_of(module: str, package: str) -> bool:
    """Return whether a class belongs to the module, or to a module below it that it imports from."""
    return module == package or module.startswith(f"{package}.")


def _is_policy(kind: type) -> bool:
    compiled = issubclass(kind, Policy) and not getattr(kind, "__abstractmethods__", None)
    return compiled or all(callable(getattr(kind, name, None)) for name in ("act", "update"))


def _changed(entry: Entry, kind: str, n_arms: int, parameters: Mapping[str, Any]) -> Policy:
    usual = entry.make(kind, n_arms)
    check_names(parameters, [field.name for field in fields(usual)])
    return replace(usual, **parameters)


def _explained(error: Exception) -> str:
    """Return an error of a module, with the last of the module's lines that led to it."""
    if isinstance(error, ModuleNotFoundError):
        return str(error)
    lines = [
        one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith("<frozen")
    ]
    where = (
        f"{lines[-1].filename}, line {lines[-1].lineno}: "
        if lines and not isinstance(error, SyntaxError)
        else ""
    )
    return f"{where}{type(error).__name__}: {error}"
