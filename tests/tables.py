"""Random matrices and tables of features that several tests of kernels start from, and V_ω by NumPy."""

import numpy as np
from hypothesis import strategies as st

from solid_bandits.estimation.linalg.gram import GRAM_RIDGE

sizes = st.tuples(st.integers(1, 4), st.integers(2, 6), st.integers(1, 7), st.integers(0, 10**6))
"""Contexts, arms, dimension, seed."""


def spd(rng, dim):
    root = rng.normal(size=(dim, dim + 2))
    return root @ root.T + 0.1 * np.eye(dim)


def columns_of(features):
    return np.ascontiguousarray(features.reshape(-1, features.shape[2]).T)


def gram_reference(columns, weights):
    exact = (columns * weights) @ columns.T
    return exact + GRAM_RIDGE * np.trace(exact) / len(exact) * np.eye(len(exact))
