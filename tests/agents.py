"""One agent of every policy, for tests that go through all of them."""

import numpy as np

import solid_bandits as sb
from variants import complete, draws

ONE_CONTEXT = {
    "OSSB": sb.rivals.OSSB(),
    "SPL": sb.rivals.SPL(),
    "EndOfOptimism": sb.rivals.EndOfOptimism(),
    "E4": sb.rivals.E4(),
    "UCB1": sb.rivals.UCB1(),
}
SEVERAL_CONTEXTS = {"Solid": sb.Solid(), "AOIDS": sb.rivals.AOIDS(), "OAM": sb.rivals.OAM()}
DECISION = {
    "RandUCB": sb.RandUCB(),
    "RandUCB, fixed ridge": sb.RandUCB(ridge=0.2),
    "VIDS": sb.VIDS(samples=16, memory=12),
    "StreamingSolid": sb.rivals.StreamingSolid(),
    "LinTS": sb.LinTS(),
    "LinTS with votes": sb.LinTS(votes=8),
    "LinTS, evidence": sb.LinTS(ridge="evidence"),
    "EpsilonGreedy": sb.EpsilonGreedy(epsilon=0.3),
    "LinMED": sb.rivals.LinMED(),
    "LinIMED": sb.rivals.LinIMED(),
    "SquareCB": sb.rivals.SquareCB(),
    "FALCON": sb.rivals.FALCON(),
    "FeelGoodTS": sb.rivals.FeelGoodTS(),
    "LinUCB": sb.LinUCB(radius="paper", ridge=1.0),
    "LinUCB, tuned": sb.LinUCB(),
    "Greedy": sb.Greedy(),
}
ADDED = complete(DECISION, SEVERAL_CONTEXTS, ONE_CONTEXT)
"""Names of policies that are not listed above."""
TABLE = ONE_CONTEXT | SEVERAL_CONTEXTS
POLICIES = DECISION | TABLE
CERTAIN = [name for name, policy in POLICIES.items() if not draws(policy)]
"""Those whose arm has probability 1."""


def table_for(name, rng, n_arms=4, dim=3):
    """Random contexts for a policy of this name, as many as it takes."""
    return rng.normal(size=(1 if name in ONE_CONTEXT else 3, n_arms, dim))


def make_agent(name, rng, dim=3, **more):
    """An agent of the policy of this name: with a random table if it plans over one."""
    fixed = {"noise_std": 0.5, "theta_bound": 2.0, "seed": 5}
    if name in TABLE:
        return sb.Agent(TABLE[name], contexts=table_for(name, rng, dim=dim), **(fixed | more))
    return sb.Agent(DECISION[name], dim=dim, **(fixed | more))


def offer(name, rng, dim=3, n_arms=5, n_contexts=3):
    """Random arguments for `decide`: a context, or features with a mask."""
    if name in TABLE:
        return {"context": 0 if name in ONE_CONTEXT else int(rng.integers(n_contexts))}
    mask = rng.random(n_arms) < 0.7
    mask[rng.integers(n_arms)] = True
    return {"features": rng.normal(size=(n_arms, dim)), "available": mask}


def same(one, other):
    """Whether two decisions are the same, bit for bit."""
    known = (one.probabilities is None) == (other.probabilities is None)
    return (
        known
        and (one.arm, one.probability, one.explored, one.context)
        == (other.arm, other.probability, other.explored, other.context)
        and (one.probabilities is None or np.array_equal(one.probabilities, other.probabilities))
        and np.array_equal(one.features, other.features)
    )


def play(agent, name, rng, steps, dim=3, rewarded=0.8):
    """Decide and learn from random rewards; some never come."""
    decisions = []
    for _ in range(steps):
        decision = agent.decide(**offer(name, rng, dim))
        if rng.random() < rewarded:
            agent.learn(decision, rng.normal())
        decisions.append(decision)
    return decisions
