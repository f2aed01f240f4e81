"""Many decisions at once: each as `decide` would make it under the same evidence, and their rewards."""

import copy

import numpy as np
import pytest

import solid_bandits as sb
from agents import DECISION, make_agent, play
from solid_bandits.core.agent_kernels import REFUSED, UNCHECKED
from solid_bandits.core.offer import ALL
from solid_bandits.policies.growth import with_column
from solid_bandits.policies.state import state_to_plain

MOST = {
    "RandUCB": sb.RandUCB(),
    "fading": sb.RandUCB(half_life=7.0),
    "LinTS": sb.LinTS(),
    "LinUCB": sb.LinUCB(),
}


def agent_of(policy, floor=0.0, seed=3):
    """An agent that has decided and learnt."""
    rng = np.random.default_rng(seed)
    agent = sb.Agent(policy, dim=3, noise_std=0.5, probabilities=True, floor=floor, seed=seed)
    for _ in range(30):
        agent.learn(agent.decide(rng.normal(size=(5, 3))), rng.normal())
    return agent


def one_by_one(agent, offers, masks):
    """The slow reference: copies of the agent decide an offer each; what they drew is handed on and nothing else."""
    found = []
    for offer, mask in zip(offers, masks, strict=True):
        twin = copy.copy(agent)
        found.append(twin.decide(offer, mask))
        if hasattr(agent._compiled.state, "rng"):
            agent._compiled.state.rng[:] = twin._compiled.state.rng
        agent._floor_rng[:] = twin._floor_rng
    return found


def offers_of(rng, ragged):
    counts = rng.integers(1, 30, size=12) if ragged else np.full(12, 6)
    offers = [rng.normal(size=(count, 3)) for count in counts]
    offers[4][-1] = offers[4][0]  # a tie
    masks = [rng.random(count) < 0.7 for count in counts]
    for mask in masks:
        mask[rng.integers(len(mask))] = True
    return offers, masks


@pytest.mark.parametrize("floor", [0.0, 0.3])
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("name", MOST)
def test_each_decision_is_that_of_decide_under_the_same_evidence(name, ragged, floor):
    rng = np.random.default_rng(0)
    agent, twin = agent_of(MOST[name], floor), agent_of(MOST[name], floor)
    offers, masks = offers_of(rng, ragged)
    expected = one_by_one(twin, offers, masks)
    batch = agent.decide_many(offers if ragged else np.array(offers), masks if ragged else np.array(masks))
    assert len(batch) == 12
    assert batch.counts.tolist() == [len(offer) for offer in offers]
    for row, (one, other) in enumerate(zip(batch, expected, strict=True)):
        assert (one.place, one.explored) == (other.place, other.explored)
        assert np.allclose(one.probabilities, other.probabilities, rtol=0, atol=1e-12)
        assert np.array_equal(one.features, other.features)
        assert one.probability == batch.probability[row] == batch.probabilities[row, one.place]
        assert batch[row].place == batch.places[row]
        assert np.array_equal(batch.features[row], one.features)
        assert batch.explored[row] == one.explored
        assert not batch.probabilities[row, len(offers[row]) :].any()
    for array in (batch.places, batch.features, batch[0].features, batch[0].probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("name", MOST)
def test_afterwards_as_many_decisions_were_made(name):
    """Number of decisions and faded evidence are those of as many single decisions."""
    rng = np.random.default_rng(1)
    agent, twin = agent_of(MOST[name]), agent_of(MOST[name])
    offers, rewards = rng.normal(size=(9, 4, 3)), rng.normal(size=9)
    batch = agent.decide_many(offers)
    for offer in offers:
        last = twin.decide(offer)
    assert agent._compiled.state.regression.step == twin._compiled.state.regression.step
    assert batch[8].number == last.number
    assert np.allclose(agent.theta, twin.theta, rtol=1e-12)
    # Rewards weigh what their decisions weigh by then, whichever way they come.
    agent.decide(offers[0])
    twin = copy.copy(agent)
    agent.learn_many(batch, rewards)
    for decision, reward in zip(batch, rewards, strict=True):
        twin.learn(decision, reward)
    assert state_to_plain(agent._compiled.state) == state_to_plain(twin._compiled.state)


@pytest.mark.parametrize("name", ["Greedy", "EpsilonGreedy", "LinTS with votes"])
def test_other_policies_decide_many(name):
    rng = np.random.default_rng(2)
    agent = make_agent(name, rng)
    play(agent, name, rng, 10)
    twin = copy.copy(agent)
    offers = rng.normal(size=(7, 4, 3))
    expected = one_by_one(twin, offers, [None] * 7)
    batch = agent.decide_many(offers)
    assert batch.places.tolist() == [one.place for one in expected]
    assert np.allclose(batch.probabilities, [one.probabilities for one in expected], rtol=0, atol=1e-12)


def test_a_policy_that_does_not_know_its_probabilities():
    assert "LinTS" in DECISION
    agent = sb.Agent(sb.LinTS(), dim=3, noise_std=0.5)
    batch = agent.decide_many(np.random.default_rng(0).normal(size=(4, 5, 3)))
    assert batch.probabilities is None
    assert batch.probability is None
    assert batch[0].probabilities is None


class InTurn:
    """A plain policy: arms in turn, by a counter of its own."""

    def __init__(self):
        self.calls, self.sums = 0, 0.0

    def act(self, arms, available):
        self.calls += 1
        return self.calls % len(arms)

    def update(self, features, reward):
        self.sums += reward * features[0]


def test_a_plain_policy_is_asked_one_after_the_other():
    agent = sb.Agent(InTurn(), dim=1)
    offers = np.arange(12.0).reshape(4, 3, 1)
    batch = agent.decide_many(offers)
    assert batch.places.tolist() == [1, 2, 0, 1]
    assert batch.features.ravel().tolist() == [1.0, 5.0, 6.0, 10.0]
    agent.learn_many(batch, [1, 2, 3, 4])
    assert agent._compiled.player.sums == 1 + 10 + 18 + 40


ONES = np.ones((4, 3, 2))
BAD = [
    (
        (np.ones((3, 2)),),
        r"features must be an array of numbers of shape \(offers, arms, dim\), got shape \(3, 2\)",
    ),
    ((np.ones((4, 3, 5)),), r"features must have shape \(offers, arms, 2\), got \(4, 3, 5\)"),
    ((np.ones((0, 3, 2)),), "none of them empty"),
    (([],), "features must have at least one offer"),
    (
        ([np.ones((3, 2)), np.ones((3, 5))],),
        r"offer 1 of 2: features must have shape \(arms, 2\), got \(3, 5\)",
    ),
    ((np.full((4, 3, 2), np.nan),), "features must be finite everywhere"),
    ((np.full((4, 3, 2), 1e31),), "features must be at most 1e.30"),
    ((None,), "features must be"),
    ((ONES, np.ones((4, 2), dtype=bool)), "available must be truth values, one per offer and arm"),
    ((ONES, np.ones((4, 3), dtype=int)), "available must be truth values, one per offer and arm"),
    (
        (ONES, np.zeros((4, 3), dtype=bool)),
        "available must have at least one arm in each offer, got none in offer 0",
    ),
    ((list(ONES), [None, [False] * 3, None, None]), "offer 1 of 4: available must have at least one arm"),
    ((list(ONES), [None]), "available must have 4 masks, one per offer, got 1"),
]


@pytest.mark.parametrize(("asked", "message"), BAD)
def test_bad_offers_are_refused_and_change_nothing(asked, message):
    agent = sb.Agent(sb.RandUCB(), dim=2)
    before = state_to_plain(agent._compiled.state)
    with pytest.raises(ValueError, match=message):
        agent.decide_many(*asked)
    assert state_to_plain(agent._compiled.state) == before


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ([1.0], "rewards must have 4 entries, one per decision, got 1"),
        (1.0, "rewards must be a list, got 1.0"),
        ([1.0, 2.0, np.nan, 1.0], "decision 2 of 4: reward must be finite"),
        (np.array([1.0, 2.0, 1.0, np.inf]), "decision 3 of 4: reward must be finite"),
        (["a", 1, 1, 1], "decision 0 of 4: reward must be a number"),
    ],
)
def test_bad_rewards_are_refused_and_change_nothing(rewards, message):
    agent = sb.Agent(sb.RandUCB(), dim=2)
    batch = agent.decide_many(ONES)
    before = state_to_plain(agent._compiled.state)
    with pytest.raises(ValueError, match=message):
        agent.learn_many(batch, rewards)
    other = sb.Agent(sb.RandUCB(), dim=3)
    with pytest.raises(ValueError, match="decisions must be of an agent with dim 3, got features of 2"):
        other.learn_many(batch, [1.0] * 4)
    assert state_to_plain(agent._compiled.state) == before
    agent.learn_many(batch, [True, 0, np.float32(1.0), np.int64(1)])


def test_table_policies_decide_one_at_a_time():
    agent = sb.Agent(sb.Solid(), contexts=np.ones((2, 3, 2)), noise_std=0.5, theta_bound=1.0)
    with pytest.raises(ValueError, match="Solid plans over the contexts of its table, one at a time"):
        agent.decide_many(np.ones((4, 3, 2)))


def test_what_is_given_need_not_stay():
    agent = sb.Agent(sb.Greedy(), dim=2, noise_std=0.5)
    offers = np.arange(24.0).reshape(4, 3, 2)
    batch = agent.decide_many(offers)
    expected = batch.features.copy()
    offers[:] = 99.0
    assert np.array_equal(batch.features, expected)
    with pytest.raises(IndexError, match="from 0 to 3, got 4"):
        batch[4]
    assert batch[-1].place == batch[3].place


def test_a_batch_that_is_not_of_this_agent_is_refused():
    """Block numbers are looked at as for a single decision, and rows that were put in another's place."""
    batch = sb.Agent(sb.Greedy(), dim=3, noise_std=1.0).decide_many(np.full((2, 3, 3), 133.25))
    agent = sb.Agent(sb.Greedy(), dim=3, noise_std=1.0, blocks=2)
    before = state_to_plain(agent._compiled.state)
    with pytest.raises(ValueError, match=r"must begin with a block number from 0 to 1, got 133"):
        agent.learn_many(batch, [1.0, 0.0])
    batch.features = np.zeros((1, 3))
    with pytest.raises(ValueError, match="must be of an agent with dim 3"):
        agent.learn_many(batch, [1.0, 0.0])
    assert state_to_plain(agent._compiled.state) == before


@pytest.mark.parametrize(
    "policy", [sb.Greedy(), sb.LinUCB(), sb.RandUCB(), sb.LinTS()], ids=lambda one: one.name
)
def test_a_batch_of_an_agent_that_has_grown_while_evidence_fades(policy):
    """The agent whose evidence rests within a batch grows, too: equal offers have equal probabilities."""
    agent = sb.Agent(policy, dim=2, half_life=20.0, grows=True, seed=0, probabilities=True)
    rng = np.random.default_rng(0)
    for _ in range(30):
        agent.learn(agent.decide(rng.normal(size=(2, 2))), rng.normal())
    agent.change(with_column, count=40)
    for _ in range(30):
        agent.learn(agent.decide(rng.normal(size=(2, 42))), rng.normal())
    offer = rng.normal(size=(2, 42))
    expected = copy.deepcopy(agent).decide(offer).probabilities
    if isinstance(policy, sb.LinTS):  # two arms: in closed form
        expected = agent.probabilities(offer)
    for shares in agent.decide_many(np.stack([offer] * 4)).probabilities:
        np.testing.assert_allclose(shares, expected, atol=1e-12)


def test_room_of_a_decision_that_was_made_before_the_agent_grew_is_refused_by_compiled_code():
    agent = sb.Agent(sb.Greedy(), dim=2, noise_std=1.0, grows=True)
    short = np.empty(4)
    agent.change(with_column, count=50)
    found = agent._decide(agent._kind, agent._address, UNCHECKED, np.ones((2, 52)), ALL, short)
    assert found == (0, REFUSED)
