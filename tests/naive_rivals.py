"""Slow, obvious references in plain NumPy for the policies that SOLID is measured against.

Matrices are inverted from scratch at every step; nothing here calls the product's compiled code. The policies that
follow an allocation take it from `allocate(means)`, a function: that it solves (P) is checked apart, against
`lower_bound`, and what is done with it is checked here.
"""

import numpy as np

import naive
from naive import Decision, Estimator, LinTS, LinUCB, Planning, Stream


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


class E4(Rival):
    def begin(self):
        super().begin()
        self.K = self.features.shape[1]
        self.active = list(range(self.K))
        self.batch, self.queue = 0, []

    def choose(self, context):
        if not self.queue and len(self.active) > 1:
            self.plan(self.means[0])
        if self.queue:
            return self.queue.pop(0), True
        return self.active[0], False

    def plan(self, means):
        policy, sigma, n = self.policy, self.setting.noise_std, np.exp(self.log_n())
        best = max(self.active, key=lambda a: means[a])
        self.batch += 1
        if self.batch == 1:
            self.explore(np.sqrt(n) if policy.first == "root" else np.sqrt(np.log(n)))
        elif self.batch == 2:
            cap = min(np.log(n) ** (1 + policy.gamma), n / (2 * self.K))
            alpha = (1 + 1 / np.log(np.log(n))) * (1 + self.dim * np.log(np.log(n)) / np.log(n))
            wanted = self.allocate(self.means)[0] * alpha * np.log(n)
            wanted[best] = cap
            self.pull(np.minimum(wanted, cap))
        elif self.batch == 3 and self.is_clear(means, best, n):
            self.active = [best]
        elif self.batch == 3:
            self.explore(np.log(n) ** (1 + policy.gamma))
        else:
            epsilon = sigma * np.sqrt(self.dim * np.log(self.K * n**2) / self.T)
            self.active = [a for a in self.active if means[a] >= means[best] - 2 * epsilon]
            if len(self.active) > 1:
                self.explore(n ** (1 - 0.5 ** (self.batch - 3)))

    def is_clear(self, means, best, n):
        beta = (self.dim / 2 * np.log(max(self.t - 1, 1)) + np.log(n)) / 2
        ratios = []
        for a in range(self.K):
            d = self.features[0, best] - self.features[0, a]
            if d.any():
                norm = d @ self.estimator.inverse @ d
                ratios.append((means[best] - means[a]) ** 2 / (2 * self.setting.noise_std**2 * norm))
        return min(ratios, default=np.inf) > beta

    def explore(self, T):
        """A design over the active arms; g(pi) is at most the number N of its pulls."""
        rows = np.where(np.isin(range(self.K), self.active)[:, None], self.features[0], 0.0)
        counts = design_of(rows)
        N = counts.sum()
        self.T = T
        self.pull(2 * (counts / N) * N * T / self.dim)

    def pull(self, wanted):
        """Beyond a million pulls of an arm nobody plays here."""
        counts = np.ceil(np.minimum(wanted, 1e6) * (1 - 1e-9)).astype(int)
        self.queue = [a for a in range(self.K) for _ in range(counts[a])]


def squared_radius(reference):
    """beta_t of the policies of minimum empirical divergence."""
    policy, setting, estimator = reference.policy, reference.setting, reference.estimator
    scale = policy.scale or (1.0 if policy.radius == "theorem" else 0.25)
    log_det_ratio = np.linalg.slogdet(estimator.V / estimator.ridge)[1]
    delta = policy.delta or 1 / (reference.t + 1)
    root = reference.noise()[0] * np.sqrt(log_det_ratio + 2 * np.log(1 / delta))
    if policy.radius == "theorem":
        root += np.sqrt(estimator.ridge) * setting.theta_bound
    return (scale * root) ** 2


def first_largest(values, tolerance):
    """The first entry that none exceeds by more than this part of it, looking through them once."""
    best = 0
    for place, value in enumerate(values):
        if value > values[best] * (1 + tolerance):
            best = place
    return best


def design_of(rows):
    """How often each row is pulled: a basis of rows, the largest entry first, then what is most uncertain."""
    counts = np.zeros(len(rows))
    largest = abs(rows).max(axis=0)
    left = np.divide(rows, largest, out=np.zeros_like(rows), where=largest > 0)
    scaled, columns = left.copy(), np.ones(rows.shape[1], dtype=bool)
    basis = []
    for _ in range(rows.shape[1]):
        entries = abs(left) * columns * (counts == 0)[:, None]
        row, column = divmod(first_largest(entries.ravel(), 1e-9), rows.shape[1])
        if entries[row, column] <= 1e-9 * (1 + 1e-9):
            break
        basis.append(row)
        counts[row], columns[column] = 1, False
        # What is left of the rows once their parts along this one are taken away, so that the column is 0.
        left = left - np.outer(left[:, column] / left[row, column], left[row])
    if not basis:
        return counts
    # Rows within the span of the basis; the information matrix in its own coordinates.
    coordinates = np.linalg.lstsq(scaled[basis].T, scaled.T, rcond=None)[0].T
    coordinates[abs(rows).max(axis=1) == 0] = 0
    while True:
        inverse = np.linalg.inv((coordinates.T * counts) @ coordinates)
        norms = np.concatenate([[1.0], ((coordinates @ inverse) * coordinates).sum(axis=1)])
        worst = first_largest(norms, 1e-9) - 1
        if worst < 0:
            return counts
        counts[worst] += 1


class LinMED(Decision):
    def shares(self, arms, available):
        """The probability of each arm."""
        policy, offered = self.policy, np.flatnonzero(available)
        means = self.estimator.means(arms)
        best = self.best(means, available)
        squares = squared_radius(self) * self.estimator.sq_norms(arms[best] - arms)
        gaps = means[best] - means
        f = np.zeros(len(arms))
        for arm in offered:
            f[arm] = np.exp(-(gaps[arm] ** 2) / squares[arm]) if gaps[arm] > 0 else 1.0
        design = design_of(np.sqrt(f)[:, None] * arms)
        q = np.zeros(len(arms))
        share = policy.design if design.any() else 0.0
        q[offered] = (1 - policy.empirical - share) / len(offered)
        if design.any():
            q += policy.design * design / design.sum()
        q[best] += policy.empirical
        p = q * f / (q * f).sum()
        if policy.radius == "theorem":
            wide = np.flatnonzero(available & (self.estimator.sq_norms(arms) > 1))
            if len(wide):
                p = p / 2 + (np.arange(len(arms)) == wide[0]) / 2
        return p

    def choose(self, arms, available):
        arm = self.stream.choose(self.shares(arms, available))
        return arm, arm != self.best(self.estimator.means(arms), available)


class LinIMED(Decision):
    def choose(self, arms, available):
        policy, width = self.policy, squared_radius(self)
        offered = np.flatnonzero(available)
        means, known = self.estimator.means(arms[offered]), width * self.estimator.sq_norms(arms[offered])
        levels = means + np.sqrt(known) if policy.form == 3 else means
        leader = int(np.argmax(levels))
        with np.errstate(divide="ignore", invalid="ignore"):
            index = np.nan_to_num((levels[leader] - levels) ** 2 / known, posinf=np.inf) - np.log(known)
            if policy.form == 2:
                index[leader] = min(index[leader], np.log(self.setting.horizon or self.t))
            if policy.form == 3:
                index[leader] = min(index[leader], np.log(policy.cap / np.ptp(levels) ** 2))
        arm = int(offered[np.argmin(index)])
        return arm, arm != self.best(self.estimator.means(arms), available)


def learning_rate(reference, count):
    """gamma / sqrt K of n = count decisions."""
    estimator = reference.estimator
    log_det_ratio = np.linalg.slogdet(estimator.V / estimator.ridge)[1] if estimator.ridge else 0.0
    squares = reference.noise()[0] ** 2 * (log_det_ratio + np.log(1 + count))
    return reference.policy.scale * np.sqrt(count / squares)


class SquareCB(Decision):
    def choose(self, arms, available):
        return self.by_gaps(arms, available, self.estimator.theta, learning_rate(self, self.t))

    def by_gaps(self, arms, available, theta, rate):
        """One uniform number: the others in their order, each 1 / (K + gamma gap) wide, then the best arm."""
        means = arms @ theta
        best = self.best(means, available)
        others = [int(arm) for arm in np.flatnonzero(available) if arm != best]
        gamma = rate * np.sqrt(available.sum())
        shares = [1 / (available.sum() + gamma * max(means[best] - means[arm], 0)) for arm in others]
        place = int(np.searchsorted(np.cumsum(shares), self.stream.uniform(), side="right"))
        arm = others[place] if place < len(others) else best
        return arm, arm != best


class FALCON(SquareCB):
    def __init__(self, policy, setting, stream):
        super().__init__(policy, setting, stream)
        self.theta, self.rate = np.zeros(setting.dim), 0.0

    def choose(self, arms, available):
        before = self.t - 1
        if before >= 2 and np.log2(before) % 1 == 0:
            self.theta, self.rate = self.estimator.theta, learning_rate(self, before)
        return self.by_gaps(arms, available, self.theta, self.rate)


class FeelGoodTS(LinTS):
    def choose(self, arms, available):
        setting, policy, estimator = self.setting, self.policy, self.estimator
        offered = np.flatnonzero(available)
        arms, sigma = arms[offered], self.noise()[0]
        tilt = policy.feel_good / (sigma * np.sqrt(setting.horizon or self.t)) * (self.t - 1)
        shifts = tilt * sigma**2 * arms @ estimator.inverse
        logs = tilt * arms @ estimator.theta + tilt**2 * sigma**2 * estimator.sq_norms(arms) / 2
        weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
        best = int(np.argmax(estimator.means(arms)))
        if policy.smoothed and len(offered) == 2:
            apart = arms[best] - arms[1 - best]
            shift = shifts[self.stream.choose(weights)]
            norm = np.sqrt(apart @ estimator.inverse @ apart)
            drawn = apart @ (estimator.theta + shift) + sigma * norm * self.stream.student(self.noise()[1])
            arm = best if drawn >= 0 else 1 - best
        else:
            votes = policy.votes if len(offered) > 1 else 0
            place = int(self.stream.uniform() * votes) if votes > 1 else 0
            arm = [self.vote(arms, shifts, weights, tilt, sigma) for _ in range(max(votes, 1))][place]
        return int(offered[arm]), arm != best

    def vote(self, arms, shifts, weights, tilt, sigma):
        while True:
            favoured = self.stream.choose(weights)
            values = arms @ (self.model(sigma) + shifts[favoured])
            if (
                self.policy.smoothed
                or self.stream.uniform() < 1 / np.exp(tilt * (values - values.max())).sum()
            ):
                return int(np.argmax(values))


KINDS = (UCB1, AOIDS, SPL, OAM, OSSB, EndOfOptimism, E4, LinMED, LinIMED, SquareCB, FALCON, FeelGoodTS)
RIVALS = {kind.__name__: kind for kind in KINDS}


def start(policy, setting, table, seed, run):
    """The reference of any policy, drawing from the stream that the compiled one draws from."""
    kind = RIVALS.get(type(policy).__name__)
    if kind is None:
        return naive.start(policy, setting, table, seed, run)
    if issubclass(kind, Decision):
        return kind(policy, setting, Stream(seed, run, role=1))
    return kind(policy, setting, table, Stream(seed, run, role=1))
