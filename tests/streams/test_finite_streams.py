"""A finite problem as a stream and as a problem: the same arms."""

import polars as pl
import pytest

import solid_bandits as sb

POLICIES = {
    "RandUCB": sb.RandUCB(),
    "LinTS": sb.LinTS(),
    "LinUCB": sb.LinUCB(),
    "EpsilonGreedy": sb.EpsilonGreedy(),
    "Greedy": sb.Greedy(),
}


class Noting:
    """Plays at random, and keeps all it is told."""

    def __init__(self, path):
        self.path = str(path)

    def start(self, setting, rng):
        self.rng = rng
        self.lines = []

    def act(self, arms, available):
        return int(self.rng.integers(len(arms)))

    def update(self, features, reward):
        with open(self.path, "a") as file:
            file.write(f"{features.tolist()} {reward!r}\n")


@pytest.mark.parametrize(
    "problem", [sb.problems.toy(first_context_prob=0.9), sb.problems.random(seed=2)], ids=repr
)
def test_every_policy_pulls_the_same_arms(problem):
    asked = {"horizon": 700, "runs": 3, "seed": 4, "jobs": 1}
    here = sb.simulate(problem, POLICIES, **asked).table
    there = sb.simulate(sb.streams.of_problem(problem), POLICIES, **asked).table
    assert there.select(here.columns).equals(here)  # to the last bit
    assert there["ridge_regret"].null_count() == there.height


def test_features_and_rewards_are_the_same(tmp_path):
    problem = sb.problems.random(n_contexts=3, n_arms=4, dim=3, seed=1)
    for name, one in (("problem", problem), ("stream", sb.streams.of_problem(problem))):
        sb.simulate(one, {"Noting": Noting(tmp_path / name)}, horizon=2000, runs=1, jobs=1)
    # The last ones: a step before the clock starts is played too.
    told, other = ((tmp_path / name).read_text().splitlines()[-2000:] for name in ("problem", "stream"))
    assert len(told) == 2000
    assert other == told


def test_regret_and_reward_add_up_to_the_best_arms_mean():
    """Σ best mean = Σ mean of the arm pulled + regret; noise is what is left, N(0, n σ²)."""
    problem = sb.problems.toy()
    table = sb.simulate(sb.streams.of_problem(problem), {"Greedy": sb.Greedy()}, 5000, 50, jobs=1).table
    last = table.filter(pl.col("step") == 5000)
    best = 5000 * float(problem.context_probs @ problem.means.max(axis=1))
    left = (last["reward"] + last["regret"] - best).to_numpy()
    # Both contexts of the toy have the same best mean, so that nothing but the noise is random.
    assert abs(left.mean()) < 4 * problem.noise_std * (5000 / 50) ** 0.5  # false alarms: 6e-5
