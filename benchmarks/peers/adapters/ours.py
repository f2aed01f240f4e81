"""This package, called from Python one decision at a time and in the loop of `sb.simulate`."""

from game import Contender

import solid_bandits as sb

POLICIES = [
    ("LinUCB", "UCB", sb.LinUCB()),
    ("LinTS", "TS", sb.LinTS()),
    ("SOLID", "other", sb.Solid.paper_toy()),
]


def _agent(policy):
    def start(game, seed):
        return sb.Agent(policy, game.problem.view(game.steps), seed)

    return start


CONTENDERS = [
    Contender("solid-bandits", f"{name}, from Python", kind, "shared", _agent(policy))
    for name, kind, policy in POLICIES
] + [
    Contender(
        "solid-bandits", f"{name}, in the loop", kind, "shared", lambda game, seed, p=policy: p, in_loop=True
    )
    for name, kind, policy in POLICIES
]
