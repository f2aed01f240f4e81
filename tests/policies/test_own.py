"""Policies of a user's own, compiled: what is wrong with them is said of the user's line."""

import copy
import pickle
from collections import namedtuple
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import solid_bandits as sb


class State(NamedTuple):
    count: np.ndarray


def make(act, update=None, state=None, **kernels):
    """A policy of these kernels, with a type of agents of its own."""

    class OwnAgent(NamedTuple):
        setting: sb.extend.Setting
        state: State

    @dataclass(frozen=True)
    class Own(sb.extend.DecisionPolicy):
        size: float = 1.0

        def start(self, setting, rng):
            return OwnAgent(setting, State(np.array(0)) if state is None else state)

    Own.kernels = sb.extend.Kernels(act, update or count_rewards, **kernels)
    return Own()


@sb.extend.jit
def count_rewards(agent, features, reward):
    agent.state.count[()] += 1


@sb.extend.jit
def first_arm(agent, arms, available, out):
    return 0, False


@sb.extend.jit
def helper(x):
    return x.foo  # the line of a helper


@sb.extend.jit
def act_with_a_bad_helper(agent, arms, available, out):
    return helper(arms.shape[0]), False


@sb.extend.jit
def act_with_an_unknown_name(agent, arms, available, out):
    return nowhere(arms), False  # noqa: F821


@sb.extend.jit
def act_with_a_bad_call(agent, arms, available, out):
    return sb.extend.best_available(arms, available), False


@sb.extend.jit
def act_that_writes(agent, arms, available, out):
    arms[0, 0] = 1.0
    return 0, False


@sb.extend.jit
def act_without_explored(agent, arms, available, out):
    return 0


@sb.extend.jit
def act_of_a_float(agent, arms, available, out):
    return 0.0, False


@sb.extend.jit
def act_of_two(agent, arms):
    return 0, False


@sb.extend.jit
def bad_update(agent, features, reward):
    agent.state.count.append(reward)


@sb.extend.jit
def act_against_its_word(agent, arms, available, out):
    if out is not None:
        out[:] = 0.0
        out[1] = 1.0
    return 0, False


def plain_act(agent, arms, available, out):
    return 0, False


WRONG = {
    "a helper's line": (
        make(act_with_a_bad_helper),
        r"Own's kernel act_with_a_bad_helper cannot be compiled: Unknown attribute 'foo' of type int64 "
        r"\(.*test_own.py, line \d+: return x.foo  # the line of a helper\)",
    ),
    "an unknown name": (
        make(act_with_an_unknown_name),
        r"act_with_an_unknown_name cannot be compiled: .*'nowhere' is not defined \(.*test_own.py, line",
    ),
    "a call": (
        make(act_with_a_bad_call),
        r"a call must give \(arms, available, theta\): missing a required argument: 'theta' "
        r"\(.*line \d+: return sb.extend.best_available\(arms, available\), False\)",
    ),
    "features are not to be changed": (
        make(act_that_writes),
        r"setitem\(readonly array.*line \d+: arms\[0, 0\] = 1.0",
    ),
    "one number": (make(act_without_explored), "must return an arm and whether it explored, such as"),
    "a float": (make(act_of_a_float), "must return an arm and whether it explored, such as"),
    "the update": (
        make(first_arm, bad_update),
        r"kernel bad_update cannot be compiled: .*line \d+: agent.state",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_compiled_is_said_of_the_users_line(name):
    policy, message = WRONG[name]
    with pytest.raises(ValueError, match=message) as caught:
        sb.simulate(sb.problems.toy(), {"own": policy}, horizon=10, runs=1, jobs=1)
    assert "\n" not in str(caught.value)
    assert "solid_bandits/" not in str(caught.value)


def test_the_arm_must_have_a_probability():
    agent = sb.Agent(make(act_against_its_word), dim=1, noise_std=1.0)
    with pytest.raises(ValueError, match=r"> 0 for the arm that it returns, got \[0.0, 1.0\] for arm 0"):
        agent.decide([[1.0], [2.0]])


def test_a_floor_needs_probabilities():
    agent = sb.Agent(make(first_arm), dim=1, noise_std=1.0, floor=0.1)
    with pytest.raises(ValueError, match="act must fill `out` to be mixed with a floor"):
        agent.decide([[1.0], [2.0]])


def test_kernels_without_an_update_need_a_regression():
    policy = make(first_arm)
    type(policy).kernels = sb.extend.Kernels(first_arm)
    with pytest.raises(ValueError, match=r"must have an update compiled by sb.extend.jit, got None"):
        sb.Agent(policy, dim=1, noise_std=1.0)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (make(plain_act), r"Own.kernels must have an act compiled by sb.extend.jit, got <function plain_act"),
        (make(act_of_two), r"act_of_two must take \(agent, arms, available, out\), got \(agent, arms\)"),
        (make(first_arm, state=3.0), "Own.start must return an agent with a field `state`"),
        (
            make(first_arm, state=State(0.5)),
            r"arrays of numbers in `state`, got 0.5 as state.count",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_it_is_compiled(policy, message):
    with pytest.raises(ValueError, match=message):
        sb.Agent(policy, dim=2, noise_std=1.0)


@pytest.mark.parametrize("arm", [-1, 3, 10**12])
def test_an_arm_that_is_none_is_refused(arm):
    @sb.extend.jit
    def act(agent, arms, available, out):
        return arm, False

    policy = make(act)
    with pytest.raises(ValueError, match=f"must return an arm from 0 to 2, got {arm} at step 1"):
        sb.simulate(sb.problems.toy(), {"own": policy}, horizon=10, runs=1, jobs=1)
    with pytest.raises(ValueError, match=f"must return an available arm from 0 to 2, got {arm}"):
        sb.Agent(policy, dim=1, noise_std=1.0).decide(np.ones((3, 1)))


def test_an_arm_that_is_not_available_is_refused():
    agent = sb.Agent(make(first_arm), dim=1, noise_std=1.0)
    assert agent.decide([[1.0], [2.0]]).arm == 0
    with pytest.raises(ValueError, match="must return an available arm from 0 to 1, got 0"):
        agent.decide([[1.0], [2.0]], available=[False, True])


class Shared(NamedTuple):
    state: State


def sharing(act):
    """A policy of this kernel whose agents are of the one type."""

    @dataclass(frozen=True)
    class Sharing(sb.extend.DecisionPolicy):
        kernels = sb.extend.Kernels(act, count_rewards)

        def start(self, setting, rng):
            return Shared(State(np.array(0)))

    return Sharing()


def arm_of(policy):
    return sb.Agent(policy, dim=1, noise_std=1.0).decide([[1.0], [2.0], [3.0]]).arm


def test_policies_that_share_a_type_of_agents_play_their_own_kernels():
    """Also where kernels differ only in a number that stands outside of them."""

    def always(arm):
        @sb.extend.jit
        def act(agent, arms, available, out):
            return arm, False

        return act

    assert [arm_of(sharing(always(arm))) for arm in (0, 2, 1, 0)] == [0, 2, 1, 0]
    for size, gap in ((2, 0.0), (1, 1.0)):
        policies = {"best": sharing(always(0)), "other": sharing(always(size))}
        problem = sb.Problem(features=[np.eye(3)], theta=[1.0, 0.0, 1.0])
        final = sb.simulate(problem, policies, horizon=10, runs=1, jobs=1).final()
        assert final.sort("policy")["mean"].to_list() == [0.0, 10 * gap]


CELL = """
@sb.extend.jit
def act(agent, arms, available, out):
    return ARM, False

@dataclass(frozen=True)
class Mine(sb.extend.DecisionPolicy):
    kernels = sb.extend.Kernels(act, count_rewards)

    def start(self, setting, rng):
        return Shared(State(np.array(0)))
"""


def test_a_cell_that_is_run_again_counts():
    """Also where its text is the same, and a number that it uses is not."""
    names = dict(globals())
    for arm in (1, 2, 0, 1):
        names["ARM"] = arm
        exec(CELL, names)
        assert arm_of(names["Mine"]()) == arm


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"table": 3}, r"must return an agent without a field `table`"),
        ({"scratch": [1.0]}, r"named tuple of numbers and arrays, got \[1.0\] as scratch"),
    ],
)
def test_agents_that_compiled_code_cannot_take(changed, message):
    @dataclass(frozen=True)
    class Own(sb.extend.DecisionPolicy):
        kernels = sb.extend.Kernels(first_arm, count_rewards)

        def start(self, setting, rng):
            made = namedtuple("Made", ["state", *changed])
            return made(State(np.array(0)), *changed.values())

    with pytest.raises(ValueError, match=message):
        sb.Agent(Own(), dim=1, noise_std=1.0)


def test_an_agent_of_ones_own_is_saved_and_loaded_with_its_policy(tmp_path):
    policy = make(first_arm)
    agent = sb.Agent(policy, dim=1, noise_std=1.0)
    for _ in range(3):
        agent.learn(agent.decide([[1.0]]), 1.0)
    agent.save(tmp_path / "agent.json")
    again = sb.Agent.load(tmp_path / "agent.json", policy=policy)
    assert again._compiled.state.count == 3
    with pytest.raises(
        ValueError, match=r"policy.kind must be one of .*, got 'Own'; give one of your own to Agent.load"
    ):
        sb.Agent.load(tmp_path / "agent.json")
    with pytest.raises(ValueError, match=r"policy must be the one that was saved, .*1.0.*, got .*2.0"):
        sb.Agent.load(tmp_path / "agent.json", policy=type(policy)(size=2.0))
    with pytest.raises(ValueError, match="policy must be the one that was saved"):
        sb.Agent.load(tmp_path / "agent.json", policy=sb.Greedy())


class Counts:
    """Plain Python."""

    def __init__(self):
        self.rewards = []

    def act(self, arms, available):
        return len(self.rewards) % len(arms)

    def update(self, features, reward):
        self.rewards.append(reward)


def test_an_agent_in_plain_python_is_copied_and_pickled_but_not_saved(tmp_path):
    agent = sb.Agent(Counts(), dim=1, noise_std=1.0)
    arms = np.ones((3, 1))
    agent.learn(agent.decide(arms), 0.5)
    with pytest.raises(
        ValueError, match="to be saved, got the plain Python of Counts; pickle the agent instead"
    ):
        agent.save(tmp_path / "agent.json")
    assert not list(tmp_path.iterdir())
    for other in (copy.copy(agent), copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        assert other.decide(arms).arm == 1
        other.learn(other.decide(arms), 0.5)
        assert other.decide(arms).arm == 2
    assert agent.decide(arms).arm == 1


def test_an_own_policy_is_a_dataclass():
    """Otherwise its parameters would be in no description."""

    class Loose(sb.extend.DecisionPolicy):
        kernels = sb.extend.Kernels(first_arm, count_rewards)

        def __init__(self, arm):
            object.__setattr__(self, "arm", arm)

        def start(self, setting, rng):
            return Shared(State(np.array(0)))

    with pytest.raises(ValueError, match=r"Loose must be a dataclass: put @dataclass\(frozen=True\)"):
        sb.Agent(Loose(1), dim=1, noise_std=1.0)


def test_a_float_for_an_arm_is_refused_by_an_agent_too():
    with pytest.raises(ValueError, match="must return an arm and whether it explored, such as"):
        sb.Agent(make(act_of_a_float), dim=1, noise_std=1.0)


class Regressing(NamedTuple):
    setting: sb.extend.Setting
    state: NamedTuple


class Knowing(NamedTuple):
    regression: object


@dataclass(frozen=True)
class Misfit(sb.extend.RegressionPolicy):
    dim: int = 2
    ridge: float | str = 1.0
    kernels = sb.extend.Kernels(first_arm, certain=True)

    def start(self, setting, rng):
        return Regressing(setting, Knowing(self.make_regression(setting._replace(dim=self.dim))))


def test_a_regression_of_another_dim_is_refused():
    sb.Agent(Misfit(), dim=2)
    with pytest.raises(ValueError, match="must return a regression of dim 2"):
        sb.Agent(Misfit(dim=3), dim=2)


@pytest.mark.parametrize("ridge", [-1.0, 0.0, np.nan, "evidnce", None])
def test_the_ridge_of_an_own_regression_is_checked(ridge):
    with pytest.raises(ValueError, match="ridge must be"):
        sb.Agent(Misfit(ridge=ridge), dim=2)


@pytest.mark.parametrize("share", [0.5, 7.0, -1.0])
def test_probabilities_that_are_none_are_refused(share):
    @sb.extend.jit
    def act(agent, arms, available, out):
        if out is not None:
            out[0] = 0.5
            out[1] = share
        return 0, False

    agent = sb.Agent(make(act), dim=2)
    if share == 0.5:
        assert agent.decide(np.eye(2)).probability == 0.5
    with pytest.raises(ValueError, match="must fill `out` with probabilities of the available arms"):
        agent.decide(np.ones((3, 2)) if share == 0.5 else np.eye(2))  # the third is left out


class Nothing(NamedTuple):
    pass


@sb.extend.jit
def learn_nothing(agent, features, reward):
    pass


@sb.extend.jit
def first_for_sure(agent, arms, available, out):
    if out is not None:
        out[:] = 0.0
        out[0] = 1.0
    return 0, False


def test_a_policy_that_carries_nothing_has_probabilities_of_many_offers():
    agent = sb.Agent(make(first_for_sure, learn_nothing, Nothing()), dim=2)
    found = agent.probabilities_many(np.ones((3, 2, 2)), [2, 2, 2], np.ones((3, 2), dtype=bool))
    assert found.tolist() == [[1.0, 0.0]] * 3


def test_an_update_of_ones_own_knows_no_age():
    @dataclass(frozen=True)
    class Fading(Misfit):
        kernels = sb.extend.Kernels(first_arm, learn_nothing, certain=True)

    sb.Agent(Fading(), dim=2)
    with pytest.raises(ValueError, match="must have no kernel `update` with a half_life"):
        sb.Agent(Fading(half_life=5.0), dim=2)
