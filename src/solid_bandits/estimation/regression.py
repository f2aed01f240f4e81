"""The regression that a policy decides by: how it learns from rewards, and what it says about the arms on offer.

A policy's rule calls a few functions, which choose their code by the type of the regression: `observe_offer` before
each decision, `observe_reward` after it, and the ones below in between. This module states what they must do. `ridge`
has the one that all policies use, ridge regression with Gaussian noise; `blocks` has the same with coefficients for
each arm. Another likelihood is a file with a named tuple, its kernels and a call of `register_regression`.

A *row* represents an arm in an offer: its features. A *model* is a vector that may be θ, such as the estimate or a draw
around it. Only the regression knows which entries of a model belong to a row.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.dispatch import by_type, variant
from solid_bandits._internal.kernel_cache import note_modules
from solid_bandits._internal.types import Bools, Floats, Words

EVIDENCE = "evidence"
"""As a value of `ridge`: choose the one that makes the rewards most likely."""


# -- functions that a policy calls, for every type of regression --


@by_type
def observe_offer(regression: Any, arms: Floats, available: Bools) -> None:
    """Observe the arms on offer, once before each decision: evidence fades, and a ridge may take its scale from
    them.
    """
    raise NotImplementedError


@by_type
def observe_reward(regression: Any, features: Floats, reward: float, age: int) -> None:
    """Learn from a reward whose decision was made `age` decisions ago; 0 is the last one."""
    raise NotImplementedError


@by_type
def write_theta(regression: Any, theta: Floats) -> None:
    """Write θ-hat into `theta`."""
    raise NotImplementedError


@by_type
def predict_reward(regression: Any, vector: Floats) -> float:
    """Return the expected reward of an arm with these features."""
    raise NotImplementedError


@by_type
def value(regression: Any, features: Floats, model: Floats) -> float:
    """Return φᵀθ' of an arm with these features under a model θ'."""
    raise NotImplementedError


@by_type
def first_coefficient(regression: Any, features: Floats) -> int:
    """Return the index in a model at which the coefficients of these features begin: 0 where all arms share them."""
    raise NotImplementedError


@by_type
def squared_norm(regression: Any, vector: Floats) -> float:
    """Return ‖φ‖²_{V^-1} of one vector, which is overwritten."""
    raise NotImplementedError


@by_type
def estimate_arms(regression: Any, arms: Floats, first: int) -> int:
    """Write mean and squared norm of the arms from `first` on into `regression.work.arms`; return how many."""
    raise NotImplementedError


@by_type
def estimate_differences(regression: Any, arms: Floats, best: int, first: int) -> int:
    """Write gap and squared norm of φ* - φ for the arms from `first` on, φ* belonging to `best`; return how many."""
    raise NotImplementedError


@by_type
def compare_arms(regression: Any, features: Floats, other: Floats) -> tuple[float, float]:
    """Return gap and squared norm of the difference of two arms: (φ - φ')ᵀθ-hat and ‖φ - φ'‖²_{V^-1}."""
    raise NotImplementedError


@by_type
def draw_model(regression: Any, spread: float, model: Floats, rng: Words) -> None:
    """Write a draw of θ around θ-hat, of covariance spread² V^-1, into `model`."""
    raise NotImplementedError


@by_type
def noise_deviation(regression: Any) -> float:
    """Return σ if it is told, else its estimate.

    Example:
        >>> import solid_bandits as sb
        >>> setting = sb.extend.Setting(dim=2, noise_std=0.5, theta_bound=0.0, horizon=0)
        >>> sb.extend.noise_deviation(sb.extend.make_regression(setting))
        0.5
    """
    raise NotImplementedError


@by_type
def degrees_of_freedom(regression: Any) -> float:
    """Return the degrees of freedom of the estimate of σ; 0 stands for a normal distribution, where σ is told.

    Example:
        >>> import solid_bandits as sb
        >>> setting = sb.extend.Setting(dim=2, noise_std=0.5, theta_bound=0.0, horizon=0)
        >>> unknown = setting._replace(noise_std=0.0)
        >>> sb.extend.degrees_of_freedom(sb.extend.make_regression(unknown))
        1.0
    """
    raise NotImplementedError


@by_type
def log_det_ratio(regression: Any) -> float:
    """Return log(det V / det νI), >= 0."""
    raise NotImplementedError


@by_type
def fits(regression: Any, dim: int) -> bool:
    """Return whether all arrays fit rows with `dim` entries; checked for policies of a user's own."""
    raise NotImplementedError


@by_type
def models_fit(regression: Any, size: int) -> bool:
    """Return whether all arrays fit models with `size` entries."""
    raise NotImplementedError


INTERFACE = (
    observe_offer, observe_reward, write_theta, predict_reward, value, first_coefficient, squared_norm, estimate_arms,
    estimate_differences, compare_arms, draw_model, noise_deviation, degrees_of_freedom, log_det_ratio, fits,
    models_fit,
)  # fmt: skip


def register_regression(kind: type, **kernels: Callable[..., Any]) -> None:
    """Register the kernels of a type of regression, by the names above; those that none of its policies calls may be
    absent.

    Example:
        >>> from typing import NamedTuple
        >>> import solid_bandits as sb
        >>> class Ours(NamedTuple):
        ...     estimator: object
        >>> sb.extend.register_regression(Ours, **sb.extend.OF_A_TRIANGLE)  # and observe_reward of its own
    """
    known = {function.__name__: function for function in INTERFACE}
    for name, kernel in kernels.items():
        variant(known[name], kind, kernel)
    registered = (function.__dict__["kernels"].get(kind) for function in INTERFACE)
    note_modules(kind, *(kernel for kernel in registered if kernel is not None))


def is_regression(value: Any) -> bool:
    """Return whether this is a regression of a registered type."""
    return type(value) in observe_reward.__dict__["kernels"]


@jit
def predict_linearly(regression: Any, vector: Floats) -> float:
    """Return φᵀθ-hat: the `predict_reward` of a regression in which rewards are linear."""
    write_theta(regression, regression.work.theta)
    return value(regression, vector, regression.work.theta)


def predicts_linearly(regression: Any) -> bool:
    """Return whether the expected reward is φᵀθ-hat, with θ holding all coefficients."""
    return predict_reward.__dict__["kernels"].get(type(regression)) is predict_linearly


@jit
def best_of_model(regression: Any, arms: Floats, available: Bools, model: Floats) -> int:
    """Return the available arm with the largest φᵀθ' under a model θ', the first one in a tie."""
    best = -1
    largest = -np.inf
    for arm in range(arms.shape[0]):
        if available[arm]:
            found = value(regression, arms[arm], model)
            if best < 0 or found > largest:
                best, largest = arm, found
    return best


@jit
def best_estimated(regression: Any, arms: Floats, available: Bools) -> int:
    """Return the greedy arm; leaves θ-hat in `regression.work.theta`."""
    write_theta(regression, regression.work.theta)
    return best_of_model(regression, arms, available, regression.work.theta)
