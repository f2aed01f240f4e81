"""MABWiser: a ridge regression for each arm."""

import numpy as np
from game import NOISE_STD, UCB_WIDTH, Contender
from mabwiser.mab import MAB, LearningPolicy


class _Player:
    def __init__(self, game, seed, rule):
        self.vectors = game.vectors
        self.rows = [vector[None] for vector in game.vectors]
        _, n_arms, dim = game.size
        self.mab = MAB(list(range(n_arms)), rule, seed=seed)
        self.mab.fit(
            [0], [0.0], np.zeros((1, dim))
        )  # a zero context teaches nothing, but a first fit is needed

    def act(self, context):
        return self.mab.predict(self.rows[context])

    def update(self, context, arm, reward):
        self.mab.partial_fit([arm], [reward], self.rows[context])

    def act_batch(self, contexts):
        return np.array(self.mab.predict(self.vectors[contexts]))

    def update_batch(self, contexts, arms, rewards):
        self.mab.partial_fit(arms, rewards, self.vectors[contexts])


def lin_ucb(game, seed):
    return _Player(game, seed, LearningPolicy.LinUCB(alpha=UCB_WIDTH, l2_lambda=1.0))


def lin_ts(game, seed):
    return _Player(game, seed, LearningPolicy.LinTS(alpha=NOISE_STD, l2_lambda=1.0))


CONTENDERS = [
    Contender("mabwiser", "LinUCB", "UCB", "per arm", lin_ucb, batches=True),
    Contender("mabwiser", "LinTS", "TS", "per arm", lin_ts, batches=True),
]
