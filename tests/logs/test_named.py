"""Named values in a log: as they were said, through files, and as the features that they stand for."""

import json

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from histories import features_of, offer_of, seeds
from solid_bandits import logs, ope
from solid_bandits.features.design import Design
from solid_bandits.logs.named import as_text, expanded
from solid_bandits.logs.schema import COLUMNS, check_log


def logged(rng, features, rows=40):
    """A log of random decisions, and the design that took in its rows."""
    design = Design(features)
    table = {name: [] for name in ("arms", "context", "arm_features", "arm")}
    said = []
    for _ in range(rows):
        named = design.check(*offer_of(features, rng, design.offered()))
        design.take(named)
        said.append(named)
        table["context"].append(as_text(named.context))
        table["arms"].append(list(named.arms))
        table["arm_features"].append(None if named.own is None else list(map(as_text, named.own)))
        table["arm"].append(named.arms[0])
    table["reward"] = rng.random(rows).tolist()
    table["probability"] = [1 / len(arms) for arms in table["arms"]]
    kinds = {name: COLUMNS[name] for name in table}
    return logs.from_table(pl.DataFrame(table, schema=kinds)), design, said


@pytest.mark.parametrize("number", range(12))
def test_features_of_a_log_are_those_of_the_design_that_took_its_rows(number, tmp_path):
    rng = seeds(12)[number]
    features = features_of(rng)
    log, design, said = logged(rng, features)
    logs.write(log, tmp_path / "log.parquet")
    logs.write_dsjson(log, tmp_path / "log.dsjson")
    for one in (log, logs.read(tmp_path / "log.parquet"), logs.read(tmp_path / "log.dsjson")):
        found = logs.with_features(one, features)["features"]
        for row, named in zip(found, said, strict=True):
            expected = expanded(design, design.encode(named))
            assert np.array(row.to_list()).tobytes() == np.ascontiguousarray(expected).tobytes()


def test_dsjson_and_parquet_keep_what_was_said(tmp_path):
    rng = np.random.default_rng(1)
    features = sb.Features({"a": "number", "t": "tags", "d": "date"}, arm_features={"price": None})
    table = {
        "arm": ["x", "y"],
        "arms": [["x", "y"]] * 2,
        "context": ['{"a":1.5,"t":["p","q"],"d":"2026-01-02"}', "{}"],
        "arm_features": [['{"price":1}', '{"price":2.5}'], ["{}", '{"price":true}']],
        "reward": rng.random(2).tolist(),
    }
    log = logs.from_table(table)
    logs.write_dsjson(log, tmp_path / "log.dsjson")
    assert logs.read(tmp_path / "log.dsjson").equals(log)
    assert features.arm_features == {"price": None}


def test_values_are_columns_again():
    log = logs.from_table(
        {"arm": ["x", "y"], "age": [3, None], "device": ["ios", "web"], "tags": [["a"], ["b", "a"]]},
        context=["age", "device", "tags"],
    )
    assert logs.values(log).rows() == [(3, "ios", ["a"]), (None, "web", ["a", "b"])]


@pytest.mark.parametrize("text", ["[1]", "3", "{", ""])
def test_a_context_that_is_no_object_is_refused_with_its_row(text):
    log = logs.from_table({"arm": ["x", "y"], "context": ['{"a":1}', text]})
    with pytest.raises(ValueError, match="log row 1 must have a context that is a JSON object, got"):
        logs.with_features(log)
    with pytest.raises(ValueError, match="log row 1 must have a context that is a JSON object, got"):
        logs.values(log)


def test_features_of_arms_are_as_many_as_arms():
    table = {"arm": ["x"], "arms": [["x", "y"]], "arm_features": [["{}"]]}
    with pytest.raises(ValueError, match=r"log row 0 .* must have features for each arm"):
        check_log(logs.from_table(table))


def test_the_reward_model_of_a_log_with_names_is_the_one_of_its_features():
    """A log of words and numbers, and the same with `with_features`: one regression an arm, or one on all arms'."""
    rng = np.random.default_rng(5)
    size = 300
    table = {
        "arm": rng.choice(["x", "y"], size=size).tolist(),
        "age": rng.normal(40, 9, size=size).tolist(),
        "device": rng.choice(["ios", "web", "tv"], size=size).tolist(),
        "probability": [0.5] * size,
    }
    table["reward"] = [
        0.1 * age + (device == "tv") * (arm == "x")
        for age, device, arm in zip(table["age"], table["device"], table["arm"], strict=True)
    ]
    log = logs.from_table(table, context=["age", "device"])
    found = ope.evaluate(log, "always:x", ["dm"], logger="fixed").value("dm")
    rows = log["arm"].to_numpy() == "x"
    design = np.array(logs.with_features(log)["features"].list.get(0).to_list())  # of arm x
    design = design[:, : design.shape[1] // 2] if design[:, 0].all() else design[:, design.shape[1] // 2 :]
    own, rewards = design[rows], np.array(table["reward"])[rows]
    # the model's own constant is the intercept of the features
    theta = np.linalg.solve(np.eye(own.shape[1]) + own.T @ own, own.T @ rewards)
    assert found == pytest.approx(float((design @ theta).mean()), rel=1e-9)


def test_json_of_a_context_is_what_was_said():
    log = logs.from_table({"arm": ["x"], "age": [np.float64(3.0)], "ok": [True]}, context=["age", "ok"])
    assert json.loads(log["context"][0]) == {"age": 3.0, "ok": True}
