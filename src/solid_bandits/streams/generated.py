"""Generated streams with a linear truth: contexts that never come twice, or seldom do."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit_apart
from solid_bandits._types import Bools, Floats, Plain
from solid_bandits.problem import MOST_NUMBERS
from solid_bandits.stream import ENVIRONMENT, seed_sequence
from solid_bandits.streams.base import Stream
from solid_bandits.streams.rounds import Rounds, rounds_per_block

_TRUTH = 2
"""Role of the seed that draws θ and the contexts that come again."""


@jit_apart
def walk(theta: Floats, keep: float, steps: Floats) -> None:
    """Replace each row ξ of `steps` by θ = keep · θ + √(1 - keep²) ξ, θ the row before; `theta` ends as the last."""
    gain = math.sqrt(1.0 - keep * keep)
    for t in range(steps.shape[0]):
        for i in range(theta.shape[0]):
            theta[i] = keep * theta[i] + gain * steps[t, i]
            steps[t, i] = theta[i]


@dataclass(frozen=True)
class Mixture:
    """What all generated streams have in common.

    Args:
        noise_std: σ.
        fresh: the share of rounds whose features are new; the others have those of one of `n_contexts` contexts.
        n_contexts: how many contexts come again.
        drift: how fast θ moves: θ_t = (1 - drift) θ_{t-1} + noise, its distribution staying N(0, I). 0 is not at all.
        availability: the probability of each arm of a round to be available; one arm always is.
        seed: of θ, and of the contexts that come again; rounds are those of a run.

    """

    noise_std: float = 1.0
    fresh: float = 1.0
    n_contexts: int = 100
    drift: float = 0.0
    availability: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        _check.positive("noise_std", self.noise_std)
        _check.number("fresh", self.fresh, least=0, most=1)
        _check.integer("n_contexts", self.n_contexts, least=1)
        _check.number("drift", self.drift, least=0, most=1)
        _check.number("availability", self.availability, above=0, most=1)
        _check.integer("seed", self.seed, least=0)


class GeneratedStream(Stream):
    """Rewards φᵀθ + N(0, σ²); a subclass draws the features."""

    def __init__(self, n_arms: int, dim: int, mixture: Mixture) -> None:
        if n_arms * dim > MOST_NUMBERS:
            raise _check.ArgumentError("n_arms", f"must leave n_arms * dim at most {MOST_NUMBERS:,}")
        self.n_arms, self.dim, self.mixture = n_arms, dim, mixture
        self.noise_std = float(mixture.noise_std)
        rng = np.random.Generator(np.random.SFC64(seed_sequence(mixture.seed, 0, _TRUTH)))
        self.theta: Floats = rng.normal(size=dim)
        self.theta.flags.writeable = False
        if mixture.drift == 0.0:
            self.theta_bound = float(np.linalg.norm(self.theta))
        self.old: Floats | None = None
        if mixture.fresh < 1.0:
            if mixture.n_contexts * n_arms * dim > MOST_NUMBERS:
                raise _check.ArgumentError(
                    "n_contexts", f"must leave n_contexts * n_arms * dim at most {MOST_NUMBERS:,}"
                )
            self.old = np.empty((mixture.n_contexts, n_arms, dim))
            self.prepare(self.old)
            self.draw(rng, self.old)

    def prepare(self, features: Floats) -> None:
        """Write once what every draw leaves alone; most draws write everything."""

    def draw(self, rng: np.random.Generator, features: Floats) -> None:
        """Write features of as many rounds as there is room for, shape (rounds, arms, dim)."""
        raise NotImplementedError

    def blocks(self, seed: int, run: int) -> Iterator[Rounds]:
        """Rounds without end, drawn anew for each run."""
        mixture = self.mixture
        rng = np.random.Generator(np.random.SFC64(seed_sequence(seed, run, ENVIRONMENT)))
        size = rounds_per_block(self.n_arms, self.dim)
        drawn = np.empty((size, self.n_arms, self.dim))
        self.prepare(drawn)
        theta = np.array(_check.array("theta", self.theta, "dim"))
        if theta.shape != (self.dim,):
            raise _check.ArgumentError(
                "theta", f"must have shape ({self.dim},), as dim says, got {theta.shape}"
            )
        while True:
            self.draw(rng, drawn)
            features = drawn
            if self.old is not None:
                again = rng.random(size) >= mixture.fresh
                which = rng.integers(mixture.n_contexts, size=int(again.sum()))
                features = drawn.copy()
                features[again] = self.old[which]
            if mixture.drift > 0.0:
                thetas = rng.normal(size=(size, self.dim))
                walk(theta, 1.0 - mixture.drift, thetas)
                means = np.einsum("tad,td->ta", features, thetas)
            else:
                means = features @ theta
            noise = mixture.noise_std * rng.normal(size=size)
            yield Rounds(features, means, self._mask(rng, size), noise=noise)

    def _mask(self, rng: np.random.Generator, size: int) -> Bools | None:
        if self.mixture.availability == 1.0:
            return None
        mask: Bools = rng.random((size, self.n_arms)) < self.mixture.availability
        mask[np.arange(size), rng.integers(self.n_arms, size=size)] = True
        return mask

    def parameters(self) -> Plain:
        """All that the rounds follow from."""
        return asdict(self.mixture)


class GaussianStream(GeneratedStream):
    """Features N(0, 1/d)."""

    def draw(self, rng: np.random.Generator, features: Floats) -> None:
        """Independent entries."""
        rng.standard_normal(out=features)
        features *= self.dim**-0.5


class SparseStream(GeneratedStream):
    """Features that are mostly 0."""

    def __init__(self, n_arms: int, dim: int, density: float, mixture: Mixture) -> None:
        self.density = _check.number("density", density, above=0, most=1)
        super().__init__(n_arms, dim, mixture)

    def draw(self, rng: np.random.Generator, features: Floats) -> None:
        """Independent entries, each other than 0 with probability `density`."""
        rng.standard_normal(out=features)
        features *= (self.density * self.dim) ** -0.5
        features[rng.random(features.shape) >= self.density] = 0.0

    def parameters(self) -> Plain:
        """All that the rounds follow from."""
        return {**super().parameters(), "density": self.density}


class JointStream(GeneratedStream):
    """A context x for all arms, and coefficients of its own for each: φ(x, a) has x in the block of arm a."""

    def __init__(self, n_arms: int, context_dim: int, mixture: Mixture) -> None:
        self.context_dim = context_dim
        super().__init__(n_arms, n_arms * context_dim, mixture)

    def prepare(self, features: Floats) -> None:
        """Zeros outside the blocks."""
        features[...] = 0.0

    def draw(self, rng: np.random.Generator, features: Floats) -> None:
        """One context per round, N(0, 1/p), in the block of each arm."""
        contexts = rng.normal(size=(len(features), self.context_dim)) * self.context_dim**-0.5
        write_blocks(contexts, features)


def write_blocks(contexts: Floats, features: Floats, first: int = 0) -> None:
    """Write each context into the block of each arm, the first of which begins in column `first`."""
    rounds, size = contexts.shape
    arms = features.shape[1]
    if features.shape[0] != rounds or features.shape[2] < first + arms * size:
        raise ValueError(
            f"features must have shape ({rounds}, arms, {first} + arms * {size}), as the contexts ask for, got "
            f"{features.shape}"
        )
    # The blocks of all arms as one view: a step along the arms is also one along the blocks.
    by_round, by_arm, by_number = features.strides
    view = np.lib.stride_tricks.as_strided(
        features[:, :, first:],
        shape=(rounds, arms, size),
        strides=(by_round, by_arm + size * by_number, by_number),
    )
    view[...] = contexts[:, None, :]


def gaussian(
    n_arms: int = 10,
    dim: int = 10,
    *,
    noise_std: float = 1.0,
    fresh: float = 1.0,
    n_contexts: int = 100,
    drift: float = 0.0,
    availability: float = 1.0,
    seed: int = 0,
) -> GeneratedStream:
    """Arms with Gaussian features N(0, I/d), θ ~ N(0, I): mean rewards are about N(0, 1).

    Args:
        n_arms: arms of each round.
        dim: d.
        noise_std: σ.
        fresh: the share of rounds whose features are new; the others have those of one of `n_contexts` contexts.
        n_contexts: how many contexts come again.
        drift: how fast θ moves: θ_t = (1 - drift) θ_{t-1} + noise, so that it stays N(0, I). 0 is not at all.
        availability: the probability of each arm of a round to be available; one arm always is.
        seed: of θ and of the contexts that come again.

    Example:
        >>> import solid_bandits as sb
        >>> stream = sb.streams.gaussian(n_arms=5, dim=4)
        >>> results = sb.simulate(stream, {"Greedy": sb.Greedy()}, horizon=100, runs=2, jobs=1)
    """
    mixture = Mixture(noise_std, fresh, n_contexts, drift, availability, seed)
    return GaussianStream(_size("n_arms", n_arms), _size("dim", dim), mixture)


def sparse(
    n_arms: int = 10,
    dim: int = 100,
    density: float = 0.1,
    *,
    noise_std: float = 1.0,
    fresh: float = 1.0,
    n_contexts: int = 100,
    drift: float = 0.0,
    availability: float = 1.0,
    seed: int = 0,
) -> GeneratedStream:
    """The same as `gaussian` with features of which a share `density` is not 0.

    Example:
        >>> import solid_bandits as sb
        >>> stream = sb.streams.sparse(n_arms=5, dim=10, density=0.2)
        >>> stream.n_arms, stream.dim
        (5, 10)
    """
    mixture = Mixture(noise_std, fresh, n_contexts, drift, availability, seed)
    return SparseStream(_size("n_arms", n_arms), _size("dim", dim), density, mixture)


def joint(
    n_arms: int = 10,
    context_dim: int = 5,
    *,
    noise_std: float = 1.0,
    fresh: float = 1.0,
    n_contexts: int = 100,
    drift: float = 0.0,
    availability: float = 1.0,
    seed: int = 0,
) -> GeneratedStream:
    """A Gaussian context for all arms, and coefficients of its own for each arm: d = n_arms * context_dim.

    The other arguments are those of `gaussian`.

    Example:
        >>> import solid_bandits as sb
        >>> stream = sb.streams.joint(n_arms=3, context_dim=2)
        >>> stream.dim  # each arm has coefficients of its own
        6
    """
    mixture = Mixture(noise_std, fresh, n_contexts, drift, availability, seed)
    return JointStream(_size("n_arms", n_arms), _size("context_dim", context_dim), mixture)


def _size(name: str, value: int) -> int:
    return _check.integer(name, value, least=1)
