"""UCB1: the largest upper confidence bound, arm by arm, ignoring that the arms share a θ. One context."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Floats, Ints, Words
from solid_bandits.core.setting import Setting, Table
from solid_bandits.policies.contract import TablePolicy, register
from solid_bandits.policies.facts import Facts


class Tally(NamedTuple):
    """Separate reward statistics of each arm."""

    pulls: Ints
    """Number of times each arm was chosen, shape (arms,)."""
    rewards: Ints
    """Number of rewards of each arm so far, shape (arms,); less than pulls if rewards come late."""
    sums: Floats
    """Sum of the rewards of each arm, shape (arms,)."""


class UCB1Params(NamedTuple):
    """The chosen parameters in compiled form."""

    scale: float


class UCB1State(NamedTuple):
    """State of UCB1."""

    tally: Tally
    step: Ints
    """t: decisions made, shape ()."""


class UCB1Agent(NamedTuple):
    """Compiled form of UCB1."""

    params: UCB1Params
    setting: Setting
    table: Table
    state: UCB1State


def make_tally(n_arms: int) -> Tally:
    """Return a tally without pulls."""
    return Tally(np.zeros(n_arms, dtype=np.int64), np.zeros(n_arms, dtype=np.int64), np.zeros(n_arms))


@jit
def upper_arm(tally: Tally, width: float) -> int:
    """Return argmax_a mean + width / √N; arms without a reward come first, the least chosen one before the others."""
    best = 0
    largest = -np.inf
    fewest = -1
    for arm in range(tally.pulls.shape[0]):
        count = tally.rewards[arm]
        if count == 0:
            if fewest < 0 or tally.pulls[arm] < tally.pulls[fewest]:
                fewest = arm
            continue
        bound = tally.sums[arm] / count + width / math.sqrt(count)
        if bound > largest:
            best, largest = arm, bound
    return fewest if fewest >= 0 else best


@jit
def leader(tally: Tally) -> int:
    """Return the arm with the largest mean reward; arms without a reward come last."""
    best = 0
    largest = -np.inf
    for arm in range(tally.pulls.shape[0]):
        if tally.rewards[arm] > 0 and tally.sums[arm] / tally.rewards[arm] > largest:
            best, largest = arm, tally.sums[arm] / tally.rewards[arm]
    return best


@jit
def act(agent: UCB1Agent, context: int, out: Floats | None) -> tuple[int, bool]:
    """Return the arm with the largest bound; the round explores if it is not the leader."""
    state = agent.state
    state.step[()] += 1
    width = agent.params.scale * agent.setting.noise_std * math.sqrt(2.0 * math.log(state.step.item()))
    arm = upper_arm(state.tally, width)
    explores = arm != leader(state.tally)
    state.tally.pulls[arm] += 1
    return arm, explores


@jit
def update(agent: UCB1Agent, context: int, arm: int, reward: float) -> None:
    """Learn from a reward."""
    agent.state.tally.rewards[arm] += 1
    agent.state.tally.sums[arm] += reward


register(UCB1Agent, act, update, certain=True)


@dataclass(frozen=True)
class UCB1(TablePolicy):
    """Pull argmax_a mean(a) + scale σ √(2 log t / N(a)). A step takes O(K) for K arms. One context.

    Features are not used, which shows what structure is worth: with K arms in R^d, d < K, UCB1 pays for each arm anew.

    Args:
        scale: factor on the width. 1 is the width for noise with standard deviation σ; Auer et al. use 2 (rewards in
            [0, 1] have σ <= 1/2, and their width is √(2 log t / N)).

    Example:
        >>> import solid_bandits as sb
        >>> problem = sb.problems.end_of_optimism()
        >>> agent = sb.Agent(sb.rivals.UCB1(), contexts=problem.features, noise_std=problem.noise_std, seed=0)
        >>> agent.learn(agent.decide(context=0), reward=1.0)
        >>> agent.decide(context=0).arm
        1

    Reference: Auer, Cesa-Bianchi and Fischer (2002), "Finite-time analysis of the multiarmed bandit problem".
    """

    facts = Facts(
        name="ucb1",
        label="UCB1",
        line="the largest upper confidence bound, arm by arm, features not used",
        setting="unstructured, one context",
        optimality="order, of the problem without structure",
        exploration="optimism arm by arm",
        reference="Auer, Cesa-Bianchi and Fischer 2002",
        cost=(0.05, 0.001, 0.0),
        one_context=True,
    )

    scale: float = parameter(1.0, least=0)

    def start(self, setting: Setting, table: Table, rng: Words) -> UCB1Agent:
        """Return a new agent; UCB1 draws nothing, so `rng` is not kept."""
        state = UCB1State(make_tally(table.features.shape[1]), np.array(0))
        return UCB1Agent(UCB1Params(float(self.scale)), setting, table, state)
