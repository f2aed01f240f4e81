"""Driving a policy by hand, through the generic kernels of the contract."""

import numpy as np

from solid_bandits.core.randomness import POLICY, make_rng
from solid_bandits.policies import contract
from solid_bandits.policies.state import arrays_of


def begin(policy, problem, horizon=None, seed=0, run=0):
    """A new agent of a policy of either kind."""
    return contract.start(policy, problem.setting(horizon), problem.table, make_rng(seed, run, POLICY))


def all_arms(problem):
    return np.ones(problem.n_arms, dtype=np.bool_)


def act(agent, problem, context):
    """(arm, explored), all arms of the context being available."""
    return contract.act(agent, context, problem.features[context], all_arms(problem), None)


def update(agent, problem, context, arm, reward):
    contract.update(agent, context, arm, problem.features[context, arm], reward, 0)


def chances(agent, context, arms, available):
    """The distribution of the next arm, or None where it is not known; nothing is changed."""
    out = np.full(len(available), np.nan)
    arrays = arrays_of(agent.state)
    before = [array.copy() for array in arrays]
    contract.act(agent, context, arms, available, out)
    for array, values in zip(arrays, before, strict=True):
        array[...] = values
    return None if np.isnan(out).any() else out


def probabilities(agent, problem, context):
    """The same, all arms of the context being available."""
    return chances(agent, context, problem.features[context], all_arms(problem))


def decisions(agent, problem, steps, seed=7):
    """Play, and yield (context, arm, explored, reward) after each step; contexts and noise from a seed of their own."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        context = int(rng.choice(problem.n_contexts, p=problem.context_probs))
        noise = problem.noise_std * rng.normal()
        arm, explored = act(agent, problem, context)
        reward = problem.means[context, arm] + noise
        update(agent, problem, context, arm, reward)
        yield context, arm, explored, reward


def arms_of(policy, problem, steps, seed):
    """Arms pulled one decision at a time."""
    return [arm for _, arm, *_ in decisions(begin(policy, problem, steps, seed), problem, steps)]


def offers(rng, steps, n_arms, dim):
    """Decisions whose features never come twice, some arms not available: (arms, available)."""
    for _ in range(steps):
        available = rng.random(n_arms) < 0.7
        available[rng.integers(n_arms)] = True
        yield rng.normal(size=(n_arms, dim)), available


def follow(reference, agent, problem, steps, seed=7):
    """Drive compiled agent and reference through the same run; they must agree in every arm."""
    rng = np.random.default_rng(seed)
    everything = all_arms(problem)
    for step in range(steps):
        context = int(rng.choice(problem.n_contexts, p=problem.context_probs))
        arms = problem.features[context]
        expected = reference.act(context, arms, everything)
        assert contract.act(agent, context, arms, everything, None) == expected, f"step {step}"
        arm = expected[0]
        reward = problem.means[context, arm] + problem.noise_std * rng.normal()
        reference.update(context, arm, arms[arm], reward)
        contract.update(agent, context, arm, arms[arm], reward, 0)
