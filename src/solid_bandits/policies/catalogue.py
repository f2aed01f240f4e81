"""The policies by their names on the command line: all public ones, with the facts that their classes declare."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import solid_bandits
from solid_bandits._internal.parameters import Parameter, parameters_of
from solid_bandits.policies import rivals
from solid_bandits.policies.contract import DecisionPolicy, Policy
from solid_bandits.policies.facts import Facts


@dataclass(frozen=True)
class Entry:
    """One policy of the catalogue."""

    kind: type[Policy]
    facts: Facts
    changes: dict[str, Any]
    """Parameters of a variant that differ from the defaults."""

    def make(self, kind: str, n_arms: int) -> Policy:
        """Return the policy for a kind of problem (`toy`, `random`, ...) with `n_arms` arms."""
        return replace(self.kind.usual(kind, n_arms), **self.changes)

    @property
    def parameters(self) -> list[Parameter]:
        """Parameters of the policy, with their values."""
        return parameters_of(self.kind(**self.changes))


def _public() -> Iterator[type[Policy]]:
    """Yield the policies among the public names, those that decide from features first."""
    homes = {**solid_bandits._HOMES, **rivals._HOMES}
    found = [
        getattr(import_module(f"solid_bandits.{home}"), name)
        for name, home in sorted(homes.items(), key=lambda one: one[0].casefold())
        if home.startswith("policies.") and not home.endswith(":")
    ]
    known = [one for one in found if issubclass(one, Policy) and one.facts is not None]
    return iter(sorted(known, key=lambda one: not issubclass(one, DecisionPolicy)))


def _entries(kind: type[Policy]) -> Iterator[Entry]:
    assert kind.facts is not None
    yield Entry(kind, kind.facts, {})
    for name, variant in kind.facts.variants.items():
        yield Entry(kind, replace(kind.facts, name=name, **variant.facts), dict(variant.parameters))


CLASSES = {kind.__name__: kind for kind in _public()}
"""Class name -> policy class."""

DECIDING = [name for name, kind in CLASSES.items() if issubclass(kind, DecisionPolicy)]
"""Names of the policies that decide from features."""
SEVERAL_CONTEXTS = [
    name
    for name, kind in CLASSES.items()
    if name not in DECIDING and kind.facts and not kind.facts.one_context
]
"""Names of the policies that plan over a table of several contexts."""

CATALOGUE = {entry.facts.name: entry for kind in CLASSES.values() for entry in _entries(kind)}
"""Name -> policy or variant."""


def policy_lines() -> dict[str, str]:
    """Return name -> a one-line description of each policy."""
    return {name: f"{entry.facts.label}: {entry.facts.line}" for name, entry in CATALOGUE.items()}


def policy_table() -> list[dict[str, str]]:
    """Return one row per policy: the paper's Table 1, extended. All rows have the same columns."""
    return [
        {
            "name": name,
            "policy": facts.label,
            "class": entry.kind.__name__,
            "contexts": "one" if facts.one_context else "several",
            **{key: getattr(facts, key) for key in ("setting", "optimality", "exploration", "test")},
            "parameters": ", ".join(f"{one.name}={one.value!r}" for one in entry.parameters) or "none",
            "reference": facts.reference,
            "line": facts.line,
        }
        for name, entry in CATALOGUE.items()
        for facts in [entry.facts]
    ]
