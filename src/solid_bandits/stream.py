"""Streams of random numbers that compiled code carries as plain arrays.

A stream is the four-word state of NumPy's SFC64 generator, seeded by NumPy's SeedSequence, so a uniform drawn here
is the one that `numpy.random.Generator(SFC64(...)).random()` draws. NumPy's own Generator takes 7 us to pass into a
compiled function, more than a decision costs, and cannot be saved as plain numbers or taken to a GPU.
"""

import math

import numpy as np
from numba.core.config import DISABLE_JIT  # type: ignore[attr-defined]

from solid_bandits._compile import jit
from solid_bandits._types import Floats, Words

ENVIRONMENT = 0
"""Role of the stream that draws contexts and noise."""
POLICY = 1
"""Role of the stream that draws a policy's own random numbers."""


def seed_sequence(seed: int, run: int, role: int) -> np.random.SeedSequence:
    """The seed of one stream: depends on seed, run and role only, never on which policy or process asks."""
    return np.random.SeedSequence(seed, spawn_key=(run, role))


def make_stream(seed: int, run: int, role: int) -> Words:
    """A new stream, shape (4,)."""
    state = np.random.SFC64(seed_sequence(seed, run, role)).state
    words: Words = np.array(state["state"]["state"], dtype=np.uint64)
    return words


@jit
def uniform(stream: Words) -> float:
    """Draw from the uniform distribution on [0, 1)."""
    word = stream[0] + stream[1] + stream[3]
    stream[3] += np.uint64(1)
    stream[0] = stream[1] ^ (stream[1] >> np.uint64(11))
    stream[1] = stream[2] + (stream[2] << np.uint64(3))
    stream[2] = ((stream[2] << np.uint64(24)) | (stream[2] >> np.uint64(40))) + word
    return float(word >> np.uint64(11)) * 2.0**-53


if DISABLE_JIT:  # NumPy warns of words that wrap around, as these are to
    uniform = np.errstate(over="ignore")(uniform)


@jit
def normal(stream: Words) -> float:
    """Draw from N(0, 1): Box and Muller's transform of two uniforms."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(stream)))
    return radius * math.cos(2.0 * math.pi * uniform(stream))


@jit
def choose(probabilities: Floats, stream: Words) -> int:
    """Draw an index with the given probabilities."""
    point = uniform(stream)
    last = 0
    total = 0.0
    for index in range(probabilities.shape[0]):
        if probabilities[index] > 0.0:
            total += probabilities[index]
            last = index
            if point < total:
                return index
    # The probabilities may sum to a little less than 1 by rounding.
    return last
