"""The code of the page on streams, run as a reader would."""

import polars as pl
import pytest

import solid_bandits as sb
from page_code import read_page
from solid_bandits import cli
from solid_bandits.streams.decision_table import SCHEMA


def test_the_code_runs_and_the_commands_find_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = read_page("streams.md")
    names = {}
    script = page.script.replace("runs=5)", "runs=5, jobs=1)").replace("runs=3)", "runs=3, jobs=1)")
    exec(compile(script.replace("runs=2, record", "runs=2, jobs=1, record"), "streams.md", "exec"), names)
    assert isinstance(names["results"], sb.Results)
    names["trips"].write_parquet("trips.parquet")
    names["offers"].write_csv("offers.csv")
    first, second = page.commands
    for command in (first, second):
        assert command.startswith("solid-bandits compare ")
    arguments = [word.strip("'") for word in second.split()[1:]]
    monkeypatch.setattr(
        "sys.argv", ["solid-bandits", *arguments, "--jobs", "1", "--runs", "2", "--policy", "greedy"]
    )
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    assert "reward per round" in capsys.readouterr().out
    log = pl.read_parquet("offers/decisions.parquet")
    assert log["event_id"].unique().sort().to_list() == ["1", "2"]
    loaded = sb.Results.load("offers")
    assert loaded.manifest["configuration"]["problem"]["arms"] == ["milk", "rice", "tea"]


def test_the_table_of_columns_is_the_files():
    from page_code import DOCS

    text = (DOCS / "streams.md").read_text(encoding="utf-8").split("## Recorded decisions")[1]
    named = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert named == list(SCHEMA)
