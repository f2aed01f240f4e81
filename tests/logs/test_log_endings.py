"""What a log is called says what it is."""

import pytest

import solid_bandits as sb


@pytest.mark.parametrize("name", ["log.csv", "log.dsjson", "log.JSON"])
def test_parquet_is_not_written_under_another_ending(tmp_path, name):
    log = sb.logs.from_table({"arm": ["a"], "reward": [1.0], "probability": [0.5]})
    with pytest.raises(ValueError, match=r"path must end in \.parquet, got"):
        sb.logs.write(log, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
