import hashlib
import json
import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import solid_bandits as sb
from solid_bandits.simulation.plan import Plan
from solid_bandits.simulation.results import claim


@dataclass(frozen=True)
class Capped(sb.Greedy):
    cap: Any = None


def play(runs=12, seed=0, horizon=50):
    policies = {"UCB": sb.LinUCB(), "Greedy": sb.Greedy()}
    return sb.simulate(sb.problems.toy(), policies, horizon, runs=runs, seed=seed, jobs=1)


def test_final_is_the_last_step_in_the_order_given():
    final = play().final()
    assert final["policy"].to_list() == ["UCB", "Greedy"]
    assert final["step"].to_list() == [50, 50]
    assert final["explored"].to_list()[1] == 0


def test_save_and_load_give_the_same(tmp_path):
    results = play()
    results.save(tmp_path / "a" / "b")
    again = sb.Results.load(tmp_path / "a" / "b")
    assert_frame_equal(again.table, results.table, check_exact=True)
    assert again.manifest == results.manifest
    assert sorted(os.listdir(tmp_path / "a" / "b")) == [".lock", "manifest.json", "results.parquet"]


def test_other_results_are_never_overwritten(tmp_path):
    play().save(tmp_path)
    before = (tmp_path / "results.parquet").read_bytes()
    with pytest.raises(ValueError, match="already holds other results"):
        play(seed=1).save(tmp_path)
    assert (tmp_path / "results.parquet").read_bytes() == before
    play().save(tmp_path)  # the same configuration may be written again: it gives the same
    assert (tmp_path / "results.parquet").read_bytes() == before


def test_a_parameter_that_is_not_finite_is_no_other(tmp_path):
    def written(value):
        plan = Plan(sb.problems.toy(), {"own": Capped(cap=value)}, horizon=1, runs=1, seed=0)
        return plan.configuration()

    values = [None, math.inf, -math.inf, math.nan, [math.nan], [math.inf], [None], np.array([math.nan])]
    told = [json.dumps(written(value)["policies"]) for value in values]
    assert len(set(told)) == len(values) - 1
    assert told[-1] == told[4]  # an array is written as a list
    sb.simulate(sb.problems.toy(), {"own": Capped()}, 1, runs=1, seed=0, jobs=1).save(tmp_path)
    for value in values[1:4]:
        with pytest.raises(ValueError, match="other results"), claim(tmp_path, written(value)):
            pass
    with claim(tmp_path, written(None)):
        pass


def test_what_cannot_be_read_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"holds no manifest\.json"):
        sb.Results.load(tmp_path)
    (tmp_path / "results.parquet").write_bytes(b"mine")
    with pytest.raises(ValueError, match="without a manifest"):
        play().save(tmp_path)
    (tmp_path / "results.parquet").unlink()
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file"):
        play().save(tmp_path / "file")
    play().save(tmp_path)
    (tmp_path / "results.parquet").write_bytes(b"cut off")
    with pytest.raises(
        ValueError, match=r"results\.parquet in .* is not the table that manifest\.json describes"
    ):
        sb.Results.load(tmp_path)
    (tmp_path / "results.parquet").unlink()
    with pytest.raises(ValueError, match=r"results\.parquet in .* cannot be read"):
        sb.Results.load(tmp_path)
    for broken in ("{", "[]", json.dumps({"format": 999, "configuration": {}}), "[" * 100_000):
        (tmp_path / "manifest.json").write_text(broken)
        with pytest.raises(ValueError, match="cannot be read by this version"):
            sb.Results.load(tmp_path)


TAMPERED = {
    "smaller": lambda table: table.with_columns(pl.col("regret") * 0.1),
    "without a policy": lambda table: table.filter(pl.col("policy") != "UCB"),
    "without a run": lambda table: table.filter(pl.col("run") != 3),
    "with a row more": lambda table: pl.concat([table, table.head(1)]),
    "with a row for another": lambda table: pl.concat([table.head(table.height - 1), table.head(1)]),
    "without an end": lambda table: table.filter(pl.col("step") < 50),
    "with other columns": lambda table: table.rename({"regret": "regrets"}),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_table_that_is_not_the_one_of_the_manifest_is_refused(tmp_path, name):
    results = play()
    results.save(tmp_path)
    table = TAMPERED[name](results.table)
    table.write_parquet(tmp_path / "results.parquet")
    with pytest.raises(ValueError, match="its hash differs"):
        sb.Results.load(tmp_path)
    if name != "smaller":  # also under a manifest that was made to fit
        with pytest.raises(ValueError, match="these results cannot be saved"):
            sb.Results(table, results.manifest).save(tmp_path / "other")
        assert os.listdir(tmp_path / "other") == [".lock"]
        edited = json.loads((tmp_path / "manifest.json").read_text())
        digest = hashlib.sha256((tmp_path / "results.parquet").read_bytes()).hexdigest()
        edited["tables"]["results.parquet"] = {"sha256": digest, "rows": table.height}
        (tmp_path / "manifest.json").write_text(json.dumps(edited))
        with pytest.raises(ValueError, match=r"results\.parquet in .* must have"):
            sb.Results.load(tmp_path)
    results.save(tmp_path)  # whoever has the results may put them in order
    assert sb.Results.load(tmp_path).table.equals(results.table)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("configuration", []),
        ("configuration.horizon", "50"),
        ("configuration.horizon", 0),
        ("configuration.runs", 10**30),
        ("configuration.runs", True),
        ("configuration.policies", {}),
        ("configuration.policies", ["UCB", "Greedy"]),
        ("configuration.problem", "toy"),
        ("configuration.diagnostics", 1),
        ("configuration.diagnostics", True),
        ("versions", {"numpy": 2}),
        ("seconds", {"UCB": "1"}),
        ("seconds", {"somebody": 1.0}),
        ("wall_seconds", None),
        ("started", 3),
        ("tables", {}),
        ("tables", {"../x.parquet": {"sha256": "", "rows": 0}}),
        ("lower_bound", {"value": "2"}),
        ("lower_bound", 2.5),
    ],
)
def test_fields_of_the_wrong_type_are_named(tmp_path, field, value):
    play().save(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    *above, last = field.split(".")
    (manifest[above[0]] if above else manifest)[last] = value
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(
        ValueError, match=rf"manifest\.json in .* \((tables|{last}|{above[0] if above else last})"
    ) as caught:
        sb.Results.load(tmp_path)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="cannot be read by this version"):
        play().save(tmp_path)


def test_one_writer_at_a_time(tmp_path):
    results = play()
    with claim(tmp_path / "out", results.manifest["configuration"]) as write:
        assert os.listdir(tmp_path / "out") == [".lock"]
        with pytest.raises(ValueError, match="is in use by another process"):
            results.save(tmp_path / "out")
        write(results)
    assert sorted(os.listdir(tmp_path / "out")) == [".lock", "manifest.json", "results.parquet"]


def test_what_a_killed_writer_left_is_finished_or_undone(tmp_path):
    results = play()
    results.save(tmp_path)
    table = (tmp_path / "results.parquet").read_bytes()
    # Killed before the manifest had its name: the table is that of the pending one, and it is finished.
    (tmp_path / "manifest.json").replace(tmp_path / ".manifest.json.new")
    with pytest.raises(ValueError, match="holds no manifest"):
        sb.Results.load(tmp_path)
    with pytest.raises(ValueError, match="already holds other results"):
        play(seed=1).save(tmp_path)
    assert sb.Results.load(tmp_path).table.equals(results.table)
    # Killed before the table had its name: nothing is there.
    (tmp_path / "manifest.json").replace(tmp_path / ".manifest.json.new")
    (tmp_path / "results.parquet").replace(tmp_path / ".results.parquet.0123abcd.parquet")
    play(seed=1).save(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".lock", "manifest.json", "results.parquet"]
    assert (tmp_path / "results.parquet").read_bytes() != table


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    from solid_bandits._internal.files import write_whole

    target = tmp_path / "x.txt"
    target.write_text("old")

    def fail(path):
        path.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_whole(target, fail)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
