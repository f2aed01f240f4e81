"""The compiled functions of an agent (decide, learn, measure) around the kernels of any policy."""

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from solid_bandits._internal.compiling import jit, jit_allocating, jit_apart
from solid_bandits._internal.types import Bools, Floats, Ints, Words
from solid_bandits.core.decision import EXPLORED, KNOWN
from solid_bandits.core.held import parts_at
from solid_bandits.core.randomness import uniform
from solid_bandits.core.setting import LARGEST_FEATURE, LARGEST_REWARD
from solid_bandits.estimation.arms import count_available
from solid_bandits.estimation.regression import (
    noise_deviation,
    observe_offer,
    predict_reward,
    squared_norm,
    write_theta,
)
from solid_bandits.policies import contract
from solid_bandits.policies.epsilon_greedy import any_available
from solid_bandits.policies.state import arrays_of

CHECKED = 0
UNCHECKED = -1
"""Context number of an offer whose features come from a caller and are not checked yet."""
REFUSED, NO_ARM, NOT_FILLED, NO_DISTRIBUTION = -1, -2, -3, -4
"""Result codes in place of an arm: the offer must be checked in Python, where errors have messages; and, only for
users' policies, the arm is not on offer, no probabilities can be mixed with a floor, or they are not probabilities.
"""
SLACK = 1e-9
"""Tolerance on the sum of probabilities."""


@jit
def act(
    agent: Any, context: int, arms: Floats, available: Bools, out: Floats, floor: float, rng: Words
) -> tuple[int, bool]:
    """Return the policy's decision, mixed with a floor ε; its probabilities are in `out`, NaN if unknown.

    They are (1 - ε) p + ε / K for each of the K available arms: in a share ε of the decisions the policy's arm is
    replaced by one drawn uniformly, an exploring round. The policy's own random numbers are drawn as without a floor.
    """
    for arm in range(out.shape[0]):
        out[arm] = np.nan
    arm, explored = contract.act(agent, context, arms, available, out)
    if floor > 0.0 and 0 <= arm < out.shape[0] and available[arm]:  # a user's policy may return any
        each = floor / count_available(available)
        for other in range(out.shape[0]):
            if available[other]:
                out[other] = (1.0 - floor) * out[other] + each
        if uniform(rng) < floor:
            return any_available(available, rng), True
    return arm, explored


@jit
def is_sound(numbers: Floats) -> bool:
    """Return whether these are finite and small enough to be squared and summed; very few valid arrays fail this."""
    total = 0.0
    for index in range(numbers.shape[0]):
        total += numbers[index] * numbers[index]
    return total <= LARGEST_FEATURE**2  # not so if any of them is not a number


@jit
def names_block(number: float, blocks: int) -> bool:
    """Return whether this is a valid block number, if features begin with one."""
    return blocks == 0 or (0.0 <= number < blocks and number == math.floor(number))


@jit
def is_sharing(probabilities: Floats, available: Bools) -> bool:
    """Return whether these are probabilities of the available arms."""
    total = 0.0
    for arm in range(probabilities.shape[0]):
        share = probabilities[arm]
        if not share >= 0.0 or (share > 0.0 and not available[arm]):
            return False
        total += share
    return abs(total - 1.0) <= SLACK


@jit
def verdict(arm: Any, explored: bool, out: Floats, available: Bools, floor: float, own: bool) -> int:
    """Return the description of a decision as bits, or the code of what is wrong with it."""
    if not (0 <= arm < out.shape[0] and available[arm]):
        return NO_ARM
    said = EXPLORED if explored else 0
    if out[arm] != out[arm]:
        return NOT_FILLED if floor > 0.0 else said
    if not out[arm] > 0.0 or (own and not is_sharing(out, available)):
        return NO_DISTRIBUTION
    return said | KNOWN


@jit_apart
def decide(
    kind: Any, address: int, context: int, arms: Floats, available: Bools, kept: Floats
) -> tuple[int, int]:
    """Make one decision of the held agent; return the arm, and the decision's bits or error code.

    Args:
        kind: the type of the holder.
        address: the address of the holder.
        context: context of the agent's table, if it plans over one; 0 elsewhere, or `UNCHECKED`.
        arms: features of the arms on offer.
        available: mask of the arms that may be pulled; empty for all.
        kept: filled with the probabilities of all arms and the features of the chosen one.
    """
    held: Any = parts_at(kind, address)  # type: ignore[call-arg]
    count = arms.shape[0]
    if held.mask.shape[0] < count or kept.shape[0] != count + held.dim:  # the agent may have grown meanwhile
        return 0, REFUSED
    out, chosen, mask = kept[:count], kept[count:], held.mask[:count]
    everything = available.shape[0] == 0
    left = 0
    for place in range(count):
        mask[place] = everything or available[place]
        left += mask[place]
    if context == UNCHECKED:
        context = CHECKED
        if left == 0 or arms.shape[1] != held.dim or not is_sound(arms.reshape(-1)):
            return 0, REFUSED
        for place in range(count):
            if not names_block(arms[place, 0], held.blocks):
                return 0, REFUSED
    arm, explored = act(held.agent, context, arms, mask, out, held.floor, held.rng)
    said = verdict(arm, explored, out, mask, held.floor, held.own)
    if said >= 0:
        for column in range(held.dim):
            chosen[column] = arms[arm, column]
    return int(arm), said


@jit_apart
def decide_many(
    kind: Any,
    address: int,
    calm_address: int,
    step: Ints,
    rows: Floats,
    starts: Ints,
    available: Bools,
    shares: Floats,
    chosen: Floats,
    places: Ints,
    said: Ints,
) -> int:
    """Decide many offers under one regression, whose clock and evidence are those of the first offer for all of them.

    The rest of what the policy carries, above all its random numbers, advances from offer to offer.

    Args:
        kind: the type of the agent's holder.
        address: its address, for the first offer.
        calm_address: address of the same agent with evidence that does not fade, for the other offers.
        step: t of its regression, or an unused number.
        rows: features of the arms of all offers, one after the other, checked.
        starts: start of each offer, and the end of the last.
        available: mask of the arms that may be pulled; empty for all.
        shares: filled with the probabilities.
        chosen: filled with the features of the chosen arms.
        places: filled with the arms, counted within their offers.
        said: filled with the bits or error code of each decision.

    Returns:
        The number of offers, or the index of the first one whose decision is wrong.
    """
    held: Any = parts_at(kind, address)  # type: ignore[call-arg]
    calm: Any = parts_at(kind, calm_address)
    everything = available.shape[0] == 0
    for offer in range(places.shape[0]):
        first, end = starts[offer], starts[offer + 1]
        out, mask = shares[first:end], held.mask[: end - first]
        for place in range(end - first):
            mask[place] = everything or available[first + place]
        if offer == 0:
            arm, explored = act(held.agent, 0, rows[first:end], mask, out, held.floor, held.rng)
        else:
            step[()] -= 1
            arm, explored = act(calm.agent, 0, rows[first:end], mask, out, held.floor, held.rng)
        places[offer] = arm
        said[offer] = verdict(arm, explored, out, mask, held.floor, held.own)
        if said[offer] < 0:
            return offer
        for column in range(held.dim):
            chosen[offer, column] = rows[first + places[offer], column]
    return places.shape[0]


@jit_apart
def let_pass(regression: Any, arms: Floats, available: Bools, times: int) -> None:
    """Let `times` decisions pass, so that evidence fades."""
    for _ in range(times):
        observe_offer(regression, arms, available)


@jit_apart
def learn_many(kind: Any, address: int, features: Floats, rewards: Floats, age: int, younger: int) -> None:
    """Learn the rewards of decisions in order; the first has this age, and each next one is younger by `younger`."""
    held: Any = parts_at(kind, address)  # type: ignore[call-arg]
    for row in range(rewards.shape[0]):
        contract.update(held.agent, 0, 0, features[row], rewards[row], age - row * younger)


@jit_allocating
def survey(
    held: Any,
    before: Any,
    arms: Floats,
    counts: Any,
    available: Bools,
    probabilities: Floats,
    floor: float,
    rng: Words,
) -> None:
    """Write the probabilities of each row's arms, the first `counts` entries, each as if it were the next decision.

    `before` is a copy of the state, which each row leaves unchanged.
    """
    for row in range(arms.shape[0]):
        count = counts[row]
        out = probabilities[row, :count]
        act(held.parts.agent, 0, arms[row, :count], available[row, :count], out, floor, rng)
        restore(held.parts.agent.state, before)


def restore(state: Any, before: Any) -> None:
    """Write the arrays of a state back, from a copy of it; compiled for each type of state."""
    for array, values in zip(arrays_of(state), arrays_of(before), strict=True):
        array[...] = values


@overload(restore, jit_options={"_nrt": True})  # type: ignore[typeddict-unknown-key]
def _compiled_restore(state: Any, before: Any) -> Any:
    lines = ["def compiled(state: Any, before: Any) -> Any:"]

    def add(kind: Any, path: str) -> None:
        for name, part in zip(kind.fields, kind.types, strict=True):
            if isinstance(part, types.Array):
                whole = "()" if part.ndim == 0 else ":"
                lines.append(f"    state{path}.{name}[{whole}] = before{path}.{name}[{whole}]")
            elif isinstance(part, types.BaseNamedTuple) and name != "work":
                add(part, f"{path}.{name}")

    add(state, "")
    names: dict[str, Any] = {"__name__": __name__, "Any": Any}
    exec("\n".join([*lines, "    return None"]), names)
    return names["compiled"]


@jit_apart
def measure(regression: Any, rows: Floats, theta: Floats, means: Floats, sq_norms: Floats) -> float:
    """Write θ-hat, and mean reward and ‖φ‖²_{V^-1} of each row, which is overwritten; return σ or its estimate."""
    write_theta(regression, theta)
    for row in range(rows.shape[0]):
        means[row] = predict_reward(regression, rows[row])
        sq_norms[row] = squared_norm(regression, rows[row])
    return noise_deviation(regression)


@jit_apart
def learn(
    kind: Any, address: int, context: int, arm: int, kept: Floats, count: int, reward: float, age: int
) -> bool:
    """Learn a reward; features are in `kept` after `count` other numbers.

    Returns False if they, or the reward, must be checked in Python, where errors have messages.
    """
    held: Any = parts_at(kind, address)  # type: ignore[call-arg]
    features = kept[count:]
    if context == UNCHECKED:
        context = CHECKED
        if features.shape[0] != held.dim or not is_sound(features) or not abs(reward) <= LARGEST_REWARD:
            return False
        if not names_block(features[0], held.blocks):
            return False
    contract.update(held.agent, context, arm, features, reward, age)
    return True
