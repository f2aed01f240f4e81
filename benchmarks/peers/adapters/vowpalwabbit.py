"""Vowpal Wabbit: one linear model by stochastic gradients; optimistic RegCB and a bag of bootstrapped models.

Both are its nearest equivalents of UCB and Thompson sampling. Examples without a label are parsed once for each
context; one with a label has to be parsed when its reward is known.
"""

import random

from game import Contender
from vowpalwabbit import LabelType, Workspace


class _Player:
    def __init__(self, game, seed, options):
        self.vw = Workspace(
            f"--cb_explore_adf {options} --noconstant --quiet --random_seed {seed} "
            "--cb_min_cost -1.3 --cb_max_cost 1.3"
        )
        self.lines = [
            [f"|a {' '.join(f'{i}:{value:.7g}' for i, value in enumerate(arm))}" for arm in context]
            for context in game.problem.features
        ]
        self.examples = [self.vw.parse(lines, LabelType.CONTEXTUAL_BANDIT) for lines in self.lines]
        self.rng = random.Random(seed)

    def act(self, context):
        probabilities = self.vw.predict(self.examples[context])
        self.arm = self.rng.choices(range(len(probabilities)), probabilities)[0]
        self.probability = probabilities[self.arm]
        return self.arm

    def update(self, context, arm, reward):
        lines = self.lines[context].copy()
        lines[arm] = f"0:{-reward:.7g}:{self.probability:.7g} {lines[arm]}"
        self.vw.learn(lines)


def regcb(game, seed):
    return _Player(game, seed, "--regcbopt")


def bag(game, seed):
    return _Player(game, seed, "--bag 5")


CONTENDERS = [
    Contender("vowpalwabbit", "optimistic RegCB", "UCB", "shared", regcb),
    Contender("vowpalwabbit", "bag of 5", "TS", "shared", bag),
]
