"""Logs as files, from elsewhere and back."""

import json
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from estimators.utils import ds_parse

import solid_bandits as sb
from solid_bandits import logs
from solid_bandits.logs.schema import COLUMNS


def a_log(steps=40, seed=0):
    rng = np.random.default_rng(seed)
    bandit = sb.Bandit(sb.EpsilonGreedy(epsilon=0.5), dim=3, noise_std=1.0, window=1000)
    for number in range(steps):
        count = int(rng.integers(2, 5))
        bandit.decide(
            rng.normal(size=(count, 3)),
            [f"arm {i}" for i in range(count)],
            f"ü{number}",
            time=1e9 + number / 7,
        )
        if number % 3:
            bandit.learn(f"ü{number}", rng.normal(), time=1e9 + number)
    bandit.expire(before=1e9 + 3, time=2e9)
    return bandit.log()


def test_parquet_gives_the_same_log_back(tmp_path):
    log = a_log()
    assert dict(log.schema) == COLUMNS
    logs.write(log, tmp_path / "log.parquet")
    assert logs.read(tmp_path / "log.parquet").equals(log, null_equal=True)


def test_dsjson_gives_the_same_log_back(tmp_path):
    log = a_log()
    logs.write_dsjson(log, tmp_path / "log.dsjson")
    assert logs.read(tmp_path / "log.dsjson").equals(log, null_equal=True)
    assert logs.read_dsjson(tmp_path / "log.dsjson").height == log.height


def test_dsjson_gives_nulls_and_any_sequence_back(tmp_path):
    """All that a log may leave open, each column for itself."""
    log = a_log()
    changes = [
        pl.lit(None, dtype=kind).alias(name) for name, kind in COLUMNS.items() if name not in ("arm", "arms")
    ]
    changes += [pl.lit(number, dtype=pl.Int64).alias("sequence") for number in (0, -5, -(2**63), 2**63 - 1)]
    changes.append([pl.lit(None, dtype=pl.Float64).alias(name) for name in ("probability", "reward")])
    for change in changes:
        changed = log.with_columns(change)
        logs.write_dsjson(changed, tmp_path / "log.dsjson")
        assert logs.read(tmp_path / "log.dsjson").equals(changed, null_equal=True), change
    logs.write_dsjson(log.clear(), tmp_path / "log.dsjson")
    assert logs.read(tmp_path / "log.dsjson").equals(log.clear())
    one = pl.when(pl.int_range(pl.len()) != 3).then("arms").alias("arms")
    with pytest.raises(ValueError, match="table row 3 must have arms to be dsjson, got None"):
        logs.write_dsjson(log.with_columns(one), tmp_path / "none.dsjson")
    assert not (tmp_path / "none.dsjson").exists()


def test_dsjson_is_read_by_vws_tools_as_it_was_written(tmp_path):
    log = a_log()
    logs.write_dsjson(log, tmp_path / "log.dsjson")
    lines = (tmp_path / "log.dsjson").read_bytes().splitlines()
    for line, row in zip(lines, log.iter_rows(named=True), strict=True):
        plain = json.loads(line)
        assert plain["p"][0] == row["probability"]
        assert plain["a"][0] == row["arms"].index(row["arm"]) + 1
        assert plain["c"]["_multi"][plain["a"][0] - 1]["_tag"] == row["arm"]
        if row["reward"] is None:
            assert "_label_cost" not in plain
            continue
        read = ds_parse.json_cooked(line)
        assert float(read["cost"]) == -row["reward"]
        assert read["p"] == row["probability"]
        assert read["a"] == row["arms"].index(row["arm"]) + 1
        assert read["num_a"] == len(row["arms"])


FOREIGN = (
    '{"_label_cost":-1.5,"_label_probability":0.25,"_label_Action":2,"_labelIndex":1,"Timestamp":"2018-10-25T00:00:00.3960000Z",'
    '"Version":"1","EventId":"A3E5","a":[2,1],"c":{"User":{"_age":0,"country":"BR","visits":3},"_multi":[{"Action":{"size":1.5}},'
    '{"Action":{"size":0.5,"tags":["x",2]}}]},"p":[0.25,0.75],"VWState":{"m":"N/A"}}\n'
    '{"EventId":"ignored: no context"}\n\n'
    '{"_label_cost":0,"_label_probability":1.0,"_label_Action":1,"_labelIndex":0,"Timestamp":"2018-10-25T00:00:01Z",'
    '"Version":"1","EventId":"B","a":[1],"c":{"User":{"country":"US"},"_multi":[{"Action":{"size":2}}]},"p":[1.0]}\n'
)


def test_dsjson_from_elsewhere(tmp_path):
    (tmp_path / "log.json").write_text(FOREIGN)
    log = logs.read(tmp_path / "log.json")
    first, second = log.iter_rows(named=True)
    assert (first["event_id"], first["arm"], first["probability"], first["reward"]) == (
        "A3E5",
        "1",
        0.25,
        1.5,
    )
    assert first["probabilities"] == [0.75, 0.25]
    assert first["time"] == datetime(2018, 10, 25, 0, 0, 0, 396_000, tzinfo=UTC)
    assert json.loads(first["context"]) == {"User.country": "BR", "User.visits": 3}
    assert json.loads(second["context"]) == {"User.country": "US"}
    assert [json.loads(one) for one in first["arm_features"]] == [
        {"Action.size": 1.5},
        {"Action.size": 0.5, "Action.tags.0": "x", "Action.tags.1": 2},
    ]
    assert log["features"].null_count() == 2
    assert second["reward"] == 0.0


@pytest.mark.parametrize(
    "wrong", ["nonsense", '{"c":{}}', '{"EventId":"a","a":[9],"c":{"_multi":[{}]}}', '{"c":[1]}']
)
def test_broken_dsjson_is_one_line_that_names_the_line(tmp_path, wrong):
    (tmp_path / "log.dsjson").write_text(FOREIGN + wrong + "\n")
    with pytest.raises(ValueError, match=r"line 5 is not dsjson"):
        logs.read(tmp_path / "log.dsjson")


def test_rows_of_an_id_or_before_a_date_are_deleted():
    log = a_log()
    assert logs.delete(log, event_id="ü7").height == log.height - 1
    kept = logs.delete(log, before=datetime(2001, 9, 9, 1, 46, 42, tzinfo=UTC))
    assert kept["time"].min() >= datetime(2001, 9, 9, 1, 46, 42, tzinfo=UTC)
    assert (
        kept.height + log.filter(pl.col("time") < datetime(2001, 9, 9, 1, 46, 42, tzinfo=UTC)).height
        == log.height
    )
    with pytest.raises(ValueError, match="event_id or before must be given"):
        logs.delete(log)


def test_a_plain_table():
    table = pl.DataFrame(
        {
            "treatment": [2, 0, 1],
            "y": [0.5, 1.0, 0.0],
            "p": [0.25, 0.5, 0.25],
            "age": [30, 40, 50],
            "day": ["2026-01-01"] * 3,
        }
    )
    log = logs.from_table(
        table, {"arm": "treatment", "reward": "y", "probability": "p", "time": "day"}, context=["age"]
    )
    assert log["arms"].to_list() == [["0", "1", "2"]] * 3
    assert log["arm"].to_list() == ["2", "0", "1"]
    assert log["context"].to_list() == ['{"age":30}', '{"age":40}', '{"age":50}']
    assert log["time"][0] == datetime(2026, 1, 1, tzinfo=UTC)
    assert log["event_id"].to_list() == ["0", "1", "2"]
    named = logs.from_table({"arm": ["b", "a"], "reward": [1, 2]}, arms=["a", "b", "c"])
    assert named["arms"].to_list() == [["a", "b", "c"]] * 2
    assert named["probability"].to_list() == [None, None]


def test_the_probability_of_the_arm_comes_from_those_of_all():
    log = logs.from_table({"arm": [1, 0], "reward": [1.0, 0.0], "probabilities": [[0.25, 0.75], [0.5, 0.5]]})
    assert log["probability"].to_list() == [0.75, 0.5]


@pytest.mark.parametrize(
    ("columns", "context", "message"),
    [
        ({"arm": "nowhere"}, (), "columns must be in the table, got 'nowhere' for 'arm'"),
        ({"armm": "a"}, (), "columns must name columns of a log"),
        ({"reward": "a"}, (), "columns must name the column of the arm"),
        ({"arm": "a"}, ("words",), "context must be columns of the table, got 'words'"),
    ],
)
def test_tables_that_will_not_do(columns, context, message):
    with pytest.raises(ValueError, match=message):
        logs.from_table({"a": [1, 2], "word": ["x", "y"]}, columns, context)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arm": ["x", "a"]}, r"log row 0 \(event_id '0'\) must have its arm among its arms"),
        ({"reward": [1.0, np.inf]}, "log row 1 .* must have a finite reward"),
        ({"probability": [0.5, 1.5]}, "log row 1 .* probability from 0 to 1"),
        ({"probabilities": [[0.5, 0.5], [0.5, 0.6]]}, "log row 1 .* probabilities that sum to 1"),
        ({"probabilities": [[0.5, 0.5], [1.0]]}, "log row 1 .* a probability for each arm"),
        ({"arms": [["a", "b"], ["b", "b"]]}, "log row 1 .* each of its arms once"),
    ],
)
def test_rows_that_cannot_be(change, message):
    sound = {"arms": [["a", "b"], ["a", "b"]], "arm": ["a", "b"], "reward": [1.0, 0.0]}
    logs.from_table(sound)
    with pytest.raises(ValueError, match=message):
        logs.from_table(sound | change)
