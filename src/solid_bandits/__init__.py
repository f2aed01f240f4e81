"""Contextual linear bandits: SOLID, its rivals, and the regret lower bound they are measured by."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solid_bandits import problems as problems
    from solid_bandits.agent import Agent as Agent
    from solid_bandits.bounds import lower_bound as lower_bound
    from solid_bandits.bounds import lower_bound_at as lower_bound_at
    from solid_bandits.bounds import pure_exploration as pure_exploration
    from solid_bandits.confidence import confidence_radius as confidence_radius
    from solid_bandits.policies.greedy import Greedy as Greedy
    from solid_bandits.policies.lints import LinTS as LinTS
    from solid_bandits.policies.linucb import LinUCB as LinUCB
    from solid_bandits.policies.solid import Solid as Solid
    from solid_bandits.problem import Problem as Problem
    from solid_bandits.problem import View as View
    from solid_bandits.problem import make_view as make_view
    from solid_bandits.results import Results as Results
    from solid_bandits.simulation import simulate as simulate

__version__ = "0.1.0"

# Public name -> module. Loaded on first use, so that `import solid_bandits` and `solid-bandits --help` do not
# wait for the compiler and the plotting libraries.
_HOMES = {
    "Agent": "agent",
    "Greedy": "policies.greedy",
    "LinTS": "policies.lints",
    "LinUCB": "policies.linucb",
    "Problem": "problem",
    "Results": "results",
    "Solid": "policies.solid",
    "View": "problem",
    "confidence_radius": "confidence",
    "lower_bound": "bounds",
    "lower_bound_at": "bounds",
    "make_view": "problem",
    "pure_exploration": "bounds",
    "simulate": "simulation",
}

__all__ = [*sorted([*_HOMES, "problems"])]


def __getattr__(name: str) -> Any:
    if name == "problems":
        value = importlib.import_module("solid_bandits.problems")
    elif name in _HOMES:
        value = getattr(importlib.import_module(f"solid_bandits.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module 'solid_bandits' has no attribute {name!r}")
    globals()[name] = value  # found at once the next time
    return value


def __dir__() -> list[str]:
    return __all__
