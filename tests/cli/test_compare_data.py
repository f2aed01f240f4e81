"""`solid-bandits compare` on files of data: what it writes, and one line for what will not do, with nothing written."""

import warnings

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from solid_bandits import cli

FRAME = pl.DataFrame(
    {
        "x": np.linspace(-1, 1, 40),
        "gain_a": np.linspace(0, 1, 40),
        "gain_b": np.linspace(1, 0, 40),
        "kind": ["good", "bad"] * 20,
        "open_a": [1, 1, 0, 1] * 10,
        "open_b": [1, 0, 1, 1] * 10,
    }
)


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr("sys.argv", ["solid-bandits", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    captured = capsys.readouterr()
    return ended.value.code, captured.out, captured.err


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.write_csv("data.csv")
    FRAME.write_parquet("data.parquet")
    return tmp_path


def test_a_file_is_played_and_reported(monkeypatch, capsys, folder):
    asked = [
        "--reward",
        "gain_{arm}",
        "--context",
        "x",
        "--available",
        "open_{arm}",
        "--policy",
        "greedy",
        "--policy",
        "randucb",
    ]
    status, printed, _ = run(
        monkeypatch,
        capsys,
        "compare",
        "data.parquet",
        *asked,
        "--runs",
        3,
        "--jobs",
        1,
        "--out",
        "out",
        "--record",
        "decisions",
    )
    assert status == 0
    assert "reward per round" in printed
    assert "v*" not in printed
    assert "intervals cover the policies' own random numbers alone" in " ".join(printed.split())
    written = {
        ".lock",
        "results.parquet",
        "manifest.json",
        "regret.png",
        "report.html",
        "stream.png",
        "arms.parquet",
        "calibration.parquet",
        "decisions.parquet",
    }
    assert {one.name for one in (folder / "out").iterdir()} == written
    results = sb.Results.load(folder / "out")
    stream = sb.streams.from_file("data.csv", reward="gain_{arm}", context="x", available="open_{arm}")
    same = sb.simulate(stream, {"Greedy": sb.Greedy(), "RandUCB": sb.RandUCB()}, runs=3, jobs=1)
    assert results.horizon == 40
    assert results.table.equals(same.table)
    assert pl.read_parquet(folder / "out" / "decisions.parquet").height == 2 * 3 * 40
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert 'id="stream-shares"' in page
    assert "regret to ridge fit" in page


BAD = [
    (["data.csv", "--context", "x"], "reward or label must be given, and not both, got neither"),
    (
        ["data.csv", "--label", "kind", "--context", "y"],
        "'data.csv': column 'y' is missing; there are 'x', 'gain_a'",
    ),
    (["data.csv", "--label", "kind", "--context", "kind"], "column 'kind' must hold finite numbers"),
    (
        ["bad.csv", "--reward", "gain_{arm}", "--context", "x"],
        "'bad.csv': column 'gain_b' must hold finite numbers of at most 1e+30 in size, got 'NaN' in row 7",
    ),
    (
        ["closed.csv", "--reward", "gain_{arm}", "--available", "open_{arm}"],
        "'closed.csv': each round must have an available arm, got none in row 11",
    ),
    (
        ["data.csv", "--label", "kind", "--context", "x", "--policy", "solid"],
        "policies must decide from features to play a stream, got Solid",
    ),
    (
        ["data.csv", "--label", "kind", "--context", "x", "--horizon", "41"],
        "horizon must be at most 40, the rounds of the stream, got 41",
    ),
    (
        ["data.csv", "--label", "kind", "--context", "x", "--record", "all"],
        "record must be one of decisions, got 'all'",
    ),
    (
        ["data.csv(label='kind')"],
        "must be toy, random, end-of-optimism, jester, gaussian, sparse, joint, or the name of an .npz file",
    ),
    (
        ["toy", "--reward", "gain_{arm}"],
        "reward must be left out, as it is about files of data, got 'gain_{arm}' for toy",
    ),
    (["none.csv", "--label", "kind"], "path must be a file, got 'none.csv', which is none"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_what_will_not_do_is_one_line_and_nothing_is_written(monkeypatch, capsys, folder, arguments, message):
    rewards = FRAME["gain_b"].to_list()
    rewards[7] = float("nan")
    FRAME.with_columns(gain_b=pl.Series(rewards)).write_csv("bad.csv")
    closed = pl.Series([int(row != 11) for row in range(40)])
    FRAME.with_columns(open_a=closed, open_b=closed).write_csv("closed.csv")
    before = sorted(folder.iterdir())
    status, printed, error = run(monkeypatch, capsys, "compare", *arguments, "--out", "out")
    assert (status, printed) == (2, "")
    assert message in error
    assert error.count("\n") == 1
    assert sorted(folder.iterdir()) == before


def test_bound_takes_no_data(monkeypatch, capsys, folder):
    status, _, error = run(monkeypatch, capsys, "bound", "data.parquet")
    assert status == 2
    assert error.count("\n") == 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_columns_of_very_different_spread_are_named_in_one_line(monkeypatch, capfd, tmp_path, jobs):
    """Once, whatever the number of processes, and as errors are printed; results are written all the same."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONWARNINGS", "default")  # of the processes that play
    FRAME.with_columns(income=35_000 * (2 + pl.col("x"))).write_csv("data.csv")
    data = tmp_path / "data.csv"  # processes that play may be elsewhere
    asked = ["--reward", "gain_{arm}", "--context", "x", "--context", "income", "--policy", "greedy"]
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        status, _, said = run(
            monkeypatch, capfd, "compare", data, *asked, "--runs", 4, "--jobs", jobs, "--out", "out"
        )
    assert status == 0, said
    (line,) = [one for one in said.splitlines() if "spread" in one]
    assert line.startswith(
        "solid-bandits: warning: features are of very different spread: arms on offer differ in "
    )
    assert "'income' by up to 105,000, and in 'x' by up to 1.00, in 'intercept' by up to 1.00." in line
    assert (tmp_path / "out" / "results.parquet").exists()
    assert warnings.showwarning is not cli._show_warning


def test_columns_of_values_are_named(monkeypatch, capsys, folder):
    """Words are played as `sb.Features` makes features of them; a type may be told."""
    asked = [
        "--reward",
        "gain_{arm}",
        "--named",
        "x:number",
        "--named",
        "kind",
        "--policy",
        "greedy",
        "--runs",
        2,
    ]
    status, printed, complained = run(
        monkeypatch, capsys, "compare", "data.csv", *asked, "--out", folder / "out", "--jobs", 1
    )
    assert status == 0, complained
    assert "FileStream(40 rounds, arms=2, dim=8)" in printed + complained
    status, _, complained = run(
        monkeypatch, capsys, "compare", "data.csv", *asked, "--context", "x", "--out", folder / "other"
    )
    assert status != 0
    assert "context must be left out where named is given" in " ".join(complained.replace("│", " ").split())
    status, _, complained = run(
        monkeypatch,
        capsys,
        "compare",
        "data.csv",
        "--reward",
        "gain_{arm}",
        "--named",
        "x:size",
        "--out",
        folder / "o",
    )
    assert status != 0
    assert "type of 'x' in context must be one of" in " ".join(complained.replace("│", " ").split())
