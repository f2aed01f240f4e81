"""One decision at a time: the interface of `Agent`, what it decides, and what it refuses."""

import copy
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import solid_bandits as sb
from agents import CERTAIN, DECISION, ONE_CONTEXT, POLICIES, TABLE, make_agent, offer, play, same
from solid_bandits.core import loop
from solid_bandits.core.offer import as_arms
from solid_bandits.core.randomness import ENVIRONMENT, make_rng, normal, uniform
from solid_bandits.policies.state import state_to_plain


def snapshot(agent):
    """All that the agent carries."""
    return state_to_plain(agent._compiled.state)


def fitted(rows, rewards, ridge=1.0):
    """θ-hat and V by dense algebra."""
    rows = np.array(rows)
    gram = ridge * np.eye(rows.shape[1]) + rows.T @ rows
    return np.linalg.solve(gram, rows.T @ np.array(rewards)), gram


def ridge_of(agent, name, first):
    """ν of an agent of `agents.make_agent` that was asked `first` before all else."""
    evidence = getattr(agent._compiled.state.regression, "evidence", None)
    if evidence is not None:
        return evidence.ridge.item()
    if name == "RandUCB, fixed ridge":
        return 0.2 * (first["features"] ** 2).sum(axis=1).max()
    return 1e-3 if name in ("EndOfOptimism", "E4") else 1.0


def test_the_interface(tmp_path):
    rng = np.random.default_rng(0)
    agent = sb.Agent(sb.RandUCB(), dim=8, noise_std=0.5, seed=0)
    features, mask = rng.normal(size=(5, 8)), np.array([True, False, True, True, False])
    decision = agent.decide(features, available=mask)
    assert isinstance(decision, sb.Decision)
    assert type(decision.arm) is int
    assert mask[decision.arm]
    assert type(decision.probability) is float
    assert decision.probability == decision.probabilities[decision.arm] > 0
    assert decision.probabilities.shape == (5,)
    assert decision.probabilities.sum() == pytest.approx(1)
    assert not decision.probabilities[~mask].any()
    assert type(decision.explored) is bool
    assert np.array_equal(decision.features, features[decision.arm])
    assert decision.context is None
    agent.learn(decision, 1.0)
    agent.learn_many([decision, agent.decide(features)], [0.5, -0.5])
    means, stds = agent.predict(features)
    assert means.shape == stds.shape == (5,)
    assert agent.theta.shape == (8,)
    agent.save(tmp_path / "agent.json")
    again = sb.Agent.load(tmp_path / "agent.json")
    assert same(agent.decide(features), again.decide(features))
    assert repr(agent) == f"Agent({sb.RandUCB()!r}, dim=8)"


def test_the_interface_with_a_table():
    table = np.random.default_rng(0).normal(size=(5, 3, 2))
    agent = sb.Agent(sb.Solid(), contexts=table, noise_std=0.5, theta_bound=2.0)
    decision = agent.decide(context=3)
    assert decision.context == 3
    assert np.array_equal(decision.features, table[3, decision.arm])
    assert decision.probabilities.tolist() == pytest.approx([1 / 3] * 3)  # ω_1 is uniform
    agent.learn(decision, reward=1.0)
    means, stds = agent.predict(table[3])
    assert means.shape == stds.shape == (3,)


@pytest.mark.parametrize("name", POLICIES)
def test_decisions_are_those_of_the_simulation(name):
    """The same seed gives the same arms, step by step, as `loop.play`; its environment is replayed here."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(1 if name in ONE_CONTEXT else 3, 4, 3))
    problem = sb.Problem(features, [0.7, -0.4, 0.2], noise_std=0.5)
    steps, seed = 400, 6
    trace = loop.play(problem, POLICIES[name], steps, seed, 0, np.arange(1, steps + 1))
    agent = sb.Agent(
        POLICIES[name], contexts=features, noise_std=0.5, theta_bound=problem.B, horizon=steps, seed=seed
    )
    environment = make_rng(seed, 0, ENVIRONMENT)
    edges = np.cumsum(problem.context_probs)
    regret = explored = 0
    for step in range(steps):
        point, noise = uniform(environment), 0.5 * normal(environment)
        context = min(int(np.searchsorted(edges, point, side="right")), len(features) - 1)
        # Policies that decide from features may be given them, or where they are in the table.
        asked = {"context": context} if name in TABLE or step % 2 else {"features": features[context]}
        decision = agent.decide(**asked)
        agent.learn(decision, problem.means[context, decision.arm] + noise)
        regret, explored = regret + problem.gaps[context, decision.arm], explored + decision.explored
        assert (regret, explored) == (trace.regret[step], trace.explored[step])


@pytest.mark.parametrize("name", DECISION)
def test_policies_that_need_no_table_take_one(name):
    rng = np.random.default_rng(2)
    table = rng.normal(size=(3, 4, 3))
    by_place = sb.Agent(DECISION[name], contexts=table, noise_std=0.5, seed=3)
    by_features = sb.Agent(DECISION[name], dim=3, noise_std=0.5, seed=3)
    for _ in range(50):
        context, mask = int(rng.integers(3)), np.array([True, True, rng.random() < 0.5, rng.random() < 0.5])
        one = by_place.decide(context=context, available=mask)
        other = by_features.decide(table[context], mask)
        assert one.context == context
        assert same(one.replace(context=None), other)
        by_place.learn(one, reward := rng.normal())
        by_features.learn(other, reward)
    # Features that are not of the table will do as well.
    by_place.learn(by_place.decide(rng.normal(size=(9, 3))), 1.0)


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "UCB1"])
def test_rewards_may_come_late_in_any_order_or_never(name):
    rng = np.random.default_rng(4)
    agent = make_agent(name, rng)
    asked = [offer(name, rng) for _ in range(60)]
    decisions = [agent.decide(**one) for one in asked]
    order = rng.permutation(60)[:45]
    rewards = rng.normal(size=60)
    for i in order:
        agent.learn(decisions[i], rewards[i])
    ridge = ridge_of(agent, name, asked[0])
    theta, _ = fitted([decisions[i].features for i in order], rewards[order], ridge)
    assert np.allclose(agent.theta, theta, rtol=1e-9, atol=1e-9)
    assert snapshot(agent)["regression"]["estimator"]["rewards"] == 45
    assert snapshot(agent).get("step", 60) == 60


@pytest.mark.parametrize("name", ["RandUCB, fixed ridge", "LinUCB", "Solid"])
def test_order_matters_to_rounding_only(name):
    """Not so by evidence, which is asked at some counts of rewards: of which ones depends on the order."""
    rng = np.random.default_rng(5)
    agents = [make_agent(name, np.random.default_rng(6)) for _ in range(2)]
    asked = [offer(name, rng) for _ in range(40)]
    rewards = rng.normal(size=40)
    first, second = ([agent.decide(**one) for one in asked] for agent in agents)
    assert all(same(*pair) for pair in zip(first, second, strict=True))
    for i in range(40):
        agents[0].learn(first[i], rewards[i])
    for i in reversed(range(40)):
        agents[1].learn(second[i], rewards[i])
    assert np.allclose(agents[0].theta, agents[1].theta, rtol=1e-9, atol=1e-12)
    some = rng.normal(size=(5, 3))
    for one, other in zip(agents[0].predict(some), agents[1].predict(some), strict=True):
        assert np.allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("name", POLICIES)
def test_many_rewards_at_once_are_those_one_by_one(name):
    rng = np.random.default_rng(7)
    agent = make_agent(name, rng)
    play(agent, name, rng, 20)
    decisions = [agent.decide(**offer(name, rng)) for _ in range(30)]
    rewards = rng.normal(size=30)
    twin = copy.copy(agent)
    for decision, reward in zip(decisions, rewards, strict=True):
        agent.learn(decision, reward)
    twin.learn_many(iter(decisions), iter(rewards))
    assert snapshot(agent) == snapshot(twin)
    agent.learn_many([], [])
    assert snapshot(agent) == snapshot(twin)


@pytest.mark.parametrize("name", ["RandUCB", "Solid"])
def test_many_rewards_are_checked_before_any_is_taken_in(name):
    rng = np.random.default_rng(8)
    agent = make_agent(name, rng)
    decisions = [agent.decide(**offer(name, rng)) for _ in range(4)]
    before = snapshot(agent)
    for wrong in (np.nan, np.inf, 1e31, "many", None, [1.0]):
        with pytest.raises(ValueError, match="reward must be"):
            agent.learn_many(decisions, [1.0, 2.0, 3.0, wrong])
    for wrong in (None, 3, (0, 1.0), decisions):
        with pytest.raises(ValueError, match="decision must be what decide returned"):
            agent.learn_many([*decisions[:3], wrong], [1.0] * 4)
    with pytest.raises(ValueError, match="rewards must have 4 entries, one per decision, got 3"):
        agent.learn_many(decisions, [1.0] * 3)
    assert snapshot(agent) == before


@pytest.mark.parametrize("arms", [4_096, 4_097, 100_000])
def test_features_of_many_arms_are_checked_too(arms):
    """They are looked at in another way than those of few."""
    agent = sb.Agent(sb.Greedy(), dim=2, noise_std=1.0, seed=0)
    features = np.random.default_rng(0).normal(size=(arms, 2))
    for place in (0, arms - 1):
        for wrong, words in ((np.nan, "nan"), (-np.inf, "inf"), (np.inf, "inf"), (-1e31, "1e"), (1e31, "1e")):
            given = features.copy()
            given[place, 1] = wrong
            with pytest.raises(ValueError, match=f"features must .*{words}"):
                agent.decide(given)
    features[0] = -1e30, 0.0
    assert as_arms(features, 2) is features


@pytest.mark.parametrize("name", DECISION)
def test_predictions_are_those_of_dense_algebra(name):
    rng = np.random.default_rng(9)
    agent = make_agent(name, rng)
    asked = [offer(name, rng) for _ in range(50)]
    rows, rewards = [], rng.normal(size=50)
    for one, reward in zip(asked, rewards, strict=True):
        decision = agent.decide(**one)
        agent.learn(decision, reward)
        rows.append(decision.features)
    theta, gram = fitted(rows, rewards, ridge_of(agent, name, asked[0]))
    some = rng.normal(size=(70, 3))
    before = snapshot(agent)
    means, stds = agent.predict(some)
    assert np.allclose(agent.theta, theta)
    assert np.allclose(means, some @ theta)
    assert np.allclose(stds, 0.5 * np.sqrt((some * np.linalg.solve(gram, some.T).T).sum(axis=1)))
    assert snapshot(agent) == before


def test_the_scale_of_randucb():
    """Its ridge is relative to the first arms that it sees; before them a prediction knows nothing."""
    agent = sb.Agent(sb.RandUCB(ridge=0.2), dim=2, noise_std=0.5)
    means, stds = agent.predict([[1.0, 0.0], [0.0, 0.0]])
    assert (means.tolist(), stds.tolist()) == ([0, 0], [np.inf, 0])
    agent.decide([[3.0, 4.0], [1.0, 0.0]])
    assert agent.predict([[5.0, 0.0]])[1] == pytest.approx([0.5 / np.sqrt(0.2)])
    agent.decide([[300.0, 400.0]])
    assert agent.predict([[5.0, 0.0]])[1] == pytest.approx([0.5 / np.sqrt(0.2)])  # set once
    late = sb.Agent(sb.RandUCB(ridge=0.2), dim=2, noise_std=0.5)
    late.learn(agent.decide([[1.0, 1.0]]), 2.0)  # a reward may come before it has decided anything
    assert late.theta == pytest.approx([2 / 2.4] * 2)


def test_ucb1_has_no_estimate_to_show():
    agent = make_agent("UCB1", np.random.default_rng(0))
    with pytest.raises(ValueError, match="UCB1 keeps no linear estimate"):
        _ = agent.theta
    with pytest.raises(ValueError, match="UCB1 keeps no linear estimate"):
        agent.predict(np.ones((1, 3)))


@pytest.mark.parametrize("name", DECISION)
def test_any_number_of_arms_and_any_mask(name):
    rng = np.random.default_rng(10)
    agent = make_agent(name, rng, probabilities=True)
    for n_arms in (1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 200, 3):
        features = rng.normal(size=(n_arms, 3))
        for share in (0.0, 0.5, 1.0):
            mask = rng.random(n_arms) < share
            mask[rng.integers(n_arms)] = True
            decision = agent.decide(features, available=mask)
            assert mask[decision.arm]
            assert decision.probabilities.shape == (n_arms,)
            assert decision.probabilities.sum() == pytest.approx(1)
            assert not decision.probabilities[~mask].any()
            assert decision.probability == decision.probabilities[decision.arm] > 0
            agent.learn(decision, rng.normal())
    assert np.isfinite(agent.theta).all()


def test_a_mask_hides_features():
    """What is not on offer has no say: huge features under the mask change nothing."""
    rng = np.random.default_rng(11)
    for name in DECISION:
        agents = [make_agent(name, np.random.default_rng(0)) for _ in range(2)]
        for _ in range(30):
            features, mask = rng.normal(size=(4, 3)), np.array([True, False, True, True])
            other = features.copy()
            other[1] *= 1e6
            one, two = agents[0].decide(features, mask), agents[1].decide(other, mask)
            assert same(one, two)
            for agent, decision in zip(agents, (one, two), strict=True):
                agent.learn(decision, float(decision.arm))


class Subclass(np.ndarray):
    """Of arrays, as other libraries have them."""


@pytest.mark.parametrize(
    "given_as",
    [
        np.ndarray.tolist,
        lambda x: tuple(map(tuple, x.tolist())),
        np.float32,
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: x[::-1][::-1],
        lambda x: x.astype(">f8"),
        lambda x: x.astype(int),
        lambda x: x.view(Subclass),
        lambda x: np.frombuffer(b"\0" + x.tobytes(), dtype=np.uint8)[1:].view(float).reshape(x.shape),
    ],
    ids=[
        "lists",
        "tuples",
        "float32",
        "fortran",
        "strided",
        "reversed",
        "swapped",
        "int",
        "subclass",
        "unaligned",
    ],
)
def test_features_in_any_form(given_as):
    rng = np.random.default_rng(12)
    agent, twin = (make_agent("RandUCB", rng) for _ in range(2))
    for _ in range(20):
        features = rng.integers(-8, 8, size=(5, 3)).astype(float)
        features[0, 0] = 9.0
        one, other = agent.decide(features), twin.decide(given_as(features))
        assert same(one, other)
        assert np.array_equal(agent.predict(features), twin.predict(given_as(features)))
        agent.learn(one, 1.0)
        twin.learn(other, np.float32(1.0))


def test_what_is_given_stays_as_it_is_and_need_not_stay():
    rng = np.random.default_rng(13)
    agent = make_agent("RandUCB", rng)
    features, mask = rng.normal(size=(4, 3)), np.array([True, True, False, True])
    kept, kept_mask = features.copy(), mask.copy()
    features.flags.writeable = mask.flags.writeable = False
    decision = agent.decide(features, mask[::-1][::-1])
    agent.predict(features)
    features.flags.writeable = mask.flags.writeable = True
    assert np.array_equal(features, kept)
    assert np.array_equal(mask, kept_mask)
    features[:] = 99.0  # a buffer that is used again
    assert np.array_equal(decision.features, kept[decision.arm])
    table = rng.normal(size=(2, 3, 4))
    tabled = sb.Agent(sb.Solid(), contexts=table, noise_std=0.5, theta_bound=1.0)
    expected = table[1].copy()
    table[:] = 0.0
    decision = tabled.decide(context=1)
    assert np.array_equal(decision.features, expected[decision.arm])


def test_seeds():
    rng = np.random.default_rng(14)
    asked = [rng.normal(size=(4, 3)) for _ in range(60)]

    def arms(seed):
        agent = sb.Agent(sb.EpsilonGreedy(epsilon=1.0), dim=3, noise_std=1.0, seed=seed)
        return [agent.decide(one).arm for one in asked]

    assert arms(1) == arms(1) != arms(2)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("way", ["copy", "deepcopy", "pickle"])
def test_copies_go_their_own_way(name, way):
    rng = np.random.default_rng(15)
    agent = make_agent(name, rng)
    play(agent, name, rng, 25)
    ways = {
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
        "pickle": lambda one: pickle.loads(pickle.dumps(one)),
    }
    twin = ways[way](agent)
    assert snapshot(twin) == snapshot(agent)
    before = snapshot(twin)
    assert all(
        same(*pair)
        for pair in zip(
            play(agent, name, np.random.default_rng(16), 30),
            play(twin, name, np.random.default_rng(16), 30),
            strict=True,
        )
    )
    assert snapshot(twin) == snapshot(agent) != before
    play(agent, name, rng, 5, rewarded=1.0)
    assert snapshot(twin) != snapshot(agent)


@pytest.mark.parametrize("name", ["RandUCB", "LinTS with votes", "Solid"])
def test_threads_share_an_agent(name):
    """Nothing is lost: every decision and reward is counted, and the estimate is that of all of them."""
    rng = np.random.default_rng(17)
    agent = make_agent(name, rng)
    first = offer(name, rng)
    agent.decide(**first)
    threads, rounds = 6, 300
    start = threading.Barrier(threads)

    def work(seed):
        own = np.random.default_rng(seed)
        pairs = []
        start.wait()
        for _ in range(rounds):
            decision = agent.decide(**offer(name, own))
            pairs.append((decision, own.normal()))
            if own.random() < 0.5:
                agent.learn(*pairs[-1])
            else:
                agent.learn_many([decision], [pairs[-1][1]])
            means, stds = agent.predict(np.eye(3))
            assert np.isfinite(means).all()
            assert np.isfinite(stds).all()
            if decision.probability is not None:
                assert decision.probability > 0
        return pairs

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(threads) as pool:
            pairs = [pair for part in pool.map(work, range(threads)) for pair in part]
    finally:
        sys.setswitchinterval(interval)
    state = snapshot(agent)
    assert (state if "step" in state else state["regression"])["step"] == threads * rounds + 1
    assert state["regression"]["estimator"]["rewards"] == threads * rounds
    assert state["regression"]["estimator"]["reward_sum"] == pytest.approx(
        sum(reward for _, reward in pairs), abs=1e-9
    )
    rows, rewards = [decision.features for decision, _ in pairs], [reward for _, reward in pairs]
    theta, _ = fitted(rows, rewards, ridge_of(agent, name, first))
    assert np.allclose(agent.theta, theta, rtol=1e-8, atol=1e-10)


def test_saving_while_others_learn(tmp_path):
    """A file has one moment's state, whole."""
    rng = np.random.default_rng(18)
    agent = sb.Agent(sb.Greedy(), dim=2, noise_std=1.0)
    decision = agent.decide(rng.normal(size=(3, 2)))
    done = threading.Event()

    def learn():
        while not done.is_set():
            agent.learn(decision, 1.0)

    worker = threading.Thread(target=learn)
    worker.start()
    try:
        for i in range(20):
            agent.save(tmp_path / f"{i}.json")
    finally:
        done.set()
        worker.join()
    for i in range(20):
        estimator = snapshot(sb.Agent.load(tmp_path / f"{i}.json"))["regression"]["estimator"]
        assert estimator["rewards"] == estimator["reward_sum"]


FEATURES = np.ones((3, 2))
BAD_DECISIONS = [
    ({}, r"features must be given to decide, shape \(arms, 2\), got None"),
    ({"features": None, "available": [True]}, "features must be"),
    ({"features": []}, "features must be .* none of them empty"),
    ({"features": np.ones((0, 2))}, "features must be"),
    ({"features": np.ones(2)}, "features must be"),
    ({"features": np.ones((1, 3, 2))}, "features must be"),
    ({"features": np.ones((3, 5))}, r"features must have shape \(arms, 2\), got \(3, 5\)"),
    ({"features": [[1, 2], [3]]}, "features must be"),
    ({"features": "arms"}, "features must be"),
    ({"features": [["a", "b"]]}, "features must be"),
    ({"features": [[1, np.nan]]}, r"features must be finite everywhere, got nan at index \(0, 1\)"),
    ({"features": np.array([[1, np.nan]])}, "features must be finite"),
    ({"features": np.array([[1, -np.inf]])}, "features must be finite"),
    ({"features": np.array([[1, 1e31]])}, "features must be at most 1e.30 in size"),
    ({"features": [[1, 1j]]}, "features must be"),
    ({"features": FEATURES, "available": [True, False]}, "available must be 3 truth values"),
    ({"features": FEATURES, "available": [1, 0, 1]}, "available must be 3 truth values"),
    ({"features": FEATURES, "available": [[True], [True, False]]}, "available must be 3 truth values"),
    ({"features": FEATURES, "available": np.ones((3, 1), dtype=bool)}, "available must be 3 truth values"),
    ({"features": FEATURES, "available": "yes"}, "available must be 3 truth values"),
    ({"features": FEATURES, "available": [False] * 3}, "available must have at least one arm, got none"),
    ({"context": 0}, "features must be given to decide instead of context, got context=0"),
    ({"features": FEATURES, "context": 0}, "features must be given to decide instead of context"),
]


@pytest.mark.parametrize(("asked", "message"), BAD_DECISIONS)
@pytest.mark.parametrize("name", ["RandUCB", "LinTS with votes"])
def test_bad_features_are_refused(name, asked, message):
    agent = make_agent(name, None, dim=2)
    before = snapshot(agent)
    with pytest.raises(ValueError, match=message):
        agent.decide(**asked)
    assert snapshot(agent) == before


BAD_CONTEXTS = [
    ({}, "context must be given"),
    ({"context": -1}, "context must be an integer from 0 to 2, got -1"),
    ({"context": 3}, "context must be an integer from 0 to 2, got 3"),
    ({"context": 1.0}, "context must be an integer"),
    ({"context": True}, "context must be an integer"),
    ({"context": "1"}, "context must be an integer"),
    ({"context": [1]}, "context must be an integer"),
    ({"features": np.ones((4, 3))}, "plans over the contexts of its table"),
    ({"features": np.ones((4, 3)), "context": 1}, "plans over the contexts of its table"),
    ({"context": 1, "available": [True] * 4}, "plans over the contexts of its table"),
]


@pytest.mark.parametrize(("asked", "message"), BAD_CONTEXTS)
def test_bad_contexts_are_refused(asked, message):
    agent = make_agent("Solid", np.random.default_rng(0))
    before = snapshot(agent)
    with pytest.raises(ValueError, match=message):
        agent.decide(**asked)
    assert snapshot(agent) == before
    agent.decide(context=np.int64(1))


def test_bad_outcomes_are_refused():
    agent = make_agent("LinUCB", None, dim=2)
    decision = agent.decide(FEATURES)
    before = snapshot(agent)
    for wrong in (np.nan, -np.inf, 1e31, -1e31, "much", None, 1j, [1.0, 2.0]):
        with pytest.raises(ValueError, match="reward must be"):
            agent.learn(decision, wrong)
    for wrong in (None, 0, decision.arm, (0, None), "decision"):
        with pytest.raises(ValueError, match="decision must be what decide returned"):
            agent.learn(wrong, 1.0)
    other = make_agent("LinUCB", None, dim=5).decide(np.ones((2, 5)))
    with pytest.raises(ValueError, match="decision must be of an agent with dim 2, got features of 5"):
        agent.learn(other, 1.0)
    for wrong in (None, "features", [1.0, np.nan], [[1.0, 2.0]]):
        with pytest.raises(ValueError, match=r"decision.features must be"):
            agent.learn(decision.replace(features=wrong), 1.0)
    assert snapshot(agent) == before


def test_bad_outcomes_of_tables_are_refused():
    rng = np.random.default_rng(0)
    agent = make_agent("Solid", rng)
    decision = agent.decide(context=1)
    before = snapshot(agent)
    foreign = make_agent("RandUCB", rng).decide(np.ones((4, 3)))
    with pytest.raises(ValueError, match="decision must be of an agent with contexts"):
        agent.learn(foreign, 1.0)
    for wrong in (-1, 3, "1", 1.5):
        with pytest.raises(ValueError, match=r"decision.context must be an integer from 0 to 2"):
            agent.learn(decision.replace(context=wrong), 1.0)
    for wrong in (-1, 4, "1", None):
        with pytest.raises(ValueError, match=r"decision.place must be an integer from 0 to 3"):
            agent.learn(decision.replace(place=wrong), 1.0)
    assert snapshot(agent) == before


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "dim or contexts must be given, and not both"),
        ({"dim": 2, "contexts": np.ones((1, 2, 2))}, "dim or contexts must be given, and not both"),
        ({"dim": 0}, "dim must be an integer >= 1, got 0"),
        ({"dim": 2.0}, "dim must be an integer"),
        ({"dim": True}, "dim must be an integer"),
        ({"contexts": np.ones((2, 2))}, "contexts must be an array of numbers of shape"),
        ({"contexts": np.ones((2, 0, 2))}, "contexts must be"),
        ({"contexts": np.full((1, 2, 2), np.nan)}, "contexts must be finite"),
        ({"contexts": np.full((1, 2, 2), 1e31)}, "contexts must be at most"),
        ({"dim": 2, "noise_std": 0}, "noise_std must be > 0, got 0"),
        ({"dim": 2, "noise_std": -1}, "noise_std must be > 0"),
        ({"dim": 2, "noise_std": np.nan}, "noise_std must be finite"),
        ({"dim": 2, "noise_std": "loud"}, "noise_std must be a number"),
        ({"dim": 2, "theta_bound": 0}, "theta_bound must be > 0"),
        ({"dim": 2, "horizon": 0}, "horizon must be an integer >= 1"),
        ({"dim": 2, "seed": -1}, "seed must be an integer >= 0"),
        ({"dim": 2, "seed": 1.5}, "seed must be an integer"),
    ],
)
def test_bad_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        sb.Agent(sb.Greedy(), **({"noise_std": 1.0} | wrong))


@pytest.mark.parametrize("wrong", [False, "RandUCB", sb.RandUCB, 3])
def test_what_is_no_policy_is_refused(wrong):
    with pytest.raises(
        ValueError, match=r"^policy must be (a policy such as Solid\(\)|an object, got the class)"
    ):
        sb.Agent(wrong, dim=2, noise_std=1.0)


@pytest.mark.parametrize("name", TABLE)
def test_policies_that_plan_need_their_table(name):
    with pytest.raises(ValueError, match=f"contexts must be given: {name} plans over a table"):
        sb.Agent(TABLE[name], dim=2, noise_std=1.0, theta_bound=1.0)


@pytest.mark.parametrize("name", ONE_CONTEXT)
def test_several_contexts_are_refused_by_policies_of_one(name):
    with pytest.raises(ValueError, match="takes one context, got 2"):
        sb.Agent(ONE_CONTEXT[name], contexts=np.ones((2, 2, 2)), noise_std=1.0, theta_bound=1.0)


def test_a_bound_that_is_needed():
    for policy in (sb.Solid(bonus="theorem"), sb.LinUCB(radius="theorem")):
        with pytest.raises(ValueError, match="theta_bound must be a number > 0 for"):
            sb.Agent(policy, contexts=np.ones((1, 2, 2)), noise_std=1.0)


@pytest.mark.parametrize("what", ["features", "reward", "noise_std"])
def test_whole_numbers_beyond_the_floats_are_refused(what):
    agent = make_agent("Greedy", None, dim=2)
    decision = agent.decide(FEATURES)
    calls = {
        "features": lambda: agent.decide([[10**400, 0]]),
        "reward": lambda: agent.learn(decision, 10**400),
        "noise_std": lambda: sb.Agent(sb.Greedy(), dim=2, noise_std=10**400),
    }
    with pytest.raises(ValueError, match=f"{what} must be"):
        calls[what]()


class Dense:
    """LinUCB or greedy in plain NumPy: what the agent is held against."""

    def __init__(self, name, dim, noise_std):
        self.optimistic = name == "LinUCB"
        self.gram, self.sums, self.noise_std, self.step = np.eye(dim), np.zeros(dim), noise_std, 0

    def bounds(self, features):
        self.step += 1
        means = features @ np.linalg.solve(self.gram, self.sums)
        if not self.optimistic:
            return means
        width = self.noise_std * np.sqrt(np.linalg.slogdet(self.gram)[1] + np.log(self.step))
        return means + width * np.sqrt((features * np.linalg.solve(self.gram, features.T).T).sum(axis=1))

    def learn(self, features, reward):
        self.gram = self.gram + np.outer(features, features)
        self.sums = self.sums + reward * features


MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("decide"), st.integers(1, 20), st.integers(0, 2**32 - 1)),
        st.tuples(st.just("learn"), st.integers(0, 10**6), st.floats(-10, 10)),
        st.tuples(st.just("forget"), st.integers(0, 10**6), st.none()),
        st.tuples(st.just("bad"), st.integers(0, len(BAD_DECISIONS) - 1), st.none()),
        st.tuples(st.just("bad reward"), st.integers(0, 10**6), st.sampled_from([np.nan, np.inf, None, "x"])),
        st.tuples(st.just("reload"), st.just(0), st.none()),
    ),
    max_size=40,
)


@given(name=st.sampled_from(["LinUCB", "Greedy"]), noise_std=st.floats(0.1, 5), moves=MOVES)
def test_any_sequence_of_calls_against_dense_algebra(name, noise_std, moves):
    agent = sb.Agent(DECISION[name], dim=2, noise_std=noise_std)
    dense = Dense(name, 2, noise_std)
    waiting = []
    for move, number, more in moves:
        if move == "decide":
            rng = np.random.default_rng(more)
            features, mask = rng.normal(size=(number, 2)), rng.random(number) < 0.8
            mask[rng.integers(number)] = True
            decision = agent.decide(features, mask)
            bounds = np.where(mask, dense.bounds(features), -np.inf)
            assert bounds[decision.arm] >= bounds.max() - 1e-9 * max(abs(bounds.max()), 1.0)
            waiting.append(decision)
        elif move == "learn" and waiting:
            decision = waiting.pop(number % len(waiting))
            agent.learn(decision, more)
            dense.learn(decision.features, more)
        elif move == "forget" and waiting:
            waiting.pop(number % len(waiting))
        elif move == "reload":
            agent = pickle.loads(pickle.dumps(agent))
        else:
            before = snapshot(agent)
            if move == "bad reward" and waiting:
                with pytest.raises(ValueError, match="reward must be"):
                    agent.learn(waiting[number % len(waiting)], more)
            else:
                asked, message = BAD_DECISIONS[number % len(BAD_DECISIONS)]
                with pytest.raises(ValueError, match=message):
                    agent.decide(**asked)
            assert snapshot(agent) == before
        assert np.allclose(agent.theta, np.linalg.solve(dense.gram, dense.sums), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", CERTAIN)
def test_certain_policies_say_so(name):
    rng = np.random.default_rng(19)
    agent = make_agent(name, rng)
    for decision in play(agent, name, rng, 40):
        assert decision.probability == 1.0
        assert decision.probabilities.sum() == 1.0


def test_a_click_is_a_reward():
    agent, twin = (make_agent("RandUCB", None, dim=2) for _ in range(2))
    for click in (True, np.False_, np.True_):
        agent.learn(agent.decide(FEATURES), click)
        twin.learn(twin.decide(FEATURES), float(click))
    assert np.array_equal(agent.theta, twin.theta)


def test_decisions_are_told_apart_and_not_changed():
    agent = make_agent("Greedy", None, dim=2)
    first, second = agent.decide(FEATURES), agent.decide(FEATURES)
    assert first.arm == second.arm
    assert first != second
    opened = [first, second]
    opened.remove(second)
    assert opened == [first]
    assert len({first, second}) == 2
    for array in (first.features, first.probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9.0


def test_a_context_is_a_plain_number():
    agent = make_agent("Solid", np.random.default_rng(0))
    assert type(agent.decide(context=np.int64(1)).context) is int


@pytest.mark.parametrize(
    ("decisions", "rewards", "message"),
    [
        ("one", [1.0], "decisions must be a list of decisions, got one; use learn"),
        ("many", 1.0, "rewards must be a list, got 1.0"),
        ("many", [1.0, float("nan")], "decision 1 of 2: reward must be finite"),
    ],
)
def test_many_rewards_that_will_not_do(decisions, rewards, message):
    agent = make_agent("Greedy", None, dim=2)
    given = [agent.decide(FEATURES) for _ in range(2)]
    with pytest.raises(ValueError, match=message):
        agent.learn_many(given[0] if decisions == "one" else given, rewards)
    assert agent._compiled.state.regression.estimator.rewards == 0


def test_masked_masks_and_words_for_switches_are_refused():
    agent = make_agent("Greedy", None, dim=2)
    with pytest.raises(ValueError, match=r"available must be .* got masked values"):
        agent.decide(FEATURES, available=np.ma.masked_array([True] * len(FEATURES)))
    with pytest.raises(ValueError, match="probabilities must be True or False, got 'no'"):
        sb.Agent(sb.LinTS(), dim=2, noise_std=1.0, probabilities="no")


@pytest.mark.parametrize("wrong", [{"horizon": 10**30}, {"dim": 10**9}, {"dim": 10**30}, {"seed": 10**400}])
def test_numbers_that_are_too_large_are_refused(wrong):
    with pytest.raises(ValueError, match="must be an integer from"):
        sb.Agent(sb.Greedy(), **({"dim": 2, "noise_std": 1.0} | wrong))
