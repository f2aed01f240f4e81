"""LinIMED-1, -2 and -3: the arm of the least index, which weighs the evidence against an arm and its uncertainty."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Bools, Floats, Words
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.regression import estimate_arms, observe_offer
from solid_bandits.policies.contract import register
from solid_bandits.policies.facts import Facts, Variant
from solid_bandits.policies.linucb import TIE
from solid_bandits.policies.regression_policy import RegressionState
from solid_bandits.policies.rivals.radius import RadiusParams, RadiusPolicy, squared_radius


class LinIMEDParams(NamedTuple):
    """The chosen parameters in compiled form."""

    radius: RadiusParams
    form: int
    cap: float


class LinIMEDAgent(NamedTuple):
    """Compiled form of LinIMED."""

    params: LinIMEDParams
    setting: Setting
    state: RegressionState


class Levels(NamedTuple):
    """The largest and the smallest of mean + spread · norm over the arms, and the greedy arm."""

    leader: int
    highest: float
    lowest: float
    greedy: int


@jit
def find_levels(regression: Any, arms: Floats, available: Bools, spread: float) -> Levels:
    """Find the leader by mean + spread · norm; among arms that differ only by rounding, the first."""
    work = regression.work.arms
    leader = greedy = -1
    highest = largest_mean = -np.inf
    lowest = np.inf
    first = 0
    while first < arms.shape[0]:
        count = estimate_arms(regression, arms, first)
        for k in range(count):
            if available[first + k]:
                mean, bonus = work.means[k], spread * math.sqrt(work.sq_norms[k])
                tie = TIE * (abs(mean) + bonus)
                if leader < 0 or mean + bonus > highest + tie:
                    leader, highest = first + k, mean + bonus
                if greedy < 0 or mean > largest_mean + tie:
                    greedy, largest_mean = first + k, mean
                lowest = min(lowest, mean + bonus)
        first += count
    return Levels(leader, highest, lowest, greedy)


@jit
def cap_of(agent: LinIMEDAgent, levels: Levels) -> float:
    """Return the upper limit of the leader's index."""
    params, setting = agent.params, agent.setting
    if params.form == 2:
        horizon = setting.horizon if setting.horizon > 0 else agent.state.regression.step.item()
        return math.log(horizon)
    widest = levels.highest - levels.lowest
    if params.form == 3 and widest > 0.0:
        return math.log(params.cap) - 2.0 * math.log(widest)
    return np.inf


@jit
def act(agent: LinIMEDAgent, arms: Floats, available: Bools, out: Floats | None) -> tuple[int, bool]:
    """Pull the arm of the least index; the round explores if it is not the greedy arm."""
    regression = agent.state.regression
    observe_offer(regression, arms, available)
    width = squared_radius(agent.params.radius, regression)
    spread = math.sqrt(width) if agent.params.form == 3 else 0.0
    levels = find_levels(regression, arms, available, spread)
    cap = cap_of(agent, levels)
    work = regression.work.arms
    best, least = -1, np.inf
    first = 0
    while first < arms.shape[0]:
        count = estimate_arms(regression, arms, first)
        for k in range(count):
            if available[first + k]:
                square = width * work.sq_norms[k]
                gap = levels.highest - work.means[k] - spread * math.sqrt(work.sq_norms[k])
                index = -math.log(square) if square > 0.0 else np.inf
                if first + k == levels.leader:
                    index = min(index, cap)
                elif gap > 0.0 and square > 0.0:
                    index += gap * gap / square
                if best < 0 or index < least - TIE * (1.0 + abs(index)):
                    best, least = first + k, index
        first += count
    return best, best != levels.greedy


register(LinIMEDAgent, act, certain=True)


@dataclass(frozen=True)
class LinIMED(RadiusPolicy):
    """Pull argmin_a of the index Δ(a)² / (β_t ‖φ(a)‖²_{V^-1}) - log(β_t ‖φ(a)‖²_{V^-1}); nothing is drawn.

    Δ(a) is the estimated gap to the greedy arm, whose own index differs between the forms: 1 treats it like the others;
    2 limits it to log n (rewards should then be of size 1: its choices change with their unit); in 3 gaps are those of
    upper confidence bounds, mean + √β_t ‖φ‖_{V^-1}, and the index of the arm with the largest bound is at most
    log(C / max Δ²). Regret Õ(d^{3/2} √n) for form 1 and Õ(d√n) for forms 2 and 3, with radius `theorem`.
    A decision takes O(K d²) for K arms, a reward O(d²).

    Args:
        form: 1, 2 or 3.
        cap: C >= 1 of form 3; the paper's experiments use 30.
        radius: `plain`, √β_t = σ √(log(det V / det νI) + 2 log(1/δ)); or `theorem`, the same + √ν B, which needs σ and
            a bound on ‖θ*‖.
        scale: factor on √β_t; None is 0.25 with the radius `plain`, 1 with `theorem`.
        delta: δ; None is 1/(t + 1).
        ridge: `evidence`, ν from the rewards (`estimation.evidence`), not with the theorem's radius; or ν > 0. None is
            `evidence` with the radius `plain`, 1 with `theorem`.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.rivals.LinIMED(), dim=2, seed=0)
        >>> agent.learn(agent.decide([[1.0, 0.0], [0.0, 1.0]]), reward=1.0)
        >>> agent.decide([[1.0, 0.0], [0.0, 1.0]]).probability  # it draws nothing
        1.0

    Reference: Bian and Tan (2024), "Indexed minimum empirical divergence-based algorithms for linear bandits". The
    radius here has the determinant where the paper has the bound on it.
    """

    facts = Facts(
        name="linimed-3",
        label="LinIMED-3",
        line="the least index of minimum empirical divergence, gaps between upper confidence bounds",
        optimality="none; worst-case bound with the theorem's radius",
        exploration="index",
        reference="Bian and Tan 2024",
        cost=(0.15, 0.002, 0.0002),
        variants={
            f"linimed-{form}": Variant(
                {"form": form},
                {
                    "label": f"LinIMED-{form}",
                    "line": f"the least index of minimum empirical divergence{words}",
                },
            )
            for form, words in ((1, ""), (2, ", at most log n for the greedy arm"))
        },
    )

    form: int = parameter(3, least=1, most=3)
    cap: float = parameter(30.0, least=1, most=1e12)

    def start(self, setting: Setting, rng: Words) -> LinIMEDAgent:
        """Return a new agent; LinIMED draws nothing, so `rng` is not kept."""
        params = LinIMEDParams(self.radius_params(setting), int(self.form), float(self.cap))
        return LinIMEDAgent(
            params, setting, RegressionState(self.settled().make_regression(setting, norms=True))
        )
