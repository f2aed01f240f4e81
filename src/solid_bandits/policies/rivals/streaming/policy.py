"""`StreamingSolid`: the parameters of SOLID for contexts never seen before."""

from dataclasses import dataclass

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Words
from solid_bandits.core.setting import Setting
from solid_bandits.policies.facts import Facts
from solid_bandits.policies.regression_policy import RegressionPolicy
from solid_bandits.policies.rivals.streaming import algorithm as algorithm  # registers the kernels
from solid_bandits.policies.rivals.streaming.state import (
    NO_LIMIT,
    StreamingAgent,
    StreamingParams,
    StreamingState,
    StreamingWork,
    Sums,
)
from solid_bandits.policies.solid.schedule import make_phases


@dataclass(frozen=True)
class StreamingSolid(RegressionPolicy):
    """SOLID for features that come with each decision: ω as a function of features, in O(d²) numbers.

    A round explores if the test of Algorithm 1 leaves open which arm on offer is best, and if exploring has not cost
    more than `budget` times what was at stake so far. It then draws an arm from ω, and takes one primal-dual step with
    the current context in place of all contexts. The bonus in g_t is read as `local`. If σ is not told it is estimated.

    A decision takes O(K d²) for K arms on offer when it exploits and O(K d² + d³) when it explores, whatever the number
    of contexts; memory is O(d²).

    Args:
        z0: z_0 > 0, the first normalisation; larger means less weight on information at the start.
        initial_multiplier: λ_1.
        max_multiplier: λ_max.
        policy_step: α^ω.
        multiplier_step: α^λ.
        budget: how much exploring may cost, in units of the expected cost of greedy play so far; None is no limit.
        fading: the weight of the current round in V_ω, a mean over rounds in which the past fades.
        threshold_scale: factor on β.
        ridge: ν, the regulariser of the estimate.

    Example:
        >>> import solid_bandits as sb
        >>> stream = sb.streams.gaussian(n_arms=10, dim=5, noise_std=0.5)
        >>> results = sb.simulate(stream, {"streaming": sb.rivals.StreamingSolid()}, horizon=1000, runs=2)
    """

    facts = Facts(
        name="streaming-solid",
        label="Streaming SOLID",
        line="SOLID's primal-dual steps as sums over features, for contexts never seen before; has a budget",
        optimality="none proved",
        exploration="optimism",
        test="likelihood ratio, and a budget",
        reference="this project, after Tirinzoni et al. 2020",
        cost=(0.2, 0.02, 0.003),
    )

    z0: float = parameter(1.0, above=0)
    initial_multiplier: float = parameter(0.0, least=0)
    max_multiplier: float = parameter(1000.0, least=0)
    policy_step: float = parameter(1.0, least=0)
    multiplier_step: float = parameter(0.5, least=0)
    budget: float | None = parameter(0.5, least=0, none=True)
    fading: float = parameter(0.05, above=0, most=1)
    threshold_scale: float = parameter(1.0, least=0)
    ridge: float = parameter(1.0, above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("initial_multiplier", self.initial_multiplier, least=0, most=self.max_multiplier)

    def start(self, setting: Setting, rng: Words) -> StreamingAgent:
        """Return a new agent: ω uniform, V_0 = νI, nothing spent."""
        if setting.blocks:
            raise ValueError(
                f"blocks must be 0 for StreamingSolid, whose sums are over pairs of columns, got {setting.blocks}; use "
                "another policy, such as RandUCB"
            )
        dim = setting.dim
        params = StreamingParams(
            policy_step=float(self.policy_step),
            multiplier_step=float(self.multiplier_step),
            max_multiplier=float(self.max_multiplier),
            budget=NO_LIMIT if self.budget is None else float(self.budget),
            fading=float(self.fading),
            threshold_scale=float(self.threshold_scale),
            phases=make_phases("exp-exp", float(self.z0), False, setting.horizon),
        )
        square = (dim, dim)
        sums = Sums(np.zeros(dim), np.zeros(square), np.zeros(square), np.zeros(square), np.array(0.0))
        state = StreamingState(
            regression=self.make_regression(setting, norms=True),
            sums=sums,
            gram=np.zeros(square),
            mass=np.array(0.0),
            explored=np.array(0),
            multiplier=np.array(float(self.initial_multiplier)),
            phase=np.array(0),
            phase_start=np.array(0),
            stake=np.array(0.0),
            spent=np.array(0.0),
            rng=rng,
        )
        work = StreamingWork(
            gram=np.zeros(square),
            factor=np.zeros(square),
            inverse=np.zeros(square),
            rows=np.zeros(square),
            delta=np.zeros(dim),
        )
        return StreamingAgent(params, setting, state, work)

    def check_state(self, agent: StreamingAgent) -> None:
        """Raise a ValueError for a state that no run could have reached."""
        state, sums = agent.state, agent.state.sums
        if not 0.0 <= state.multiplier.item() <= agent.params.max_multiplier:
            raise ValueError("state.multiplier must be between 0 and max_multiplier")
        if min(state.stake.item(), state.spent.item(), sums.weight.item()) < 0.0:
            raise ValueError("state.stake, spent and sums.weight must be >= 0")
        if not 0.0 <= state.mass.item() <= 1.0 + 1e-9 or (state.mass.item() > 0.0) != (
            state.explored.item() > 0
        ):
            raise ValueError("state.mass must be between 0 and 1, and > 0 after an exploring round")
        if state.phase_start.item() > state.explored.item():
            raise ValueError("state.phase_start must be at most state.explored")
        if state.phase.item() >= len(agent.params.phases.length):
            raise ValueError("state.phase must be one that the horizon can reach")
        for name, matrix in (("gram", state.gram), *zip(sums._fields[1:4], sums[1:4], strict=True)):
            if not np.allclose(matrix, matrix.T) or (np.diag(matrix) < 0.0).any():
                raise ValueError(f"state.{name} must be symmetric, its diagonal >= 0")
