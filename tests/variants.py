"""Every policy in the variants that run other code, and problems that each of them can take."""

import solid_bandits as sb
from solid_bandits.policies.contract import DecisionPolicy

DECISION = {
    "randucb": sb.RandUCB(),
    "randucb wide": sb.RandUCB(temperature=2, growth=1, ridge=3),
    "randucb without draws": sb.RandUCB(temperature=0, growth=1, ridge=0.2),
    "vids": sb.VIDS(samples=16),
    "vids with memory": sb.VIDS(samples=8, memory=17, ridge=0.5),
    "streaming solid": sb.StreamingSolid(),
    "streaming solid, no budget": sb.StreamingSolid(
        budget=None, z0=5, initial_multiplier=20, fading=1, ridge=0.5
    ),
    "linucb": sb.LinUCB(),
    "linucb evidence": sb.LinUCB(ridge="evidence"),
    "linucb theorem": sb.LinUCB(radius="theorem", ridge=2.5),
    "linucb theorem, delta": sb.LinUCB(radius="theorem", delta=0.1, scale=0.3),
    "lints": sb.LinTS(),
    "lints paper": sb.LinTS(scale="paper", multiple=0.7, ridge=0.3),
    "lints votes": sb.LinTS(votes=8),
    "lints evidence": sb.LinTS(ridge="evidence"),
    "epsilon-greedy": sb.EpsilonGreedy(epsilon=0.2),
    "epsilon-greedy evidence": sb.EpsilonGreedy(epsilon=0.2, ridge="evidence"),
    "epsilon-greedy decaying": sb.EpsilonGreedy(epsilon=0.9, decay=0.4, ridge=0.5),
    "greedy": sb.Greedy(ridge=0.7),
    "greedy evidence": sb.Greedy(ridge="evidence"),
}
CONTEXTUAL = {
    "solid": sb.Solid(),
    "solid as printed": sb.Solid(bonus="theorem"),
    "solid random": sb.Solid.paper_random(n_arms=8),
    "solid without bonus": sb.Solid(bonus="none", z0=5, initial_multiplier=20),
    "solid plain bonus, resets": sb.Solid(bonus="plain", initial_multiplier=5, reset_at_phase=True),
    "solid direct": sb.Solid(drawing="direct", schedule="lin-lin"),
    "solid cumulative": sb.Solid(drawing="cumulative", bonus="none", test_contexts="all"),
    "solid oam": sb.Solid(test="oam"),
    "solid theory": sb.Solid.theory(max_multiplier=1000),
    "oam": sb.OAM(),
    "oam eps 0, every 100": sb.OAM(epsilon=0, resolve_every=100, ridge=0.5),
    "ao-ids": sb.AOIDS(),
    "ao-ids sharp": sb.AOIDS(learning_rate=3, ridge=2),
}
ONE_CONTEXT = {
    "ossb": sb.OSSB(),
    "ossb every 5": sb.OSSB(epsilon=0.05, gamma=0, resolve_every=5),
    "spl": sb.SPL(),
    "spl clip": sb.SPL(gap_clip=0.2, ridge=0.7),
    "end of optimism": sb.EndOfOptimism(),
    "end of optimism, impatient": sb.EndOfOptimism(tolerance=0.2, ridge=0.1),
    "ucb1": sb.UCB1(),
    "ucb1 wide": sb.UCB1(scale=2),
}
TABLE = CONTEXTUAL | ONE_CONTEXT
POLICIES = DECISION | TABLE


def draws(policy):
    """Whether two seeds may give two runs."""
    if isinstance(policy, sb.RandUCB):
        return policy.temperature > 0
    if isinstance(policy, sb.Solid):
        return policy.drawing == "sampling"
    return isinstance(policy, sb.LinTS | sb.VIDS | sb.EpsilonGreedy | sb.AOIDS | sb.StreamingSolid)


def takes_one_context(policy):
    return isinstance(policy, sb.OSSB | sb.SPL | sb.EndOfOptimism | sb.UCB1)


def is_decision(policy):
    return isinstance(policy, DecisionPolicy)


def fitting(policy, seed, n_contexts=4, n_arms=6, dim=5):
    """A random problem that the policy can take."""
    return sb.problems.random(1 if takes_one_context(policy) else n_contexts, n_arms, dim, seed=seed)
