"""This package, called from Python one decision at a time and in the loop of `sb.simulate`."""

from game import Contender

import solid_bandits as sb
from solid_bandits.policies.contract import TablePolicy

POLICIES = [
    ("LinUCB", "UCB", sb.LinUCB()),
    ("LinTS", "TS", sb.LinTS()),
    ("RandUCB", "other", sb.RandUCB()),
    ("SOLID", "other", sb.Solid(bonus="theorem")),
]


class _Player:
    """SOLID knows the contexts in advance; the others get the features of the arms with each decision."""

    def __init__(self, policy, game, seed):
        problem = game.problem
        self.features = problem.features
        self.plans = isinstance(policy, TablePolicy)
        place = {"contexts": problem.features} if self.plans else {"dim": problem.dim}
        self.agent = sb.Agent(
            policy,
            **place,
            noise_std=problem.noise_std,
            theta_bound=problem.B,
            horizon=game.steps,
            seed=seed,
        )

    def act(self, context):
        if self.plans:
            self.decision = self.agent.decide(context=context)
        else:
            self.decision = self.agent.decide(self.features[context])
        return self.decision.arm

    def update(self, context, arm, reward):
        self.agent.learn(self.decision, reward)


CONTENDERS = [
    Contender(
        "solid-bandits",
        f"{name}, from Python",
        kind,
        "shared",
        lambda game, seed, p=policy: _Player(p, game, seed),
    )
    for name, kind, policy in POLICIES
] + [
    Contender(
        "solid-bandits", f"{name}, in the loop", kind, "shared", lambda game, seed, p=policy: p, in_loop=True
    )
    for name, kind, policy in POLICIES
]
