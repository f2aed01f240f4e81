"""Generated streams with a linear truth: contexts that never repeat, or seldom do."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.compiling import jit_apart
from solid_bandits._internal.parameters import check_parameters, parameter, parameters_of
from solid_bandits._internal.types import Bools, Floats, Plain
from solid_bandits.core.problem import MOST_NUMBERS
from solid_bandits.core.randomness import ENVIRONMENT, seed_sequence
from solid_bandits.streams.base import Stream
from solid_bandits.streams.rounds import Rounds, rounds_per_block

_TRUTH = 2
"""Role of the seed that draws θ and the contexts that repeat."""


@jit_apart
def walk(theta: Floats, keep: float, steps: Floats) -> None:
    """Replace each row ξ of `steps` by θ = keep · θ + √(1 - keep²) ξ, with θ the previous row; `theta` ends as the
    last.
    """
    gain = math.sqrt(1.0 - keep * keep)
    for t in range(steps.shape[0]):
        for i in range(theta.shape[0]):
            theta[i] = keep * theta[i] + gain * steps[t, i]
            steps[t, i] = theta[i]


@dataclass(eq=False, repr=False, kw_only=True)
class GeneratedStream(Stream):
    """Rewards φᵀθ + N(0, σ²) with θ ~ N(0, I), as in `GaussianStream`; subclasses draw the features."""

    noise_std: float = parameter(1.0, above=0)
    fresh: float = parameter(1.0, least=0, most=1)
    n_contexts: int = parameter(100, least=1)
    drift: float = parameter(0.0, least=0, most=1)
    availability: float = parameter(1.0, above=0, most=1)
    seed: int = parameter(0, least=0)

    def __post_init__(self) -> None:
        check_parameters(self)
        self.begin()
        self.noise_std = float(self.noise_std)
        if self.n_arms * self.dim > MOST_NUMBERS:
            raise checks.ArgumentError("n_arms", f"must leave n_arms * dim at most {MOST_NUMBERS:,}")
        rng = np.random.Generator(np.random.SFC64(seed_sequence(self.seed, 0, _TRUTH)))
        self.theta: Floats = rng.normal(size=self.dim)
        self.theta.flags.writeable = False
        if self.drift == 0.0:
            self.theta_bound = float(np.linalg.norm(self.theta))
        self.old: Floats | None = None
        if self.fresh < 1.0:
            if self.n_contexts * self.n_arms * self.dim > MOST_NUMBERS:
                raise checks.ArgumentError(
                    "n_contexts", f"must leave n_contexts * n_arms * dim at most {MOST_NUMBERS:,}"
                )
            self.old = np.empty((self.n_contexts, self.n_arms, self.dim))
            self.prepare(self.old)
            self.draw(rng, self.old)

    def begin(self) -> None:
        """Set attributes that follow from the parameters of a subclass."""

    def prepare(self, features: Floats) -> None:
        """Write once the entries that no draw changes; most streams draw all entries."""

    def draw(self, rng: np.random.Generator, features: Floats) -> None:
        """Fill `features`, shape (rounds, arms, dim), with drawn rounds."""
        raise NotImplementedError

    def blocks(self, seed: int, run: int) -> Iterator[Rounds]:
        """Yield rounds without end, drawn anew for each run."""
        rng = np.random.Generator(np.random.SFC64(seed_sequence(seed, run, ENVIRONMENT)))
        size = rounds_per_block(self.n_arms, self.dim)
        drawn = np.empty((size, self.n_arms, self.dim))
        self.prepare(drawn)
        theta = np.array(checks.array("theta", self.theta, "dim"))
        if theta.shape != (self.dim,):
            raise checks.ArgumentError(
                "theta", f"must have shape ({self.dim},), as dim says, got {theta.shape}"
            )
        while True:
            self.draw(rng, drawn)
            features = drawn
            if self.old is not None:
                again = rng.random(size) >= self.fresh
                which = rng.integers(self.n_contexts, size=int(again.sum()))
                features = drawn.copy()
                features[again] = self.old[which]
            if self.drift > 0.0:
                thetas = rng.normal(size=(size, self.dim))
                walk(theta, 1.0 - self.drift, thetas)
                means = np.einsum("tad,td->ta", features, thetas)
            else:
                means = features @ theta
            noise = self.noise_std * rng.normal(size=size)
            yield Rounds(features, means, self._mask(rng, size), noise=noise)

    def _mask(self, rng: np.random.Generator, size: int) -> Bools | None:
        if self.availability == 1.0:
            return None
        mask: Bools = rng.random((size, self.n_arms)) < self.availability
        mask[np.arange(size), rng.integers(self.n_arms, size=size)] = True
        return mask

    def parameters(self) -> Plain:
        """Return everything that the rounds depend on."""
        return {one.name: one.value for one in parameters_of(self)}


@dataclass(eq=False, repr=False)
class GaussianStream(GeneratedStream):
    """Arms with Gaussian features N(0, I/d), θ ~ N(0, I): mean rewards are about N(0, 1).

    Args:
        n_arms: number of arms in each round.
        dim: the feature dimension d.
        noise_std: σ.
        fresh: the share of rounds whose features are new; the others repeat one of `n_contexts` contexts.
        n_contexts: number of contexts that repeat.
        drift: how fast θ moves: θ_t = (1 - drift) θ_{t-1} + noise, so that it stays N(0, I). With 0 it does not move.
        availability: probability that an arm is available in a round; at least one arm always is.
        seed: seed of θ and of the contexts that repeat.

    Example:
        >>> import solid_bandits as sb
        >>> stream = sb.streams.gaussian(n_arms=5, dim=4)
        >>> results = sb.simulate(stream, {"Greedy": sb.Greedy()}, horizon=100, runs=2, jobs=1)
    """

    n_arms: int = parameter(10, least=1)
    dim: int = parameter(10, least=1)

    def draw(self, rng: np.random.Generator, features: Floats) -> None:
        """Draw independent entries N(0, 1/d)."""
        rng.standard_normal(out=features)
        features *= self.dim**-0.5


@dataclass(eq=False, repr=False)
class SparseStream(GeneratedStream):
    """Like `gaussian`, but only a share `density` of the features is nonzero.

    Example:
        >>> import solid_bandits as sb
        >>> stream = sb.streams.sparse(n_arms=5, dim=10, density=0.2)
        >>> stream.n_arms, stream.dim
        (5, 10)
    """

    n_arms: int = parameter(10, least=1)
    dim: int = parameter(100, least=1)
    density: float = parameter(0.1, above=0, most=1)

    def draw(self, rng: np.random.Generator, features: Floats) -> None:
        """Draw independent entries, each nonzero with probability `density`."""
        rng.standard_normal(out=features)
        features *= (self.density * self.dim) ** -0.5
        features[rng.random(features.shape) >= self.density] = 0.0


@dataclass(eq=False, repr=False)
class JointStream(GeneratedStream):
    """A Gaussian context for all arms, and coefficients of its own for each arm: d = n_arms * context_dim.

    φ(x, a) has x ~ N(0, I/p) in the block of arm a. The other arguments are those of `gaussian`.

    Example:
        >>> import solid_bandits as sb
        >>> stream = sb.streams.joint(n_arms=3, context_dim=2)
        >>> stream.dim  # each arm has coefficients of its own
        6
    """

    n_arms: int = parameter(10, least=1)
    context_dim: int = parameter(5, least=1)

    def begin(self) -> None:
        """Set the dimension."""
        self.dim = self.n_arms * self.context_dim

    def prepare(self, features: Floats) -> None:
        """Write the zeros outside the blocks."""
        features[...] = 0.0

    def draw(self, rng: np.random.Generator, features: Floats) -> None:
        """Draw one context per round, N(0, 1/p), and write it into the block of each arm."""
        contexts = rng.normal(size=(len(features), self.context_dim)) * self.context_dim**-0.5
        write_blocks(contexts, features)


def write_blocks(contexts: Floats, features: Floats, first: int = 0) -> None:
    """Write each context into the block of each arm, the first of which begins in column `first`."""
    rounds, size = contexts.shape
    arms = features.shape[1]
    if features.shape[0] != rounds or features.shape[2] < first + arms * size:
        raise ValueError(
            f"features must have shape ({rounds}, arms, {first} + arms * {size}), to fit the contexts, got "
            f"{features.shape}"
        )
    # All arms' blocks as one view, in which a step along the arms is also a step along the blocks.
    by_round, by_arm, by_number = features.strides
    view = np.lib.stride_tricks.as_strided(
        features[:, :, first:],
        shape=(rounds, arms, size),
        strides=(by_round, by_arm + size * by_number, by_number),
    )
    view[...] = contexts[:, None, :]
