"""The finite contextual linear bandit problem of Section 2, validated once, on construction."""

import hashlib
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from solid_bandits._internal import checks, files, wording
from solid_bandits._internal.types import Floats, Ints
from solid_bandits.core.setting import Setting, Table, check_features, make_setting, make_table

MOST_NUMBERS = 2**27
"""Largest number of entries in the features of a problem: they take 1 GiB."""

_LARGEST_ARRAYS = files.LARGEST_FILE - 2**16
"""Largest number of bytes of the arrays in a file; their headers take some more."""


def check_size(n_contexts: int, n_arms: int, dim: int) -> None:
    """Raise an error naming the largest dimension if features of this size are too many, before they are drawn."""
    sizes = {"n_contexts": n_contexts, "n_arms": n_arms, "dim": dim}
    if math.prod(sizes.values()) > MOST_NUMBERS:
        largest = max(sizes, key=lambda name: sizes[name])
        raise checks.ArgumentError(
            largest,
            f"must leave n_contexts * n_arms * dim at most {MOST_NUMBERS:,}, got {n_contexts} * {n_arms} * {dim}",
        )


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """A contextual linear bandit with finitely many contexts and arms (Section 2 of the paper).

    At each step a context x is drawn from ρ, the policy pulls an arm a and receives φ(x, a)ᵀθ* + N(0, σ²).

    Args:
        features: φ, shape (contexts, arms, dim).
        theta: θ*, shape (dim,).
        context_probs: ρ, shape (contexts,), each > 0; uniform if None.
        noise_std: σ > 0.
        theta_bound: B >= ‖θ*‖, which a policy may assume; ‖θ*‖ if None. If declared, it also restricts the
            alternatives of the lower bound to ‖θ'‖ <= B.

    Example:
        >>> import solid_bandits as sb
        >>> sb.Problem(features=[[[1, 0], [0, 1]]], theta=[1, 0.5], noise_std=0.5)
        Problem(contexts=1, arms=2, dim=2, noise_std=0.5, least gap=0.500, L=1.00, B=1.12)

    """

    features: Floats
    theta: Floats
    context_probs: Floats
    noise_std: float
    theta_bound: float | None

    def __init__(
        self,
        features: ArrayLike,
        theta: ArrayLike,
        context_probs: ArrayLike | None = None,
        noise_std: float = 1.0,
        theta_bound: float | None = None,
    ) -> None:
        table = check_features("features", features, "contexts", "arms", "dim")
        parameter = checks.array("theta", theta, "dim")
        if parameter.shape[0] != table.shape[2]:
            raise ValueError(
                f"theta has {parameter.shape[0]} entries; features of shape {table.shape} need {table.shape[2]}"
            )
        if theta_bound is not None:
            theta_bound = checks.number("theta_bound", theta_bound, above=0)
            # A bound computed from theta elsewhere may differ from its norm by rounding.
            if theta_bound < float(np.linalg.norm(parameter)) * (1 - 1e-12):
                raise ValueError(
                    f"theta_bound is {theta_bound}; give at least the norm of theta, {np.linalg.norm(parameter):g}"
                )
        with np.errstate(over="ignore", invalid="ignore"):
            sizes = np.array([np.abs(table @ parameter).max(), np.linalg.norm(parameter)])
        if not np.isfinite(sizes).all():
            raise ValueError("theta and features are too large: their products overflow; give smaller units")
        store = object.__setattr__  # the only place where the frozen fields are written
        store(self, "features", table)
        store(self, "theta", parameter)
        store(self, "context_probs", _probabilities(context_probs, table.shape[0]))
        store(self, "noise_std", checks.number("noise_std", noise_std, above=0))
        store(self, "theta_bound", theta_bound)

    @property
    def n_contexts(self) -> int:
        """Number of contexts, the size of X."""
        return self.features.shape[0]

    @property
    def n_arms(self) -> int:
        """Number of arms, the size of A."""
        return self.features.shape[1]

    @property
    def dim(self) -> int:
        """D."""
        return self.features.shape[2]

    @cached_property
    def means(self) -> Floats:
        """μ(x, a) = φ(x, a)ᵀθ*, shape (contexts, arms)."""
        return _frozen(self.features @ self.theta)

    @cached_property
    def optimal_arms(self) -> Ints:
        """a*(x) = argmax_a μ(x, a), shape (contexts,); the first one in a tie."""
        result: Ints = np.argmax(self.means, axis=1).astype(np.int64)
        result.flags.writeable = False
        return result

    @cached_property
    def gaps(self) -> Floats:
        """Δ(x, a) = max_a' μ(x, a') - μ(x, a), shape (contexts, arms)."""
        return _frozen(self.means.max(axis=1, keepdims=True) - self.means)

    @cached_property
    def L(self) -> float:
        """The largest norm of a feature."""
        return self.table.feature_bound

    @cached_property
    def B(self) -> float:
        """The declared bound on ‖θ*‖, or ‖θ*‖ itself."""
        return float(np.linalg.norm(self.theta)) if self.theta_bound is None else self.theta_bound

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of every number in the problem: equal for equal problems, whatever built them."""
        digest = hashlib.sha256()
        for part in (self.features, self.theta, self.context_probs):
            digest.update(repr(part.shape).encode())
            digest.update(part.tobytes())
        digest.update(repr((self.noise_std, self.theta_bound)).encode())
        return digest.hexdigest()[:16]

    def setting(self, horizon: int | None = None, tell_noise: bool = True) -> Setting:
        """Return what a policy may know of this problem: neither θ* nor ρ; the horizon if known, and σ if it is
        told.
        """
        return make_setting(self.dim, self.noise_std if tell_noise else None, self.B or None, horizon)

    @cached_property
    def table(self) -> Table:
        """The features, for policies that plan over all contexts."""
        return make_table(self.features)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an `.npz` file with the constructor's field names."""
        target = files.path_of("path", path)
        if target.suffix != ".npz":
            raise ValueError(f"path is {os.fspath(path)!r}; give a file name ending in .npz")
        fields = {
            "features": self.features,
            "theta": self.theta,
            "context_probs": self.context_probs,
            "noise_std": np.float64(self.noise_std),
        }
        if self.theta_bound is not None:
            fields["theta_bound"] = np.float64(self.theta_bound)
        if sum(values.nbytes for values in fields.values()) > _LARGEST_ARRAYS:
            raise ValueError(
                f"features take {files.size(self.features.nbytes)}; a problem file holds at most "
                f"{files.size(_LARGEST_ARRAYS)}"
            )
        files.write_whole(target, lambda file: np.savez(file, **fields))  # type: ignore[arg-type]  # its stub

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Problem":
        """Read an `.npz` file with fields features and theta, and optionally the constructor's others."""
        known = ("features", "theta", "context_probs", "noise_std", "theta_bound")
        may_be = f"its fields may be {', '.join(known)}"
        source = files.path_of("path", path)
        name = os.fspath(source)
        try:
            fields: dict[str, Any] = {
                **files.read_archive(files.read_bytes(source), dict.fromkeys(known, "biufc"))
            }
        except OSError as error:
            raise ValueError(f"problem file {name!r} cannot be read ({error.strerror or error})") from None
        except files.ArchiveError as error:
            raise ValueError(f"problem file {name!r} {error}; {may_be}") from None
        except ValueError:
            raise ValueError(
                f"problem file {name!r} is not a whole .npz of plain numbers; write one with numpy.savez"
            ) from None
        missing = sorted({"features", "theta"} - set(fields))
        if missing:
            raise ValueError(f"problem file {name!r} lacks {', '.join(missing)}; {may_be}")
        for scalar in ("noise_std", "theta_bound"):
            if scalar in fields:
                if fields[scalar].size != 1:
                    raise ValueError(
                        f"{scalar} in {name!r} has shape {fields[scalar].shape}; give one number"
                    )
                fields[scalar] = fields[scalar].reshape(()).item()
        return cls(**fields)

    def __reduce__(self) -> tuple[Callable[..., "Problem"], tuple[Any, ...]]:
        """Make copies and pickles by the constructor, so that they are checked and read-only too."""
        return type(self), (
            self.features,
            self.theta,
            self.context_probs,
            self.noise_std,
            self.theta_bound,
        )

    def __repr__(self) -> str:
        positive = self.gaps[self.gaps > 0]
        least = wording.number(positive.min()) if positive.size else "none"
        return (
            f"Problem(contexts={self.n_contexts}, arms={self.n_arms}, dim={self.dim}, "
            f"noise_std={wording.given(self.noise_std)}, least gap={least}, "
            f"L={wording.number(self.L)}, B={wording.number(self.B)})"
        )


def _probabilities(context_probs: ArrayLike | None, n_contexts: int) -> Floats:
    if context_probs is None:
        return _frozen(np.full(n_contexts, 1.0 / n_contexts))
    probs = checks.array("context_probs", context_probs, "contexts")
    if probs.shape[0] != n_contexts:
        raise ValueError(
            f"context_probs has {probs.shape[0]} entries; the features have {n_contexts} contexts"
        )
    if probs.min() <= 0:
        raise ValueError(
            f"context_probs holds {probs.min():g} for context {int(probs.argmin())}; each must be > 0 "
            "(leave out contexts that never come)"
        )
    if abs(probs.sum() - 1) > 1e-9:
        raise ValueError(f"context_probs sums to {probs.sum():.12g}; it must sum to 1")
    return probs


def _frozen(values: Floats) -> Floats:
    values.flags.writeable = False
    return values
