"""What a compiled policy of your own is made of: the estimator, the arms on offer, random numbers.

Functions to be called from functions that `sb.jit` compiles; docs/own-policy.md builds a policy of them.
"""

from solid_bandits.estimation.arms import ArmsWork as ArmsWork
from solid_bandits.estimation.arms import best_available as best_available
from solid_bandits.estimation.arms import count_available as count_available
from solid_bandits.estimation.arms import estimate_arms as estimate_arms
from solid_bandits.estimation.arms import make_arms_work as make_arms_work
from solid_bandits.estimation.estimator import Estimator as Estimator
from solid_bandits.estimation.estimator import make_estimator as make_estimator
from solid_bandits.estimation.estimator import observe as observe
from solid_bandits.estimation.estimator import squared_norm as squared_norm
from solid_bandits.estimation.estimator import write_theta as write_theta
from solid_bandits.linalg.vectors import dot as dot
from solid_bandits.stream import choose as choose
from solid_bandits.stream import normal as normal
from solid_bandits.stream import uniform as uniform
