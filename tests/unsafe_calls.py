"""Calls that ended the process, or wrote where they should not, before they were refused.

Each ends with a line of JSON: its name and what was said.
`test_memory` runs this file in a process of its own, so that a crash is a failure and not the end of the tests.
"""

import json
from typing import Any

import numpy as np

import solid_bandits as sb
from solid_bandits.streams.ridge import RidgeFit

Rounds = sb.streams.Rounds


def rounds(*shape: int, **given: Any) -> Any:
    features = np.ones(shape)
    return Rounds(features, features.sum(axis=2), **given)


class Own(sb.streams.Stream):
    """A stream of a user's own, whose every block is the same."""

    dim, n_arms, noise_std = 2, 3, 0.5

    def __init__(self, block: Any = None, **attributes: Any) -> None:
        self.block = rounds(100, 3, 2) if block is None else block
        for name, value in attributes.items():
            setattr(self, name, value)

    def blocks(self, seed, run):
        for _ in range(3):
            yield self.block


class Growing(Own):
    """One that changes its mind on the way."""

    def blocks(self, seed, run):
        yield rounds(10, 3, 2)
        self.dim = 2000
        yield rounds(10, 3, 2000)


class Numbers(Own):
    def blocks(self, seed, run):
        return 5


class OfOneDimension(Own):
    def setting(self, horizon=None, tell_noise=True):
        return super().setting(horizon, tell_noise)._replace(dim=1)


def replaced(**arrays: Any) -> Any:
    """Rounds of which somebody put others in the place of some arrays."""
    block = rounds(100, 3, 2)
    object.__setattr__(block, "arrays", block.arrays._replace(**arrays))
    return block


def reshaped() -> Any:
    block = rounds(100, 3, 2)
    block.arrays.features.shape = (1, 1, 600)
    return block


class Subclass(Rounds):
    def first(self, count):
        return rounds(100, 3, 2000)


def play(stream: Any, **options: Any) -> None:
    sb.simulate(stream, sb.RandUCB(), 250, 1, jobs=1, **options)


def with_theta(stream: Any, theta: Any) -> Any:
    stream.theta = theta
    return stream


AGENT = sb.Agent(sb.RandUCB(ridge=0.2), dim=2, noise_std=0.5, probabilities=True)
CERTAIN = sb.Agent(sb.Greedy(), dim=2, noise_std=0.5)
PHI, COUNTS, MASK = np.ones((4, 3, 2)), np.full(4, 3), np.ones((4, 3), dtype=bool)
NONE = MASK.copy()
NONE[2] = False
HIDDEN = MASK.copy()
HIDDEN[1, :2] = False
SHAPE = "features of a block must have shape (rounds, arms, 2) with at most 3 arms"

CALLS = {
    "features far wider than dim": (lambda: play(Own(rounds(100, 3, 2000))), SHAPE),
    "features narrower than dim": (lambda: play(Own(rounds(100, 3, 1))), SHAPE),
    "far more arms than n_arms": (lambda: play(Own(rounds(100, 100_000, 2))), SHAPE),
    "a fit to features wider than dim": (
        lambda: Own(rounds(100, 3, 500), linear=False, length=300).fit,
        SHAPE,
    ),
    "features that grow on the way": (lambda: play(Growing()), SHAPE),
    "blocks of something else": (lambda: play(Own(5)), "blocks must give sb.streams.Rounds, got 5"),
    "blocks that are none": (lambda: play(Numbers()), "blocks must give sb.streams.Rounds one by one, got 5"),
    "a fit to something else": (
        lambda: Own(5, linear=False, length=300).fit,
        "blocks must give sb.streams.Rounds, got 5",
    ),
    "a fit of another dim": (
        lambda: play(Own(fit=RidgeFit(np.ones(10**6), 1.0, 1.0, 1))),
        "fit.theta must have shape (2,), as dim is 2, got (1000000,)",
    ),
    "a setting of another dim": (
        lambda: play(OfOneDimension()),
        "setting of a stream must have its dim of 2, got 1",
    ),
    "no dim": (lambda: play(Own(dim=None)), "dim must be an integer >= 1, got None"),
    "half an arm": (lambda: play(Own(n_arms=2.5)), "n_arms must be an integer >= 1, got 2.5"),
    "other counts": (
        lambda: play(Own(replaced(counts=np.full(100, 10**7)))),
        "counts must be from 1 to 3, the arms of the features, got 10000000",
    ),
    "other means": (
        lambda: play(Own(replaced(means=np.ones((1, 1))))),
        "means must have shape (100, 3), got (1, 1)",
    ),
    "another mask": (
        lambda: play(Own(replaced(available=np.ones((2, 2), dtype=bool)))),
        "available must have shape (100, 3), got (2, 2)",
    ),
    "a mask of numbers": (
        lambda: play(Own(replaced(available=np.ones((100, 3))))),
        "available must be true and false, got float64",
    ),
    "a mask without an arm": (
        lambda: play(Own(replaced(available=np.zeros((100, 3), dtype=bool)))),
        "available must have an arm in each round, got none in 0",
    ),
    "other noise": (lambda: play(Own(replaced(noise=np.ones(3)))), "noise must have shape (100,), got (3,)"),
    "features that are no numbers": (
        lambda: play(Own(replaced(features=np.full((100, 3, 2), np.nan)))),
        "features must be finite and at most 1e+30 in size, got nan",
    ),
    "arrays that are none": (
        lambda: play(Own(replaced(features="features"))),
        "features must be numbers with 3 axes, none empty",
    ),
    "features reshaped in place": (
        lambda: play(Own(reshaped())),
        "means must have shape (1, 1), got (100, 3)",
    ),
    "rounds that were never made": (
        lambda: play(Own(object.__new__(Rounds))),
        "blocks must give sb.streams.Rounds as they were made, got arrays None",
    ),
    "a theta of another dim": (
        lambda: play(with_theta(sb.streams.gaussian(3, 2, drift=0.1), np.zeros(10**6))),
        "theta must have shape (2,), as dim says, got (1000000,)",
    ),
    "blocks written past the features": (
        lambda: sb.streams.joint(3, 2).draw(np.random.default_rng(0), np.zeros((5, 3, 2))),
        "features must have shape (5, arms, 0 + arms * 2)",
    ),
    "counts below 0": (
        lambda: AGENT.probabilities_many(PHI, np.full(4, -3), MASK),
        "counts must be from 1 to 3, the arms of the features, got -3",
    ),
    "counts of 0": (lambda: AGENT.probabilities_many(PHI, np.zeros(4, dtype=int), MASK), "got 0"),
    "counts beyond the arms": (
        lambda: AGENT.probabilities_many(PHI, np.full(4, 10**6), MASK),
        "counts must be from 1 to 3, the arms of the features, got 1000000",
    ),
    "counts of half arms": (
        lambda: AGENT.probabilities_many(PHI, np.full(4, 1.5), MASK),
        "counts must be whole numbers, one per offer, of shape (4,), got float64 of shape (4,)",
    ),
    "too few counts": (
        lambda: AGENT.probabilities_many(PHI, [1], MASK),
        "counts must be whole numbers, one per offer, of shape (4,), got int64 of shape (1,)",
    ),
    "a mask of many rows": (
        lambda: AGENT.probabilities_many(PHI, COUNTS, np.ones((10**7, 3), dtype=bool)),
        "available must be truth values, one per offer and arm, of shape (4, 3), got bool of shape (10000000, 3)",
    ),
    "a mask of indices": (
        lambda: AGENT.probabilities_many(PHI, COUNTS, np.ones((4, 3), dtype=int)),
        "available must be truth values, one per offer and arm, of shape (4, 3), got int64 of shape (4, 3)",
    ),
    "an offer without an arm": (
        lambda: AGENT.probabilities_many(PHI, COUNTS, NONE),
        "available must have at least one arm in each offer, got none in offer 2",
    ),
    "an offer whose arms are none of its first": (
        lambda: AGENT.probabilities_many(PHI, np.full(4, 2), HIDDEN),
        "available must have at least one arm in each offer, got none in offer 1",
    ),
    "offers of another dim": (
        lambda: AGENT.probabilities_many(np.ones((4, 3, 500)), COUNTS, MASK),
        "features must have shape (offers, arms, 2), got (4, 3, 500)",
    ),
    "offers of another dim to a policy that is certain": (
        lambda: CERTAIN.probabilities_many(np.ones((4, 3, 500)), COUNTS, MASK),
        "features must have shape (offers, arms, 2), got (4, 3, 500)",
    ),
    "one offer": (
        lambda: AGENT.probabilities_many(np.ones((3, 2)), COUNTS, MASK),
        "features must be an array of numbers of shape (offers, arms, dim), got shape (3, 2)",
    ),
    "offers that are no numbers": (
        lambda: AGENT.probabilities_many(np.full((4, 3, 2), np.nan), COUNTS, MASK),
        "features must be finite everywhere, got nan at index (0, 0, 0)",
    ),
    "no offers": (
        lambda: AGENT.probabilities_many(np.ones((0, 3, 2)), [], np.ones((0, 3), dtype=bool)),
        "none of them empty, got shape (0, 3, 2)",
    ),
}


def counts_written_to_later() -> Any:
    """A block goes by the counts and the mask that it was made with."""
    counts, mask = np.full(100, 3), np.ones((100, 3), dtype=bool)
    block = rounds(100, 3, 2, counts=counts, available=mask)
    counts[:], mask[:] = 10**9, False
    return block


def other_numbers() -> Any:
    """Whole numbers in the place of floats are made floats of."""
    return replaced(features=np.ones((100, 3, 2), dtype=np.int8), counts=np.full(100, 3, dtype=np.uint16))


def subclass() -> Any:
    features = np.ones((100, 3, 2))
    return Subclass(features, features.sum(axis=2))


class OfOneArm(sb.Problem):
    n_arms = 1  # type: ignore[assignment]


def reward(stream: Any) -> float:
    results = sb.simulate(stream, sb.RandUCB(), 250, 1, jobs=1)
    return float(results.table["reward"][-1])


def main() -> None:
    for name, (call, _) in CALLS.items():
        print(json.dumps([name, None]), flush=True)  # so that a crash shows which one it was
        try:
            said = f"nothing, but returned {call()!r}"
        except ValueError as error:
            said = str(error)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        print(json.dumps([name, said]), flush=True)
    played = [reward(Own(block)) for block in (None, counts_written_to_later(), other_numbers(), subclass())]
    toy = sb.problems.toy()
    tables = [
        sb.simulate(kind(toy.features, toy.theta), sb.LinUCB(), 200, 2, jobs=1).table["regret"].to_list()
        for kind in (sb.Problem, OfOneArm)
    ]
    print(json.dumps(["what is taken", [played, tables[0] == tables[1]]]), flush=True)


if __name__ == "__main__":
    main()
