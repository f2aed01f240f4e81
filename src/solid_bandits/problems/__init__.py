"""Constructors of problems: the paper's toy, its random generator, its Jester; the end of optimism's."""

from solid_bandits.problems._jester_fit import JesterModel
from solid_bandits.problems.end_of_optimism import end_of_optimism
from solid_bandits.problems.jester import jester, jester_model
from solid_bandits.problems.random import random
from solid_bandits.problems.toy import toy

__all__ = ["JesterModel", "end_of_optimism", "jester", "jester_model", "random", "toy"]
