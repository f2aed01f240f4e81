"""One run of a cell: the simulation's loop, with two more kinds of rewards, and contexts found by bisection.

With Gaussian rewards the regret is that of `sb.simulate`, from the same draws in the same order.
"""

import math

import numpy as np

from solid_bandits._internal.compiling import compiled_for, jit_apart
from solid_bandits.core.randomness import ENVIRONMENT, POLICY, make_rng, normal, uniform
from solid_bandits.policies.contract import act, start, update

KINDS = {"gaussian": 0, "binary": 1, "student": 2}


@jit_apart
def _played(agent, features, means, gaps, edges, available, noise_std, kind, horizon, environment):
    regret = 0.0
    for _ in range(horizon):
        point = uniform(environment)
        if kind == 0:
            noise = noise_std * normal(environment)
        elif kind == 1:
            noise = uniform(environment)
        else:
            # Three degrees of freedom, made to have variance 1: a normal over the root of a chi-square of three.
            drawn = normal(environment)
            square = normal(environment) ** 2 + normal(environment) ** 2 + normal(environment) ** 2
            noise = noise_std * drawn / math.sqrt(square)
        low, high = 0, edges.shape[0] - 1
        while low < high:
            middle = (low + high) // 2
            if point >= edges[middle]:
                low = middle + 1
            else:
                high = middle
        arms = features[low]
        arm, _ = act(agent, low, arms, available, None)
        mean = means[low, arm]
        reward = (1.0 if noise < mean else 0.0) if kind == 1 else mean + noise
        update(agent, low, arm, arms[arm], reward, 0)
        regret += gaps[low, arm]
    return regret


def final_regret(problem, policy, horizon, seed, run, rewards, tell_noise):
    """Regret at the end of one run."""
    setting, rng = problem.setting(horizon, tell_noise), make_rng(seed, run, POLICY)
    agent = start(policy, setting, problem.table, rng)
    arguments = (
        agent,
        problem.features,
        problem.means,
        problem.gaps,
        np.cumsum(problem.context_probs),
        np.ones(problem.n_arms, dtype=np.bool_),
        problem.noise_std,
        KINDS[rewards],
        horizon,
        make_rng(seed, run, ENVIRONMENT),
    )
    return compiled_for(_played, *arguments)(*arguments)
