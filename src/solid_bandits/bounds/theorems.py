"""The regret bounds of Theorems 1 and 2 as numbers, with every constant of their statements or proofs.

The statements hide constants in O(·) and lin(·); these are taken from the proofs (appendices on the regret and on the
worst case), term by term. The number M_n of exploring rounds without the good event is random and is replaced by the
bound on its mean, 3π²/2, everywhere: also in the bound on the number of phases, where the proof does so silently.
"""

import math
from dataclasses import dataclass

import numpy as np

from solid_bandits._internal import checks
from solid_bandits.bounds import lower_bound, lower_bound_at, pure_exploration
from solid_bandits.core.problem import Problem
from solid_bandits.estimation.confidence import confidence_radius

BAD_ROUNDS = 1.5 * math.pi**2
"""Bound on E[M_n] (lemma on bad events)."""
_FAR = 1e6
"""Multiple of z_min and z-bar beyond which u*(z) - v* is continued as 1/z, since no bracket tells it from 0."""


@dataclass(frozen=True)
class RegretBound:
    """An upper bound on the expected regret of n steps, with its terms."""

    n: float
    terms: dict[str, float]
    """Name of each term -> its size; they add up to `value`."""
    most: float
    """n E_ρ[max_a Δ(x, a)]: the regret of the worst policy."""
    exploring: float
    """Number of exploring rounds that the bound allows for."""

    @property
    def value(self) -> float:
        """The bound: the sum of its terms."""
        return float(sum(self.terms.values()))

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing, because no policy loses more than `most`."""
        return self.value >= self.most


@dataclass(frozen=True)
class _Constants:
    """Quantities that the terms of both proofs are made of."""

    problem: Problem
    n: float
    max_multiplier: float

    @property
    def size(self) -> float:
        """BL: the largest possible mean reward."""
        return self.problem.B * self.problem.L

    @property
    def ridge(self) -> float:
        return max(self.problem.L**2, 1.0)

    @property
    def variance(self) -> float:
        return self.problem.noise_std**2

    @property
    def divergence(self) -> float:
        """2B²L²/σ²: the largest d_{x,a}(θ, θ')."""
        return 2 * self.size**2 / self.variance

    def radius(self, delta: float) -> float:
        """Return c_{n,δ}."""
        problem = self.problem
        return confidence_radius(
            self.n, delta, problem.dim, problem.noise_std, problem.B, problem.L, self.ridge
        )

    @property
    def beta(self) -> float:
        """c_{n,1/n}, the threshold of the exploitation test."""
        return self.radius(1 / self.n)

    def gamma(self, exploring: float) -> float:
        """Return c_{n,1/S²}, after S exploring rounds."""
        return self.radius(1 / max(exploring, 2.0) ** 2)

    def contexts_off(self, exploring: float) -> float:
        """Return ζ_n: the summed error of the empirical context distribution (lemma on the deviation of ρ)."""
        s, count = max(exploring, 1.0), self.problem.n_contexts
        return 4 * count * (math.sqrt(s * math.log(count * s * s)) + math.log(s) + 1)

    def widths(self, exploring: float) -> float:
        """Return Ψ_n: the summed confidence widths (lemma on Ψ)."""
        s, ridge, length, dim = max(exploring, 1.0), self.ridge, self.problem.L, self.problem.dim
        return (
            length / math.sqrt(ridge) * (self.contexts_off(s) + BAD_ROUNDS)
            + length / ridge * math.sqrt(s * math.log(s))
            + math.sqrt(2 * dim * s * math.log1p(s * length**2 / (dim * ridge)))
        )

    def designs_off(self, exploring: float) -> float:
        """Return the information lost because the design of the pulls differs from that of the policies."""
        amount = self.problem.dim * max(exploring, 1.0)
        return self.divergence * (math.sqrt(amount * math.log(amount)) + 1)

    def steps(self, exploring: float, multiplier: float, z: float) -> float:
        """Return a_λ, the price of incremental updates, with λ_1 = 0 and b_ω and b_λ the largest possible
        subgradients.
        """
        width = math.sqrt(self.gamma(exploring)) * self.problem.L / math.sqrt(self.ridge)
        information = self.divergence + 2 * self.size / self.variance * width
        by_policy = self.size + width + self.max_multiplier * information
        by_multiplier = max(information, 1 / z)
        return math.log(self.problem.n_arms) + (by_policy**2 + by_multiplier**2) / 2 + multiplier**2 / 2


def regret_bound(
    problem: Problem, n: float, max_multiplier: float | None = None, z0: float = 1.0
) -> RegretBound:
    """Return the finite-time bound of Theorem 1 for `Solid.theory`: z_k = z_0 e^k and p_k = z_k e^{2k}.

        E[R_n] <= v* c_{n,1/n} / (2σ²) + C_log √(log log n) (log n)^{3/4} + C_const

    with C_log and C_const expanded into the proof's terms. Lemma 1's bound on u*(z_k) - v* has an unknown constant c_Θ;
    here u*(z_k) itself is computed, which is smaller.

    Args:
        problem: the problem; its bound B on ‖θ‖ is ‖θ*‖ where it has none.
        n: the horizon, at least 3; a float, as large as you like.
        max_multiplier: λ_max, at least 2 B L z_min, which is the default.
        z0: z_0 >= 1.

    Returns:
        The bound and its terms.

    Example:
        >>> import solid_bandits as sb
        >>> sb.bounds.regret_bound(sb.problems.toy(), n=50_000).vacuous
        True

    Reference: Theorem 1, eq. (regret.bound.finite), and the appendix "Regret Proof".

    """
    n = checks.number("n", n, least=3)
    z0 = checks.number("z0", z0, least=1)
    z_min = pure_exploration(problem, tol=1e-4).upper
    needed = 2 * problem.B * problem.L * z_min
    most = needed if max_multiplier is None else checks.number("max_multiplier", max_multiplier, least=needed)
    known = _Constants(problem, n, most)
    bound = lower_bound(problem)
    v, size, variance = bound.upper, known.size, known.variance
    first = max(0, math.ceil(math.log(2 * z_min / z0)))
    last = _last_phase(known, z0, first)
    lengths = np.array([z0 * math.exp(3 * k) for k in range(last + 1)])
    exploring = min(n, float(lengths.sum()))
    biases = {k: _bias(problem, z0 * math.exp(k), z_min, bound.z_bar, v) for k in range(first, last + 1)}
    roots = float(np.sqrt(lengths[first:]).sum())
    gamma = math.sqrt(known.gamma(exploring))
    terms = {
        "exploitation": 2 * size,
        "infeasible phases": 2 * size * min(n, float(lengths[:first].sum())),
        "z_k instead of z → ∞": sum(math.exp(2 * k) * bias for k, bias in biases.items()),
        "v* c / 2σ²": v * known.beta / (2 * variance),
        "incremental updates": known.steps(exploring, v, z0) * roots,
        "confidence widths": (2 + 6 * size * v / variance) * gamma * known.widths(exploring),
        "context distribution": size * (2 + 2 * size * (most + v) / variance) * known.contexts_off(exploring),
        "sampling": 2 * size * math.sqrt(exploring * math.log(exploring)) + v * known.designs_off(exploring),
        "bad events": (v * known.divergence + 6 * size + most) * BAD_ROUNDS,
    }
    return RegretBound(n, terms, n * _worst(problem), exploring)


def worst_case_bound(problem: Problem, n: float, max_multiplier: float, rate: float = 1.0) -> RegretBound:
    """Return the worst-case bound of Theorem 2, with p_k = e^{rk} and any z_k >= 1.

        E[R_n] <= 12 B L π² C_λ + 2e^r (λ_max² + log|A|) / r · √n + C_sqrt C_λ log n √(dn),   C_λ = 1 + λ_max B L / σ²

    with C_sqrt expanded into the proof's terms. It holds for every λ_max >= 0; at 0 only the objective remains.

    Args:
        problem: the problem; its bound B on ‖θ‖ is ‖θ*‖ where it has none.
        n: the horizon, at least 3.
        max_multiplier: λ_max.
        rate: r >= 1.

    Returns:
        The bound and its terms.

    Example:
        >>> import solid_bandits as sb
        >>> sb.bounds.worst_case_bound(sb.problems.toy(), n=50_000, max_multiplier=0).vacuous
        True

    Reference: Theorem 2 and the appendix "Worst-case Analysis".

    """
    n = checks.number("n", n, least=3)
    rate = checks.number("rate", rate, least=1)
    most = checks.number("max_multiplier", max_multiplier, least=0)
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a Problem, got {checks.short(problem)}")
    known = _Constants(problem, n, most)
    size, variance = known.size, known.variance
    weight = most * size / variance
    terms = {
        "exploitation": 2 * size,
        "bad events": BAD_ROUNDS * size * (6 + 2 * weight),
        "λ_max c / 2σ²": most * known.beta / (2 * variance),
        "incremental updates": 2 * math.exp(rate) / rate * known.steps(n, most, 1.0) * math.sqrt(n),
        "confidence widths": (2 + 6 * weight) * math.sqrt(known.gamma(n)) * known.widths(n),
        "context distribution": size * (5 + 2 * weight) * known.contexts_off(n),
        "sampling": 2 * size * math.sqrt(n * math.log(n)) + most * known.designs_off(n),
    }
    return RegretBound(n, terms, n * _worst(problem), n)


def _worst(problem: Problem) -> float:
    return float(problem.context_probs @ problem.gaps.max(axis=1))


def _phases_within(n: float, z0: float) -> int:
    """Return the last phase that n exploring rounds can begin."""
    phase, begun = 0, z0
    while begun < n:
        phase += 1
        begun += z0 * math.exp(3 * phase)
    return phase


def _last_phase(known: _Constants, z0: float, first: int) -> int:
    """Return the largest K_n allowed by the inequality on the sum of p_k / z_k and by n steps (appendix)."""
    size, variance, most = known.size, known.variance, known.max_multiplier
    largest = min(first, _phases_within(known.n, z0))
    for last in range(first, _phases_within(known.n, z0) + 1):
        exploring = min(known.n, z0 * sum(math.exp(3 * k) for k in range(last + 1)))
        gamma = math.sqrt(known.gamma(exploring))
        roots = sum(math.sqrt(z0) * math.exp(1.5 * k) for k in range(first, last + 1))
        allowed = (
            known.beta / (2 * variance)
            + known.steps(exploring, 2 * most, z0) * roots / (2 * most)
            + 2 * size / variance * gamma * known.widths(exploring)
            + known.designs_off(exploring)
            + (3 * size + most + 2 * most * known.divergence) * BAD_ROUNDS / (2 * most)
            + size * (1 + 3 * most * size / variance) * known.contexts_off(exploring) / most
            + (2 + 8 * size * most / variance) * gamma * known.widths(exploring) / (2 * most)
        )
        if sum(math.exp(2 * k) for k in range(first, last + 1)) <= allowed:
            largest = last
    return largest


def _bias(problem: Problem, z: float, z_min: float, z_bar: float, v: float) -> float:
    """Return an upper bound on u*(z) - v*; beyond what brackets can resolve, it falls as 1/z."""
    far = _FAR * max(z_min, z_bar)
    at = lower_bound_at(problem, min(z, far), tol=1e-9)
    return max(at.upper - v, 0.0) * min(1.0, far / z)
