"""Constructors of problems: the paper's toy, the paper's random generator."""

from solid_bandits.problems.random import random
from solid_bandits.problems.toy import toy

__all__ = ["random", "toy"]
