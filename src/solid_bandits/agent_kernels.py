"""The compiled functions of an agent: decide, learn, measure; around the kernels of any policy."""

from typing import Any

from numba import types
from numba.experimental import structref

from solid_bandits._compile import jit_allocating, jit_apart
from solid_bandits._types import Bools, Floats, Words
from solid_bandits.estimation.arms import count_available
from solid_bandits.estimation.estimator import Estimator, squared_norm, write_theta
from solid_bandits.policies import contract
from solid_bandits.policies.contract import CompiledAgent
from solid_bandits.policies.epsilon_greedy import any_available
from solid_bandits.stream import uniform


@structref.register
class HeldType(types.StructRef):
    """To compiled code, an agent held in one place."""

    @property
    def key(self) -> Any:
        """What tells it from others: by its words, as numba would, two classes of the same name would be one."""
        return tuple(self.field_dict.items())


class Held(structref.StructRefProxy):
    """An agent handed to compiled code once and for all.

    To hand over a tuple of some twenty arrays takes microseconds, several times what a decision takes; to hand over the
    place where it is held takes one pointer. The arrays are the agent's own, not copies.
    """


structref.define_proxy(Held, HeldType, ["agent"])  # type: ignore[no-untyped-call]


@jit_allocating
def hold(agent: CompiledAgent) -> Any:
    """The agent, held in one place."""
    return Held(agent)  # type: ignore[no-untyped-call]


@jit_apart
def mix(probabilities: Floats, available: Bools, floor: float) -> None:
    """(1 - ε) p + ε / K for each of the K available arms."""
    each = floor / count_available(available)
    for arm in range(probabilities.shape[0]):
        if available[arm]:
            probabilities[arm] = (1.0 - floor) * probabilities[arm] + each


@jit_allocating
def decide(
    held: Any,
    context: int,
    arms: Floats,
    available: Bools,
    probabilities: Floats,
    certain: bool,
    tied: bool,
    floor: float,
    stream: Words,
) -> tuple[int, bool, bool]:
    """The arm, whether the round explored, and whether the probabilities that were written are known.

    With a floor ε the policy's arm is replaced by one drawn uniformly in a share ε of the decisions, an exploring
    round: the policy's own numbers are drawn as without it.

    Where `tied`, rounding may hide which of several arms leads, to `act` and to the probabilities differently: an arm
    without probability then gives way to the one that has most, so that none is pulled that is said to be impossible.
    """
    known = contract.probabilities(held.agent, context, arms, available, probabilities)
    arm, explored = contract.act(held.agent, context, arms, available)
    if tied and known and 0 <= arm < probabilities.shape[0] and probabilities[arm] == 0.0:
        for other in range(probabilities.shape[0]):
            if probabilities[other] > probabilities[arm]:
                arm = other
    if certain and 0 <= arm < probabilities.shape[0]:  # a policy of a user's own may name any
        probabilities[arm] = 1.0
        known = True
    if floor > 0.0 and 0 <= arm < probabilities.shape[0] and available[arm]:
        mix(probabilities, available, floor)
        if uniform(stream) < floor:
            arm, explored = any_available(available, stream), True
    return arm, explored, known


@jit_allocating
def survey(
    held: Any, arms: Floats, counts: Any, available: Bools, probabilities: Floats, floor: float
) -> bool:
    """Write the probabilities of each row's arms, the first `counts` of its places; whether they are known."""
    known = True
    for row in range(arms.shape[0]):
        count = counts[row]
        mask, out = available[row, :count], probabilities[row, :count]
        known = contract.probabilities(held.agent, 0, arms[row, :count], mask, out) and known
        if floor > 0.0:
            mix(out, mask, floor)
    return known


@jit_apart
def measure(estimator: Estimator, rows: Floats, theta: Floats, sq_norms: Floats) -> None:
    """Write θ-hat, and ‖φ‖²_{V^-1} of each row, which is used up."""
    write_theta(estimator, theta)
    for row in range(rows.shape[0]):
        sq_norms[row] = squared_norm(estimator, rows[row])


@jit_allocating
def learn(held: Any, context: int, arm: int, features: Floats, reward: float) -> None:
    """Take in a reward."""
    contract.update(held.agent, context, arm, features, reward)
