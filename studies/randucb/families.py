"""The families of problems on which the parameters of `RandUCB` were tuned and judged (docs/randucb.md).

Every run of a random family has a problem of its own. Tuning and held-out families differ in their settings, in the
seeds of their problems and in the seeds of contexts and noise; one kind, Jester, is never tuned on. There were two
rounds: `FIRST` was held out of the first and tuned on (without Jester) in the second, from which `SECOND` is held out.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np

import solid_bandits as sb
from solid_bandits.paper import jester as jester_data

HORIZONS = (1_000, 10_000, 100_000)
RUNS = 100
TUNING_SEED, FIRST_SEED, SECOND_SEED = 1, 2, 5
"""Of contexts, noise and policies; the problem of run r has the seed (this, r)."""


class Family(NamedTuple):
    """A kind of problem with its settings."""

    kind: str
    words: str
    problem_of: Callable[[int], sb.Problem]


def problem_seed(side, run):
    """A seed of its own for each side and run."""
    return int(np.random.SeedSequence([side, run]).generate_state(1)[0])


@cache
def toy(run, **settings):
    """The paper's toy: the same problem in every run."""
    return sb.problems.toy(**settings)


@cache
def end_of_optimism(run, **settings):
    """The problem that optimism fails on: the same in every run."""
    return sb.problems.end_of_optimism(**settings)


@cache
def random(run, side, **settings):
    """The paper's generator."""
    return sb.problems.random(seed=problem_seed(side, run), **settings)


@cache
def sphere(run, side, shape, noise_std, exponent=0.0):
    """Features and θ* uniform on the unit sphere; context x has probability in proportion to (1 + x)^-exponent."""
    rng = np.random.default_rng(problem_seed(side, run))
    features = rng.standard_normal(shape)
    theta = rng.standard_normal(shape[2])
    probs = np.arange(1.0, shape[0] + 1.0) ** -exponent
    return sb.Problem(
        features / np.linalg.norm(features, axis=2, keepdims=True),
        theta / np.linalg.norm(theta),
        context_probs=probs / probs.sum(),
        noise_std=noise_std,
    )


@cache
def jester(run, side, users, jokes):
    """Some users and some jokes of the Jester problem, σ = 0.5."""
    rng = np.random.default_rng(problem_seed(side, run))
    model = jester_data.jester_model()
    whole = model.problem(np.sort(rng.choice(model.n_users, users, replace=False)))
    chosen = np.sort(rng.choice(whole.n_arms, jokes, replace=False))
    return sb.Problem(whole.features[:, chosen], whole.theta, noise_std=whole.noise_std)


def _toy(xi, prob, noise):
    settings = {"xi": xi, "first_context_prob": prob, "noise_std": noise}
    return Family("toy", f"xi {xi}, rho {prob}, sigma {noise}", partial(toy, **settings))


def _optimism(xi, noise):
    words = f"xi {xi}, sigma {noise}"
    return Family("end of optimism", words, partial(end_of_optimism, xi=xi, noise_std=noise))


def _random(side, contexts, arms, dim, density, noise):
    settings = {"n_contexts": contexts, "n_arms": arms, "dim": dim, "density": density, "noise_std": noise}
    words = f"{contexts} x {arms}, d {dim}, density {density}, sigma {noise}"
    return Family("random", words, partial(random, side=side, **settings))


def _sphere(side, contexts, arms, dim, noise, exponent=0.0):
    kind = "Zipf" if exponent else "one context" if contexts == 1 else "sphere"
    words = f"{contexts} x {arms}, d {dim}, sigma {noise}" + (f", exponent {exponent}" if exponent else "")
    shape = (contexts, arms, dim)
    return Family(kind, words, partial(sphere, side=side, shape=shape, noise_std=noise, exponent=exponent))


TUNING = {
    "toy-1": _toy(0.2, 0.5, 0.5),
    "toy-2": _toy(0.05, 0.9, 0.5),
    "random-1": _random(TUNING_SEED, 4, 8, 8, 0.5, 1.0),
    "random-2": _random(TUNING_SEED, 4, 16, 8, 0.3, 0.3),
    "random-3": _random(TUNING_SEED, 2, 4, 4, 0.7, 0.5),
    "sphere-1": _sphere(TUNING_SEED, 3, 10, 5, 0.5),
    "sphere-2": _sphere(TUNING_SEED, 4, 20, 16, 1.0),
    "sphere-3": _sphere(TUNING_SEED, 8, 10, 40, 0.5),
    "one-1": _sphere(TUNING_SEED, 1, 10, 4, 0.5),
    "zipf-1": _sphere(TUNING_SEED, 50, 5, 8, 0.5, exponent=1.0),
    "optimism-1": _optimism(0.2, 1.0),
}

FIRST = {
    "toy-a": _toy(0.1, 0.5, 0.5),
    "toy-b": _toy(0.1, 0.99, 0.5),
    "toy-c": _toy(0.02, 0.7, 1.0),
    "random-a": _random(FIRST_SEED, 4, 4, 8, 0.5, 1.0),
    "random-b": _random(FIRST_SEED, 4, 32, 8, 0.5, 1.0),
    "random-c": _random(FIRST_SEED, 6, 12, 12, 0.4, 0.5),
    "random-d": _random(FIRST_SEED, 3, 6, 5, 0.9, 0.2),
    "sphere-a": _sphere(FIRST_SEED, 5, 15, 8, 0.5),
    "sphere-b": _sphere(FIRST_SEED, 2, 30, 12, 0.2),
    "one-a": _sphere(FIRST_SEED, 1, 25, 6, 1.0),
    "one-b": _random(FIRST_SEED, 1, 20, 6, 0.5, 0.5)._replace(kind="one context"),
    "zipf-a": _sphere(FIRST_SEED, 100, 8, 6, 1.0, exponent=1.2),
    "optimism-a": _optimism(0.1, 1.0),
    "optimism-b": _optimism(0.05, 0.5),
    "jester-a": Family(
        "Jester", "10 users, 10 jokes, d 65", partial(jester, side=FIRST_SEED, users=10, jokes=10)
    ),
}

SECOND = {
    "toy-A": _toy(0.15, 0.6, 0.5),
    "toy-B": _toy(0.05, 0.5, 1.0),
    "toy-C": _toy(0.3, 0.95, 0.25),
    "random-A": _random(SECOND_SEED, 4, 16, 8, 0.5, 1.0),
    "random-B": _random(SECOND_SEED, 4, 8, 8, 0.5, 0.1),
    "random-C": _random(SECOND_SEED, 5, 10, 10, 0.3, 0.5),
    "random-D": _random(SECOND_SEED, 2, 5, 6, 0.8, 2.0),
    "sphere-A": _sphere(SECOND_SEED, 6, 8, 10, 0.3),
    "sphere-B": _sphere(SECOND_SEED, 3, 25, 6, 1.0),
    "sphere-C": _sphere(SECOND_SEED, 2, 12, 20, 0.1),
    "one-A": _sphere(SECOND_SEED, 1, 15, 5, 0.2),
    "one-B": _random(SECOND_SEED, 1, 30, 8, 0.5, 1.0)._replace(kind="one context"),
    "zipf-A": _sphere(SECOND_SEED, 60, 10, 10, 0.3, exponent=1.5),
    "optimism-A": _optimism(0.15, 0.5),
    "optimism-B": _optimism(0.02, 1.0),
    "jester-A": Family(
        "Jester", "5 users, 20 jokes, d 65", partial(jester, side=SECOND_SEED, users=5, jokes=20)
    ),
}
"""Held out of the second round; `FIRST`, held out of the first, is tuned on in the second."""
