"""This package's decision policies, told nothing: one block of coefficients for each class, or the joint form."""

from functools import partial

import numpy as np
from game import Contender

import solid_bandits as sb
from solid_bandits import rivals

LARGEST_JOINT = 200
"""K d up to which the joint form is played."""

POLICIES = {
    "RandUCB": sb.RandUCB(),
    "LinUCB": sb.LinUCB(),
    "LinTS (evidence)": sb.LinTS(ridge="evidence"),
    "LinTS": sb.LinTS(),
    "Greedy": sb.Greedy(),
    "LinUCB (paper)": sb.LinUCB(radius="paper"),
    "LinMED": rivals.LinMED(),
    "LinIMED-3": rivals.LinIMED(),
    "SquareCB": rivals.SquareCB(),
    "FALCON": rivals.FALCON(),
    "EpsilonGreedy": sb.EpsilonGreedy(),
    "FeelGoodTS": rivals.FeelGoodTS(),
    "LinIMED-1": rivals.LinIMED(form=1),
    "LinIMED-2": rivals.LinIMED(form=2),
    "VIDS": sb.VIDS(),
    "StreamingSolid": rivals.StreamingSolid(),
}
IN_BOTH = ("RandUCB", "LinUCB", "LinTS", "Greedy")
ONLY_JOINT = ("FeelGoodTS", "StreamingSolid")
"""What refuses blocks."""


class _Blocks:
    """Rows of features are [class, x]."""

    def __init__(self, policy, rows, shuffle):
        dim = rows.X.shape[1]
        self.features = np.column_stack([np.arange(rows.n_arms, dtype=float), np.zeros((rows.n_arms, dim))])
        self.agent = sb.Agent(policy, dim=1 + dim, blocks=rows.n_arms, seed=shuffle)

    def act(self, x):
        self.features[:, 1:] = x
        self.decision = self.agent.decide(self.features)
        return self.decision.arm

    def learn(self, x, arm, reward):
        self.agent.learn(self.decision, reward)


class _Joint(_Blocks):
    """Features are e_a ⊗ x."""

    def __init__(self, policy, rows, shuffle):
        dim = rows.X.shape[1]
        self.features = np.zeros((rows.n_arms, rows.n_arms * dim))
        self.places = self.features.reshape(rows.n_arms, rows.n_arms, dim)
        self.diagonal = np.arange(rows.n_arms)
        self.agent = sb.Agent(policy, dim=rows.n_arms * dim, seed=shuffle)

    def act(self, x):
        self.places[self.diagonal, self.diagonal] = x
        self.decision = self.agent.decide(self.features)
        return self.decision.arm


def _is_small(rows):
    return rows.n_arms * rows.X.shape[1] <= LARGEST_JOINT


CONTENDERS = [
    *(
        Contender("solid-bandits", name, partial(_Blocks, policy))
        for name, policy in POLICIES.items()
        if name not in (*ONLY_JOINT, "VIDS")
    ),
    Contender("solid-bandits", "VIDS", partial(_Blocks, POLICIES["VIDS"]), _is_small, shuffles=1, waits=4.75),
    *(
        Contender(
            "solid-bandits",
            f"{name}, joint",
            partial(_Joint, POLICIES[name]),
            _is_small,
            shuffles=1,
            waits=2.5,
        )
        for name in (*IN_BOTH, *ONLY_JOINT)
    ),
]
