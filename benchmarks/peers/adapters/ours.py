"""This package, called from Python one decision at a time and in the loop of `sb.simulate`."""

from game import Contender

import solid_bandits as sb
from solid_bandits.policies.contract import TablePolicy

POLICIES = [
    ("LinUCB", "UCB", sb.LinUCB(radius="paper")),
    ("LinTS", "TS", sb.LinTS()),
    ("RandUCB", "other", sb.RandUCB()),
    ("SOLID", "other", sb.Solid(bonus="theorem")),
]


class _Player:
    """SOLID knows the contexts in advance; the others get the features of the arms with each decision."""

    def __init__(self, policy, game, seed, told):
        problem = game.problem
        self.features = problem.features
        self.plans = isinstance(policy, TablePolicy)
        place = {"contexts": problem.features} if self.plans else {"dim": problem.dim}
        known = {"noise_std": problem.noise_std, "theta_bound": problem.B, "horizon": game.steps}
        self.agent = sb.Agent(policy, **place, **(known if told else {}), seed=seed)

    def act(self, context):
        if self.plans:
            self.decision = self.agent.decide(context=context)
        else:
            self.decision = self.agent.decide(self.features[context])
        return self.decision.arm

    def update(self, context, arm, reward):
        self.agent.learn(self.decision, reward)

    def act_batch(self, contexts):
        self.batch = self.agent.decide_many(self.features[contexts])
        return self.batch.places

    def update_batch(self, contexts, arms, rewards):
        self.agent.learn_many(self.batch, rewards)


def _from_python(name, kind, policy, told=True):
    words = f"{name}, from Python" if told else f"{name}, told nothing, from Python"
    return Contender(
        "solid-bandits", words, kind, "shared", lambda game, seed: _Player(policy, game, seed, told),
        batches=not isinstance(policy, TablePolicy),
    )  # fmt: skip


def _in_the_loop(name, kind, policy):
    return Contender(
        "solid-bandits", f"{name}, in the loop", kind, "shared", lambda game, seed: policy, in_loop=True
    )


CONTENDERS = [
    _from_python("RandUCB", "default", sb.RandUCB(), told=False),
    *(_from_python(*one) for one in POLICIES),
    *(_in_the_loop(*one) for one in POLICIES),
]
