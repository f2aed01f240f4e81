"""Slow, obvious forms of the rules of identification, from all data each time."""

import math

import numpy as np
from scipy.optimize import linprog

import solid_bandits as sb


class Naive:
    """Everything that was seen, kept as lists."""

    def __init__(self, features, delta, noise_std):
        self.features, self.delta, self.noise_std = features, delta, noise_std
        self.contexts, self.arms, self.dim = features.shape
        self.rows, self.rewards = [], []
        self.counts = np.zeros((self.contexts, self.arms))
        self.tracked = np.zeros((self.contexts, self.arms))
        self.aside = 0
        self.ridge = 1e-9 * (features**2).sum(axis=2).max()

    def gram(self, first=0, last=None):
        rows = np.array(self.rows[first:last]).reshape(-1, self.dim)
        return rows.T @ rows + self.ridge * np.eye(self.dim)

    def fit(self, first=0, last=None):
        rows = np.array(self.rows[first:last]).reshape(-1, self.dim)
        return np.linalg.solve(self.gram(first, last), rows.T @ np.array(self.rewards[first:last]))

    def residual(self, first=0, last=None):
        rows, theta = np.array(self.rows[first:last]).reshape(-1, self.dim), self.fit(first, last)
        return float(
            ((np.array(self.rewards[first:last]) - rows @ theta) ** 2).sum() + self.ridge * theta @ theta
        )

    def best(self, theta):
        return (self.features @ theta).argmax(axis=1)

    def shares(self):
        return (self.counts.sum(axis=1) + 1) / (len(self.rows) + self.contexts)

    def learn(self, context, arm, reward):
        self.rows.append(self.features[context, arm])
        self.rewards.append(reward)
        self.counts[context, arm] += 1
        if self.aside:
            return
        self.tracked[context, arm] += 1
        n = len(self.rows)
        if n in [8 * self.dim * 2**power for power in range(30)]:
            rows = np.array(self.rows)
            plain = rows.T @ rows
            harmonic = self.dim / np.trace(np.linalg.inv(self.gram()))
            if harmonic > 1e-3 * np.trace(plain) / self.dim:
                self.aside = n

    def threshold(self):
        grown = np.linalg.slogdet(self.gram())[1] - np.linalg.slogdet(self.gram(0, self.aside))[1]
        return math.log(1 / self.delta) + 0.5 * grown

    def exponent(self, theta):
        """-2σ² times the logarithm of M_n(θ), without its determinants: what alternatives make small."""
        late, early = theta - self.fit(), theta - self.fit(0, self.aside)
        return late @ self.gram() @ late - early @ self.gram(0, self.aside) @ early

    def statistic(self):
        """The least exponent over the alternatives, by its formula."""
        theta, inverse = self.fit(self.aside), np.linalg.inv(self.gram(self.aside))
        least = self.residual(0, self.aside) + self.residual(self.aside) - self.residual()
        found = np.inf
        for context, best in enumerate(self.best(theta)):
            for arm in range(self.arms):
                apart = self.features[context, best] - self.features[context, arm]
                if apart.any():
                    found = min(found, (apart @ theta) ** 2 / (apart @ inverse @ apart))
        return 0.5 * (least + found) / self.noise_std**2

    def preparing(self, context):
        inverse = np.linalg.inv(self.gram())
        sizes = np.einsum("ad,de,ae->a", self.features[context], inverse, self.features[context])
        return int(np.flatnonzero(sizes >= sizes.max() * (1 - 1e-8))[0])

    def least_tracked(self, context):
        ahead = np.where(self.tracked[context] > 0, self.counts[context] - self.tracked[context], np.inf)
        return int(ahead.argmin())

    def alternatives(self, allocation):
        """(squared distance, θ - θ') of each pair under an allocation."""
        weights = self.shares()[:, None] * allocation
        gram = np.einsum("xa,xad,xae->de", weights, self.features, self.features)
        gram += 1e-9 * np.trace(gram) * np.eye(self.dim)
        theta, found = self.fit(), []
        for context, best in enumerate(self.best(theta)):
            for arm in range(self.arms):
                apart = self.features[context, best] - self.features[context, arm]
                if apart.any():
                    towards = np.linalg.solve(gram, apart)
                    found.append(
                        (
                            (apart @ theta) ** 2 / (apart @ towards),
                            apart @ theta / (apart @ towards) * towards,
                        )
                    )
        return found

    def play(self, rule, problem, contexts, noise):
        """The arms of a rule, and the number of rewards at the stop."""
        arms = []
        for context, shock in zip(contexts, noise, strict=True):
            arm = rule(self, context) if self.aside else self.preparing(context)
            self.learn(context, arm, problem.means[context, arm] + shock)
            arms.append(arm)
            if self.aside and len(self.rows) > self.aside + self.dim and self.statistic() > self.threshold():
                return arms, len(arms)
        return arms, None


def even(naive, context):
    return int(naive.counts[context].argmin())


def lingape(naive, context):
    theta, inverse = naive.fit(), np.linalg.inv(naive.gram())
    radius = naive.noise_std * math.sqrt(2 * naive.threshold())
    pairs = []
    for x, best in enumerate(naive.best(theta)):
        for arm in range(naive.arms):
            apart = naive.features[x, best] - naive.features[x, arm]
            if apart.any():
                pairs.append((radius * math.sqrt(apart @ inverse @ apart) - apart @ theta, apart))
    apart = max(pairs, key=lambda pair: pair[0])[1]
    left = [
        apart @ np.linalg.solve(naive.gram() + np.outer(row, row), apart) for row in naive.features[context]
    ]
    return int(np.argmin(left))


class LinGame:
    """With AdaHedge learners made when they are first asked."""

    def __init__(self):
        self.learners = {}

    def weights(self, sums, mixability):
        if mixability == 0:
            leaders = (sums == sums.max()).astype(float)
            return leaders / leaders.sum()
        powers = np.exp(math.log(len(sums)) / mixability * (sums - sums.max()))
        return powers / powers.sum()

    def __call__(self, naive, context):
        theta, inverse = naive.fit(), np.linalg.inv(naive.gram())
        names = list(enumerate(naive.best(theta)))
        for name in names:
            self.learners.setdefault(name, [np.zeros(naive.arms), 0.0])
        allocation = np.array([self.weights(*self.learners[name]) for name in names])
        delta = min(naive.alternatives(allocation), key=lambda one: one[0])[1]
        sigma = naive.noise_std
        for (x, _), weights, learner in zip(
            names, allocation, [self.learners[name] for name in names], strict=True
        ):
            norms = np.einsum("ad,de,ae->a", naive.features[x], inverse, naive.features[x])
            wide = np.sqrt(2 * sigma**2 * math.log(max(len(naive.rows), 2)) * norms)
            gain = (np.abs(naive.features[x] @ delta) + wide) ** 2 / (2 * sigma**2)
            if learner[1] == 0:
                mixed = (learner[0] + gain).max() - learner[0].max()
            else:
                rate = math.log(naive.arms) / learner[1]
                mixed = math.log(weights @ np.exp(rate * (gain - gain.max()))) / rate + gain.max()
            learner[0] = learner[0] + gain
            learner[1] += max(mixed - weights @ gain, 0.0)
        naive.tracked[context] += allocation[context]
        return naive.least_tracked(context)


class FrankWolfe:
    """With the linear program by SciPy."""

    average = None

    def __call__(self, naive, context):
        step = len(naive.rows) + 1
        if self.average is None:
            drawn = naive.counts.sum(axis=1, keepdims=True)
            self.average = np.where(drawn > 0, naive.counts / np.maximum(drawn, 1), 1 / naive.arms)
        if math.sqrt(step // naive.arms).is_integer():
            target = np.full((naive.contexts, naive.arms), 1 / naive.arms)
        else:
            target = self.direction(naive, step**-0.9 / naive.arms)
        self.average = self.average + (target - self.average) / step
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.nan_to_num(self.average[context] / naive.counts[context], nan=0.0, posinf=np.inf)
        return int(ratio.argmax())

    def direction(self, naive, radius):
        half = 0.5 / naive.noise_std**2
        found = naive.alternatives(self.average)
        least = min(one[0] for one in found)
        near = [(half * value, delta) for value, delta in found if half * value < half * least + radius]
        payoffs = [
            (naive.shares()[:, None] * half * (naive.features @ delta) ** 2).ravel() for _, delta in near
        ]
        return best_against(np.array(payoffs), np.array([value for value, _ in near]), naive.contexts)[1]


def best_against(payoffs, offsets, contexts):
    """max_z min_j (payoffs_j z - offsets_j) by SciPy: its value and z."""
    pairs = payoffs.shape[1]
    arms = pairs // contexts
    sums = np.kron(np.eye(contexts), np.ones(arms))
    found = linprog(
        np.append(np.zeros(pairs), -1.0),
        A_ub=np.column_stack([-payoffs, np.ones(len(payoffs))]),
        b_ub=-offsets,
        A_eq=np.column_stack([sums, np.zeros(contexts)]),
        b_eq=np.ones(contexts),
        bounds=[(0, None)] * pairs + [(None, None)],
    )
    return -found.fun, found.x[:-1].reshape(contexts, arms)


class Lazy:
    """With the allocation of `bounds.pure_exploration`, renewed at the same times."""

    again, allocation = 0, None

    def __call__(self, naive, context):
        n = len(naive.rows)
        if n >= self.again:
            shares = naive.shares() / naive.shares().sum()
            estimated = sb.Problem(naive.features, naive.fit(), shares, naive.noise_std)
            self.allocation = sb.bounds.pure_exploration(estimated, 1e-3).policy
            self.again = math.floor(max(n + 1, 1.2 * n))
        naive.tracked[context] += self.allocation[context]
        if not hasattr(self, "least"):
            self.least = self.forced(naive)
        if 1 / np.trace(np.linalg.inv(naive.gram())) < self.least * math.sqrt(n):
            return naive.preparing(context)
        return naive.least_tracked(context)

    def forced(self, naive):
        rest, chosen = naive.features.reshape(-1, naive.dim).copy(), []
        for _ in range(naive.dim):
            chosen.append(int((rest**2).sum(axis=1).argmax()))
            unit = rest[chosen[-1]] / np.linalg.norm(rest[chosen[-1]])
            rest = rest - np.outer(rest @ unit, unit)
        rows = naive.features.reshape(-1, naive.dim)[chosen]
        return np.linalg.eigvalsh(rows.T @ rows)[0] / math.sqrt(naive.dim)


RULES = {
    "even": lambda: even,
    "lingape": lambda: lingape,
    "lingame": LinGame,
    "frank-wolfe": FrankWolfe,
    "lazy-track-and-stop": Lazy,
}
