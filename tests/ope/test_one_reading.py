"""Several policies on one reading of a log: the numbers of each are those it has alone, and no row is checked twice."""

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from solid_bandits import logs, ope
from solid_bandits.ope.contract import Estimator, Value
from solid_bandits.ope.named import asked_words, evaluate_words
from solid_bandits.ope.terms import dr_terms


@pytest.fixture(scope="module")
def bandit():
    rng = np.random.default_rng(1)
    made = sb.Bandit(sb.EpsilonGreedy(epsilon=0.3), dim=2, noise_std=0.5, floor=0.2)
    for number in range(120):
        features = rng.normal(size=(3, 2))
        choice = made.decide(features, arms=["a", "b", "c"])
        if number % 10:
            made.learn(choice.event_id, float(features[choice.arms.index(choice.arm), 0] > 0))
    return made


def first(shown, names):
    return 0


@pytest.fixture
def checked(monkeypatch):
    """How many rows were checked, whoever checks them."""
    seen = []
    true = logs.schema.check_rows

    def counting(table, *arguments, **more):
        seen.append(table.height)
        return true(table, *arguments, **more)

    for place in ("logs.schema", "logs.foreign", "ope.rows"):
        monkeypatch.setattr(f"solid_bandits.{place}.check_rows", counting)
    return seen


@pytest.mark.parametrize(
    "more", [{}, {"logger": "fixed", "bootstrap": 20, "seed": 3}, {"model": None}, {"missing_reward": 0.0}]
)
def test_each_policy_has_the_numbers_that_it_has_alone(bandit, more, tmp_path):
    logs.write(bandit.log(), tmp_path / "log.parquet")
    lists = np.random.default_rng(0).dirichlet(np.ones(3), size=bandit.log().height)
    policies = {"uniform": "uniform", "a": "always:a", "first": first, "itself": bandit, "lists": lists}
    for log in (bandit, tmp_path / "log.parquet"):
        found = ope.evaluate(log, policies, **more)
        assert list(found) == list(policies)
        for label, policy in policies.items():
            alone = ope.evaluate(log, policy, **more)
            assert found[label].table.equals(alone.table)
            assert found[label].diagnostics == alone.diagnostics
            assert found[label].cautions == alone.cautions


def test_an_answer_that_cannot_be_given_names_its_policy():
    certain = {"arm": ["a"] * 9, "reward": [1.0] * 9, "probabilities": [[1.0, 0.0]] * 9}
    log = logs.from_table(certain, arms=["a", "b"])
    with pytest.raises(
        ValueError, match="in 9 of 9 rows half would choose arms that the logger gave probability 0"
    ):
        ope.evaluate(log, {"same": "always:a", "half": "uniform"})
    with pytest.raises(ValueError, match="policy must be at least one policy, got none"):
        ope.evaluate(log, {})


@pytest.mark.parametrize("words", [["uniform", "always:b"], ["uniform", "greedy", "lints"]])
def test_the_log_is_checked_once(bandit, checked, tmp_path, words):
    log = bandit.log()
    logs.write(log, tmp_path / "log.parquet")
    for source in (tmp_path / "log.parquet", log, log.drop("policy", "time")):
        checked.clear()
        found = evaluate_words(source, words)
        assert len(found) == len(words)
        assert sum(checked) == log.height


def test_a_logger_that_is_asked_again_is_led_through_the_same_reading(bandit, checked, tmp_path):
    log = bandit.log()
    logs.write(log, tmp_path / "log.parquet")
    logger = sb.Bandit(sb.EpsilonGreedy(epsilon=0.3), dim=2, noise_std=0.5, floor=0.2)
    checked.clear()
    ope.evaluate(tmp_path / "log.parquet", {"one": "uniform", "other": "always:b"}, ["cadr"], logger=logger)
    assert checked[0] == log.height


def test_those_that_learn_are_evaluated_with_all_others_on_the_second_half(bandit):
    found = evaluate_words(bandit.log(), ["uniform", "greedy"])
    agent, rest = ope.fitted(bandit, sb.Greedy())
    assert found["uniform"].table.equals(ope.evaluate(rest, "uniform").table)
    (label,) = [label for label in found if label != "uniform"]
    assert label.endswith(", of the first half")
    assert found[label].table.equals(ope.evaluate(rest, agent).table)
    numbers = found["uniform"].diagnostics
    assert numbers["rows"] + numbers["rows without a reward, left out"] == rest.height
    assert numbers["mean reward of the log"] == pytest.approx(rest["reward"].mean())


def test_words_from_elsewhere_name_no_files(bandit, tmp_path):
    bandit.agent.save(tmp_path / "agent.json")
    word = str(tmp_path / "agent.json")
    with pytest.raises(ValueError, match="policy must be"):
        evaluate_words(bandit.log(), [word])
    with pytest.raises(ValueError, match="policy must be"):
        evaluate_words(bandit.log(), ["column:probabilities"])
    logs.write(bandit.log(), tmp_path / "log.parquet")
    found = ope.evaluate(*asked_words(tmp_path / "log.parquet", [word, "column:probabilities"], files=True))
    assert found["agent.json"].table.equals(ope.evaluate(bandit.log(), bandit.agent).table)
    assert found["column:probabilities"].value("ips") == pytest.approx(bandit.log()["reward"].mean())


def test_an_estimator_is_one_entry(bandit, monkeypatch):
    """The median of the doubly robust terms, whose interval is claimed for loggers that learn; nothing else is told."""

    def middle(found, question):
        low, value, high = np.quantile(dr_terms(found.terms), [0.4, 0.5, 0.6])
        return Value(float(value), float(low), float(high), "quantiles")

    entry = Estimator("median of the terms", middle, learning=True, normal=False)
    monkeypatch.setitem(ope.ESTIMATORS, "median", entry)
    found = ope.evaluate(bandit, "uniform")
    row = found.table.row(by_predicate=pl.col("estimator") == "median", named=True)
    assert row["low"] < row["value"] < row["high"]
    assert ope.evaluate(bandit, "uniform", ["median"]).interval("median") == (row["low"], row["high"])
    monkeypatch.setitem(ope.ESTIMATORS, "median", entry._replace(learning=False))
    with pytest.raises(ValueError, match="the logger learns"):
        ope.evaluate(bandit, "uniform", ["median"]).interval("median")
