"""The base class of streams: rounds that come one after the other, and need not repeat."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import NamedTuple

from solid_bandits._internal import checks, wording
from solid_bandits._internal.types import Plain
from solid_bandits.core.setting import LARGEST_DIM, Setting, make_setting
from solid_bandits.streams.ridge import RidgeFit, fit_rounds
from solid_bandits.streams.rounds import Rounds


def sizes_of(stream: "Stream") -> tuple[int, int]:
    """Return `dim` and `n_arms` of a stream, which may be a user's class."""
    dim, n_arms = (getattr(stream, name, None) for name in ("dim", "n_arms"))
    return (
        checks.integer("dim", dim, least=1, most=LARGEST_DIM),  # type: ignore[arg-type]
        checks.integer("n_arms", n_arms, least=1),  # type: ignore[arg-type]
    )


def names_of(stream: "Stream", what: str, count: int) -> list[str] | None:
    """Return `arm_names` or `feature_names` of a stream, which may be a user's class."""
    names = getattr(stream, what)
    if names is not None and (
        not isinstance(names, list | tuple)
        or len(names) != count
        or not all(isinstance(one, str) for one in names)
    ):
        raise checks.ArgumentError(what, f"must be None or {count} names, got {checks.short(names)}")
    return None if names is None else list(names)


class StreamKind(NamedTuple):
    """The properties that the streams of all runs must share if each run has its own."""

    dim: int
    n_arms: int
    linear: bool
    arm_names: tuple[str, ...] | None


def kind_of(stream: "Stream") -> StreamKind:
    """Return the kind of a stream after checking it, since it may be a user's class."""
    dim, n_arms = sizes_of(stream)
    names = names_of(stream, "arm_names", n_arms)
    linear = checks.switch("linear", stream.linear)
    return StreamKind(dim, n_arms, linear, None if names is None else tuple(names))


class Stream(ABC):
    """Rounds of features, availability and mean rewards: generated, or from data.

    A stream of your own sets `dim` and `n_arms`, and `noise_std` if its rewards are noisy, and defines `blocks`. Memory
    does not grow with the horizon as long as blocks do not.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> class Coins(sb.streams.Stream):
        ...     dim, n_arms, noise_std = 2, 3, 0.5
        ...     def blocks(self, seed, run):
        ...         rng = np.random.default_rng([seed, run])
        ...         while True:
        ...             features = rng.normal(size=(100, 3, 2))
        ...             yield sb.streams.Rounds(features, features @ [1.0, 0.5], noise=0.5 * rng.normal(size=100))
        >>> results = sb.simulate(Coins(), {"Greedy": sb.Greedy()}, horizon=100, runs=2, jobs=1)
        >>> results.final()["policy"].to_list()
        ['Greedy']
    """

    dim: int
    """The feature dimension d."""
    n_arms: int
    """Largest number of arms in a round."""
    noise_std: float | None = None
    """σ, which policies are told; None uses the residuals of the ridge fit."""
    theta_bound: float | None = None
    """B >= ‖θ*‖, which policies are told; None where it is unknown."""
    length: int | None = None
    """Number of rounds; None if they never end. Required where `linear` is False."""
    linear: bool = True
    """Whether mean rewards are linear in the features. If not, regret is also measured against a ridge fit."""
    arm_names: list[str] | None = None
    """Names of the arms, if arm number a is the same thing in every round."""
    feature_names: list[str] | None = None
    """Names of the feature columns, for warnings; columns with the same name count as one."""
    ridge: float = 1.0
    """ν of the ridge fit."""

    @abstractmethod
    def blocks(self, seed: int, run: int) -> Iterator[Rounds]:
        """Yield the rounds of a run in order; they and their noise depend only on seed and run, not on a policy."""

    def every(self) -> Iterator[Rounds]:
        """Yield every round once, in any order, for the ridge fit."""
        return self.blocks(0, 0)

    @cached_property
    def fit(self) -> RidgeFit | None:
        """The ridge fit to all known rewards; None where mean rewards are linear by construction."""
        if self.linear:
            return None
        length = self.length
        if length is not None:
            checks.integer("length", length, least=1)
        elif type(self).every is Stream.every:  # blocks may never end
            raise checks.ArgumentError(
                "length",
                "must be a number of rounds where linear is False: the ridge fit reads them all, got None",
            )
        return fit_rounds(self.every(), *sizes_of(self), checks.positive("ridge", self.ridge), length)

    def setting(self, horizon: int | None = None, tell_noise: bool = True) -> Setting:
        """Return what a policy may know, σ included if it is told."""
        noise_std = self.noise_std
        if not tell_noise:
            return make_setting(self.dim, None, self.theta_bound, horizon)
        if noise_std is None:
            if self.fit is None:
                raise checks.ArgumentError(
                    "noise_std", "must be given for a stream without a ridge fit, got None"
                )
            noise_std = self.fit.noise_std
        return make_setting(self.dim, noise_std, self.theta_bound, horizon)

    def shared(self) -> AbstractContextManager[None]:
        """Return a context in which processes that play the stream share its data, if it has any."""
        return nullcontext()

    def parameters(self) -> Plain:
        """Return the parameters of the stream as plain data; different streams must have different parameters."""
        return {}

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of all parameters, and of the data if there are any."""
        told = {"kind": type(self).__qualname__, "dim": self.dim, "n_arms": self.n_arms, **self.parameters()}
        return hashlib.sha256(json.dumps(told, sort_keys=True, default=repr).encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        rounds = "without end" if self.length is None else wording.count(self.length, "round")
        return f"{type(self).__name__}({rounds}, arms={self.n_arms}, dim={self.dim})"
