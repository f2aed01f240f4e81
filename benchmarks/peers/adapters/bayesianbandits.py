"""bayesianbandits: one Bayesian regression for all arms over features of context and arm.

Its UCB is a quantile of draws from the posterior, 1000 of them as the library sets it.
"""

import numpy as np
from bayesianbandits import (
    Arm,
    FunctionArmFeaturizer,
    LipschitzContextualAgent,
    NormalRegressor,
    ThompsonSampling,
    UpperConfidenceBound,
)
from game import NOISE_STD, Contender


class _Player:
    def __init__(self, game, seed, rule):
        features = np.moveaxis(game.problem.features, 1, 2)  # (contexts, dim, arms)

        def look_up(contexts, arms):
            found = features[contexts[:, 0]]
            return found if len(arms) == found.shape[2] else found[:, :, arms]

        precision = 1 / NOISE_STD**2
        self.agent = LipschitzContextualAgent(
            arms=[Arm(arm, learner=None) for arm in range(game.size[1])],
            policy=rule,
            arm_featurizer=FunctionArmFeaturizer(look_up),
            learner=NormalRegressor(alpha=precision, beta=precision),
            random_seed=seed,
        )
        self.rows = [np.array([[context]]) for context in range(game.size[0])]

    def act(self, context):
        return self.agent.pull(self.rows[context])[0]

    def update(self, context, arm, reward):
        self.agent.select_for_update(arm).update(self.rows[context], np.array([reward]))

    def act_batch(self, contexts):
        return np.array(self.agent.pull(contexts[:, None]))

    def update_batch(self, contexts, arms, rewards):
        for arm in np.unique(arms).tolist():  # an update is for one arm
            mine = arms == arm
            self.agent.select_for_update(arm).update(contexts[mine, None], rewards[mine])


def ucb(game, seed):
    return _Player(game, seed, UpperConfidenceBound(alpha=0.977))  # two standard deviations


def thompson(game, seed):
    return _Player(game, seed, ThompsonSampling())


CONTENDERS = [
    Contender("bayesianbandits", "UpperConfidenceBound", "UCB", "shared", ucb, batches=True),
    Contender("bayesianbandits", "ThompsonSampling", "TS", "shared", thompson, batches=True),
]
