"""What a log is called says what it is."""

import pytest

import solid_bandits as sb


@pytest.mark.parametrize("name", ["log.csv", "log.dsjson", "log.JSON"])
def test_parquet_is_not_written_under_another_ending(tmp_path, name):
    log = sb.logs.from_table({"arm": ["a"], "reward": [1.0], "probability": [0.5]})
    with pytest.raises(ValueError, match=r"path must end in \.parquet, got"):
        sb.logs.write(log, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_endings_are_read_in_any_case(tmp_path):
    log = sb.logs.from_table({"arm": ["a", "b"] * 20, "reward": [1.0, 0.0] * 20, "probability": [0.5] * 40})
    flat = log.select("event_id", "arm", "reward", "probability")
    flat.write_csv(tmp_path / "T.CSV")
    sb.logs.write_dsjson(log, tmp_path / "L.JSON")
    assert sb.logs.read(tmp_path / "L.JSON").equals(log)
    assert sb.logs.read(tmp_path / "T.CSV")["reward"].equals(log["reward"])
    for name in ("T.CSV", "L.JSON"):
        found = sb.ope.evaluate(tmp_path / name, "uniform")
        assert found.value("ips") == sb.ope.evaluate(log, "uniform").value("ips")
