"""The families of the study of policies that are told nothing (plan.md): tuning side, held-out side.

Every run of a random family has a problem of its own. The tuning side has the families of both earlier rounds (without
Jester, `studies/randucb/families.py`) and one of each new kind; the held-out side has settings and seeds of its own.
"""

import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import solid_bandits as sb


def _old_families():
    """The module of the earlier study, by its place: its folder has files of the same names as this one."""
    place = Path(__file__).parents[1] / "randucb" / "families.py"
    specification = importlib.util.spec_from_file_location("randucb_families", place)
    module = importlib.util.module_from_spec(specification)
    sys.modules["randucb_families"] = module
    specification.loader.exec_module(module)
    return module


OLD = _old_families()
HORIZONS = (1_000, 10_000, 100_000)
TUNING_SIDE, HELD_OUT_SIDE, SECOND_SIDE = 41, 43, 53
"""Of problems: run r of a family has the seed (side, r)."""
MOST_CONTEXTS = 20_000
"""Of a problem whose contexts hardly ever come twice."""
LOW_NOISE = "low noise"
FRESH = "never twice"
OFFSET = "uncentred"


class Family(NamedTuple):
    """A kind of problem with its settings."""

    kind: str
    words: str
    problem_of: Callable[[int, int], sb.Problem]
    """From the horizon and the run."""
    rewards: str = "gaussian"
    """Or `student`, with three degrees of freedom; or `binary`, 0/1 with the mean as probability."""
    base: str = ""
    """Of an uncentred family, the same without the offset."""


def generator(side, run):
    """A stream of its own for each side and run."""
    return np.random.default_rng(np.random.SeedSequence([side, run]))


def many(horizon):
    """Contexts enough that few come twice within the horizon."""
    return int(min(2 * horizon, MOST_CONTEXTS))


def gaussian(horizon, run, side, arms, dim, noise, offset=0.0):
    """Features N(0, I), the first column with an offset; θ* uniform on the sphere."""
    rng = generator(side, run)
    features = rng.standard_normal((many(horizon), arms, dim))
    features[:, :, 0] += offset
    theta = rng.standard_normal(dim)
    return sb.Problem(features, theta / np.linalg.norm(theta), noise_std=noise)


def sparse(horizon, run, side, arms, dim, noise, density):
    """As Gaussian, each entry 0 but with a probability."""
    rng = generator(side, run)
    features = rng.standard_normal((many(horizon), arms, dim)) * (
        rng.random((many(horizon), arms, dim)) < density
    )
    theta = rng.standard_normal(dim)
    return sb.Problem(features, theta / np.linalg.norm(theta), noise_std=noise)


def blocks(horizon, run, side, arms, dim, noise):
    """Each arm has parameters of its own: the features of arm a are the context in block a, an intercept in it."""
    rng = generator(side, run)
    contexts = rng.standard_normal((many(horizon), dim))
    contexts[:, 0] = 1.0
    features = np.zeros((many(horizon), arms, arms * dim))
    for arm in range(arms):
        features[:, arm, arm * dim : (arm + 1) * dim] = contexts
    return sb.Problem(features, rng.standard_normal(arms * dim) / np.sqrt(dim), noise_std=noise)


def alike(horizon, run, side, arms, dim, noise, jitter):
    """Little diversity: every context has the same arms but for a small jitter."""
    rng = generator(side, run)
    fixed = rng.standard_normal((arms, dim))
    features = fixed + jitter * rng.standard_normal((many(horizon), arms, dim))
    theta = rng.standard_normal(dim)
    return sb.Problem(features, theta / np.linalg.norm(theta), noise_std=noise)


def clicks(horizon, run, side, contexts, arms, dim):
    """Means from 0.05 to 0.6, linear in the features, an intercept among them; rewards are 0 or 1, σ at most 0.5."""
    rng = generator(side, run)
    features = rng.standard_normal((contexts, arms, dim))
    theta = rng.standard_normal(dim)
    means = features @ theta
    slope = 0.55 / (means.max() - means.min())
    whole = np.concatenate([features, np.ones((contexts, arms, 1))], axis=2)
    return sb.Problem(whole, np.append(slope * theta, 0.05 - slope * means.min()), noise_std=0.5)


def _finite(kind, words, make, rewards="gaussian"):
    return Family(kind, words, partial(_ignoring_horizon, make), rewards)


def _ignoring_horizon(make, horizon, run):
    return make(run)


def _toy(xi, prob, noise):
    make = partial(OLD.toy, xi=xi, first_context_prob=prob, noise_std=noise)
    return _finite("toy", f"xi {xi}, rho {prob}, sigma {noise}", make)


def _optimism(xi, noise):
    make = partial(OLD.end_of_optimism, xi=xi, noise_std=noise)
    return _finite("end of optimism", f"xi {xi}, sigma {noise}", make)


def _random(side, contexts, arms, dim, density, noise, kind="random", rewards="gaussian"):
    settings = {"n_contexts": contexts, "n_arms": arms, "dim": dim, "density": density, "noise_std": noise}
    words = f"{contexts} x {arms}, d {dim}, density {density}, sigma {noise}"
    return _finite(kind, words, partial(OLD.random, side=side, **settings), rewards)


def _sphere(side, contexts, arms, dim, noise, exponent=0.0, kind="sphere", rewards="gaussian"):
    words = f"{contexts} x {arms}, d {dim}, sigma {noise}" + (f", exponent {exponent}" if exponent else "")
    shape = (contexts, arms, dim)
    make = partial(OLD.sphere, side=side, shape=shape, noise_std=noise, exponent=exponent)
    return _finite(kind, words, make, rewards)


def _fresh(words, make, kind=FRESH, base="", **settings):
    said = ", ".join(f"{name} {value}" for name, value in settings.items() if name != "side")
    return Family(kind, f"{words}, {said}", partial(make, **settings), base=base)


def _offsets(side, name, arms, dim, noise):
    fixed = {"side": side, "arms": arms, "dim": dim, "noise": noise}
    return {
        f"{name}+0": _fresh("Gaussian", gaussian, **fixed),
        f"{name}+100": _fresh("Gaussian", gaussian, OFFSET, f"{name}+0", **fixed, offset=100.0),
        f"{name}+2026": _fresh("Gaussian", gaussian, OFFSET, f"{name}+0", **fixed, offset=2026.0),
    }


def _old(families):
    """Families of the earlier rounds; those with the least noise are of their own kind."""
    low = ("random-d", "sphere-b", "random-B", "sphere-C", "one-A")
    return {
        name: _finite(LOW_NOISE if name in low else family.kind, family.words, family.problem_of)
        for name, family in families.items()
        if family.kind != "Jester"
    }


TUNED_ON = {
    **_old(OLD.TUNING),
    **_old(OLD.FIRST),
    **_old(OLD.SECOND),
    "low-1": _random(TUNING_SIDE, 4, 8, 6, 0.5, 0.05, LOW_NOISE),
    "high-1": _sphere(TUNING_SIDE, 4, 8, 6, 3.0, kind="high noise"),
    "sparse-1": _fresh("sparse", sparse, side=TUNING_SIDE, arms=8, dim=12, noise=0.5, density=0.3),
    "blocks-1": _fresh("blocks", blocks, side=TUNING_SIDE, arms=4, dim=4, noise=0.5),
    "alike-1": _fresh("alike", alike, side=TUNING_SIDE, arms=10, dim=6, noise=0.5, jitter=0.1),
    **_offsets(TUNING_SIDE, "gauss-1", arms=8, dim=8, noise=0.5),
    "student-1": _random(TUNING_SIDE, 4, 10, 8, 0.5, 0.5, "Student noise", "student"),
    "binary-1": _finite(
        "0/1 rewards", "5 x 8, d 6", partial(clicks, 0, side=TUNING_SIDE, contexts=5, arms=8, dim=5), "binary"
    ),
    "arms-1": _sphere(TUNING_SIDE, 3, 100, 8, 0.5, kind="100 arms"),
    "dim-1": _sphere(TUNING_SIDE, 10, 12, 50, 0.5, kind="d = 50"),
}

HELD_OUT = {
    "toy-H": _toy(0.12, 0.7, 0.5),
    "toy-I": _toy(0.25, 0.5, 1.0),
    "random-H": _random(HELD_OUT_SIDE, 4, 12, 8, 0.5, 1.0),
    "random-I": _random(HELD_OUT_SIDE, 3, 20, 10, 0.4, 0.5),
    "sphere-H": _sphere(HELD_OUT_SIDE, 4, 12, 7, 0.5),
    "sphere-I": _sphere(HELD_OUT_SIDE, 6, 15, 12, 0.35),
    "one-H": _sphere(HELD_OUT_SIDE, 1, 12, 6, 0.4, kind="one context"),
    "one-I": _random(HELD_OUT_SIDE, 1, 24, 10, 0.5, 1.0, "one context"),
    "zipf-H": _sphere(HELD_OUT_SIDE, 80, 6, 7, 0.4, exponent=1.3, kind="Zipf"),
    "optimism-H": _optimism(0.12, 0.8),
    "optimism-I": _optimism(0.03, 0.7),
    "jester-H": _finite(
        "Jester", "8 users, 15 jokes, d 65", partial(OLD.jester, side=HELD_OUT_SIDE, users=8, jokes=15)
    ),
    "low-H": _random(HELD_OUT_SIDE, 4, 10, 8, 0.5, 0.05, LOW_NOISE),
    "low-I": _sphere(HELD_OUT_SIDE, 3, 15, 10, 0.05, kind=LOW_NOISE),
    "high-H": _sphere(HELD_OUT_SIDE, 5, 10, 8, 2.5, kind="high noise"),
    "sparse-H": _fresh("sparse", sparse, side=HELD_OUT_SIDE, arms=10, dim=15, noise=0.4, density=0.2),
    "blocks-H": _fresh("blocks", blocks, side=HELD_OUT_SIDE, arms=5, dim=3, noise=0.6),
    "alike-H": _fresh("alike", alike, side=HELD_OUT_SIDE, arms=8, dim=5, noise=0.6, jitter=0.05),
    **_offsets(HELD_OUT_SIDE, "gauss-H", arms=10, dim=10, noise=0.5),
    "student-H": _random(HELD_OUT_SIDE, 4, 14, 9, 0.5, 0.7, "Student noise", "student"),
    "binary-H": _finite(
        "0/1 rewards",
        "6 x 10, d 8",
        partial(clicks, 0, side=HELD_OUT_SIDE, contexts=6, arms=10, dim=7),
        "binary",
    ),
    "arms-H": _sphere(HELD_OUT_SIDE, 2, 100, 10, 0.5, kind="100 arms"),
    "dim-H": _sphere(HELD_OUT_SIDE, 12, 10, 50, 0.4, kind="d = 50"),
}

SECOND_TUNED_ON = {
    **TUNED_ON,
    **{name: family for name, family in HELD_OUT.items() if family.kind != "Jester"},
    "alike-2": _fresh("alike", alike, side=TUNING_SIDE, arms=12, dim=8, noise=0.5, jitter=0.02),
    "alike-3": _fresh("alike", alike, side=TUNING_SIDE, arms=5, dim=4, noise=1.0, jitter=0.05),
}
"""What was held out of the first round was seen in it, and is tuned on in the second."""

SECOND_HELD_OUT = {
    "toy-K": _toy(0.08, 0.6, 0.4),
    "toy-L": _toy(0.2, 0.8, 0.7),
    "random-K": _random(SECOND_SIDE, 5, 10, 9, 0.5, 0.8),
    "random-L": _random(SECOND_SIDE, 3, 24, 7, 0.6, 0.6),
    "sphere-K": _sphere(SECOND_SIDE, 5, 10, 6, 0.45),
    "sphere-L": _sphere(SECOND_SIDE, 3, 18, 14, 0.6),
    "one-K": _sphere(SECOND_SIDE, 1, 16, 7, 0.5, kind="one context"),
    "one-L": _random(SECOND_SIDE, 1, 18, 8, 0.5, 0.7, "one context"),
    "zipf-K": _sphere(SECOND_SIDE, 70, 7, 8, 0.5, exponent=1.1, kind="Zipf"),
    "optimism-K": _optimism(0.07, 0.6),
    "optimism-L": _optimism(0.18, 0.9),
    "jester-K": _finite(
        "Jester", "6 users, 18 jokes, d 65", partial(OLD.jester, side=SECOND_SIDE, users=6, jokes=18)
    ),
    "low-K": _random(SECOND_SIDE, 3, 12, 7, 0.5, 0.04, LOW_NOISE),
    "low-L": _sphere(SECOND_SIDE, 4, 12, 8, 0.06, kind=LOW_NOISE),
    "high-K": _sphere(SECOND_SIDE, 4, 12, 7, 3.0, kind="high noise"),
    "sparse-K": _fresh("sparse", sparse, side=SECOND_SIDE, arms=9, dim=14, noise=0.5, density=0.25),
    "blocks-K": _fresh("blocks", blocks, side=SECOND_SIDE, arms=4, dim=5, noise=0.7),
    "alike-K": _fresh("alike", alike, side=SECOND_SIDE, arms=10, dim=6, noise=0.5, jitter=0.03),
    "alike-L": _fresh("alike", alike, side=SECOND_SIDE, arms=6, dim=5, noise=0.8, jitter=0.05),
    **_offsets(SECOND_SIDE, "gauss-K", arms=9, dim=9, noise=0.6),
    "student-K": _random(SECOND_SIDE, 5, 12, 8, 0.5, 0.6, "Student noise", "student"),
    "binary-K": _finite(
        "0/1 rewards",
        "5 x 12, d 7",
        partial(clicks, 0, side=SECOND_SIDE, contexts=5, arms=12, dim=6),
        "binary",
    ),
    "arms-K": _sphere(SECOND_SIDE, 3, 100, 9, 0.6, kind="100 arms"),
    "dim-K": _sphere(SECOND_SIDE, 10, 11, 50, 0.5, kind="d = 50"),
}
"""Held out of the second round."""
