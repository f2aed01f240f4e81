"""One reward taken in."""

import math

from bench.rates.compiled import HUGE, compiled


@compiled
def estimate_lower(reps, inverse, feature, theta, direction, reward):
    """Take in one reward: u = V^-1 φ, θ and V^-1; of V^-1 only the lower triangle is kept."""
    dim = feature.shape[0]
    for _ in range(reps):
        direction[:] = 0.0
        for i in range(dim):
            row = inverse[i]
            total = row[i] * feature[i]
            for j in range(i):
                total += row[j] * feature[j]
                direction[j] += row[j] * feature[i]
            direction[i] += total
        _estimate_move(inverse, feature, theta, direction, reward, True)


@compiled
def estimate_full(reps, inverse, feature, theta, direction, reward):
    """The same with all of V^-1: more arithmetic, but in whole rows."""
    dim = feature.shape[0]
    for _ in range(reps):
        for i in range(dim):
            total = 0.0
            for j in range(dim):
                total += inverse[i, j] * feature[j]
            direction[i] = total
        _estimate_move(inverse, feature, theta, direction, reward, False)


@compiled
def _estimate_move(inverse, feature, theta, direction, reward, lower):
    dim = feature.shape[0]
    growth = 1.0
    seen = 0.0
    for i in range(dim):
        growth += feature[i] * direction[i]
        seen += feature[i] * theta[i]
    shrink = 1.0 / growth
    error = (reward - seen) * shrink
    for i in range(dim):
        scaled = direction[i] * shrink
        theta[i] += error * direction[i]
        row = inverse[i]
        for j in range(i + 1 if lower else dim):
            row[j] -= scaled * direction[j]


@compiled
def rotate_rows(reps, upper, start, vector):
    """The factor of V + φφᵀ from that of V by plane rotations; Lᵀ is kept, so that rows are contiguous."""
    dim = upper.shape[0]
    for _ in range(reps):
        for i in range(dim):
            vector[i] = start[i]
        for k in range(dim):
            row = upper[k]
            pivot, value = row[k], vector[k]
            root = math.sqrt(pivot * pivot + value * value)
            inverse = 1.0 / root
            cosine, sine = pivot * inverse, value * inverse
            row[k] = root
            for i in range(k + 1, dim):
                old = row[i]
                row[i] = cosine * old + sine * vector[i]
                vector[i] = cosine * vector[i] - sine * old
        start[0] = max(start[0], upper[dim - 1, dim - 1] - HUGE)
