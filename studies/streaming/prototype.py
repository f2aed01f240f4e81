"""Three ways for SOLID to meet contexts that it has never seen, as one slow policy with a switch.

`sums`: logits of any arm from accumulated matrices; V_ω a fading mean over rounds; alternatives in the round at hand.
`table`: SOLID on a table of the last contexts; a context that is not in it enters with a uniform row.
`both`: the same table, and a context that is not in it enters with the row that the sums give.
"""
# ruff: noqa: D101, D102, D103, E501

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import solid_bandits as sb
from solid_bandits import extend
from solid_bandits.estimation.linalg.triangular import cholesky
from solid_bandits.policies.solid.schedule import make_phases
from solid_bandits.policies.thresholds import confidence_width, exploitation_threshold

WAYS = {"sums": 0, "table": 1, "both": 2}
NORMS = {"mean": 0, "own": 1}


class State(NamedTuple):
    regression: extend.Regression
    along: np.ndarray  # M = Σ w θ
    width: np.ndarray  # Σ w γ V^-1
    information: np.ndarray  # Σ w λ δδᵀ / 2σ²
    optimism: np.ndarray  # Σ w λ γ V^-1 / 2σ²
    weight: np.ndarray  # Σ w
    gram: np.ndarray  # fading V_ω
    mass: np.ndarray
    rows: np.ndarray
    logits: np.ndarray
    counts: np.ndarray
    place: np.ndarray
    step: np.ndarray
    explored: np.ndarray
    multiplier: np.ndarray
    phase: np.ndarray
    phase_start: np.ndarray
    stake: np.ndarray  # what greedy play could have cost in the rounds that were not identified
    spent: np.ndarray  # what exploring has cost, by the estimates
    rng: np.ndarray


class ProtoAgent(NamedTuple):
    way: int
    norm: int
    forget: float
    budget: float
    stakes: int
    every: bool
    max_multiplier: float
    multiplier_step: float
    lengths: np.ndarray
    normalisations: np.ndarray
    setting: object
    state: State
    theta: np.ndarray
    row: np.ndarray
    gains: np.ndarray


@sb.extend.jit
def quadratic(matrix, vector):
    total = 0.0
    for i in range(len(vector)):
        inner = 0.0
        for j in range(len(vector)):
            inner += matrix[i, j] * vector[j]
        total += vector[i] * inner
    return max(total, 0.0)


@sb.extend.jit
def sq_norm(regression, vector, row):
    for i in range(len(row)):
        row[i] = vector[i]
    return extend.squared_norm(regression, row)


@sb.extend.jit
def rows_of_sums(agent, arms, out):
    """Logits from the sums: each root of a sum bounds a sum of roots (Cauchy and Schwarz)."""
    state = agent.state
    square = 0.0
    for a in range(len(arms)):
        phi = arms[a]
        known = math.sqrt(quadratic(state.information, phi))
        unsure = math.sqrt(quadratic(state.optimism, phi))
        out[a] = extend.dot(phi, state.along) + math.sqrt(state.weight.item() * quadratic(state.width, phi))
        out[a] += (known + unsure) ** 2
        square += out[a] ** 2
    scale = 1.0
    if agent.norm == 1 and square > 0:
        scale = state.explored.item() / math.sqrt(square)
    top = -np.inf
    for a in range(len(arms)):
        out[a] *= scale
        top = max(top, out[a])
    for a in range(len(arms)):
        out[a] -= top


@sb.extend.jit
def softmax(logits, out):
    total = 0.0
    for a in range(len(logits)):
        out[a] = math.exp(logits[a]) if logits[a] > -745 else 0.0
        total += out[a]
    for a in range(len(logits)):
        out[a] /= total


@sb.extend.jit
def find(agent, arms):
    """The slot of these arms, or -1."""
    state = agent.state
    for slot in range(len(state.counts)):
        if state.counts[slot] > 0 and state.rows[slot, 0, 0] == arms[0, 0]:
            same = True
            for a in range(arms.shape[0]):
                for i in range(arms.shape[1]):
                    if state.rows[slot, a, i] != arms[a, i]:
                        same = False
                        break
                if not same:
                    break
            if same:
                return slot
    return -1


@sb.extend.jit
def must_explore(agent, arms, step):
    regression = agent.state.regression
    extend.write_theta(regression, agent.theta)
    limit = exploitation_threshold(agent.setting, step)
    best = 0
    for a in range(len(arms)):
        if extend.dot(arms[a], agent.theta) > extend.dot(arms[best], agent.theta):
            best = a
    difference = np.empty(arms.shape[1])
    stake, fails = 0.0, False
    for a in range(len(arms)):
        for i in range(arms.shape[1]):
            difference[i] = arms[best, i] - arms[a, i]
        gap = extend.dot(difference, agent.theta)
        norm = extend.squared_norm(regression, difference)
        if norm > 0 and gap * gap <= limit * norm:
            fails = True
            if agent.stakes == 0:
                stake = max(stake, math.sqrt(limit * norm) - gap)
        if norm > 0 and agent.stakes == 1:
            spread = agent.setting.noise_std * math.sqrt(norm)
            u = gap / spread
            stake += spread * (
                math.exp(-0.5 * u * u) / math.sqrt(2 * math.pi) - 0.5 * u * math.erfc(u / math.sqrt(2.0))
            )
    return best, fails, stake


@sb.extend.jit
def closest(rows, counts, theta, factor, delta):
    """The closest alternative in the contexts with counts; writes delta, returns the squared distance."""
    dim = len(delta)
    least = np.inf
    vector = np.empty(dim)
    for slot in range(len(counts)):
        if counts[slot] == 0:
            continue
        best, top = 0, -np.inf
        for a in range(rows.shape[1]):
            value = extend.dot(rows[slot, a], theta)
            if value > top:
                best, top = a, value
        for a in range(rows.shape[1]):
            norm = 0.0
            for i in range(dim):
                value = rows[slot, best, i] - rows[slot, a, i]
                for j in range(i):
                    value -= factor[i, j] * vector[j]
                vector[i] = value / factor[i, i]
                norm += vector[i] ** 2
            if norm > 0:
                gap = top - extend.dot(rows[slot, a], theta)
                if gap * gap / norm < least:
                    least = gap * gap / norm
                    for i in range(dim):
                        delta[i] = gap / norm * vector[i]
    if least < np.inf:
        for i in range(dim - 1, -1, -1):
            delta[i] /= factor[i, i]
            for j in range(i):
                delta[j] -= factor[i, j] * delta[i]
    return least


@sb.extend.jit
def inverse_of(regression, out):
    dim = out.shape[0]
    unit = np.empty((dim, dim))
    for k in range(dim):
        for i in range(dim):
            unit[k, i] = 1.0 if i == k else 0.0
        extend.squared_norm(regression, unit[k])  # U^-T e_k
    for i in range(dim):
        for j in range(dim):
            total = 0.0
            for k in range(dim):
                total += unit[i, k] * unit[j, k] / regression.estimator.weights[k]
            out[i, j] = total


@sb.extend.jit
def primal_dual(agent, rows, omega, weights, counts, logits, given, step):
    """One step on the contexts in `rows`; their logits move where `counts` are positive, and the sums."""
    state, setting, dim = agent.state, agent.setting, len(agent.theta)
    regression = state.regression
    slots, arms = omega.shape
    z = agent.normalisations[state.phase.item()]
    gamma = confidence_width(setting, step, state.explored.item())
    precision = 1.0 / setting.noise_std**2
    multiplier = state.multiplier.item()
    gram = np.zeros((dim, dim))
    if given:
        for i in range(dim):
            for j in range(dim):
                gram[i, j] = state.gram[i, j] / max(state.mass.item(), 1e-300)
    else:
        for s in range(slots):
            for a in range(arms):
                w = weights[s] * omega[s, a]
                if w > 1e-12:
                    for i in range(dim):
                        for j in range(dim):
                            gram[i, j] += w * rows[s, a, i] * rows[s, a, j]
    trace = 0.0
    for i in range(dim):
        trace += gram[i, i]
    for i in range(dim):
        gram[i, i] += 1e-9 * trace / dim
    factor = np.zeros((dim, dim))
    cholesky(gram, factor)
    delta = np.zeros(dim)
    closest(rows, counts, agent.theta, factor, delta)
    constraint = -1.0 / z
    gradient = np.empty(arms)
    mean_norm = 0.0
    for s in range(slots):
        if counts[s] == 0:
            continue
        square = 0.0
        for a in range(arms):
            phi = rows[s, a]
            bonus = math.sqrt(max(gamma * sq_norm(regression, phi, agent.row), 0.0))
            info = abs(extend.dot(phi, delta))
            divergence = 0.5 * precision * (info + bonus) ** 2
            gradient[a] = extend.dot(phi, agent.theta) + bonus + multiplier * divergence
            square += gradient[a] ** 2
            constraint += weights[s] * omega[s, a] * divergence
        norm = math.sqrt(square)
        mean_norm += weights[s] * norm
        if norm > 0:
            top = -np.inf
            for a in range(arms):
                logits[s, a] += gradient[a] / norm
                top = max(top, logits[s, a])
            for a in range(arms):
                logits[s, a] -= top
    if mean_norm > 0:
        w = 1.0 / mean_norm
        inverse = np.empty((dim, dim))
        inverse_of(regression, inverse)
        state.weight[()] += w
        for i in range(dim):
            state.along[i] += w * agent.theta[i]
            for j in range(dim):
                state.width[i, j] += w * gamma * inverse[i, j]
                state.information[i, j] += w * multiplier * 0.5 * precision * delta[i] * delta[j]
                state.optimism[i, j] += w * multiplier * 0.5 * precision * gamma * inverse[i, j]
    multiplier -= agent.multiplier_step * constraint
    state.multiplier[()] = min(max(multiplier, 0.0), agent.max_multiplier)
    phase = state.phase.item()
    if state.explored.item() - state.phase_start.item() >= agent.lengths[phase]:
        state.phase[()] = min(phase + 1, len(agent.lengths) - 1)
        state.phase_start[()] = state.explored.item()


@sb.extend.jit
def enter(agent, arms):
    """The slot of these arms in the table, which they enter where they are not in it."""
    state = agent.state
    slot = find(agent, arms)
    if slot >= 0:
        return slot
    slot = state.place.item()
    state.place[()] = (slot + 1) % len(state.counts)
    for a in range(arms.shape[0]):
        state.logits[slot, a] = 0.0
        for i in range(arms.shape[1]):
            state.rows[slot, a, i] = arms[a, i]
    if agent.way == 2:
        rows_of_sums(agent, arms, state.logits[slot])
    state.counts[slot] = 0
    return slot


@sb.extend.jit
def spend(agent, arms, best, omega):
    for a in range(len(arms)):
        gap = extend.dot(arms[best], agent.theta) - extend.dot(arms[a], agent.theta)
        agent.state.spent[()] += omega[a] * gap


@sb.extend.jit
def act(agent, arms, available, out):
    state = agent.state
    extend.observe_offer(state.regression, arms, available)
    step = state.step.item() + 1
    best, explores, stake = must_explore(agent, arms, step)
    state.stake[()] += stake
    if state.spent.item() > agent.budget * state.stake.item():
        explores = False
    arm = best
    n_arms, dim = arms.shape
    if agent.way == 0 and (explores or agent.every):
        logits, omega = np.empty((1, n_arms)), np.empty((1, n_arms))
        rows_of_sums(agent, arms, logits[0])
        softmax(logits[0], omega[0])
        keep = 1.0 - agent.forget
        state.mass[()] = keep * state.mass.item() + agent.forget
        for i in range(dim):
            for j in range(dim):
                total = 0.0
                for a in range(n_arms):
                    total += omega[0, a] * arms[a, i] * arms[a, j]
                state.gram[i, j] = keep * state.gram[i, j] + agent.forget * total
        if explores:
            state.explored[()] += 1
            arm = extend.choose(omega[0], state.rng)
            spend(agent, arms, best, omega[0])
            rows = arms.copy().reshape(1, n_arms, dim)
            primal_dual(agent, rows, omega, np.ones(1), np.ones(1, np.int64), logits, True, step)
    elif agent.way != 0:
        slot = enter(agent, arms)
        if explores:
            state.explored[()] += 1
            omega = np.empty_like(state.logits)
            weights = np.zeros(len(state.counts))
            total = max(state.counts.sum(), 1)
            for s in range(len(state.counts)):
                softmax(state.logits[s], omega[s])
                weights[s] = state.counts[s] / total
            arm = extend.choose(omega[slot], state.rng)
            spend(agent, arms, best, omega[slot])
            primal_dual(agent, state.rows, omega, weights, state.counts, state.logits, False, step)
        state.counts[slot] += 1
    state.step[()] += 1
    return arm, explores


@dataclass(frozen=True)
class Proto(sb.extend.DecisionPolicy):
    """A prototype."""

    way: str = "both"
    arms: int = 8
    contexts: int = 16
    norm: str = "mean"
    forget: float = 0.05
    budget: float = math.inf
    stakes: int = 1
    every: bool = True
    z0: float = 1.0
    initial_multiplier: float = 0.0
    max_multiplier: float = 1000.0
    multiplier_step: float = 0.5
    kernels = sb.extend.Kernels(act)

    def start(self, setting, rng):
        d, m, k = setting.dim, self.contexts, self.arms
        phases = make_phases("exp-exp", self.z0, False, setting.horizon)
        state = State(
            extend.make_regression(setting), np.zeros(d), np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d)),
            np.array(0.0), np.zeros((d, d)), np.array(0.0), np.zeros((m, k, d)), np.zeros((m, k)),
            np.zeros(m, np.int64), np.array(0), np.array(0), np.array(0), np.array(float(self.initial_multiplier)),
            np.array(0), np.array(0), np.array(0.0), np.array(0.0), rng,
        )  # fmt: skip
        return ProtoAgent(
            WAYS[self.way], NORMS[self.norm], float(self.forget), float(self.budget), int(self.stakes), bool(self.every), float(self.max_multiplier),
            float(self.multiplier_step), phases.length, phases.normalisation, setting, state,
            np.zeros(d), np.zeros(d), np.zeros(d),
        )  # fmt: skip
