"""VIDS: variance-based information-directed sampling, by samples from the posterior (Russo and Van Roy 2018)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit, jit_apart
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Bools, Floats, Ints, Words
from solid_bandits.core.randomness import uniform
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.arms import count_available
from solid_bandits.estimation.linalg.vectors import dot
from solid_bandits.estimation.regression import (
    EVIDENCE,
    best_estimated,
    best_of_model,
    draw_model,
    first_coefficient,
    noise_deviation,
    observe_offer,
    value,
)
from solid_bandits.policies.contract import register
from solid_bandits.policies.facts import Facts
from solid_bandits.policies.mixture import Hull, best_mixture, insert_arm, make_hull, write_mixture
from solid_bandits.policies.regression_policy import Change, RegressionPolicy


class Memory(NamedTuple):
    """The arms of recent decisions, as many complete decisions as fit: a ring buffer."""

    rows: Floats
    """Features, shape (memory, dim)."""
    owners: Ints
    """The decision that each row belongs to, shape (memory,); 0 is none."""
    place: Ints
    """Position of the next decision, shape ()."""


class VIDSState(NamedTuple):
    """State of VIDS."""

    regression: Any
    memory: Memory
    rng: Words


class VIDSWork(NamedTuple):
    """Scratch; nothing is carried over in it."""

    models: Floats
    """The samples of θ, shape (samples, coefficients)."""
    mean: Floats
    """Mean of the samples, shape (coefficients,)."""
    winners: Ints
    """Arms that are best in some sample, shape (samples,)."""
    counts: Ints
    """Number of samples in which each is best, shape (samples,)."""
    sums: Floats
    """Mean of those samples, shape (samples, coefficients)."""
    covariance: Floats
    """L, the covariance of the mean of θ given the best arm, within the block of each row: shape (coefficients,
    width)."""
    hull: Hull


class VIDSAgent(NamedTuple):
    """Compiled form of VIDS."""

    setting: Setting
    state: VIDSState
    work: VIDSWork


@jit
def draw_models(agent: VIDSAgent) -> None:
    """Write samples from the posterior, and their mean."""
    state, work = agent.state, agent.work
    spread = noise_deviation(state.regression)
    count, dim = work.models.shape
    for i in range(dim):
        work.mean[i] = 0.0
    for m in range(count):
        draw_model(state.regression, spread, work.models[m], state.rng)
        for i in range(dim):
            work.mean[i] += work.models[m, i]
    for i in range(dim):
        work.mean[i] /= count


@jit
def add_winner(work: VIDSWork, found: int, winner: int, model: int) -> int:
    """Count `winner` as the best arm of a model; return the number of different winners."""
    dim, slot = work.mean.shape[0], 0
    while slot < found and work.winners[slot] != winner:
        slot += 1
    if slot == found:
        found += 1
        work.winners[slot], work.counts[slot] = winner, 0
        for i in range(dim):
            work.sums[slot, i] = 0.0
    work.counts[slot] += 1
    for i in range(dim):
        work.sums[slot, i] += work.models[model, i]
    return found


@jit
def add_covariance(work: VIDSWork, found: int) -> None:
    """Compute L += Σ p (μ - mean) (μ - mean)ᵀ over the winners, p being each winner's share and μ its mean."""
    coefficients, width = work.covariance.shape
    for slot in range(found):
        count, centre = work.counts[slot], work.sums[slot]
        for i in range(coefficients):
            centre[i] = centre[i] / count - work.mean[i]
        share = count / work.models.shape[0]
        for first in range(0, coefficients, width):
            own = centre[first : first + width]
            for i in range(width):
                scaled, line = share * own[i], work.covariance[first + i]
                for j in range(width):
                    line[j] += scaled * own[j]


@jit
def information_of(regression: Any, covariance: Floats, features: Floats) -> float:
    """Return φᵀLφ, the variance of the mean reward given which arm is best."""
    total, width, first = 0.0, covariance.shape[1], first_coefficient(regression, features)
    own = features[features.shape[0] - width :]
    for i in range(width):
        total += own[i] * dot(covariance[first + i], own)
    return max(total, 0.0)


@jit
def best_of_rows(regression: Any, memory: Memory, first: int, last: int, model: Floats) -> int:
    """Return the row with the largest φᵀθ among those of one decision."""
    best, largest = first, -np.inf
    for row in range(first, last):
        found = value(regression, memory.rows[row], model)
        if found > largest:
            best, largest = row, found
    return best


@jit
def add_remembered(regression: Any, memory: Memory, work: VIDSWork) -> None:
    """Add the decisions in memory to L."""
    first = 0
    while first < memory.owners.shape[0]:
        last = first + 1
        while last < memory.owners.shape[0] and memory.owners[last] == memory.owners[first]:
            last += 1
        if memory.owners[first] > 0:
            found = 0
            for m in range(work.models.shape[0]):
                best = best_of_rows(regression, memory, first, last, work.models[m])
                found = add_winner(work, found, best, m)
            add_covariance(work, found)
        first = last


@jit
def remember(memory: Memory, arms: Floats, available: Bools, step: int) -> None:
    """Write the arms on offer over the oldest ones; arms beyond the memory's size are dropped."""
    rows, owners = memory.rows, memory.owners
    room, count = owners.shape[0], count_available(available)
    if count > room or count < 2:
        return
    place = memory.place.item()
    if place + count > room:
        for row in range(place, room):
            owners[row] = 0
        place = 0
    cut = owners[place + count - 1]
    for arm in range(arms.shape[0]):
        if available[arm]:
            for i in range(arms.shape[1]):
                rows[place, i] = arms[arm, i]
            owners[place] = step
            place += 1
    memory.place[()] = place
    # A decision that lost some of its arms no longer counts.
    while cut > 0 and place < room and owners[place] == cut:
        owners[place] = 0
        place += 1


@jit_apart
def weigh(agent: VIDSAgent, arms: Floats, available: Bools) -> tuple[int, int, float]:
    """Return the mixture of least squared regret per information by new samples: two arms, and the second's chance."""
    work, regression, memory = agent.work, agent.state.regression, agent.state.memory
    draw_models(agent)
    for i in range(work.covariance.shape[0]):
        for j in range(work.covariance.shape[1]):
            work.covariance[i, j] = 0.0
    add_remembered(regression, memory, work)
    found, ideal = 0, 0.0
    for m in range(work.models.shape[0]):
        winner = best_of_model(regression, arms, available, work.models[m])
        ideal += value(regression, arms[winner], work.models[m])
        found = add_winner(work, found, winner, m)
    if found == 1:  # the samples agree
        return work.winners[0], work.winners[0], 0.0
    add_covariance(work, found)
    ideal /= work.models.shape[0]
    corners = 0
    for arm in range(arms.shape[0]):
        if available[arm]:
            regret = max(ideal - value(regression, arms[arm], work.mean), 0.0)
            information = information_of(regression, work.covariance, arms[arm])
            corners = insert_arm(work.hull, corners, arm, regret, information)
    return best_mixture(work.hull, corners)


@jit
def act(agent: VIDSAgent, arms: Floats, available: Bools, out: Floats | None) -> tuple[int, bool]:
    """Draw one of two arms, whose probabilities given the samples are exact; the round explores if it is not greedy."""
    regression, memory, rng = agent.state
    observe_offer(regression, arms, available)
    first, second, chance = weigh(agent, arms, available)
    write_mixture(out, first, second, chance)
    remember(memory, arms, available, regression.step.item())
    arm = second if uniform(rng) < chance else first
    return arm, arm != best_estimated(regression, arms, available)


register(VIDSAgent, act)


@dataclass(frozen=True)
class VIDS(RegressionPolicy):
    """Draw one of two arms, mixed so that (expected regret)² per information about the best arm is least.

    Of samples of θ from the posterior, arm a is best in the share p(a), with mean μ(a) there. An arm's expected regret
    is Δ(a) = Σ p(a') φ(a')ᵀμ(a') - φ(a)ᵀμ, μ the mean of all; its information v(a) = φ(a)ᵀ L φ(a),
    L = Σ p(a') (μ(a') - μ) (μ(a') - μ)ᵀ, the variance of its mean reward given which arm is best. The
    distribution π that minimises (πᵀΔ)² / πᵀv has two arms, and their probabilities, given the samples, are
    exact. If σ is unknown it is estimated, and the samples are Student. A decision takes O(M (d² + K d) + K d²)
    for M samples and K arms, a reward O(d²).

    Args:
        samples: M, the number of models drawn for each decision.
        memory: arms of recent decisions to keep, counted in rows of features. What an arm reveals about *their* best
            arms
            counts as information too; 0 counts only the current decision. Takes O(M d) more for each row.
        ridge: `evidence`, ν from the rewards (`estimation.evidence`); or ν > 0, the regulariser of the estimate.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.VIDS(samples=100), dim=2, seed=0)
        >>> agent.decide([[1.0, 0.0], [0.0, 1.0]]).arm in (0, 1)
        True

    Reference: Russo and Van Roy (2018), "Learning to optimize via information-directed sampling", Section 6.3 and
    Algorithm 6.
    """

    facts = Facts(
        name="vids",
        label="VIDS",
        line="mixes two arms so that expected regret² per information about the best arm is least, by samples",
        optimality="none; Bayesian bound",
        exploration="information",
        reference="Russo and Van Roy 2018",
        cost=(40.0, 0.0, 0.5),
    )

    samples: int = parameter(500, least=2, most=10**6)
    memory: int = parameter(0, least=0, most=10**6)
    ridge: float | str = parameter(EVIDENCE, above=0, word=EVIDENCE)

    def microseconds(self, pairs: int, dim: int) -> float:
        """Estimate the time of a step, in proportion to the samples."""
        return super().microseconds(pairs, dim) * self.samples / 500

    def start(self, setting: Setting, rng: Words) -> VIDSAgent:
        """Return a new agent that draws its models and arms from `rng`."""
        size, samples = setting.coefficients, int(self.samples)
        memory = Memory(
            np.zeros((self.memory, setting.dim)), np.zeros(self.memory, dtype=np.int64), np.array(0)
        )
        state = VIDSState(self.make_regression(setting), memory, rng)
        work = VIDSWork(
            models=np.zeros((samples, size)),
            mean=np.zeros(size),
            winners=np.zeros(samples, dtype=np.int64),
            counts=np.zeros(samples, dtype=np.int64),
            sums=np.zeros((samples, size)),
            covariance=np.zeros((size, setting.width)),
            hull=make_hull(),
        )
        return VIDSAgent(setting, state, work)

    def carry(self, state: VIDSState, change: Change) -> VIDSState:
        """Return the state after a change of columns, blocks or coordinates; arms in memory change with them."""
        rows, owners, place = state.memory
        memory = Memory(change.rows(rows.copy()), owners.copy(), place.copy())
        return VIDSState(change.regression(state.regression), memory, state.rng.copy())

    def check_state(self, agent: VIDSAgent) -> None:
        """Raise a ValueError for a memory that no decisions leave."""
        memory, step = agent.state.memory, agent.state.regression.step.item()
        if memory.place.item() > self.memory or (memory.owners > step).any():
            raise ValueError("state.memory must have rows of decisions that were made, and a place within it")
