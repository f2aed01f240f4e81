"""Labels for policies given as one policy, a list of them, or a mapping from labels."""

from collections.abc import Mapping, Sequence
from typing import Any

from solid_bandits._internal.checks import ArgumentError, short
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.plain import PlainPolicy, Player, as_policy

Policies = Policy | Player | Sequence[Policy | Player] | Mapping[str, Policy | Player]
"""Forms in which `simulate` and `summarise` accept policies."""


def labelled(policies: Any) -> dict[str, Policy]:
    """Return label -> policy, in the order given.

    A policy without a label is named after its class; several of one class are told apart by the parameters in which
    they differ: `LinUCB (scale=0.5)`.
    """
    if isinstance(policies, Mapping):
        if not policies:
            raise ArgumentError("policies", "must not be empty; give one such as {'SOLID': Solid()}")
        for label in policies:
            if not isinstance(label, str):
                raise ArgumentError("policies", f"must have text labels, got {short(label)}")
        return {label: as_policy(f"policies[{label!r}]", one) for label, one in policies.items()}
    if isinstance(policies, str) or policies is None:
        raise ArgumentError(
            "policies",
            f"must be a policy such as Solid(), a list of them, or labels with policies, got {short(policies)}",
        )
    if not isinstance(policies, list | tuple):
        given = [as_policy("policies", policies)]
    else:
        given = [as_policy(f"policies[{place}]", one) for place, one in enumerate(policies)]
    if not given:
        raise ArgumentError("policies", "must not be empty; give one such as [Solid()]")
    named: dict[str, list[Policy]] = {}
    for one in given:
        named.setdefault(one.name, []).append(one)
    labels = {name: _labels(name, alike) for name, alike in named.items()}
    return {labels[one.name].pop(0): one for one in given}


def _labels(name: str, alike: list[Policy]) -> list[str]:
    """Return labels for policies that share a name, in order."""
    if len(alike) == 1:
        return [name]
    parameters = [_parameters(one) for one in alike]
    names = dict.fromkeys(key for one in parameters for key in one)
    differing = [key for key in names if len({repr(one.get(key)) for one in parameters}) > 1]
    labels = [
        f"{name} ({', '.join(f'{key}={short(one[key])}' for key in differing if key in one)})"
        for one in parameters
    ]
    if not differing or len(set(labels)) < len(labels):
        raise ArgumentError(
            "policies",
            f"must differ in their parameters, got {name} more than once; give labels: {{'first': ..., 'second': ...}}",
        )
    return labels


def _parameters(policy: Policy) -> dict[str, Any]:
    described = policy.describe()
    own: dict[str, Any] = described["attributes"] if isinstance(policy, PlainPolicy) else described
    return own
