"""Rules of identification: against their slow forms arm by arm, and the small linear program against SciPy's."""

import numpy as np
import pytest

import naive_identification as slow
import solid_bandits as sb
from solid_bandits import identification
from solid_bandits.identification.explorer import RULES
from solid_bandits.identification.game import solve_game

ONE = sb.Problem([[[1, 0, 0.2], [0, 1, 0], [0.9, 0.3, 0], [0.1, 0.2, 1]]], theta=[1, 0.1, 0.3])
TWO = sb.Problem(
    [[[1, 0, 0.1], [0.2, 1, 0], [0.7, 0.4, 0.3]], [[0, 0.3, 1], [0.5, 0.8, 0.2], [0.9, 0, 0.6]]],
    theta=[0.8, 0.2, 0.3],
    context_probs=[0.7, 0.3],
    noise_std=0.5,
)
PROBLEMS = {"one context": ONE, "two contexts": TWO}


def searched(rule, problem, seed, rounds):
    """The arms of the compiled rule until the stop, and the rounds as they were drawn."""
    rng = np.random.default_rng(seed)
    contexts = rng.choice(problem.n_contexts, size=rounds, p=problem.context_probs)
    noise = problem.noise_std * rng.normal(size=rounds)
    search = identification.Explorer(problem.features, rule, delta=0.1, noise_std=problem.noise_std)
    arms = []
    for context, shock in zip(contexts, noise, strict=True):
        arms.append(search.next(context))
        search.learn(problem.means[context, arms[-1]] + shock)
        if search.found:
            break
    return search, arms, contexts, noise


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("rule", RULES)
def test_arms_and_the_stop_are_those_of_the_slow_form(rule, name):
    problem = PROBLEMS[name]
    search, arms, contexts, noise = searched(rule, problem, 3, 260)
    naive = slow.Naive(problem.features, 0.1, problem.noise_std)
    known, stop = naive.play(slow.RULES[rule](), problem, contexts, noise)
    assert arms == known
    assert (len(arms) if search.found else None) == stop
    assert search.statistic == pytest.approx(naive.statistic(), rel=1e-6)
    assert search.threshold == pytest.approx(naive.threshold(), rel=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_a_problem_is_played_as_an_explorer_plays_it(rule):
    found = identification.identify(TWO, rule, delta=0.1, seed=4)
    draws = np.random.default_rng([4, 0]), np.random.default_rng([4, 1])
    contexts = np.searchsorted(
        np.cumsum(TWO.context_probs)[:-1], draws[0].random(found.samples), side="right"
    )
    noise = TWO.noise_std * draws[1].standard_normal(found.samples)
    search = identification.Explorer(TWO.features, rule, delta=0.1, noise_std=TWO.noise_std)
    for context, shock in zip(contexts, noise, strict=True):
        assert not search.found
        arm = search.next(int(context))
        search.learn(TWO.means[context, arm] + shock)
    assert search.found
    assert search.arms == found.arms
    np.testing.assert_array_equal(search.known.counts, found.counts)


def test_the_game_is_solved_as_by_scipy():
    rng = np.random.default_rng(0)
    for _ in range(200):
        contexts, arms, count = (int(rng.integers(1, most)) for most in (4, 6, 6))
        pairs = contexts * arms
        payoffs, offsets = rng.exponential(size=(24, pairs)), rng.exponential(size=24)
        out = np.zeros(pairs)
        scratch = np.zeros((contexts + 25, pairs + 26)), np.zeros(contexts + 24, dtype=np.int64)
        value = solve_game(payoffs, offsets, count, contexts, *scratch, out)
        expected, _ = slow.best_against(payoffs[:count], offsets[:count], contexts)
        assert value == pytest.approx(expected, abs=1e-9)
        assert out.min() >= 0
        np.testing.assert_allclose(out.reshape(contexts, arms).sum(axis=1), 1.0, atol=1e-12)


def test_a_game_of_zeros_and_ties_ends():
    out = np.zeros(4)
    scratch = np.zeros((27, 30)), np.zeros(26, dtype=np.int64)
    assert solve_game(np.zeros((24, 4)), np.zeros(24), 3, 2, *scratch, out) == 0.0
    assert solve_game(np.ones((24, 4)), np.full(24, 0.5), 3, 2, *scratch, out) == pytest.approx(1.5)
