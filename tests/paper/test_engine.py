"""Playing experiments: nothing finished is lost, nothing mixes, results are the same however they came about."""

import contextlib
import json
import os

import pytest

import solid_bandits as sb
from small import SHORT, TASKS, TOML, Silent, contents, interrupted_after, kept_tasks, play, written
from solid_bandits._internal import files
from solid_bandits.paper import engine
from solid_bandits.paper.loading import load_outcomes
from solid_bandits.paper.reader import load
from solid_bandits.simulation.workers import Processes


def test_results_are_those_of_simulate(tmp_path):
    path = written(tmp_path)
    told = play(path, tmp_path / "out")
    assert (told.total, told.kept, told.done) == (TASKS, 0, TASKS)
    for part in load(path).parts:
        plan = part.plan
        direct = sb.simulate(
            plan.problem, plan.policies, plan.horizon, runs=plan.runs, seed=plan.seed, jobs=1
        )
        found = sb.Results.load(tmp_path / "out" / "small" / part.slug)
        assert found.table.equals(direct.table)
    bound = found.manifest["lower_bound"]
    expected = [sb.bounds.lower_bound(plan.problem_of(run)).value for run in range(plan.runs)]
    assert bound["value"] == pytest.approx(sum(expected) / len(expected), rel=1e-3)
    assert not list((tmp_path / "out").rglob("tasks"))
    again = play(path, tmp_path / "out")
    assert (again.total, again.kept, again.done) == (TASKS, TASKS, 0)


def test_the_number_of_workers_does_not_show(tmp_path):
    path = written(tmp_path)
    for jobs in (1, 2):
        play(path, tmp_path / str(jobs), jobs)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_recorded_diagnostics_survive_an_interruption(tmp_path, monkeypatch):
    text = TOML.replace("seed = 3", "seed = 3\ndiagnostics = true").replace("linucb", "solid")
    path = written(tmp_path, text=text.replace("LinUCB", "SOLID"))
    interrupted_after(monkeypatch, 30)
    with pytest.raises(KeyboardInterrupt):
        play(path, tmp_path / "a")
    monkeypatch.undo()
    play(path, tmp_path / "a")
    play(path, tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert any(path.name == "diagnostics.parquet" for path in contents(tmp_path / "a"))


def test_an_interrupted_play_goes_on_where_it_was(tmp_path, monkeypatch):
    path = written(tmp_path)
    interrupted_after(monkeypatch, 50)
    with pytest.raises(KeyboardInterrupt):
        play(path, tmp_path / "out")
    monkeypatch.undo()
    # The first part is complete; of the second there are tasks.
    told = play(path, tmp_path / "out")
    assert (told.kept, told.done) == (50, TASKS - 50)
    invocations = json.loads((tmp_path / "out" / "invocations.json").read_text())["invocations"]
    assert [one["tasks"] for one in invocations] == [50, TASKS - 50]


def test_half_written_files_are_not_taken_for_whole_ones(tmp_path, monkeypatch):
    path = written(tmp_path)
    interrupted_after(monkeypatch, 10)
    with pytest.raises(KeyboardInterrupt):
        play(path, tmp_path / "out")
    monkeypatch.undo()
    tasks = tmp_path / "out" / "small" / "even" / "tasks"
    (tasks / ".001-00038.json.0123abcd.json").write_text('{"seconds": 0.1, "regr')
    play(path, tmp_path / "out")
    play(path, tmp_path / "whole")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    hidden = [name for name in os.listdir(tmp_path / "out" / "small" / "even") if name.startswith(".")]
    assert hidden == [".lock"]


def test_death_between_results_and_manifest(tmp_path, monkeypatch):
    """Results without a manifest are not complete; tasks beside a manifest are leftovers."""
    path = written(tmp_path)
    write_whole = files.write_whole

    def die_at_the_manifest(target, write):
        if target.name == "manifest.json":
            raise KeyboardInterrupt
        write_whole(target, write)

    monkeypatch.setattr(files, "write_whole", die_at_the_manifest)
    with pytest.raises(KeyboardInterrupt):
        play(path, tmp_path / "out")
    monkeypatch.undo()
    assert (tmp_path / "out" / "small" / "even" / "results.parquet").exists()
    play(path, tmp_path / "out")
    play(path, tmp_path / "whole")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    leftovers = tmp_path / "out" / "small" / "even" / "tasks"
    leftovers.mkdir()
    play(path, tmp_path / "out")
    assert not leftovers.exists()


@pytest.mark.parametrize("finished", [False, True])
def test_another_configuration_is_refused(tmp_path, monkeypatch, finished):
    path = written(tmp_path)
    if not finished:
        interrupted_after(monkeypatch, 5)
    with contextlib.nullcontext() if finished else pytest.raises(KeyboardInterrupt):
        play(path, tmp_path / "out")
    monkeypatch.undo()
    before = contents(tmp_path / "out"), kept_tasks(tmp_path / "out")
    written(tmp_path, horizon=SHORT + 1)
    with pytest.raises(ValueError, match=r"holds results of another configuration; remove it or give"):
        play(path, tmp_path / "out")
    written(tmp_path)
    monkeypatch.setattr("solid_bandits.paper.store.identity", lambda: {"code": "other"})
    with pytest.raises(ValueError, match="holds results of another version of the code"):
        play(path, tmp_path / "out")
    assert before == (contents(tmp_path / "out"), kept_tasks(tmp_path / "out"))


def test_titles_and_claims_may_change(tmp_path):
    path = written(tmp_path)
    play(path, tmp_path / "out")
    path.write_text(path.read_text().replace("Small", "New").replace("beats", "does better than"))
    assert play(path, tmp_path / "out").done == 0
    (outcome,) = load_outcomes(tmp_path / "out")
    assert (outcome.title, outcome.verdicts[0].claim.text) == ("New", "LinUCB does better than Greedy.")
    assert list(outcome.parts) == ["even", "new"]


def test_two_experiments_of_one_name_are_refused(tmp_path):
    (tmp_path / "below").mkdir()
    paths = [written(tmp_path), written(tmp_path / "below", SHORT + 1)]
    with pytest.raises(ValueError, match="two experiments are called 'small'"):
        engine.play([load(path) for path in paths], tmp_path / "out", Processes(1), Silent())
    assert not (tmp_path / "out").exists()


def test_a_damaged_task_is_named(tmp_path, monkeypatch):
    path = written(tmp_path)
    interrupted_after(monkeypatch, 5)
    with pytest.raises(KeyboardInterrupt):
        play(path, tmp_path / "out")
    monkeypatch.undo()
    damaged = next((tmp_path / "out").rglob("tasks/0*.json"))
    damaged.write_text("{")
    with pytest.raises(ValueError, match=f"{damaged.name}' cannot be read .*remove it and rerun"):
        play(path, tmp_path / "out")
