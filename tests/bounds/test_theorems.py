"""The bounds of Theorems 1 and 2, against their statements and against themselves."""

import math

import pytest

import solid_bandits as sb
from solid_bandits.bounds.theorems import BAD_ROUNDS

TOY = sb.problems.toy()
NEEDED = 2 * TOY.B * TOY.L * sb.bounds.pure_exploration(TOY).upper


@pytest.mark.parametrize("multiplier", [0.0, 1.0, 50.0])
@pytest.mark.parametrize("rate", [1.0, 2.5])
def test_the_worst_case_is_the_last_display_of_its_proof(multiplier, rate):
    """Written once more from the page, symbol by symbol."""
    n, x, a, d, big_b, big_l, sigma, nu = 5e4, 2, 3, 3, math.sqrt(2), 1.0, 0.5, 1.0
    lam = multiplier
    beta, gamma = (
        sb.bounds.confidence_radius(n, delta, d, sigma, big_b, big_l, nu) for delta in (1 / n, 1 / n**2)
    )
    zeta = 4 * x * (math.sqrt(n * math.log(x * n**2)) + math.log(n) + 1)
    psi = 4 * big_l * x / math.sqrt(nu) * (math.sqrt(n * math.log(x * n**2)) + math.log(n) + 1)
    psi += 1.5 * math.pi**2 * big_l / math.sqrt(nu) + big_l / nu * math.sqrt(n * math.log(n))
    psi += math.sqrt(2 * d * n * math.log((nu + n * big_l**2 / d) / nu))
    d_max = 2 * big_b**2 * big_l**2 / sigma**2
    norm = big_l / math.sqrt(nu)
    b_lambda = d_max + 2 * big_b * big_l / sigma**2 * math.sqrt(gamma) * norm
    b_omega = big_b * big_l + math.sqrt(gamma) * norm + lam * b_lambda
    a_lambda = math.log(a) + (b_omega**2 + b_lambda**2) / 2 + lam**2 / 2
    expected = (
        2 * big_b * big_l
        + 1.5 * math.pi**2 * big_b * big_l * (6 + 2 * lam * big_b * big_l / sigma**2)
        + lam * beta / (2 * sigma**2)
        + 2 * math.exp(rate) * a_lambda / rate * math.sqrt(n)
        + 2 * big_b * big_l * math.sqrt(n * math.log(n))
        + (2 + 6 * lam * big_l * big_b / sigma**2) * math.sqrt(gamma) * psi
        + 2 * lam * big_b**2 * big_l**2 / sigma**2 * (math.sqrt(n * d * math.log(n * d)) + 1)
        + big_b * big_l * (5 + 2 * lam * big_b * big_l / sigma**2) * zeta
    )
    assert sb.bounds.worst_case_bound(TOY, n, multiplier, rate).value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("multiplier", [0.0, 3.0, 1000.0])
def test_constant_terms_are_within_those_of_the_statement(multiplier):
    terms = sb.bounds.worst_case_bound(TOY, 1e4, multiplier).terms
    size = TOY.B * TOY.L
    stated = 12 * size * math.pi**2 * (1 + multiplier * size / TOY.noise_std**2)
    assert terms["exploitation"] + terms["bad events"] <= stated


def test_terms_add_up_and_grow():
    for bound in (sb.bounds.regret_bound, lambda problem, n: sb.bounds.worst_case_bound(problem, n, 10.0)):
        values = []
        for n in (1e3, 1e6, 1e9):
            answer = bound(TOY, n)
            assert answer.value == pytest.approx(math.fsum(answer.terms.values()))
            assert all(term >= 0 for term in answer.terms.values())
            values.append(answer.value)
        assert values == sorted(values)


def test_the_leading_term_is_that_of_the_statement():
    v = sb.bounds.lower_bound(TOY).value
    radius = sb.bounds.confidence_radius(5e4, 1 / 5e4, 3, 0.5, math.sqrt(2))
    leading = sb.bounds.regret_bound(TOY, 5e4).terms["v* c / 2σ²"]
    assert leading == pytest.approx(v * radius / (2 * 0.25), rel=1e-5)


def test_the_worst_case_grows_as_the_root_of_n_but_for_logarithms():
    one, two = (sb.bounds.worst_case_bound(TOY, n, 0.0) for n in (1e60, 1e64))
    assert 2 < math.log10(two.value / one.value) < 2.2
    assert not two.vacuous


def test_the_number_of_phases_is_bounded_in_the_end():
    near, far, further = (sb.bounds.regret_bound(TOY, n) for n in (1e20, 1e60, 1e120))
    assert near.exploring == pytest.approx(1e20)
    assert far.exploring == further.exploring < 1e60
    # From there on the bound grows with log n, not with a power of n.
    assert further.value < 1.5 * far.value
    assert sb.bounds.regret_bound(TOY, 5e4).vacuous


def test_a_larger_first_z_leaves_no_infeasible_phase():
    z_min = sb.bounds.pure_exploration(TOY).upper
    small, large = (sb.bounds.regret_bound(TOY, 1e6, z0=z0).terms for z0 in (1.0, 2.01 * z_min))
    assert small["infeasible phases"] > 0
    assert large["infeasible phases"] == 0
    # Term I of the proof: 2BL (p_0 + p_1 + ...) over the phases with z_k < 2 z_min.
    phases = math.ceil(math.log(2 * z_min))
    expected = 2 * TOY.B * TOY.L * sum(math.exp(3 * k) for k in range(phases))
    assert small["infeasible phases"] == pytest.approx(expected)


def test_measured_regret_is_within_both_bounds():
    results = sb.simulate(TOY, {"theory": sb.Solid.theory(NEEDED)}, horizon=500, runs=4, jobs=1)
    regret = results.final()["mean"].item()
    assert regret <= sb.bounds.regret_bound(TOY, 500).value
    assert regret <= sb.bounds.worst_case_bound(TOY, 500, NEEDED).value
    assert regret <= sb.bounds.regret_bound(TOY, 500).most


def test_bad_events():
    # The lemma's four sums: 2π²/3 + π²/3 + π²/3 + π²/6.
    assert math.pi**2 * (4 + 2 + 2 + 1) / 6 == pytest.approx(BAD_ROUNDS)


def test_messages():
    with pytest.raises(ValueError, match="max_multiplier must be >= "):
        sb.bounds.regret_bound(TOY, 1e4, max_multiplier=0.5 * NEEDED)
    with pytest.raises(ValueError, match="n must be >= 3"):
        sb.bounds.worst_case_bound(TOY, 2, 1.0)
    with pytest.raises(ValueError, match="z0 must be >= 1"):
        sb.bounds.regret_bound(TOY, 1e4, z0=0.5)
