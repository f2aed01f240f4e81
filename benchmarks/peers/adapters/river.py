"""River: LinUCB with a Bayesian regression for each arm; its width is one standard deviation. No linear TS."""

from game import NOISE_STD, Contender
from river.bandit import LinUCBDisjoint


class _Player:
    def __init__(self, game, seed):
        precision = 1 / NOISE_STD**2
        self.policy = LinUCBDisjoint(alpha=precision, beta=precision, seed=seed)
        self.vectors = [dict(enumerate(vector)) for vector in game.vectors.tolist()]
        self.arms = range(game.size[1])

    def act(self, context):
        return self.policy.pull(self.arms, context=self.vectors[context])

    def update(self, context, arm, reward):
        self.policy.update(arm, self.vectors[context], reward)


CONTENDERS = [Contender("river", "LinUCBDisjoint", "UCB", "per arm", _Player)]
