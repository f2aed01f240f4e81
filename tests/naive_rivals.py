"""Slow, obvious references in plain NumPy for the policies that SOLID is measured against.

Matrices are inverted from scratch at every step; nothing here calls the product's compiled code. The policies that
follow an allocation take it from `allocate(means)`, a function: that it solves (P) is checked apart, against
`lower_bound`, and what is done with it is checked here.
"""

import numpy as np

import naive
from naive import Estimator, LinUCB, Planning, Stream


class Rival(Planning):
    """What several of them need."""

    def begin(self):
        self.estimator = Estimator(self.dim, self.policy.ridge)
        self.s = 0

    @property
    def means(self):
        return self.estimator.means(self.features)

    def log_n(self):
        return np.log(max(self.setting.horizon or self.t, 3))

    def beta(self):
        return self.setting.noise_std**2 * (np.log(max(self.t - 1, 1)) + self.dim * np.log(self.log_n()))

    def gamma(self):
        return self.setting.noise_std**2 * (np.log(self.s) + self.dim * np.log(self.log_n()))

    def alternatives(self):
        """(context, arm, gap, difference, squared norm of the difference) of every pair that has an alternative."""
        found = []
        inverse = self.estimator.inverse
        for x, means in enumerate(self.means):
            best = int(np.argmax(means))
            for a in range(len(means)):
                d = self.features[x, best] - self.features[x, a]
                if d.any():
                    found.append((x, a, means[best] - means[a], d, d @ inverse @ d))
        return found

    def identified(self, context):
        return all(gap**2 > self.beta() * norm for x, _, gap, _, norm in self.alternatives() if x == context)


def laggard(pulls, wanted):
    """The first arm with the least pulls / wanted, and that ratio; arms not wanted do not count."""
    ratios = np.divide(pulls, wanted, out=np.full(len(pulls), np.inf), where=wanted > 0)
    return int(np.argmax(ratios <= ratios.min() * (1 + 1e-9))), ratios.min()


class UCB1(Planning):
    def begin(self):
        self.rewards = [[] for _ in self.features[0]]

    def choose(self, context):
        means = np.array([np.mean(r) if r else -np.inf for r in self.rewards])
        counts = np.array([len(r) for r in self.rewards])
        if (counts == 0).any():
            arm = int(np.argmin(counts))
        else:
            width = self.policy.scale * self.setting.noise_std * np.sqrt(2 * np.log(self.t) / counts)
            arm = int(np.argmax(means + width))
        return arm, arm != int(np.argmax(means))

    def update(self, context, arm, features, reward):
        self.rewards[arm].append(reward)


class AOIDS(Rival):
    def choose(self, context):
        estimator, arms, means = self.estimator, self.features[context], self.means[context]
        if self.identified(context):
            return int(np.argmax(means)), False
        self.s += 1
        spread = np.sqrt(self.gamma() * estimator.sq_norms(arms))
        regret = (means + spread).max() - means
        # theta - nu of the closest model that prefers arm a of context x
        inverse = estimator.inverse
        shifts = np.array([gap / norm * (inverse @ d) for _, _, gap, d, norm in self.alternatives()])
        distances = np.array([shift @ estimator.V @ shift for shift in shifts])
        rate = self.policy.learning_rate / (2 * self.setting.noise_std**2)
        q = np.exp(-rate * (distances - distances.min()))
        q /= q.sum()
        information = (q * (np.abs(arms @ shifts.T) + spread[:, None]) ** 2).sum(axis=1) / 2
        places = range(len(means))
        first, second, p = min(
            ((a, b, self.share(regret, information, a, b)) for a in places for b in places if a <= b),
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


class Counting(Rival):
    """Of one context, counting pulls."""

    def begin(self):
        super().begin()
        self.K = self.features.shape[1]
        self.N = np.zeros(self.K)

    def choose(self, context):
        arm, explored = self.next_arm()
        self.N[arm] += 1
        return arm, explored


class SPL(Counting):
    def begin(self):
        super().begin()
        self.gains = np.zeros((self.K, self.K))
        self.mixability = np.zeros(self.K)
        self.exploring, self.tracked = np.zeros(self.K), np.zeros(self.K)

    def next_arm(self):
        setting, K = self.setting, self.K
        if (self.N == 0).any():
            return int(np.argmin(self.N)), True
        means, features = self.means[0], self.features[0]
        best = int(np.argmax(means))
        if self.identified(0):
            return best, False
        self.s += 1
        clip = self.policy.gap_clip or setting.theta_bound * self.feature_bound / np.log(max(self.t, 3))
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
        interval = setting.noise_std * np.sqrt(2 * np.log(self.s) / self.N)
        gain = (np.abs(features @ delta) + interval) ** 2 / (2 * setting.noise_std**2) / gaps
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


class OAM(Rival):
    def begin(self):
        super().begin()
        self.linucb = LinUCB(_PlainLinUCB(self.policy.ridge), self.setting, None)
        self.linucb.estimator = self.estimator
        self.N = np.zeros(self.features.shape[:2])
        self.T = None

    def choose(self, context):
        arm, explored = self.next_arm(context)
        self.N[context, arm] += 1
        return arm, explored

    def next_arm(self, context):
        arms, means, threshold = self.features[context], self.means, self.beta()
        gaps = means.max(axis=1, keepdims=True) - means
        least = gaps[gaps > 0].min() if (gaps > 0).any() else 0.0
        best = int(np.argmax(means[context]))
        if (self.estimator.sq_norms(arms) * threshold <= np.maximum(gaps[context], least) ** 2).all():
            return best, False
        self.s += 1
        if self.s == 1 or self.s % self.policy.resolve_every == 0 or self.T.max() == 0:
            self.T = self.allocate(means).copy()
        N, b2 = self.N[context], int(np.argmin(self.N[context]))
        if least == 0:
            return b2, True
        T = self.T[context] * threshold / (2 * self.setting.noise_std**2)
        T[best] = np.inf
        T = np.minimum(T, threshold / least**2)
        b1, ratio = laggard(N, T)
        if ratio >= 1:
            self.linucb.t = self.t - 1
            return self.linucb.act(context, arms, np.ones(len(arms), dtype=bool))[0], True
        return (b2 if N[b2] <= self.policy.epsilon * self.s else b1), True


class _PlainLinUCB:
    radius, scale, delta = "paper", 1.0, None

    def __init__(self, ridge):
        self.ridge = ridge


class OSSB(Counting):
    def begin(self):
        super().begin()
        self.c = np.zeros(self.K)

    def next_arm(self):
        policy, means, N = self.policy, self.means[0], self.N
        if self.t % policy.resolve_every == 0 or self.c.max() == 0:
            self.c = self.allocate(self.means)[0].copy()
        if (self.c * (1 + policy.gamma) * np.log(self.t) <= N).all() and np.ptp(means) > 0:
            return int(np.argmax(means)), False
        self.s += 1
        rarest = int(np.argmin(N))
        if N[rarest] <= policy.epsilon * self.s or self.c.max() == 0:
            return rarest, True
        return laggard(N, self.c)[0], True


class EndOfOptimism(Counting):
    def begin(self):
        super().begin()
        self.phase = "warm-up"

    def next_arm(self):
        means, n, sigma = self.means[0], self.log_n(), self.setting.noise_std
        if self.phase == "warm-up":
            if self.t <= len(self.spanner) * np.ceil(np.sqrt(n)):
                return int(self.spanner[(self.t - 1) % len(self.spanner)]), True
            self.T = self.allocate(self.means)[0] * (n + self.dim * np.log(n)) / 2
            self.first = means.copy()
            g = sigma**2 * (np.log(n) + self.dim * np.log(n))
            self.leeway = self.policy.tolerance * np.sqrt(g * self.estimator.sq_norms(self.features[0]).max())
            self.phase = "success"
        if self.phase == "success" and (np.abs(means - self.first) > self.leeway).any():
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
            averages = np.array([np.mean(r) for r in self.rewards])
            arm = int(np.argmax(averages + sigma * np.sqrt(2 * np.log(self.t) / counts)))
        return arm, arm != int(np.argmax(means))

    def update(self, context, arm, features, reward):
        super().update(context, arm, features, reward)
        if self.phase == "recovery":
            self.rewards[arm].append(reward)


RIVALS = {kind.__name__: kind for kind in (UCB1, AOIDS, SPL, OAM, OSSB, EndOfOptimism)}


def start(policy, setting, table, seed, run):
    """The reference of any policy, drawing from the stream that the compiled one draws from."""
    kind = RIVALS.get(type(policy).__name__)
    if kind is None:
        return naive.start(policy, setting, table, seed, run)
    return kind(policy, setting, table, Stream(seed, run, role=1))
