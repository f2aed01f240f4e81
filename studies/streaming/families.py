"""The problems and streams of the study; run r of a family with random truths has a truth of its own."""
# ruff: noqa: D102

import numpy as np

import solid_bandits as sb
from solid_bandits.core.randomness import ENVIRONMENT, seed_sequence
from solid_bandits.streams import Rounds

SIZE = 1000
"""Rounds in a block."""


class Jittered(sb.streams.Stream):
    """The contexts of a finite problem, every feature of every round moved by N(0, jitter²): none comes twice."""

    def __init__(self, problem: sb.Problem, jitter: float) -> None:
        self.problem, self.jitter = problem, jitter
        self.dim, self.n_arms, self.noise_std = problem.dim, problem.n_arms, problem.noise_std

    def blocks(self, seed, run):
        rng = np.random.Generator(np.random.SFC64(seed_sequence(seed, run, ENVIRONMENT)))
        problem = self.problem
        while True:
            contexts = rng.choice(problem.n_contexts, size=SIZE, p=problem.context_probs)
            features = problem.features[contexts]
            features = features + self.jitter * rng.normal(size=features.shape)
            noise = problem.noise_std * rng.normal(size=SIZE)
            yield Rounds(features, features @ problem.theta, noise=noise)

    def parameters(self):
        return {"problem": self.problem.fingerprint, "jitter": self.jitter}


class Fresh(sb.streams.Stream):
    """The paper's random problems without a table: features and θ sparse and uniform in [0, 1], new in each round."""

    noise_std = 1.0

    def __init__(self, n_arms: int, dim: int, density: float, truth: int) -> None:
        self.n_arms, self.dim, self.density, self.truth = n_arms, dim, density, truth
        rng = np.random.default_rng(truth)
        self.theta = rng.uniform(size=dim) * (rng.uniform(size=dim) < density)

    def blocks(self, seed, run):
        rng = np.random.Generator(np.random.SFC64(seed_sequence(seed, run, ENVIRONMENT)))
        shape = (SIZE, self.n_arms, self.dim)
        while True:
            features = rng.uniform(size=shape) * (rng.uniform(size=shape) < self.density)
            yield Rounds(features, features @ self.theta, noise=rng.normal(size=SIZE))

    def parameters(self):
        return {"density": self.density, "truth": self.truth}
