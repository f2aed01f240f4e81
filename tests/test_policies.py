"""What every policy promises, whatever its algorithm."""

import copy
import dataclasses
import json
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import solid_bandits as sb
from drive import arms_of
from problems import degenerate
from solid_bandits.loop import checkpoints, play
from solid_bandits.policies.catalogue import CATALOGUE, by_name
from solid_bandits.policies.contract import act as _act
from solid_bandits.policies.contract import fill_state, state_to_plain
from solid_bandits.policies.contract import update as _update
from solid_bandits.stream import POLICY, make_stream

POLICIES = {
    "solid": sb.Solid(),
    "solid toy": sb.Solid.paper_toy(),
    "solid random": sb.Solid.paper_random(n_arms=8),
    "solid theory": sb.Solid.theory(least_gap=0.1, least_context_prob=0.1),
    "linucb": sb.LinUCB(),
    "linucb theorem": sb.LinUCB(radius="theorem", ridge=2.5),
    "lints paper": sb.LinTS(scale="paper", ridge=0.3),
    "lints posterior": sb.LinTS(),
    "greedy": sb.Greedy(ridge=0.7),
}
RANDOMISED = {"solid", "solid theory", "solid toy", "solid random", "lints paper", "lints posterior"}

every_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=list(POLICIES))


@every_policy
def test_parameters_are_frozen_and_untouched_by_play(policy):
    before = json.dumps(policy.describe())
    play(sb.problems.toy(), policy, 200, seed=0, run=0, steps=checkpoints(200))
    assert json.dumps(policy.describe()) == before
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.ridge = 3.0
    assert type(policy)(**{k: v for k, v in policy.describe().items() if k != "kind"}) == policy


@pytest.mark.parametrize("name", POLICIES)
def test_seeds_decide_what_is_random_and_nothing_else(name):
    problem = sb.problems.random(seed=1)
    first = arms_of(POLICIES[name], problem, 300, seed=1)
    assert arms_of(POLICIES[name], problem, 300, seed=1) == first
    assert (arms_of(POLICIES[name], problem, 300, seed=2) != first) == (name in RANDOMISED)


@every_policy
def test_one_decision_at_a_time_is_the_loop(policy):
    """Driven by the reference's contexts and rewards, single decisions give the loop's regret, step by step."""
    problem, horizon = sb.problems.random(n_arms=8, seed=2), 500
    trace = play(problem, policy, horizon, seed=3, run=4, steps=np.arange(1, horizon + 1))
    agent = policy.start(problem.view(horizon), make_stream(3, 4, POLICY))
    environment = naive.Stream(3, 4, role=0)
    edges = np.cumsum(problem.context_probs)
    regret = explored = 0
    for step in range(horizon):
        context = int(np.searchsorted(edges, environment.uniform(), side="right"))
        noise = problem.noise_std * environment.normal()
        arm, explores = _act(agent, context)
        _update(agent, context, arm, problem.means[context, arm] + noise)
        regret += problem.gaps[context, arm]
        explored += explores
        assert trace.regret[step] == pytest.approx(regret)
        assert trace.explored[step] == explored


@every_policy
def test_the_compiled_policy_pulls_the_arms_of_the_reference(policy):
    for seed, problem in enumerate(
        [sb.problems.toy(), sb.problems.random(seed=4), sb.problems.random(1, 12, 6, seed=5)]
    ):
        agent = policy.start(problem.view(800), make_stream(seed, 0, POLICY))
        for step, (context, arm, explored, reward, _) in enumerate(
            naive.steps(problem, policy, 800, seed, run=0)
        ):
            assert _act(agent, context) == (arm, explored), f"step {step}"
            _update(agent, context, arm, reward)


@every_policy
def test_state_survives_json_in_the_middle_of_a_run(policy):
    problem = sb.problems.random(seed=6)
    view, rng = problem.view(400), np.random.default_rng(0)
    agent = sb.Agent(policy, view, seed=5)
    agents = [agent]
    for step in range(400):
        context = int(rng.integers(problem.n_contexts))
        arms = {a.act(context) for a in agents}
        assert len(arms) == 1
        reward = rng.normal()
        for a in agents:
            a.update(context, *arms, reward)
        if step == 200:
            copy = sb.Agent(policy, view, seed=99)
            copy.restore(json.loads(json.dumps(agent.state())))
            agents.append(copy)
    assert agents[0].state() == agents[1].state()


@every_policy
def test_state_of_another_shape_is_refused_and_nothing_changes(policy):
    agent = policy.start(sb.problems.toy().view(10), make_stream(0, 0, POLICY))
    other = policy.start(sb.problems.random().view(10), make_stream(0, 0, POLICY))
    before = state_to_plain(agent.state)
    with pytest.raises(
        ValueError, match=r"state\.regression\.gram has shape \(8, 8\); this agent needs \(3, 3\)"
    ):
        fill_state(agent.state, state_to_plain(other.state))
    poisoned = json.loads(json.dumps(before))
    poisoned["regression"]["theta"][1] = math.nan
    with pytest.raises(ValueError, match=r"state\.regression\.theta holds a value that is not finite"):
        fill_state(agent.state, poisoned)
    with pytest.raises(ValueError, match="has fields"):
        fill_state(agent.state, {"regression": {}})
    assert state_to_plain(agent.state) == before


@every_policy
@pytest.mark.parametrize("name", degenerate())
def test_degenerate_problems_give_arms_and_finite_numbers(policy, name):
    problem = degenerate()[name]
    trace = play(problem, policy, 300, seed=0, run=0, steps=checkpoints(300))
    assert np.isfinite(trace.regret).all()
    agent, rng = sb.Agent(policy, problem.view()), np.random.default_rng(1)
    for _ in range(100):
        context = int(rng.integers(problem.n_contexts))
        arm = agent.act(context)
        assert 0 <= arm < problem.n_arms
        agent.update(context, arm, problem.means[context, arm] + problem.noise_std * rng.normal())
    fill_state(agent._compiled.state, agent.state())  # refuses what is not finite


@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 5), st.floats(0.01, 3), st.integers(0, 10**6))
def test_regret_grows_between_zero_and_the_largest_gap_per_step(n_contexts, n_arms, dim, noise_std, seed):
    rng = np.random.default_rng(seed)
    problem = sb.Problem(
        rng.normal(size=(n_contexts, n_arms, dim)), rng.normal(size=dim), noise_std=noise_std
    )
    for policy in POLICIES.values():
        trace = play(problem, policy, 60, seed, run=0, steps=np.arange(1, 61))
        growth = np.diff(trace.regret, prepend=0)
        assert (growth >= -1e-9).all()
        assert (growth <= problem.gaps.max() + 1e-9).all()
        assert (np.diff(trace.explored, prepend=0) <= 1).all()


@every_policy
def test_late_and_lost_rewards_are_taken_as_they_come(policy):
    problem, rng = sb.problems.toy(), np.random.default_rng(0)
    agent = sb.Agent(policy, problem.view(300))
    waiting = []
    for step in range(300):
        context = int(rng.integers(2))
        arm = agent.act(context)
        if rng.uniform() < 0.8:
            waiting.append((context, arm, problem.means[context, arm] + rng.normal()))
        if step % 50 == 49:
            rng.shuffle(waiting)
            for reward in waiting:
                agent.update(*reward)
            waiting = []
    fill_state(agent._compiled.state, agent.state())


@every_policy
def test_a_copied_or_pickled_agent_decides_alike_and_goes_its_own_way(policy):
    problem = sb.problems.toy()
    agent = sb.Agent(policy, problem.view(500), seed=3)
    rng = np.random.default_rng(0)
    for context in rng.integers(2, size=30):
        agent.update(int(context), agent.act(int(context)), rng.normal())
    before = agent.state()
    for other in (copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        assert other.state() == before
        contexts = rng.integers(2, size=20)
        for context in contexts:
            other.update(int(context), other.act(int(context)), 1.0)
        assert agent.state() == before
        other.restore(before)
        assert other.act(0) == same_state_as(agent).act(0)


def same_state_as(agent):
    """A third agent in the same state, so that the first one is not changed by being asked."""
    third = sb.Agent(agent.policy, sb.problems.toy().view(500))
    third.restore(agent.state())
    return third


@every_policy
def test_a_second_call_compiles_nothing(policy):
    from solid_bandits.loop import _loop

    play(sb.problems.toy(), policy, 10, seed=0, run=0, steps=checkpoints(10))
    compiled = len(_loop.signatures)
    play(sb.problems.random(seed=0), policy, 20, seed=1, run=1, steps=checkpoints(20))
    assert len(_loop.signatures) == compiled


def test_the_next_process_finds_what_was_compiled_in_the_cache():
    script = (
        "import solid_bandits as sb\n"
        "from solid_bandits.loop import play, checkpoints, _loop\n"
        "for policy in (sb.Solid(), sb.LinUCB(), sb.LinTS(), sb.Greedy()):\n"
        "    play(sb.problems.toy(), policy, 10, 0, 0, checkpoints(10))\n"
        "    agent = sb.Agent(policy, sb.problems.toy().view(10))\n"
        "    agent.update(0, agent.act(0), 1.0)\n"
        "from solid_bandits.agent import _act, _hold, _update\n"
        "for one in (_loop, _hold, _act, _update):\n"
        "    print(sum(one.stats.cache_hits.values()), sum(one.stats.cache_misses.values()))\n"
    )

    def hits_and_misses():
        return subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.split()

    hits_and_misses()
    assert hits_and_misses() == ["4", "0"] * 4


BAD = [
    (sb.Solid, {"z0": 0}),
    (sb.Solid, {"initial_multiplier": -1}),
    (sb.Solid, {"initial_multiplier": 2000}),
    (sb.Solid, {"max_multiplier": math.nan}),
    (sb.Solid, {"policy_step": -1}),
    (sb.Solid, {"multiplier_step": math.inf}),
    (sb.Solid, {"constraint_bonus": -1}),
    (sb.Solid, {"ridge": 0}),
    (sb.Solid, {"max_multiplier": None}),
    (sb.Solid, {"threshold_scale": -1}),
    (sb.Solid, {"optimism_scale": math.nan}),
    (sb.Solid, {"dimension_scale": -1}),
    (sb.Solid, {"random_width": math.nan}),
    (sb.Solid, {"policy_memory": 1.5}),
    (sb.Solid, {"gradient_scale": "range"}),
    (sb.Solid, {"units": "sigma"}),
    (sb.Solid, {"ridge": None}),
    (sb.Solid, {"schedule": "exp"}),
    (sb.Solid, {"arm_choice": "tracking"}),
    (sb.Solid, {"exploit_test": "glrt"}),
    (sb.Solid, {"test_contexts": "every"}),
    (sb.Solid, {"confidence": "papr"}),
    (sb.Solid, {"exploit_test": "oam", "bounded": True}),
    (sb.Solid, {"least_gap": 0, "max_multiplier": 5}),
    (sb.LinUCB, {"radius": "papr"}),
    (sb.LinUCB, {"delta": 0}),
    (sb.LinUCB, {"scale": -1}),
    (sb.LinTS, {"scale": "posteror"}),
    (sb.LinTS, {"multiple": -1}),
    (sb.Greedy, {"ridge": -2}),
]


@pytest.mark.parametrize(("kind", "bad"), BAD)
def test_bad_parameters_are_named(kind, bad):
    with pytest.raises(ValueError, match=f"^{next(iter(bad))} (must be|is)"):
        kind(**bad)


def test_near_names_are_suggested():
    with pytest.raises(ValueError, match="did you mean 'lints-posterior'"):
        by_name(["lints-posteriour"], "toy", 3)
    with pytest.raises(ValueError, match="given twice"):
        by_name(["solid", "solid"], "toy", 3)
    assert list(by_name(list(CATALOGUE), "toy", 3)) == [entry.label for entry in CATALOGUE.values()]


def test_the_agent_refuses_what_is_not_there():
    agent = sb.Agent(sb.Greedy(), sb.problems.toy().view())
    for call, message in [
        (lambda: agent.act(2), "context must be an integer from 0 to 1, got 2"),
        (lambda: agent.act(-1), "context must be .*, got -1"),
        (lambda: agent.act(0.5), "context must be .*, got 0.5"),
        (lambda: agent.act(True), "context must be .*, got True"),
        (lambda: agent.update(0, "1", 1.0), "arm must be .*, got '1'"),
        (lambda: agent.update(0, 0, "x"), "reward must be a number, got 'x'"),
        (lambda: agent.update(0, 3, 1.0), "arm must be .*, got 3"),
        (lambda: agent.update(0, 0, math.nan), "reward must be finite, got nan"),
        (lambda: sb.Agent(sb.Greedy(), sb.problems.toy().view(), seed=-1), "seed must be .*, got -1"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
