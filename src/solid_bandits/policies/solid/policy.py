"""`Solid`: the parameters of SOLID, as in the paper's experiments and theorems."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.parameters import parameter
from solid_bandits._internal.types import Plain, Words
from solid_bandits.core.setting import Setting, Table
from solid_bandits.estimation.linalg.vectors import BLOCK, aligned_zeros
from solid_bandits.estimation.tables import make_table_regression
from solid_bandits.planning.pruned import make_bounds
from solid_bandits.policies.contract import TablePolicy, require_bound
from solid_bandits.policies.facts import Facts
from solid_bandits.policies.solid.algorithm import must_explore
from solid_bandits.policies.solid.confidence import OfTheorem, WithoutConstants, threshold
from solid_bandits.policies.solid.constraint import BONUSES, make_bonus
from solid_bandits.policies.solid.drawing import DRAWINGS
from solid_bandits.policies.solid.exploitation import TEST_CONTEXTS, TESTS, BoundedRatio, statistic
from solid_bandits.policies.solid.schedule import SCHEDULES, make_phases
from solid_bandits.policies.solid.search import MANY_PAIRS, EveryPair, FewOfMany, InBall
from solid_bandits.policies.solid.state import Projected, SolidAgent, SolidParams, SolidState, SolidWork

FORMS = ("experiments", "theorem")


@dataclass(frozen=True)
class Solid(TablePolicy):
    """SOLID, the asymptotically optimal primal-dual algorithm of Tirinzoni et al. (NeurIPS 2020), Algorithm 1.

    Each round tests whether the estimate already identifies the optimal arm of the current context. If so, the best arm
    is pulled. If not, an arm is drawn from the exploration policy ω, and one optimistic primal-dual step moves ω and
    the multiplier λ towards the solution of the lower bound's problem (P_z).

    The defaults are the parameters of the paper's toy experiment; `Solid.paper_random(n_arms)` has those of its random
    problems and of Jester, `Solid.theory(...)` is the algorithm of its theorems. The paper leaves one choice open: how
    to read the bonus in g_t. `local` is the reading under which most of the paper's sentences hold, by a rule that was
    committed before the runs (docs/reproduction.md). `Solid(bonus="theorem")` is Algorithm 1 as printed.

    With P context-arm pairs and K arms per context, a step takes O(K d²) when it exploits and at most O(P d² + d³) when
    it explores: O(P d) while λ = 0, and O(S d² + P d + d³) if only S pairs have large weights and P is large. Memory is
    O(P d). The documentation has the cost of each switch.

    Args:
        z0: z_0 > 0, the first normalisation; larger means less weight on information at the start.
        initial_multiplier: λ_1.
        max_multiplier: λ_max; the theorems need at least 2 B L z_min.
        policy_step: α^ω.
        multiplier_step: α^λ.
        bonus: how the bonus in g_t is read: `local`, by how much the divergence from the closest alternative can be
            larger within the confidence; `theorem`, (2BL/σ²) √γ ‖φ‖_{V^-1}, Eq. (gt) as printed; `plain`,
            √γ ‖φ‖_{V^-1}, without numerical constants; `none`. As printed it keeps λ at 0 at any practical
            horizon.
        threshold_scale: factor on β.
        ridge: ν, the regulariser of the estimate. None is max(L², 1), the smallest that the theorems allow.
        schedule: schedule of (z_k, p_k): `exp-exp`, `lin-exp`, `lin-pol` or `lin-lin`.
        reset_at_phase: start ω and λ anew at each phase, as in Algorithm 1; the experiments do not.
        drawing: how exploring rounds use ω_t: `sampling` from it, or `direct` or `cumulative` tracking of it.
        test: `likelihood-ratio`, or `oam` for the form that OAM uses.
        test_contexts: alternatives in the `last` observed context or in `all`.
        form: `experiments`; or `theorem`: the estimate projected on ‖θ‖ <= B and the ellipsoid, alternatives with
            ‖θ'‖ <= B, β = c_{n,1/n} and γ_t = c_{n,1/S_t²} with all constants (`confidence_radius`), q_t not
            normalised, both steps divided by √p_k in phase k.

    Example:
        >>> import solid_bandits as sb
        >>> sb.Solid.paper_random(n_arms=8)
        Solid(z0=8.0, initial_multiplier=50.0, ...)
    """

    facts = Facts(
        name="solid",
        label="SOLID",
        line="optimistic primal-dual steps on the lower bound's Lagrangian; draws arms from the policy they learn",
        optimality="constant; finite-time bound",
        exploration="optimism",
        test="likelihood ratio",
        reference="Tirinzoni et al. 2020",
        cost=(0.2, 0.006, 0.0001),
    )

    z0: float = parameter(1.0, above=0)
    initial_multiplier: float = parameter(0.0, least=0)
    max_multiplier: float = parameter(1000.0, least=0)
    policy_step: float = parameter(1.0, least=0)
    multiplier_step: float = parameter(0.5, least=0)
    bonus: str = parameter("local", choices=BONUSES)
    threshold_scale: float = parameter(1.0, least=0)
    ridge: float | None = parameter(1.0, above=0, none=True)
    schedule: str = parameter("exp-exp", choices=SCHEDULES)
    reset_at_phase: bool = parameter(False)
    drawing: str = parameter("sampling", choices=DRAWINGS)
    test: str = parameter("likelihood-ratio", choices=TESTS)
    test_contexts: str = parameter("last", choices=TEST_CONTEXTS)
    form: str = parameter("experiments", choices=FORMS)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("initial_multiplier", self.initial_multiplier, least=0, most=self.max_multiplier)
        if self.form == "theorem" and self.test == "oam":
            raise ValueError("test must be 'likelihood-ratio' with form='theorem', got 'oam'")

    @classmethod
    def usual(cls, kind: str, n_arms: int) -> "Solid":
        """Return the paper's parameters: one set for the toy, another for all other problems."""
        return cls() if kind == "toy" else cls.paper_random(n_arms)

    @classmethod
    def paper_random(cls, n_arms: int) -> "Solid":
        """Return the parameters of the paper's random problems and of Jester: z_0 is the number of arms, λ_1 = 50."""
        return cls(z0=float(checks.integer("n_arms", n_arms, least=1)), initial_multiplier=50.0)

    @classmethod
    def theory(cls, max_multiplier: float, z0: float = 1.0) -> "Solid":
        """Return the algorithm of the regret theorem.

        It has all constants, projection, bounded alternatives, decaying steps and resets. λ_max must be at least 2 B L
        z_min; `theory_multiplier` computes an upper bound on that from bounds on the gaps.
        """
        return cls(
            z0=z0,
            max_multiplier=max_multiplier,
            multiplier_step=1.0,
            bonus="theorem",
            ridge=None,
            test_contexts="all",
            reset_at_phase=True,
            form="theorem",
        )

    def compiled_params(self, setting: Setting, table: Table) -> SolidParams:
        """Return the parameters in compiled form, including those computed from the setting."""
        theorem = self.form == "theorem"
        all_contexts = self.test_contexts == "all"
        test: Any = BoundedRatio(all_contexts) if theorem else TESTS[self.test](all_contexts)
        return SolidParams(
            initial_multiplier=float(self.initial_multiplier),
            max_multiplier=float(self.max_multiplier),
            policy_step=float(self.policy_step),
            multiplier_step=float(self.multiplier_step),
            bonus=make_bonus(self.bonus, setting, table.feature_bound),
            threshold_scale=float(self.threshold_scale),
            normalise_gradient=not theorem,
            reset_at_phase=bool(self.reset_at_phase),
            phases=make_phases(self.schedule, float(self.z0), theorem, setting.horizon),
            confidence=OfTheorem(table.feature_bound, self._ridge(table))
            if theorem
            else WithoutConstants(setting.dim),
            test=test,
            drawing=DRAWINGS[self.drawing],
            search=InBall(0) if theorem else FewOfMany(0) if _many(table) else EveryPair(0),
        )

    def _ridge(self, table: Table) -> float:
        return max(table.feature_bound**2, 1.0) if self.ridge is None else float(self.ridge)

    def start(self, setting: Setting, table: Table, rng: Words) -> SolidAgent:
        """Return a new agent: ω_1 uniform, V_0 = νI, U_0 = 0, S_0 = 0, phase 0 (the first lines of Algorithm 1)."""
        theorem = self.form == "theorem"
        if theorem or self.bonus == "theorem":
            require_bound("Solid", setting)
        n_contexts, n_arms, dim = table.features.shape
        pairs = n_contexts * n_arms
        params = self.compiled_params(setting, table)
        state = SolidState(
            regression=make_table_regression(table, setting.noise_std, self._ridge(table)),
            step=np.array(0),
            explored=np.array(0),
            context_counts=np.zeros(n_contexts, dtype=np.int64),
            multiplier=np.array(params.initial_multiplier),
            logits=np.zeros((n_contexts, n_arms)),
            omega=np.full((n_contexts, n_arms), 1.0 / n_arms),
            omega_sum=np.zeros((n_contexts, n_arms)),
            pulls=np.zeros((n_contexts, n_arms), dtype=np.int64),
            phase=np.array(0),
            phase_start=np.array(0),
            rng=rng,
            projected=Projected(np.zeros(dim), np.zeros((n_contexts, n_arms))) if theorem else None,
        )
        work = SolidWork(
            weights=np.zeros(pairs),
            bonuses=np.zeros(pairs),
            chosen=np.zeros(pairs, dtype=np.int64),
            columns=aligned_zeros(dim, BLOCK if _many(table) and not theorem else pairs),
            gram=np.zeros((dim, dim)),
            factor=np.zeros((dim, dim)),
            norms=np.zeros(pairs),
            bounds=make_bounds(n_contexts, n_arms, dim),
            delta=np.zeros(dim),
            information=np.zeros(pairs),
            gradient=np.zeros(pairs),
        )
        return SolidAgent(params, setting, table, state, work)

    def check_state(self, agent: SolidAgent) -> None:
        """Raise a ValueError for a state that no run could have reached."""
        state, params = agent.state, agent.params
        if (state.omega < 0).any() or not np.allclose(state.omega.sum(axis=1), 1.0, rtol=0.0, atol=1e-9):
            raise ValueError("state.omega must hold one distribution per context")
        if (state.logits > 0).any():
            raise ValueError("state.logits must be <= 0")
        weights = np.exp(state.logits)
        if not np.allclose(state.omega, weights / weights.sum(axis=1, keepdims=True), rtol=1e-6, atol=1e-9):
            raise ValueError("state.omega must be in proportion to the exponentials of state.logits")
        if not 0.0 <= state.multiplier.item() <= params.max_multiplier:
            raise ValueError("state.multiplier must be between 0 and max_multiplier")
        if state.phase_start.item() > state.explored.item():
            raise ValueError("state.phase_start must be at most state.explored")
        if state.context_counts.sum() != state.step.item():
            raise ValueError("state.context_counts must sum to step")
        if state.phase.item() >= len(params.phases.length):
            raise ValueError("state.phase must be one that the horizon can reach")

    def diagnostics(self, agent: SolidAgent) -> Plain:
        """Return the quantities of a checkpoint; the statistic is over all contexts, the threshold is the next β."""
        params, state = agent.params, agent.state
        step = state.step.item() + 1
        must_explore(agent, 0, step)  # brings θ-hat up to date
        everywhere = params.test._replace(all_contexts=True)
        return {
            "multiplier": state.multiplier.item(),
            "phase": state.phase.item(),
            "normalisation": params.phases.normalisation[state.phase.item()].item(),
            "explored": state.explored.item(),
            "statistic": statistic(everywhere, agent, 0, -math.inf),
            "threshold": params.threshold_scale * threshold(params.confidence, agent.setting, step),
            "omega": state.omega.ravel().tolist(),
        }


def _many(table: Table) -> bool:
    return table.columns.shape[1] >= MANY_PAIRS


def theory_multiplier(
    setting: Setting, table: Table, least_gap: float, least_context_prob: float | None = None
) -> float:
    """Return 2 B L z, z bounding z_min from above, given lower bounds on the positive gaps and context probabilities.

    The optimal design over all contexts has max ‖φ‖²_{V_ω^-1} <= d / ρ_min (Kiefer and Wolfowitz), and differences of
    features at most four times that, so z_min <= 8 σ² d / (ρ_min Δ_min²).
    """
    for name, value, kind in (("setting", setting, Setting), ("table", table, Table)):
        if not isinstance(value, kind):
            raise ValueError(f"{name} must be a {kind.__name__}, got {checks.short(value)}")
    require_bound("theory_multiplier", setting)
    n_contexts = table.features.shape[0]
    if least_context_prob is None and n_contexts > 1:
        raise ValueError(
            f"least_context_prob must be a lower bound on the probabilities of the {n_contexts} contexts, got None"
        )
    least_prob = 1.0 if least_context_prob is None else least_context_prob
    gap = checks.number("least_gap", least_gap, above=0)
    prob = checks.number("least_context_prob", least_prob, above=0, most=1)
    z_min = 8.0 * setting.noise_std**2 * setting.dim / (prob * gap**2)
    return 2.0 * setting.theta_bound * table.feature_bound * z_min
