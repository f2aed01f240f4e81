import json
import math
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import solid_bandits as sb
from solid_bandits import cli
from solid_bandits._internal.parameters import parameters_of
from solid_bandits.cli.listing import argument_words
from solid_bandits.paper.naming import HOMES
from solid_bandits.policies.catalogue import CLASSES

QUICK = ["--horizon", "40", "--runs", "4", "--jobs", "1"]


def run(monkeypatch, capsys, *arguments):
    """Call the command as a shell would; give back status, output and errors."""
    monkeypatch.setattr(sys, "argv", ["solid-bandits", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    captured = capsys.readouterr()
    return caught.value.code, captured.out, captured.err


def test_compare_writes_its_four_files_and_prints_a_table(monkeypatch, capsys, tmp_path):
    out = tmp_path / "out"
    status, printed, progress = run(monkeypatch, capsys, "compare", "toy", *QUICK, "--seed", 3, "--out", out)
    assert status == 0
    assert ": 5 policies, 4 runs of 40 steps each\n" in progress
    assert "21 tasks to do, less than a second on 1 worker " in progress
    for label in ("SOLID", "RandUCB", "LinUCB (paper)", "LinTS (paper)", "LinTS (posterior)"):
        assert label in printed
    assert sorted(p.name for p in out.iterdir()) == [
        ".lock",
        "manifest.json",
        "regret.png",
        "report.html",
        "results.parquet",
    ]
    results = sb.Results.load(out)
    assert results.manifest["configuration"]["seed"] == 3
    policies = results.manifest["configuration"]["policies"]
    assert policies["SOLID"] == sb.Solid().describe()
    assert policies["RandUCB"] == sb.RandUCB().describe()
    label, policy = "LinUCB (paper)", sb.LinUCB(radius="paper")
    expected = sb.simulate(sb.problems.toy(), {label: policy}, 40, runs=4, seed=3, jobs=1)
    assert results.table.filter(policy=label)["regret"].to_list() == expected.table["regret"].to_list()
    # The same command again gives the same results; another one is refused.
    before = (out / "results.parquet").read_bytes()
    assert run(monkeypatch, capsys, "compare", "toy", *QUICK, "--seed", 3, "--out", out)[0] == 0
    assert (out / "results.parquet").read_bytes() == before
    status, _, error = run(monkeypatch, capsys, "compare", "toy", *QUICK, "--seed", 4, "--out", out)
    assert status == 2
    assert "--out" in error
    assert "already holds other results" in error


def test_random_problems_and_files(monkeypatch, capsys, tmp_path):
    named = "random(n_contexts=3, n_arms=5, dim=4, density=0.6, seed=2)"
    chosen = ["--policy", "solid", "--policy", "greedy"]
    status, *_ = run(monkeypatch, capsys, "compare", named, *chosen, *QUICK, "--out", tmp_path / "r")
    assert status == 0
    drawn = sb.problems.random(3, 5, 4, 0.6, seed=2)
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert manifest["configuration"]["problem"]["fingerprint"] == drawn.fingerprint
    assert manifest["configuration"]["problem"]["name"] == named
    assert manifest["configuration"]["policies"]["SOLID"] == sb.Solid.paper_random(5).describe()

    drawn.save(tmp_path / "mine.npz")
    status, *_ = run(
        monkeypatch, capsys, "compare", tmp_path / "mine.npz", *chosen, *QUICK, "--out", tmp_path / "f"
    )
    assert status == 0
    tables = [sb.Results.load(tmp_path / name).table for name in "rf"]
    assert tables[0].equals(tables[1])


def test_bound_prints_and_draws(monkeypatch, capsys, tmp_path):
    arguments = ["bound", "toy(noise_std=1)", "--z", 100, "--z", 1000, "--out", tmp_path / "b"]
    status, printed, _ = run(monkeypatch, capsys, *arguments)
    assert status == 0
    assert "v*" in printed
    assert "z_min" in printed
    data = json.loads((tmp_path / "b" / "bound.json").read_text())
    assert data["value"] == pytest.approx(10, rel=1e-6)
    assert [one["z"] for one in data["at"]] == [100, 1000]
    assert (tmp_path / "b" / "bound.png").stat().st_size > 10_000
    status, _, error = run(monkeypatch, capsys, "bound", "toy(noise_std=1)", "--z", 3)
    assert status == 2
    assert "z is 3.0" in error
    least = float(error.split("give z >=")[1])
    assert least == pytest.approx(sb.bounds.pure_exploration(sb.problems.toy(noise_std=1)).z_min, rel=1e-5)
    # Another problem's bound is not overwritten; the same problem's may be.
    status, _, error = run(monkeypatch, capsys, "bound", "toy", "--out", tmp_path / "b")
    assert (status, "holds the bound of another problem" in error) == (2, True)
    assert json.loads((tmp_path / "b" / "bound.json").read_text()) == data
    assert run(monkeypatch, capsys, "bound", "toy(noise_std=1)", "--out", tmp_path / "b")[0] == 0


def test_compare_draws_the_bound_and_shows_the_diagnostics(monkeypatch, capsys, tmp_path):
    out = tmp_path / "out"
    chosen = ["--policy", "solid", "--policy", "linucb"]
    status, printed, _ = run(
        monkeypatch, capsys, "compare", "toy", *chosen, *QUICK, "--diagnostics", "--out", out
    )
    assert status == 0
    assert "v* = 2.5" in printed
    assert f"{2.5 * math.log(40):.2f}" in printed
    results = sb.Results.load(out)
    assert results.manifest["lower_bound"]["value"] == pytest.approx(2.5, rel=1e-4)
    assert results.diagnostics["policy"].unique().to_list() == ["SOLID"]
    targets = results.manifest["targets"]
    z_min = sb.bounds.pure_exploration(sb.problems.toy()).z_min
    assert targets["n_arms"] == 3
    assert {row["z"] for row in targets["at"]} == set(results.diagnostics["normalisation"])
    for row in targets["at"]:
        assert (row["omega"] is None) == (row["z"] < z_min)


def test_without_a_bound_compare_says_why(monkeypatch, capsys, tmp_path):
    tie = sb.Problem([[[1, 0], [0, 1]]], [1, 1])
    tie.save(tmp_path / "tie.npz")
    status, printed, error = run(
        monkeypatch, capsys, "compare", tmp_path / "tie.npz", *QUICK, "--out", tmp_path / "o"
    )
    assert status == 0
    assert "no lower bound drawn: " in error
    assert "v*" not in printed


BAD = [
    (["compare", "toy", "--policy", "solidd"], "got 'solidd'; did you mean 'solid'?"),
    (["compare", "toy", "--policy", "solid", "--policy", "solid"], "named once"),
    (["compare", "toy", "--horizon", "0"], "horizon must be an integer >= 1, got 0"),
    (["compare", "toy", "--runs", "-3"], "runs must be an integer >= 1, got -3"),
    (["compare", "toy", "--seed", "-1"], "seed must be an integer >= 0, got -1"),
    (["compare", "toy", "--jobs", "0"], "jobs must be an integer >= 1, got 0"),
    (["compare", "toy", "--horizon", "many"], "--horizon"),
    (["compare", "toy(noise_std=0)"], "noise_std must be > 0, got 0"),
    (["compare", "toy(xi=2)"], "xi must be > 0 and < 1, got 2"),
    (
        ["compare", "toy(n_arms=4)"],
        "parameter must be one of xi, first_context_prob, noise_std, got 'n_arms'",
    ),
    (["compare", "toy(0.1)"], "problem must look like name or name(parameter=value), got 'toy(0.1)'"),
    (["compare", "toy(xi=high)"], 'problem needs quotes around text values: xi="high"'),
    (["compare", "random(density=1.5)"], "density must be > 0 and <= 1, got 1.5"),
    (["compare", "random(seed=-1)"], "seed must be an integer >= 0, got -1"),
    (["compare", "random(arms=3)"], "got 'arms'; did you mean 'n_arms'?"),
    (["compare", "gausian(dim=3)"], "got 'gausian(dim=3)'; did you mean 'gaussian'?"),
    (
        ["compare", "toyy"],
        "problem must be toy, random, end-of-optimism, jester, gaussian, sparse, joint, or the name of an .npz file, "
        "or of a .csv or .parquet file of data, got 'toyy'; did you mean 'toy'?",
    ),
    (["compare", "none.npz"], "problem file 'none.npz' cannot be read"),
    (["compare", "toy", "--polcy", "solid"], "--polcy"),
    (["compare"], "problem"),
    (["compair", "toy"], "compair"),
    (["bound", "toy", "--tol", "0"], "tol must be >= 1e-10 and <= 0.5, got 0"),
    (
        ["compare", "toy", "--policy", "linucb(ridge=evidence)"],
        'needs quotes around text values: ridge="evidence", got ',
    ),
    (["compare", "toy", "--policy", "ossb"], "OSSB takes one context, got 2; "),
    (
        ["bound", "gaussian(dim=3)"],
        "end-of-optimism, jester, or the name of an .npz file, got 'gaussian(dim=3)'; streams are for compare and",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input_is_one_line_status_2_and_no_file(monkeypatch, capsys, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    status, printed, error = run(
        monkeypatch, capsys, *arguments, *(["--out", "out"] if len(arguments) > 1 else [])
    )
    assert status == 2
    assert message in error
    assert error.startswith("solid-bandits: error: ")
    assert error.count("\n") == 1
    assert printed == ""
    assert list(tmp_path.iterdir()) == []


def test_broken_problem_files(monkeypatch, capsys, tmp_path):
    path = tmp_path / "p.npz"
    path.write_bytes(b"junk")
    assert "not a whole .npz" in run(monkeypatch, capsys, "compare", path, *QUICK, "--out", tmp_path / "o")[2]
    np.savez(path, features=np.full((1, 2, 2), np.nan), theta=[1, 2])
    error = run(monkeypatch, capsys, "compare", path, *QUICK, "--out", tmp_path / "o")[2]
    assert "features must be finite everywhere, got nan" in error
    assert not (tmp_path / "o").exists()


def test_an_out_that_is_or_lies_below_a_file(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        status, _, error = run(monkeypatch, capsys, "compare", "toy", *QUICK, "--out", out)
        assert status == 2
        assert "is a file" in error
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_out_that_may_not_be_written_to(monkeypatch, capsys, tmp_path):
    tmp_path.chmod(0o500)
    status, _, error = run(monkeypatch, capsys, "compare", "toy", *QUICK, "--out", tmp_path / "o")
    assert (status, "cannot be written to" in error) == (2, True)


def test_ctrl_c_is_one_line_and_leaves_nothing_half_written(monkeypatch, capsys, tmp_path):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("solid_bandits.simulation.simulate.simulate_plan", interrupt)
    status, _, error = run(monkeypatch, capsys, "compare", "toy", *QUICK, "--out", tmp_path / "o")
    assert status == 130
    assert error.splitlines()[-1] == "solid-bandits: error: interrupted before all results were written"
    assert os.listdir(tmp_path / "o") == [".lock"]


def test_brackets_in_names_are_brackets(monkeypatch, capsys, tmp_path):
    out = tmp_path / "o[" / "x]"
    chosen = ["--policy", "greedy", *QUICK, "--out", out]
    status, printed, _ = run(monkeypatch, capsys, "compare", "toy", *chosen)
    assert status == 0
    assert f"written to {out}/" in printed
    out = tmp_path / "b[" / "x]"
    status, printed, _ = run(monkeypatch, capsys, "bound", "toy", "--out", out)
    assert status == 0
    assert f"written to {out}/" in printed


def test_a_directory_in_use_is_refused_before_the_simulation(monkeypatch, capsys, tmp_path):
    from solid_bandits._internal.files import locked

    with locked(tmp_path / "o"):
        status, printed, error = run(monkeypatch, capsys, "compare", "toy", *QUICK, "--out", tmp_path / "o")
    assert (status, printed, error.count("\n")) == (2, "", 1)
    assert "--out: " in error
    assert "is in use by another process" in error
    assert os.listdir(tmp_path / "o") == [".lock"]


def test_more_features_than_memory_are_refused(monkeypatch, capsys, tmp_path):
    status, _, error = run(
        monkeypatch, capsys, "compare", "random(n_arms=1000000000)", "--out", tmp_path / "o"
    )
    assert (status, error.count("\n")) == (2, 1)
    assert "n_arms must leave n_contexts * n_arms * dim at most 134,217,728" in error


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs signals as Unix has them")
def test_sigterm_is_one_line_and_leaves_no_results(tmp_path):
    command = [sys.executable, "-m", "solid_bandits", "compare", "toy", "--policy", "greedy", "--jobs", "2"]
    command += ["--horizon", "10000000", "--runs", "200", "--out", str(tmp_path / "o")]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    while "tasks to do" not in process.stderr.readline():
        assert process.poll() is None
    assert os.listdir(tmp_path / "o") == [".lock"]
    time.sleep(1)
    process.terminate()
    _, error = process.communicate()
    assert process.returncode == 143
    said = [line for line in error.splitlines() if line.startswith("solid-bandits: error: ")]
    assert said == ["solid-bandits: error: terminated before all results were written"]
    assert "Traceback" not in error
    assert os.listdir(tmp_path / "o") == [".lock"]


def test_the_version_is_printed(monkeypatch, capsys):
    assert run(monkeypatch, capsys, "--version")[:2] == (0, f"solid-bandits {sb.__version__}\n")


def test_policies_are_listed(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "300")
    status, printed, _ = run(monkeypatch, capsys, "policies", "--references")
    assert status == 0
    for name in sb.policies:
        assert name in repr(sb.policies)
    assert "Hao, Lattimore" in " ".join(printed.split())
    assert "resolve_every=1" in run(monkeypatch, capsys, "policies")[1]


def test_the_parameters_of_one_policy_are_explained(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "300")
    status, printed, _ = run(monkeypatch, capsys, "policies", "vids")
    assert status == 0
    row = next(line for line in printed.splitlines() if line.startswith("│ samples "))
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "samples",
        "500",
        "an integer from 2 to 1,000,000",
        "M, the number of models drawn for each decision.",
    ]
    status, _, error = run(monkeypatch, capsys, "policies", "vidds")
    assert (status, "did you mean 'vids'?" in error, error.count("\n")) == (2, True, 1)


@pytest.mark.parametrize("kind", CLASSES.values())
def test_the_docstring_of_every_policy_explains_its_parameters(kind):
    assert {one.name for one in parameters_of(kind)} <= set(argument_words(kind))


def test_problems_are_listed_with_their_parameters(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "300")
    status, printed, _ = run(monkeypatch, capsys, "problems")
    assert status == 0
    assert "toy(xi=0.1, first_context_prob=0.5, noise_std=0.5)" in printed
    assert "sparse(n_arms=10, dim=100, density=0.1, noise_std=1.0, fresh=1.0" in printed


def test_help_answers_without_loading_the_compiler():
    script = (
        "import sys, solid_bandits, solid_bandits.cli; print('numba' in sys.modules, 'polars' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    done = subprocess.run(
        [sys.executable, "-m", "solid_bandits", "--help"], capture_output=True, text=True, check=True
    )
    assert "compare" in done.stdout


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ("end-of-optimism(xi=0.2)", lambda: sb.problems.end_of_optimism(xi=0.2)),
        ("gaussian(n_arms=3, dim=2, drift=0.01)", lambda: sb.streams.gaussian(3, 2, drift=0.01)),
        ("sparse(dim=5, density=0.5)", lambda: sb.streams.sparse(dim=5, density=0.5)),
        (
            "joint(context_dim=2, availability=0.7)",
            lambda: sb.streams.joint(context_dim=2, availability=0.7),
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_every_problem_and_stream_can_be_named(monkeypatch, capsys, tmp_path, named, problem):
    out = tmp_path / "out"
    chosen = ["--policy", "linucb(scale=0.5)", "--policy", "greedy"]
    status, *_ = run(monkeypatch, capsys, "compare", named, *chosen, *QUICK, "--out", out)
    assert status == 0
    policies = {"LinUCB (scale=0.5)": sb.LinUCB(scale=0.5), "Greedy": sb.Greedy()}
    same = sb.simulate(problem(), policies, 40, runs=4, jobs=1)
    assert sb.Results.load(out).table.equals(same.table)


def test_jester_is_looked_for_where_it_is_said_to_be(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    status, _, error = run(monkeypatch, capsys, "compare", "jester(source='nowhere.zip')")
    assert (status, error.count("\n")) == (2, 1)
    assert "nowhere.zip" in error


def test_the_help_of_bound_has_only_what_it_takes(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    status, printed, _ = run(monkeypatch, capsys, "bound", "--help")
    assert status == 0
    for word in ("gaussian", "sparse", "joint", "data", "--reward"):
        assert word not in printed
    assert "random(n_arms=16)" in printed
    _, printed, _ = run(monkeypatch, capsys, "compare", "--help")
    assert all(name in printed for name in ("gaussian(drift=0.01)", *HOMES))
    assert "--reward" in printed


def test_a_stream_has_no_bound(monkeypatch, capsys):
    status, _, error = run(monkeypatch, capsys, "bound", "gaussian")
    assert (status, error.count("\n")) == (2, 1)
    assert "got 'gaussian'; streams are for compare and summarise" in error
