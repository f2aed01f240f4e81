"""The policies by the names that the command line takes."""

from collections.abc import Callable
from typing import NamedTuple

from solid_bandits import _check
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.greedy import Greedy
from solid_bandits.policies.lints import LinTS
from solid_bandits.policies.linucb import LinUCB
from solid_bandits.policies.solid import Solid


class Entry(NamedTuple):
    """One policy of the catalogue."""

    label: str
    """What figures and tables call it."""
    make: Callable[[str, int], Policy]
    """From the problem's kind (`toy`, `random` or `file`) and its number of arms to parameters."""


def _solid(kind: str, n_arms: int) -> Policy:
    # The paper has two sets of parameters: one for the toy, one for everything else it plays.
    return Solid.paper_toy() if kind == "toy" else Solid.paper_random(n_arms)


CATALOGUE = {
    "solid": Entry("SOLID", _solid),
    "linucb": Entry("LinUCB", lambda kind, n_arms: LinUCB()),
    "lints": Entry("LinTS (paper)", lambda kind, n_arms: LinTS(scale="paper")),
    "lints-posterior": Entry("LinTS (posterior)", lambda kind, n_arms: LinTS(scale="posterior")),
    "greedy": Entry("Greedy", lambda kind, n_arms: Greedy()),
}


def by_name(names: list[str], kind: str, n_arms: int) -> dict[str, Policy]:
    """Label -> policy for names of the catalogue; each at most once."""
    policies: dict[str, Policy] = {}
    for name in names:
        entry = CATALOGUE[_check.choice("policy", name, CATALOGUE)]
        if entry.label in policies:
            raise ValueError(f"policy {name!r} is given twice; name each policy once")
        policies[entry.label] = entry.make(kind, n_arms)
    return policies
