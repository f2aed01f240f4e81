"""VIDS: the best mixture of two arms, and what its samples say; tests/naive.py has the slow form of the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import drive
import naive
import solid_bandits as sb
from solid_bandits.core.randomness import POLICY, make_rng
from solid_bandits.core.setting import make_setting
from solid_bandits.policies import contract
from solid_bandits.policies.mixture import CORNERS, best_mixture, insert_arm, make_hull
from solid_bandits.policies.vids import Memory, remember


def mixed(regrets, information):
    hull, count = make_hull(), 0
    for arm, (regret, gained) in enumerate(zip(regrets, information, strict=True)):
        count = insert_arm(hull, count, arm, regret, gained)
    return best_mixture(hull, count), count


def ratio(pi, regrets, information):
    return (pi @ regrets) ** 2 / (pi @ information)


def as_distribution(mixture, n_arms):
    first, second, chance = mixture
    pi = np.zeros(n_arms)
    pi[first] += 1 - chance
    pi[second] += chance
    return pi


numbers = st.lists(
    st.tuples(st.floats(1e-3, 10), st.floats(0, 10).map(lambda value: round(value, 3))),
    min_size=1,
    max_size=12,
)


@given(numbers, st.integers(0, 10**6))
@settings(max_examples=300)
def test_no_distribution_over_arms_has_a_smaller_ratio(points, seed):
    """Against all pairs in closed form, and against 200 distributions at random: Proposition 6 itself."""
    regrets, information = map(np.array, zip(*points, strict=True))
    if not information.any():
        assert mixed(regrets, information)[0][0] == regrets.argmin()
        return
    pi = as_distribution(mixed(regrets, information)[0], len(points))
    found = ratio(pi, regrets, information)
    first, second, chance = naive.best_pair(regrets, information)
    least = np.zeros(len(points))
    least[first] += 1 - chance
    least[second] += chance
    assert found == pytest.approx(ratio(least, regrets, information), rel=1e-9)
    others = np.random.default_rng(seed).dirichlet(np.full(len(points), 0.3), size=200)
    gained = others @ information
    ratios = (others @ regrets)[gained > 0] ** 2 / gained[gained > 0]
    assert (ratios >= found * (1 - 1e-9)).all()


@given(numbers)
def test_the_hull_is_concave_and_grows(points):
    hull, count = make_hull(), 0
    for arm, (regret, gained) in enumerate(points):
        count = insert_arm(hull, count, arm, regret, gained)
        regrets, information = hull.regrets[:count], hull.information[:count]
        assert (np.diff(regrets) > 0).all()
        assert (np.diff(information) > 0).all()
        slopes = np.diff(information) / np.diff(regrets)
        assert (np.diff(slopes) <= 1e-9 * (1 + slopes[:-1])).all()
        # Every arm so far is on it or below.
        for other_regret, other in points[: arm + 1]:
            if other_regret >= regrets[0]:
                assert other <= np.interp(other_regret, regrets, information) * (1 + 1e-9) + 1e-9


def test_an_arm_without_regret_is_pulled():
    assert mixed([0.3, 0.0, 0.2], [5.0, 0.0, 1.0])[0] == (1, 1, 0.0)


def test_more_corners_than_there_is_room_for_are_left_out():
    """A circle of 500 arms: the mixture is of arms that are there, close to the best."""
    angles = np.linspace(0.01, np.pi / 2 - 0.01, 500)
    regrets, information = 1.1 - np.cos(angles), np.sin(angles)
    order = np.random.default_rng(0).permutation(500)
    mixture, count = mixed(regrets[order], information[order])
    assert count <= CORNERS
    found = ratio(as_distribution(mixture, 500), regrets[order], information[order])
    pair = naive.best_pair(regrets, information)
    least = ((1 - pair[2]) * regrets[pair[0]] + pair[2] * regrets[pair[1]]) ** 2 / (
        (1 - pair[2]) * information[pair[0]] + pair[2] * information[pair[1]]
    )
    assert found <= 1.01 * least


def started(policy, noise_std=0.5, dim=3):
    return contract.start(policy, make_setting(dim, noise_std), None, make_rng(2, 0, POLICY))


def test_what_it_finds_is_the_covariance_of_the_winners():
    """The samples as the agent has drawn them, L and the mixture anew by NumPy."""
    rng = np.random.default_rng(1)
    agent = started(sb.VIDS(samples=64), noise_std=3.0)
    seen = 0
    for _ in range(100):
        arms = rng.normal(size=(5, 3))
        everything = np.ones(5, dtype=np.bool_)
        out = np.full(5, np.nan)
        arm, _ = contract.act(agent, 0, arms, everything, out)
        assert out[arm] > 0
        models = agent.work.models.copy()
        L, ideal = naive.covariance_of_winners(arms, models)
        if L.any():
            assert agent.work.covariance == pytest.approx(L, abs=1e-12)
            regrets, information = ideal - arms @ models.mean(axis=0), np.einsum("ai,ij,aj->a", arms, L, arms)
            first, second, chance = naive.best_pair(np.maximum(regrets, 0), information)
            expected = np.zeros(5)
            expected[first] += 1 - chance
            expected[second] += chance
            assert out == pytest.approx(expected, abs=1e-7)
            seen += (out > 0).sum() == 2
        contract.update(agent, 0, arm, arms[arm], arms[arm] @ [1.0, 0.5, -1.0] + 3.0 * rng.normal(), 0)
    assert seen > 2


def test_memory_holds_whole_decisions():
    """A ring of rows: what is overwritten in part is gone; what does not fit, and single arms, are not kept."""
    memory = Memory(np.zeros((7, 2)), np.zeros(7, dtype=np.int64), np.array(0))

    def offer(step, count, mask=None):
        arms = np.full((count, 2), float(step))
        available = np.ones(count, dtype=np.bool_) if mask is None else np.array(mask)
        remember(memory, arms, available, step)
        return memory.owners.tolist()

    assert offer(1, 3) == [1, 1, 1, 0, 0, 0, 0]
    assert offer(2, 4, [True, False, True, True]) == [1, 1, 1, 2, 2, 2, 0]
    assert offer(3, 2) == [3, 3, 0, 2, 2, 2, 0]
    assert offer(4, 1) == offer(5, 8) == [3, 3, 0, 2, 2, 2, 0]
    assert offer(6, 2) == [3, 3, 6, 6, 0, 0, 0]
    assert offer(7, 7) == [7] * 7
    assert (memory.rows == 7).all()


def test_memory_makes_a_difference():
    problem = sb.problems.random(n_contexts=4, n_arms=5, dim=4, seed=3)
    arms = [drive.arms_of(sb.VIDS(samples=16, memory=memory), problem, 200, seed=0) for memory in (0, 40)]
    assert arms[0] != arms[1]


def test_it_buys_information_where_optimism_fails():
    """The end of optimism, 250 runs: paired with LinTS, 4 standard errors below (false alarm 3e-5)."""
    problem = sb.problems.end_of_optimism(0.2)
    policies = {"VIDS": sb.VIDS(samples=60), "LinTS": sb.LinTS()}
    last = sb.simulate(problem, policies, 2000, runs=250, seed=1, jobs=1).table.filter(step=2000).sort("run")
    ours, lints = (last.filter(policy=name)["regret"].to_numpy() for name in policies)
    assert (ours - lints).mean() < -4 * (ours - lints).std(ddof=1) / np.sqrt(250)


def test_a_state_with_a_memory_that_cannot_be_is_refused():
    agent = started(sb.VIDS(samples=4, memory=5))
    agent.state.memory.owners[2] = 9
    with pytest.raises(ValueError, match=r"^state\.memory must"):
        sb.VIDS(samples=4, memory=5).check_state(agent)
