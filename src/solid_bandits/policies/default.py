"""The default policy: the best in docs/untold.md among those that cost at most 3 times as much as LinUCB."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from solid_bandits.policies.contract import Policy

DEFAULT = "randucb"
"""Its name in the catalogue, available to the command line without loading compiled code."""


def default_policy() -> "Policy":
    """Return the default policy, which needs no σ, ridge, bound or horizon."""
    from solid_bandits.policies.randucb import RandUCB

    return RandUCB()
