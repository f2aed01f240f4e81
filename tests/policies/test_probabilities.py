"""The probabilities that a policy gives are those of the arms it draws.

Draws: 50 random states of every policy, and as many draws of the arm from each, the state put back before every one,
but for the random numbers. A cell is the count of one arm in one state. It is an alarm if its binomial tail, on
either side, is below that of 4 standard errors of a normal variable (3.2e-5). Tails of small counts are exact, so a
cell is a false alarm with probability at most 6.4e-5. The eleven comparisons have some 3400 cells of probabilities
other than 0 and 1, which makes 0.22 false alarms in expectation; seeds are fixed, and there are none.

Draws per state: 10^5 for RandUCB, epsilon-greedy, LinTS and FeelGoodTS of two arms, SquareCB, FALCON, AOIDS and SOLID;
10^4 for LinMED; 5000 where models vote, each of which draws 64 models, but with the variance given those models; 1000
where an arm has probability 1.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

import solid_bandits as sb
from agents import ADDED, CERTAIN, DECISION, ONE_CONTEXT, TABLE, make_agent, offer
from solid_bandits.core.randomness import normal, uniform
from solid_bandits.policies.randucb import Width, share_envelope
from solid_bandits.policies.solid.drawing import DRAWINGS, draw, draw_probabilities
from solid_bandits.policies.solid.state import SolidState
from solid_bandits.policies.state import arrays_of

pytestmark = pytest.mark.filterwarnings(
    "ignore:features are of very different spread"
)  # random tables may be
STATES = 50
DRAWS = 100_000
FEWER = 1000
TAIL = norm.sf(4)
POSITIVE = ("LinMED", "SquareCB", "FALCON", "EpsilonGreedy")
"""Policies under which every arm that may be pulled has a positive probability."""


class Bench:
    """An agent whose state, all but its random numbers, lies in one array: it can be put back at once."""

    def __init__(self, agent):
        self.agent = agent
        size = sum(array.size for array in carried(agent._compiled.state))
        self.words = np.zeros(size, dtype=np.uint64)
        self.left = self.words
        agent._compiled = agent._compiled._replace(state=self.laid_out(agent._compiled.state))
        agent._hand_over()
        assert not self.left.size

    def laid_out(self, state):
        parts = {}
        for name, part in state._asdict().items():
            if isinstance(part, tuple) and name not in ("work", "params"):
                parts[name] = self.laid_out(part)
            elif isinstance(part, np.ndarray) and name != "rng":
                flat, self.left = self.left[: part.size].view(part.dtype), self.left[part.size :]
                parts[name] = flat.reshape(part.shape)
                parts[name][...] = part
        return state._replace(**parts)

    def draws(self, place, arms, mask, count):
        """How often each arm comes, and its probability."""
        agent, words = self.agent, self.words
        decide, where = agent._decide, (agent._kind, agent._address)
        saved = words.copy()
        kept = np.zeros(len(arms) + arms.shape[1])
        out = kept[: len(arms)]
        decide(*where, place, arms, mask, kept)
        probabilities = out.copy()
        known = not np.isnan(out).any()
        if known and out.max() == 1.0:
            count = FEWER
        counts = [0] * len(arms)
        for _ in range(count):
            words[:] = saved
            counts[decide(*where, place, arms, mask, kept)[0]] += 1
        words[:] = saved
        if known:
            assert np.array_equal(out, probabilities)  # they say nothing of what is drawn
        return np.array(counts), probabilities if known else None


def carried(state):
    return [array for array in arrays_of(state) if array.dtype != np.uint64]


def alarms(counts, probabilities):
    """Cells beyond 4 standard errors, and how many there are that could be."""
    chances = np.clip(probabilities, 0.0, 1.0)
    tails = np.minimum(binom.cdf(counts, counts.sum(), chances), binom.sf(counts - 1, counts.sum(), chances))
    return int((tails < TAIL).sum()), int(((chances > 0) & (chances < 1)).sum())


def random_agent(name, rng, policy=None):
    """An agent in a random state, and what it is asked next: its place, arms and mask."""
    dim = int(rng.integers(1 if name in DECISION else 2, 7))
    noise_std = float(rng.uniform(0.2, 2.0))
    seed = int(rng.integers(10**6))
    if name in TABLE:
        table = rng.normal(size=(1 if name in ONE_CONTEXT else rng.integers(1, 4), rng.integers(2, 9), dim))
        agent = sb.Agent(TABLE[name], contexts=table, noise_std=noise_std, theta_bound=2.0, seed=seed)
        for _ in range(int(rng.integers(0, 200))):
            decision = agent.decide(context=int(rng.integers(len(table))))
            if rng.random() < 0.9:
                agent.learn(decision, noise_std * rng.normal())
        place = int(rng.integers(len(table)))
        return agent, place, agent._table.features[place], np.ones(table.shape[1], dtype=bool)
    if name == "RandUCB":
        policy = sb.RandUCB(
            temperature=rng.uniform(0.2, 3.0), growth=rng.uniform(0, 1), ridge=rng.uniform(0.1, 1)
        )
    agent = sb.Agent(policy or DECISION[name], dim=dim, noise_std=noise_std, seed=seed)
    for _ in range(int(rng.integers(0, 60))):
        decision = agent.decide(**random_offer(rng, dim))
        if rng.random() < 0.9:
            agent.learn(decision, noise_std * rng.normal())
    return agent, 0, *random_offer(rng, dim).values()


def random_offer(rng, dim):
    n_arms = int(rng.integers(2, 41))
    mask = rng.random(n_arms) < rng.random()
    mask[rng.integers(n_arms)] = True
    return {"features": rng.normal(size=(n_arms, dim)), "available": mask}


def at_most_two(rng, arms, mask):
    offered = rng.choice(len(arms), size=2, replace=False)
    pair = np.zeros(len(arms), dtype=bool)
    pair[offered] = True
    return pair


@pytest.mark.parametrize(
    ("name", "states"),
    # Most states of RandUCB and of AOIDS leave one arm, so there are more of them.
    [
        ("RandUCB", 3 * STATES),
        ("LinTS", STATES),
        ("FeelGoodTS", STATES),
        ("LinMED", STATES),
        ("SquareCB", STATES),
        ("FALCON", STATES),
        ("EpsilonGreedy", STATES),
        ("AOIDS", 2 * STATES),
        ("Solid", STATES),
        *((name, STATES) for name in ADDED if name not in CERTAIN),
    ],
)
def test_probabilities_are_those_of_a_hundred_thousand_draws(name, states):
    rng = np.random.default_rng(1)
    beyond = cells = random = 0
    for _ in range(states):
        agent, place, arms, mask = random_agent(name, rng)
        if name in ("LinTS", "FeelGoodTS"):
            mask = at_most_two(rng, arms, mask)
        count = DRAWS // 10 if name == "LinMED" else DRAWS
        counts, probabilities = Bench(agent).draws(place, arms, mask, count)
        if name in POSITIVE:
            assert (probabilities[mask] > 0).all()
        assert probabilities.sum() == pytest.approx(1, abs=1e-12)
        assert (probabilities >= 0).all()
        assert not probabilities[~mask].any()
        one, compared = alarms(counts, probabilities)
        beyond, cells, random = beyond + one, cells + compared, random + (probabilities.max() < 1)
    print(f"{name}: {cells} cells, {beyond} beyond 4 standard errors, {random} of {states} states random")
    assert beyond == 0
    assert random >= 20  # enough states with something to compare


@pytest.mark.parametrize("name", CERTAIN)
def test_certain_arms(name):
    rng = np.random.default_rng(2)
    for _ in range(STATES):
        agent, place, arms, mask = random_agent(name, rng)
        assert "rng" not in agent._compiled.state._fields  # nothing to draw from
        counts, probabilities = Bench(agent).draws(place, arms, mask, FEWER)
        assert (counts > 0).sum() == 1
        assert probabilities.tolist() == (counts > 0).astype(float).tolist()
        asked = {"context": place} if name in TABLE else {"features": arms, "available": mask}
        decision = agent.decide(**asked)
        assert counts[decision.arm] == FEWER
        assert mask[decision.arm]
        assert decision.probability == 1.0
        assert decision.probabilities.tolist() == [float(arm == decision.arm) for arm in range(len(arms))]


def votes_of(agent, arms, mask, draws):
    """Arms drawn and the votes they were drawn from, step after step from one state."""
    bench = Bench(agent)
    saved = bench.words.copy()
    votes, drawn = np.zeros((draws, len(arms))), np.zeros(draws, dtype=int)
    kept = np.zeros(len(arms) + arms.shape[1])
    for i in range(draws):
        bench.words[:] = saved
        drawn[i], _ = agent._decide(agent._kind, agent._address, 0, arms, mask, kept)
        votes[i] = kept[: len(arms)]
    bench.words[:] = saved
    return votes, np.eye(len(arms))[drawn]


def test_votes_are_the_probabilities_given_the_models():
    """Given the models, 1{arm = a} has mean p_a, and 1{arm = a} / p_a mean 1 where p_a > 0: what weighting needs."""
    rng = np.random.default_rng(3)
    draws = 5000
    beyond = cells = 0
    for _ in range(STATES):
        agent, _, arms, mask = random_agent("LinTS", rng, policy=sb.LinTS().with_probabilities())
        if mask.sum() < 3:
            mask = np.ones(len(arms), dtype=bool)
        votes, chosen = votes_of(agent, arms, mask, draws)
        assert np.allclose(votes.sum(axis=1), 1, rtol=0, atol=1e-12)
        assert not votes[:, ~mask].any()
        assert (votes[chosen == 1] > 0).all()
        if mask.sum() < 3:
            continue
        # Arms that come too seldom for a normal tail are taken together.
        rare = votes.sum(axis=0) < 50
        cell_votes = np.column_stack([votes[:, ~rare], votes[:, rare].sum(axis=1)])
        cell_chosen = np.column_stack([chosen[:, ~rare], chosen[:, rare].sum(axis=1)])
        variance = (cell_votes * (1 - cell_votes)).sum(axis=0)
        usable = variance > 25
        z = (cell_chosen - cell_votes).sum(axis=0)[usable] / np.sqrt(variance[usable])
        # The same of the weighted arms.
        seen = cell_votes > 0
        safe = np.where(seen, cell_votes, 1.0)
        spread = (seen * (1 / safe - 1)).sum(axis=0)
        weighted = (cell_chosen / safe - seen).sum(axis=0)[usable] / np.sqrt(spread[usable])
        beyond += int((np.abs(z) > 4).sum() + (np.abs(weighted) > 4).sum())
        cells += 2 * int(usable.sum())
    print(f"votes: {cells} cells, {beyond} beyond 4 standard errors")
    assert beyond == 0
    assert cells > 300


def test_votes_do_not_change_the_distribution_of_the_arm():
    rng = np.random.default_rng(4)
    beyond = cells = 0
    for _ in range(10):
        seed = int(rng.integers(10**6))
        plain, _, arms, _ = random_agent("LinTS", np.random.default_rng(seed))
        voting, _, _, _ = random_agent(
            "LinTS", np.random.default_rng(seed), policy=sb.LinTS().with_probabilities()
        )
        # Their decisions differ, so their data would: give both the same.
        for agent in (plain, voting):
            for array in carried(agent._compiled.state):
                array[...] = 0
            agent._compiled.state.regression.estimator.triangle[...] = np.eye(arms.shape[1])
            agent._compiled.state.regression.estimator.weights[...] = 2.0
            agent._compiled.state.regression.estimator.targets[...] = np.random.default_rng(seed).normal(
                size=arms.shape[1]
            )
        mask = np.ones(len(arms), dtype=bool)
        counts, probabilities = Bench(plain).draws(0, arms, mask, DRAWS)
        if len(arms) > 2:
            assert probabilities is None
        votes, _ = votes_of(voting, arms, mask, 5000)
        means, error = votes.mean(axis=0), votes.var(axis=0) / len(votes)
        shares = counts / counts.sum()
        enough = counts >= 50
        z = (shares - means)[enough] / np.sqrt(error + shares * (1 - shares) / counts.sum())[enough]
        beyond, cells = beyond + int((np.abs(z) > 4).sum()), cells + int(enough.sum())
    print(f"votes against single models: {cells} cells, {beyond} beyond 4 standard errors")
    assert beyond == 0


def test_votes_by_hand():
    """The votes are those of the models that are drawn next, and the arm is that of the model drawn first."""
    rng = np.random.default_rng(5)
    agent = sb.Agent(sb.LinTS(votes=16), dim=3, noise_std=0.7, seed=11)
    gram, sums = np.eye(3), np.zeros(3)
    for _ in range(20):
        arms = rng.normal(size=(6, 3))
        source = agent._compiled.state.rng.copy()
        counted = int(uniform(source) * 16)
        upper = np.linalg.cholesky(gram).T
        votes = []
        for _ in range(16):
            # V = RᵀR with R = D^½ U, so θ' = θ-hat + σ R^-1 g.
            drawn = np.array([normal(source) for _ in range(3)])
            votes.append(
                int(np.argmax(arms @ (np.linalg.solve(gram, sums) + 0.7 * np.linalg.solve(upper, drawn))))
            )
        decision = agent.decide(arms)
        assert decision.arm == votes[counted]
        assert np.allclose(decision.probabilities, np.bincount(votes, minlength=6) / 16)
        agent.learn(decision, reward := rng.normal())
        gram += np.outer(arms[decision.arm], arms[decision.arm])
        sums += reward * arms[decision.arm]


def test_a_single_vote():
    rng = np.random.default_rng(5)
    agent = sb.Agent(sb.LinTS(votes=1), dim=3, noise_std=1.0)
    for _ in range(20):
        assert agent.decide(rng.normal(size=(6, 3))).probability == 1.0


def test_lints_knows_its_probabilities_only_where_that_is_cheap():
    agent = sb.Agent(sb.LinTS(), dim=2, noise_std=1.0)
    arms = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    three = agent.decide(arms)
    assert (three.probability, three.probabilities) == (None, None)
    assert agent.decide(arms, available=[True, False, True]).probabilities is not None
    assert agent.decide(arms, available=[False, False, True]).probabilities.tolist() == [0, 0, 1]
    asked = sb.Agent(sb.LinTS(), dim=2, noise_std=1.0, probabilities=True).decide(arms)
    assert asked.probabilities.sum() == pytest.approx(1)
    assert asked.probability == asked.probabilities[asked.arm] > 0


@pytest.mark.parametrize("scale", ["posterior", "paper"])
def test_two_arms_of_lints_in_closed_form(scale):
    rng = np.random.default_rng(6)
    agent = sb.Agent(sb.LinTS(scale=scale, multiple=1.5, ridge=0.3), dim=4, noise_std=0.6)
    gram, sums = 0.3 * np.eye(4), np.zeros(4)
    for step in range(1, 60):
        arms = rng.normal(size=(2, 4))
        decision = agent.decide(arms)
        difference = arms[0] - arms[1]
        spread = 1.5 * 0.6 * (math.sqrt(math.log(step)) if scale == "paper" else 1.0)
        gap = difference @ np.linalg.solve(gram, sums)
        deviation = spread * math.sqrt(difference @ np.linalg.solve(gram, difference))
        first = norm.cdf(gap / deviation) if deviation > 0 else 1.0
        assert decision.probabilities == pytest.approx([first, 1 - first], abs=1e-12)
        agent.learn(decision, reward := rng.normal())
        gram += np.outer(arms[decision.arm], arms[decision.arm])
        sums += reward * arms[decision.arm]
    twins = agent.decide(np.ones((2, 4)))
    assert (twins.arm, twins.probabilities.tolist()) == (0, [1, 0])  # the first of two that tie


def envelope(means, norms, available, survival, least):
    """P(argmax_a mean + W norm = a) for P(W > w) = survival(w), W >= least: cell by cell between all crossings."""
    lines = [int(arm) for arm in np.flatnonzero(available)]
    crossings = {least}
    for a in lines:
        for b in lines:
            if norms[a] > norms[b]:
                crossings.add(max((means[b] - means[a]) / (norms[a] - norms[b]), least))
    edges = sorted(crossings)
    shares = np.zeros(len(means))
    for low, high in zip(edges, [*edges[1:], math.inf], strict=True):
        middle = low + 1.0 if high == math.inf else (low + high) / 2
        best = max(lines, key=lambda arm: (means[arm] + middle * norms[arm], -arm))
        shares[best] += survival(low) - (survival(high) if high < math.inf else 0.0)
    return shares


def survival_of(noise_std, growth, temperature, step):
    def survival(width):
        beyond = (width / noise_std) ** 2 - growth * math.log(step)
        return math.exp(-max(beyond, 0.0) / (2 * temperature))

    return survival


def test_randucb_shares_the_envelope():
    """Against a slow reference in Python from dense algebra: 200 decisions, copies of arms among them."""
    rng = np.random.default_rng(7)
    policy = sb.RandUCB(temperature=0.8, growth=0.3, ridge=0.4)
    agent = sb.Agent(policy, dim=3, noise_std=0.9)
    gram, sums = None, np.zeros(3)
    for step in range(1, 201):
        n_arms = int(rng.integers(2, 8))
        arms = rng.normal(size=(n_arms, 3))
        if step % 3 == 0:
            arms[-1] = arms[0]  # a copy: the first of the two is pulled
        mask = rng.random(n_arms) < 0.7
        mask[rng.integers(n_arms)] = True
        if gram is None:
            gram = 0.4 * (arms[mask] ** 2).sum(axis=1).max() * np.eye(3)
        means = arms @ np.linalg.solve(gram, sums)
        norms = np.sqrt((arms * np.linalg.solve(gram, arms.T).T).sum(axis=1))
        if step % 3 == 0:
            means[-1], norms[-1] = means[0], norms[0]
        least = 0.9 * math.sqrt(0.3 * math.log(step))
        expected = envelope(means, norms, mask, survival_of(0.9, 0.3, 0.8, step), least)
        decision = agent.decide(arms, available=mask)
        assert decision.probabilities == pytest.approx(expected, abs=1e-9)
        agent.learn(decision, reward := rng.normal())
        gram += np.outer(arms[decision.arm], arms[decision.arm])
        sums += reward * arms[decision.arm]


def shares_of(means, norms, temperature=1.0, growth=0.0, step=5, available=None):
    out = np.zeros(len(means))
    mask = np.ones(len(means), dtype=bool) if available is None else np.array(available)
    width = Width(1.0, 0.0, growth * math.log(step), temperature)
    share_envelope(width, *map(np.array, (means, norms)), mask, out)
    return out.tolist()


def test_envelope_with_ties():
    half = math.exp(-0.5)  # P(W > 1)
    assert shares_of([1.0, 0.0], [1.0, 2.0]) == pytest.approx([1 - half, half])
    # All cross at W = 1: the steepest takes over, the ones between have nothing.
    assert shares_of([2.0, 1.0, 0.0], [1.0, 2.0, 3.0]) == pytest.approx([1 - half, 0, half])
    # The same line several times: the first.
    assert shares_of([1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 2.0, 2.0]) == pytest.approx([1 - half, 0, half, 0])
    assert shares_of([1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 2.0, 2.0], available=[0, 1, 0, 1]) == pytest.approx(
        [0, 1 - half, 0, half]
    )
    # Parallel: the higher one.
    assert shares_of([1.0, 2.0], [1.0, 1.0]) == [0, 1]
    # Equal at W = 0, which has no mass: the steeper one.
    assert shares_of([1.0, 1.0], [1.0, 2.0]) == [0, 1]
    assert shares_of([0.0], [0.0]) == [1]
    # A crossing beyond every width that comes; one before the least width.
    assert shares_of([1e9, 0.0], [1.0, 2.0]) == [1, 0]
    assert shares_of([1.0, 0.0], [1.0, 2.0], growth=100.0) == [0, 1]


@pytest.mark.parametrize("growth", [0.0, 0.5])
def test_without_temperature_randucb_is_certain(growth):
    """It is LinUCB of a fixed width; with growth 0 too, greedy."""
    rng = np.random.default_rng(8)
    agent = sb.Agent(sb.RandUCB(temperature=0.0, growth=growth), dim=3, noise_std=1.0)
    agent.learn(agent.decide([[1.0, 0.0, 0.0]]), 1.0)
    for _ in range(100):
        decision = agent.decide(rng.normal(size=(6, 3)))
        assert decision.probability == 1.0
        agent.learn(decision, rng.normal())


def test_without_temperature_the_first_of_the_arms_that_tie_is_certain():
    agent = sb.Agent(sb.RandUCB(temperature=0.0), dim=2, noise_std=1.0)
    decision = agent.decide([[1.0, 0.0], [0.0, 2.0]])
    assert (decision.arm, decision.probabilities.tolist()) == (0, [1, 0])


def test_copies_of_arms_have_what_is_drawn():
    """The first is pulled, and has it all."""
    rng = np.random.default_rng(9)
    for n_arms in (4, 12, 20):
        agent = sb.Agent(sb.RandUCB(), dim=5, noise_std=1.0)
        for _ in range(30):
            agent.learn(agent.decide(rng.normal(size=(8, 5))), rng.normal())
        arms = rng.normal(size=(n_arms, 5))
        arms[n_arms // 2 :] = arms[: n_arms // 2]
        counts, probabilities = Bench(agent).draws(0, arms, np.ones(n_arms, dtype=bool), 20_000)
        assert alarms(counts, probabilities)[0] == 0
        assert not probabilities[n_arms // 2 :].any()


@pytest.mark.parametrize("n_arms", [17, 33, 65, 130])
def test_copies_among_many_arms_have_what_is_drawn(n_arms):
    """What an arm and its copy share must not hang on how their sums are rounded."""
    rng = np.random.default_rng(14)
    for _ in range(40):
        dim = int(rng.integers(2, 9))
        agent = sb.Agent(sb.RandUCB(), dim=dim, noise_std=1.0)
        for _ in range(40):
            agent.learn(agent.decide(rng.normal(size=(6, dim))), rng.normal())
        arms = rng.normal(size=(n_arms, dim))
        arms[-1] = arms[agent.decide(arms).arm]
        counts, probabilities = Bench(agent).draws(0, arms, np.ones(n_arms, dtype=bool), 2000)
        assert alarms(counts, probabilities)[0] == 0


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_epsilon_greedy_formula(decay):
    rng = np.random.default_rng(10)
    agent = sb.Agent(sb.EpsilonGreedy(epsilon=0.4, decay=decay), dim=2, noise_std=1.0)
    for step in range(1, 50):
        arms, mask = rng.normal(size=(5, 2)), np.array([True, step % 2 == 0, True, False, True])
        greedy = int(np.argmax(np.where(mask, arms @ agent.theta, -np.inf)))
        decision = agent.decide(arms, available=mask)
        share = 0.4 * step**-decay
        expected = share * mask / mask.sum() + (1 - share) * (np.arange(5) == greedy)
        assert decision.probabilities == pytest.approx(expected, abs=1e-12)
        assert decision.explored or decision.arm == greedy
        agent.learn(decision, rng.normal())


def test_solid_draws_from_omega_when_it_explores_and_is_certain_when_it_exploits():
    rng = np.random.default_rng(11)
    agent = make_agent("Solid", rng)
    theta = np.array([1.0, -1.0, 0.5])
    explored = 0
    for _ in range(600):
        asked = offer("Solid", rng)
        state = agent._compiled.state
        omega = state.omega[asked["context"]].copy()
        best = int(np.argmax(agent._table.features[asked["context"]] @ agent.theta))
        decision = agent.decide(**asked)
        expected = omega if decision.explored else np.arange(len(omega)) == best
        assert np.array_equal(decision.probabilities, expected)
        explored += decision.explored
        agent.learn(decision, decision.features @ theta + 0.5 * rng.normal())
    assert 20 < explored < 580  # both were seen


@pytest.mark.parametrize("name", ["direct", "cumulative"])
def test_tracking_is_certain(name):
    rng = np.random.default_rng(12)
    agent = make_agent("Solid", rng)
    state = agent._compiled.state
    assert isinstance(state, SolidState)
    drawing = DRAWINGS[name]
    totals = np.zeros((3, 4))
    for _ in range(200):
        context = int(rng.integers(3))
        state.omega[context] = rng.dirichlet(np.ones(4))
        totals[context] += state.omega[context]
        pulls = state.pulls[context].copy()
        aims = {"direct": (pulls.sum() + 1) * state.omega[context], "cumulative": totals[context]}
        out = np.full(4, np.nan)
        draw_probabilities(drawing, state, context, out)
        arm = draw(drawing, state, context)
        assert arm == np.argmax(aims[name] - pulls)
        assert out.tolist() == [float(k == arm) for k in range(4)]
