"""Driving a policy by hand."""

import numpy as np

import solid_bandits as sb


def arms_of(policy, problem, steps, seed):
    """Arms pulled one decision at a time; contexts and noise from a fixed seed of their own."""
    rng = np.random.default_rng(7)
    agent = sb.Agent(policy, problem.view(steps), seed=seed)
    arms = []
    for _ in range(steps):
        context = int(rng.integers(problem.n_contexts))
        arms.append(agent.act(context))
        agent.update(context, arms[-1], problem.means[context, arms[-1]] + problem.noise_std * rng.normal())
    return arms
