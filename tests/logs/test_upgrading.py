"""What the page on upgrading says of logs of 0.2 holds of a file with the columns that these had."""

from datetime import UTC, datetime

import polars as pl
import pytest

import solid_bandits as sb
from page_code import read_page

OLD = {name: kind for name, kind in sb.logs.COLUMNS.items() if name not in ("arm_features", "batch")}
OLD["context"] = pl.List(pl.Float64)


def old_log(path, **changes):
    """Two decisions as 0.2 wrote them."""
    rows = {
        "event_id": ["a", "b"],
        "sequence": [1, 3],
        "time": [datetime(2026, 1, 1, tzinfo=UTC)] * 2,
        "arms": [["x", "y"]] * 2,
        "features": [[[1.0, 0.0], [0.0, 1.0]]] * 2,
        "context": [None, None],
        "probabilities": [[0.5, 0.5]] * 2,
        "arm": ["x", "y"],
        "probability": [0.5, 0.5],
        "explored": [True, False],
        "reward": [1.0, 0.0],
        "defaulted": [False, False],
        "reward_sequence": [2, 4],
        "reward_time": [datetime(2026, 1, 2, tzinfo=UTC)] * 2,
        "policy": ["RandUCB"] * 2,
        "model_version": ["v"] * 2,
    }
    table = pl.DataFrame(rows | changes, schema=OLD)
    table.write_parquet(path)
    return table


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The names that the page's code defines, run beside such a log."""
    monkeypatch.chdir(tmp_path)
    old_log("log.parquet")
    names = {}
    exec(compile(read_page("upgrading.md").script, "upgrading.md", "exec"), names)
    return names


def test_a_log_is_read_as_it_is_and_a_bandit_learns_from_it(page, tmp_path):
    old, new = pl.read_parquet("log.parquet"), sb.logs.read("log.parquet")
    assert new.columns == list(sb.logs.COLUMNS)
    same = [name for name in OLD if name not in ("context", "policy")]
    assert new.select(same).equals(old.select(same))
    assert (page["bandit"].decisions, page["bandit"].waiting) == (2, 0)
    assert page["bandit"].recall("a").reward == 1.0


def test_contexts_get_names(page):
    old_log("shared.parquet", features=[None, None], context=[[1.0, 2.0], None])
    with pytest.raises(ValueError, match="must have text in its column 'context'"):
        sb.logs.read("shared.parquet")
    found = page["upgraded"]("shared.parquet")
    assert found["context"].to_list() == ['{"x0": 1.0, "x1": 2.0}', None]
    sb.logs.write(found, "new.parquet")
    assert sb.logs.read("new.parquet").equals(found)
