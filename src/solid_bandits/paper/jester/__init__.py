"""The paper's Jester problem: its data, the fit of its features, the problem."""

from solid_bandits.paper.jester.fit import JesterModel
from solid_bandits.paper.jester.problem import jester, jester_model

__all__ = ["JesterModel", "jester", "jester_model"]
