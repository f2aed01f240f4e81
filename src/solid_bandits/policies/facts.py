"""Facts about a policy, declared in its class: the paper's Table 1, extended. The catalogue collects them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

DEAREST = (0.3, 0.0, 0.08)
"""Cost of a policy that declares none."""


class Variant(NamedTuple):
    """A policy with other parameters and a name of its own."""

    parameters: Mapping[str, Any]
    facts: Mapping[str, Any]
    """Facts that differ for it: fields of `Facts`."""


@dataclass(frozen=True)
class Facts:
    """Facts about a policy.

    Args:
        name: its name on the command line and in files.
        label: its name in figures and tables.
        line: a one-line description.
        setting: the setting of its theory.
        optimality: what is proved about its regret as n grows: the constant of the lower bound, its order, or nothing.
        exploration: what makes it explore.
        test: how it decides between exploring and exploiting.
        reference: where it was published.
        cost: approximate CPU microseconds of a step: once, per pair of context and arm, per pair and dimension; fitted
            by
            eye to the runs behind docs/reproduction.md and docs/jester.md.
        one_context: whether it accepts only a single context.
        variants: name -> the policy with other parameters.

    """

    name: str
    label: str
    line: str
    setting: str = "linear, contextual"
    optimality: str = "none"
    exploration: str = "none"
    test: str = "none"
    reference: str = ""
    cost: tuple[float, float, float] = DEAREST
    one_context: bool = False
    variants: Mapping[str, Variant] = field(default_factory=dict)
