"""Where arrays lie in memory changes nothing: a replay finds the same bits in another process.

LLVM compiles a loop that writes to memory twice where it cannot know that arrays do not overlap, and takes the slower
one for arrays that lie near each other. A sum in such a loop would depend on addresses.
"""

import numpy as np
import pytest

import solid_bandits as sb
from solid_bandits.estimation.estimator import make_estimator
from solid_bandits.estimation.evidence import make_evidence
from solid_bandits.estimation.growth import move, solve_both
from solid_bandits.policies.state import arrays_of

POLICIES = [sb.RandUCB(), sb.LinTS()]


def relocated(policy, setting, agent, rng):
    """The agent with all its numbers in one piece of memory, in any order, side by side or with small gaps."""
    found, arrays = {}, {}

    def collect(value):
        if isinstance(value, np.ndarray):
            arrays[id(value)] = value
        elif isinstance(value, tuple):
            for one in value:
                collect(one)

    collect(agent)
    floats = [one for one in arrays.values() if one.dtype == np.float64]
    room = np.full(sum(one.size for one in floats) + 9 * len(floats) + 8, np.nan)
    at = int(rng.integers(8))
    for place in rng.permutation(len(floats)):
        one = floats[place]
        new = room[at : at + one.size].reshape(one.shape)
        new[...] = one
        new.flags.writeable = one.flags.writeable
        found[id(one)] = new
        at += one.size + (0 if rng.random() < 0.5 else int(rng.integers(9)))

    def moved(value):
        if isinstance(value, np.ndarray):
            return found.get(id(value), value)
        if isinstance(value, tuple):
            parts = [moved(one) for one in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return value

    return setting, moved(agent)


def same_bits(one, other):
    pairs = zip(arrays_of(one.agent._compiled.state), arrays_of(other.agent._compiled.state), strict=True)
    return all(a.tobytes() == b.tobytes() for a, b in pairs)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: one.name)
@pytest.mark.parametrize("blocked", [True, False])
def test_decisions_do_not_depend_on_where_arrays_lie(policy, blocked):
    rng, elsewhere = np.random.default_rng(11), np.random.default_rng(12)
    names = ["one", "two", "three", "four", "five", "word", "other"]
    shape = {"arms": ["x", "y", "z"]} if blocked else {"arm_features": ["price", "kind"]}
    bandit, twin = (sb.Bandit(policy, context=names, floor=0.1, seed=1, **shape) for _ in range(2))
    for place in range(90):
        values = {name: float(rng.normal(3.0, 2.0)) for name in names[:5]}
        values |= {name: f"w{rng.integers(1 + place // 6)}" for name in names[5:]}
        own = None
        if not blocked:
            own = {arm: {"price": float(rng.normal()), "kind": f"k{rng.integers(3)}"} for arm in "xyz"}
        twin.agent.change(relocated, rng=elsewhere)
        one, other = (each.decide(values, own, event_id=f"e{place}") for each in (bandit, twin))
        assert one.probabilities.tobytes() == other.probabilities.tobytes()
        reward = float(rng.normal())
        twin.agent.change(relocated, rng=elsewhere)
        for each in (bandit, twin):
            each.learn(f"e{place}", reward)
        assert same_bits(bandit, twin), place


def placed(arrays, rng):
    """Copies of some arrays in one piece of memory, in any order, side by side or with small gaps."""
    room = np.full(sum(one.size for one in arrays) + 9 * len(arrays) + 8, np.nan)
    found, at = [None] * len(arrays), int(rng.integers(8))
    for place in rng.permutation(len(arrays)):
        one = arrays[place]
        found[place] = room[at : at + one.size].reshape(one.shape)
        found[place][...] = one
        at += one.size + (0 if rng.random() < 0.5 else int(rng.integers(9)))
    return found


@pytest.mark.parametrize("dim", [2, 3, 5, 8, 9, 13, 17, 33])
def test_evidence_moves_to_the_same_bits_wherever_arrays_lie(dim):
    """`move` and `solve_both`, which grow and explain: their arrays are new each time, and so lie anywhere."""
    rng = np.random.default_rng(dim)
    shapes = {"triangle": (dim, dim), "weights": dim, "targets": dim}
    evidence = make_evidence(dim)
    kept = evidence._replace(
        triangle=np.triu(rng.normal(size=(dim, dim)), 1) + np.eye(dim),
        weights=rng.gamma(1.0, size=dim),
        targets=rng.normal(size=dim),
    )
    basis = rng.normal(size=(dim, dim))
    results = set()
    for _ in range(40):
        lain = placed(
            [
                kept.triangle,
                kept.weights,
                kept.targets,
                basis,
                *map(np.zeros, shapes.values()),
                np.zeros(dim),
            ],
            rng,
        )
        source = kept._replace(**dict(zip(shapes, lain[:3], strict=True)))
        target = make_evidence(dim)._replace(**dict(zip(shapes, lain[4:7], strict=True)))
        left = move(source, lain[3], target, lain[7])
        direction, theta = placed([np.ones(dim), np.zeros(dim)], rng)
        solve_both(
            make_estimator(dim, 1.0)._replace(**dict(zip(shapes, lain[:3], strict=True))), theta, direction
        )
        outcome = (*lain[4:7], np.array(left), theta, direction)
        results.add(b"".join(one.tobytes() for one in outcome))
    assert len(results) == 1
