"""Logarithms and random numbers, and the loop without a policy."""

import math

from bench.rates.compiled import compiled
from solid_bandits.core.randomness import normal, uniform


@compiled
def log_loop(reps, value, total):
    """Compute a logarithm, of a counter as in the steps, where nothing delays it."""
    for rep in range(reps):
        total[0] += math.log(value[0] + rep)


@compiled
def uniform_loop(reps, stream, out):
    """Draw a uniform number."""
    for _ in range(reps):
        out[0] += uniform(stream)


@compiled
def normals_loop(reps, stream, out):
    """Draw normal numbers, two from each pair of uniforms (Box and Muller)."""
    for _ in range(reps):
        for i in range(0, out.shape[0] - 1, 2):
            radius = math.sqrt(-2.0 * math.log(1.0 - uniform(stream)))
            angle = 2.0 * math.pi * uniform(stream)
            out[i] = radius * math.cos(angle)
            out[i + 1] = radius * math.sin(angle)
        if out.shape[0] % 2 == 1:
            out[-1] = normal(stream)


@compiled
def empty_loop(reps, stream, edges, out):
    """Run the loop without a policy: one uniform, one normal, the search for the context."""
    last = edges.shape[0] - 1
    for _ in range(reps):
        point = uniform(stream)
        noise = normal(stream)
        context = 0
        while context < last and point >= edges[context]:
            context += 1
        out[context] += noise
