"""`solid-bandits report` on any directory; experiments without claims; the list of policies; the bare command."""

import sys

import pytest

import solid_bandits as sb
from made import LABELS, make_results
from small import TOML, written
from solid_bandits import cli
from solid_bandits.simulation.summary import Summary

NO_CLAIMS = TOML.partition("[[claim]]")[0]


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["solid-bandits", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, *capsys.readouterr()


def test_results_saved_by_hand(monkeypatch, capsys, tmp_path):
    make_results(LABELS, lower_bound={"value": 2.5}).save(tmp_path / "out")
    status, printed, error = run(monkeypatch, capsys, "report", tmp_path / "out")
    assert (status, error) == (0, "")
    assert "LinTS posterior" in printed
    assert "v* = 2.50000" in printed
    assert {"regret.png", "report.html"} <= {one.name for one in (tmp_path / "out").iterdir()}


def test_what_compare_wrote_comes_out_the_same(monkeypatch, capsys, tmp_path):
    chosen = ["--policy", "greedy", "--policy", "linucb", "--horizon", 40, "--runs", 4, "--jobs", 1]
    _, first, _ = run(monkeypatch, capsys, "compare", "toy", *chosen, "--out", tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_bytes()
    (tmp_path / "out" / "report.html").unlink()
    status, again, _ = run(monkeypatch, capsys, "report", tmp_path / "out")
    assert status == 0
    assert again.splitlines()[:-1] == first.splitlines()[:-1]
    assert (tmp_path / "out" / "report.html").read_bytes() == page


def test_a_summary(monkeypatch, capsys, tmp_path):
    sb.summarise(sb.problems.toy(), sb.Greedy(), 20, runs=30, jobs=1, path=tmp_path / "summary.json")
    status, printed, _ = run(monkeypatch, capsys, "report", tmp_path)
    assert status == 0
    assert "99.9%" in printed
    assert (tmp_path / "survival.png").exists()


def test_streams_can_be_summarised(monkeypatch, capsys, tmp_path):
    (tmp_path / "data.csv").write_text("x,gain_a,gain_b\n" + "0.5,1,0\n0.2,0,1\n" * 10, encoding="utf-8")
    columns = ["--reward", "gain_{arm}", "--context", "x"]
    for source, given, steps in [("gaussian(n_arms=3)", ["--horizon", 25], 25), ("data.csv", columns, 20)]:
        monkeypatch.chdir(tmp_path)
        out = tmp_path / f"out-{source}"
        chosen = ["--policy", "greedy", "--runs", 30, "--jobs", 1, "--out", out]
        status, _, error = run(monkeypatch, capsys, "summarise", source, *given, *chosen)
        assert status == 0, error
        assert Summary.load(out / "summary.json").configuration["horizon"] == steps


def test_a_directory_without_results_says_what_would_do(monkeypatch, capsys, tmp_path):
    status, _, error = run(monkeypatch, capsys, "report", tmp_path)
    assert (status, error.count("\n")) == (2, 1)
    assert (
        "holds no results; give a directory that compare, reproduce, summarise or results.save wrote" in error
    )


def test_an_experiment_without_claims_shows_regret(monkeypatch, capsys, tmp_path):
    path = written(tmp_path, horizon=20, text=NO_CLAIMS)
    out = tmp_path / "out"
    status, printed, error = run(monkeypatch, capsys, "reproduce", path, "--out", out, "--jobs", 1)
    assert status == 0, error
    assert "verdict" not in printed
    for part, folder in [("Small: even", "even"), ("Small: new", "new")]:
        assert part in printed
        best = sb.Results.load(out / "small" / folder).final().sort("mean")["policy"][0]
        lines = map(str.strip, printed.partition(part)[2].splitlines())
        assert next(line for line in lines if line.startswith(("LinUCB", "Greedy"))).startswith(best)


@pytest.mark.parametrize("width", [40, 80, 129, 130, 200])
def test_names_of_policies_are_never_cut(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    status, printed, _ = run(monkeypatch, capsys, "policies", "--references")
    assert status == 0
    cells = [line.split("│")[1].strip() for line in printed.splitlines() if line.startswith("│")]
    assert [cell for cell in cells if cell] == list(sb.policies)
    assert max(map(len, printed.splitlines())) <= width


def test_the_bare_command_shows_help_with_three_examples(monkeypatch, capsys):
    status, printed, error = run(monkeypatch, capsys)
    assert (status, error) == (0, "")
    lines = [line.strip() for line in printed.splitlines()]
    examples = [line for line in lines if line.startswith("solid-bandits ")]
    assert len(examples) == 3
    assert {line.split()[1] for line in examples} <= {"compare", "bound", "evaluate"}
    assert printed.strip() == run(monkeypatch, capsys, "--help")[1].strip()
