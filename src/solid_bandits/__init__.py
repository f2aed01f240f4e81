"""Contextual linear bandits: SOLID, its rivals, and the regret lower bound they are measured by."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solid_bandits import bounds as bounds
    from solid_bandits import kernels as kernels
    from solid_bandits import logs as logs
    from solid_bandits import ope as ope
    from solid_bandits import policies as policies
    from solid_bandits import problems as problems
    from solid_bandits import streams as streams
    from solid_bandits._compile import own_jit as jit  # noqa: F401
    from solid_bandits.agent import Agent as Agent
    from solid_bandits.bounds import best_execution as best_execution
    from solid_bandits.bounds import execute as execute
    from solid_bandits.bounds import lower_bound as lower_bound
    from solid_bandits.bounds import lower_bound_at as lower_bound_at
    from solid_bandits.bounds import lower_bound_in_total as lower_bound_in_total
    from solid_bandits.bounds import pure_exploration as pure_exploration
    from solid_bandits.client import AsyncClient as AsyncClient
    from solid_bandits.client import Client as Client
    from solid_bandits.client_calls import ServiceError as ServiceError
    from solid_bandits.confidence import confidence_radius as confidence_radius
    from solid_bandits.decision import Decision as Decision
    from solid_bandits.live.answers import Choice as Choice
    from solid_bandits.live.answers import Receipt as Receipt
    from solid_bandits.live.bandit import Bandit as Bandit
    from solid_bandits.policies.aoids import AOIDS as AOIDS
    from solid_bandits.policies.contract import DecisionPolicy as DecisionPolicy
    from solid_bandits.policies.contract import Kernels as Kernels
    from solid_bandits.policies.contract import TablePolicy as TablePolicy
    from solid_bandits.policies.end_of_optimism import EndOfOptimism as EndOfOptimism
    from solid_bandits.policies.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
    from solid_bandits.policies.fading import Fading as Fading
    from solid_bandits.policies.greedy import Greedy as Greedy
    from solid_bandits.policies.lints import LinTS as LinTS
    from solid_bandits.policies.linucb import LinUCB as LinUCB
    from solid_bandits.policies.oam import OAM as OAM
    from solid_bandits.policies.ossb import OSSB as OSSB
    from solid_bandits.policies.randucb import RandUCB as RandUCB
    from solid_bandits.policies.solid.policy import Solid as Solid
    from solid_bandits.policies.spl import SPL as SPL
    from solid_bandits.policies.streaming.policy import StreamingSolid as StreamingSolid
    from solid_bandits.policies.ucb1 import UCB1 as UCB1
    from solid_bandits.policies.vids import VIDS as VIDS
    from solid_bandits.problem import Problem as Problem
    from solid_bandits.results import Results as Results
    from solid_bandits.setting import Setting as Setting
    from solid_bandits.setting import Table as Table
    from solid_bandits.simulation.memory import simulate as simulate
    from solid_bandits.simulation.summing import summarise as summarise
    from solid_bandits.streams.base import Stream as Stream
    from solid_bandits.summary import Summary as Summary
    from solid_bandits.theorems import regret_bound as regret_bound
    from solid_bandits.theorems import worst_case_bound as worst_case_bound

__version__ = "0.2.0"

# Public name -> module. Loaded on first use, so that `import solid_bandits` and `solid-bandits --help` do not
# wait for the compiler and the plotting libraries.
_HOMES = {
    "AOIDS": "policies.aoids",
    "DecisionPolicy": "policies.contract",
    "Kernels": "policies.contract",
    "TablePolicy": "policies.contract",
    "jit": "_compile",
    "Agent": "agent",
    "Decision": "decision",
    "AsyncClient": "client",
    "Client": "client",
    "ServiceError": "client_calls",
    "Bandit": "live.bandit",
    "Choice": "live.answers",
    "Receipt": "live.answers",
    "Fading": "policies.fading",
    "EndOfOptimism": "policies.end_of_optimism",
    "EpsilonGreedy": "policies.epsilon_greedy",
    "OAM": "policies.oam",
    "OSSB": "policies.ossb",
    "SPL": "policies.spl",
    "UCB1": "policies.ucb1",
    "VIDS": "policies.vids",
    "Greedy": "policies.greedy",
    "LinTS": "policies.lints",
    "LinUCB": "policies.linucb",
    "Problem": "problem",
    "Results": "results",
    "RandUCB": "policies.randucb",
    "Setting": "setting",
    "Solid": "policies.solid.policy",
    "StreamingSolid": "policies.streaming.policy",
    "Stream": "streams.base",
    "Table": "setting",
    "confidence_radius": "confidence",
    "best_execution": "bounds",
    "execute": "bounds",
    "lower_bound": "bounds",
    "lower_bound_at": "bounds",
    "lower_bound_in_total": "bounds",
    "pure_exploration": "bounds",
    "simulate": "simulation.memory",
    "summarise": "simulation.summing",
    "Summary": "summary",
    "regret_bound": "theorems",
    "worst_case_bound": "theorems",
}

_RENAMED = {"jit": "own_jit"}
"""Public name -> name in its module, where they differ: the package's own kernels are compiled more strictly."""

_PACKAGES = ("bounds", "kernels", "logs", "ope", "policies", "problems", "streams")

__all__ = [*sorted([*_HOMES, *_PACKAGES])]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        value: Any = importlib.import_module(f"solid_bandits.{name}")
    elif name in _HOMES:
        value = getattr(importlib.import_module(f"solid_bandits.{_HOMES[name]}"), _RENAMED.get(name, name))
    else:
        raise AttributeError(f"module 'solid_bandits' has no attribute {name!r}")
    globals()[name] = value  # found at once the next time
    return value


def __dir__() -> list[str]:
    return __all__
