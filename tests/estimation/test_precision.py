"""Features far from zero: what a triangle is kept for, and V^-1 would lose."""

import numba
import numpy as np
import pytest

import solid_bandits as sb
from exact import LeastSquares
from solid_bandits.core.setting import make_setting
from solid_bandits.estimation.arms import estimate_arms, make_arms_work
from solid_bandits.estimation.estimator import make_estimator, observe
from solid_bandits.policies import contract

GRID = 2.0**-20
"""Features and rewards are multiples of this, so that their sums are exact in integers."""


@numba.njit
def observe_many(estimator, rows, chosen, rewards, row, gains):
    for i in range(chosen.shape[0]):
        observe(estimator, rows[chosen[i]], rewards[i], row, gains)


@numba.njit
def textbook(rows, chosen, rewards, ridge):
    """Means by V^-1 U, V^-1 by Sherman and Morrison: what is not done here."""
    dim = rows.shape[1]
    inverse, moment = np.eye(dim) / ridge, np.zeros(dim)
    for i in range(chosen.shape[0]):
        phi = rows[chosen[i]]
        direction = inverse @ phi
        inverse -= np.outer(direction, direction) / (1.0 + phi @ direction)
        moment += phi * rewards[i]
    return rows @ (inverse @ moment)


def shifted_problem(shift, dim, updates, seed):
    """64 rows, all columns shifted; which came when, some of them seldom; rewards; and the exact solution."""
    rng = np.random.default_rng(seed)
    rows = np.round((rng.normal(size=(64, dim)) + shift) / GRID) * GRID
    popularity = 2.0 ** -rng.uniform(0, 12, size=64)
    chosen = rng.choice(64, size=updates, p=popularity / popularity.sum())
    rewards = np.round((rows @ rng.normal(size=dim))[chosen] / GRID) * GRID
    rewards += np.round(rng.normal(size=updates) / GRID) * GRID
    exact = LeastSquares(dim, 1.0)
    for k, row in enumerate(rows):
        mine = (rewards[chosen == k] / GRID).astype(np.int64)
        exact.observe(row, int(mine.sum()) * GRID, count=len(mine))
    return rows, chosen, rewards, exact


@pytest.mark.parametrize("dim", [3, 8])
def test_columns_shifted_by_1e5_leave_a_million_rewards_their_means(dim):
    """Means within 1% of a standard deviation σ ‖φ‖_{V^-1} of the exact ones, and the norms within 1% of theirs."""
    updates = 1_000_000
    rows, chosen, rewards, exact = shifted_problem(1e5, dim, updates, seed=dim)
    estimator, work = make_estimator(dim, 1.0), make_arms_work(dim)
    observe_many(estimator, rows, chosen, rewards, np.zeros(dim), np.zeros(dim))
    assert estimate_arms(estimator, rows, 0, work) == 64
    deviations = exact.norms(rows)
    off = np.abs(work.means[:64] - exact.means(rows)) / deviations
    assert off.max() < 0.01
    assert np.sqrt(work.sq_norms[:64]) == pytest.approx(deviations, rel=0.01)
    # The same rewards in the textbook's form: this is no problem on which anything would do.
    lost = np.abs(textbook(rows, chosen, rewards, 1.0) - exact.means(rows)) / deviations
    assert lost.max() > 0.01


class Extended:
    """LinUCB with R, z in 80 bits, rows rotated in by Givens' rotations with square roots, one number at a time."""

    def __init__(self, dim, ridge, noise_std):
        self.R = np.sqrt(np.longdouble(ridge)) * np.eye(dim, dtype=np.longdouble)
        self.z = np.zeros(dim, dtype=np.longdouble)
        self.ridge, self.noise_std, self.t = np.longdouble(ridge), np.longdouble(noise_std), 0

    def act(self, arms):
        self.t += 1
        columns = arms.T.astype(np.longdouble)
        for i in range(len(self.z)):  # R^-T φ
            columns[i] = (columns[i] - self.R[:i, i] @ columns[:i]) / self.R[i, i]
        ratio = 2 * np.log(np.diag(self.R)).sum() - len(self.z) * np.log(self.ridge)
        width = self.noise_std * np.sqrt(ratio + np.log(np.longdouble(self.t)))
        return int(np.argmax(columns.T @ self.z + width * np.sqrt((columns**2).sum(axis=0))))

    def update(self, phi, reward):
        row, rest = phi.astype(np.longdouble), np.longdouble(reward)
        for i in range(len(self.z)):
            length = np.hypot(self.R[i, i], row[i])
            c, s = self.R[i, i] / length, row[i] / length
            self.R[i], row = c * self.R[i] + s * row, c * row - s * self.R[i]
            self.z[i], rest = c * self.z[i] + s * rest, c * rest - s * self.z[i]


class Textbook:
    """LinUCB from V and U in 53 bits, inverted anew at every step."""

    def __init__(self, dim, ridge, noise_std):
        self.V, self.U = ridge * np.eye(dim), np.zeros(dim)
        self.noise_std, self.t = noise_std, 0

    def act(self, arms):
        self.t += 1
        width = self.noise_std * np.sqrt(np.linalg.slogdet(self.V)[1] + np.log(self.t))
        inverse = np.linalg.pinv(self.V, hermitian=True)
        norms = np.sqrt(np.maximum((arms @ inverse * arms).sum(axis=1), 0))
        return int(np.argmax(arms @ (inverse @ self.U) + width * norms))

    def update(self, phi, reward):
        self.V += np.outer(phi, phi)
        self.U += phi * reward


def regret_of(act, update, offers, theta, noises):
    total = 0.0
    for (shifted, plain), noise in zip(offers, noises, strict=True):
        arm = act(shifted)
        # The truth is said of the features before the shift, so that no digit of it is lost.
        means = plain @ theta
        update(shifted[arm], means[arm] + noise)
        total += means.max() - means[arm]
    return total


@pytest.mark.parametrize("clock", ["a column", "the time"])
def test_a_unix_time_among_the_features_costs_linucb_nothing(clock):
    """Regret within 10% of the same policy's whose estimator has 64 bits of mantissa, over 5,000 steps, three runs.

    `a column`: every arm has a number around 1.7e9 of its own. `the time`: a clock that all arms share runs on.
    """
    assert np.finfo(np.longdouble).eps < 1e-18
    steps, dim, n_arms, noise_std = 5_000, 4, 6, 0.5
    ours = theirs = plain_form = 0.0
    for run in range(3):
        rng = np.random.default_rng(run)
        theta = rng.normal(size=dim)
        offers = []
        for step in range(steps):
            plain = rng.normal(size=(n_arms, dim))
            if clock == "the time":
                plain[:, 0] = 60 * step / 86_400  # a decision a minute, in days
                shifted = plain.copy()
                shifted[:, 0] = 1.7e9 + 60 * step
            else:
                shifted = plain.copy()
                shifted[:, 0] += 1.7e9
                plain[:, 0] = shifted[:, 0] - 1.7e9
            offers.append((shifted, plain))
        noises = noise_std * rng.normal(size=steps)
        agent = contract.start(sb.LinUCB(radius="paper"), make_setting(dim, noise_std), None, None)
        everything = np.ones(n_arms, dtype=np.bool_)
        reference = Extended(dim, 1.0, noise_std)
        ours += regret_of(
            lambda arms, agent=agent, everything=everything: contract.act(agent, 0, arms, everything, None)[
                0
            ],
            lambda phi, reward, agent=agent: contract.update(agent, 0, 0, phi, reward, 0),
            offers,
            theta,
            noises,
        )
        theirs += regret_of(reference.act, reference.update, offers, theta, noises)
        other = Textbook(dim, 1.0, noise_std)
        plain_form += regret_of(other.act, other.update, offers, theta, noises)
    assert theirs > 0
    assert abs(ours / theirs - 1) < 0.1
    assert plain_form > 2 * theirs  # this is no problem on which anything would do
