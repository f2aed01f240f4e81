"""Slow, obvious references in plain NumPy for the policies that SOLID is measured against.

Matrices are inverted from scratch at every step; nothing here calls the product's compiled code. The policies that
follow an allocation take it from `allocate(means)`, a function: that it solves (P) is checked apart, against
`lower_bound`, and what is done with it is checked here.
"""

import numpy as np

from naive import Estimator, LinUCB, Stream


def log_n(view, t):
    return np.log(max(view.horizon or t, 3))


def beta(view, t):
    return view.noise_std**2 * (np.log(max(t - 1, 1)) + view.features.shape[2] * np.log(log_n(view, t)))


def gamma(view, t, s):
    return view.noise_std**2 * (np.log(s) + view.features.shape[2] * np.log(log_n(view, t)))


def alternatives(view, estimator):
    """(context, arm, gap, difference, squared norm of the difference) of every pair that has an alternative."""
    found = []
    for x, means in enumerate(estimator.means):
        best = int(np.argmax(means))
        for a in range(len(means)):
            d = view.features[x, best] - view.features[x, a]
            if d.any():
                found.append((x, a, means[best] - means[a], d, d @ estimator.inverse @ d))
    return found


def identified(view, estimator, context, threshold):
    return all(
        gap**2 > threshold * norm for x, _, gap, _, norm in alternatives(view, estimator) if x == context
    )


def laggard(pulls, wanted):
    """The first arm with the least pulls / wanted, and that ratio; arms not wanted do not count."""
    ratios = np.divide(pulls, wanted, out=np.full(len(pulls), np.inf), where=wanted > 0)
    return int(np.argmax(ratios <= ratios.min() * (1 + 1e-9))), ratios.min()


class EpsilonGreedy:
    def __init__(self, policy, view, stream):
        self.policy, self.stream = policy, stream
        self.estimator = Estimator(view, policy.ridge)
        self.t = 0

    def act(self, context):
        self.t += 1
        means = self.estimator.means[context]
        if self.stream.uniform() < self.policy.epsilon / self.t**self.policy.decay:
            return int(self.stream.uniform() * len(means)), True
        return int(np.argmax(means)), False

    def update(self, context, arm, reward):
        self.estimator.observe(context, arm, reward)


class UCB1:
    def __init__(self, policy, view, stream):
        self.policy, self.view = policy, view
        self.rewards = [[] for _ in view.features[0]]
        self.t = 0

    def act(self, context):
        self.t += 1
        means = np.array([np.mean(r) if r else -np.inf for r in self.rewards])
        counts = np.array([len(r) for r in self.rewards])
        if (counts == 0).any():
            arm = int(np.argmin(counts))
        else:
            width = self.policy.scale * self.view.noise_std * np.sqrt(2 * np.log(self.t) / counts)
            arm = int(np.argmax(means + width))
        return arm, arm != int(np.argmax(means))

    def update(self, context, arm, reward):
        self.rewards[arm].append(reward)


class IDS:
    def __init__(self, policy, view, stream):
        self.policy, self.view, self.stream = policy, view, stream
        self.estimator = Estimator(view, policy.ridge)
        self.t = self.s = 0

    def act(self, context):
        self.t += 1
        view, estimator = self.view, self.estimator
        means, features = estimator.means[context], view.features[context]
        if identified(view, estimator, context, beta(view, self.t)):
            return int(np.argmax(means)), False
        self.s += 1
        spread = np.sqrt(gamma(view, self.t, self.s) * estimator.sq_norms[context])
        regret = (means + spread).max() - means
        others = alternatives(view, estimator)
        # theta - nu of the closest model that prefers arm a of context x
        shifts = np.array([gap / norm * (estimator.inverse @ d) for _, _, gap, d, norm in others])
        distances = np.array([shift @ estimator.V @ shift for shift in shifts])
        q = np.exp(-self.policy.learning_rate * (distances - distances.min()) / (2 * view.noise_std**2))
        q /= q.sum()
        information = (q * (np.abs(features @ shifts.T) + spread[:, None]) ** 2).sum(axis=1) / 2
        arms = range(len(means))
        first, second, p = min(
            ((a, b, self.share(regret, information, a, b)) for a in arms for b in arms if a <= b),
            key=lambda mixture: self.ratio(regret, information, *mixture),
        )
        return (second if self.stream.uniform() < p else first), True

    @staticmethod
    def ratio(regret, information, a, b, p):
        return ((1 - p) * regret[a] + p * regret[b]) ** 2 / ((1 - p) * information[a] + p * information[b])

    def share(self, regret, information, a, b):
        """The best probability of b: golden-section search would do; the stationary point is faster."""
        rise, more = regret[b] - regret[a], information[b] - information[a]
        if rise * more == 0:
            return 0.0
        return float(np.clip(regret[a] / rise - 2 * information[a] / more, 0, 1))

    def update(self, context, arm, reward):
        self.estimator.observe(context, arm, reward)


class SPL:
    def __init__(self, policy, view, stream):
        self.policy, self.view = policy, view
        self.estimator = Estimator(view, policy.ridge)
        self.K = view.features.shape[1]
        self.gains = np.zeros((self.K, self.K))
        self.mixability = np.zeros(self.K)
        self.N, self.exploring, self.tracked = np.zeros(self.K), np.zeros(self.K), np.zeros(self.K)
        self.t = self.s = 0

    def act(self, context):
        self.t += 1
        arm, explored = self.choose()
        self.N[arm] += 1
        return arm, explored

    def choose(self):
        view, estimator, K = self.view, self.estimator, self.K
        if (self.N == 0).any():
            return int(np.argmin(self.N)), True
        means, features = estimator.means[0], view.features[0]
        best = int(np.argmax(means))
        if identified(view, estimator, 0, beta(view, self.t)):
            return best, False
        self.s += 1
        clip = self.policy.gap_clip or view.theta_bound * view.feature_bound / np.log(max(self.t, 3))
        gaps = np.maximum(means[best] - means, clip)
        # AdaHedge
        G, mixability = self.gains[best], self.mixability[best]
        rates = (G.max() == G).astype(float)
        if mixability > 0:
            rates = np.exp(np.log(K) / mixability * (G - G.max()))
        rates /= rates.sum()
        weights = rates / gaps / (rates / gaps).sum()
        W = features.T @ (weights[:, None] * features)
        W += 1e-9 * np.trace(W) / len(W) * np.eye(len(W))
        W_inverse = np.linalg.inv(W)
        differences = features[best] - features
        norms = np.einsum("ai,ij,aj->a", differences, W_inverse, differences)
        distances = np.full(K, np.inf)
        distinct = (differences != 0).any(axis=1)
        distances[distinct] = (means[best] - means[distinct]) ** 2 / norms[distinct]
        a = int(np.argmin(distances))
        delta = (means[best] - means[a]) / norms[a] * W_inverse @ differences[a]
        interval = view.noise_std * np.sqrt(2 * np.log(self.s) / self.N)
        gain = (np.abs(features @ delta) + interval) ** 2 / (2 * view.noise_std**2) / gaps
        if mixability > 0:
            eta = np.log(K) / mixability
            mix = np.log((rates * np.exp(eta * (gain - gain.max()))).sum()) / eta + gain.max()
        else:
            mix = gain[rates > 0].max()
        self.mixability[best] += max(mix - rates @ gain, 0)
        self.gains[best] += gain
        self.tracked += weights
        arm = int(np.argmax(self.tracked - self.exploring))
        self.exploring[arm] += 1
        return arm, True

    def update(self, context, arm, reward):
        self.estimator.observe(context, arm, reward)


class OAM:
    def __init__(self, policy, view, stream):
        self.policy, self.view = policy, view
        self.linucb = LinUCB(_PlainLinUCB(policy.ridge), view, stream)
        self.estimator = self.linucb.estimator
        self.N = np.zeros(view.features.shape[:2])
        self.t = self.s = 0
        self.T = None

    def act(self, context):
        self.t += 1
        arm, explored = self.choose(context)
        self.N[context, arm] += 1
        return arm, explored

    def choose(self, context):
        estimator, threshold = self.estimator, beta(self.view, self.t)
        gaps = estimator.means.max(axis=1, keepdims=True) - estimator.means
        least = gaps[gaps > 0].min() if (gaps > 0).any() else 0.0
        best = int(np.argmax(estimator.means[context]))
        if (estimator.sq_norms[context] * threshold <= np.maximum(gaps[context], least) ** 2).all():
            return best, False
        self.s += 1
        if self.s == 1 or self.s % self.policy.resolve_every == 0 or self.T.max() == 0:
            self.T = self.allocate(estimator.means).copy()
        N, b2 = self.N[context], int(np.argmin(self.N[context]))
        if least == 0:
            return b2, True
        T = self.T[context] * threshold / (2 * self.view.noise_std**2)
        T[best] = np.inf
        T = np.minimum(T, threshold / least**2)
        b1, ratio = laggard(N, T)
        if ratio >= 1:
            self.linucb.t = self.t - 1
            return self.linucb.act(context)[0], True
        return (b2 if N[b2] <= self.policy.epsilon * self.s else b1), True

    def update(self, context, arm, reward):
        self.estimator.observe(context, arm, reward)


class _PlainLinUCB:
    radius, scale, delta = "paper", 1.0, None

    def __init__(self, ridge):
        self.ridge = ridge


class OSSB:
    def __init__(self, policy, view, stream):
        self.policy = policy
        self.estimator = Estimator(view, policy.ridge)
        self.N = np.zeros(view.features.shape[1])
        self.t = self.s = 0
        self.c = np.zeros(len(self.N))

    def act(self, context):
        self.t += 1
        arm, explored = self.choose()
        self.N[arm] += 1
        return arm, explored

    def choose(self):
        policy, means, N = self.policy, self.estimator.means[0], self.N
        if self.t % policy.resolve_every == 0 or self.c.max() == 0:
            self.c = self.allocate(self.estimator.means)[0].copy()
        if (self.c * (1 + policy.gamma) * np.log(self.t) <= N).all() and np.ptp(means) > 0:
            return int(np.argmax(means)), False
        self.s += 1
        rarest = int(np.argmin(N))
        if N[rarest] <= policy.epsilon * self.s or self.c.max() == 0:
            return rarest, True
        return laggard(N, self.c)[0], True

    def update(self, context, arm, reward):
        self.estimator.observe(context, arm, reward)


class EndOfOptimism:
    def __init__(self, policy, view, stream):
        self.policy, self.view = policy, view
        self.estimator = Estimator(view, policy.ridge)
        self.N = np.zeros(view.features.shape[1])
        self.t = 0
        self.phase = "warm-up"

    def act(self, context):
        self.t += 1
        arm, explored = self.choose()
        self.N[arm] += 1
        return arm, explored

    def choose(self):
        view, estimator = self.view, self.estimator
        dim, n = view.features.shape[2], log_n(view, self.t)
        if self.phase == "warm-up":
            if self.t <= len(self.spanner) * np.ceil(np.sqrt(n)):
                return int(self.spanner[(self.t - 1) % len(self.spanner)]), True
            self.T = self.allocate(estimator.means)[0] * (n + dim * np.log(n)) / 2
            self.first = estimator.means[0].copy()
            g = view.noise_std**2 * (np.log(n) + dim * np.log(n))
            self.leeway = self.policy.tolerance * np.sqrt(g * estimator.sq_norms[0].max())
            self.phase = "success"
        if self.phase == "success" and (np.abs(estimator.means[0] - self.first) > self.leeway).any():
            self.phase = "recovery"
            self.rewards = [[] for _ in self.N]
        if self.phase == "success":
            best = int(np.argmax(self.first))
            arm, ratio = laggard(self.N, self.T)
            arm = arm if ratio < 1 else best
            return arm, arm != best
        counts = np.array([len(r) for r in self.rewards])
        if (counts == 0).any():
            arm = int(np.argmin(counts))
        else:
            means = np.array([np.mean(r) for r in self.rewards])
            arm = int(np.argmax(means + view.noise_std * np.sqrt(2 * np.log(self.t) / counts)))
        return arm, arm != int(np.argmax(estimator.means[0]))

    def update(self, context, arm, reward):
        self.estimator.observe(context, arm, reward)
        if self.phase == "recovery":
            self.rewards[arm].append(reward)


POLICIES = {policy.__name__: policy for policy in (EpsilonGreedy, UCB1, IDS, SPL, OAM, OSSB, EndOfOptimism)}


def start(policy, view, seed, run):
    return POLICIES[type(policy).__name__](policy, view, Stream(seed, run, role=1))
