"""The regression that a policy decides by: how rewards are learnt from, and what it then says of the arms on offer.

A policy's rule asks a few functions, and they choose their code by the type of the regression: `observe_offer` before
each decision and `observe_reward` after it, and between them those below. Here is what they must do. `ridge` has the
one that all policies have, ridge regression with Gaussian noise; `blocks` the same with coefficients for each arm.
Another likelihood is a file with a named tuple, its kernels and a call of `register_regression`.

A *row* is what stands for an arm in an offer, its features; a *model* is a vector that may be θ, such as the estimate
or a draw around it. Which entries of a model belong to a row is the regression's to know.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.dispatch import by_type, variant
from solid_bandits._internal.kernel_cache import note_modules
from solid_bandits._internal.types import Bools, Floats, Words

EVIDENCE = "evidence"
"""As a ridge: the one that makes the rewards most likely."""


# -- what a policy asks of a regression, whatever its type --


@by_type
def observe_offer(regression: Any, arms: Floats, available: Bools) -> None:
    """Look at the arms on offer, once before each decision: evidence fades, a ridge may take its scale from them."""
    raise NotImplementedError


@by_type
def observe_reward(regression: Any, features: Floats, reward: float, age: int) -> None:
    """Learn from a reward; its decision was made `age` decisions ago, 0 being the last one."""
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
    """Where in a model the coefficients of these features begin: 0 where all arms share them."""
    raise NotImplementedError


@by_type
def squared_norm(regression: Any, vector: Floats) -> float:
    """Return ‖φ‖²_{V^-1} of one vector, which is used up."""
    raise NotImplementedError


@by_type
def estimate_arms(regression: Any, arms: Floats, first: int) -> int:
    """Write mean and squared norm of the arms from `first` on into `regression.work.arms`; return how many."""
    raise NotImplementedError


@by_type
def estimate_differences(regression: Any, arms: Floats, best: int, first: int) -> int:
    """Return the same of φ* - φ for the arms from `first` on, φ* being the features of arm `best`: gaps and their norms."""
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
    """Return σ where it is told, else its estimate.

    Example:
        >>> import solid_bandits as sb
        >>> setting = sb.extend.Setting(dim=2, noise_std=0.5, theta_bound=0.0, horizon=0)
        >>> sb.extend.noise_deviation(sb.extend.make_regression(setting))
        0.5
    """
    raise NotImplementedError


@by_type
def degrees_of_freedom(regression: Any) -> float:
    """Of the estimate of σ; 0 stands for a normal distribution, where σ is told.

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
    """Return whether every array of it fits rows of so many entries: asked on behalf of policies of a user's own."""
    raise NotImplementedError


@by_type
def models_fit(regression: Any, size: int) -> bool:
    """Return whether every array of it fits models of so many entries."""
    raise NotImplementedError


INTERFACE = (
    observe_offer, observe_reward, write_theta, predict_reward, value, first_coefficient, squared_norm, estimate_arms,
    estimate_differences, compare_arms, draw_model, noise_deviation, degrees_of_freedom, log_det_ratio, fits,
    models_fit,
)  # fmt: skip


def register_regression(kind: type, **kernels: Callable[..., Any]) -> None:
    """Make these the kernels of a type of regression, by the names above; those that no policy of it asks may lack.

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
    """Return whether its expected reward is φᵀθ-hat, θ being all of its coefficients."""
    return predict_reward.__dict__["kernels"].get(type(regression)) is predict_linearly


@jit
def best_of_model(regression: Any, arms: Floats, available: Bools, model: Floats) -> int:
    """Return the available arm with the largest φᵀθ' under a model θ', the first one where several tie."""
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
