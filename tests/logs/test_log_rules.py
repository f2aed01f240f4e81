"""What a log may not hold is refused in one line that names its row, and nothing else comes out."""

import json
import warnings

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from solid_bandits import logs, ope
from solid_bandits.cli import main
from solid_bandits.logs.schema import check_log


def sound(rows=60):
    """Columns of a log with features, two arms."""
    rng = np.random.default_rng(0)
    return {
        "event_id": [f"e{row}" for row in range(rows)],
        "arms": [["a", "b"]] * rows,
        "arm": ["a", "b"] * (rows // 2),
        "features": rng.normal(size=(rows, 2, 3)).tolist(),
        "probabilities": [[0.4, 0.6]] * rows,
        "probability": [0.4, 0.6] * (rows // 2),
        "reward": rng.random(rows).tolist(),
    }


def changed(column, row, value):
    table = sound()
    return table | {column: [value if at == row else one for at, one in enumerate(table[column])]}


NAN, FAR = float("nan"), 1e300
FEATURES = r"must have finite features of at most 1e\+30 in size, got "
BROKEN = [
    ("features", [[0.0, NAN, 0.0], [1.0, 1.0, 1.0]], FEATURES + "nan"),
    ("features", [[0.0, 0.0, 0.0], [1.0, None, 1.0]], FEATURES + "None"),
    ("features", [None, [1.0, 0.0, 1.0]], FEATURES + "None"),
    ("features", [[0.0, 0.0, 0.0], [1.0, 1.0, -FAR]], FEATURES + r"-1e\+300"),
    ("reward", 1e308, r"must have a finite reward of at most 1e\+30 in size, got 1e\+308"),
    ("reward", NAN, "must have a finite reward .* got nan"),
    ("probabilities", [0.4, None], "must have probabilities that sum to 1, got .*"),
    ("probabilities", [1.0, None], "must have no null among its probabilities, got None"),
    ("probabilities", [0.5, 0.5], "must have the probability that its arm has among .*, 0.5, got 0.6"),
    ("probabilities", [NAN, 0.6], "must have probabilities that sum to 1, got .*"),
    (
        "probability",
        0.61,
        "must have the probability that its arm has among its probabilities, 0.6, got 0.61",
    ),
    ("probability", NAN, "must have a probability from 0 to 1, got nan"),
    ("arms", ["a", "b", None], "must have .*"),
]


@pytest.mark.parametrize(("column", "value", "message"), BROKEN)
def test_a_row_that_cannot_be_is_named_wherever_a_log_comes_in(column, value, message, tmp_path, monkeypatch):
    table = pl.DataFrame(changed(column, 41, value), strict=False)
    line = rf"^log row 41 \(event_id 'e41'\) {message}$"
    with pytest.raises(ValueError, match=line):
        logs.from_table(table)
    with pytest.raises(ValueError, match=line):
        ope.evaluate(table, "uniform")
    whole = logs.from_table(sound())
    broken = whole.with_columns(table[column].cast(whole.schema[column]))
    with pytest.raises(ValueError, match=line):
        check_log(broken)
    with pytest.raises(ValueError, match=line):
        ope.evaluate(broken[::-1][::-1], "uniform")
    broken.write_parquet(tmp_path / "log.parquet")
    monkeypatch.setattr("solid_bandits.ope.rows.BLOCK", 7)  # the row's number is that of the file
    with pytest.raises(ValueError, match=line):
        ope.evaluate(tmp_path / "log.parquet", "uniform")


@pytest.mark.parametrize("value", [NAN, FAR, float("inf")])
def test_contexts_likewise_and_the_command_line_writes_nothing(value, tmp_path, monkeypatch, capsys):
    table = {name: sound()[name] for name in ("arm", "reward", "probability")}
    frame = pl.DataFrame(table | {"age": [30.0] * 33 + [value] + [30.0] * 26}, strict=False)
    message = r"log row 33: age must (not be NaN|be a number), got "
    with pytest.raises(ValueError, match=message):
        ope.evaluate(frame, "uniform", context=["age"])
    frame.write_csv(tmp_path / "trial.csv")
    arguments = ["evaluate", tmp_path / "trial.csv", "--context", "age", "--out", tmp_path / "out"]
    monkeypatch.setattr("sys.argv", ["solid-bandits", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    out, error = capsys.readouterr()
    assert (ended.value.code, out, error.count("\n")) == (2, "", 1)
    assert error.startswith("solid-bandits: error: log row 33: age must ")
    assert not (tmp_path / "out").exists()


def test_a_context_in_some_rows_alone_is_refused():
    log = logs.from_table({"arm": ["a", "b"], "reward": [1.0, 0.0], "age": [1.0, 2.0]}, context=["age"])
    some = log.with_columns(pl.Series("context", ['{"age":1}', None]))
    with pytest.raises(ValueError, match="log must have a context in every row, or in none"):
        ope.evaluate(some, "uniform", ["dm"])


@pytest.mark.parametrize("alone", [True, False])
def test_a_probability_next_to_0_is_refused_with_its_row(alone):
    probabilities = [[0.4, 0.6]] * 41 + [[1.0, 1e-320]] + [[0.4, 0.6]] * 18
    table = sound() | {
        "probabilities": probabilities,
        "probability": [0.4, 0.6] * 20 + [0.4, 1e-320] + [0.4, 0.6] * 9,
    }
    if alone:
        del table["probabilities"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(
            ValueError,
            match=r"log cannot answer: in row 41 the policy gives probability 0.5 to an arm that the logger",
        ):
            ope.evaluate(table, "uniform")
        assert np.isfinite(ope.evaluate(table, "uniform", ["dm"]).value("dm"))


def test_so_is_one_of_an_arm_that_was_not_chosen():
    probabilities = [[0.4, 0.6]] * 40 + [[1.0, 1e-320]] + [[0.4, 0.6]] * 19
    table = sound() | {
        "probabilities": probabilities,
        "probability": [0.4, 0.6] * 20 + [1.0, 0.6] + [0.4, 0.6] * 9,
    }
    with pytest.raises(
        ValueError, match=r"in row 40 the policy gives probability 0.5 to an arm that the logger gave 1e"
    ):
        ope.evaluate(table, "uniform")
    assert np.isfinite(ope.evaluate(table, "always:a", ["dr"]).value("dr"))


@pytest.mark.parametrize(("features", "reward"), [(1e30, 1.0), (1.0, 1e30), (1e30, 1e30), (1e-300, 1e-300)])
def test_what_is_allowed_gives_numbers(features, reward):
    table = sound()
    table["features"] = (np.array(table["features"]) * features / 4).tolist()
    table["reward"] = [one * reward for one in table["reward"]]
    found = ope.evaluate(table, "always:b", logger="fixed", reward_range=(-1e30, 1e30))
    for row in found.table.iter_rows(named=True):
        assert all(row[name] is None or np.isfinite(row[name]) for name in ("value", "low", "high")), row


@pytest.mark.parametrize("digits", [6, 8])
def test_a_probability_may_be_rounded(digits):
    third = round(1 / 3, digits)
    table = {"arms": [["a", "b"]], "arm": ["a"], "probabilities": [[1 / 3, 2 / 3]], "probability": [third]}
    assert logs.from_table(table)["probability"].to_list() == [third]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reward": ["1", "x"]}, r"log row 1 must have a number in column 'reward', got 'x'"),
        (
            {"probability": ["0.5", "half"]},
            r"log row 1 must have a number in column 'probability', got 'half'",
        ),
        ({"reward": [[1.0], [2.0]]}, r"log must have a number in its column 'reward', got List\(Float64\)"),
        ({"time": ["2026-01-01", "x"]}, r"log row 1 must have a time .* in column 'time', got 'x'"),
        ({"time": ["x", "y"]}, r"log row 0 must have a time .* in column 'time', got 'x'"),
        ({"time": [0.0, float("inf")]}, r"log row 1 must have a time .* in column 'time', got inf"),
        ({"time": [True, False]}, r"log row 0 must have a time .* got True"),
        (
            {"probabilities": [1.0, 1.0]},
            r"log must have lists of numbers in its column 'probabilities', got Float64",
        ),
        ({"features": [[1.0], [2.0]]}, r"log must have lists of lists of numbers in its column 'features'"),
        (
            {"probabilities": [["a", "b"], ["0.5", "0.5"]]},
            r"log row 0 must have lists of numbers in column 'prob",
        ),
        ({"sequence": [1.5, 2.0]}, r"log row 0 must have a whole number in column 'sequence', got 1.5"),
        ({"arms": ["a", "b"]}, r"log must have lists of text in its column 'arms', got String"),
    ],
)
def test_columns_of_other_types_are_named_with_the_row(change, message, tmp_path):
    table = {"arm": ["a", "b"], "reward": [1.0, 0.0], "probability": [0.5, 0.5]} | change
    for call in (logs.from_table, lambda one: ope.evaluate(one, "uniform")):
        with pytest.raises(ValueError, match=f"^{message}") as caught:
            call(table)
        assert "\n" not in str(caught.value)
    if not any(isinstance(one, list) for one in next(iter(change.values()))):
        pl.DataFrame(table).write_csv(tmp_path / "log.csv")
        with pytest.raises(ValueError, match=r"^log (row|must have)") as caught:
            ope.evaluate(tmp_path / "log.csv", "uniform")
        assert "can be read" not in str(caught.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"arms": 5}, "arms must be a list of names, got 5"),
        ({"arms": "ab"}, "arms must be a list of names, got 'ab'"),
        ({"arms": []}, r"arms must be a list of names, got \[\]"),
        ({"arms": ["a", "a"]}, "arms must be distinct names"),
        ({"columns": ["arm"]}, r"columns must map names in a log to names in the table, got \['arm'\]"),
        ({"context": "age"}, "context must be a list of columns, got 'age'"),
        ({"context": 3}, "context must be a list of columns, got 3"),
    ],
)
def test_arguments_of_other_types(more, message):
    with pytest.raises(ValueError, match=message):
        logs.from_table({"arm": ["a", "b"], "reward": [1.0, 0.0]}, **more)


def test_arms_that_only_look_like_numbers_are_text():
    assert logs.from_table({"arm": ["²", "1", "--5"]})["arms"][0].to_list() == ["--5", "1", "²"]
    assert logs.from_table({"arm": [10, 9, -1]})["arms"][0].to_list() == ["-1", "9", "10"]


@pytest.mark.parametrize("call", [logs.write, logs.write_dsjson])
def test_only_logs_are_written(call, tmp_path):
    with pytest.raises(
        ValueError, match=r"log must be a polars DataFrame with the columns of a log, got \{\}"
    ):
        call({}, tmp_path / "log.parquet")
    log = logs.from_table(sound())
    with pytest.raises(ValueError, match="path must be a path, got 5"):
        call(log, 5)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="path must be a path, got 5"):
        logs.read(5)
    with pytest.raises(ValueError, match=r"table must be a log, got \{\}"):
        logs.delete({}, event_id="a")
    with pytest.raises(ValueError, match="log must be a polars DataFrame"):
        logs.with_features({})


def line(**change):
    """One decision in dsjson: the second of three actions, which has probability 0.5."""
    plain = {
        "_label_cost": -1.0,
        "_label_probability": 0.5,
        "_label_Action": 2,
        "_labelIndex": 1,
        "Timestamp": "2026-01-01T00:00:00Z",
        "EventId": "e",
        "a": [2, 1, 3],
        "c": {"_multi": [{"x": 1.0}, {"x": 2.0}, {"x": 3.0}]},
        "p": [0.5, 0.3, 0.2],
        "VWState": {"m": "v"},
    }
    return {name: value for name, value in (plain | change).items() if value is not ...}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"_log": 5}, "_log must be an object, got 5"),
        ({"_log": {"sequence": "x"}}, "_log.sequence must be a whole number of 64 bits, got 'x'"),
        ({"_log": {"sequence": 2**70}}, "_log.sequence must be a whole number of 64 bits, got 118"),
        ({"_log": {"explored": 1}}, "_log.explored must be bool, got 1"),
        ({"VWState": "m"}, "VWState must be an object, got 'm'"),
        ({"c": [1]}, r"c must be an object, got \[1\]"),
        ({"c": {}}, "c._multi must be a list of actions, got None"),
        ({"c": {"_multi": [1, 2, 3]}}, "c._multi must be a list of actions"),
        ({"c": {"_multi": [{"_tag": "a"}] * 3}}, "_tag must be distinct"),
        ({"c": {"_multi": [{"x": 1e300}, {}, {}]}}, "feature x must be finite"),
        ({"a": [1, 0]}, r"a must be different actions from 1 to 3, got \[1, 0\]"),
        ({"a": [2, 1, 4]}, "a must be different actions from 1 to 3"),
        ({"a": [2, 2, 1]}, "a must be different actions from 1 to 3"),
        ({"a": [2, 1.5, 3]}, "a must be different actions from 1 to 3"),
        ({"a": []}, "a must be different actions from 1 to 3"),
        ({"a": 2}, "a must be different actions from 1 to 3, got 2"),
        ({"a": ...}, "KeyError: 'a'"),
        ({"_labelIndex": 3}, "_labelIndex must be an integer from 0 to 2, got 3"),
        ({"_labelIndex": -1}, "_labelIndex must be an integer from 0 to 2, got -1"),
        ({"_labelIndex": 0}, "_labelIndex must be 1, as 2 is the first action in a, got 0"),
        ({"_label_Action": 3}, "_label_Action must be 2, as 2 is the first action in a, got 3"),
        ({"_label_Action": 0}, "_label_Action must be an integer from 1 to 3, got 0"),
        ({"p": [0.5, 0.5]}, "p must be 3 probabilities, as a has actions"),
        ({"p": [0.5, 0.3, 0.3]}, "p must sum to 1"),
        ({"p": [0.5, 0.7, -0.2]}, "p must be >= 0, got -0.2"),
        ({"p": [0.5, None, 0.5]}, "p must be a number, got None"),
        ({"_label_probability": 0.4}, "_label_probability must be 0.5 as in p, got 0.4"),
        ({"_label_probability": "x"}, "_label_probability must be a number, got 'x'"),
        ({"_label_cost": "x"}, "_label_cost must be a number, got 'x'"),
        ({"_label_cost": 1e300}, "_label_cost must be .* got 1e"),
        ({"Timestamp": "soon"}, "ValueError: Invalid isoformat string: 'soon'"),
    ],
)
def test_dsjson_that_does_not_agree_with_itself_is_one_line(change, reason, tmp_path, monkeypatch, capsys):
    path = tmp_path / "log.dsjson"
    path.write_text("".join(json.dumps(one) + "\n" for one in (line(), line(**change))))
    wanted = rf"^log '.*log.dsjson' line 2 is not dsjson \({reason}.*\)$"
    with pytest.raises(ValueError, match=wanted):
        logs.read(path)
    monkeypatch.setattr("sys.argv", ["solid-bandits", "evaluate", str(path)])
    with pytest.raises(SystemExit) as ended:
        main()
    error = capsys.readouterr().err
    assert (ended.value.code, error.count("\n")) == (2, 1)
    assert "line 2 is not dsjson" in error


def test_dsjson_that_is_not_utf8_names_its_line(tmp_path):
    path = tmp_path / "log.dsjson"
    path.write_bytes(json.dumps(line()).encode() + b'\n{"EventId":"\xff"}\n')
    with pytest.raises(
        ValueError, match=r"log\.dsjson' line 2 is not dsjson \(it must be UTF-8, got byte 0xff at"
    ):
        logs.read(path)


def test_dsjson_with_fewer_actions_or_rounded_probabilities_is_read(tmp_path):
    path = tmp_path / "log.dsjson"
    some = [
        line(a=[2, 3], p=[0.5, 0.5]),
        line(_label_probability=0.50000001),
        line(p=..., _label_probability=...),
    ]
    shared = line(c={"x": {"country": "BR"}, "_multi": [{}, {}, {}]})  # a namespace that is called as ours is
    path.write_text(
        "".join(json.dumps(one | {"EventId": str(k)}) + "\n" for k, one in enumerate([*some, shared]))
    )
    log = logs.read(path)
    assert log["arm"].to_list() == ["1"] * 4
    assert log["probabilities"].to_list() == [[0.0, 0.5, 0.5], [0.3, 0.5, 0.2], None, [0.3, 0.5, 0.2]]
    assert log["probability"].to_list() == [0.5, 0.50000001, None, 0.5]
    assert log["context"].to_list() == [None, None, None, '{"x.country":"BR"}']


def test_a_bandits_own_log_passes():
    rng = np.random.default_rng(0)
    bandit = sb.Bandit(sb.LinTS(), dim=2, noise_std=1.0, floor=0.1)
    for number in range(60):
        bandit.decide(rng.normal(size=(int(rng.integers(2, 5)), 2)), event_id=str(number))
        if number % 3:
            bandit.learn(str(number), rng.normal())
    assert check_log(bandit.log()).equals(bandit.log())
