"""What every policy promises, whatever its algorithm: one list of promises, and every policy.

Every variant where what is promised rests on code that variants choose: how it starts, that it bears any problem, what
it says of its probabilities. Else one variant of each class, the first: what is promised rests on how its state is laid
out and its kernels are called. That variants decide as they should is for `test_references.py`.
"""

import dataclasses
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import drive
import solid_bandits as sb
from sample_problems import degenerate
from solid_bandits._internal.parameters import parameters_of
from solid_bandits.core.loop import _loop, checkpoints, play
from solid_bandits.core.randomness import POLICY, make_rng
from solid_bandits.core.setting import make_setting, make_table
from solid_bandits.policies import contract
from solid_bandits.policies.catalogue import CLASSES
from solid_bandits.policies.state import arrays_of, fill_state, state_to_plain
from variants import (
    CANONICAL,
    DECISION,
    ONE_CONTEXT,
    POLICIES,
    TABLE,
    draws,
    first_of_each,
    fitting,
    is_decision,
    takes_one_context,
)

every_policy = pytest.mark.parametrize("policy", CANONICAL.values(), ids=list(CANONICAL))
every_variant = pytest.mark.parametrize("policy", POLICIES.values(), ids=list(POLICIES))
decision_policies = pytest.mark.parametrize(
    "policy", first_of_each(DECISION).values(), ids=list(first_of_each(DECISION))
)
table_policies = pytest.mark.parametrize(
    "policy", first_of_each(TABLE).values(), ids=list(first_of_each(TABLE))
)


# -- parameters --


@every_policy
def test_parameters_are_frozen_and_untouched_by_play(policy):
    before = json.dumps(policy.describe())
    play(fitting(policy, 0), policy, 100, seed=0, run=0, steps=checkpoints(100))
    assert json.dumps(policy.describe()) == before
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.ridge = 3.0


@every_variant
def test_it_describes_itself_as_plain_data_that_json_keeps(policy):
    described = policy.describe()
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    kind = CLASSES[described.pop("kind")]
    assert kind(**json.loads(json.dumps(described))) == policy


def wrong_values(constraint):
    """Values beyond each limit of a parameter, and of other types."""
    wrong = [] if constraint.none else [None]
    if constraint.choices:
        return [*wrong, "no such word", f"{constraint.choices[0]}x", 1.5]
    if constraint.kind is bool:
        return [*wrong, "no", 1]
    limits = [
        (constraint.above, 0),
        (constraint.above, -1),
        (constraint.least, -1),
        (constraint.most, 1),
        (constraint.most, 0.5 if constraint.kind is float else 10**6),
    ]
    beyond = [limit + by for limit, by in limits if limit is not None]
    other = [1.5, True, "1"] if constraint.kind is int else [math.nan, math.inf, -math.inf, "1 + 1"]
    return [*wrong, *beyond, *other]


PARAMETERS = [(kind, one) for kind in CLASSES.values() for one in parameters_of(kind)]


def test_every_parameter_says_what_it_may_be():
    for kind in CLASSES.values():
        names = [field.name for field in dataclasses.fields(kind)]
        assert {one.name for one in parameters_of(kind)} == set(names)
    # Written down once more, where a mistake in the declaration would not be seen.
    words = {f"{kind.__name__}.{one.name}": one.constraint.words for kind, one in PARAMETERS}
    assert words["EpsilonGreedy.epsilon"] == "a number from 0 to 1"
    assert words["RandUCB.ridge"] == "a number > 0 or 'evidence'"
    assert words["Solid.ridge"] == "a number > 0 or None"
    assert words["VIDS.samples"] == "an integer from 2 to 1,000,000"
    assert words["Solid.test"] == "'likelihood-ratio' or 'oam'"
    assert words["LinUCB.delta"] == "a number > 0 and <= 1 or None"


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(kind, one.name, value) for kind, one in PARAMETERS for value in wrong_values(one.constraint)],
)
def test_bad_parameters_are_named(kind, name, value):
    with pytest.raises(ValueError, match=f"^{name} must be ") as caught:
        kind(**{name: value})
    assert repr(value) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_parameters_that_do_not_go_together_are_named():
    with pytest.raises(ValueError, match=r"^test must be 'likelihood-ratio' with form='theorem'"):
        sb.Solid(form="theorem", test="oam")
    with pytest.raises(
        ValueError, match=r"^ridge must be a number > 0 with radius='theorem', got 'evidence'"
    ):
        sb.LinUCB(radius="theorem", ridge="evidence")
    with pytest.raises(ValueError, match="did you mean 'theorem'"):
        sb.Solid(form="theorm")
    with pytest.raises(ValueError, match=r"^initial_multiplier must be >= 0 and <= 1000, got 2000"):
        sb.Solid(initial_multiplier=2000)


# -- starting --


@pytest.mark.parametrize("policy", first_of_each(ONE_CONTEXT).values(), ids=list(first_of_each(ONE_CONTEXT)))
def test_several_contexts_are_refused_by_name(policy):
    with pytest.raises(
        ValueError, match=f"^{type(policy).__name__} takes one context, got 2; AOIDS, OAM, Solid"
    ):
        drive.begin(policy, sb.problems.toy())


@table_policies
def test_a_table_policy_does_not_start_without_a_table(policy):
    with pytest.raises(ValueError, match=f"^contexts must be given: {type(policy).__name__} plans over"):
        contract.start(policy, make_setting(3, 1.0, 1.0), None, make_rng(0, 0, POLICY))


@decision_policies
def test_a_decision_policy_starts_without_a_table(policy):
    agent = contract.start(policy, make_setting(3, 1.0, 1.0), None, make_rng(0, 0, POLICY))
    assert not contract.kernels(type(agent)).takes_context
    assert not hasattr(agent, "table")


def needs_bound(policy):
    if isinstance(policy, sb.Solid):
        return policy.bonus == "theorem" or policy.form == "theorem"
    if isinstance(policy, sb.rivals.SPL):
        return policy.gap_clip is None
    return getattr(policy, "radius", None) == "theorem"


@every_variant
def test_a_bound_on_theta_is_asked_for_by_those_who_need_it(policy):
    setting, table = make_setting(3, 1.0), make_table(np.eye(3)[None])
    if needs_bound(policy):
        with pytest.raises(ValueError, match=f"^theta_bound must be .* for {type(policy).__name__}"):
            contract.start(policy, setting, table, make_rng(0, 0, POLICY))
    else:
        contract.start(policy, setting, table, make_rng(0, 0, POLICY))


def needs_noise(policy):
    return not is_decision(policy) or getattr(policy, "radius", None) == "theorem"


@every_variant
def test_sigma_is_asked_for_by_those_who_need_it(policy):
    setting, table = make_setting(3, None, 1.0), make_table(np.eye(3)[None])
    if needs_noise(policy):
        with pytest.raises(ValueError, match=f"^noise_std must be .* for {type(policy).__name__}.*RandUCB"):
            contract.start(policy, setting, table, make_rng(0, 0, POLICY))
    else:
        contract.start(policy, setting, table, make_rng(0, 0, POLICY))


def test_what_is_no_policy_is_refused():
    for other in ("linucb", sb.LinUCB, None):
        with pytest.raises(ValueError, match=r"^policy must be a policy such as"):
            contract.start(other, make_setting(3, 1.0), None, make_rng(0, 0, POLICY))


# -- deciding --


@every_policy
def test_it_returns_numbers_and_knows_its_arms(policy):
    problem = fitting(policy, 3)
    agent = drive.begin(policy, problem, 200)
    for _, arm, explored, _ in drive.decisions(agent, problem, 100):
        assert type(arm) is int
        assert type(explored) is bool
        assert 0 <= arm < problem.n_arms


@decision_policies
def test_only_available_arms_are_pulled(policy):
    """Features that never come twice, a mask at random, from one arm to more than a block of them."""
    for n_arms in (1, 2, 5, 20, 70):
        setting, rng = make_setting(4, 0.5, 2.0), np.random.default_rng(n_arms)
        agent = contract.start(policy, setting, None, make_rng(0, n_arms, POLICY))
        pulled = set()
        for arms, available in drive.offers(rng, 60, n_arms, 4):
            arm, explored = contract.act(agent, 0, arms, available, None)
            assert available[arm]
            if available.sum() == 1:
                assert not explored or isinstance(policy, sb.EpsilonGreedy)
            contract.update(agent, 0, arm, arms[arm], float(arms[arm] @ np.ones(4)) + 0.5 * rng.normal(), 0)
            pulled.add(arm)
        assert len(pulled) >= min(n_arms, 5)


@decision_policies
def test_arms_that_may_not_be_pulled_might_as_well_not_be_there(policy):
    """The same choices when they are left out; RandUCB also takes its scale from what it sees."""
    rng, setting = np.random.default_rng(0), make_setting(4, 0.5, 2.0)
    masked, fewer = (contract.start(policy, setting, None, make_rng(0, 0, POLICY)) for _ in range(2))
    for step, (arms, available) in enumerate(drive.offers(rng, 200, 7, 4)):
        if step == 0:
            available[:] = True
        kept = np.flatnonzero(available)
        arm, explored = contract.act(masked, 0, arms, available, None)
        rest = np.ones(len(kept), dtype=np.bool_)
        assert contract.act(fewer, 0, arms[kept], rest, None) == (kept.tolist().index(arm), explored)
        reward = rng.normal()
        for agent in (masked, fewer):
            contract.update(agent, 0, arm, arms[arm], reward, 0)


@every_variant
def test_seeds_decide_what_is_random_and_nothing_else(policy):
    problem = fitting(policy, 1)
    first = drive.arms_of(policy, problem, 300, seed=1)
    assert drive.arms_of(policy, problem, 300, seed=1) == first
    assert (drive.arms_of(policy, problem, 300, seed=2) != first) == draws(policy)


# -- what is carried --


def known(agent):
    """The state without what is only kept at hand: tables of means and norms follow from the estimator."""
    plain = state_to_plain(agent.state)
    plain.get("regression", {}).pop("tables", None)
    return plain


def assert_alike(first, second):
    """Two states equal: counts and random words exactly, sums to rounding, which depends on where arrays lie."""
    for one, other in zip(arrays_of(first), arrays_of(second), strict=True):
        if one.dtype.kind in "iu":
            assert (one == other).all()
        else:
            assert one == pytest.approx(other, rel=1e-8, abs=1e-10)


@every_variant
def test_all_that_is_carried_is_the_state(policy):
    """Put into a new agent, its scratch empty, its random numbers others: the same decisions, the same state."""
    problem = fitting(policy, 6)
    agent, rng = drive.begin(policy, problem, 400, seed=5), np.random.default_rng(0)
    for step in range(240):
        if step % 40 == 0:
            other = drive.begin(policy, problem, 400, seed=99)
            fill_state(other.state, json.loads(json.dumps(state_to_plain(agent.state))))
            policy.check_state(other)
        context, reward = int(rng.integers(problem.n_contexts)), rng.normal()
        arm, explored = drive.act(agent, problem, context)
        assert drive.act(other, problem, context) == (arm, explored)
        for one in (agent, other):
            drive.update(one, problem, context, arm, reward)
        assert_alike(agent.state, other.state)


@every_policy
def test_parameters_setting_and_table_stay_what_they_were(policy):
    problem = fitting(policy, 6)
    agent = drive.begin(policy, problem, 200)
    moving = agent.state, getattr(agent, "work", None)
    fixed = [part for part in agent if not any(part is one for one in moving)]
    before = repr(fixed)
    for _ in drive.decisions(agent, problem, 60):
        pass
    assert repr(fixed) == before


@every_variant
def test_probabilities_are_a_distribution_and_change_nothing(policy):
    """Asked for with every decision or not: the same decisions, the same state."""
    problem = fitting(policy, 7)
    asked, other = (drive.begin(policy, problem, 300, seed=3) for _ in range(2))
    certain = contract.kernels(type(asked)).certain
    rng, seen = np.random.default_rng(0), set()
    for _ in range(200):
        context, reward = int(rng.integers(problem.n_contexts)), rng.normal()
        out, everything = np.full(problem.n_arms, np.nan), drive.all_arms(problem)
        arm, explored = contract.act(asked, context, problem.features[context], everything, out)
        assert drive.act(other, problem, context) == (arm, explored)
        assert known(asked) == known(other)
        for agent in (asked, other):
            drive.update(agent, problem, context, arm, reward)
        if np.isnan(out).any():
            assert np.isnan(out).all()
            assert isinstance(policy, sb.LinTS | sb.rivals.FeelGoodTS)
            assert policy.votes == 0
            continue
        assert (out >= 0).all()
        assert out.sum() == pytest.approx(1)
        assert out[arm] > 0
        assert not certain or out[arm] == 1
        seen.add(float(out[arm]))
    assert_alike(asked.state, other.state)
    # A distribution that were always the same would tell nothing.
    assert len(seen) > 1 or not seen or not draws(policy)


DRAWN = [
    name
    for name, policy in POLICIES.items()
    if draws(policy) and not (name.startswith(("lints", "feel-good")) and "votes" not in name)
]


@pytest.mark.parametrize("name", DRAWN)
def test_arms_are_drawn_with_the_probabilities_that_are_said(name):
    """From one state with 4,000 seeds: each arm as often as the sum of its probabilities, within 4.5 standard errors.

    The differences have mean 0 given the past and variance p (1 - p), summed. False alarms: below 1e-5 per arm, 6 arms
    and 13 policies: below 1e-3 in all, were the seeds not fixed.
    """
    policy = POLICIES[name]
    problem = fitting(policy, 8)
    agent = drive.begin(policy, problem, 1000)
    for context, *_ in drive.decisions(agent, problem, 60):
        if drive.probabilities(agent, problem, context).max() < 0.9:
            break
    saved = [array.copy() for array in arrays_of(agent.state)]
    off, variance = np.zeros(problem.n_arms), np.zeros(problem.n_arms)
    for run in range(4000):
        for array, value in zip(arrays_of(agent.state), saved, strict=True):
            array[...] = value
        agent.state.rng[:] = make_rng(1, run, POLICY)
        chances = drive.probabilities(agent, problem, context)
        arm, _ = drive.act(agent, problem, context)
        off -= chances
        off[arm] += 1
        variance += chances * (1 - chances)
    assert (variance > 1).sum() >= 2
    assert (np.abs(off) <= 4.5 * np.sqrt(variance) + 1e-6).all()


def test_the_probability_of_one_of_two_arms_needs_no_votes():
    """LinTS in closed form: 20,000 draws, within 5 standard errors, a false alarm of 6e-7 each."""
    rng, setting = np.random.default_rng(0), make_setting(3, 0.5)
    for policy in (sb.LinTS(), sb.LinTS(scale="paper", multiple=2)):
        agent = contract.start(policy, setting, None, make_rng(0, 0, POLICY))
        for _ in range(8):
            contract.update(agent, 0, 0, rng.normal(size=3), rng.normal(), 0)
        agent.state.regression.step[()] = 20
        arms, available = rng.normal(size=(4, 3)), np.array([False, True, False, True])
        out = drive.chances(agent, 0, arms, available)
        assert 0.05 < out[1] < 0.95
        assert out[1] + out[3] == pytest.approx(1)
        count = 0
        for _ in range(20_000):
            agent.state.regression.step[()] = 20
            count += contract.act(agent, 0, arms, available, None)[0] == 1
        assert abs(count / 20_000 - out[1]) < 5 * math.sqrt(out[1] * out[3] / 20_000)


@decision_policies
def test_probabilities_respect_the_mask(policy):
    rng, setting = np.random.default_rng(1), make_setting(4, 0.5, 2.0)
    agent = contract.start(policy, setting, None, make_rng(0, 0, POLICY))
    for arms, available in drive.offers(rng, 100, 6, 4):
        out = np.full(6, np.nan)
        arm, _ = contract.act(agent, 0, arms, available, out)
        if not np.isnan(out).any():
            assert (out[~available] == 0).all()
            assert out.sum() == pytest.approx(1)
            if available.sum() == 1:
                assert out[available] == pytest.approx([1.0])
        contract.update(agent, 0, arm, arms[arm], rng.normal(), 0)


# -- rewards --


@every_policy
def test_late_and_lost_rewards_are_taken_as_they_come(policy):
    problem, rng = fitting(policy, 8), np.random.default_rng(0)
    agent = drive.begin(policy, problem, 300)
    waiting, taken = [], 0
    for step in range(300):
        context = int(rng.integers(problem.n_contexts))
        arm, _ = drive.act(agent, problem, context)
        assert 0 <= arm < problem.n_arms
        if rng.uniform() < 0.8:
            waiting.append((context, arm, problem.means[context, arm] + rng.normal()))
        if step % 50 == 49:
            for place in rng.permutation(len(waiting)):
                drive.update(agent, problem, *waiting[place])
            taken += len(waiting)
            waiting = []
    fill_state(agent.state, state_to_plain(agent.state))  # refuses what is not finite
    if hasattr(agent.state, "regression"):
        assert agent.state.regression.estimator.rewards.item() == taken


@every_policy
def test_without_a_single_reward_it_goes_on_deciding(policy):
    problem = fitting(policy, 9)
    agent, rng = drive.begin(policy, problem), np.random.default_rng(0)
    for _ in range(150):
        arm, _ = drive.act(agent, problem, int(rng.integers(problem.n_contexts)))
        assert 0 <= arm < problem.n_arms
    fill_state(agent.state, state_to_plain(agent.state))


@every_policy
def test_rewards_may_come_before_the_first_decision(policy):
    """Of data gathered before: taken in, and used by the first decision."""
    problem = fitting(policy, 10)
    agent = drive.begin(policy, problem, 100)
    rng = np.random.default_rng(0)
    for _ in range(50):
        context, arm = int(rng.integers(problem.n_contexts)), int(rng.integers(problem.n_arms))
        drive.update(agent, problem, context, arm, problem.means[context, arm])
    arm, _ = drive.act(agent, problem, 0)
    assert 0 <= arm < problem.n_arms
    fill_state(agent.state, state_to_plain(agent.state))


# -- awkward problems --


def assert_sound(policy, problem, steps):
    """Arms in range, finite numbers in the trace and in the state; with and without a known horizon."""
    trace = play(problem, policy, steps, seed=0, run=0, steps=checkpoints(steps))
    assert np.isfinite(trace.regret).all()
    agent = drive.begin(policy, problem)
    for _, arm, *_ in drive.decisions(agent, problem, steps // 2):
        assert 0 <= arm < problem.n_arms
    for context in range(problem.n_contexts):
        chances = drive.probabilities(agent, problem, context)
        assert chances is None or chances.sum() == pytest.approx(1)
    fill_state(agent.state, state_to_plain(agent.state))  # refuses what is not finite


@every_policy
@pytest.mark.parametrize("name", degenerate())
def test_degenerate_problems_give_arms_and_finite_numbers(policy, name):
    problem = degenerate()[name]
    if takes_one_context(policy):
        bound = float(np.linalg.norm(problem.theta)) + 1
        one = problem.features[-2:][:1]
        problem = sb.Problem(one, problem.theta, noise_std=problem.noise_std, theta_bound=bound)
    assert_sound(policy, problem, 200)


def awkward_problem(rng, contexts):
    """A random problem, half of the time with something wrong, one or several at once."""
    arms, dim = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    features = rng.normal(size=(contexts, arms, dim)) * 10.0 ** rng.uniform(-3, 3)
    if rng.random() < 0.15:
        features = features @ np.outer(rng.normal(size=dim), rng.normal(size=dim))  # collinear
    if rng.random() < 0.15:
        features[int(rng.integers(contexts)), int(rng.integers(arms))] = 0
    if rng.random() < 0.15:
        features = np.repeat(features, 2, axis=1)
    if rng.random() < 0.15:
        features = features.round()
    theta = rng.normal(size=dim) * 10.0 ** rng.uniform(-3, 3)
    noise_std = 10.0 ** rng.uniform(-2, 2)
    return sb.Problem(features, theta, noise_std=noise_std, theta_bound=float(np.linalg.norm(theta)) + 1e-9)


@every_variant
def test_no_arm_out_of_range_no_nan_no_exception_on_100_awkward_problems(policy):
    rng = np.random.default_rng(0)
    for _ in range(100):
        contexts = int(rng.integers(1, 4))
        assert_sound(policy, awkward_problem(rng, 1 if takes_one_context(policy) else contexts), 60)


@every_policy
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 5), st.floats(0.01, 3), st.integers(0, 10**6))
@settings(max_examples=10)
def test_regret_grows_between_zero_and_the_largest_gap_per_step(
    policy, n_contexts, n_arms, dim, noise_std, seed
):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(1 if takes_one_context(policy) else n_contexts, n_arms, dim))
    problem = sb.Problem(features, rng.normal(size=dim), noise_std=noise_std)
    trace = play(problem, policy, 60, seed, run=0, steps=np.arange(1, 61))
    growth = np.diff(trace.regret, prepend=0)
    assert (growth >= -1e-9).all()
    assert (growth <= problem.gaps.max() + 1e-9).all()
    assert (np.diff(trace.explored, prepend=0) <= 1).all()


@every_policy
def test_arms_that_tie_for_ever_are_no_trouble(policy):
    """Copies of one arm: whichever is pulled, no regret, and what is learnt is the one mean there is."""
    problem = sb.Problem(np.ones((1, 4, 2)), [0.5, 0.5], noise_std=0.1)
    trace = play(problem, policy, 200, seed=0, run=0, steps=checkpoints(200))
    assert trace.regret[-1] == 0
    agent = drive.begin(policy, problem, 200)
    for _ in drive.decisions(agent, problem, 200):
        pass
    if hasattr(agent.state, "regression"):
        assert agent.state.regression.estimator.reward_sum.item() / 200 == pytest.approx(1, abs=0.05)


# -- compiled code --


@every_policy
def test_a_second_call_compiles_nothing(policy):
    play(fitting(policy, 0), policy, 10, seed=0, run=0, steps=checkpoints(10))
    compiled = len(_loop.signatures)
    play(fitting(policy, 1, n_arms=4, dim=3), policy, 20, seed=1, run=1, steps=checkpoints(20))
    assert len(_loop.signatures) == compiled


STEPS = 200
PLAY_ALL = f"""
import json
import drive
from variants import CANONICAL, fitting
print(json.dumps({{
    name: [step[:3] for step in drive.decisions(
        drive.begin(policy, fitting(policy, 2, 2, 4, 3), {STEPS}), fitting(policy, 2, 2, 4, 3), {STEPS})]
    for name, policy in CANONICAL.items()
}}, default=lambda number: number.item()))
"""


@pytest.fixture(scope="module")
def interpreted(request):
    """(context, arm, explored) of every step of every policy, played without the compiler."""
    paths = [str(request.config.rootpath / "tests"), *sys.path]
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", PLAY_ALL],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(paths)},
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CANONICAL)
def test_the_same_arms_without_the_compiler(name, interpreted):
    policy = CANONICAL[name]
    problem = fitting(policy, 2, 2, 4, 3)
    played = drive.decisions(drive.begin(policy, problem, STEPS), problem, STEPS)
    assert [list(step[:3]) for step in played] == interpreted[name]
