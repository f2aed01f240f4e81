"""Playing experiments: nothing finished is lost, nothing mixes, results are the same however they came about."""

import contextlib
import errno
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import polars as pl
import pytest

import solid_bandits as sb
from solid_bandits import results as results_module
from solid_bandits.experiments import engine
from solid_bandits.experiments.experiment import load
from solid_bandits.workers import Processes

TOML = """
title = "Small"
horizon = {horizon}
runs = 40
seed = 3

[[problem]]
label = "even"
kind = "toy"

[[problem]]
label = "new"
kind = "random"
new_each_run = true
parameters = {{ n_contexts = 2, n_arms = 3, dim = 3 }}

[[policy]]
name = "linucb"

[[policy]]
name = "greedy"

[[claim]]
text = "LinUCB beats Greedy."
source = "ours"
rule = "less"
policies = ["LinUCB"]
against = ["Greedy"]
"""
SHORT, LONG = 200, 800_000
TASKS = 2 * (20 * 2 + 1)


class Silent:
    """A progress that keeps what it is told."""

    def __init__(self):
        self.total = self.kept = self.done = 0

    def begin(self, tasks, kept, seconds):
        self.total, self.kept = tasks, kept

    def say(self, text):
        pass

    def start(self):
        pass

    def advance(self, what, steps, seconds):
        self.done += 1


def written(folder, horizon=SHORT, text=TOML):
    path = folder / "small.toml"
    path.write_text(text.format(horizon=horizon), encoding="utf-8")
    return path


def play(path, out, jobs=1):
    told = Silent()
    engine.play([load(path)], out, Processes(jobs), told)
    return told


def contents(out):
    """Everything that must not depend on how the results came about."""
    return {path.relative_to(out): path.read_bytes() for path in sorted(out.rglob("*.parquet"))}


def kept_tasks(out):
    """Half-written files have names that begin with a dot."""
    return len(list(out.rglob("tasks/[!.]*.json")))


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
    expected = [sb.lower_bound(plan.problem_of(run)).value for run in range(plan.runs)]
    assert bound["value"] == pytest.approx(sum(expected) / len(expected), rel=1e-3)
    assert not list((tmp_path / "out").rglob("tasks"))
    again = play(path, tmp_path / "out")
    assert (again.total, again.kept, again.done) == (TASKS, TASKS, 0)


def test_the_number_of_workers_does_not_show(tmp_path):
    path = written(tmp_path)
    for jobs in (1, 2):
        play(path, tmp_path / str(jobs), jobs)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_recorded_insides_survive_an_interruption(tmp_path, monkeypatch):
    text = TOML.replace("seed = 3", "seed = 3\ninsides = true").replace("linucb", "solid")
    path = written(tmp_path, text=text.replace("LinUCB", "Solid()"))
    interrupted_after(monkeypatch, 30)
    with pytest.raises(KeyboardInterrupt):
        play(path, tmp_path / "a")
    monkeypatch.undo()
    play(path, tmp_path / "a")
    play(path, tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert any(path.name == "insides.parquet" for path in contents(tmp_path / "a"))


def interrupted_after(monkeypatch, tasks, error=KeyboardInterrupt):
    """Raise `error` when so many tasks have been kept."""
    count = 0
    keep = engine.Store.keep

    def counted(store, task, outcome):
        nonlocal count
        count += 1
        if count > tasks:
            raise error
        keep(store, task, outcome)

    monkeypatch.setattr(engine.Store, "keep", counted)


def test_an_interrupted_play_goes_on_where_it_was(tmp_path, monkeypatch):
    path = written(tmp_path)
    interrupted_after(monkeypatch, 50)
    with pytest.raises(KeyboardInterrupt):
        play(path, tmp_path / "out")
    monkeypatch.undo()
    # The first part is complete; of the second there are tasks.
    told = play(path, tmp_path / "out")
    assert (told.kept, told.done) == (50, TASKS - 50)
    sittings = json.loads((tmp_path / "out" / "sittings.json").read_text())["sittings"]
    assert [sitting["tasks"] for sitting in sittings] == [50, TASKS - 50]


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
    assert not [name for name in os.listdir(tmp_path / "out" / "small" / "even") if name.startswith(".")]


def test_death_between_results_and_manifest(tmp_path, monkeypatch):
    """Results without a manifest are not complete; tasks beside a manifest are leftovers."""
    path = written(tmp_path)
    write_whole = results_module.write_whole

    def die_at_the_manifest(target, write):
        if target.name == "manifest.json":
            raise KeyboardInterrupt
        write_whole(target, write)

    monkeypatch.setattr(results_module, "write_whole", die_at_the_manifest)
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
    with pytest.raises(ValueError, match=r"holds results of another configuration; give another directory"):
        play(path, tmp_path / "out")
    written(tmp_path)
    monkeypatch.setattr("solid_bandits.experiments.store.identity", lambda: {"code": "other"})
    with pytest.raises(ValueError, match="holds results of another version of the code"):
        play(path, tmp_path / "out")
    assert before == (contents(tmp_path / "out"), kept_tasks(tmp_path / "out"))


def test_titles_and_claims_may_change(tmp_path):
    path = written(tmp_path)
    play(path, tmp_path / "out")
    path.write_text(path.read_text().replace("Small", "New").replace("beats", "does better than"))
    assert play(path, tmp_path / "out").done == 0
    (outcome,) = engine.outcomes(tmp_path / "out")
    assert (outcome.title, outcome.verdicts[0].claim.text) == ("New", "LinUCB does better than Greedy.")
    assert list(outcome.parts) == ["even", "new"]


def test_two_experiments_of_one_name_are_refused(tmp_path):
    (tmp_path / "below").mkdir()
    paths = [written(tmp_path), written(tmp_path / "below", SHORT + 1)]
    with pytest.raises(ValueError, match="two experiments are called 'small'"):
        engine.play([load(path) for path in paths], tmp_path / "out", Processes(1), Silent())
    assert not (tmp_path / "out").exists()


def test_the_time_of_the_policies_is_theirs_alone(monkeypatch):
    """What is compiled or loaded comes with the first step, which is played before the clock starts."""
    from solid_bandits import simulation

    told = []
    monkeypatch.setattr(simulation, "play", lambda problem, policy, horizon, *rest: told.append(horizon))
    monkeypatch.setattr(simulation.time, "thread_time", lambda: told.append("clock") or 0.0)
    simulation.play_block(sb.problems.toy(), sb.Greedy(), 300, 0, False, 4, 2)
    assert told == [1, "clock", 300, 300, "clock"]


@pytest.mark.parametrize("content", ["[]", "{}", "{", '{"configuration": {}}'])
@pytest.mark.parametrize("name", ["sittings.json", "small/experiment.json", "small/even/manifest.json"])
def test_damaged_files_are_named(tmp_path, monkeypatch, name, content):
    path, out = written(tmp_path), tmp_path / "out"
    play(path, out)
    (out / name).write_text(content)
    status, _, error = run_command(monkeypatch, tmp_path, out, command="report")
    assert status == 2
    assert error.count("\n") == 1
    assert Path(name).name in error


def test_a_damaged_task_is_named(tmp_path, monkeypatch):
    path = written(tmp_path)
    interrupted_after(monkeypatch, 5)
    with pytest.raises(KeyboardInterrupt):
        play(path, tmp_path / "out")
    monkeypatch.undo()
    damaged = next((tmp_path / "out").rglob("tasks/0*.json"))
    damaged.write_text("{")
    with pytest.raises(ValueError, match=f"{damaged.name}' cannot be read .*remove it and run again"):
        play(path, tmp_path / "out")


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    path = written(tmp_path)
    interrupted_after(monkeypatch, 30, OSError(errno.ENOSPC, "No space left on device"))
    status, _, error = run_command(monkeypatch, tmp_path, path, "--out", tmp_path / "out")
    monkeypatch.undo()
    assert status == 2
    assert "No space left on device" in error
    assert "the same command goes on from here once there is room" in error
    assert play(path, tmp_path / "out").kept == 30


def run_command(monkeypatch, tmp_path, *arguments, command="reproduce"):
    """The command in this process: status, stdout, stderr."""
    from solid_bandits import cli

    jobs = ["--jobs", "1"] if command == "reproduce" else []
    monkeypatch.setattr(sys, "argv", ["solid-bandits", command, *jobs, *map(str, arguments)])
    outputs = []
    for stream in ("stdout", "stderr"):
        file = (tmp_path / stream).open("w+", encoding="utf-8")
        monkeypatch.setattr(sys, stream, file)
        outputs.append(file)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    texts = []
    for file in outputs:
        file.seek(0)
        texts.append(file.read())
        file.close()
    return ended.value.code, *texts


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 100 kB, where one may be mounted."""
    mount, umount = shutil.which("mount"), shutil.which("umount")
    disk = tmp_path / "disk"
    disk.mkdir()
    if mount is None or umount is None or os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    if subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=100k", "tmpfs", disk], capture_output=True
    ).returncode:
        pytest.skip("this machine does not let a file system be mounted")
    yield disk
    subprocess.run([umount, disk], check=True)


def test_a_really_full_disk(tmp_path, small_disk):
    path = written(tmp_path)
    command = [
        sys.executable,
        "-m",
        "solid_bandits",
        "reproduce",
        path,
        "--jobs",
        "1",
        "--out",
        small_disk / "out",
    ]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr
    # Every task that has its name is whole, and so are the results that come of it elsewhere, with room.
    shutil.copytree(small_disk / "out", tmp_path / "out")
    assert kept_tasks(tmp_path / "out") > 0
    play(path, tmp_path / "out")
    play(path, tmp_path / "whole")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def command(path, out, *more):
    return [sys.executable, "-m", "solid_bandits", "reproduce", str(path), "--out", str(out), *more]


@pytest.fixture
def processes():
    """Processes to start; all that still run are killed in the end."""
    started = []

    def start(arguments, **more):
        process = subprocess.Popen(
            arguments, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def until(condition, process=None, seconds=400):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.02)


def finished_tasks(out):
    """Tasks kept, of parts that are complete too."""
    return sum(
        TASKS // 2 if (home / "manifest.json").exists() else kept_tasks(home) for home in out.glob("small/*/")
    )


def test_killed_three_times(tmp_path, processes):
    path, out = written(tmp_path, LONG), tmp_path / "out"
    for goal in (8, 25, 50):
        process = processes(command(path, out, "--jobs", "2"))
        until(lambda goal=goal: finished_tasks(out) >= goal, process)
        process.kill()
        process.wait()
    kept = finished_tasks(out)
    assert 50 <= kept < TASKS
    process = processes(command(path, out, "--jobs", "2"))
    _, told = process.communicate(timeout=300)
    assert process.returncode == 0, told
    assert f"{kept} of {TASKS} tasks are done already" in told
    play(path, tmp_path / "whole", jobs=2)
    assert contents(out) == contents(tmp_path / "whole")
    assert (out / "report.html").exists()


def test_two_processes_on_one_directory_and_an_interrupt(tmp_path, processes):
    path, out = written(tmp_path, LONG), tmp_path / "out"
    # Where the tests themselves run in the background, interrupts are ignored, and processes inherit that.
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    first = processes(command(path, out, "--jobs", "2"), start_new_session=True, preexec_fn=listen)
    until(lambda: finished_tasks(out) >= 1, first)
    with pytest.raises(ValueError, match="is in use by another process"):
        play(path, out)
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does: to all processes of the command
    _, told = first.communicate(timeout=60)
    assert first.returncode == 130
    assert "the same command goes on from here" in told
    assert "Traceback" not in told
    kept = finished_tasks(out)
    said = int(re.search(rf"interrupted after (\d+) of {TASKS} tasks", told).group(1))
    assert kept - said in (0, 1)  # the interrupt may come after a task is kept and before it is counted
    assert play(path, out, jobs=2).kept == kept


def test_on_a_dask_cluster_with_a_worker_killed_on_the_way(tmp_path, processes):
    pytest.importorskip("distributed")
    path, out = written(tmp_path, LONG), tmp_path / "out"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    dask = [sys.executable, "-m", "dask"]
    quiet = ["--no-dashboard"]
    scheduler = [*dask, "scheduler", "--host", "127.0.0.1", "--port", address.split(":")[1], *quiet]
    processes(scheduler, cwd=tmp_path)
    until(lambda: answers(address))
    worker = [*dask, "worker", f"tcp://{address}", "--nthreads", "1", "--no-nanny", *quiet]
    on_cluster = command(path, out, "--backend", "dask", "--address", address)
    lonely = subprocess.run(on_cluster, capture_output=True, text=True)
    assert lonely.returncode == 2
    assert "a Dask scheduler without workers" in lonely.stderr
    assert not (out / "small").exists()
    workers = [processes(worker, cwd=tmp_path) for _ in range(2)]
    until(lambda: len(workers_of(address)) == 2)
    process = processes(on_cluster)
    until(lambda: finished_tasks(out) >= 10, process)
    workers[0].kill()
    _, told = process.communicate(timeout=300)
    assert process.returncode == 0, told
    assert len(workers_of(address)) == 1
    play(path, tmp_path / "whole", jobs=2)
    assert contents(out) == contents(tmp_path / "whole")


def answers(address):
    host, port = address.split(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
        return True
    return False


def workers_of(address):
    script = (
        "import sys, distributed\n"
        "with distributed.Client(sys.argv[1], timeout=30) as client: print(*client.nthreads())"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, address], capture_output=True, text=True, check=True
    )
    return ended.stdout.split()


def test_bad_arguments_are_one_line_and_leave_nothing(tmp_path, monkeypatch):
    path = written(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{free.getsockname()[1]}"
    (tmp_path / "file").touch()
    for arguments, message in [
        ([], "no experiment named; give all, a .toml file, or one of toy, random"),
        (["tyo"], "experiment is 'tyo'; did you mean 'toy'?"),
        (["toy", "--scale", "huge"], "scale is 'huge'; choose from quick, paper"),
        ([path, "--backend", "slurm"], "backend is 'slurm'; choose from local, dask"),
        ([path, "--backend", "dask"], "address is missing; give --address HOST:PORT"),
        ([path, "--address", nobody], "which belongs to --backend dask"),
        ([path, "--out", tmp_path / "file"], "may not be written to"),
        ([path, "--out", tmp_path / "file" / "below"], "may not be written to"),
        ([path, "--out", "/proc/nothing"], "may not be written to"),
    ]:
        status, _, error = run_command(monkeypatch, tmp_path, *arguments)
        assert status == 2
        assert message in error
        assert error.count("\n") == 1
    monkeypatch.undo()
    ended = subprocess.run(
        command(path, tmp_path / "o", "--backend", "dask", "--address", nobody),
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 2
    assert f"address is '{nobody}', where no Dask scheduler answers" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "small.toml", "stderr", "stdout"]


def test_the_list_has_sizes_and_times(tmp_path, monkeypatch):
    status, printed, _ = run_command(monkeypatch, tmp_path, "--list")
    assert status == 0
    for name in ("toy", "asymptotics", "ablation-multiplier-step"):
        assert name in printed
    # 3 problems x 9 policies x 100 runs x 50,000 steps, whole also on a narrow terminal.
    assert re.search(r"toy .* 135 million, ", printed)


def test_the_command_writes_figures_page_and_document(tmp_path, monkeypatch):
    path, out = written(tmp_path), tmp_path / "out"
    status, printed, error = run_command(monkeypatch, tmp_path, path, "--out", out)
    assert status == 0, error
    assert "LinUCB beats Greedy." in printed
    assert {"report.html", "report.md", "figures", "small"} <= set(os.listdir(out))
    assert (out / "figures" / "small.png").read_bytes().startswith(b"\x89PNG")
    assert "LinUCB beats Greedy." in (out / "report.html").read_text(encoding="utf-8")
    assert "LinUCB beats Greedy." in (out / "report.md").read_text(encoding="utf-8")
    table = pl.read_parquet(out / "small" / "even" / "results.parquet")
    assert table["policy"].unique(maintain_order=True).to_list() == ["LinUCB", "Greedy"]


def test_a_report_of_nothing_is_refused(tmp_path, monkeypatch):
    from solid_bandits import cli

    monkeypatch.setattr(sys, "argv", ["solid-bandits", "report", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
