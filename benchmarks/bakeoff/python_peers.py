"""contextualbandits, bayesianbandits and MABWiser at their defaults: a regression for each class."""

import warnings
from functools import partial

import numpy as np
from bayesianbandits import Arm, BayesianGLM, ContextualAgent, NormalRegressor, ThompsonSampling
from contextualbandits.online import LinUCB, LogisticUCB
from game import Contender
from mabwiser.mab import MAB, LearningPolicy

warnings.filterwarnings("ignore", category=FutureWarning, module="sklearn")  # at every fit of LogisticUCB


class _Contextual:
    """The first column of X is 1, so no further intercept is fitted."""

    def __init__(self, rows, shuffle):
        self.policy = LinUCB(rows.n_arms, fit_intercept=False, random_state=1 + shuffle)

    def act(self, x):
        return int(self.policy.predict(x[None])[0])

    def learn(self, x, arm, reward):
        self.policy.partial_fit(x[None], np.array([arm]), np.array([reward]))


class _ContextualLogistic(_Contextual):
    """It cannot be updated by rounds: it is fitted anew to all of them whenever there are a tenth more."""

    def __init__(self, rows, shuffle):
        self.policy = LogisticUCB(rows.n_arms, fit_intercept=False, random_state=1 + shuffle, njobs=1)
        self.X, self.arms, self.rewards = [], [], []
        self.next = 20
        self.rng = np.random.default_rng(shuffle)
        self.n_arms = rows.n_arms

    def act(self, x):
        return (
            int(self.policy.predict(x[None])[0])
            if self.policy.is_fitted
            else int(self.rng.integers(self.n_arms))
        )

    def learn(self, x, arm, reward):
        self.X.append(x)
        self.arms.append(arm)
        self.rewards.append(reward)
        if len(self.X) >= self.next:
            self.policy.fit(np.array(self.X), np.array(self.arms), np.array(self.rewards))
            self.next = max(self.next + 1, int(1.1 * self.next))


class _Bayesian:
    def __init__(self, learner, rows, shuffle):
        self.agent = ContextualAgent(
            [Arm(arm, learner=learner()) for arm in range(rows.n_arms)],
            ThompsonSampling(),
            random_seed=shuffle,
        )

    def act(self, x):
        return self.agent.pull(x[None])[0]

    def learn(self, x, arm, reward):
        self.agent.select_for_update(arm).update(x[None], np.array([reward]))


class _MABWiser:
    """A zero context teaches nothing, but a first fit is needed."""

    def __init__(self, rule, rows, shuffle):
        self.mab = MAB(list(range(rows.n_arms)), rule, seed=shuffle)
        self.mab.fit([0], [0.0], np.zeros((1, rows.X.shape[1])))

    def act(self, x):
        return self.mab.predict(x[None])

    def learn(self, x, arm, reward):
        self.mab.partial_fit([arm], [reward], x[None])


FEW = 2_000
"""Rounds of what takes half a millisecond and more."""
CONTENDERS = [
    Contender("contextualbandits", "LinUCB", _Contextual),
    Contender(
        "bayesianbandits",
        "normal",
        partial(_Bayesian, partial(NormalRegressor, alpha=1.0, beta=1.0)),
        rounds=FEW,
    ),
    Contender("bayesianbandits", "logistic", partial(_Bayesian, BayesianGLM), rounds=FEW),
    Contender(
        "MABWiser", "LinUCB", partial(_MABWiser, LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0)), rounds=FEW
    ),
    Contender(
        "MABWiser", "LinTS", partial(_MABWiser, LearningPolicy.LinTS(alpha=1.0, l2_lambda=1.0)), rounds=FEW
    ),
    Contender("contextualbandits", "LogisticUCB", _ContextualLogistic, waits=0.5, rounds=FEW),
]
