"""What is known of a policy, declared in its class: the paper's Table 1, extended. The catalogue collects it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

DEAREST = (0.3, 0.0, 0.08)
"""What a policy costs that does not say."""


class Variant(NamedTuple):
    """A policy with other parameters that has a name of its own."""

    parameters: Mapping[str, Any]
    facts: Mapping[str, Any]
    """What is otherwise known of it: fields of `Facts`."""


@dataclass(frozen=True)
class Facts:
    """What is known of a policy.

    Args:
        name: on the command line and in files.
        label: what figures and tables call it.
        line: what it does, in one line.
        setting: what its theory is about.
        optimality: what is proved of its regret as n grows: the constant of the lower bound, its order, or nothing.
        exploration: what makes it explore.
        test: how it decides between exploring and exploiting.
        reference: where it is from.
        cost: CPU microseconds of a step, roughly: once, per pair of context and arm, per pair and dimension; fitted by
            eye to the runs behind docs/reproduction.md and docs/jester.md.
        one_context: whether it refuses several contexts.
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
