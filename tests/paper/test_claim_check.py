"""Claims that cannot be judged are refused, field by field."""

import math

import pytest

from made import claim_of, from_curves
from solid_bandits.paper.claim_check import check_claim
from solid_bandits.paper.judging import judge

PARTS = {"small": ["A", "B", "C"], "large": ["A", "B"]}


@pytest.mark.parametrize(
    "claim",
    [
        claim_of("less", against=("B",)),
        claim_of("less", against=("C",), parts=("small",)),
        claim_of("between", against=("B", "C"), parts=("small",)),
        claim_of("growing", beside=("B",), at=1),
        claim_of("gap grows", against=("B",), parts=("large", "small")),
        claim_of("allocation", policies=(), arm=(0, 2)),
        claim_of("more", metric="pulls", arm=(0, 1), against=("B",)),
    ],
)
def test_good_claims_pass(claim):
    check_claim(claim, PARTS)


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (claim_of("less", text=" "), "text must be a sentence, got ' '"),
        (claim_of("less", source=""), "source must be a sentence, got ''"),
        (claim_of("les", against=("B",)), "rule must be one of .*, got 'les'; did you mean 'less'"),
        (claim_of("less", metric="regrets", against=("B",)), "metric must be .*; did you mean 'regret'"),
        (claim_of("less", against=("B",), at=0), "at must be > 0 and <= 1, got 0"),
        (claim_of("less", against=("B",), at=1.5), "at must be .*, got 1.5"),
        (claim_of("less", against=("B",), at="0.5"), "at must be a number, got '0.5'"),
        (claim_of("less", against=("B",), at=math.nan), "at must be finite and > 0 and <= 1, got nan"),
        (claim_of("similar", against=("B",), margin=0.0), "margin must be > 0, got 0.0"),
        (claim_of("similar", against=("B",), margin=True), "margin must be a number, got True"),
        (claim_of("less", against=("B",), least_horizon=-1), "least_horizon must be an integer >= 0, got -1"),
        (
            claim_of("less", against=("B",), least_horizon=1e6),
            "least_horizon must be an integer >= 0, got 1000000.0",
        ),
        (
            claim_of("less", against=("B",), least_horizon="5"),
            "least_horizon must be an integer >= 0, got '5'",
        ),
        (claim_of("less", against=("B", "B")), "against must name each label once, got 'B' twice"),
        (
            claim_of("less", policies=(), against=("B",)),
            r"policies must have at least one label for rule 'less', got \[\]",
        ),
        (claim_of("less"), r"against must have at least one label for rule 'less', got \[\]"),
        (claim_of("between", against=("B",)), r"against must have exactly two labels .*, got \['B'\]"),
        (
            claim_of("between", policies=("D",), against=("A", "B", "C")),
            "against must have exactly two labels for rule 'between'",
        ),
        (claim_of("growing", against=("B",)), r"against must be left out, as rule 'growing' takes none"),
        (claim_of("less", against=("A",)), "against must not name 'A', which is in policies too"),
        (
            claim_of("less", against=("B",), beside=("B",)),
            "beside must not name 'B', which is in against too",
        ),
        (claim_of("less", against=("Bb",)), "against must be one of A, B, C, got 'Bb'; did you mean 'B'"),
        (
            claim_of("less", against=("C",)),
            "against must be played .* got 'C', which part 'large' does not have; .* be among small",
        ),
        (claim_of("less", against=("B",), parts=("smal",)), "parts must be .*; did you mean 'small'"),
        (claim_of("less", against=("B",), parts=("large", "large")), "parts must name .* got 'large' twice"),
        (
            claim_of("growing", parts=("small",)),
            r"parts must name a first and a last part for rule 'growing', got \['small'\]",
        ),
        (claim_of("allocation", policies=()), r"arm must be \[context, arm\].* 'allocation', got None"),
        (claim_of("allocation", arm=(0, 1)), r"policies must be left out, as rule 'allocation' takes none"),
        (
            claim_of("allocation", policies=(), beside=("A",), arm=(0, 1)),
            r"beside must be left out, as rule 'allocation' takes none, got \['A'\]",
        ),
        (claim_of("allocation", policies=(), arm=(0,)), r"arm must be \[context, arm\].*, got \(0,\)"),
        (
            claim_of("allocation", policies=(), arm=(0, -1)),
            r"arm must be two integers >= 0, got -1 at index 1",
        ),
        (
            claim_of("less", metric="pulls", against=("B",)),
            r"arm must be \[context, arm\], counted from 0, for metric 'pulls', got None",
        ),
        (claim_of("less", against=("B",), arm=(0, 0)), r"arm must be left out, .*, got \(0, 0\)"),
    ],
)
def test_bad_claims_are_refused(claim, message):
    with pytest.raises(ValueError, match=message):
        check_claim(claim, PARTS)


def test_judge_refuses_what_check_claim_refuses():
    results = from_curves({"A": [[0.0] * 7 + [1.0]]})
    with pytest.raises(ValueError, match="against must be one of A, got 'Z'"):
        judge(claim_of("less", against=("Z",)), {"part": results})


def test_no_part_at_all():
    with pytest.raises(ValueError, match=r"parts must name a part for rule 'less', got \[\]"):
        judge(claim_of("less", against=("B",)), {})
