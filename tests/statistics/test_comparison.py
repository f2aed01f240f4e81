"""Two policies compared run by run."""

import numpy as np
import pytest
from scipy import stats

from made import from_curves, make_results
from solid_bandits.statistics.comparison import compare

RNG = np.random.default_rng(3)
LUCK = np.abs(RNG.normal(scale=50, size=(30, 1)))
CURVES = {
    "A": LUCK + np.linspace(0, 1, 8) + RNG.normal(scale=0.1, size=(30, 8)),
    "B": LUCK + np.linspace(0, 2, 8) + RNG.normal(scale=0.1, size=(30, 8)),
}


def test_the_interval_is_the_paired_t_test_of_scipy():
    found = compare(from_curves(CURVES).table, "A", "B", confidence=0.9)
    wanted = stats.ttest_rel(CURVES["A"][:, -1], CURVES["B"][:, -1])
    low, high = wanted.confidence_interval(0.9)
    np.testing.assert_allclose(found.difference, (np.mean(CURVES["A"] - CURVES["B"], axis=0)[-1], low, high))
    np.testing.assert_allclose(found.differences["difference"], (CURVES["A"] - CURVES["B"])[:, -1])
    assert found.differences["run"].to_list() == list(range(30))
    # What the runs have in common hides the difference from unpaired intervals.
    assert stats.ttest_ind(CURVES["A"][:, -1], CURVES["B"][:, -1]).pvalue > 0.5
    assert found.better == "A"


def test_the_order_only_changes_the_sign():
    table = from_curves(CURVES).table
    one, other = compare(table, "A", "B"), compare(table, "B", "A")
    assert one.difference.value == -other.difference.value
    assert one.better == other.better == "A"


def test_it_says_in_words_what_it_found():
    text = repr(compare(from_curves(CURVES).table, "A", "B"))
    assert text.startswith("regret of A - B: −")
    assert "95% Student interval, 30 runs at step 1,000" in text
    assert text.endswith("A has less regret in 30, more in 0 of them; A is better")


def test_policies_that_are_alike_are_not_told_apart():
    results = from_curves({"A": CURVES["A"], "C": CURVES["A"] + RNG.normal(size=(30, 8))})
    found = compare(results.table, "A", "C")
    assert found.better is None
    assert repr(found).endswith("not told apart")


def test_more_reward_is_better_and_more_regret_is_not():
    table = from_curves(CURVES).table
    table = table.with_columns(reward=table["regret"])
    assert compare(table, "A", "B", "regret").better == "A"
    assert compare(table, "A", "B", "reward").better == "B"


def test_one_run_has_no_interval():
    found = compare(from_curves({name: one[:1] for name, one in CURVES.items()}).table, "A", "B")
    assert found.difference.low is None
    assert found.better is None
    assert repr(found).endswith("in 1 run at step 1,000; one run has no interval")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("SOLID", "LinUBC"), "second must be one of .*, got 'LinUBC'; did you mean 'LinUCB'?"),
        (("SOLID", "SOLID"), "second must be another policy than first, got 'SOLID' twice"),
        (("SOLID", "LinUCB", "reward"), "measure must be one of regret, explored, got 'reward'"),
        (("SOLID", "LinUCB", "regret", 1.0), "confidence must be"),
    ],
)
def test_what_cannot_be_compared_says_so(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_results({"SOLID": 2.0, "LinUCB": 9.0}).compare(*arguments)
