"""VIDS: variance-based information-directed sampling, by samples from the posterior (Russo and Van Roy 2018)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit, jit_apart
from solid_bandits._types import Bools, Floats, Ints, Words
from solid_bandits.estimation.arms import ThetaWork, best_available, count_available, make_theta_work
from solid_bandits.estimation.estimator import Estimator, write_theta
from solid_bandits.estimation.evidence import Evidence
from solid_bandits.estimation.noise import degrees_of_freedom, noise_deviation
from solid_bandits.estimation.ridges import EVIDENCE, check_ridge, make_ridge, meet, take_in
from solid_bandits.linalg.vectors import dot
from solid_bandits.policies.contract import DecisionPolicy, register
from solid_bandits.policies.lints import sample_theta
from solid_bandits.policies.mixture import Hull, best_mixture, make_hull, put_in
from solid_bandits.setting import Setting
from solid_bandits.stream import uniform


class VIDSParams(NamedTuple):
    """The chosen parameters as compiled code takes them."""

    ridge: Any
    """Of `ridges`."""


class Memory(NamedTuple):
    """The arms of recent decisions, as many whole decisions as there is room for: a ring."""

    rows: Floats
    """Features, shape (memory, dim)."""
    owners: Ints
    """The decision that each row is of, shape (memory,); 0 is none."""
    place: Ints
    """Where the next decision goes, shape ()."""


class VIDSState(NamedTuple):
    """All that VIDS carries."""

    estimator: Estimator
    evidence: Evidence | None
    memory: Memory
    step: Ints
    """t: decisions made, shape ()."""
    stream: Words


class VIDSWork(NamedTuple):
    """Scratch; nothing is carried in it."""

    estimates: ThetaWork
    models: Floats
    """The samples of θ, shape (samples, dim)."""
    mean: Floats
    """Of the samples, shape (dim,)."""
    winners: Ints
    """Arms that are best in some sample, shape (samples,)."""
    counts: Ints
    """In how many, shape (samples,)."""
    sums: Floats
    """Of those samples, shape (samples, dim)."""
    covariance: Floats
    """L, that of the mean of θ given which arm is best, shape (dim, dim)."""
    hull: Hull
    stream: Words


class VIDSAgent(NamedTuple):
    """VIDS at work."""

    params: VIDSParams
    setting: Setting
    state: VIDSState
    work: VIDSWork


@jit
def draw_models(agent: VIDSAgent, stream: Words) -> None:
    """Write samples from the posterior, and their mean."""
    state, work, noise_std = agent.state, agent.work, agent.setting.noise_std
    spread = noise_deviation(noise_std, state.estimator)
    degrees = degrees_of_freedom(noise_std, state.estimator)
    count, dim = work.models.shape
    for i in range(dim):
        work.mean[i] = 0.0
    for m in range(count):
        sample_theta(state.estimator, spread, degrees, work.models[m], stream)
        for i in range(dim):
            work.mean[i] += work.models[m, i]
    for i in range(dim):
        work.mean[i] /= count


@jit
def add_winner(work: VIDSWork, found: int, winner: int, model: int) -> int:
    """Count `winner` as the best arm of a model; return how many different ones there are."""
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
    """L += Σ p (μ - mean) (μ - mean)ᵀ over the winners, p the share of the samples that one wins, μ their mean."""
    dim = work.mean.shape[0]
    for slot in range(found):
        count, centre = work.counts[slot], work.sums[slot]
        for i in range(dim):
            centre[i] = centre[i] / count - work.mean[i]
        share = count / work.models.shape[0]
        for i in range(dim):
            for j in range(dim):
                work.covariance[i, j] += share * centre[i] * centre[j]


@jit
def information_of(covariance: Floats, features: Floats) -> float:
    """φᵀLφ, the variance of the mean reward given which arm is best."""
    total = 0.0
    for i in range(features.shape[0]):
        total += features[i] * dot(covariance[i], features)
    return max(total, 0.0)


@jit
def best_of_rows(memory: Memory, first: int, last: int, model: Floats) -> int:
    """The row with the largest φᵀθ among those of one decision."""
    best, largest = first, -np.inf
    for row in range(first, last):
        value = dot(memory.rows[row], model)
        if value > largest:
            best, largest = row, value
    return best


@jit
def add_remembered(memory: Memory, work: VIDSWork) -> None:
    """Add to L those of the decisions in memory."""
    first = 0
    while first < memory.owners.shape[0]:
        last = first + 1
        while last < memory.owners.shape[0] and memory.owners[last] == memory.owners[first]:
            last += 1
        if memory.owners[first] > 0:
            found = 0
            for m in range(work.models.shape[0]):
                found = add_winner(work, found, best_of_rows(memory, first, last, work.models[m]), m)
            add_covariance(work, found)
        first = last


@jit
def remember(memory: Memory, arms: Floats, available: Bools, step: int) -> None:
    """Put the arms on offer in the place of the oldest ones; more than there is room for are not kept."""
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
    # A decision that lost some of its arms is no decision any more.
    while cut > 0 and place < room and owners[place] == cut:
        owners[place] = 0
        place += 1


@jit_apart
def weigh(agent: VIDSAgent, arms: Floats, available: Bools, stream: Words) -> tuple[int, int, float]:
    """The mixture of least squared regret per information, given the samples that `stream` gives.

    Two arms, and the probability of the second.
    """
    work, memory = agent.work, agent.state.memory
    draw_models(agent, stream)
    dim = work.mean.shape[0]
    for i in range(dim):
        for j in range(dim):
            work.covariance[i, j] = 0.0
    add_remembered(memory, work)
    found, ideal = 0, 0.0
    for m in range(work.models.shape[0]):
        winner = best_available(arms, available, work.models[m])
        ideal += dot(arms[winner], work.models[m])
        found = add_winner(work, found, winner, m)
    if found == 1:  # the samples agree
        return work.winners[0], work.winners[0], 0.0
    add_covariance(work, found)
    ideal /= work.models.shape[0]
    corners = 0
    for arm in range(arms.shape[0]):
        if available[arm]:
            regret = max(ideal - dot(arms[arm], work.mean), 0.0)
            information = information_of(work.covariance, arms[arm])
            corners = put_in(work.hull, corners, arm, regret, information)
    return best_mixture(work.hull, corners)


@jit
def act(agent: VIDSAgent, arms: Floats, available: Bools) -> tuple[int, bool]:
    """One of the two arms; an exploring round is one in which this is not the greedy arm."""
    state, estimates = agent.state, agent.work.estimates
    meet(agent.params.ridge, state.estimator, state.evidence, arms, available, estimates.vector)
    state.step[()] += 1
    first, second, chance = weigh(agent, arms, available, state.stream)
    remember(state.memory, arms, available, state.step.item())
    arm = second if uniform(state.stream) < chance else first
    write_theta(state.estimator, estimates.theta)
    return arm, arm != best_available(arms, available, estimates.theta)


@jit
def update(agent: VIDSAgent, features: Floats, reward: float) -> None:
    """Take in a reward."""
    state, work = agent.state, agent.work.estimates
    take_in(
        agent.params.ridge,
        state.estimator,
        state.evidence,
        agent.setting.noise_std,
        features,
        reward,
        work.vector,
        work.gains,
    )


@jit
def probabilities(agent: VIDSAgent, arms: Floats, available: Bools, out: Floats) -> bool:
    """Those of the two arms, given the samples that `act` is going to draw."""
    state, work = agent.state, agent.work
    meet(agent.params.ridge, state.estimator, state.evidence, arms, available, work.estimates.vector)
    for word in range(4):
        work.stream[word] = state.stream[word]
    first, second, chance = weigh(agent, arms, available, work.stream)
    for arm in range(out.shape[0]):
        out[arm] = 0.0
    out[first] += 1.0 - chance
    out[second] += chance
    return True


register(VIDSAgent, act, update, probabilities)


@dataclass(frozen=True)
class VIDS(DecisionPolicy):
    """Draw one of two arms, mixed so that (expected regret)² per information about the best arm is least.

    Of samples of θ from the posterior, arm a is best in the share p(a), with mean μ(a) there. An arm's expected regret
    is Δ(a) = Σ p(a') φ(a')ᵀμ(a') - φ(a)ᵀμ, μ the mean of all; its information v(a) = φ(a)ᵀ L φ(a),
    L = Σ p(a') (μ(a') - μ) (μ(a') - μ)ᵀ, the variance of its mean reward given which arm is best. The
    distribution π that minimises (πᵀΔ)² / πᵀv has two arms, and their probabilities, given the samples, are
    exact. If σ is unknown it is estimated, and the samples are Student. A decision takes O(M (d² + K d) + K d²)
    for M samples and K arms, a reward O(d²).

    Args:
        samples: M, models drawn for each decision.
        memory: arms of recent decisions to keep, counted in rows of features. What an arm tells about *their* best arms
            is information too; 0 counts only the current decision. Takes O(M d) more for each row.
        ridge: `evidence`, ν from the rewards (`estimation.evidence`); or ν > 0, the regulariser of the estimate.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.VIDS(samples=100), dim=2, seed=0)
        >>> agent.decide([[1.0, 0.0], [0.0, 1.0]]).arm in (0, 1)
        True

    Reference: Russo and Van Roy (2018), "Learning to optimize via information-directed sampling", Section 6.3 and
    Algorithm 6.
    """

    samples: int = 500
    memory: int = 0
    ridge: float | str = EVIDENCE

    def __post_init__(self) -> None:
        _check.integer("samples", self.samples, least=2, most=10**6)
        _check.integer("memory", self.memory, least=0, most=10**6)
        check_ridge(self.ridge)

    def start(self, setting: Setting, stream: Words) -> VIDSAgent:
        """A new agent that draws its models and arms from `stream`."""
        dim, samples = setting.dim, int(self.samples)
        ridge, estimator, evidence = make_ridge(self.ridge, dim)
        memory = Memory(np.zeros((self.memory, dim)), np.zeros(self.memory, dtype=np.int64), np.array(0))
        state = VIDSState(estimator, evidence, memory, np.array(0), stream)
        work = VIDSWork(
            estimates=make_theta_work(dim),
            models=np.zeros((samples, dim)),
            mean=np.zeros(dim),
            winners=np.zeros(samples, dtype=np.int64),
            counts=np.zeros(samples, dtype=np.int64),
            sums=np.zeros((samples, dim)),
            covariance=np.zeros((dim, dim)),
            hull=make_hull(),
            stream=np.zeros(4, dtype=np.uint64),
        )
        return VIDSAgent(VIDSParams(ridge), setting, state, work)

    def check_state(self, agent: VIDSAgent) -> None:
        """Refuse a memory that no decisions leave."""
        memory, step = agent.state.memory, agent.state.step.item()
        if memory.place.item() > self.memory or (memory.owners > step).any():
            raise ValueError("state.memory must have rows of decisions that were made, and a place within it")
