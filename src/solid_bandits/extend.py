"""Building blocks for a policy of your own: its contract, the regression, the arms on offer, random numbers.

Call these functions from functions that `jit` of this module compiles; docs/own-policy.md builds a policy with them.
Each checks that its arrays fit together, which this package's own policies know of theirs.
"""

from typing import Any

from solid_bandits._internal import checks
from solid_bandits._internal.compiling import jit as _jit
from solid_bandits._internal.compiling import own_jit as jit
from solid_bandits._internal.types import Bools, Floats, Words
from solid_bandits.core import randomness as _randomness
from solid_bandits.core.setting import LARGEST_DIM, Setting, Table
from solid_bandits.estimation import arms as _arms
from solid_bandits.estimation import regression as _regression
from solid_bandits.estimation import ridge as _ridge
from solid_bandits.estimation.arms import WIDE, count_available
from solid_bandits.estimation.blocks import Blocks, start_regression
from solid_bandits.estimation.linalg import vectors as _vectors
from solid_bandits.estimation.regression import degrees_of_freedom, noise_deviation, register_regression
from solid_bandits.estimation.ridge import LONGEST, OF_A_TRIANGLE, SHORTEST, Regression
from solid_bandits.policies.contract import DecisionPolicy, Kernels, TablePolicy
from solid_bandits.policies.regression_policy import RegressionPolicy

__all__ = [
    "OF_A_TRIANGLE", "DecisionPolicy", "Kernels", "Regression", "RegressionPolicy", "Setting", "Table", "TablePolicy",
    "best_available", "best_estimated", "choose", "count_available", "degrees_of_freedom", "dot", "draw_model",
    "estimate_arms", "jit", "make_regression", "noise_deviation", "normal", "observe_offer", "observe_reward",
    "observe_row", "predict_reward", "register_regression", "squared_norm", "uniform", "value", "write_theta",
]  # fmt: skip


def make_regression(
    setting: Setting, ridge: float | str = 1.0, half_life: float | None = None, norms: bool = False
) -> Blocks | Regression:
    """Return a regression before any reward, to be kept in the agent's state as `regression`.

    Args:
        setting: the setting that `start` received.
        ridge: ν > 0, or "evidence".
        half_life: number of decisions in which evidence loses half its weight; None for never.
        norms: whether `estimate_arms` will be called.

    Example:
        >>> import solid_bandits as sb
        >>> setting = sb.extend.Setting(dim=2, noise_std=0.5, theta_bound=0.0, horizon=0)
        >>> sb.extend.make_regression(setting, ridge=2.0).estimator.weights
        array([2., 2.])
    """
    checks.integer("setting.dim", setting.dim, least=2 if setting.blocks else 1, most=LARGEST_DIM)
    if half_life is not None:
        checks.number("half_life", half_life, least=SHORTEST, most=LONGEST)
    return start_regression(setting, ridge, half_life, norms, relative=False)


@_jit
def _check(regression: Any, dim: int) -> None:
    """Raise a ValueError unless the regression takes rows with `dim` entries."""
    if not _regression.fits(regression, dim):
        raise ValueError("regression and arrays must be of one dim")


@_jit
def _check_model(regression: Any, size: int) -> None:
    """Raise a ValueError unless the regression takes models with `size` entries."""
    if not _regression.models_fit(regression, size):
        raise ValueError("regression and arrays must be of one dim")


@_jit
def observe_offer(regression: Any, arms: Floats, available: Bools) -> None:
    """Observe the arms on offer; call this once at the beginning of `act`.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> setting = sb.extend.Setting(dim=2, noise_std=0.5, theta_bound=0.0, horizon=0)
        >>> regression, arms = sb.extend.make_regression(setting), np.eye(2)
        >>> sb.extend.observe_offer(regression, arms, np.array([True, True]))
    """
    _check(regression, arms.shape[1])
    if available.shape[0] != arms.shape[0]:
        raise ValueError("observe_offer must be given one truth value per arm")
    _regression.observe_offer(regression, arms, available)


@_jit
def observe_reward(regression: Any, features: Floats, reward: float) -> None:
    """Learn from a reward, in an `update` of your own; a policy without one does this by default.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> setting = sb.extend.Setting(dim=2, noise_std=0.5, theta_bound=0.0, horizon=0)
        >>> regression, theta = sb.extend.make_regression(setting), np.empty(2)
        >>> sb.extend.observe_reward(regression, np.array([1.0, 0.0]), 3.0)
        >>> sb.extend.write_theta(regression, theta)
        >>> theta
        array([1.5, 0. ])
    """
    _check(regression, features.shape[0])
    _regression.observe_reward(regression, features, reward, 0)


@_jit
def observe_row(regression: Any, row: Floats, target: float) -> None:
    """Rotate a row of least squares into the triangle, in the `observe_reward` of a regression of your own.

    With √w times features and target it has weight w.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> setting = sb.extend.Setting(dim=1, noise_std=1.0, theta_bound=0.0, horizon=0)
        >>> regression = sb.extend.make_regression(setting)
        >>> sb.extend.observe_row(regression, np.array([2.0]), 6.0)  # features 1 and target 3, of weight 4
        >>> round(sb.extend.predict_reward(regression, np.array([1.0])), 6)  # 4 * 3 / (4 + 1)
        2.4
    """
    _check(regression, row.shape[0])
    _ridge.learn(None, regression, row, target, 0)


@_jit
def predict_reward(regression: Any, vector: Floats) -> float:
    """Return the expected reward of an arm with these features: φᵀθ-hat, where it is linear.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> setting = sb.extend.Setting(dim=2, noise_std=0.5, theta_bound=0.0, horizon=0)
        >>> regression, arm = sb.extend.make_regression(setting), np.array([1.0, 0.0])
        >>> sb.extend.observe_reward(regression, arm, 3.0)
        >>> sb.extend.predict_reward(regression, arm)
        1.5
    """
    _check(regression, vector.shape[0])
    return _regression.predict_reward(regression, vector)


@_jit
def write_theta(regression: Any, theta: Floats) -> None:
    """Write θ-hat into `theta`.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> setting = sb.extend.Setting(dim=2, noise_std=0.5, theta_bound=0.0, horizon=0)
        >>> theta = np.empty(2)
        >>> sb.extend.write_theta(sb.extend.make_regression(setting), theta)
        >>> theta
        array([0., 0.])
    """
    _check_model(regression, theta.shape[0])
    _regression.write_theta(regression, theta)


@_jit
def best_estimated(regression: Any, arms: Floats, available: Bools) -> int:
    """Return the available arm with the largest φᵀθ-hat; leaves θ-hat in `regression.work.theta`.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> setting = sb.extend.Setting(dim=2, noise_std=0.5, theta_bound=0.0, horizon=0)
        >>> regression, arms = sb.extend.make_regression(setting), np.eye(2)
        >>> sb.extend.observe_reward(regression, arms[1], 1.0)
        >>> sb.extend.best_estimated(regression, arms, np.array([True, True]))
        1
    """
    _check(regression, arms.shape[1])
    if available.shape[0] != arms.shape[0]:
        raise ValueError("best_estimated must be given one truth value per arm")
    return _regression.best_estimated(regression, arms, available)


@_jit
def value(regression: Any, features: Floats, model: Floats) -> float:
    """Return φᵀθ' of an arm with these features under a model θ', such as `draw_model` and `write_theta` write.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> setting = sb.extend.Setting(dim=2, noise_std=0.5, theta_bound=0.0, horizon=0)
        >>> regression = sb.extend.make_regression(setting)
        >>> sb.extend.value(regression, np.array([1.0, 2.0]), np.array([0.5, 0.25]))
        1.0
    """
    _check(regression, features.shape[0])
    _check_model(regression, model.shape[0])
    return _regression.value(regression, features, model)


@_jit
def squared_norm(regression: Any, vector: Floats) -> float:
    """Return ‖φ‖²_{V^-1} of one vector, which is overwritten.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> setting = sb.extend.Setting(dim=2, noise_std=0.5, theta_bound=0.0, horizon=0)
        >>> sb.extend.squared_norm(sb.extend.make_regression(setting), np.array([3.0, 4.0]))
        25.0
    """
    _check(regression, vector.shape[0])
    return _regression.squared_norm(regression, vector)


@_jit
def draw_model(regression: Any, spread: float, model: Floats, rng: Words) -> None:
    """Write a draw of θ around θ-hat, of covariance spread² V^-1, into `model`; `noise_deviation` is a spread.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> setting = sb.extend.Setting(dim=2, noise_std=0.5, theta_bound=0.0, horizon=0)
        >>> regression, model = sb.extend.make_regression(setting), np.empty(2)
        >>> rng = np.array([1, 2, 3, 4], dtype=np.uint64)  # in a policy, what `start` was given
        >>> sb.extend.draw_model(regression, 0.0, model, rng)
        >>> model  # without spread, the estimate
        array([0., 0.])
    """
    _check_model(regression, model.shape[0])
    _check_rng(rng)
    _regression.draw_model(regression, spread, model, rng)


@_jit
def estimate_arms(regression: Any, arms: Floats, first: int) -> int:
    """Write mean and squared norm of the arms from `first` on into `regression.work.arms`; return how many.

    The regression must be made with `norms=True`.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> setting = sb.extend.Setting(dim=2, noise_std=0.5, theta_bound=0.0, horizon=0)
        >>> regression = sb.extend.make_regression(setting, norms=True)
        >>> count = sb.extend.estimate_arms(regression, np.array([[3.0, 4.0], [0.0, 1.0]]), 0)
        >>> count, regression.work.arms.sq_norms[:count]
        (2, array([25.,  1.]))
    """
    _check(regression, arms.shape[1])
    dim, columns = regression.work.arms.columns.shape
    if dim != regression.work.vector.shape[0] or min(columns, regression.work.arms.means.shape[0]) != WIDE:
        raise ValueError("estimate_arms must be given a regression made with norms=True")
    if regression.work.arms.sq_norms.shape[0] != WIDE:
        raise ValueError("estimate_arms must be given a regression made with norms=True")
    if first < 0 or first >= arms.shape[0]:
        raise ValueError("first must be one of the arms")
    return _regression.estimate_arms(regression, arms, first)


@_jit
def best_available(arms: Floats, available: Bools, theta: Floats) -> int:
    """Return argmax_a φ_aᵀθ over the available arms, the first one in a tie.

    Example:
        >>> import numpy as np
        >>> from solid_bandits import extend
        >>> arms = np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> extend.best_available(arms, np.array([True, True]), np.array([0.2, 0.7]))
        1
    """
    if available.shape[0] != arms.shape[0] or theta.shape[0] != arms.shape[1]:
        raise ValueError("best_available must be given one truth value per arm, and theta of the arms' dim")
    return _arms.best_available(arms, available, theta)


@_jit
def dot(first: Floats, second: Floats) -> float:
    """Return the inner product of two vectors.

    Example:
        >>> import numpy as np
        >>> from solid_bandits import extend
        >>> extend.dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        11.0
    """
    if first.shape[0] != second.shape[0]:
        raise ValueError("dot must be given two vectors of one length")
    return _vectors.dot(first, second)


@_jit
def _check_rng(rng: Words) -> None:
    if rng.shape[0] != 4:
        raise ValueError("rng must be what start was given, of four words")


@_jit
def uniform(rng: Words) -> float:
    """Draw from the uniform distribution on [0, 1).

    Example:
        >>> import numpy as np
        >>> from solid_bandits import extend
        >>> rng = np.array([1, 2, 3, 4], dtype=np.uint64)  # in a policy, what `start` was given
        >>> 0 <= extend.uniform(rng) < 1
        True
    """
    _check_rng(rng)
    return _randomness.uniform(rng)


@_jit
def normal(rng: Words) -> float:
    """Draw from N(0, 1).

    Example:
        >>> import numpy as np
        >>> from solid_bandits import extend
        >>> rng = np.array([1, 2, 3, 4], dtype=np.uint64)  # in a policy, what `start` was given
        >>> abs(extend.normal(rng)) < 10
        True
    """
    _check_rng(rng)
    return _randomness.normal(rng)


@_jit
def choose(probabilities: Floats, rng: Words) -> int:
    """Draw an index with the given probabilities, shape (indices,).

    Example:
        >>> import numpy as np
        >>> from solid_bandits import extend
        >>> rng = np.array([1, 2, 3, 4], dtype=np.uint64)  # in a policy, what `start` was given
        >>> extend.choose(np.array([0.0, 1.0, 0.0]), rng)
        1
    """
    _check_rng(rng)
    return _randomness.choose(probabilities, rng)
