"""Differences of policies, segments and verdicts: identities, and how often they hold, in standard errors."""

import math

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from solid_bandits import ope
from solid_bandits.ope.contrasts import EVERYONE, PLAYED, as_asked, contrast
from solid_bandits.ope.linear_test import likelihood_ratio
from solid_bandits.ope.models import as_model
from solid_bandits.ope.rows import Reader
from solid_bandits.ope.terms import dr_terms

MEANS = np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.3]])


def trial(rows, seed=0, means=MEANS, given=(0.5, 0.3, 0.2), known=True):
    """A log of a fixed logger with two kinds of customers."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(len(means), size=rows)
    arm = rng.choice(len(given), p=given, size=rows)
    log = {
        "arm": [f"{'abcdef'[one]}" for one in arm],
        "reward": (rng.random(rows) < means[kind, arm]).astype(float),
        "kind": kind,
        "age": rng.normal(size=rows) + 3 * kind,
    }
    if known:
        return log | {"probabilities": np.tile(given, (rows, 1)).tolist()}
    return log | {"probability": np.array(given)[arm]}


def everything(log, words):
    reader = Reader(log)
    asked = {word: as_asked(word, reader.height, log) for word in words}
    return contrast(reader, asked, as_model("linear"), (0.0, 1.0))[EVERYONE]


def test_a_difference_is_the_difference_of_the_terms_row_by_row():
    found = everything(trial(300), ["always:a", "uniform"])
    first, second = (dr_terms(found.values[one]) for one in ("always:a", "uniform"))
    assert np.allclose(dr_terms(found.pairs["always:a", "uniform"]), first - second, rtol=1e-12)
    assert found.values[PLAYED].reward.mean() == dr_terms(found.values[PLAYED]).mean()
    same = everything(trial(300), ["always:a"]).pairs["always:a", PLAYED]
    assert np.allclose(same.weight, found.values["always:a"].weight - 1)


@pytest.mark.parametrize("known", [True, False])
def test_a_policy_that_does_what_was_played_differs_by_nothing_that_it_chose(known):
    log = trial(400, known=known)
    reader = Reader(log)
    asked = {"same": as_asked([[0.5, 0.3, 0.2]] * 400, reader.height, log)}
    terms = contrast(reader, asked, as_model("linear"), (0.0, 1.0))[EVERYONE].pairs["same", PLAYED]
    for part in (dr_terms(terms), terms.lower, terms.upper, terms.second):
        assert np.allclose(part, 0, atol=1e-12)


@pytest.mark.parametrize("known", [True, False])
def test_bounded_differences_have_the_difference_for_their_mean(known):
    """Over 40,000 rows, within 5 standard errors: 6e-7 each."""
    found = everything(trial(40_000, known=known), ["always:a", "always:b"])
    truth = {
        "always:a": MEANS[:, 0].mean(),
        "always:b": MEANS[:, 1].mean(),
        PLAYED: (MEANS @ [0.5, 0.3, 0.2]).mean(),
    }
    for (first, second), terms in found.pairs.items():
        apart = truth[first] - truth[second]
        for part, goal in ((terms.lower, apart), (terms.upper, -apart)):
            assert abs(part.mean() - goal) < 5 * part.std() / 200
        assert (terms.lower >= -1 - terms.lower_slack - 1e-12).all()
        assert (terms.upper >= -1 - terms.upper_slack - 1e-12).all()


def test_an_arm_is_compared_where_it_was_on_offer():
    rng = np.random.default_rng(1)
    offers = [["a", "b"] if one else ["a", "b", "c"] for one in rng.integers(2, size=600)]
    log = {
        "arm": [offer[rng.integers(len(offer))] for offer in offers],
        "arms": offers,
        "probabilities": [[1 / len(offer)] * len(offer) for offer in offers],
    }
    log["reward"] = [{"a": 0.0, "b": 0.5, "c": 1.0}[arm] for arm in log["arm"]]
    found = ope.compare(log, ["always:a", "always:c"])
    there = sum(len(offer) == 3 for offer in offers)
    row = found.table.row(by_predicate=pl.col("policy") == "always:c", named=True)
    assert row["rows"] == there
    assert row["value"] == pytest.approx(1.0, abs=0.15)
    assert (
        f"always:c is compared on the {there} of 600 rows of everyone where its arm was on offer"
        in found.cautions
    )


def test_the_order_that_is_settled():
    found = ope.compare(trial(6000), {"a": "always:a", "c": "always:c", "even": "uniform"})
    assert found.table["policy"][0] == PLAYED
    ranks = {
        row["policy"]: (row["best rank"], row["worst rank"]) for row in found.table.iter_rows(named=True)
    }
    assert ranks["c"] == (4, 4)
    assert ranks["a"] == (1, 1)
    assert found.said.startswith("a earns most")
    low, high = found.difference("a", "c")
    assert 0 < low < 0.1 < high
    assert found.difference("c", "a") == (-high, -low)
    with pytest.raises(ValueError, match="policy must be two that were compared"):
        found.difference("a", "nobody")


@pytest.mark.long
@pytest.mark.parametrize("logger", ["learning", "fixed"])
def test_all_intervals_hold_together(logger):
    """200 logs of 600 rows: any miss is a miss. At most 10 + 4 standard errors (3e-5 if it is 5%)."""
    missed = 0
    value = {
        "always:a": MEANS[:, 0].mean(),
        "always:b": MEANS[:, 1].mean(),
        PLAYED: (MEANS @ [0.5, 0.3, 0.2]).mean(),
    }
    for seed in range(200):
        found = ope.compare(trial(600, seed), ["always:a", "always:b"], logger=logger)
        wrong = [
            not row["low"] <= value[row["policy"]] - value[row["other"]] <= row["high"]
            for row in found.pairs.iter_rows(named=True)
        ]
        wrong += [
            not row["low"] <= value[row["policy"]] <= row["high"] for row in found.table.iter_rows(named=True)
        ]
        missed += any(wrong)
    assert missed <= 10 + 4 * math.sqrt(200 * 0.05 * 0.95)


def test_segments_by_column_by_label_and_by_a_tree():
    log = trial(3000)
    by_column = ope.compare(log, ["always:a", "always:b"], segments="kind")
    assert by_column.table["segment"].unique(maintain_order=True).to_list() == [
        EVERYONE,
        "kind = 0",
        "kind = 1",
    ]
    assert by_column.sentence("kind = 0").startswith("always:b earns most")
    assert by_column.sentence("kind = 1").startswith("always:a earns most")
    labels = [f"kind = {one}" for one in log["kind"]]
    by_label = ope.compare(log, ["always:a", "always:b"], segments=labels)
    assert by_label.table.equals(by_column.table)
    tree = ope.compare(log, ["always:a", "always:b"], segments="tree", context=["age"])
    names = tree.table["segment"].unique(maintain_order=True).to_list()
    assert 2 <= len(names) - 1 <= 4
    assert all("age" in name for name in names[1:])
    rows = tree.table.filter(pl.col("policy") == PLAYED).filter(pl.col("segment") != EVERYONE)["rows"]
    assert rows.sum() == 1500  # judged on the second half
    assert tree.sentence(names[1]).startswith("always:b earns most")  # the lowest ages
    assert tree.sentence(names[-1]).startswith("always:a earns most")
    cut = ope.compare(log, ["always:a"], segments="age").table["segment"].unique().to_list()
    assert sum("≤" in name for name in cut) == 1


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ("colour", "segments must be 'tree', labels, or columns among arm, reward"),
        (
            ["x"] * 5,
            "segments must be 'tree', labels, or columns among|must have one label for each of 50 rows",
        ),
        ([str(one) for one in range(50)], "segments must make 1 to 20 segments, got 50"),
        ("tree", "segments must not be 'tree' where the log has no context"),
    ],
)
def test_segments_that_cannot_be(segments, message):
    with pytest.raises(ValueError, match=message):
        ope.compare(trial(50), ["uniform"], segments=segments)


def test_a_verdict_agrees_with_its_interval():
    for rows in (200, 1000, 4000, 16_000):
        for tolerance in (0.0, 0.08):
            found = ope.verdict(trial(rows), segments="kind", tolerance=tolerance)
            for row in found.table.iter_rows(named=True):
                assert (row["verdict"] == "stop") == (
                    row["low"] >= -tolerance if tolerance else row["low"] > 0
                )
                assert row["low"] <= row["difference"] <= row["high"]
                assert (row["more decisions"] == 0) == (row["verdict"] == "stop")
    assert found.sentence("kind = 0") == "Stop: b is best within 0.08 for kind = 0."
    assert ope.verdict(trial(16_000), segments="kind").sentence("kind = 1") == "Stop: a is best for kind = 1."
    few = ope.verdict(trial(200))
    assert few.said.startswith("Go on: b leads for everyone, but a may be better by")
    assert few.said.endswith("more decisions at this rate.")
    assert not few.stop


def test_a_policy_may_be_better_than_every_single_arm():
    log = trial(8000)
    own = [[0.0, 1.0, 0.0] if one == 0 else [1.0, 0.0, 0.0] for one in log["kind"]]
    found = ope.verdict(log, {"by kind": own})
    assert found.said == "Stop: by kind is best for everyone."
    with pytest.raises(ValueError, match="policies must have labels that are no names of arms"):
        ope.verdict(log, {"a": own})


def test_about_how_many_more_decisions():
    """At twice the lead's half width, three times as many rows again: (half / lead)² - 1 = 3."""
    row = ope.verdict(trial(500)).table.row(0, named=True)
    half = row["difference"] - row["low"]
    assert row["more decisions"] == math.ceil(500 * ((half / row["difference"]) ** 2 - 1))


def test_a_verdict_needs_a_range_or_features():
    log = trial(300) | {"reward": np.random.default_rng(0).normal(size=300)}
    with pytest.raises(ValueError, match="reward_range must be given where rewards are not all within"):
        ope.verdict(log)
    described = log | {"features": np.tile(np.eye(3), (300, 1, 1)).tolist()}
    assert "σ, which is estimated" in ope.verdict(described).assumptions["if linear"]
    log = described
    found = ope.verdict(log, noise_std=1.0)
    assert found.said.startswith("Go on: too little is known")


@pytest.mark.long
def test_a_live_bandit_is_seldom_told_to_stop_where_there_is_no_difference():
    """60 bandits, each looked at eight times, two arms of the same mean, delta 0.2: more than 12 + 4 standard errors
    (12.4) have a probability of 1e-4 if it is 20%.
    """
    wrong = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        bandit = sb.Bandit(sb.RandUCB(), dim=2, noise_std=0.5, floor=0.2, seed=seed)
        told = False
        for number in range(1, 401):
            choice = bandit.decide(np.eye(2))
            bandit.learn(choice.event_id, float(rng.random() < 0.5))
            if number % 50 == 0:
                found = ope.verdict(bandit, delta=0.2)
                told = told or found.stop or found.table["if linear"][0] == "stop"
        wrong += told
    assert wrong <= 24


def test_the_linear_test_is_the_least_over_all_alternatives():
    """By minimising the exponent over θ with θᵀx <= -ε on its boundary and inside, from its definition."""
    rng = np.random.default_rng(5)
    features = rng.normal(size=(300, 2))
    reward = features @ [0.6, 0.1] + 0.3 * rng.normal(size=300)
    means = {"one": np.array([1.0, 0.2]), "other": np.array([0.3, 0.9])}
    for tolerance in (0.0, 0.05):
        found = likelihood_ratio(features, reward, means, 0.3, 0.05, tolerance)
        early, first = features[:16], 16
        every, before = features.T @ features, early.T @ early
        last, early_estimate = (
            np.linalg.solve(every, features.T @ reward),
            np.linalg.solve(before, early.T @ reward[:16]),
        )
        apart = means["one"] - means["other"]
        along = np.array([-apart[1], apart[0]])
        steps = np.linspace(-3, 3, 60_001)
        thetas = -tolerance * apart / (apart @ apart) + steps[:, None] * along

        far, near = thetas - last, thetas - early_estimate
        exponent = ((far @ every) * far).sum(axis=1) - ((near @ before) * near).sum(axis=1)
        assert found.best == "one"
        assert found.statistic == pytest.approx(exponent.min() / (2 * 0.3**2), rel=1e-6)
        growth = np.linalg.slogdet(every)[1] - np.linalg.slogdet(before)[1]
        assert found.threshold == pytest.approx(math.log(20) + growth / 2)
    assert first == 8 * 2
    assert likelihood_ratio(features[:16], reward[:16], means, 0.3, 0.05, 0.0) is None


def test_the_likelihood_ratio_of_the_linear_test_is_that_of_its_mixture():
    """In one dimension, by numerical integration over the prior: √(V_k / V_n) exp(...) is the ratio of likelihoods."""
    rng = np.random.default_rng(6)
    x, sigma, theta = rng.normal(size=40), 0.7, 0.4
    y = 0.2 * x + sigma * rng.normal(size=40)
    k = 8
    v_k, v_n = (x[:k] ** 2).sum(), (x**2).sum()
    at_k, at_n = (x[:k] @ y[:k]) / v_k, (x @ y) / v_n
    grid = np.linspace(-6, 6, 200_001)
    prior = np.exp(-v_k * (grid - at_k) ** 2 / (2 * sigma**2)) * math.sqrt(v_k / (2 * math.pi * sigma**2))
    fit = ((y[k:] - np.outer(grid, x[k:])) ** 2).sum(axis=1)
    own = ((y[k:] - theta * x[k:]) ** 2).sum()
    ratio = (prior * np.exp((own - fit) / (2 * sigma**2))).sum() * (grid[1] - grid[0])
    exponent = (v_n * (theta - at_n) ** 2 - v_k * (theta - at_k) ** 2) / (2 * sigma**2)
    assert math.sqrt(v_k / v_n) * math.exp(exponent) == pytest.approx(ratio, rel=1e-6)
