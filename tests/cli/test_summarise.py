"""`solid-bandits summarise`: the table, the files, what is kept, and errors in one line."""

import sys

import pytest

from solid_bandits import cli
from solid_bandits.simulation.summary import Summary

ARGUMENTS = [
    "toy",
    "--policy",
    "greedy",
    "--policy",
    "lints",
    "--horizon",
    "30",
    "--runs",
    "40",
    "--jobs",
    "1",
]


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["solid-bandits", "summarise", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


def test_table_and_files(monkeypatch, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(monkeypatch, *ARGUMENTS, "--out", str(out)) == 0
    printed = capsys.readouterr().out
    assert "99.9%" in printed
    assert "40 runs" in printed
    assert {path.name for path in out.iterdir()} >= {"summary.json", "survival.png"}
    assert Summary.load(out / "summary.json").policies["Greedy"].runs == 40
    before = (out / "summary.json").read_bytes()
    assert run(monkeypatch, *ARGUMENTS, "--out", str(out)) == 0  # nothing is left to do
    assert (out / "summary.json").read_bytes() == before


def test_a_gpu_that_is_not_there_is_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("solid_bandits.gpu.device.find_spec", lambda name: None)
    assert run(monkeypatch, *ARGUMENTS, "--device", "gpu", "--out", str(tmp_path / "out")) == 2
    error = capsys.readouterr().err
    assert error.startswith("solid-bandits: error: device 'gpu' needs numba-cuda")
    assert error.count("\n") == 1
