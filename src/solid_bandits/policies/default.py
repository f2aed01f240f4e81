"""The policy of whoever names none: the best in docs/untold.md among those that cost at most 3 times LinUCB."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from solid_bandits.policies.contract import Policy

DEFAULT = "randucb"
"""Its name in the catalogue; known without loading compiled code, for the command line."""


def default_policy() -> "Policy":
    """Needs to be told nothing: no σ, no ridge, no bound, no horizon."""
    from solid_bandits.policies.randucb import RandUCB

    return RandUCB()
