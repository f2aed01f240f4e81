"""Verdicts follow from tables: known truths, intervals against scipy.stats, and the rate of false alarms."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from made import FEW_STEPS as STEPS
from made import claim_of, from_curves
from solid_bandits.paper.judging import judge, together
from solid_bandits.paper.outcome import Answer, Comparison
from solid_bandits.paper.rules import RULES
from solid_bandits.simulation.results import Results
from solid_bandits.statistics.estimate import Estimate

HORIZON = 1000
CONFIRMED, REFUTED, UNDECIDED = Answer.CONFIRMED, Answer.REFUTED, Answer.UNDECIDED
NOT_TESTABLE = Answer.NOT_TESTABLE


def from_finals(**finals) -> Results:
    """Policy -> final regrets, one per run; linear on the way."""
    return from_curves({policy: np.outer(values, STEPS / HORIZON) for policy, values in finals.items()})


def verdict_of(claim, *results, **parts):
    return judge(claim, parts or {f"part {i}": one for i, one in enumerate(results, 1)})


def ends(comparison):
    return comparison.estimate.low, comparison.estimate.high


def noisy(mean, runs=30, spread=1.0, seed=0):
    """Values with exactly this mean."""
    values = np.random.default_rng(seed).normal(size=runs)
    return mean + spread * (values - values.mean())


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-12)


def diagnostics_of(statistics, column="statistic", kind=float) -> pl.DataFrame:
    rows = [
        {"policy": policy, "run": run, "step": 1000, column: value}
        for policy, values in statistics.items()
        for run, value in enumerate(values)
    ]
    return pl.DataFrame(rows, schema={"policy": str, "run": int, "step": int, column: kind})


def test_information_is_read_from_diagnostics_and_may_be_missing():
    curves = {policy: np.ones((3, len(STEPS))) for policy in "ABCD"}
    diagnostics = diagnostics_of({"A": [5.0, 6.0, 8.0], "B": [1.0, 2.0, 3.0], "C": [1.0, None, 2.0]})
    results = from_curves(curves, diagnostics=diagnostics)
    one = verdict_of(claim_of("more", metric="information", against=("B",)), results)
    expected = stats.ttest_rel([5.0, 6.0, 8.0], [1.0, 2.0, 3.0]).confidence_interval(0.95)
    assert one.answer is CONFIRMED
    assert ends(one.comparisons[0]) == close(tuple(expected))

    for lacking in ("C", "D"):  # a null, and no rows
        verdict = verdict_of(claim_of("more", metric="information", against=(lacking, "B")), results)
        missing, there = verdict.comparisons
        assert missing.estimate == (None, None, None)
        assert missing.answer is UNDECIDED
        assert there.answer is CONFIRMED
        assert verdict.answer is UNDECIDED

    nowhere = verdict_of(
        claim_of("more", metric="information", against=("B",)), replace(results, diagnostics=None)
    )
    assert nowhere.answer is UNDECIDED
    assert nowhere.comparisons[0].estimate.value is None


BY_METRIC = [rule for rule, entry in RULES.items() if entry.uses_metric]
OTHERS = {0: (), 1: ("B",), 2: ("B", "C")}


@pytest.mark.parametrize("rule", BY_METRIC)
@pytest.mark.parametrize("hole", [math.nan, math.inf])
def test_no_nan_travels(rule, hole):
    values = {"A": np.array([1.0, hole, 2.0]), "B": np.arange(3.0), "C": np.arange(3.0) + 9}
    results = from_finals(**values)
    (comparison,) = verdict_of(
        claim_of(
            rule, against=OTHERS[RULES[rule].against], parts=("x", "y") if RULES[rule].across else ("x",)
        ),
        x=results,
        y=results,
    ).comparisons
    assert comparison.estimate == (None, None, None)
    assert comparison.answer is UNDECIDED


@pytest.mark.parametrize("rule", BY_METRIC)
def test_one_run_gives_a_number_but_no_verdict(rule):
    results, others = from_finals(A=[5.0], B=[1.0], C=[9.0]), from_finals(A=[6.0], B=[3.0], C=[9.0])
    verdict = verdict_of(
        claim_of(
            rule, against=OTHERS[RULES[rule].against], parts=("x", "y") if RULES[rule].across else ("x",)
        ),
        x=results,
        y=others,
    )
    (comparison,) = verdict.comparisons
    assert comparison.estimate.value is not None
    assert ends(comparison) == (None, None)
    assert verdict.answer is UNDECIDED


# --- rules within a part ------------------------------------------------------------------------------------


def test_less_and_more_are_paired_students_intervals():
    rng = np.random.default_rng(1)
    common = rng.normal(scale=100, size=12)  # unpaired, nothing could be told apart
    a, b = common + rng.normal(size=12), common + 3 + rng.normal(size=12)
    results = from_finals(A=a, B=b)
    expected = stats.ttest_rel(b, a).confidence_interval(0.95)
    less = verdict_of(claim_of("less", against=("B",)), results)
    (comparison,) = less.comparisons
    assert comparison.what == "regret of B - regret of A, part 1"
    assert comparison.estimate.value == close((b - a).mean())
    assert ends(comparison) == close((expected.low, expected.high))
    assert less.answer is comparison.answer is CONFIRMED

    more = verdict_of(claim_of("more", against=("B",)), results)
    assert ends(more.comparisons[0]) == close((-expected.high, -expected.low))
    assert more.answer is REFUTED

    even = verdict_of(claim_of("less", against=("B",)), from_finals(A=common, B=common + noisy(0, 12)))
    low, high = ends(even.comparisons[0])
    assert low < 0 < high
    assert even.answer is UNDECIDED


def test_bonferroni_over_policies_parts_and_none_for_those_beside():
    draws = np.random.default_rng(2).normal(size=(2, 4, 10))
    parts = {f"p{i}": from_finals(A=d[0], B=d[1], C=d[2], D=d[3]) for i, d in enumerate(draws)}
    verdict = judge(claim_of("less", policies=("A", "B"), against=("C",), beside=("D",)), parts)
    assert [c.counted for c in verdict.comparisons] == [True, False, True, False] * 2
    pairs = [(i, policy, other) for i in (0, 1) for policy in (0, 1) for other in (2, 3)]
    for (i, policy, other), comparison in zip(pairs, verdict.comparisons, strict=True):
        level = 1 - 0.05 / 4 if other == 2 else 0.95
        test = stats.ttest_rel(draws[i, other], draws[i, policy])
        assert ends(comparison) == close(tuple(test.confidence_interval(level)))
    assert "0.9875" in verdict.rule
    assert "0.95 each for those beside" in verdict.rule


def test_beside_does_not_count():
    results = from_finals(A=noisy(1, seed=1), B=noisy(5, seed=2), C=noisy(-5, seed=3))
    verdict = verdict_of(claim_of("less", against=("B",), beside=("C",)), results)
    assert [c.answer for c in verdict.comparisons] == [CONFIRMED, REFUTED]
    assert verdict.answer is CONFIRMED
    both = verdict_of(claim_of("less", against=("B", "C")), results)
    assert both.answer is REFUTED


@pytest.mark.parametrize("values", [noisy(0.3), noisy(0.3, runs=1), np.zeros(4)])
@pytest.mark.parametrize("rule", [rule for rule in BY_METRIC if RULES[rule].against or RULES[rule].across])
def test_what_is_the_same_in_every_run_is_not_testable(rule, values):
    results = from_finals(A=values, B=values, C=values + 1)
    claim = claim_of(rule, against=OTHERS[RULES[rule].against], parts=("x", "y"))
    verdict = verdict_of(claim, x=results, y=results)
    if rule in ("factor below", "in proportion") and not values.any():  # no regret at all: 0 / 0
        assert verdict.answer is UNDECIDED
        return
    assert verdict.answer is NOT_TESTABLE
    for comparison in verdict.comparisons:
        assert comparison.what.endswith("(the same in every run)")
        assert comparison.estimate.value == comparison.estimate.low == comparison.estimate.high


def test_one_comparison_that_differs_can_still_refute():
    values = noisy(1.0)
    results = from_finals(A=values, B=values, C=values + 1, D=values - 1)
    for others, answer in ((("B", "C"), NOT_TESTABLE), (("B", "D"), REFUTED), (("C",), CONFIRMED)):
        assert verdict_of(claim_of("less", against=others), results).answer is answer


def test_rounding_is_no_difference():
    values = np.array([1.0, 2.0, 3e6])
    results = from_finals(A=values, B=values * (1 + 1e-12), C=values * 1.001)
    (comparison,) = verdict_of(claim_of("less", against=("B",)), results).comparisons
    assert comparison.estimate == (0, 0, 0)
    assert comparison.answer is NOT_TESTABLE
    assert verdict_of(claim_of("less", against=("C",)), results).comparisons[0].estimate.value > 0


def test_without_variance_the_interval_is_a_point():
    results = from_finals(A=[1.0, 2.0, 3.0], B=[3.0, 4.0, 5.0])
    (comparison,) = verdict_of(claim_of("less", against=("B",)), results).comparisons
    assert comparison.estimate == (2, 2, 2)
    assert comparison.answer is CONFIRMED
    flat = {"x": from_finals(A=[4.0] * 3), "y": from_finals(A=[5.0] * 2)}
    (comparison,) = judge(claim_of("growing"), flat).comparisons
    assert comparison.estimate == (1, 1, 1)
    assert comparison.answer is CONFIRMED


def test_the_ratio_s_interval_ends_where_a_paired_test_begins_to_reject():
    rng = np.random.default_rng(3)
    common = rng.normal(size=15)
    a, b = 12 + 2 * common + rng.normal(size=15), 10 + 2 * common + rng.normal(size=15)
    results = from_finals(A=a, B=b, C=b)
    first, second = verdict_of(claim_of("similar", against=("B", "C")), results).comparisons
    assert first.estimate.value == close(a.mean() / b.mean())
    for end in ends(first):
        assert stats.ttest_1samp(a - end * b, 0).pvalue == pytest.approx(0.05 / 2, rel=1e-6)
    assert first.estimate.low < first.estimate.value < first.estimate.high
    assert ends(second) == ends(first)


@pytest.mark.parametrize(
    ("mean", "spread", "answer"),
    [
        (105, 1, CONFIRMED),
        (95, 1, CONFIRMED),
        (130, 1, REFUTED),
        (70, 1, REFUTED),
        (119, 10, UNDECIDED),
        (121, 10, UNDECIDED),
        (100, 200, UNDECIDED),
    ],
)
def test_similar_and_different(mean, spread, answer):
    results = from_finals(A=noisy(mean, spread=spread, seed=4), B=noisy(100, seed=5))
    assert verdict_of(claim_of("similar", against=("B",)), results).answer is answer
    opposite = {CONFIRMED: REFUTED, REFUTED: CONFIRMED, UNDECIDED: UNDECIDED}[answer]
    assert verdict_of(claim_of("different", against=("B",)), results).answer is opposite
    wide = verdict_of(claim_of("similar", against=("B",), margin=5.0), results).answer
    assert wide is CONFIRMED


def test_a_ratio_to_nearly_nothing_is_undecided():
    around_zero = from_finals(A=noisy(1), B=noisy(0.01, seed=6))
    (comparison,) = verdict_of(claim_of("similar", against=("B",)), around_zero).comparisons
    assert comparison.estimate.value is not None
    assert ends(comparison) == (None, None)
    assert comparison.answer is UNDECIDED
    (comparison,) = verdict_of(
        claim_of("similar", against=("B",)), from_finals(A=noisy(1), B=np.zeros(30))
    ).comparisons
    assert comparison.estimate.value is None
    assert comparison.answer is UNDECIDED
    nothing = verdict_of(claim_of("similar", against=("B",)), from_finals(A=np.zeros(30), B=noisy(9)))
    assert ends(nothing.comparisons[0]) == (0, 0)
    assert nothing.answer is REFUTED


@pytest.mark.parametrize(
    ("a", "b", "c", "answer"),
    [
        (5, 1, 9, CONFIRMED),
        (5, 9, 1, CONFIRMED),
        (12, 9, 1, REFUTED),
        (-3, 1, 9, REFUTED),
        (1.1, 1, 9, UNDECIDED),
        (5, 5.1, 9, UNDECIDED),
    ],
)
def test_between(a, b, c, answer):
    results = from_finals(A=noisy(a, seed=7), B=noisy(b, seed=8), C=noisy(c, seed=9))
    verdict = verdict_of(claim_of("between", against=("B", "C")), results)
    (comparison,) = verdict.comparisons
    assert verdict.answer is answer
    nearest = min(abs(a - b), abs(a - c))
    assert comparison.estimate.value == close(nearest if min(b, c) <= a <= max(b, c) else -nearest)


def test_between_holds_in_either_order():
    # Surely below B and, as it seems, below C; but C is so uncertain that it may be the lower of the two.
    results = from_finals(A=noisy(5, seed=7), B=noisy(9, seed=8), C=noisy(10, spread=100, seed=9))
    assert verdict_of(claim_of("less", against=("B",)), results).answer is CONFIRMED
    assert verdict_of(claim_of("between", against=("B", "C")), results).answer is UNDECIDED


def test_between_covers_all_differences_that_its_two_intervals_allow():
    rng = np.random.default_rng(10)
    for _ in range(30):
        a, b, c = rng.normal(rng.normal(scale=0.7, size=3)[:, None], 1, size=(3, 8))
        (comparison,) = verdict_of(
            claim_of("between", against=("B", "C")), from_finals(A=a, B=b, C=c)
        ).comparisons
        boxes = [stats.ttest_rel(a, other).confidence_interval(0.975) for other in (b, c)]
        # The plain definition at each point of a grid over the box: policy at 0, the others at -u and -v.
        u, v = np.meshgrid(*(np.linspace(box.low, box.high, 41) for box in boxes))
        between = (np.minimum(-u, -v) < 0) & (np.maximum(-u, -v) > 0)
        distance = np.where(between, 1, -1) * np.minimum(np.abs(u), np.abs(v))
        assert comparison.estimate.low <= distance.min() + 1e-9
        assert comparison.estimate.high >= distance.max() - 1e-9
        assert ends(comparison) == pytest.approx((distance.min(), distance.max()), abs=0.15)


def test_below():
    explored = {"A": np.tile(np.array([1, 5, 20, 30, 60, 90, 100, 120]), (3, 1))}
    explored["A"][:, -1] += [0, 30, 60]
    results = from_curves({"A": np.ones((3, 8))}, explored=explored)
    shares = np.array([0.12, 0.15, 0.18])
    for margin, answer in ((0.5, CONFIRMED), (0.15, UNDECIDED), (0.01, REFUTED)):
        verdict = verdict_of(claim_of("below", metric="exploring share", margin=margin), results)
        assert verdict.answer is answer
        bounded = verdict_of(claim_of("at most", metric="exploring share", margin=margin), results)
        assert bounded.answer is (CONFIRMED if answer is CONFIRMED else UNDECIDED)
        expected = stats.ttest_1samp(shares, 0).confidence_interval(0.95)
        assert ends(verdict.comparisons[0]) == close(tuple(expected))


# --- rules across parts -------------------------------------------------------------------------------------


def test_growth_is_welch_s_interval_from_the_first_to_the_last_part():
    first, last = noisy(10, runs=8, seed=11), noisy(14, runs=20, spread=3, seed=12)
    parts = {"one": from_finals(A=first), "middle": from_finals(A=noisy(99)), "two": from_finals(A=last)}
    expected = stats.ttest_ind(last, first, equal_var=False).confidence_interval(0.95)
    allowed = stats.ttest_ind(last, 1.2 * first, equal_var=False).confidence_interval(0.95)
    for rule, estimate, interval, answer in (
        ("growing", 4, expected, CONFIRMED),
        ("not growing", 2, allowed, REFUTED),
    ):
        verdict = judge(claim_of(rule), parts)
        (comparison,) = verdict.comparisons
        assert comparison.estimate.value == close(estimate)
        assert ends(comparison) == close(tuple(interval))
        assert verdict.answer is answer
    # The claim's order of parts, not that of the experiment.
    backwards = judge(claim_of("growing", parts=("two", "one")), parts)
    assert ends(backwards.comparisons[0]) == close((-expected.high, -expected.low))
    assert backwards.answer is REFUTED
    assert judge(claim_of("not growing", parts=("two", "one")), parts).answer is CONFIRMED


@pytest.mark.parametrize(
    ("last", "spread", "growing", "not_growing"),
    [
        (100, 1, UNDECIDED, CONFIRMED),
        (100, 200, UNDECIDED, UNDECIDED),
        (110, 1, CONFIRMED, CONFIRMED),  # surely more, and surely by less than the margin
        (130, 1, CONFIRMED, REFUTED),
        (80, 1, REFUTED, CONFIRMED),
        (119, 200, UNDECIDED, UNDECIDED),
    ],
)
def test_growing_and_not_growing(last, spread, growing, not_growing):
    parts = {
        "one": from_finals(A=noisy(100, seed=13)),
        "two": from_finals(A=noisy(last, 30, spread, seed=14)),
    }
    assert judge(claim_of("growing"), parts).answer is growing
    assert judge(claim_of("not growing"), parts).answer is not_growing


def test_growth_of_several_shares_the_error_and_shows_those_beside():
    rng = np.random.default_rng(15)
    draws = rng.normal(10, 1, size=(2, 3, 9))
    parts = {str(i): from_finals(A=d[0], B=d[1], C=d[2]) for i, d in enumerate(draws)}
    verdict = judge(claim_of("growing", policies=("A", "B"), beside=("C",)), parts)
    assert [c.counted for c in verdict.comparisons] == [True, True, False]
    for i, (comparison, level) in enumerate(zip(verdict.comparisons, (0.975, 0.975, 0.95), strict=True)):
        test = stats.ttest_ind(draws[1, i], draws[0, i], equal_var=False)
        assert ends(comparison) == close(tuple(test.confidence_interval(level)))


def test_grows_more_by_the_delta_method():
    rng = np.random.default_rng(16)
    runs = (400, 300)
    parts, influences, logs = {}, [], []
    for i, (count, a_mean, b_mean) in enumerate(zip(runs, (10, 30), (20, 25), strict=True)):
        common = rng.normal(size=count)
        a, b = a_mean + common + rng.normal(size=count), b_mean + common + rng.normal(size=count)
        parts[str(i)] = from_finals(A=a, B=b)
        cov = np.cov(a, b)
        gradient = np.array([1 / a.mean(), -1 / b.mean()])
        influences.append(gradient @ cov @ gradient / count)
        logs.append(math.log(a.mean() / b.mean()))
    verdict = judge(claim_of("grows more", against=("B",)), parts)
    (comparison,) = verdict.comparisons
    assert comparison.estimate.value == close(math.exp(logs[1] - logs[0]))
    # By now Welch's quantile is the normal one.
    half = stats.norm.ppf(0.975) * math.sqrt(sum(influences))
    assert np.log(ends(comparison)) == pytest.approx(
        (logs[1] - logs[0] - half, logs[1] - logs[0] + half), abs=half * 0.01
    )
    assert verdict.answer is CONFIRMED
    assert judge(claim_of("grows more", policies=("B",), against=("A",)), parts).answer is REFUTED


def test_grows_more_is_undecided_where_both_grow_alike_or_nothing_grows():
    alike = {
        "x": from_finals(A=noisy(10, seed=17), B=noisy(20, seed=18)),
        "y": from_finals(A=noisy(15, seed=19), B=noisy(30, seed=20)),
    }
    assert judge(claim_of("grows more", against=("B",)), alike).answer is UNDECIDED
    (comparison,) = judge(
        claim_of("grows more", against=("B",)), alike | {"y": from_finals(A=np.zeros(30), B=noisy(5))}
    ).comparisons
    assert comparison.estimate.value is None
    assert comparison.answer is UNDECIDED


def test_an_interval_too_wide_for_a_float_stays_finite():
    # Two runs and an error shared by a hundred: Student's quantile is 1273, and e^1273 no float.
    others = [f"B{i}" for i in range(100)]
    flat = {other: [2.0, 2.0] for other in others}
    parts = {"x": from_finals(A=[0.0, 4.0], **flat), "y": from_finals(A=[2.0, 2.0], **flat)}
    verdict = judge(claim_of("grows more", against=tuple(others)), parts)
    for comparison in verdict.comparisons:
        assert comparison.estimate.value == 1
        assert comparison.estimate.high > 1e300
        assert np.isfinite([comparison.estimate.low, comparison.estimate.high]).all()
    assert verdict.answer is UNDECIDED


def test_gap_grows_on_paired_differences():
    rng = np.random.default_rng(21)
    gaps, parts = [], {}
    for i, (count, gap) in enumerate(((25, 5), (10, 9))):
        common = rng.normal(scale=100, size=count)
        b, a = common + gap + rng.normal(size=count), common
        gaps.append(b - a)
        parts[str(i)] = from_finals(A=a, B=b)
    verdict = judge(claim_of("gap grows", against=("B",)), parts)
    test = stats.ttest_ind(gaps[1], gaps[0], equal_var=False)
    assert verdict.comparisons[0].estimate.value == close(gaps[1].mean() - gaps[0].mean())
    assert ends(verdict.comparisons[0]) == pytest.approx(tuple(test.confidence_interval(0.95)), abs=1e-9)
    assert verdict.answer is CONFIRMED
    assert judge(claim_of("gap grows", against=("B",), parts=("1", "0")), parts).answer is REFUTED
    same = judge(claim_of("gap grows", against=("B",)), {"0": parts["0"], "again": parts["0"]})
    assert same.answer is NOT_TESTABLE


@pytest.mark.parametrize(
    ("last", "spread", "answer"),
    [(30, 1, CONFIRMED), (50, 1, REFUTED), (39, 20, UNDECIDED), (5, 1, CONFIRMED)],
)
def test_the_factor_lies_below_its_limit(last, spread, answer):
    first, last = noisy(10, 50, seed=26), noisy(last, 50, spread, seed=27)
    claim = claim_of("factor below", margin=4.0)
    verdict = judge(claim, {"one": from_finals(A=first), "two": from_finals(A=last)})
    (comparison,) = verdict.comparisons
    assert verdict.answer is answer
    assert comparison.estimate.value == close(last.mean() / first.mean())
    half = stats.norm.ppf(0.975) * math.hypot(*(stats.sem(one) / one.mean() for one in (first, last)))
    log = math.log(comparison.estimate.value)
    assert np.log(ends(comparison)) == pytest.approx((log - half, log + half), abs=0.05 * half)


@pytest.mark.parametrize(
    ("leads", "answer"),
    [
        ((5, 5, 5), CONFIRMED),
        ((5, 5, -5), CONFIRMED),
        ((5, 0.01, 0.01), UNDECIDED),
        ((5, -5, -5), REFUTED),
        ((0, 0, 5), NOT_TESTABLE),
    ],
)
def test_often_is_more_than_half_of_the_parts(leads, answer):
    parts = {}
    for place, lead in enumerate(leads):
        a = noisy(10, seed=place)
        b = a + (noisy(lead, seed=place + 50) if lead else 0)
        parts[str(place)] = from_finals(A=a, B=b, C=a + 9, D=a - 9)
    verdict = judge(claim_of("often", against=("B", "C"), beside=("D",)), parts)
    counted, beside = verdict.comparisons
    assert verdict.answer is counted.answer is answer
    assert counted.estimate.value == leads.count(5) / len(leads)
    assert not beside.counted
    assert beside.answer is REFUTED


def test_slowing_is_a_slope_that_falls():
    curves = {"log": 3 * np.log(STEPS), "less": 3 * np.sqrt(np.log(STEPS)), "more": np.sqrt(STEPS)}
    noise = 1 + 0.01 * np.random.default_rng(28).normal(size=(20, 1))
    results = from_curves({policy: noise * curve for policy, curve in curves.items()})
    answers = {
        policy: verdict_of(claim_of("slowing", policies=(policy,)), results).answer for policy in curves
    }
    assert answers == {"log": NOT_TESTABLE, "less": CONFIRMED, "more": REFUTED}


def test_the_distance_to_uniform_is_read_from_omega():
    omegas = {"A": [[1.0, 0, 0, 0, 0, 1.0]] * 2, "B": [[1 / 3] * 6, [0.5, 0.5, 0, 1 / 3, 1 / 3, 1 / 3]]}
    diagnostics = diagnostics_of(omegas, "omega", pl.List(pl.Float64))
    results = from_curves({policy: np.ones((2, len(STEPS))) for policy in "AB"}, diagnostics=diagnostics)
    (comparison,) = verdict_of(
        claim_of("more", metric="distance to uniform", against=("B",)), results
    ).comparisons
    assert comparison.estimate.value == close(2 / 3 - (0 + 1 / 6) / 2)
    without = replace(results, diagnostics=None)
    assert verdict_of(claim_of("below", metric="distance to uniform"), without).answer is UNDECIDED


# --- linear runs, the bound, time ---------------------------------------------------------------------------


FINE = np.unique(np.linspace(1, 20_000, 201).round().astype(int))
LINEAR, LOG, ROOT = 0.1 * FINE, 10 * np.log(FINE), np.sqrt(FINE)
NONE = np.zeros(len(FINE))
LATE_PULL = np.where(FINE > 15_500, 0.1, 0.0)  # all of its regret came late, but it is one pull
LEARNED = np.minimum(LINEAR, 0.1 * 15_000)


def linear_verdict(*curves):
    return verdict_of(claim_of("linear runs"), from_curves({"A": np.array(curves)}, FINE))


@pytest.mark.parametrize("curve", [LOG, ROOT, NONE, LATE_PULL, LEARNED])
def test_runs_that_are_not_linear(curve):
    verdict = linear_verdict(*[curve] * 100)
    assert verdict.comparisons[0].estimate.value == 0
    assert verdict.answer is REFUTED


def test_one_linear_run_is_enough():
    verdict = linear_verdict(*[LOG] * 98, LINEAR, LINEAR + LOG)
    (comparison,) = verdict.comparisons
    expected = stats.binomtest(2, 100).proportion_ci(0.95, method="exact")
    assert comparison.estimate.value == close(0.02)
    assert ends(comparison) == close((expected.low, expected.high))
    assert verdict.answer is CONFIRMED
    assert linear_verdict(LINEAR, LINEAR).comparisons[0].estimate.high == 1


def test_few_runs_without_a_linear_one_are_undecided():
    # 0 of n: the upper end is 1 - 0.025^(1/n), below 0.05 from 72 runs on.
    assert linear_verdict(*[LOG] * 71).answer is UNDECIDED
    assert linear_verdict(*[LOG] * 72).answer is REFUTED
    assert linear_verdict(LOG).comparisons[0].estimate.high == close(0.975)


def test_linear_runs_needs_checkpoints_in_the_last_quarters():
    sparse = from_curves({"A": np.ones((5, 2))}, np.array([1, 1000]))
    verdict = verdict_of(claim_of("linear runs"), sparse)
    assert verdict.answer is UNDECIDED
    assert verdict.comparisons[0].estimate.value is None


@pytest.mark.parametrize(
    ("bound", "estimate", "answer"),
    [
        ({"value": 2.5, "allocation": [[0, 0, 0], [6.25, 0, 0.001]]}, 6.25 / 6.251, CONFIRMED),
        ({"value": 2.5, "allocation": [[0, 0.1, 0], [6.25, 0, 0]]}, 6.25 / 6.35, REFUTED),
        ({"value": 0.0, "allocation": [[0, 0, 0], [0, 0, 0]]}, None, UNDECIDED),
        ({"value": 2.5}, None, UNDECIDED),
        ({"reason": "the features do not span"}, None, UNDECIDED),
        (None, None, UNDECIDED),
    ],
)
def test_allocation(bound, estimate, answer):
    manifest = {} if bound is None else {"lower_bound": bound}
    results = from_curves({"A": np.ones((2, 8))}, **manifest)
    verdict = verdict_of(claim_of("allocation", policies=(), arm=(1, 0)), results)
    (comparison,) = verdict.comparisons
    assert verdict.answer is answer
    assert comparison.estimate.value == (None if estimate is None else close(estimate))
    assert "a₁ in x₂" in comparison.what


def test_allocation_of_an_arm_that_is_not_there():
    results = from_curves({"A": np.ones((2, 8))}, lower_bound={"allocation": [[0, 1], [2, 0]]})
    with pytest.raises(
        ValueError, match=r"arm must be .* 2 contexts and 2 arms in part 'part 1', got \(1, 2\)"
    ):
        verdict_of(claim_of("allocation", policies=(), arm=(1, 2)), results)


@pytest.mark.parametrize(
    ("seconds", "answer"),
    [
        ({"A": 100.0, "B": 1.0}, CONFIRMED),
        ({"A": 5.0, "B": 1.0}, UNDECIDED),
        ({"A": 0.5, "B": 1.0}, REFUTED),
        ({"A": 0.5}, UNDECIDED),
        (None, UNDECIDED),
    ],
)
def test_slower(seconds, answer):
    results = from_curves({"A": np.ones((2, 8)), "B": np.ones((2, 8))}, seconds=seconds)
    verdict = verdict_of(claim_of("slower", against=("B",), margin=9.0), results)
    assert verdict.answer is answer


# --- adding up, words ---------------------------------------------------------------------------------------


def test_together():
    def comparisons(*answers, beside=()):
        given = [(answer, True) for answer in answers] + [(answer, False) for answer in beside]
        return [Comparison("", Estimate(1.0, 0.0, 2.0), answer, counted) for answer, counted in given]

    assert together(comparisons(CONFIRMED, CONFIRMED)) is CONFIRMED
    assert together(comparisons(CONFIRMED, UNDECIDED)) is UNDECIDED
    assert together(comparisons(UNDECIDED, REFUTED, CONFIRMED)) is REFUTED
    assert together(comparisons(CONFIRMED, UNDECIDED, NOT_TESTABLE)) is NOT_TESTABLE
    assert together(comparisons(REFUTED, NOT_TESTABLE)) is REFUTED
    assert together(comparisons(CONFIRMED, beside=(REFUTED, UNDECIDED))) is CONFIRMED
    assert together(comparisons(beside=(CONFIRMED,))) is UNDECIDED


def test_words_of_the_rule_hold_metric_margin_and_level():
    results = from_finals(A=noisy(1), B=noisy(1, seed=2))
    verdict = verdict_of(claim_of("similar", against=("B",), metric="slope", margin=0.3, at=0.5), results)
    assert verdict.rule.startswith(RULES["similar"].words)
    assert verdict.rule.endswith(
        "Here: growth of regret per unit of log t over the last decade before 0.5 of the horizon; margin "
        "0.3; level 0.95 for each interval."
    )
    assert verdict.comparisons[0].what == "slope at 0.5 n of A / slope at 0.5 n of B, part 1"


@pytest.mark.parametrize(
    ("lead", "answer"), [(1.0, CONFIRMED), (-1.0, REFUTED), (0.0, UNDECIDED), (None, NOT_TESTABLE)]
)
@pytest.mark.parametrize(("least", "too_short"), [(0, False), (HORIZON, False), (HORIZON + 1, True)])
def test_below_its_least_horizon_a_claim_is_undecided_whatever_the_numbers(lead, answer, least, too_short):
    first = noisy(5.0)
    same = from_finals(A=first, B=first if lead is None else first + noisy(lead, seed=1), C=first + 1)
    claim = claim_of("less", against=("B",), beside=("C",), least_horizon=least)
    verdict = verdict_of(claim, same)
    assert verdict.too_short is too_short
    assert verdict.answer is (UNDECIDED if too_short else answer)
    assert verdict.words == (f"{UNDECIDED} at this horizon" if too_short else str(answer))
    assert [one.answer for one in verdict.comparisons] == (
        [UNDECIDED] * 2 if too_short else [answer, CONFIRMED]
    )
    # The numbers are there all the same.
    without = verdict_of(replace(claim, least_horizon=0), same)
    assert [one.estimate for one in verdict.comparisons] == [one.estimate for one in without.comparisons]
    said = f"; a horizon of {least:,} steps or more, undecided below it."
    assert verdict.rule.endswith(said) == (least > 0)


def test_one_part_that_is_too_short_is_enough():
    rng = np.random.default_rng(0)
    short = from_finals(A=rng.normal(size=30), B=3 + rng.normal(size=30))
    long = from_curves(
        {policy: np.outer(runs, STEPS / HORIZON) for policy, runs in {"A": noisy(0), "B": noisy(3)}.items()},
        steps=10 * STEPS,
    )
    claim = claim_of("less", against=("B",), least_horizon=10 * HORIZON)
    assert verdict_of(claim, short=short, long=long).too_short
    assert verdict_of(replace(claim, parts=("long",)), short=short, long=long).answer is CONFIRMED


def test_unequal_runs_are_refused():
    a, b = from_finals(A=[1.0, 2.0], B=[1.0, 2.0]), from_finals(A=[1.0, 2.0, 3.0])
    mixed = Results(pl.concat([a.table.filter(policy="B"), b.table]), a.manifest)
    with pytest.raises(
        ValueError, match="must have the same runs of every policy, got 2 of 'B' and 3 of 'A'"
    ):
        verdict_of(claim_of("less", against=("B",)), mixed)


# --- false alarms -------------------------------------------------------------------------------------------

SETS = 400


def share_decided(claim, draw, seed):
    """Share of data sets in which the claim is confirmed or refuted."""
    rng = np.random.default_rng(seed)
    return np.mean([judge(claim, draw(rng)).answer is not UNDECIDED for _ in range(SETS)])


def test_false_alarms_of_one_comparison_are_five_percent():
    def equal(rng):
        common = rng.normal(size=10) * 5
        return {"p": from_finals(A=common + rng.normal(size=10), B=common + rng.normal(size=10))}

    # Exactly 5% of data sets: four standard errors are 4.4%, which a right rule exceeds once in 15,000 seeds.
    share = share_decided(claim_of("less", against=("B",)), equal, seed=22)
    assert abs(share - 0.05) < 4 * math.sqrt(0.05 * 0.95 / SETS)


def test_false_alarms_of_many_comparisons_share_the_error():
    def equal(rng):
        return {str(i): from_finals(A=rng.normal(size=10), B=rng.normal(size=10)) for i in range(6)}

    # Each of six independent intervals refutes in 0.05 / 12 of the data sets, so one of them or more in 2.5%;
    # without the correction in 14%. To be confirmed all six would have to err together.
    share = share_decided(claim_of("less", against=("B",)), equal, seed=23)
    rate = 1 - (1 - 0.05 / 12) ** 6
    assert abs(share - rate) < 4 * math.sqrt(rate * (1 - rate) / SETS)


def test_false_alarms_at_the_margin_of_similar():
    def at_margin(rng):
        common = rng.normal(size=10)
        return {"p": from_finals(A=1.2 * (20 + common) + rng.normal(size=10), B=20 + common)}

    share = share_decided(claim_of("similar", against=("B",), margin=0.2), at_margin, seed=24)
    assert abs(share - 0.05) < 4 * math.sqrt(0.05 * 0.95 / SETS)


def test_false_alarms_of_grows_more():
    def alike(rng):
        parts = {}
        for label, factor in (("x", 1.0), ("y", 3.0)):
            common = rng.normal(size=40)
            draws = (factor * (mean + common + rng.normal(size=40)) for mean in (10, 20))
            parts[label] = from_finals(**dict(zip("AB", draws, strict=True)))
        return parts

    # The delta method is an approximation, good to far less than the tolerance at 40 runs.
    share = share_decided(claim_of("grows more", against=("B",)), alike, seed=25)
    assert abs(share - 0.05) < 4 * math.sqrt(0.05 * 0.95 / SETS)


def pulled(**counts) -> Results:
    """Policy -> pulls of arm (0, 1), one per run."""
    rows = [
        {"policy": policy, "run": run, "step": HORIZON, "pulls": [[HORIZON - int(value), int(value)]]}
        for policy, values in counts.items()
        for run, value in enumerate(values)
    ]
    curves = {policy: np.ones((len(values), len(STEPS))) for policy, values in counts.items()}
    return from_curves(curves, diagnostics=pl.DataFrame(rows))


def test_pulls_of_an_arm_are_compared_and_named():
    few, many = noisy(20, spread=3).round(), noisy(200, spread=20, seed=1).round()
    claim = claim_of("more", metric="pulls", arm=(0, 1), against=("B",))
    one = verdict_of(claim, pulled(A=many, B=few))
    assert one.answer is CONFIRMED
    assert "pulls (a₂ in x₁) of A - pulls (a₂ in x₁) of B" in one.comparisons[0].what
    assert "pulls of the named arm up to the end" in one.rule
    share = claim_of("below", metric="pull share", arm=(0, 1), margin=0.1)
    assert verdict_of(share, pulled(A=few)).answer is CONFIRMED
    assert verdict_of(share, pulled(A=many)).answer is REFUTED


@pytest.mark.parametrize(
    ("factor", "spread", "answer"),
    [(10, 1, CONFIRMED), (6, 0.5, CONFIRMED), (2, 1, REFUTED), (50, 1, REFUTED), (5.1, 8, UNDECIDED)],
)
def test_in_proportion_is_a_factor_give_or_take_two(factor, spread, answer):
    first, last = from_finals(A=noisy(10)), from_finals(A=noisy(10 * factor, spread=spread * factor, seed=1))
    one = verdict_of(claim_of("in proportion", margin=10), first, last)
    assert one.comparisons[0].estimate.value == pytest.approx(factor)
    assert one.answer is answer


def test_in_proportion_without_numbers_is_undecided():
    missing = claim_of("in proportion", metric="wait", arm=(0, 1), margin=10)
    assert verdict_of(missing, from_finals(A=noisy(10)), from_finals(A=noisy(20))).answer is UNDECIDED
    assert (
        verdict_of(claim_of("in proportion", margin=10), *[from_finals(A=[3.0])] * 2).answer is NOT_TESTABLE
    )
