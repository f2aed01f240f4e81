"""Every policy in the variants that run other code, and problems that each of them can take."""

import drive
import solid_bandits as sb
from solid_bandits.policies import contract
from solid_bandits.policies.catalogue import CLASSES
from solid_bandits.policies.contract import DecisionPolicy

DECISION = {
    "randucb": sb.RandUCB(),
    "randucb wide": sb.RandUCB(temperature=2, growth=1, ridge=3),
    "randucb without draws": sb.RandUCB(temperature=0, growth=1, ridge=0.2),
    "randucb thrifty": sb.RandUCB(temperature=1, thrift=1),
    "vids": sb.VIDS(samples=16),
    "vids with memory": sb.VIDS(samples=8, memory=17, ridge=0.5),
    "streaming solid": sb.rivals.StreamingSolid(),
    "streaming solid, no budget": sb.rivals.StreamingSolid(
        budget=None, z0=5, initial_multiplier=20, fading=1, ridge=0.5
    ),
    "linmed": sb.rivals.LinMED(),
    "linmed wide": sb.rivals.LinMED(empirical=0.9, design=0.05, scale=1, delta=0.01, ridge=0.3),
    "linmed theorem": sb.rivals.LinMED(radius="theorem"),
    "linimed-1": sb.rivals.LinIMED(form=1),
    "linimed-2 theorem": sb.rivals.LinIMED(form=2, radius="theorem", ridge=0.7, delta=0.1),
    "linimed-3": sb.rivals.LinIMED(),
    "squarecb": sb.rivals.SquareCB(),
    "squarecb wide": sb.rivals.SquareCB(scale=1, ridge=0.5),
    "falcon": sb.rivals.FALCON(),
    "falcon, ridge": sb.rivals.FALCON(scale=0.5, ridge=2),
    "feel-good": sb.rivals.FeelGoodTS(),
    "feel-good, votes": sb.rivals.FeelGoodTS(feel_good=0.4, ridge=0.5, votes=5),
    "feel-good exact": sb.rivals.FeelGoodTS(smoothed=False, feel_good=2),
    "linucb": sb.LinUCB(),
    "linucb paper": sb.LinUCB(radius="paper"),
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
    "oam": sb.rivals.OAM(),
    "oam eps 0, every 100": sb.rivals.OAM(epsilon=0, resolve_every=100, ridge=0.5),
    "ao-ids": sb.rivals.AOIDS(),
    "ao-ids sharp": sb.rivals.AOIDS(learning_rate=3, ridge=2),
}
ONE_CONTEXT = {
    "ossb": sb.rivals.OSSB(),
    "ossb every 5": sb.rivals.OSSB(epsilon=0.05, gamma=0, resolve_every=5),
    "spl": sb.rivals.SPL(),
    "spl clip": sb.rivals.SPL(gap_clip=0.2, ridge=0.7),
    "end of optimism": sb.rivals.EndOfOptimism(),
    "end of optimism, impatient": sb.rivals.EndOfOptimism(tolerance=0.2, ridge=0.1),
    "e4": sb.rivals.E4(),
    "e4 as published": sb.rivals.E4(first="root", gamma=10, ridge=1.0),
    "ucb1": sb.rivals.UCB1(),
    "ucb1 wide": sb.rivals.UCB1(scale=2),
}


def complete(decision, contextual, one_context):
    """Add policies of which nothing is listed, as they are by default; return their names."""
    listed = {type(policy) for group in (decision, contextual, one_context) for policy in group.values()}
    added = {name: kind for name, kind in CLASSES.items() if kind not in listed}
    for name, kind in added.items():
        group = decision if issubclass(kind, DecisionPolicy) else contextual
        (one_context if kind.facts.one_context else group)[name] = kind()
    return list(added)


complete(DECISION, CONTEXTUAL, ONE_CONTEXT)
TABLE = CONTEXTUAL | ONE_CONTEXT
POLICIES = DECISION | TABLE


def first_of_each(policies):
    """One variant of each class, the first: for promises that every class keeps by code of its own."""
    found = {}
    for name, policy in policies.items():
        found.setdefault(type(policy), name)
    return {name: policies[name] for name in found.values()}


CANONICAL = first_of_each(POLICIES)


def draws(policy):
    """Whether two seeds may give two runs."""
    if isinstance(policy, sb.RandUCB):
        return policy.temperature > 0
    if isinstance(policy, sb.Solid):
        return policy.drawing == "sampling"
    return not contract.kernels(type(drive.begin(policy, fitting(policy, 0), horizon=10))).certain


def takes_one_context(policy):
    return policy.facts.one_context


def is_decision(policy):
    return isinstance(policy, DecisionPolicy)


def fitting(policy, seed, n_contexts=4, n_arms=6, dim=5):
    """A random problem that the policy can take."""
    return sb.problems.random(1 if takes_one_context(policy) else n_contexts, n_arms, dim, seed=seed)
