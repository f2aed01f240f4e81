"""Every compiled policy pulls the arms of its plain NumPy reference."""

import numpy as np
import pytest

import drive
import naive
import naive_rivals
import solid_bandits as sb
from certified import assert_solves
from solid_bandits.core.randomness import POLICY, make_rng
from solid_bandits.core.setting import make_setting
from solid_bandits.policies import contract
from variants import DECISION, POLICIES, fitting, takes_one_context

SLOW = ("vids", "streaming")
"""Those whose references are."""


class Allocator:
    """The compiled agent's allocation, checked against the exact lower bound every 40th time."""

    def __init__(self, problem, solution):
        self.problem, self.solution, self.calls = problem, solution, 0

    def __call__(self, means):
        self.calls += 1
        if self.calls % 40 == 1 and np.ptp(means) > 0:
            features = self.problem.features.reshape(-1, self.problem.dim)
            theta = np.linalg.lstsq(features, means.ravel(), rcond=None)[0]
            estimated = sb.Problem(self.problem.features, theta, noise_std=self.problem.noise_std)
            assert_solves(estimated, self.solution)
        return self.solution.pulls


@pytest.mark.parametrize("name", POLICIES)
def test_the_compiled_policy_pulls_the_arms_of_the_reference(name):
    """Step by step, on a table; a reference that follows an allocation is handed the compiled solver's."""
    policy = POLICIES[name]
    problems = [fitting(policy, 2), sb.problems.end_of_optimism(0.3, noise_std=0.3)]
    if not takes_one_context(policy):
        problems += [sb.problems.toy(), sb.problems.random(1, 12, 6, seed=5)]
    for seed, problem in enumerate(problems):
        horizon = 300 if name == "solid theory" or name.startswith(SLOW) else 700
        agent = drive.begin(policy, problem, horizon, seed)
        reference = naive_rivals.start(policy, problem.setting(horizon), problem.table, seed, run=0)
        if hasattr(agent.state, "allocation"):
            reference.allocate = Allocator(problem, agent.state.allocation)
            reference.spanner = getattr(agent.params, "spanner", None)
        everything = drive.all_arms(problem)
        for step, (context, noise) in enumerate(naive.environment(problem, seed, run=0)):
            if step == horizon:
                break
            arms = problem.features[context]
            # The compiled one first: the reference follows its allocation.
            decision = contract.act(agent, context, arms, everything, None)
            assert reference.act(context, arms, everything) == decision, f"step {step}"
            arm = decision[0]
            reward = problem.means[context, arm] + noise
            contract.update(agent, context, arm, arms[arm], reward, 0)
            reference.update(context, arm, arms[arm], reward)


@pytest.mark.parametrize(("horizon", "noise_std"), [(None, 0.5), (2000, None)])
@pytest.mark.parametrize("name", DECISION)
def test_features_that_never_come_twice_and_masks(name, horizon, noise_std):
    policy, steps = DECISION[name], 300 if name.startswith(SLOW) else 2000
    if "theorem" in name:
        noise_std = 0.5  # which it needs
    for seed, (n_arms, dim) in enumerate([(5, 4), (2, 1), (11, 7), (20, 3)]):
        rng = np.random.default_rng(seed)
        theta = rng.normal(size=dim)
        setting = make_setting(dim, noise_std, float(np.linalg.norm(theta)), horizon)
        agent = contract.start(policy, setting, None, make_rng(seed, 0, POLICY))
        reference = naive_rivals.start(policy, setting, None, seed, run=0)
        explored = 0
        for step, (arms, available) in enumerate(drive.offers(rng, steps, n_arms, dim)):
            expected = reference.act(0, arms, available)
            assert contract.act(agent, 0, arms, available, None) == expected, f"step {step}"
            arm = expected[0]
            explored += expected[1]
            if rng.random() < 0.9:  # some rewards never come
                reward = arms[arm] @ theta + 0.5 * rng.normal()
                contract.update(agent, 0, arm, arms[arm], reward, 0)
                reference.update(0, arm, arms[arm], reward)
        assert (explored > 0) == (not name.startswith("greedy"))
