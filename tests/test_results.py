import json

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import solid_bandits as sb


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
    assert sorted(p.name for p in (tmp_path / "a" / "b").iterdir()) == ["manifest.json", "results.parquet"]


def test_other_results_are_never_overwritten(tmp_path):
    play().save(tmp_path)
    before = (tmp_path / "results.parquet").read_bytes()
    with pytest.raises(ValueError, match="already holds other results"):
        play(seed=1).save(tmp_path)
    assert (tmp_path / "results.parquet").read_bytes() == before
    play().save(tmp_path)  # the same configuration may be written again: it gives the same
    assert (tmp_path / "results.parquet").read_bytes() == before


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
    with pytest.raises(ValueError, match=r"results\.parquet in .* cannot be read"):
        sb.Results.load(tmp_path)
    pl.DataFrame({"policy": ["x"]}).write_parquet(tmp_path / "results.parquet")
    with pytest.raises(ValueError, match="must have columns"):
        sb.Results.load(tmp_path)
    for broken in ("{", "[]", json.dumps({"format": 999, "configuration": {}})):
        (tmp_path / "manifest.json").write_text(broken)
        with pytest.raises(ValueError, match="cannot be read by this version"):
            sb.Results.load(tmp_path)


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    from solid_bandits._files import write_whole

    target = tmp_path / "x.txt"
    target.write_text("old")

    def fail(path):
        path.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_whole(target, fail)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
