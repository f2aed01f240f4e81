"""contextualbandits: a linear regression for each arm, in Cython."""

import numpy as np
from contextualbandits.online import LinTS, LinUCB
from game import NOISE_STD, UCB_WIDTH, Contender


class _Player:
    def __init__(self, game, policy):
        self.vectors = game.vectors
        self.rows = [vector[None] for vector in game.vectors]
        self.policy = policy

    def act(self, context):
        return int(self.policy.predict(self.rows[context])[0])

    def update(self, context, arm, reward):
        self.policy.partial_fit(self.rows[context], np.array([arm]), np.array([reward]))

    def act_batch(self, contexts):
        return self.policy.predict(self.vectors[contexts]).astype(int)

    def update_batch(self, contexts, arms, rewards):
        self.policy.partial_fit(self.vectors[contexts], arms, rewards)


def lin_ucb(game, seed):
    policy = LinUCB(game.size[1], alpha=UCB_WIDTH, fit_intercept=False, random_state=1 + seed)
    return _Player(game, policy)


def lin_ts(game, seed):
    policy = LinTS(
        game.size[1],
        v_sq=NOISE_STD**2,
        fit_intercept=False,
        sample_from="ci",  # the same distribution for one context, and faster than drawing coefficients
        method="sm",
        beta_prior="auto",  # as its documentation advises: arms without rewards are otherwise hardly tried
        random_state=1 + seed,  # zero is refused
    )
    return _Player(game, policy)


CONTENDERS = [
    Contender("contextualbandits", "LinUCB", "UCB", "per arm", lin_ucb, batches=True),
    Contender("contextualbandits", "LinTS", "TS", "per arm", lin_ts, batches=True),
]
