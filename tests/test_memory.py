"""What compiled code relies on, handed to it by way of public names: refused before it indexes anything."""

import copy
import json
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import solid_bandits as sb
import unsafe_calls
from solid_bandits import extend
from solid_bandits.policies.own import OwnPolicyError

ROWS = np.eye(3)
SETTING = extend.Setting(dim=3, noise_std=1.0, theta_bound=0.0, horizon=0)
REGRESSION = extend.make_regression(SETTING, norms=True)
BLOCKS = extend.make_regression(SETTING._replace(blocks=4), norms=True)
BLOCK_ROWS = np.array([[-1e9, 1.0, 2.0], [4.0, 1.0, 2.0], [1e30, 1.0, 2.0]])
"""Rows of blocks that there are not."""
WORDS = np.arange(4, dtype=np.uint64)


def changed(part: str, **arrays: Any) -> Any:
    return REGRESSION._replace(**{part: getattr(REGRESSION, part)._replace(**arrays)})


def with_means(means: Any) -> Any:
    return changed("work", arms=REGRESSION.work.arms._replace(means=means))


def play(policy: Any, problem: Any = None) -> None:
    sb.simulate(problem or sb.problems.toy(), {"x": policy}, 5, runs=1, jobs=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: extend.observe_reward(REGRESSION, np.ones(4), 1.0), "of one dim"),
        (
            lambda: extend.observe_reward(changed("estimator", triangle=np.eye(2)), np.ones(3), 1.0),
            "of one dim",
        ),
        (lambda: extend.observe_reward(changed("work", gains=np.ones(1)), np.ones(3), 1.0), "of one dim"),
        (lambda: extend.write_theta(REGRESSION, np.ones(5)), "of one dim"),
        (lambda: extend.value(REGRESSION, np.ones(4), np.ones(3)), "of one dim"),
        (lambda: extend.value(REGRESSION, np.ones(3), np.ones(4)), "of one dim"),
        (lambda: extend.value(BLOCKS, np.ones(3), np.ones(6)), "of one dim"),
        (lambda: extend.value(BLOCKS, np.ones(2), np.ones(8)), "of one dim"),
        (lambda: extend.write_theta(BLOCKS, np.ones(3)), "of one dim"),
        (
            lambda: extend.best_available(BLOCK_ROWS, np.ones(3, dtype=bool), np.ones(8)),
            "theta of the arms' dim",
        ),
        (lambda: extend.squared_norm(changed("estimator", weights=np.ones(1)), np.ones(3)), "of one dim"),
        (lambda: extend.observe_offer(REGRESSION, np.ones((2, 4)), np.ones(2, dtype=bool)), "of one dim"),
        (lambda: extend.observe_offer(REGRESSION, ROWS, np.ones(2, dtype=bool)), "one truth value per arm"),
        (lambda: extend.best_estimated(REGRESSION, ROWS, np.ones(2, dtype=bool)), "one truth value per arm"),
        (lambda: extend.draw_model(REGRESSION, 1.0, np.ones(2), WORDS), "of one dim"),
        (lambda: extend.draw_model(REGRESSION, 1.0, np.ones(3), WORDS[:3]), "of four words"),
        (lambda: extend.estimate_arms(REGRESSION, np.ones((2, 4)), 0), "of one dim"),
        (lambda: extend.estimate_arms(REGRESSION, ROWS, 3), "first must be one of the arms"),
        (lambda: extend.estimate_arms(REGRESSION, ROWS, -1), "first must be one of the arms"),
        (lambda: extend.estimate_arms(with_means(np.ones(1)), ROWS, 0), "made with norms=True"),
        (lambda: extend.best_available(ROWS, np.ones(2, dtype=bool), np.ones(3)), "one truth value per arm"),
        (lambda: extend.best_available(ROWS, np.ones(3, dtype=bool), np.ones(2)), "theta of the arms' dim"),
        (lambda: extend.dot(np.ones(3), np.ones(2)), "of one length"),
        (lambda: extend.uniform(WORDS[:3]), "of four words"),
        (lambda: extend.normal(WORDS[:1]), "of four words"),
        (lambda: extend.choose(np.ones(2) / 2, WORDS[:2]), "of four words"),
        (lambda: extend.make_regression(SETTING._replace(dim=0)), "dim must be an integer >= 1"),
        (lambda: extend.make_regression(SETTING, ridge=0.0), "ridge must be > 0"),
        (lambda: extend.make_regression(SETTING, half_life=0.5), "half_life must be"),
    ],
)
def test_public_kernels_refuse_arrays_that_do_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_public_kernels_do_what_the_inner_ones_do():
    rng = np.random.default_rng(0)
    regression = extend.make_regression(SETTING, 0.5, norms=True)
    work = regression.work.arms
    gram, sums = 0.5 * np.eye(3), np.zeros(3)
    for _ in range(20):
        features, reward = rng.normal(size=3), rng.normal()
        extend.observe_reward(regression, features, reward)
        gram += np.outer(features, features)
        sums += reward * features
    theta = np.zeros(3)
    extend.write_theta(regression, theta)
    assert theta == pytest.approx(np.linalg.solve(gram, sums))
    arms = rng.normal(size=(5, 3))
    assert extend.estimate_arms(regression, arms, 0) == 5
    norms = (arms * np.linalg.solve(gram, arms.T).T).sum(axis=1)
    assert work.means[:5] == pytest.approx(arms @ theta)
    assert work.sq_norms[:5] == pytest.approx(norms)
    assert extend.squared_norm(regression, arms[1].copy()) == pytest.approx(norms[1])
    assert extend.best_available(arms, np.ones(5, dtype=bool), theta) == (arms @ theta).argmax()


def test_rows_of_blocks_that_there_are_not_touch_no_other_memory():
    """Kernels take the nearest block: 0, or the last. Agents refuse such rows before."""
    extend.observe_offer(BLOCKS, BLOCK_ROWS, np.ones(3, dtype=bool))
    for row, block in zip(BLOCK_ROWS, (0, 3, 3), strict=True):
        regression = extend.make_regression(SETTING._replace(blocks=4))
        extend.observe_reward(regression, row, 6.0)
        theta = np.zeros(8)
        extend.write_theta(regression, theta)
        assert np.flatnonzero(theta).tolist() == [2 * block, 2 * block + 1]
        assert extend.value(regression, row, theta) == pytest.approx(5.0)
    assert extend.estimate_arms(BLOCKS, BLOCK_ROWS, 0) == 3
    with pytest.raises(ValueError, match="features must begin with a block number from 0 to 3, got -1e\\+09"):
        sb.Agent(dim=3, blocks=4).decide(BLOCK_ROWS)


class Counter(NamedTuple):
    sums: np.ndarray


class CounterAgent(NamedTuple):
    state: Counter
    place: int


@sb.extend.jit
def act(agent, arms, available, out):
    return 0, False


@sb.extend.jit
def write_far(agent, features, reward):
    agent.state.sums[agent.place] += reward


@dataclass(frozen=True)
class Far(sb.extend.DecisionPolicy):
    """Writes where it is told to."""

    place: int = 0
    kernels = sb.extend.Kernels(act, write_far, certain=True)

    def start(self, setting, rng):
        return CounterAgent(Counter(np.zeros(4)), int(self.place))


@pytest.mark.parametrize("place", [4, 10**6, -5])
def test_an_index_out_of_bounds_in_a_kernel_of_ones_own_is_an_error(place):
    agent = sb.Agent(Far(place), dim=3, noise_std=1.0)
    decision = agent.decide(ROWS)
    with pytest.raises(IndexError):
        agent.learn(decision, 1.0)
    with pytest.raises(IndexError):
        play(Far(place))


def test_an_index_within_bounds_is_none():
    agent = sb.Agent(Far(3), dim=3, noise_std=1.0)
    agent.learn(agent.decide(ROWS), 1.5)
    assert agent._compiled.state.sums.tolist() == [0, 0, 0, 1.5]


class Smaller(sb.LinUCB):
    def start(self, setting, rng):
        return super().start(setting._replace(dim=1), rng)


class WithOtherScratch(sb.LinTS):
    def start(self, setting, rng):
        agent = super().start(setting, rng)
        return agent._replace(work=agent.work._replace(model=np.zeros(1)))


class WithOtherCounts(sb.rivals.OAM):
    def start(self, setting, table, rng):
        agent = super().start(setting, table, rng)
        agent.state.regression.tables.waiting[()] = -5
        return agent


class WithOtherTable(sb.rivals.OAM):
    def start(self, setting, table, rng):
        return super().start(setting, sb.problems.random(2, 2, 2).table, rng)


class OfAnother(sb.extend.DecisionPolicy):
    def start(self, setting, rng):
        return sb.LinUCB().start(setting._replace(dim=1), rng)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Smaller(), "Smaller.start must leave setting.dim at 3, got 1"),
        (WithOtherScratch(), r"must return work.model of float64 and shape \(3,\), got float64 and \(1,\)"),
        (WithOtherCounts(), "must leave state.regression.tables.waiting at"),
        (WithOtherTable(), "WithOtherTable.start must return"),
        (OfAnother(), "OfAnother.kernels must be sb.extend.Kernels"),
    ],
)
def test_agents_put_together_elsewhere_are_not_played_by_our_kernels(policy, message):
    with pytest.raises(ValueError, match=message):
        play(policy)


class Louder(sb.LinUCB):
    """What a subclass may do."""

    def start(self, setting, rng):
        return super().start(setting._replace(noise_std=2 * setting.noise_std), rng)


def test_a_subclass_may_change_numbers():
    play(Louder())


class OfOneDimension(sb.Problem):
    def setting(self, horizon=None, tell_noise=True):
        return super().setting(horizon, tell_noise)._replace(dim=1)


class OfFewMeans(sb.Problem):
    means = gaps = np.zeros((1, 1))


@pytest.mark.parametrize(("kind", "name"), [(OfOneDimension, "setting.dim"), (OfFewMeans, "means")])
def test_problems_of_other_classes_must_fit_together(kind, name):
    toy = sb.problems.toy()
    with pytest.raises(ValueError, match=f"problem must be as it was made, with {name}"):
        play(sb.Greedy(), kind(toy.features, toy.theta))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_problem_reshaped_in_place_is_refused():
    problem = sb.problems.random(3, 4, 5, seed=0)
    assert problem.means.size == 12
    problem.features.shape = (1, 60, 1)
    with pytest.raises(ValueError, match="problem must be as it was made"):
        play(sb.Greedy(), problem)


def test_a_family_of_problems_must_be_one_throughout():
    for wrong in (None, "toy", 3):
        with pytest.raises(ValueError, match="problem must be a Problem in every run"):
            sb.simulate(
                lambda run, wrong=wrong: wrong if run else sb.problems.toy(),
                {"x": sb.Greedy()},
                3,
                runs=2,
                jobs=1,
            )


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_of_problems_are_frozen(copied):
    problem = copied(sb.problems.toy())
    for array in (problem.features, problem.theta, problem.context_probs, problem.means, problem.gaps):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def strange_rows():
    """The same three rows, laid out in ways that compiled code does not expect."""
    wide = np.zeros((3, 6))
    wide[:, ::2] = ROWS
    raw = np.zeros(9 * 8 + 1, dtype=np.uint8)
    unaligned = raw[1:].view(np.float64).reshape(3, 3)
    unaligned[...] = ROWS
    yield from (wide[:, ::2], np.asfortranarray(ROWS), ROWS[::-1][::-1], unaligned, ROWS.astype(">f8"))
    yield from (
        np.broadcast_to(ROWS[0], (3, 3)) * 0 + ROWS,
        ROWS.astype(np.float16),
        ROWS.tolist(),
    )


@pytest.mark.parametrize("place", range(8))
def test_features_in_any_layout_are_the_same_features(place):
    rows = list(strange_rows())[place]
    agent, other = (sb.Agent(sb.LinUCB(), dim=3, noise_std=1.0) for _ in range(2))
    for _ in range(5):
        agent.learn(agent.decide(rows), 1.0)
        other.learn(other.decide(ROWS), 1.0)
    assert agent.theta.tolist() == other.theta.tolist()


def test_states_handed_back_are_checked():
    """What a pickle of an agent restores goes through the checks of a file."""
    agent = sb.Agent(sb.rivals.OAM(), contexts=sb.problems.toy().features, noise_std=1.0, theta_bound=2.0)
    restore, (content,) = agent.__reduce__()
    state = copy.deepcopy(content.state)
    state["regression"]["tables"]["waiting"] = -5
    with pytest.raises(ValueError, match="waiting must be whole numbers >= 0"):
        restore(content._replace(state=state))
    with pytest.raises(ValueError, match=r"state.regression.tables.means must have shape"):
        restore(content._replace(contexts=np.ones((1, 2, 3))))
    with pytest.raises(OwnPolicyError, match=r"Smaller.start must leave setting.dim at 3"):
        restore(content._replace(policy=Smaller(), contexts=None))


@pytest.fixture(scope="module")
def said():
    """What the calls of `unsafe_calls` ended with, in a process that they may end."""
    script = Path(__file__).with_name("unsafe_calls.py")
    switches = ["-W", "ignore::DeprecationWarning"]
    ended = subprocess.run([sys.executable, *switches, str(script)], capture_output=True, text=True)
    lines = ended.stdout.splitlines()
    assert ended.returncode == 0, (ended.returncode, lines[-1:], ended.stderr[-2000:])
    return dict(map(json.loads, lines))


@pytest.mark.parametrize("name", unsafe_calls.CALLS)
def test_calls_that_would_reach_beyond_arrays_get_one_line(name, said):
    assert unsafe_calls.CALLS[name][1] in said[name]
    assert "\n" not in said[name]


def test_what_is_as_it_should_be_is_played(said):
    played, same = said["what is taken"]
    assert played[0] == played[1] == played[2] == played[3]
    assert same


def test_streams_of_the_runs_are_of_one_kind():
    """A function from runs to streams, or to problems, gives one kind of them."""
    first = sb.streams.gaussian(3, 2, noise_std=0.5)
    frame = {"x": [1.0, 2.0], "y": ["a", "b"]}
    named = sb.streams.classification(np.array(frame["x"])[:, None], frame["y"], noise_std=0.5)
    others = sb.streams.classification(np.array(frame["x"])[:, None], ["c", "d"], noise_std=0.5)
    for one, other, message in (
        (
            first,
            sb.streams.gaussian(3, 4),
            "problem must be streams with the same dim in all runs, 2 here, got 4",
        ),
        (
            first,
            sb.streams.gaussian(5, 2),
            "problem must be streams with the same n_arms in all runs, 3 here, got 5",
        ),
        (named, others, r"streams with the same arm_names in all runs, \('a', 'b'\) here, got \('c', 'd'\)"),
        (first, sb.problems.toy(), "problem must be a Stream in every run, got Problem"),
        (first, None, "problem must be a Stream in every run, got None"),
        (sb.problems.toy(), first, "problem must be a Problem in every run, got Gaussian"),
    ):
        with pytest.raises(ValueError, match=f"{message}.* in run 1"):
            sb.simulate(
                lambda run, one=one, other=other: other if run else one,
                {"x": sb.Greedy()},
                2,
                runs=2,
                jobs=1,
            )


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"arm_names": ["a"]}, r"arm_names must be None or 3 names, got \['a'\]"),
        ({"arm_names": 5}, "arm_names must be None or 3 names"),
        ({"linear": "no"}, "linear must be True or False, got 'no'"),
        ({"length": "long"}, "length must be an integer >= 1, got 'long'"),
        ({"linear": False, "length": 10, "ridge": -1}, "ridge must be > 0, got -1"),
        ({"noise_std": -1}, "noise_std must be > 0, got -1"),
    ],
)
def test_what_a_stream_of_ones_own_says_of_itself_is_checked(attributes, message):
    with pytest.raises(ValueError, match=message):
        sb.simulate(unsafe_calls.Own(**attributes), sb.Greedy(), 10, runs=1, jobs=1)
