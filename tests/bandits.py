"""Bandits at play, and all that they carry."""

import numpy as np

import solid_bandits as sb
from solid_bandits.core.decision import OPEN, Decision
from solid_bandits.policies.state import state_to_plain

ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
NAMES = ["red", "blue", 3]


def make(policy=None, **more):
    return sb.Bandit(policy or sb.LinTS(), **({"dim": 2, "noise_std": 0.5, "floor": 0.1, "seed": 4} | more))


UNTIL_CLOSED = ("offered", "features")
COMPUTED = ("arms", "explored", "features", "offered", "probabilities", "version")
FIELDS = [name for name in (*Decision.__annotations__, *COMPUTED) if name[0] != "_"]


def carried(bandit, only_open=False):
    """All that a bandit carries, as comparable data; of its decisions all or those that are open."""
    records = [
        tuple(
            value.tolist() if isinstance(value, np.ndarray) else value
            for value in (getattr(one, name) for name in FIELDS if open_ or name not in UNTIL_CLOSED)
        )
        for one in bandit._remembered
        if (open_ := one.status == OPEN) or not only_open
    ]
    counters = (bandit._decisions, bandit._sequence, bandit._learned, bandit.waiting)
    stream = bandit.agent._floor_rng.tolist()
    return state_to_plain(bandit.agent._compiled.state), records, counters, stream


def same_log(one, other):
    return one.log().equals(other.log(), null_equal=True)


def played(bandit, steps, seed, start=0):
    """Calls with ids and times, as a log of calls would have them."""
    rng = np.random.default_rng(seed)
    for number in range(start, start + steps):
        count = int(rng.integers(1, 6))
        bandit.decide(rng.normal(size=(count, 2)), [f"a{i}" for i in range(count)], f"e{number}", time=number)
        opened = bandit.open_ids()
        if opened and rng.random() < 0.7:
            bandit.learn(opened[rng.integers(len(opened))], rng.normal(), time=number + 0.5)
        if rng.random() < 0.05:
            bandit.expire(before=number - 20, reward=0.0, time=number + 0.7)
