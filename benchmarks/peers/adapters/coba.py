"""Coba: linear in features of the action, which arrive with each call."""

from coba.learners import LinTSLearner, LinUCBLearner
from game import NOISE_STD, UCB_WIDTH, Contender


class _Player:
    def __init__(self, game, learner):
        self.actions = [[tuple(arm) for arm in context] for context in game.problem.features.tolist()]
        self.learner = learner

    def act(self, context):
        actions = self.actions[context]
        action, self.probability = self.learner.predict(None, actions)
        return actions.index(action)

    def update(self, context, arm, reward):
        self.learner.learn(None, self.actions[context][arm], reward, self.probability)


def lin_ucb(game, seed):
    return _Player(game, LinUCBLearner(alpha=UCB_WIDTH, features=["a"], seed=seed))


def lin_ts(game, seed):
    return _Player(game, LinTSLearner(v=NOISE_STD**2, features=["a"], seed=seed))


CONTENDERS = [
    Contender("coba", "LinUCB", "UCB", "shared", lin_ucb),
    Contender("coba", "LinTS", "TS", "shared", lin_ts),
]
