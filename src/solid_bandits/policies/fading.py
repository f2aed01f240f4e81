"""Fading: any policy that decides from features, on evidence that loses half its weight in so many decisions.

The evidence of decision s weighs 2^-((t - s) / h) at decision t, so V = νI + Σ_s 2^-((t - s) / h) φφᵀ: the ridge stays.
A triangle of V cannot be scaled without its ridge, so the evidence has a triangle of its own, without one: fading
scales its weights, in O(d). The triangle that the policy reads is then made anew from the two, by the rotations that
take in rewards: the rows of the evidence's triangle are d rewards to an estimator that has seen nothing. That takes
O(d³) a decision, and is exact.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._types import Bools, Floats, Ints, Plain, Words
from solid_bandits.estimation.estimator import Estimator, make_estimator, observe
from solid_bandits.estimation.ridges import EVIDENCE
from solid_bandits.policies import contract
from solid_bandits.policies.contract import DecisionPolicy, Policy, register
from solid_bandits.policies.plain import PlainAgent, as_policy
from solid_bandits.setting import Setting

NOTHING = 1e-100
"""The weight of a direction without evidence: beside the smallest ridge, 1e-80, it is lost in rounding."""
SHORTEST, LONGEST = 1.0, 1e12
"""Half-lives, in decisions."""


class FadingParams(NamedTuple):
    """The chosen parameter as compiled code takes it."""

    kept: float
    """2^(-1/h), what a decision leaves of the evidence before it."""


class FadingState(NamedTuple):
    """All that is carried."""

    inner: Any
    """The state of the policy."""
    evidence: Estimator
    """Σ 2^-((t - s) / h) φφᵀ and what goes with it, without a ridge."""
    ridge: Floats
    """ν, shape (); 0 until the policy has set it."""
    step: Ints
    """Decisions made, shape ()."""
    faded: Ints
    """The decision as of which the evidence is weighed: the last one or the next one, shape ()."""
    age: Ints
    """How many decisions ago the arm of the next reward was pulled, shape (); whoever knows better than 0 says so."""

    @property
    def estimator(self) -> Estimator:
        """What the policy reads."""
        found: Estimator = self.inner.estimator
        return found


class FadingWork(NamedTuple):
    """Scratch; nothing is carried in it."""

    row: Floats
    vector: Floats
    gains: Floats
    arms: Floats
    """One arm, shape (1, dim)."""
    available: Bools
    """It may be pulled, shape (1,)."""
    out: Floats
    """Its probability, shape (1,)."""


class FadingAgent(NamedTuple):
    """A policy with fading evidence at work."""

    params: FadingParams
    setting: Setting
    state: FadingState
    work: FadingWork
    inner: Any


class FadingCertainAgent(NamedTuple):
    """The same of a policy that draws nothing."""

    params: FadingParams
    setting: Setting
    state: FadingState
    work: FadingWork
    inner: Any


@jit
def fade(evidence: Estimator, share: float) -> None:
    """Leave a share of the evidence."""
    weights = evidence.weights
    for i in range(weights.shape[0]):
        weights[i] = max(share * weights[i], NOTHING)
    evidence.residual[()] *= share
    evidence.reward_sum[()] *= share
    evidence.reward_scatter[()] *= share


@jit
def regularise(evidence: Estimator, ridge: float, estimator: Estimator, work: FadingWork) -> None:
    """Make `estimator` what it would be, had it seen all evidence with its present weights: V = ridge I + evidence."""
    dim = evidence.weights.shape[0]
    for i in range(dim):
        for j in range(dim):
            estimator.triangle[i, j] = 1.0 if i == j else 0.0
        estimator.weights[i] = ridge
        estimator.targets[i] = 0.0
    estimator.log_det_ratio[()] = 0.0
    estimator.residual[()] = evidence.residual.item()
    for i in range(dim):
        if evidence.weights[i] > NOTHING:
            scale = math.sqrt(evidence.weights[i])
            for j in range(dim):
                work.row[j] = scale * evidence.triangle[i, j] if j >= i else 0.0
            observe(estimator, work.row, scale * evidence.targets[i], work.vector, work.gains)
    estimator.rewards[()] = evidence.rewards.item()
    estimator.reward_sum[()] = evidence.reward_sum.item()
    estimator.reward_scatter[()] = evidence.reward_scatter.item()


@jit
def weigh(agent: Any) -> None:
    """Weigh the evidence as of the next decision, once."""
    state, estimator = agent.state, agent.inner.state.estimator
    if state.ridge.item() == 0.0:  # of a policy that sets it at its first decision
        state.ridge[()] = estimator.weights[0]
    behind = state.step.item() + 1 - state.faded.item()
    if behind > 0:
        fade(state.evidence, agent.params.kept**behind)
        state.faded[()] += behind
        if state.evidence.rewards.item() > 0:
            regularise(state.evidence, state.ridge.item(), estimator, agent.work)


@jit
def act(agent: Any, arms: Floats, available: Bools) -> tuple[int, bool]:
    """What the policy chooses on the evidence as it weighs now."""
    weigh(agent)
    agent.state.step[()] += 1
    return contract.act(agent.inner, 0, arms, available)


@jit
def probabilities(agent: Any, arms: Floats, available: Bools, out: Floats) -> bool:
    """The policy's, on the evidence as it weighs now."""
    weigh(agent)
    return contract.probabilities(agent.inner, 0, arms, available, out)


@jit
def update(agent: Any, features: Floats, reward: float) -> None:
    """Take in a reward with the weight of its decision, now made `age` decisions ago."""
    state, work, estimator = agent.state, agent.work, agent.inner.state.estimator
    if estimator.weights[0] == 0.0:  # before the first decision: by this arm, as the policy would
        for i in range(features.shape[0]):
            work.arms[0, i] = features[i]
        contract.probabilities(agent.inner, 0, work.arms, work.available, work.out)
    if state.ridge.item() == 0.0:
        state.ridge[()] = estimator.weights[0]
    weight = agent.params.kept ** (state.faded.item() - state.step.item() + state.age.item())
    state.age[()] = 0
    scale = math.sqrt(weight)
    for i in range(features.shape[0]):
        work.row[i] = scale * features[i]
    observe(state.evidence, work.row, scale * reward, work.vector, work.gains)
    state.evidence.reward_sum[()] += (weight - scale) * reward
    contract.update(agent.inner, 0, 0, work.row, scale * reward)
    estimator.reward_sum[()] = state.evidence.reward_sum.item()


register(FadingAgent, act, update, probabilities)
register(FadingCertainAgent, act, update, probabilities=None)


@dataclass(frozen=True)
class Fading(DecisionPolicy):
    """A policy on evidence that loses half its weight in `half_life` decisions, for rewards that drift.

    A decision takes O(d³) beside what the policy takes; a reward O(d²). `Agent(..., half_life=...)` makes one of its
    policy.

    Args:
        policy: one that decides from features and keeps a linear estimate.
        half_life: h, in decisions.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.Fading(sb.LinTS(), half_life=1000), dim=2, noise_std=0.5, seed=0)
        >>> agent.decide([[1.0, 0.0], [0.0, 1.0]]).probability
        0.5
    """

    policy: Any
    half_life: float

    def __post_init__(self) -> None:
        known = as_policy("policy", self.policy)
        if not isinstance(known, DecisionPolicy) or isinstance(known, Fading):
            raise ValueError(
                f"half_life needs a policy that decides from features, such as LinTS, got {known.name}"
            )
        _check.number("half_life", self.half_life, least=SHORTEST, most=LONGEST)

    @property
    def name(self) -> str:
        """The policy's."""
        inner: Policy = as_policy("policy", self.policy)
        return inner.name

    def describe(self) -> Plain:
        """The policy's description within this one."""
        inner = as_policy("policy", self.policy).describe()
        return {"kind": "Fading", "half_life": float(self.half_life), "policy": inner}

    def with_probabilities(self) -> "Fading":
        """The same, its arms drawn so that their probabilities are known."""
        return Fading(as_policy("policy", self.policy).with_probabilities(), self.half_life)

    def check_state(self, agent: Any) -> None:
        """Refuse what cannot be."""
        state = agent.state
        if not 0 <= state.faded.item() - state.step.item() <= 1 or state.ridge.item() < 0:
            raise ValueError("state.faded must be state.step or one more, and state.ridge >= 0")
        as_policy("policy", self.policy).check_state(agent.inner)

    def start(self, setting: Setting, stream: Words) -> FadingAgent | FadingCertainAgent:
        """A new agent around one of the policy."""
        policy = as_policy("policy", self.policy)
        if getattr(policy, "ridge", None) == EVIDENCE:
            raise ValueError(
                f"ridge must be a number with half_life, got {EVIDENCE!r}: fading evidence would raise it again; "
                f"give one, such as {type(policy).__name__}(ridge=0.2)"
            )
        if setting.noise_std == 0.0:
            raise ValueError("noise_std must be a number > 0 with half_life, got None; give an upper bound")
        inner: Any = contract.start(policy, setting, None, stream)
        estimator = getattr(inner.state, "estimator", None)
        if isinstance(inner, PlainAgent) or not isinstance(estimator, Estimator):
            raise ValueError(f"half_life needs a policy with a linear estimate, got {policy.name}")
        dim = setting.dim
        state = FadingState(
            inner=inner.state,
            evidence=make_estimator(dim, NOTHING),
            ridge=np.array(0.0),
            step=np.array(0),
            faded=np.array(0),
            age=np.array(0),
        )
        row, vector, gains, arms = np.zeros(dim), np.zeros(dim), np.zeros(dim), np.zeros((1, dim))
        work = FadingWork(row, vector, gains, arms, np.ones(1, dtype=np.bool_), np.zeros(1))
        kept = 2.0 ** (-1.0 / float(self.half_life))
        kind = FadingCertainAgent if contract.kernels(type(inner)).certain else FadingAgent
        return kind(FadingParams(kept), setting, state, work, inner)
