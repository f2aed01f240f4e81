"""Files as streams: the rounds of the frame that was written, however they are cut into pieces."""

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from solid_bandits.streams import files
from solid_bandits.streams.rounds import Rounds

RNG = np.random.default_rng(3)
SIZES = RNG.integers(1, 5, size=60)
LONG = pl.DataFrame(
    {
        "round": np.repeat(np.arange(60), SIZES),
        "arm": np.concatenate([RNG.permutation(4)[:size] for size in SIZES]),
        "x": RNG.normal(size=SIZES.sum()),
        "open": RNG.random(SIZES.sum()) < 0.8,
        "reward": RNG.normal(size=SIZES.sum()),
    }
).with_columns(open=pl.col("open") | (pl.int_range(pl.len()).over("round") == 0))
WIDE = pl.DataFrame(
    {
        "x": RNG.normal(size=50),
        "gain_a": RNG.normal(size=50),
        "gain_b": RNG.normal(size=50),
        "name": RNG.integers(3, size=50),
    }
)
CASES = {
    "wide": (WIDE, {"reward": "gain_{arm}", "context": "x"}),
    "label": (WIDE, {"label": "name", "context": ["x", "gain_a"]}),
    "long": (
        LONG,
        {"reward": "reward", "round": "round", "arm": "arm", "features": "x", "available": "open"},
    ),
    "long without names": (
        LONG,
        {"reward": "reward", "round": "round", "features": "x", "available": "open"},
    ),
}


def all_rounds(stream):
    arrays, names = [], []
    for block in stream.blocks(0, 0):  # each is written over the one before
        arrays.append([one.copy() for one in block.arrays])
        names += [str(name) for name in block.event_ids]
    return [*(np.concatenate(parts) for parts in zip(*arrays, strict=True)), names]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rows", [3, 1000])
def test_a_file_is_the_frame_in_order(case, ending, rows, tmp_path, monkeypatch):
    frame, asked = CASES[case]
    # Pieces of a few rows, so that rounds lie across their ends.
    monkeypatch.setattr(files, "CELLS_AT_ONCE", rows * 5)
    path = tmp_path / f"data.{ending}"
    frame.write_csv(path) if ending == "csv" else frame.write_parquet(path, row_group_size=7)
    stream = sb.streams.from_file(path, **asked)
    expected = sb.streams.from_frame(frame, **asked, shuffle=False)
    assert (stream.dim, stream.n_arms, stream.length) == (expected.dim, expected.n_arms, expected.length)
    assert stream.arm_names == expected.arm_names
    for one, two in zip(all_rounds(expected), all_rounds(stream), strict=True):
        assert np.array_equal(one, two)
    assert np.allclose(stream.fit.theta, expected.fit.theta)
    results = [sb.simulate(one, {"Greedy": sb.Greedy()}, runs=1, jobs=1).table for one in (stream, expected)]
    assert results[0].equals(results[1])


def test_every_run_has_the_order_of_the_file(tmp_path):
    WIDE.write_csv(tmp_path / "data.csv")
    stream = sb.streams.from_file(tmp_path / "data.csv", reward="gain_{arm}", context="x")
    table = sb.simulate(stream, {"Greedy": sb.Greedy()}, runs=2, jobs=1).table
    assert table.filter(run=0).drop("run").equals(table.filter(run=1).drop("run"))


def test_a_file_is_never_in_memory_as_a_whole(tmp_path, monkeypatch):
    """Blocks are of the same size however long the file is."""
    frame = pl.DataFrame({"x": np.arange(300_000.0), "gain_a": np.zeros(300_000), "gain_b": np.ones(300_000)})
    frame.write_parquet(tmp_path / "data.parquet")
    largest = 0
    stream = sb.streams.from_file(tmp_path / "data.parquet", reward="gain_{arm}", context="x")
    for piece in stream._pieces():
        largest = max(largest, len(piece.counts))
    assert largest <= 2**16
    assert all(isinstance(block, Rounds) and len(block) <= 4096 for block in stream.blocks(0, 0))


BAD = {
    "text": (
        "x,gain_a,gain_b\n1,2,3\n4,five,6\n",
        "'data.csv': column 'gain_a' must hold finite .* got 'five' in row 1",
    ),
    "nothing": ("x,gain_a,gain_b\n1,2,3\n,5,6\n", "column 'x' must hold finite .* got nothing in row 1"),
    "NaN": ("x,gain_a,gain_b\n1,2,NaN\n", "column 'gain_b' must hold finite .* got 'NaN' in row 0"),
    "no column": ("gain_a,gain_b\n1,2\n", "'data.csv': column 'x' is missing; there are 'gain_a', 'gain_b'"),
    "no rows": ("x,gain_a,gain_b\n", "path must have rows"),
    "nothing at all": ("", "'data.csv' cannot be read"),
    "ragged": ("x,gain_a,gain_b\n1,2,3,4\n", "'data.csv' cannot be read"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_get_one_line(case, tmp_path):
    text, message = BAD[case]
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        sb.streams.from_file(tmp_path / "data.csv", reward="gain_{arm}", context="x")
    assert "\n" not in str(caught.value)


def test_a_bad_row_far_into_a_file_has_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CELLS_AT_ONCE", 100)
    rewards = [1.0] * 5000
    rewards[4321] = float("nan")
    frame = pl.DataFrame({"x": np.zeros(5000), "gain_a": rewards})
    for ending in ("csv", "parquet"):
        path = tmp_path / f"data.{ending}"
        frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
        with pytest.raises(ValueError, match="row 4321"):
            sb.streams.from_file(path, reward="gain_{arm}", context="x")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("data.xlsx", "path must end in .csv or .parquet, got"),
        ("none.csv", "path must be a file, got .*none.csv"),
    ],
)
def test_bad_paths(name, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        sb.streams.from_file(tmp_path / name, reward="gain_{arm}")


def test_a_damaged_parquet_file(tmp_path):
    (tmp_path / "data.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(ValueError, match=r"'data.parquet' cannot be read"):
        sb.streams.from_file(tmp_path / "data.parquet", reward="gain_{arm}")


def test_rows_of_a_round_that_do_not_follow_each_other(tmp_path):
    path = tmp_path / "by-item.csv"
    rows = [f"{visit},{item},{visit % 2},{item}" for item in range(3) for visit in range(4)]
    path.write_text("visit,item,clicked,price\n" + "\n".join(rows) + "\n")
    with pytest.raises(
        ValueError, match=r"rows of a round must follow each other, got 4 values of 'visit' in 12 places"
    ):
        sb.streams.from_file(path, reward="clicked", round="visit", arm="item", features=["price"])
