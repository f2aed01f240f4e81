"""An experiment: problems x policies x horizon x runs, and its claims.

`reader.load` reads one from a TOML file; the paper's own experiments are files in this folder.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from solid_bandits.paper.naming import constructor
from solid_bandits.paper.outcome import Claim, UnderReading
from solid_bandits.simulation.block import run_seconds
from solid_bandits.simulation.plan import Plan, Playable


@dataclass(frozen=True)
class Part:
    """One panel of an experiment's figure: all policies on one problem, or on one family of problems."""

    label: str
    plan: Plan
    slug: str
    """The name of its directory: letters, digits and dashes."""


@dataclass(frozen=True)
class Experiment:
    """Everything to be played in one experiment, with the claims about it."""

    name: str
    title: str
    about: str
    scale: str
    parts: tuple[Part, ...]
    claims: tuple[Claim, ...]
    readings: tuple[str, ...] = ()
    """Readings of SOLID that are played, if the file asks for several."""
    played: Mapping[str, UnderReading] = field(default_factory=dict)
    """Labels of policies under readings, and the policy and reading of each."""

    @property
    def steps(self) -> int:
        """Total number of steps of all policies in all runs of all parts."""
        return sum(part.plan.horizon * part.plan.runs * len(part.plan.policies) for part in self.parts)

    @property
    def seconds(self) -> float:
        """Estimated CPU seconds."""
        return sum(
            part.plan.runs * run_seconds(part.plan, label)
            for part in self.parts
            for label in part.plan.policies
        )


@dataclass(frozen=True)
class NewEachRun:
    """A new problem in each run, from the constructor with that run's seed."""

    kind: str
    parameters: Mapping[str, Any]

    def __call__(self, run: int) -> Playable:
        """Return the problem of one run."""
        parameters = {**self.parameters, "seed": self.parameters.get("seed", 0) + run}
        return constructor(self.kind)(**parameters)


def slugs(labels: Sequence[str]) -> list[str]:
    """Return a directory name for each label: letters, digits and dashes, numbered where two labels collide."""
    found: list[str] = []
    for number, label in enumerate(labels, start=1):
        plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
        slug = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-") or "part"
        found.append(f"{slug}-{number}" if slug in found or slug == "part" else slug)
    return found
