"""The ridge by evidence: against linear algebra from all rewards, exact in other units, and never a failure."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import naive
from exact import LeastSquares
from solid_bandits.estimation.arms import estimate_arms, make_arms_work
from solid_bandits.estimation.estimator import make_estimator, write_gram, write_theta
from solid_bandits.estimation.evidence import (
    LEAST_RATIO,
    Search,
    absorb,
    begin,
    begin_by_size,
    determined,
    make_evidence,
    refine,
    replace_ridge,
    spread_of,
)
from solid_bandits.estimation.noise import degrees_of_freedom, noise_deviation, noise_variance

SEARCH = Search(1.0, 1, 1, 4.0)


class Learnt:
    """The compiled estimator with its evidence, driven by hand."""

    def __init__(self, dim, noise_std=0.0, search=SEARCH):
        self.estimator, self.evidence = make_estimator(dim, 0.0), make_evidence(dim)
        self.noise_std, self.search = noise_std, search
        self.scratch = np.zeros(dim), np.zeros(dim)

    def meet(self, arms):
        everything = np.ones(len(arms), dtype=np.bool_)
        begin(self.search, self.evidence, self.estimator, np.array(arms), everything, self.scratch[0])

    def learn(self, phi, reward):
        if self.evidence.ridge.item() == 0:
            begin_by_size(self.search, self.evidence, self.estimator, float(phi @ phi), self.scratch[0])
        given = self.noise_std, phi, float(reward), 1.0
        absorb(self.search, self.evidence, self.estimator, *given, *self.scratch)

    @property
    def theta(self):
        theta = np.zeros(len(self.scratch[0]))
        write_theta(self.estimator, theta)
        return theta

    @property
    def gram(self):
        gram = np.zeros((len(self.scratch[0]),) * 2)
        write_gram(self.estimator, gram)
        return gram


cases = given(
    dim=st.integers(1, 6),
    count=st.integers(0, 70),
    seed=st.integers(0, 10**6),
    noise_std=st.sampled_from([0.0, 0.3]),
    rounds=st.integers(1, 3),
    caution=st.sampled_from([0.0, 4.0]),
)


def drawn(dim, count, seed):
    """Arms of a first decision, features and rewards."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, dim))
    return rng.normal(size=(3, dim)), features, features @ rng.normal(size=dim) + 0.3 * rng.normal(size=count)


@cases
def test_what_is_kept_is_least_squares_with_the_ridge_of_now(dim, count, seed, noise_std, rounds, caution):
    arms, features, rewards = drawn(dim, count, seed)
    learnt = Learnt(dim, noise_std, Search(1.0, rounds, 1, caution))
    learnt.meet(arms)
    for phi, reward in zip(features, rewards, strict=True):
        learnt.learn(phi, reward)
    nu = learnt.evidence.ridge.item()
    V = nu * np.eye(dim) + features.T @ features
    theta = np.linalg.solve(V, features.T @ rewards)
    assert learnt.gram == pytest.approx(V, rel=1e-9, abs=1e-9)
    assert learnt.theta == pytest.approx(theta, abs=1e-7)
    loss = ((rewards - features @ theta) ** 2).sum() + nu * theta @ theta
    assert learnt.estimator.residual.item() == pytest.approx(loss, rel=1e-7, abs=1e-9)
    assert learnt.estimator.log_det_ratio.item() == pytest.approx(np.linalg.slogdet(V / nu)[1], abs=1e-7)
    scatter = ((rewards - rewards.mean()) ** 2).sum() if count else 0.0
    assert learnt.estimator.reward_scatter.item() == pytest.approx(scatter, rel=1e-9, abs=1e-12)
    assert noise_variance(0.0, learnt.estimator) == pytest.approx(
        (loss + scatter / count) / (count + 1) if count else 1.0
    )
    assert degrees_of_freedom(0.0, learnt.estimator) == count + 1
    assert (noise_deviation(0.7, learnt.estimator), degrees_of_freedom(0.7, learnt.estimator)) == (0.7, 0)
    size = determined(learnt.evidence, learnt.estimator, np.zeros(dim))
    assert size == pytest.approx(dim - nu * np.trace(np.linalg.inv(V)), abs=1e-7)
    # Any other ridge, exactly: nothing of the one before is left.
    replace_ridge(learnt.evidence, learnt.estimator, 17.0, np.zeros(dim))
    assert learnt.gram == pytest.approx(17 * np.eye(dim) + features.T @ features, rel=1e-10, abs=1e-10)


@given(dim=st.integers(1, 5), seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_the_fixed_point_is_where_the_evidence_is_greatest(dim, seed):
    """Of σ known: the likelihood of the rewards, N(0, σ² (I + ΦΦᵀ/ν)), maximised by SciPy over ν."""
    rng = np.random.default_rng(seed)
    sigma, features = 0.5, rng.normal(size=(40, dim))
    rewards = features @ rng.normal(size=dim) + sigma * rng.normal(size=40)
    learnt = Learnt(dim, sigma, Search(1e6, 2000, 10**9, 0.0))  # the start far above
    learnt.meet(rng.normal(size=(3, dim)))
    for phi, reward in zip(features, rewards, strict=True):
        learnt.learn(phi, reward)
    refine(learnt.search, learnt.search.rounds, learnt.evidence, learnt.estimator, sigma, np.zeros(dim))

    def negative_log_evidence(log_ridge):
        covariance = sigma**2 * (np.eye(40) + features @ features.T / math.exp(log_ridge))
        return np.linalg.slogdet(covariance)[1] + rewards @ np.linalg.solve(covariance, rewards)

    best = minimize_scalar(negative_log_evidence, bounds=(-12, 12), method="bounded", options={"xatol": 1e-9})
    if best.x < 8:  # else the evidence has no maximum: it is greatest where θ is 0
        assert math.log(learnt.evidence.ridge.item()) == pytest.approx(best.x, abs=1e-3)


@given(dim=st.integers(1, 6), directions=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_with_caution_the_prior_is_wider_the_fewer_parameters_are_known(dim, directions, seed):
    """From one state, one round: ν with caution c over ν without it is γ / (γ + c), γ the number that is known."""
    rng = np.random.default_rng(seed)
    known = rng.normal(size=(directions, dim))
    ridges, sizes = [], []
    for caution in (0.0, 4.0):
        learnt = Learnt(dim, 0.5, Search(1e9, 1, 10**9, caution))
        learnt.meet(known if directions > 1 else np.vstack([known, np.zeros(dim)]))
        replace_ridge(learnt.evidence, learnt.estimator, 1.0, np.zeros(dim))
        for place in range(60):
            learnt.learn(known[place % directions], 1.0 + place % directions)
        sizes.append(determined(learnt.evidence, learnt.estimator, np.zeros(dim)))
        refine(learnt.search, learnt.search.rounds, learnt.evidence, learnt.estimator, 0.5, np.zeros(dim))
        ridges.append(learnt.evidence.ridge.item())
    assert sizes[0] <= min(dim, directions) + 1e-9
    assert ridges[1] / ridges[0] == pytest.approx(sizes[0] / (sizes[0] + 4.0), rel=1e-9)


@given(
    dim=st.integers(1, 5),
    seed=st.integers(0, 10**6),
    rewards_by=st.integers(-40, 40),
    features_by=st.integers(-40, 40),
    told=st.booleans(),
)
def test_other_units_have_the_same_digits(dim, seed, rewards_by, features_by, told):
    """Rewards times r and features times f, powers of two: ν times f², θ-hat times r/f, to the last bit."""
    arms, features, rewards = drawn(dim, 40, seed)
    r, f = 2.0**rewards_by, 2.0**features_by
    one, other = Learnt(dim, 0.3 * told), Learnt(dim, 0.3 * r * told)
    one.meet(arms)
    other.meet(f * arms)
    for phi, reward in zip(features, rewards, strict=True):
        one.learn(phi, reward)
        other.learn(f * phi, r * reward)
    assert other.evidence.ridge.item() == f * f * one.evidence.ridge.item()
    assert (other.theta == r / f * one.theta).all()
    assert noise_deviation(0.0, other.estimator) == r * noise_deviation(0.0, one.estimator)


@cases
def test_it_is_never_above_where_it_started(dim, count, seed, noise_std, rounds, caution):
    arms, features, rewards = drawn(dim, count, seed)
    learnt = Learnt(dim, noise_std, Search(0.5, rounds, 1, caution))
    learnt.meet(arms)
    start = 0.5 * ((arms - arms.mean(axis=0)) ** 2).sum(axis=1).max()
    assert learnt.evidence.start.item() == pytest.approx(start)
    for phi, reward in zip(features, rewards, strict=True):
        learnt.learn(phi, 1e-3 * reward)  # little to be seen of θ where σ is told: it would be large
        assert 0 < learnt.evidence.ridge.item() <= learnt.evidence.start.item()


AWKWARD = {
    "zeros": lambda rng, n, d: np.zeros((n, d)),
    "one direction": lambda rng, n, d: np.outer(rng.normal(size=n), rng.normal(size=d)),
    "copies": lambda rng, n, d: np.tile(rng.normal(size=d), (n, 1)),
    "columns that are one": lambda rng, n, d: np.tile(rng.normal(size=(n, 1)), (1, d)),
    "an offset of 1e5": lambda rng, n, d: rng.normal(size=(n, d)) + 1e5,
    "a Unix time": lambda rng, n, d: np.column_stack([1.7e9 + np.arange(n), rng.normal(size=(n, d - 1))]),
    "all sizes": lambda rng, n, d: rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-30, 30, size=(n, d)),
    "huge": lambda rng, n, d: rng.normal(size=(n, d)) * 1e29,
    "tiny": lambda rng, n, d: rng.normal(size=(n, d)) * 1e-29,
}


@pytest.mark.parametrize("noise_std", [0.0, 1.0, 1e-20, 1e20])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e-29, 1e29])
@pytest.mark.parametrize("name", AWKWARD)
def test_it_never_fails(name, size, noise_std):
    """Whatever comes: finite numbers, a positive ridge, weights that are at least the ridge but for rounding."""
    rng = np.random.default_rng(0)
    features = AWKWARD[name](rng, 70, 4)
    learnt = Learnt(4, noise_std, Search(1.0, 3, 1, 4.0))
    learnt.meet(features[:3])
    for phi in features:
        learnt.learn(phi, size * rng.normal())
        assert 0 < learnt.evidence.ridge.item() < math.inf
        assert np.isfinite(learnt.theta).all()
        assert (learnt.estimator.weights > 0).all()
        assert np.isfinite(learnt.estimator.triangle).all()
        assert np.isfinite([learnt.estimator.residual, learnt.estimator.log_det_ratio]).all()
    if learnt.evidence.start.item() > 0:
        assert learnt.evidence.ridge.item() >= LEAST_RATIO * learnt.evidence.start.item()


@pytest.mark.parametrize("ridge", [1e-6, 1.0, 1e4])
def test_no_digits_are_lost_where_columns_have_an_offset(ridge):
    """Every column + 1e5, the condition of V up to 1e17: θ-hat after 300 rewards and three ridges before it, against
    exact rational arithmetic; as good as a triangle that had the ridge from the beginning is asked to be.
    """
    rng = np.random.default_rng(1)
    features = rng.normal(size=(300, 3)) + 1e5
    rewards = features @ [0.5, -0.3, 0.1] + 0.1 * rng.normal(size=300)
    learnt, reference = Learnt(3, 0.1), LeastSquares(3, ridge)
    learnt.meet(features[:4])
    for phi, reward in zip(features, rewards, strict=True):
        learnt.learn(phi, reward)
        reference.observe(phi, reward)
    for other in (1e9, 1e-9, ridge):
        replace_ridge(learnt.evidence, learnt.estimator, other, np.zeros(3))
    arms = rng.normal(size=(20, 3)) + 1e5
    work = make_arms_work(3)
    assert estimate_arms(learnt.estimator, arms[:8], 0, work) == 8
    norms = reference.norms(arms[:8])
    assert (np.abs(work.means[:8] - reference.means(arms[:8])) < 1e-4 * norms).all()
    assert np.sqrt(work.sq_norms[:8]) == pytest.approx(norms, rel=1e-4)


def test_the_spread_is_that_of_the_arms_that_may_be_pulled():
    arms = np.array([[101.0, 0.0], [99.0, 0.0], [1e9, 7.0], [100.0, 3.0]])
    available = np.array([True, True, False, True])
    spread, size = spread_of(arms, available, np.zeros(2))
    assert spread == pytest.approx(4.0)
    assert size == pytest.approx(101.0**2)


def test_arms_that_do_not_differ_set_no_start():
    """One arm, or copies of one: the ridge is by their size until arms that differ come, rewards or not before."""
    phi = np.array([3.0, 4.0])
    learnt = Learnt(2)
    learnt.meet([phi])
    assert (learnt.evidence.ridge.item(), learnt.evidence.start.item()) == (25.0, 0.0)
    learnt.learn(phi, 1.0)
    learnt.meet([phi, phi, phi])
    assert learnt.evidence.start.item() == 0.0
    learnt.meet([phi, phi + 2.0])
    assert learnt.evidence.start.item() == learnt.evidence.ridge.item() == 2.0
    assert learnt.gram == pytest.approx(2 * np.eye(2) + np.outer(phi, phi))
    learnt.meet([phi, phi + 100.0])
    assert learnt.evidence.start.item() == 2.0


def test_the_reference_of_policies_is_this_estimator():
    """`naive.Evidence`, which policies are compared with, follows the ridge to rounding."""
    rng = np.random.default_rng(4)
    learnt, reference = Learnt(3), naive.Evidence(3, 0.0)
    learnt.search = naive.SEARCH
    arms = rng.normal(size=(5, 3))
    learnt.meet(arms)
    reference.meet(arms)
    for _ in range(200):
        phi = rng.normal(size=3)
        reward = phi @ [1.0, 2.0, -0.5] + rng.normal()
        learnt.learn(phi, reward)
        reference.observe(phi, reward)
        assert learnt.evidence.ridge.item() == pytest.approx(reference.ridge, rel=1e-7)
