"""What a compiled policy of your own is made of: the estimator, the arms on offer, random numbers.

Functions to be called from functions that `sb.jit` compiles; docs/own-policy.md builds a policy of them. Each checks
that the arrays it is given fit each other, which this package's own policies know of theirs.
"""

from solid_bandits import _check
from solid_bandits import stream as _stream
from solid_bandits._compile import jit
from solid_bandits._types import Bools, Floats, Words
from solid_bandits.estimation import arms as _arms
from solid_bandits.estimation import estimator as _estimator
from solid_bandits.estimation.arms import WIDE, ArmsWork, count_available
from solid_bandits.estimation.estimator import Estimator
from solid_bandits.linalg import vectors as _vectors
from solid_bandits.setting import LARGEST_DIM

__all__ = [
    "ArmsWork", "Estimator", "best_available", "choose", "count_available", "dot", "estimate_arms", "make_arms_work",
    "make_estimator", "normal", "observe", "squared_norm", "uniform", "write_theta",
]  # fmt: skip


def make_estimator(dim: int, ridge: float) -> Estimator:
    """The estimator before any reward: V = ridge * I, θ-hat = 0.

    Example:
        >>> from solid_bandits import kernels
        >>> estimator = kernels.make_estimator(dim=2, ridge=1.0)
        >>> estimator.targets
        array([0., 0.])
    """
    dim = _check.integer("dim", dim, least=1, most=LARGEST_DIM)
    return _estimator.make_estimator(dim, _check.positive("ridge", ridge))


def make_arms_work(dim: int) -> ArmsWork:
    """Scratch of `estimate_arms`, for features of dimension `dim`.

    Example:
        >>> from solid_bandits import kernels
        >>> kernels.make_arms_work(3).gains.shape
        (3,)
    """
    return _arms.make_arms_work(_check.integer("dim", dim, least=1, most=LARGEST_DIM))


@jit
def _is_of(estimator: Estimator, dim: int) -> bool:
    """Whether every part of an estimator is of this dimension."""
    rows, columns = estimator.triangle.shape
    return (
        rows == dim
        and columns == dim
        and estimator.weights.shape[0] == dim
        and estimator.targets.shape[0] == dim
    )


@jit
def observe(estimator: Estimator, features: Floats, reward: float, row: Floats, gains: Floats) -> float:
    """Take in one reward: V += φφᵀ and all that follows; return 1 + ‖φ‖²_{V^-1} of before.

    Writes t's of V^-1 φ (of after) into `gains`, shape (dim,): U^-1 `gains` is V^-1 φ. `row` is scratch, shape (dim,).

    Example:
        >>> import numpy as np
        >>> from solid_bandits import kernels
        >>> estimator = kernels.make_estimator(dim=2, ridge=1.0)
        >>> kernels.observe(estimator, np.array([1.0, 0.0]), 3.0, np.empty(2), np.empty(2))
        2.0
    """
    dim = features.shape[0]
    if not _is_of(estimator, dim) or row.shape[0] != dim or gains.shape[0] != dim:
        raise ValueError("observe must be given an estimator, features, row and gains of one dim")
    return _estimator.observe(estimator, features, reward, row, gains)


@jit
def write_theta(estimator: Estimator, theta: Floats) -> None:
    """Write θ-hat = U^-1 t into `theta`.

    Example:
        >>> import numpy as np
        >>> from solid_bandits import kernels
        >>> estimator = kernels.make_estimator(dim=2, ridge=1.0)
        >>> _ = kernels.observe(estimator, np.array([1.0, 0.0]), 3.0, np.empty(2), np.empty(2))
        >>> theta = np.empty(2)
        >>> kernels.write_theta(estimator, theta)
        >>> theta
        array([1.5, 0. ])
    """
    if not _is_of(estimator, theta.shape[0]):
        raise ValueError("write_theta must be given an estimator and theta of one dim")
    _estimator.write_theta(estimator, theta)


@jit
def squared_norm(estimator: Estimator, vector: Floats) -> float:
    """‖φ‖²_{V^-1} of one vector, which is replaced by U^-T φ.

    Example:
        >>> import numpy as np
        >>> from solid_bandits import kernels
        >>> estimator = kernels.make_estimator(dim=2, ridge=1.0)
        >>> kernels.squared_norm(estimator, np.array([3.0, 4.0]))
        25.0
    """
    if not _is_of(estimator, vector.shape[0]):
        raise ValueError("squared_norm must be given an estimator and a vector of one dim")
    return _estimator.squared_norm(estimator, vector)


@jit
def estimate_arms(estimator: Estimator, arms: Floats, first: int, work: ArmsWork) -> int:
    """Write mean and squared norm of the arms from `first` on into `work`; return how many are in the block.

    Example:
        >>> import numpy as np
        >>> from solid_bandits import kernels
        >>> estimator = kernels.make_estimator(dim=2, ridge=1.0)
        >>> work = kernels.make_arms_work(2)
        >>> kernels.estimate_arms(estimator, np.array([[3.0, 4.0], [1.0, 0.0]]), 0, work)
        2
        >>> work.sq_norms[:2]
        array([25.,  1.])
    """
    dim = arms.shape[1]
    rows, columns = work.columns.shape
    if not _is_of(estimator, dim) or rows != dim or columns != WIDE:
        raise ValueError("estimate_arms must be given an estimator, arms and work of one dim")
    if work.means.shape[0] != WIDE or work.sq_norms.shape[0] != WIDE:
        raise ValueError("estimate_arms must be given work that make_arms_work made")
    if first < 0 or first >= arms.shape[0]:
        raise ValueError("first must be one of the arms")
    return _arms.estimate_arms(estimator, arms, first, work)


@jit
def best_available(arms: Floats, available: Bools, theta: Floats) -> int:
    """argmax_a φ_aᵀθ over the available arms, the first one where several tie.

    Example:
        >>> import numpy as np
        >>> from solid_bandits import kernels
        >>> arms = np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> kernels.best_available(arms, np.array([True, True]), np.array([0.2, 0.7]))
        1
    """
    if available.shape[0] != arms.shape[0] or theta.shape[0] != arms.shape[1]:
        raise ValueError("best_available must be given one truth value per arm, and theta of the arms' dim")
    return _arms.best_available(arms, available, theta)


@jit
def dot(first: Floats, second: Floats) -> float:
    """Inner product of two vectors.

    Example:
        >>> import numpy as np
        >>> from solid_bandits import kernels
        >>> kernels.dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        11.0
    """
    if first.shape[0] != second.shape[0]:
        raise ValueError("dot must be given two vectors of one length")
    return _vectors.dot(first, second)


@jit
def _check_stream(stream: Words) -> None:
    if stream.shape[0] != 4:
        raise ValueError("stream must be the one that start was given, of four words")


@jit
def uniform(stream: Words) -> float:
    """Draw from the uniform distribution on [0, 1).

    Example:
        >>> import numpy as np
        >>> from solid_bandits import kernels
        >>> stream = np.array([1, 2, 3, 4], dtype=np.uint64)  # in a policy, what `start` was given
        >>> 0 <= kernels.uniform(stream) < 1
        True
    """
    _check_stream(stream)
    return _stream.uniform(stream)


@jit
def normal(stream: Words) -> float:
    """Draw from N(0, 1).

    Example:
        >>> import numpy as np
        >>> from solid_bandits import kernels
        >>> stream = np.array([1, 2, 3, 4], dtype=np.uint64)  # in a policy, what `start` was given
        >>> abs(kernels.normal(stream)) < 10
        True
    """
    _check_stream(stream)
    return _stream.normal(stream)


@jit
def choose(probabilities: Floats, stream: Words) -> int:
    """Draw an index with the given probabilities, shape (indices,).

    Example:
        >>> import numpy as np
        >>> from solid_bandits import kernels
        >>> stream = np.array([1, 2, 3, 4], dtype=np.uint64)  # in a policy, what `start` was given
        >>> kernels.choose(np.array([0.0, 1.0, 0.0]), stream)
        1
    """
    _check_stream(stream)
    return _stream.choose(probabilities, stream)
