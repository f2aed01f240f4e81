"""Sources of random numbers that compiled code carries as plain arrays, called `rng`.

A source is the four-word state of NumPy's SFC64 generator, seeded by NumPy's SeedSequence, so a uniform drawn here is
the one that `numpy.random.Generator(SFC64(...)).random()` draws. NumPy's own Generator takes 7 us to pass into a
compiled function, longer than a decision, and can neither be saved as plain numbers nor moved to a GPU.
"""

import math
from typing import Any

import numpy as np
from numba.core.config import DISABLE_JIT  # type: ignore[attr-defined]

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.types import Floats, Words

ENVIRONMENT = 0
"""Role of the source that draws contexts and noise."""
POLICY = 1
"""Role of the source that draws a policy's own random numbers."""
FLOOR = 3
"""Role of the source that draws the arms of an agent's floor."""


def seed_sequence(seed: int, run: int, role: int) -> np.random.SeedSequence:
    """Return the seed of one source; it depends on seed, run and role only, not on the policy or process."""
    return np.random.SeedSequence(seed, spawn_key=(run, role))


def make_rng(seed: int, run: int, role: int) -> Words:
    """Return a new source, shape (4,)."""
    state = np.random.SFC64(seed_sequence(seed, run, role)).state
    words: Words = np.array(state["state"]["state"], dtype=np.uint64)
    return words


def make_rngs(seed: int, first: int, runs: int, role: int) -> Words:
    """Return the sources of runs `first` to `first + runs - 1`, shape (runs, 4), as `make_rng` would one at a time."""
    pool = _mixed_pool(seed, np.arange(first, first + runs, dtype=np.uint64), role)
    halves = np.empty((runs, 6), dtype=np.uint32)
    factor = _HASH_B
    for word in range(6):
        mixed = pool[word % 4] ^ np.uint32(factor)
        factor = factor * _FACTOR_B & _MASK
        mixed = mixed * np.uint32(factor)
        halves[:, word] = mixed ^ (mixed >> np.uint32(16))
    words = np.ones((runs, 4), dtype=np.uint64)
    words[:, :3] = halves[:, 0::2] | halves[:, 1::2].astype(np.uint64) << np.uint64(32)
    for _ in range(12):  # as NumPy's SFC64 does after seeding
        a, b, c, counter = words.T
        drawn = a + b + counter
        words = np.stack(
            [
                b ^ (b >> np.uint64(11)),
                c + (c << np.uint64(3)),
                ((c << np.uint64(24)) | (c >> np.uint64(40))) + drawn,
                counter + np.uint64(1),
            ],
            axis=1,
        )
    return words


# Constants of NumPy's SeedSequence, which follows O'Neill's seed_seq; tests compare with it.
_MASK = 0xFFFFFFFF
_HASH_A, _FACTOR_A = 0x43B0D7E5, 0x931E8875
_HASH_B, _FACTOR_B = 0x8B51F9DD, 0x58F38DED
_MIX_LEFT, _MIX_RIGHT = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)


def _mixed_pool(seed: int, runs: Words, role: int) -> list[Any]:
    """Return the entropy pool of SeedSequence(seed, spawn_key=(run, role)): four words, each an array over runs."""
    if len(runs) and int(runs[-1]) > _MASK:
        raise ValueError(f"runs must be numbered below 2**32, got {int(runs[-1])}")
    words = [seed >> shift & _MASK for shift in range(0, max(seed.bit_length(), 1), 32)]
    words += [0] * (4 - len(words))
    entropy: list[Any] = [np.full(len(runs), word, dtype=np.uint32) for word in words]
    entropy += [runs.astype(np.uint32), np.full(len(runs), role, dtype=np.uint32)]
    factor = _HASH_A

    def hashed(value: Any) -> Any:
        nonlocal factor
        value = value ^ np.uint32(factor)
        factor = factor * _FACTOR_A & _MASK
        value = value * np.uint32(factor)
        return value ^ (value >> np.uint32(16))

    def mixed(left: Any, right: Any) -> Any:
        value = _MIX_LEFT * left - _MIX_RIGHT * right
        return value ^ (value >> np.uint32(16))

    pool = [hashed(word) for word in entropy[:4]]
    for source in range(4):
        for target in range(4):
            if source != target:
                pool[target] = mixed(pool[target], hashed(pool[source]))
    for word in entropy[4:]:
        for target in range(4):
            pool[target] = mixed(pool[target], hashed(word))
    return pool


@jit
def uniform(rng: Words) -> float:
    """Draw from the uniform distribution on [0, 1)."""
    word = rng[0] + rng[1] + rng[3]
    rng[3] += np.uint64(1)
    rng[0] = rng[1] ^ (rng[1] >> np.uint64(11))
    rng[1] = rng[2] + (rng[2] << np.uint64(3))
    rng[2] = ((rng[2] << np.uint64(24)) | (rng[2] >> np.uint64(40))) + word
    return float(word >> np.uint64(11)) * 2.0**-53


if DISABLE_JIT:  # NumPy warns of overflow, which is intended here
    uniform = np.errstate(over="ignore")(uniform)


@jit
def normal(rng: Words) -> float:
    """Draw from N(0, 1): Box and Muller's transform of two uniforms."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(rng)))
    return radius * math.cos(2.0 * math.pi * uniform(rng))


@jit
def choose(probabilities: Floats, rng: Words) -> int:
    """Draw an index with the given probabilities."""
    point = uniform(rng)
    last = 0
    total = 0.0
    for index in range(probabilities.shape[0]):
        if probabilities[index] > 0.0:
            total += probabilities[index]
            last = index
            if point < total:
                return index
    # By rounding, the probabilities may sum to slightly less than 1.
    return last
