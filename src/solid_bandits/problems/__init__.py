"""Constructors of problems: the paper's toy and random problems, and the end of optimism."""

from solid_bandits.problems.end_of_optimism import end_of_optimism
from solid_bandits.problems.random import random
from solid_bandits.problems.toy import toy

__all__ = ["end_of_optimism", "random", "toy"]
