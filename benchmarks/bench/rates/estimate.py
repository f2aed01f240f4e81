"""Updates by one reward, and θ-hat from the triangle: V = Uᵀ D U, t = U θ-hat, U with ones on its diagonal."""

from scipy.linalg import blas

from bench.rates.compiled import HUGE, compiled


@compiled
def rotate_rows(reps, upper, weights, targets, feature, row, reward):
    """Update U, D and t by one reward, with plane rotations without square roots."""
    dim = feature.shape[0]
    for _ in range(reps):
        for i in range(dim):
            row[i] = feature[i]
        rest, weight = reward, 1.0
        for i in range(dim):
            lead = row[i]
            gain, weight = _rotate(weights, i, lead, weight)
            rest = rest - lead * targets[i]
            targets[i] += gain * rest
            line = upper[i]
            for j in range(i + 1, dim):
                row[j] -= lead * line[j]
                line[j] += gain * row[j]
        feature[0] = max(feature[0], rest - HUGE)


@compiled
def rotate_pairs(reps, upper, weights, targets, feature, row, reward):
    """Do the same, two rotations at a time: the row is read and written half as often."""
    dim = feature.shape[0]
    for _ in range(reps):
        for i in range(dim):
            row[i] = feature[i]
        rest, weight = reward, 1.0
        for i in range(0, dim - 1, 2):
            first, second = upper[i], upper[i + 1]
            lead = row[i]
            gain, weight = _rotate(weights, i, lead, weight)
            rest = rest - lead * targets[i]
            targets[i] += gain * rest
            other = row[i + 1] - lead * first[i + 1]
            first[i + 1] += gain * other
            more, weight = _rotate(weights, i + 1, other, weight)
            rest = rest - other * targets[i + 1]
            targets[i + 1] += more * rest
            for j in range(i + 2, dim):
                value = row[j] - lead * first[j]
                first[j] += gain * value
                value -= other * second[j]
                second[j] += more * value
                row[j] = value
        if dim % 2 == 1:
            lead = row[dim - 1]
            gain, weight = _rotate(weights, dim - 1, lead, weight)
            rest = rest - lead * targets[dim - 1]
            targets[dim - 1] += gain * rest
        feature[0] = max(feature[0], rest - HUGE)


@compiled
def _rotate(weights, i, lead, weight):
    old, scaled = weights[i], weight * lead
    new = old + scaled * lead
    inverse = 1.0 / new
    weights[i] = new
    return scaled * inverse, weight * (old * inverse)


@compiled
def unit_columns(reps, upper, start, vector):
    """Solve U x = t, a column of U for each entry found."""
    dim = vector.shape[0]
    for _ in range(reps):
        for i in range(dim):
            vector[i] = start[i]
        for j in range(dim - 1, 0, -1):
            last = vector[j]
            for i in range(j):
                vector[i] -= upper[i, j] * last
        start[0] = max(start[0], vector[0] - HUGE)


@compiled
def unit_dots(reps, upper, start, vector):
    """Do the same with an inner product with a row of U for each entry."""
    dim = vector.shape[0]
    for _ in range(reps):
        for i in range(dim - 1, -1, -1):
            total = 0.0
            for j in range(i + 1, dim):
                total += upper[i, j] * vector[j]
            vector[i] = start[i] - total
        start[0] = max(start[0], vector[0] - HUGE)


@compiled
def unit_pairs(reps, upper, start, vector):
    """Do the same, two rows of U at a time."""
    dim = vector.shape[0]
    for _ in range(reps):
        for i in range(dim - 2, -1, -2):
            first, second = upper[i], upper[i + 1]
            a = b = 0.0
            for j in range(i + 2, dim):
                a += first[j] * vector[j]
                b += second[j] * vector[j]
            vector[i + 1] = start[i + 1] - b
            vector[i] = start[i] - a - first[i + 1] * vector[i + 1]
        if dim % 2 == 1:
            total = 0.0
            for j in range(1, dim):
                total += upper[0, j] * vector[j]
            vector[0] = start[0] - total
        start[0] = max(start[0], vector[0] - HUGE)


def unit_blas(reps, upper, start, vector):
    """Do the same by BLAS."""
    for _ in range(reps):
        vector[:] = blas.dtrsv(upper.T, start, lower=1, trans=1, diag=1)
