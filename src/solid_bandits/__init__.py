"""Contextual linear bandits: decisions with features, true probabilities, regret bounds, and SOLID and its rivals."""

from typing import TYPE_CHECKING

from solid_bandits._internal.lazy import lazy

if TYPE_CHECKING:
    from solid_bandits import bounds as bounds
    from solid_bandits import client as client
    from solid_bandits import errors as errors
    from solid_bandits import extend as extend
    from solid_bandits import logs as logs
    from solid_bandits import ope as ope
    from solid_bandits import policies as policies
    from solid_bandits import problems as problems
    from solid_bandits import streams as streams
    from solid_bandits.core.agent import Agent as Agent
    from solid_bandits.core.decision import Decision as Decision
    from solid_bandits.core.problem import Problem as Problem
    from solid_bandits.features.spec import Features as Features
    from solid_bandits.live.bandit import Bandit as Bandit
    from solid_bandits.policies import rivals as rivals
    from solid_bandits.policies.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
    from solid_bandits.policies.greedy import Greedy as Greedy
    from solid_bandits.policies.lints import LinTS as LinTS
    from solid_bandits.policies.linucb import LinUCB as LinUCB
    from solid_bandits.policies.randucb import RandUCB as RandUCB
    from solid_bandits.policies.solid.policy import Solid as Solid
    from solid_bandits.policies.vids import VIDS as VIDS
    from solid_bandits.simulation.results import Results as Results
    from solid_bandits.simulation.simulate import simulate as simulate
    from solid_bandits.simulation.summarise import summarise as summarise

__version__ = "0.2.0"

_HOMES = {
    "Agent": "core.agent",
    "Bandit": "live.bandit",
    "Decision": "core.decision",
    "EpsilonGreedy": "policies.epsilon_greedy",
    "Features": "features.spec",
    "Greedy": "policies.greedy",
    "LinTS": "policies.lints",
    "LinUCB": "policies.linucb",
    "Problem": "core.problem",
    "RandUCB": "policies.randucb",
    "Results": "simulation.results",
    "Solid": "policies.solid.policy",
    "VIDS": "policies.vids",
    "bounds": "bounds:",
    "client": "client:",
    "errors": "errors:",
    "extend": "extend:",
    "logs": "logs:",
    "ope": "ope:",
    "policies": "policies:",
    "problems": "problems:",
    "rivals": "policies.rivals:",
    "simulate": "simulation.simulate",
    "streams": "streams:",
    "summarise": "simulation.summarise",
}

__all__ = [*_HOMES]
__getattr__, __dir__ = lazy(__name__, _HOMES)
