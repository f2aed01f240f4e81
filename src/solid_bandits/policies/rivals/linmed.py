"""LinMED: arms drawn by how unlikely it is that they are best; every probability is positive and in closed form."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.compiling import jit, jit_allocating
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Bools, Floats, Words
from solid_bandits.core.randomness import choose
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.arms import count_available
from solid_bandits.estimation.regression import (
    best_estimated,
    estimate_arms,
    estimate_differences,
    first_coefficient,
    observe_offer,
)
from solid_bandits.policies.contract import register
from solid_bandits.policies.facts import Facts, Variant
from solid_bandits.policies.regression_policy import DrawingState
from solid_bandits.policies.rivals.design import approximate_design
from solid_bandits.policies.rivals.radius import RadiusParams, RadiusPolicy, squared_radius


class LinMEDParams(NamedTuple):
    """The chosen parameters in compiled form."""

    radius: RadiusParams
    empirical: float
    design: float
    warms_up: bool


class LinMEDAgent(NamedTuple):
    """Compiled form of LinMED."""

    params: LinMEDParams
    setting: Setting
    state: DrawingState


@jit_allocating
def write_likelihoods(agent: LinMEDAgent, arms: Floats, available: Bools, best: int, out: Floats) -> None:
    """Write exp(-Δ² / (β ‖φ* - φ‖²_{V^-1})) of each arm, 1 for the best and its copies, 0 where it is not available."""
    regression = agent.state.regression
    width = squared_radius(agent.params.radius, regression)
    work = regression.work.arms
    first = 0
    while first < arms.shape[0]:
        count = estimate_differences(regression, arms, best, first)
        for k in range(count):
            gap, square = work.means[k], width * work.sq_norms[k]
            likelihood = 1.0 if gap <= 0.0 else 0.0
            if gap > 0.0 and square > 0.0:
                likelihood = math.exp(-gap * gap / square)
            out[first + k] = likelihood if available[first + k] else 0.0
        first += count


@jit_allocating
def uncertain_arm(agent: LinMEDAgent, arms: Floats, available: Bools) -> int:
    """Return the first arm with ‖φ‖²_{V^-1} > 1; -1 if there is none."""
    regression = agent.state.regression
    first = 0
    while first < arms.shape[0]:
        count = estimate_arms(regression, arms, first)
        for k in range(count):
            if available[first + k] and regression.work.arms.sq_norms[k] > 1.0:
                return first + k
        first += count
    return -1


@jit_allocating
def share_out(agent: LinMEDAgent, arms: Floats, available: Bools, best: int, out: Floats) -> None:
    """Write the probability of each arm."""
    params, regression, offered = agent.params, agent.state.regression, count_available(available)
    write_likelihoods(agent, arms, available, best, out)
    # If each arm has its own coefficients, its features stand in its block, after the block number.
    rows, counts = np.zeros((arms.shape[0], regression.work.theta.shape[0])), np.zeros(arms.shape[0])
    skipped = 1 if agent.setting.blocks > 0 else 0
    for arm in range(arms.shape[0]):
        root, place = math.sqrt(out[arm]), first_coefficient(regression, arms[arm])
        for i in range(skipped, arms.shape[1]):
            rows[arm, place + i - skipped] = root * arms[arm, i]
    pulls = approximate_design(rows, counts) if params.design > 0.0 else 0.0
    rest = 1.0 - params.empirical - (params.design if pulls > 0.0 else 0.0)
    total = 0.0
    for arm in range(arms.shape[0]):
        share = rest / offered
        if pulls > 0.0:
            share += params.design * counts[arm] / pulls
        if arm == best:
            share += params.empirical
        out[arm] *= share
        total += out[arm]
    uncertain = uncertain_arm(agent, arms, available) if params.warms_up else -1
    for arm in range(arms.shape[0]):
        out[arm] /= total
        if uncertain >= 0:
            out[arm] = 0.5 * out[arm] + (0.5 if arm == uncertain else 0.0)


@jit_allocating
def draw_arm(agent: LinMEDAgent, arms: Floats, available: Bools, best: int, out: Floats | None) -> int:
    """Draw from the probabilities, which also go to `out`, if asked for."""
    shares = np.empty(arms.shape[0])
    share_out(agent, arms, available, best, shares)
    if out is not None:
        for arm in range(arms.shape[0]):
            out[arm] = shares[arm]
    return choose(shares, agent.state.rng)


@jit
def act(agent: LinMEDAgent, arms: Floats, available: Bools, out: Floats | None) -> tuple[int, bool]:
    """Draw an arm; the round explores if it is not the greedy one."""
    regression = agent.state.regression
    observe_offer(regression, arms, available)
    best = best_estimated(regression, arms, available)
    arm = draw_arm(agent, arms, available, best, out)
    return arm, arm != best


register(LinMEDAgent, act)


@dataclass(frozen=True)
class LinMED(RadiusPolicy):
    """Draw arm a with probability proportional to q(a) f(a), f(a) = exp(-Δ(a)² / (β_t ‖φ* - φ(a)‖²_{V^-1})).

    Δ(a) = (φ* - φ(a))ᵀθ-hat is the estimated gap to the greedy arm φ*. q = α_emp on the greedy arm + α_opt times an
    approximately optimal design over the arms √f φ (`rivals.design`) + the rest spread evenly. Arms, and with them the
    design, may differ in each decision. Every available arm has a positive probability (below 1e-308 it is 0); for logs
    that will be used to evaluate other policies without a floor, use `scale=1` (docs/rivals.md).

    With radius `theorem` it is the algorithm of the theorem, regret Õ(d√n): while an arm has ‖φ‖²_{V^-1} > 1, the
    first such arm has half of the probability. The paper's experiments leave that out, and so does `plain`.
    A decision takes O(K d²) for K arms, a reward O(d²).

    Args:
        empirical: α_emp in [0, 1]; the paper's experiments use 0.5, 0.9 and 0.99.
        design: α_opt in [0, 1]; there 0.25, 0.05 and 0.005. The two sum to less than 1.
        radius: `plain`, √β_t = σ √(log(det V / det νI) + 2 log(1/δ)); or `theorem`, the same + √ν B, which needs σ and
            a bound on ‖θ*‖.
        scale: factor on √β_t; None is 0.25 with the radius `plain`, 1 with `theorem`.
        delta: δ; None is 1/(t + 1).
        ridge: `evidence`, ν from the rewards (`estimation.evidence`), not with the theorem's radius; or ν > 0. None is
            `evidence` with the radius `plain`, 1 with `theorem`.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.rivals.LinMED(), dim=2, seed=0)
        >>> agent.learn(agent.decide([[1.0, 0.0], [0.0, 1.0]]), reward=1.0)
        >>> bool(agent.probabilities([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]).min() > 0)
        True

    Reference: Balagopalan and Jun (2025), "Minimum empirical divergence for sub-Gaussian linear bandits".
    """

    facts = Facts(
        name="linmed",
        label="LinMED",
        line="arms drawn in proportion to how likely they are best; positive probabilities in closed form",
        optimality="none; worst-case bound with the theorem's radius",
        exploration="sampling, with a design",
        reference="Balagopalan and Jun 2025",
        cost=(0.5, 0.01, 0.002),
        variants={
            "linmed-theorem": Variant(
                {"radius": "theorem"},
                {"label": "LinMED (theorem)", "line": "LinMED with all constants of its theorem"},
            )
        },
    )

    empirical: float = parameter(0.5, least=0, most=1)
    design: float = parameter(0.25, least=0, most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.empirical + self.design >= 1.0:
            total = self.empirical + self.design
            raise checks.ArgumentError("design", f"and empirical must sum to less than 1, got {total:g}")

    def start(self, setting: Setting, rng: Words) -> LinMEDAgent:
        """Return a new agent that draws from `rng`."""
        params = LinMEDParams(
            self.radius_params(setting), float(self.empirical), float(self.design), self.radius == "theorem"
        )
        return LinMEDAgent(
            params, setting, DrawingState(self.settled().make_regression(setting, norms=True), rng)
        )
