"""Slow, obvious references in plain NumPy for every compiled policy and for the simulation's loop.

Each class follows the paper's formulas with matrices inverted from scratch at every step. Nothing here is imported by
the product, and nothing here calls its compiled code.
"""

from math import erfc

import numpy as np
from scipy.optimize import brentq

from solid_bandits.estimation.ridge import SEARCH

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

    def student(self, degrees):
        """0 degrees of freedom are a normal distribution; else Bailey's transform of two uniforms."""
        if degrees == 0:
            return self.normal()
        first, second = self.uniform(), self.uniform()
        return np.sqrt(degrees * ((1 - first) ** (-2 / degrees) - 1)) * np.cos(2 * np.pi * second)

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
        self.rewards = []
        self.sum_of_squares = 0.0

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
        self.rewards.append(reward)
        self.sum_of_squares += reward**2

    def noise(self, noise_std):
        """The deviation of the rewards' noise, and its degrees of freedom; 0 where it is told."""
        if noise_std > 0:
            return noise_std, 0
        count = len(self.rewards)
        # Of the ridge's least squares: sum (y - phi theta)^2 + nu theta^2 = sum y^2 - theta V theta.
        residual = self.sum_of_squares - self.theta @ self.V @ self.theta if count else 0.0
        variance = (residual + (np.var(self.rewards) if count else 0.0)) / (count + 1)
        return (np.sqrt(variance) if variance > 0 else 1.0), count + 1


class Evidence(Estimator):
    """The same with the ridge of the greatest evidence, looked for at doubling counts of rewards."""

    def __init__(self, dim, noise_std):
        super().__init__(dim, 0.0)
        self.noise_std, self.start = noise_std, None

    def meet(self, arms):
        if self.start is not None:
            return
        spread = ((arms - arms.mean(axis=0)) ** 2).sum(axis=1).max()
        size = (arms**2).sum(axis=1).max()
        if spread > 1e-24 * size:
            self.start = SEARCH.start * spread
            self.replace(self.start)
        elif self.ridge == 0:
            self.replace(SEARCH.start * (size or 1.0))

    def replace(self, ridge):
        self.V += (ridge - self.ridge) * np.eye(len(self.U))
        self.ridge = ridge

    def observe(self, phi, reward):
        if self.ridge == 0:
            self.replace(SEARCH.start * (phi @ phi or 1.0))
        super().observe(phi, reward)
        count = len(self.rewards)
        if count < SEARCH.first or np.log2(count) % 1:
            return
        most = self.start or self.ridge
        for _ in range(SEARCH.rounds):
            size = np.trace(self.inverse @ (self.V - self.ridge * np.eye(len(self.U))))
            square = self.theta @ self.theta
            wanted = self.noise(self.noise_std)[0] ** 2 * size**2 / (size + SEARCH.caution) if size > 0 else 0
            if wanted > 0:
                self.replace(most if wanted >= most * square else wanted / square)


class Decision:
    """A reference that is asked about arms. The first of several best ones is the best."""

    def __init__(self, policy, setting, stream):
        self.policy, self.setting, self.stream = policy, setting, stream
        ridge = policy.ridge
        if ridge is None:
            ridge = 1.0 if policy.radius in ("paper", "theorem") else "evidence"
        evident = ridge == "evidence"
        self.estimator = (
            Evidence(setting.dim, setting.noise_std) if evident else Estimator(setting.dim, ridge)
        )
        self.t = 0

    def act(self, context, arms, available):
        self.t += 1
        if isinstance(self.estimator, Evidence):
            self.estimator.meet(arms[available])
        return self.choose(arms, available)

    def noise(self):
        return self.estimator.noise(self.setting.noise_std)

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
        log_det_ratio = np.linalg.slogdet(self.estimator.V / self.estimator.ridge)[1]
        scale = policy.scale or {"tuned": 0.35}.get(policy.radius, 1.0)
        if policy.radius != "theorem":
            return scale * self.noise()[0] * np.sqrt(log_det_ratio + np.log(self.t))
        delta = policy.delta or 1 / (setting.horizon or self.t)
        ratio = np.exp(log_det_ratio / 2) / delta
        radius = (
            setting.noise_std * np.sqrt(2 * np.log(ratio))
            + np.sqrt(self.estimator.ridge) * setting.theta_bound
        )
        return scale * radius

    def choose(self, arms, available):
        return upper_arm(self.estimator, self.width(), arms, available)


class RandUCB(Decision):
    def __init__(self, policy, setting, stream):
        super().__init__(policy, setting, stream)
        if policy.ridge != "evidence":
            self.estimator = None  # its ridge comes with the first features

    def see(self, arms):
        if self.estimator is None:
            largest = max(float(phi @ phi) for phi in arms)
            self.estimator = Estimator(self.setting.dim, self.policy.ridge * (largest or 1.0))

    def choose(self, arms, available):
        self.see(arms[available])
        uniform, (deviation, degrees) = 1 - self.stream.uniform(), self.noise()
        if degrees:
            drawn = degrees * (uniform ** (-2 * self.policy.temperature / degrees) - 1)
        else:
            drawn = -2 * self.policy.temperature * np.log(uniform)
        width = deviation * np.sqrt(self.policy.growth * np.log(self.t) + drawn)
        arm, explored = upper_arm(self.estimator, width, arms, available)
        return self.bought(arms, available, arm) if explored and self.policy.thrift else (arm, explored)

    def bought(self, arms, available, c):
        """The arm that tells the greedy arm b and c apart at the least price, as often as it teaches what c would."""
        V = self.estimator.inverse
        means = self.estimator.means(arms)
        b = self.best(means, available)
        worth = (arms @ V @ (arms[b] - arms[c])) ** 2 / (1 + self.estimator.sq_norms(arms))
        usable = [a for a in np.flatnonzero(available) if a not in (b, c) and worth[a] >= worth[c] > 0]
        price, a = min((((means[b] - means[a]) / worth[a], a) for a in usable), default=(np.inf, c))
        if a == c or price >= self.policy.thrift * (means[b] - means[c]) / worth[c]:
            return c, True
        return (b, False) if self.stream.uniform() >= worth[c] / worth[a] else (a, True)

    def update(self, context, arm, features, reward):
        self.see([features])
        super().update(context, arm, features, reward)


class LinTS(Decision):
    def spread(self):
        spread = self.policy.multiple * self.noise()[0]
        return spread * np.sqrt(np.log(self.t)) if self.policy.scale == "paper" else spread

    def model(self, spread):
        """theta + spread V^-1/2 z, z normal, or Student: coordinate by coordinate, given those before."""
        degrees, z = self.noise()[1], []
        for i in range(self.setting.dim):
            drawn = self.stream.student(degrees + i if degrees else 0)
            z.append(drawn * np.sqrt((degrees + np.dot(z, z)) / (degrees + i)) if degrees else drawn)
        root = np.linalg.cholesky(self.estimator.V).T
        return self.estimator.theta + spread * np.linalg.solve(root, np.array(z))

    def choose(self, arms, available):
        spread = self.spread()
        if available.sum() == 2:
            first, second = np.flatnonzero(available)
            d = arms[first] - arms[second]
            gap = d @ self.estimator.theta
            norm = np.sqrt(d @ np.linalg.solve(self.estimator.V, d))
            drawn = gap + spread * norm * self.stream.student(self.noise()[1])
            return int(first if drawn >= 0 else second), (drawn >= 0) != (gap >= 0)
        votes = self.policy.votes if available.sum() > 2 else 0
        place = int(self.stream.uniform() * votes) if votes > 1 else 0
        drawn = [self.best(arms @ self.model(spread), available) for _ in range(max(votes, 1))]
        return drawn[place], drawn[place] != self.best(self.estimator.means(arms), available)


def covariance_of_winners(arms, models):
    """L, and the mean of the largest reward: of the mean of the models given which arm is best."""
    values = models @ arms.T
    winners = values.argmax(axis=1)
    L = np.zeros((arms.shape[1],) * 2)
    for arm in np.unique(winners):
        away = models[winners == arm].mean(axis=0) - models.mean(axis=0)
        L += (winners == arm).mean() * np.outer(away, away)
    return L, values.max(axis=1).mean()


def best_pair(regrets, information):
    """(first, second, q): all pairs of arms, the probability q of the second where the ratio is least."""
    if regrets.min() <= 0:
        return int(regrets.argmin()), int(regrets.argmin()), 0.0
    best = (np.inf, 0, 0, 0.0)
    for i in range(len(regrets)):
        for j in range(len(regrets)):
            dearer, more = regrets[j] - regrets[i], information[j] - information[i]
            inside = regrets[i] / dearer - 2 * information[i] / more if dearer > 0 and more > 0 else 0.0
            for q in (0.0, np.clip(inside, 0, 1)):
                gained = information[i] + q * more
                if gained > 0:
                    ratio = (regrets[i] + q * dearer) ** 2 / gained
                    best = min(best, (ratio, i, j, q))
    return best[1:]


class VIDS(LinTS):
    def __init__(self, policy, setting, stream):
        super().__init__(policy, setting, stream)
        self.remembered, self.rows = [], 0

    def choose(self, arms, available):
        deviation, _ = self.noise()
        models = np.array([self.model(deviation) for _ in range(self.policy.samples)])
        offered = np.flatnonzero(available)
        L, ideal = covariance_of_winners(arms[offered], models)
        for others in self.remembered:
            L = L + covariance_of_winners(others, models)[0]
        regrets = ideal - arms[offered] @ models.mean(axis=0)
        information = np.einsum("ai,ij,aj->a", arms[offered], L, arms[offered])
        if len(np.unique((models @ arms[offered].T).argmax(axis=1))) == 1:
            first = second = int((models @ arms[offered].T).argmax(axis=1)[0])
            chance = 0.0
        else:
            first, second, chance = best_pair(np.maximum(regrets, 0), information)
        self.remember(arms[offered])
        arm = int(offered[second if self.stream.uniform() < chance else first])
        return arm, arm != self.best(self.estimator.means(arms), available)

    def remember(self, arms):
        """As many whole decisions as a ring of `memory` rows holds, each in one piece."""
        if not 2 <= len(arms) <= self.policy.memory:
            return
        if self.rows + len(arms) > self.policy.memory:
            gone = range(self.rows, self.policy.memory)
            self.places = [(at, size, kept) for at, size, kept in self.places if not overlap(at, size, gone)]
            self.rows = 0
        taken = range(self.rows, self.rows + len(arms))
        self.places = [
            (at, size, kept) for at, size, kept in getattr(self, "places", []) if not overlap(at, size, taken)
        ]
        self.places.append((self.rows, len(arms), arms.copy()))
        self.rows += len(arms)
        self.remembered = [kept for _, _, kept in self.places]


def overlap(at, size, places):
    return any(at <= place < at + size for place in places)


class EpsilonGreedy(Decision):
    def choose(self, arms, available):
        if self.stream.uniform() < self.policy.epsilon / self.t**self.policy.decay:
            offered = np.flatnonzero(available)
            return int(offered[int(self.stream.uniform() * len(offered))]), True
        return self.best(self.estimator.means(arms), available), False


class Greedy(Decision):
    def choose(self, arms, available):
        return self.best(self.estimator.means(arms), available), False


class StreamingSolid(Decision):
    """docs/streaming-solid.md: every exploring round is remembered, and ω is summed over them when asked for."""

    def __init__(self, policy, setting, stream):
        super().__init__(policy, setting, stream)
        self.rounds = []  # (weight, θ, γ, V^-1, λ / 2σ², δ) of each exploring round
        self.grams = []  # Σ_a ω φφ' of each exploring round
        self.stake = self.spent = 0.0
        self.multiplier = policy.initial_multiplier
        self.phase = self.phase_start = 0

    def squared_width(self, count):
        n = max(self.setting.horizon if self.setting.horizon > 0 else self.t, 3)
        return self.noise()[0] ** 2 * (np.log(max(count, 1)) + self.setting.dim * np.log(np.log(n)))

    def log_omega(self, arms):
        """The right-hand side of the formula, each sum taken anew."""
        if not self.rounds:
            return np.zeros(len(arms))
        weights, thetas, widths, inverses, multipliers, deltas = map(np.array, zip(*self.rounds, strict=True))
        norms = np.array([((arms @ inverse) * arms).sum(axis=1) for inverse in inverses]) * widths[:, None]
        along = (arms @ deltas.T).T
        straight = weights @ (thetas @ arms.T)
        optimism = np.sqrt(weights.sum() * (weights @ norms))
        known = np.sqrt((weights * multipliers) @ along**2)
        unsure = np.sqrt((weights * multipliers) @ norms)
        return straight + optimism + (known + unsure) ** 2

    def omega(self, arms):
        values = self.policy.policy_step * self.log_omega(arms)
        weights = np.exp(values - values.max())
        return weights / weights.sum()

    def choose(self, arms, available):
        offered, sigma = np.flatnonzero(available), self.noise()[0]
        arms = arms[offered]
        means = self.estimator.means(arms)
        best = int(means.argmax())
        differences = arms[best] - arms
        other = (differences != 0).any(axis=1)
        gaps = (means[best] - means)[other]
        spreads = np.sqrt(self.estimator.sq_norms(differences))[other]
        beta = self.policy.threshold_scale * self.squared_width(self.t - 1)
        is_open = bool((gaps**2 <= beta * spreads**2).any())
        u = gaps / (sigma * spreads)
        tail = np.array([0.5 * erfc(value / np.sqrt(2)) for value in u])
        self.stake += (sigma * spreads * (np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi) - u * tail)).sum()
        within = self.policy.budget is None or self.spent <= self.policy.budget * self.stake
        if not (is_open and within):
            return int(offered[best]), False
        omega = self.omega(arms)
        arm = self.stream.choose(omega)
        self.spent += omega @ (means[best] - means)
        self.step(arms, means, best, omega)
        return int(offered[arm]), True

    def step(self, arms, means, best, omega):
        policy, half = self.policy, 0.5 / self.noise()[0] ** 2
        self.grams.append((arms.T * omega) @ arms)
        ages = np.arange(len(self.grams))[::-1]
        W = np.average(self.grams, axis=0, weights=(1 - policy.fading) ** ages)
        W = W + SMALL * np.trace(W) / len(W) * np.eye(len(W))
        delta = np.zeros(len(W))
        least = np.inf
        for arm in range(len(arms)):
            difference = arms[best] - arms[arm]
            if difference.any():
                solved = np.linalg.solve(W, difference)
                gap = means[best] - means[arm]
                if gap**2 / (difference @ solved) < least:
                    least = gap**2 / (difference @ solved)
                    delta = gap / (difference @ solved) * solved
        width = self.squared_width(len(self.grams))
        bonus = np.sqrt(width * self.estimator.sq_norms(arms))
        divergence = half * (abs(arms @ delta) + bonus) ** 2
        size = np.linalg.norm(means + bonus + self.multiplier * divergence)
        if size > 0:
            theta, inverse = self.estimator.theta, self.estimator.inverse
            self.rounds.append((1 / size, theta, width, inverse, self.multiplier * half, delta))
        z = policy.z0 * np.exp(self.phase)
        g = omega @ divergence - 1 / z
        self.multiplier = min(max(self.multiplier - policy.multiplier_step * g, 0), policy.max_multiplier)
        if len(self.grams) - self.phase_start >= z * np.exp(2 * self.phase):
            self.phase, self.phase_start = self.phase + 1, len(self.grams)


POLICIES = {
    kind.__name__: kind
    for kind in (Solid, StreamingSolid, LinUCB, RandUCB, LinTS, VIDS, EpsilonGreedy, Greedy)
}


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
