"""Work entry by entry: over arms, over pairs."""

import math

import numpy as np

from bench.rates.compiled import HUGE, compiled


@compiled
def top_loop(reps, values):
    """Find the first index of the largest value."""
    for _ in range(reps):
        best = 0
        largest = values[0]
        for p in range(1, values.shape[0]):
            if values[p] > largest:
                best, largest = p, values[p]
        values[0] = max(values[0], largest + best - HUGE)


@compiled
def top_passes(reps, values):
    """Do the same in two passes: the largest value, which uses vector registers, then its index."""
    for _ in range(reps):
        largest = values[0]
        for p in range(1, values.shape[0]):
            largest = max(largest, values[p])
        best = 0
        while values[best] < largest:
            best += 1
        values[0] = max(values[0], largest + best - HUGE)


@compiled
def bounds_loop(reps, means, spreads, width, bounds):
    """Find the largest mean + width * spread, and the largest mean."""
    for _ in range(reps):
        for p in range(means.shape[0]):
            bounds[p] = means[p] + width[0] * spreads[p]
        _two_tops(means, bounds, width)


@compiled
def upper_loop(reps, means, norms, width, bounds):
    """Do the same, computing the spread √norm."""
    for _ in range(reps):
        for p in range(means.shape[0]):
            bounds[p] = means[p] + width[0] * math.sqrt(max(norms[p], 0.0))
        _two_tops(means, bounds, width)


@compiled
def _two_tops(means, bounds, width):
    best = greedy = 0
    largest, greatest = bounds[0], means[0]
    for p in range(1, means.shape[0]):
        if bounds[p] > largest:
            best, largest = p, bounds[p]
        if means[p] > greatest:
            greedy, greatest = p, means[p]
    width[0] = max(width[0], largest + best + greedy - HUGE)


@compiled
def gradient_loop(reps, means, norms, information, weights, scalars, out):
    """Compute SOLID's optimistic gradient and constraint from the quantities of every pair: one root each."""
    for _ in range(reps):
        root, bonus_scale, multiplier = scalars[0], scalars[1], scalars[2]
        constraint = 0.0
        for p in range(means.shape[0]):
            bonus = root * math.sqrt(max(norms[p], 0.0))
            divergence = information[p] * information[p] + bonus_scale * bonus
            out[p] = means[p] + bonus + multiplier * divergence
            constraint += weights[p] * divergence
        scalars[0] = max(scalars[0], constraint + out[0] - HUGE)


@compiled
def exp_loop(reps, values, out):
    """Compute one exponential for each value."""
    for _ in range(reps):
        for p in range(values.shape[0]):
            out[p] = math.exp(values[p])
        values[0] = max(values[0], out[0] - HUGE)


def exp_numpy(reps, values, out):
    """Do the same by NumPy's vector function."""
    for _ in range(reps):
        np.exp(values, out=out)


@compiled
def normalise_loop(reps, gradient, logits, omega):
    """Add gradients of norm 1 to the logits, subtract the largest, and normalise the probabilities."""
    n_contexts, n_arms = gradient.shape
    for _ in range(reps):
        for x in range(n_contexts):
            square = 0.0
            for a in range(n_arms):
                square += gradient[x, a] * gradient[x, a]
            scale = 1.0 / math.sqrt(square)
            total = 0.0
            for a in range(n_arms):
                logits[x, a] += scale * gradient[x, a]
                total += omega[x, a]
            largest = logits[x, 0]
            for a in range(1, n_arms):
                largest = max(largest, logits[x, a])
            inverse = 1.0 / total
            for a in range(n_arms):
                logits[x, a] -= largest
                omega[x, a] *= inverse
        gradient[0, 0] = max(gradient[0, 0], logits[0, 0] - HUGE)


@compiled
def information_loop(reps, products, weights, spreads, out):
    """Compute Σ_z q_z (|p_az| + c_a)² for every arm a."""
    for _ in range(reps):
        for a in range(products.shape[0]):
            total = 0.0
            for z in range(products.shape[1]):
                seen = abs(products[a, z]) + spreads[a]
                total += weights[z] * (seen * seen)
            out[a] = total
        spreads[0] = max(spreads[0], out[0] - HUGE)


@compiled
def mixtures_loop(reps, regrets, information, out):
    """Find the two arms and the probability between them with the least regret² / information."""
    count = regrets.shape[0]
    for _ in range(reps):
        least = HUGE
        chance = 0.0
        for a in range(count):
            for b in range(a + 1, count):
                rise, more = regrets[b] - regrets[a], information[b] - information[a]
                p = min(max(regrets[a] / rise - 2.0 * information[a] / more, 0.0), 1.0)
                regret = regrets[a] + p * rise
                ratio = regret * regret / (information[a] + p * more)
                if ratio < least:
                    least, chance = ratio, p
        out[0] = chance
        regrets[0] = max(regrets[0], least - 2.0 * HUGE)
