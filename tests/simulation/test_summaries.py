"""Summaries: those of the runs themselves, in any number of processes; files of them."""

import json

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace

import solid_bandits as sb
from solid_bandits._internal.decoding import encode
from solid_bandits.report.figure import save_figure
from solid_bandits.report.tails import survival_figure, tails_rows
from solid_bandits.simulation import block
from solid_bandits.simulation.summary import PolicySummary, Summary

POLICIES = {"LinTS": sb.LinTS(), "Greedy": sb.Greedy()}
PLAN = {"horizon": 60, "runs": 45, "seed": 3}


@pytest.fixture(scope="module")
def summary():
    return sb.summarise(sb.problems.toy(), POLICIES, jobs=1, **PLAN)


@pytest.fixture(scope="module")
def results():
    return sb.simulate(sb.problems.toy(), POLICIES, jobs=1, **PLAN)


def ends(results, policy):
    last = results.table.filter((pl.col("policy") == policy) & (pl.col("step") == PLAN["horizon"]))
    return last.sort("run")["regret"].to_numpy()


def test_means_are_those_of_the_runs(summary, results):
    table, wanted = summary.table(), results.summary()
    assert table["policy"].to_list() == wanted["policy"].to_list()
    for column in ("mean", "low", "high"):
        np.testing.assert_allclose(table[column], wanted[column], rtol=1e-10, atol=1e-12)


def test_quantiles_and_worst_runs_are_those_of_the_runs(summary, results):
    for policy in POLICIES:
        regret = ends(results, policy)
        found = summary.quantiles((0.5, 0.9, 0.999)).filter(policy=policy)
        wanted = np.quantile(regret, [0.5, 0.9, 0.999], method="inverted_cdf")
        np.testing.assert_allclose(
            found["regret"], wanted, rtol=1e-12
        )  # all runs are among the worst that are kept
        worst = summary.worst.filter(policy=policy)
        assert worst["regret"].to_list() == sorted(regret, reverse=True)
        assert (regret[worst["run"].to_numpy()] == worst["regret"].to_numpy()).all()


def test_shares_above(summary, results):
    regret = ends(results, "Greedy")
    level = float(np.sort(regret)[30]) * 1.02  # a little above, so that its bin lies below
    found = summary.share_above("Greedy", level * 1.0001)
    assert found.value == pytest.approx((regret > level * 1.02).mean(), abs=0.1)
    assert summary.share_above("Greedy", 1e9).value == 0.0
    assert summary.share_above("Greedy", 0.0).value == (regret > 0).mean()
    assert summary.share_above("Greedy", -1.0).value == 1.0
    assert summary.survival("Greedy")["share"][0] == pytest.approx((regret > 0).mean())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one: one.survival("zz"), "policy must be one of LinTS, Greedy, got 'zz'"),
        (lambda one: one.survival(["LinTS"]), "policy must be one of LinTS, Greedy"),
        (lambda one: one.share_above("greedy", 1.0), "policy must be one of .* did you mean 'Greedy'"),
        (lambda one: one.share_above("Greedy", float("nan")), "regret must be finite, got nan"),
        (lambda one: one.share_above("Greedy", "1"), "regret must be a number, got '1'"),
        (lambda one: one.quantiles(5), "shares must be a list of numbers, got 5"),
    ],
)
def test_what_a_summary_cannot_be_asked(summary, call, message):
    with pytest.raises(ValueError, match=message):
        call(summary)


def test_any_number_of_processes_gives_the_same(summary):
    other = sb.summarise(sb.problems.toy(), POLICIES, jobs=2, **PLAN)
    for policy, one in summary.policies.items():
        assert encode(replace(one, seconds=0.0)) == encode(replace(other.policies[policy], seconds=0.0))


def test_a_run_is_played_again(summary):
    row = summary.worst.row(0, named=True)
    again = sb.simulate(
        sb.problems.toy(),
        {"one": POLICIES[row["policy"]]},
        horizon=60,
        runs=1,
        seed=3,
        first_run=row["run"],
        jobs=1,
    )
    assert again.table["regret"][-1] == row["regret"]
    assert set(again.table["run"]) == {row["run"]}


def test_results_with_other_numbers_of_runs_are_saved_and_read(tmp_path):
    results = sb.simulate(sb.problems.toy(), {"one": sb.Greedy()}, horizon=5, runs=2, first_run=9, jobs=1)
    results.save(tmp_path / "r")
    assert sb.Results.load(tmp_path / "r").table.equals(results.table)


def test_files(summary, tmp_path):
    path = tmp_path / "summary.json"
    summary.save(path)
    read = Summary.load(path)
    assert read.final().equals(summary.final())
    assert read.configuration == summary.configuration


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.pop("policies"), "policies is missing"),
        (lambda content: content.update(format=99), "format must be 2, got 99"),
        (lambda content: content["policies"]["Greedy"]["regret"].update(count=3), "counts must sum to runs"),
        (
            lambda content: content["policies"]["Greedy"]["regret"].update(mean=[1.0]),
            "one entry for each of steps",
        ),
        (
            lambda content: content["policies"]["Greedy"]["regret"]["squares"].__setitem__(0, -1.0),
            r"mean and squares must be >= 0",
        ),
        (
            lambda content: content["policies"]["Greedy"].update(worst=[["x", 1]]),
            r"worst\[0\]\[0\] must be a number",
        ),
        (lambda content: content.update(more=1), "more is not a field"),
    ],
)
def test_files_that_are_no_summaries(summary, tmp_path, change, message):
    path = tmp_path / "summary.json"
    summary.save(path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        Summary.load(path)


def test_a_file_is_gone_on_with(summary, tmp_path):
    path = tmp_path / "summary.json"
    whole = sb.summarise(sb.problems.toy(), POLICIES, jobs=1, path=path, **PLAN)
    played = []
    again = sb.summarise(sb.problems.toy(), POLICIES, jobs=1, path=path, progress=played.append, **PLAN)
    assert played == [1.0]  # nothing was left to do
    assert again.final().equals(whole.final())


def test_one_run_has_no_interval():
    one = sb.summarise(sb.problems.toy(), {"a": sb.Greedy()}, horizon=5, runs=1, jobs=1)
    assert one.final()["low"].to_list() == [None]
    assert "?" not in tails_rows(one)[0][1]


def test_figure_and_rows(summary, tmp_path):
    figure = survival_figure(summary)
    axes = figure.axes[0]
    for line, policy in zip(axes.get_lines()[::2], POLICIES, strict=True):
        shares = line.get_ydata()
        assert shares[0] <= 1.0
        assert (np.diff(shares) <= 0).all()
        assert line.get_label() == policy
    save_figure(survival_figure(summary), tmp_path / "survival.png")
    assert (tmp_path / "survival.png").stat().st_size > 10_000
    assert next(iter(tails_rows(summary)))[0] == "LinTS"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "tpu"}, "device must be one of cpu, gpu, got 'tpu'"),
        ({"runs": 0}, "runs must be an integer >= 1"),
        ({"worst": 0}, "worst must be an integer >= 1"),
        ({"runs": 2**33}, "runs must be an integer"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        sb.summarise(sb.problems.toy(), POLICIES, **{"horizon": 5, "runs": 5, **options})


def test_what_is_not_played_yet_can_be_looked_at():
    part = Summary({}, "cpu", {"a": PolicySummary.none(np.array([1, 5]))})
    assert part.quantiles()["regret"].to_list() == [None] * 4
    assert tails_rows(part)[0][-1] == "0"
    survival_figure(part)


def test_no_regret_at_all_is_no_error(tmp_path):
    one = PolicySummary.none(np.array([1]))
    one.add(0, np.zeros((3, 1)), np.zeros((3, 1), dtype=int), 0.0, 2)
    save_figure(survival_figure(Summary({}, "cpu", {"a": one})), tmp_path / "survival.png")


def test_a_file_in_blocks_of_another_size_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "summary.json"
    sb.summarise(sb.problems.toy(), POLICIES, jobs=1, path=path, **PLAN)
    monkeypatch.setattr(block, "BLOCKS_PER_POLICY", 1)
    played = sb.summarise(sb.problems.toy(), POLICIES, jobs=1, path=path, **PLAN)
    assert played.policies["LinTS"].runs == PLAN["runs"]  # all of them, in one block
    part = Summary.load(path)
    monkeypatch.setattr(block, "BLOCKS_PER_POLICY", 2)
    first = PolicySummary.none(part.policies["LinTS"].steps)
    first.add(0, np.ones((5, len(first.steps))), np.zeros((5, len(first.steps)), dtype=int), 0.0, 10)
    part.policies["LinTS"] = first
    part.save(path)
    with pytest.raises(ValueError, match="was made in blocks of another size"):
        sb.summarise(sb.problems.toy(), POLICIES, jobs=1, path=path, **PLAN)
