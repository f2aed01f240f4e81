"""Problems that several test files play, the awkward ones among them."""

import numpy as np

import solid_bandits as sb


def degenerate():
    """Name -> a problem that would trip careless code."""
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(3, 4, 3))
    zero = dense.copy()
    zero[1] = 0
    return {
        "one arm": sb.Problem(dense[:, :1], [1, 0, 0]),
        "one context": sb.Problem(dense[:1], [1, 0, 0]),
        "one dimension": sb.Problem(dense[:, :, :1], [0.5]),
        "copies of every arm": sb.Problem(np.concatenate([dense, dense], axis=1), [1, -1, 0.5]),
        "all arms alike": sb.Problem(np.repeat(dense[:, :1], 4, axis=1), [1, -1, 0.5]),
        "collinear": sb.Problem(rng.uniform(size=(3, 4, 1)) * np.ones(3), [1, 1, 1]),
        "zero features": sb.Problem(zero, [1, 1, 1]),
        "nothing but zeros": sb.Problem(0 * dense, [1, 1, 1]),
        "zero theta": sb.Problem(dense, [0, 0, 0], theta_bound=1),
        "huge": sb.Problem(1e6 * dense, [1, 1, 1], noise_std=1e3),
        "tiny": sb.Problem(1e-6 * dense, [1e-3, 1e-3, 1e-3], noise_std=1e-6),
        "rare context": sb.Problem(dense, [1, 1, 1], [1 - 2e-9, 1e-9, 1e-9]),
    }
