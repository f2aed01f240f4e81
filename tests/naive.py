"""Slow, obvious references in plain NumPy for every compiled policy and for the simulation's loop.

Each class follows the paper's formulas with matrices inverted from scratch at every step. Nothing here is imported by
the product, and nothing here calls its compiled code.
"""

import numpy as np
from scipy.optimize import brentq

SMALL = 1e-9  # ridge of V_omega relative to its mean eigenvalue: the settled convention, not a formula of the paper


class Stream:
    """NumPy's SFC64 generator; normals by Box and Muller's transform."""

    def __init__(self, seed, run, role):
        self.generator = np.random.Generator(
            np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(run, role)))
        )

    def uniform(self):
        return self.generator.random()

    def normal(self):
        first, second = self.uniform(), self.uniform()
        return np.sqrt(-2 * np.log(1 - first)) * np.cos(2 * np.pi * second)

    def choose(self, probabilities):
        return int(
            np.searchsorted(np.cumsum(probabilities), self.uniform(), side="right").clip(
                0, len(probabilities) - 1
            )
        )


class Estimator:
    """Regularised least squares: V = nu I + sum phi phi', theta = V^-1 U."""

    def __init__(self, view, ridge):
        self.features = view.features
        self.dim = view.features.shape[2]
        self.V = ridge * np.eye(self.dim)
        self.U = np.zeros(self.dim)
        self.solve()

    def solve(self):
        self.inverse = np.linalg.inv(self.V)
        self.theta = self.inverse @ self.U
        self.means = self.features @ self.theta
        self.sq_norms = ((self.features @ self.inverse) * self.features).sum(axis=2)

    def observe(self, context, arm, reward):
        phi = self.features[context, arm]
        self.V += np.outer(phi, phi)
        self.U += phi * reward
        self.solve()


def confidence_radius(n, delta, d, sigma, B, L, nu):
    """c_{n,delta} as the theorem prints it, but for max(1, sigma^2) before Upsilon."""
    log_n = np.log(n)
    gamma = 1 + 1 / log_n
    v_min = 1 / (2 * np.sqrt(d) * log_n)
    chi = nu**2 * v_min**2 / (16 * d * L**2 * (nu + L**2 * n) * log_n**4 * gamma**4)
    upsilon = d * np.log(5 / 2 + 2 * log_n * np.sqrt(d)) + d * np.log(
        2 + 4 * d * np.log(4 * gamma * d * log_n**2 * np.sqrt((nu + L**2 * n) / (d * nu))) * log_n
    )
    root_kappa = (
        B * np.sqrt(nu)
        + np.sqrt(2 * sigma**2 * np.log((2 + 2 * n * L**2 / (d * nu)) / delta) / log_n**2)
        + np.sqrt(
            2 * sigma**2 * gamma**3 * np.log(2 * (1 + max(np.log(n / chi), 0) * log_n) / delta)
            + 2 * gamma**3 * max(1, sigma**2) * upsilon
        )
    )
    return (gamma / (1 - 1 / log_n) * root_kappa) ** 2


def project(V, theta, B):
    """argmin ||theta' - theta||_V over ||theta'|| <= B."""
    if np.linalg.norm(theta) <= B:
        return theta

    def shrunk(mu):
        return np.linalg.solve(V + mu * np.eye(len(theta)), V @ theta)

    top = np.linalg.norm(V, 2)
    while np.linalg.norm(shrunk(top)) > B:
        top *= 10
    return shrunk(brentq(lambda mu: np.linalg.norm(shrunk(mu)) - B, 0, top, xtol=1e-300, rtol=1e-15))


def nearest_in_ball(W, theta, difference, B):
    """argmin ||theta' - theta||_W over difference . theta' = 0 and ||theta'|| <= B: a search over mu >= 0."""

    def at(mu):
        A = np.linalg.inv(W + mu * np.eye(len(theta)))
        nu = difference @ A @ W @ theta / (difference @ A @ difference)
        return A @ (W @ theta - nu * difference)

    if np.linalg.norm(at(0)) <= B:
        return at(0)
    low, high = 0, np.linalg.norm(W, 2)
    while np.linalg.norm(at(high)) > B and high < 1e12 * np.linalg.norm(W, 2):
        high *= 10
    if np.linalg.norm(at(high)) > B:  # theta itself is on the sphere
        return at(high)
    return at(brentq(lambda mu: np.linalg.norm(at(mu)) - B, low, high, xtol=1e-300, rtol=1e-15))


class Solid:
    """Algorithm 1, with every switch."""

    def __init__(self, policy, view, stream):
        self.policy, self.view, self.stream = policy, view, stream
        self.unit = view.noise_std if policy.units == "noise" else 1
        self.nu = max(view.feature_bound**2, 1) if policy.ridge is None else policy.ridge
        if policy.units == "noise":
            self.nu = policy.ridge * view.feature_bound**2
        self.estimator = Estimator(view, self.nu)
        n_contexts, n_arms, self.dim = view.features.shape
        self.omega = np.full((n_contexts, n_arms), 1 / n_arms)
        self.log_omega = np.log(self.omega)
        self.omega_sum = np.zeros((n_contexts, n_arms))
        self.pulls = np.zeros((n_contexts, n_arms))
        self.multiplier = self.unit * policy.initial_multiplier
        self.counts = np.zeros(n_contexts)
        self.t = self.S = self.phase = self.phase_start = 0
        self.theta = np.zeros(self.dim)  # theta-tilde
        if policy.max_multiplier is not None:
            self.max_multiplier = self.unit * policy.max_multiplier
        else:
            rho = policy.least_context_prob or 1
            z_min = 8 * view.noise_std**2 * self.dim / (rho * policy.least_gap**2)
            self.max_multiplier = 2 * view.theta_bound * view.feature_bound * z_min

    @property
    def means(self):
        return self.view.features @ self.theta

    def horizon(self, t):
        known = self.view.horizon > 0 and not self.policy.anytime
        return max(self.view.horizon if known else t, 3)

    def radius(self, n, delta):
        view = self.view
        return confidence_radius(
            n, delta, self.dim, view.noise_std, view.theta_bound, view.feature_bound, self.nu
        )

    def offset(self, n):
        return self.policy.dimension_scale * self.dim * np.log(np.log(n))

    def beta(self, t):
        """beta_{t-1}"""
        n = self.horizon(t)
        if self.policy.confidence == "theorem":
            return self.policy.threshold_scale * self.radius(n, 1 / n)
        log_t = np.log(max(t - 1, 1))
        return self.policy.threshold_scale * self.view.noise_std**2 * (log_t + self.offset(n))

    def gamma(self):
        n = self.horizon(self.t)
        if self.policy.confidence == "theorem":
            return self.policy.optimism_scale * self.radius(n, 1 / self.S**2)
        log_s = np.log(self.S)
        return self.policy.optimism_scale * self.view.noise_std**2 * (log_s + self.offset(n))

    def schedule(self):
        """z_k and p_k"""
        k, z0 = self.phase, self.policy.z0
        z = z0 * np.exp(k) if self.policy.schedule == "exp-exp" else z0 * (1 + k)
        factor = {"exp-exp": np.exp(2 * k), "lin-exp": np.exp(k), "lin-pol": (1 + k) ** 2, "lin-lin": 1 + k}
        return z, z * factor[self.policy.schedule]

    def closest(self, matrix, contexts):
        """(squared distance, theta - theta') of the closest alternative in these contexts."""
        features, means = self.view.features[contexts], self.means[contexts]
        rows, best = np.arange(len(means)), means.argmax(axis=1)
        differences = features[rows, best][:, None, :] - features
        gaps = means[rows, best][:, None] - means
        inverse = np.linalg.inv(matrix)
        norms = ((differences @ inverse) * differences).sum(axis=2)
        distinct = (differences != 0).any(axis=2)
        if not distinct.any():
            return np.inf, np.zeros(self.dim)
        if self.policy.bounded:
            deltas = [
                self.theta - nearest_in_ball(matrix, self.theta, differences[x, a], self.view.theta_bound)
                if gaps[x, a] > 0
                else np.zeros(self.dim)
                for x, a in np.argwhere(distinct)
            ]
            distances = [delta @ matrix @ delta for delta in deltas]
            return min(distances), deltas[int(np.argmin(distances))]
        distances = np.full(gaps.shape, np.inf)
        distances[distinct] = gaps[distinct] ** 2 / norms[distinct]
        x, a = np.unravel_index(np.argmin(distances), distances.shape)
        return distances[x, a], gaps[x, a] / norms[x, a] * inverse @ differences[x, a]

    def statistic(self, context):
        contexts = list(range(len(self.counts))) if self.policy.test_contexts == "all" else [context]
        if self.policy.exploit_test == "likelihood-ratio":
            return self.closest(self.estimator.V, contexts)[0]
        gaps = self.means.max(axis=1, keepdims=True) - self.means
        least = gaps[gaps > 0].min() if (gaps > 0).any() else 0
        return (np.maximum(gaps, least) ** 2 / self.estimator.sq_norms)[contexts].min()

    def choose_arm(self, context):
        omega = self.omega[context]
        if self.policy.arm_choice == "sampling":
            return self.stream.choose(omega)
        self.omega_sum[context] += omega
        target = (
            (self.pulls[context].sum() + 1) * omega
            if self.policy.arm_choice == "direct"
            else self.omega_sum[context]
        )
        arm = int(np.argmax(target - self.pulls[context]))
        self.pulls[context, arm] += 1
        return arm

    def act(self, context):
        self.t += 1
        extra = 0
        if self.policy.random_width > 0:
            extra = -2 * self.policy.random_width * self.view.noise_std**2 * np.log(1 - self.stream.uniform())
        explores = not self.statistic(context) > self.beta(self.t) + extra
        if self.policy.step_first:
            self.counts[context] += 1
        if explores:
            self.S += 1
            if self.policy.step_first:
                self.update_solution(extra)
                arm = self.choose_arm(context)
            else:
                arm = self.choose_arm(context)
                self.update_solution(extra)
        else:
            arm = int(np.argmax(self.means[context]))
        if not self.policy.step_first:
            self.counts[context] += 1
        return arm, explores

    def update_solution(self, extra):
        policy, view = self.policy, self.view
        sigma2 = view.noise_std**2
        z, p = self.schedule()
        scale = 1 / np.sqrt(max(p, 1)) if policy.decay_steps else 1
        rho = self.counts / max(self.counts.sum(), 1)
        weights = rho[:, None] * self.omega
        W = np.einsum("xa,xai,xaj->ij", weights, view.features, view.features)
        W += SMALL * np.trace(W) / self.dim * np.eye(self.dim)
        delta = self.closest(W, list(range(len(rho))))[1] if np.trace(W) > 0 else np.zeros(self.dim)
        divergence = (view.features @ delta) ** 2 / (2 * sigma2)
        bonus = np.sqrt(self.gamma() + extra) * np.sqrt(self.estimator.sq_norms)
        optimistic = (
            divergence + policy.constraint_bonus * 2 * view.theta_bound * view.feature_bound / sigma2 * bonus
        )
        g = (weights * optimistic).sum() - 1 / z
        q = rho[:, None] * (self.means + bonus + self.multiplier * optimistic)
        step = scale * policy.policy_step
        if policy.gradient_scale == "none":
            step /= self.unit
        else:
            size = np.linalg.norm(q, axis=1) if policy.gradient_scale == "norm" else np.ptp(q, axis=1)
            q = np.divide(q, size[:, None], out=np.zeros_like(q), where=size[:, None] > 0)
        seen = self.counts > 0
        self.log_omega[seen] = policy.policy_memory * self.log_omega[seen] + step * q[seen]
        self.log_omega -= self.log_omega.max(axis=1, keepdims=True)
        self.omega = np.exp(self.log_omega)
        self.omega /= self.omega.sum(axis=1, keepdims=True)
        self.multiplier = min(
            max(self.multiplier - scale * self.unit * policy.multiplier_step * g, 0), self.max_multiplier
        )
        if self.S - self.phase_start >= p:
            self.phase += 1
            self.phase_start = self.S
            if policy.reset_at_phase:
                self.omega = np.full(self.omega.shape, 1 / self.omega.shape[1])
                self.log_omega = np.log(self.omega)
                self.multiplier = self.unit * policy.initial_multiplier

    def update(self, context, arm, reward):
        self.estimator.observe(context, arm, reward)
        if not self.policy.bounded:
            self.theta = self.estimator.theta
            return
        projected = project(self.estimator.V, self.estimator.theta, self.view.theta_bound)
        away = projected - self.estimator.theta
        if away @ self.estimator.V @ away <= self.beta(self.t + 1):
            self.theta = projected


class LinUCB:
    def __init__(self, policy, view, stream):
        self.policy, self.view = policy, view
        self.estimator = Estimator(view, policy.ridge)
        self.t = 0

    def act(self, context):
        self.t += 1
        policy, view, estimator = self.policy, self.view, self.estimator
        dim = len(estimator.theta)
        log_det_ratio = np.linalg.slogdet(estimator.V)[1] - dim * np.log(policy.ridge)
        if policy.radius == "paper":
            radius = view.noise_std * np.sqrt(log_det_ratio + np.log(self.t))
        else:
            delta = policy.delta or 1 / (view.horizon or self.t)
            ratio = np.exp(log_det_ratio / 2) / delta
            radius = view.noise_std * np.sqrt(2 * np.log(ratio)) + np.sqrt(policy.ridge) * view.theta_bound
        upper = estimator.means[context] + policy.scale * radius * np.sqrt(estimator.sq_norms[context])
        arm = int(np.argmax(upper))
        return arm, arm != int(np.argmax(estimator.means[context]))

    def update(self, context, arm, reward):
        self.estimator.observe(context, arm, reward)


class LinTS:
    def __init__(self, policy, view, stream):
        self.policy, self.view, self.stream = policy, view, stream
        self.estimator = Estimator(view, policy.ridge)
        self.t = 0

    def act(self, context):
        self.t += 1
        estimator = self.estimator
        spread = self.policy.multiple * self.view.noise_std
        if self.policy.scale == "paper":
            spread *= np.sqrt(np.log(self.t))
        z = np.array([self.stream.normal() for _ in estimator.theta])
        sample = estimator.theta + spread * np.linalg.solve(np.linalg.cholesky(estimator.V).T, z)
        arm = int(np.argmax(self.view.features[context] @ sample))
        return arm, arm != int(np.argmax(estimator.means[context]))

    def update(self, context, arm, reward):
        self.estimator.observe(context, arm, reward)


class Greedy:
    def __init__(self, policy, view, stream):
        self.estimator = Estimator(view, policy.ridge)

    def act(self, context):
        return int(np.argmax(self.estimator.means[context])), False

    def update(self, context, arm, reward):
        self.estimator.observe(context, arm, reward)


POLICIES = {"Solid": Solid, "LinUCB": LinUCB, "LinTS": LinTS, "Greedy": Greedy}


def start(policy, view, seed, run):
    return POLICIES[type(policy).__name__](policy, view, Stream(seed, run, role=1))


def steps(problem, policy, horizon, seed, run):
    """Play, and yield (context, arm, explored, reward, agent) after each step."""
    agent = start(policy, problem.view(horizon), seed, run)
    environment = Stream(seed, run, role=0)
    edges = np.cumsum(problem.context_probs)
    for _ in range(horizon):
        context = int(
            np.searchsorted(edges, environment.uniform(), side="right").clip(0, problem.n_contexts - 1)
        )
        noise = problem.noise_std * environment.normal()
        arm, explored = agent.act(context)
        reward = problem.means[context, arm] + noise
        agent.update(context, arm, reward)
        yield context, arm, explored, reward, agent
