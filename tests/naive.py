"""Slow, obvious references in plain NumPy for every compiled policy and for the simulation's loop.

Each class follows the paper's formulas with matrices inverted from scratch at every step. Nothing here is imported by
the product, and nothing here calls its compiled code.
"""

import numpy as np

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


class Solid:
    """Algorithm 1 with the implementation details of the appendix."""

    def __init__(self, policy, view, stream):
        self.policy, self.view, self.stream = policy, view, stream
        self.estimator = Estimator(view, policy.ridge)
        n_contexts, n_arms, self.dim = view.features.shape
        self.omega = np.full((n_contexts, n_arms), 1 / n_arms)
        self.log_omega = np.log(self.omega)
        self.multiplier = policy.initial_multiplier
        self.counts = np.zeros(n_contexts)
        self.t = self.S = self.phase = self.phase_start = 0

    def log_log_n(self):
        n = self.view.horizon if self.view.horizon > 0 else self.t
        return np.log(np.log(max(n, 3)))

    def act(self, context):
        self.t += 1
        sigma2 = self.view.noise_std**2
        means, features = self.estimator.means[context], self.view.features[context]
        best = int(np.argmax(means))
        differences = features[best] - features
        norms = ((differences @ self.estimator.inverse) * differences).sum(axis=1)
        distinct = (differences != 0).any(axis=1)
        statistic = np.min((means[best] - means)[distinct] ** 2 / norms[distinct], initial=np.inf)
        beta = sigma2 * (np.log(max(self.t - 1, 1)) + self.dim * self.log_log_n())
        if statistic > beta:
            arm, explored = best, False
        else:
            arm, explored = self.stream.choose(self.omega[context]), True
            self.S += 1
            self.update_solution()
        self.counts[context] += 1
        return arm, explored

    def closest_alternative(self, weights):
        """theta - theta' for the closest model with another optimal arm anywhere."""
        features, means = self.view.features, self.estimator.means
        W = np.einsum("xa,xai,xaj->ij", weights, features, features)
        W += SMALL * np.trace(W) / self.dim * np.eye(self.dim)
        if np.trace(W) == 0:
            return np.zeros(self.dim)
        W_inverse = np.linalg.inv(W)
        best = means.argmax(axis=1)
        rows = np.arange(len(best))
        differences = features[rows, best][:, None, :] - features
        gaps = means[rows, best][:, None] - means
        norms = ((differences @ W_inverse) * differences).sum(axis=2)
        distinct = (differences != 0).any(axis=2)
        distances = np.full(gaps.shape, np.inf)
        distances[distinct] = gaps[distinct] ** 2 / norms[distinct]
        if not distinct.any():
            return np.zeros(self.dim)
        x, a = np.unravel_index(np.argmin(distances), distances.shape)
        return gaps[x, a] / norms[x, a] * W_inverse @ differences[x, a]

    def update_solution(self):
        policy, view, estimator = self.policy, self.view, self.estimator
        sigma2 = view.noise_std**2
        gamma = sigma2 * (np.log(self.S) + self.dim * self.log_log_n())
        z = policy.z0 * np.exp(self.phase)
        rho = self.counts / max(self.counts.sum(), 1)
        weights = rho[:, None] * self.omega
        delta = self.closest_alternative(weights)
        divergence = (view.features @ delta) ** 2 / (2 * sigma2)
        bonus = np.sqrt(gamma) * np.sqrt(estimator.sq_norms)
        optimistic = (
            divergence + policy.constraint_bonus * 2 * view.theta_bound * view.feature_bound / sigma2 * bonus
        )
        g = (weights * optimistic).sum() - 1 / z
        q = rho[:, None] * (estimator.means + bonus + self.multiplier * optimistic)
        if policy.normalise_gradient:
            size = np.linalg.norm(q, axis=1, keepdims=True)
            q = np.divide(q, size, out=np.zeros_like(q), where=size > 0)
        self.log_omega = self.log_omega + policy.policy_step * q
        self.log_omega -= self.log_omega.max(axis=1, keepdims=True)
        self.omega = np.exp(self.log_omega)
        self.omega /= self.omega.sum(axis=1, keepdims=True)
        self.multiplier = min(max(self.multiplier - policy.multiplier_step * g, 0), policy.max_multiplier)
        if self.S - self.phase_start >= z * np.exp(2 * self.phase):
            self.phase += 1
            self.phase_start = self.S
            if policy.reset_at_phase:
                self.omega = np.full(self.omega.shape, 1 / self.omega.shape[1])
                self.log_omega = np.log(self.omega)
                self.multiplier = policy.initial_multiplier

    def update(self, context, arm, reward):
        self.estimator.observe(context, arm, reward)


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
