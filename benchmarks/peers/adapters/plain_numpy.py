"""Thirty lines of NumPy, as one would write them without a library."""

import numpy as np
from game import NOISE_STD, UCB_WIDTH, Contender


class _LinUCB:
    """One θ for all arms; V^-1 by Sherman and Morrison's formula."""

    def __init__(self, game, seed):
        self.features = game.problem.features
        dim = game.size[2]
        self.inverse, self.theta = np.eye(dim), np.zeros(dim)
        self.rng = np.random.default_rng(seed)

    def act(self, context):
        features = self.features[context]
        sq_norms = np.einsum("ij,ij->i", features @ self.inverse, features)
        return int((features @ self.theta + UCB_WIDTH * np.sqrt(sq_norms)).argmax())

    def update(self, context, arm, reward):
        feature = self.features[context, arm]
        direction = self.inverse @ feature
        growth = 1 + feature @ direction
        self.theta += direction * ((reward - feature @ self.theta) / growth)
        self.inverse -= np.multiply.outer(direction, direction / growth)

    def act_batch(self, contexts):
        features = self.features[contexts]
        sq_norms = np.einsum("cij,cij->ci", features @ self.inverse, features)
        return (features @ self.theta + UCB_WIDTH * np.sqrt(sq_norms)).argmax(axis=1)

    def update_batch(self, contexts, arms, rewards):
        features = self.features[contexts, arms]
        direction = features @ self.inverse  # Woodbury's formula
        gain = np.linalg.solve(np.eye(len(arms)) + features @ direction.T, direction).T
        self.theta += gain @ (rewards - features @ self.theta)
        self.inverse -= gain @ direction


class _LinTS(_LinUCB):
    """The same estimate; a draw from the posterior for each decision."""

    def act(self, context):
        normals = self.rng.standard_normal(len(self.theta))
        sample = self.theta + NOISE_STD * (np.linalg.cholesky(self.inverse) @ normals)
        return int((self.features[context] @ sample).argmax())

    def act_batch(self, contexts):
        normals = self.rng.standard_normal((len(contexts), len(self.theta)))
        samples = self.theta + NOISE_STD * normals @ np.linalg.cholesky(self.inverse).T
        return np.einsum("cij,cj->ci", self.features[contexts], samples).argmax(axis=1)


CONTENDERS = [
    Contender("numpy", "LinUCB in 30 lines", "UCB", "shared", _LinUCB, batches=True),
    Contender("numpy", "LinTS in 30 lines", "TS", "shared", _LinTS, batches=True),
]
