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
    """Regularised least squares: V = nu I + sum phi phi', theta = V^-1 U; everything anew from V and U when asked."""

    def __init__(self, dim, ridge):
        self.ridge = ridge
        self.V = ridge * np.eye(dim)
        self.U = np.zeros(dim)

    @property
    def inverse(self):
        return np.linalg.inv(self.V)

    @property
    def theta(self):
        return np.linalg.solve(self.V, self.U)

    def means(self, features):
        return features @ self.theta

    def sq_norms(self, features):
        return ((features @ self.inverse) * features).sum(axis=-1)

    def observe(self, phi, reward):
        self.V += np.outer(phi, phi)
        self.U += phi * reward


class Decision:
    """A reference that is asked about arms. The first of several best ones is the best."""

    def __init__(self, policy, setting, stream):
        self.policy, self.setting, self.stream = policy, setting, stream
        self.estimator = Estimator(setting.dim, policy.ridge)
        self.t = 0

    def act(self, context, arms, available):
        self.t += 1
        return self.choose(arms, available)

    def update(self, context, arm, features, reward):
        self.estimator.observe(features, reward)

    @staticmethod
    def best(values, available):
        return int(np.argmax(np.where(available, values, -np.inf)))


class Planning:
    """A reference that is asked about a context of a table."""

    def __init__(self, policy, setting, table, stream):
        self.policy, self.setting, self.stream = policy, setting, stream
        self.features, self.feature_bound = table.features, table.feature_bound
        self.dim = setting.dim
        self.t = 0
        self.begin()

    def act(self, context, arms=None, available=None):
        self.t += 1
        return self.choose(context)

    def update(self, context, arm, features, reward):
        self.estimator.observe(self.features[context, arm], reward)


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


class Solid(Planning):
    """Algorithm 1, with every field of the policy."""

    def begin(self):
        policy = self.policy
        self.theorem = policy.form == "theorem"
        self.nu = max(self.feature_bound**2, 1) if policy.ridge is None else policy.ridge
        self.estimator = Estimator(self.dim, self.nu)
        n_contexts, n_arms, _ = self.features.shape
        self.omega = np.full((n_contexts, n_arms), 1 / n_arms)
        self.log_omega = np.log(self.omega)
        self.omega_sum = np.zeros((n_contexts, n_arms))
        self.pulls = np.zeros((n_contexts, n_arms))
        self.multiplier = policy.initial_multiplier
        self.counts = np.zeros(n_contexts)
        self.S = self.phase = self.phase_start = 0
        self.theta = np.zeros(self.dim)  # theta-tilde

    @property
    def means(self):
        return self.features @ self.theta

    def horizon(self, t):
        return max(self.setting.horizon if self.setting.horizon > 0 else t, 3)

    def radius(self, n, delta):
        setting = self.setting
        return confidence_radius(
            n, delta, self.dim, setting.noise_std, setting.theta_bound, self.feature_bound, self.nu
        )

    def beta(self, t):
        """beta_{t-1}"""
        n = self.horizon(t)
        if self.theorem:
            return self.policy.threshold_scale * self.radius(n, 1 / n)
        beta = self.setting.noise_std**2 * (np.log(max(t - 1, 1)) + self.dim * np.log(np.log(n)))
        return self.policy.threshold_scale * beta

    def gamma(self):
        n = self.horizon(self.t)
        if self.theorem:
            return self.radius(n, 1 / self.S**2)
        return self.setting.noise_std**2 * (np.log(self.S) + self.dim * np.log(np.log(n)))

    def constraint_bonus(self, bonus, along):
        """in g_t, for pairs with optimism `bonus` and phi'(theta - theta') = `along` at the closest theta'"""
        sigma2 = self.setting.noise_std**2
        if self.policy.bonus == "local":
            return ((abs(along) + bonus) ** 2 - along**2) / (2 * sigma2)
        as_printed = 2 * self.setting.theta_bound * self.feature_bound / sigma2
        return {"theorem": as_printed, "plain": 1.0, "none": 0.0}[self.policy.bonus] * bonus

    def schedule(self):
        """z_k and p_k"""
        k, z0 = self.phase, self.policy.z0
        z = z0 * np.exp(k) if self.policy.schedule == "exp-exp" else z0 * (1 + k)
        factor = {"exp-exp": np.exp(2 * k), "lin-exp": np.exp(k), "lin-pol": (1 + k) ** 2, "lin-lin": 1 + k}
        return z, z * factor[self.policy.schedule]

    def closest(self, matrix, contexts):
        """(squared distance, theta - theta') of the closest alternative in these contexts."""
        features, means = self.features[contexts], self.means[contexts]
        rows, best = np.arange(len(means)), means.argmax(axis=1)
        differences = features[rows, best][:, None, :] - features
        gaps = means[rows, best][:, None] - means
        inverse = np.linalg.inv(matrix)
        norms = ((differences @ inverse) * differences).sum(axis=2)
        distinct = (differences != 0).any(axis=2)
        if not distinct.any():
            return np.inf, np.zeros(self.dim)
        if self.theorem:
            deltas = [
                self.theta - nearest_in_ball(matrix, self.theta, differences[x, a], self.setting.theta_bound)
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
        if self.policy.test == "likelihood-ratio":
            return self.closest(self.estimator.V, contexts)[0]
        gaps = self.means.max(axis=1, keepdims=True) - self.means
        least = gaps[gaps > 0].min() if (gaps > 0).any() else 0
        return (np.maximum(gaps, least) ** 2 / self.estimator.sq_norms(self.features))[contexts].min()

    def choose_arm(self, context):
        omega = self.omega[context]
        if self.policy.drawing == "sampling":
            return self.stream.choose(omega)
        self.omega_sum[context] += omega
        target = (
            (self.pulls[context].sum() + 1) * omega
            if self.policy.drawing == "direct"
            else self.omega_sum[context]
        )
        arm = int(np.argmax(target - self.pulls[context]))
        self.pulls[context, arm] += 1
        return arm

    def choose(self, context):
        explores = not self.statistic(context) > self.beta(self.t)
        if explores:
            self.S += 1
            arm = self.choose_arm(context)
            self.update_solution()
        else:
            arm = int(np.argmax(self.means[context]))
        self.counts[context] += 1
        return arm, explores

    def update_solution(self):
        policy, sigma2 = self.policy, self.setting.noise_std**2
        z, p = self.schedule()
        scale = 1 / np.sqrt(max(p, 1)) if self.theorem else 1
        rho = self.counts / max(self.counts.sum(), 1)
        weights = rho[:, None] * self.omega
        W = np.einsum("xa,xai,xaj->ij", weights, self.features, self.features)
        W += SMALL * np.trace(W) / self.dim * np.eye(self.dim)
        delta = self.closest(W, list(range(len(rho))))[1] if np.trace(W) > 0 else np.zeros(self.dim)
        along = self.features @ delta
        bonus = np.sqrt(self.gamma() * self.estimator.sq_norms(self.features))
        optimistic = along**2 / (2 * sigma2) + self.constraint_bonus(bonus, along)
        g = (weights * optimistic).sum() - 1 / z
        q = rho[:, None] * (self.means + bonus + self.multiplier * optimistic)
        if not self.theorem:
            size = np.linalg.norm(q, axis=1)[:, None]
            q = np.divide(q, size, out=np.zeros_like(q), where=size > 0)
        seen = self.counts > 0
        self.log_omega[seen] += scale * policy.policy_step * q[seen]
        self.log_omega -= self.log_omega.max(axis=1, keepdims=True)
        self.omega = np.exp(self.log_omega)
        self.omega /= self.omega.sum(axis=1, keepdims=True)
        self.multiplier = min(
            max(self.multiplier - scale * policy.multiplier_step * g, 0), policy.max_multiplier
        )
        if self.S - self.phase_start >= p:
            self.phase += 1
            self.phase_start = self.S
            if policy.reset_at_phase:
                self.omega = np.full(self.omega.shape, 1 / self.omega.shape[1])
                self.log_omega = np.log(self.omega)
                self.multiplier = policy.initial_multiplier

    def update(self, context, arm, features, reward):
        super().update(context, arm, features, reward)
        theta = self.estimator.theta
        if not self.theorem:
            self.theta = theta
            return
        projected = project(self.estimator.V, theta, self.setting.theta_bound)
        away = projected - theta
        if away @ self.estimator.V @ away <= self.beta(self.t + 1):
            self.theta = projected


def upper_arm(estimator, width, arms, available):
    """argmax of mean + width * norm, and whether this is another arm than the greedy one."""
    means = estimator.means(arms)
    arm = Decision.best(means + width * np.sqrt(estimator.sq_norms(arms)), available)
    return arm, arm != Decision.best(means, available)


class LinUCB(Decision):
    def width(self):
        policy, setting = self.policy, self.setting
        log_det_ratio = np.linalg.slogdet(self.estimator.V / policy.ridge)[1]
        if policy.radius == "paper":
            return policy.scale * setting.noise_std * np.sqrt(log_det_ratio + np.log(self.t))
        delta = policy.delta or 1 / (setting.horizon or self.t)
        ratio = np.exp(log_det_ratio / 2) / delta
        radius = setting.noise_std * np.sqrt(2 * np.log(ratio)) + np.sqrt(policy.ridge) * setting.theta_bound
        return policy.scale * radius

    def choose(self, arms, available):
        return upper_arm(self.estimator, self.width(), arms, available)


class RandUCB(Decision):
    def __init__(self, policy, setting, stream):
        super().__init__(policy, setting, stream)
        self.estimator = None  # its ridge comes with the first features

    def see(self, arms):
        if self.estimator is None:
            largest = max(float(phi @ phi) for phi in arms)
            self.estimator = Estimator(self.setting.dim, self.policy.ridge * (largest or 1.0))

    def choose(self, arms, available):
        self.see(arms[available])
        drawn = -2 * self.policy.temperature * np.log(1 - self.stream.uniform())
        width = self.setting.noise_std * np.sqrt(self.policy.growth * np.log(self.t) + drawn)
        return upper_arm(self.estimator, width, arms, available)

    def update(self, context, arm, features, reward):
        self.see([features])
        super().update(context, arm, features, reward)


class LinTS(Decision):
    def draw(self, arms, available):
        spread = self.policy.multiple * self.setting.noise_std
        if self.policy.scale == "paper":
            spread *= np.sqrt(np.log(self.t))
        z = np.array([self.stream.normal() for _ in range(self.setting.dim)])
        sample = self.estimator.theta + spread * np.linalg.solve(np.linalg.cholesky(self.estimator.V).T, z)
        return self.best(arms @ sample, available)

    def choose(self, arms, available):
        if available.sum() == 2:
            first, second = np.flatnonzero(available)
            d = arms[first] - arms[second]
            spread = self.policy.multiple * self.setting.noise_std
            if self.policy.scale == "paper":
                spread *= np.sqrt(np.log(self.t))
            gap = d @ self.estimator.theta
            drawn = gap + spread * np.sqrt(d @ np.linalg.solve(self.estimator.V, d)) * self.stream.normal()
            return int(first if drawn >= 0 else second), (drawn >= 0) != (gap >= 0)
        votes = self.policy.votes if available.sum() > 2 else 0
        place = int(self.stream.uniform() * votes) if votes > 1 else 0
        drawn = [self.draw(arms, available) for _ in range(max(votes, 1))]
        return drawn[place], drawn[place] != self.best(self.estimator.means(arms), available)


class EpsilonGreedy(Decision):
    def choose(self, arms, available):
        if self.stream.uniform() < self.policy.epsilon / self.t**self.policy.decay:
            offered = np.flatnonzero(available)
            return int(offered[int(self.stream.uniform() * len(offered))]), True
        return self.best(self.estimator.means(arms), available), False


class Greedy(Decision):
    def choose(self, arms, available):
        return self.best(self.estimator.means(arms), available), False


POLICIES = {kind.__name__: kind for kind in (Solid, LinUCB, RandUCB, LinTS, EpsilonGreedy, Greedy)}


def start(policy, setting, table, seed, run):
    """The reference of a policy, drawing from the stream that the compiled one draws from."""
    kind, stream = POLICIES[type(policy).__name__], Stream(seed, run, role=1)
    if issubclass(kind, Planning):
        return kind(policy, setting, table, stream)
    return kind(policy, setting, stream)


def environment(problem, seed, run):
    """The contexts and noises of a run, for ever: (context, noise)."""
    stream = Stream(seed, run, role=0)
    edges = np.cumsum(problem.context_probs)
    while True:
        context = int(np.searchsorted(edges, stream.uniform(), side="right").clip(0, problem.n_contexts - 1))
        yield context, problem.noise_std * stream.normal()


def steps(problem, policy, horizon, seed, run):
    """Play, and yield (context, arm, explored, reward, agent) after each step."""
    agent = start(policy, problem.setting(horizon), problem.table, seed, run)
    everything = np.ones(problem.n_arms, dtype=bool)
    for _, (context, noise) in zip(range(horizon), environment(problem, seed, run), strict=False):
        arms = problem.features[context]
        arm, explored = agent.act(context, arms, everything)
        reward = problem.means[context, arm] + noise
        agent.update(context, arm, arms[arm], reward)
        yield context, arm, explored, reward, agent
