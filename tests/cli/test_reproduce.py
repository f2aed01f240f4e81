"""The command that plays experiments: killed, interrupted, on a full disk and on a cluster, it loses nothing."""

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

from small import LONG, TASKS, contents, interrupted_after, kept_tasks, play, written


@pytest.mark.parametrize("content", ["[]", "{}", "{", '{"configuration": {}}'])
@pytest.mark.parametrize("name", ["invocations.json", "small/experiment.json", "small/even/manifest.json"])
def test_damaged_files_are_named(tmp_path, monkeypatch, name, content):
    path, out = written(tmp_path), tmp_path / "out"
    play(path, out)
    (out / name).write_text(content)
    status, _, error = run_command(monkeypatch, tmp_path, out, command="report")
    assert status == 2
    assert error.count("\n") == 1
    assert Path(name).name in error


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    path = written(tmp_path)
    interrupted_after(monkeypatch, 30, OSError(errno.ENOSPC, "No space left on device"))
    status, _, error = run_command(monkeypatch, tmp_path, path, "--out", tmp_path / "out")
    monkeypatch.undo()
    assert status == 2
    assert "No space left on device" in error
    assert "finished tasks are saved; rerun to resume" in error
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
    ended = subprocess.run(command(path, small_disk / "out", "--jobs", "1"), capture_output=True, text=True)
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
    ended = False
    while not condition():
        assert time.monotonic() < deadline
        assert not ended, process.communicate()
        ended = process is not None and process.poll() is not None  # then it is looked at once more
        time.sleep(0.02)


def finished_tasks(out):
    """Tasks kept, of parts that are complete too."""
    return sum(
        TASKS // 2 if (home / "manifest.json").exists() else kept_tasks(home) for home in out.glob("small/*/")
    )


@pytest.mark.long
def test_killed_three_times(tmp_path, processes):
    path, out = written(tmp_path, LONG), tmp_path / "out"
    for goal in (8, 25, 50):
        process = processes(command(path, out, "--jobs", "2"))
        until(lambda goal=goal: finished_tasks(out) >= goal, process)
        process.kill()
        process.wait()
    kept = finished_tasks(out)
    assert kept >= 50
    process = processes(command(path, out, "--jobs", "2"))
    _, told = process.communicate()
    assert process.returncode == 0, told
    assert f"{kept} of {TASKS} tasks are already done" in told
    play(path, tmp_path / "whole", jobs=2)
    assert contents(out) == contents(tmp_path / "whole")
    assert (out / "report.html").exists()


def test_two_processes_on_one_directory_and_an_interrupt(tmp_path, processes):
    path, out = written(tmp_path, LONG), tmp_path / "out"
    # Where the tests themselves run in the background, interrupts are ignored, and processes inherit that.
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    first = processes(command(path, out, "--jobs", "2"), start_new_session=True, preexec_fn=listen)
    until(lambda: finished_tasks(out) >= 1, first)
    os.killpg(first.pid, signal.SIGSTOP)  # it does not end meanwhile
    with pytest.raises(ValueError, match="is in use by another process"):
        play(path, out)
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does: to all processes of the command
    os.killpg(first.pid, signal.SIGCONT)
    _, told = first.communicate()
    assert first.returncode == 130
    assert "finished tasks are saved; rerun to resume" in told
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
    assert "a Dask scheduler with workers" in lonely.stderr
    assert not (out / "small").exists()
    workers = [processes(worker, cwd=tmp_path) for _ in range(2)]
    until(lambda: len(workers_of(address)) == 2)
    process = processes(on_cluster)
    until(lambda: finished_tasks(out) >= 10, process)
    workers[0].kill()
    _, told = process.communicate()
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
        "with distributed.Client(sys.argv[1], timeout=300) as client: print(*client.nthreads())"
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
        ([], "experiment is missing; give all, a .toml file, or one of toy, toy-pulls, random"),
        (["tyo"], "got 'tyo'; did you mean 'toy'?"),
        (["toy", "--scale", "huge"], "scale must be one of quick, paper, got 'huge'"),
        ([path, "--backend", "slurm"], "backend must be one of local, dask, got 'slurm'"),
        ([path, "--backend", "dask"], "address is missing; give --address HOST:PORT"),
        ([path, "--address", nobody], "address belongs to --backend dask"),
        ([path, "--out", tmp_path / "file"], "cannot be written to"),
        ([path, "--out", tmp_path / "file" / "below"], "cannot be written to"),
        ([path, "--out", "/proc/nothing"], "cannot be written to"),
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
    assert f"got '{nobody}', where none answers" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "small.toml", "stderr", "stdout"]


def test_the_list_has_sizes_and_times(tmp_path, monkeypatch):
    status, printed, _ = run_command(monkeypatch, tmp_path, "--list")
    assert status == 0
    for name in ("toy", "asymptotics", "ablation-multiplier-step"):
        assert name in printed
    # 3 problems x 13 policies (SOLID under 4 readings) x 100 runs x 50,000 steps, whole also on a narrow terminal.
    assert re.search(r"toy .* 195 million, ", printed)


def test_the_list_cuts_no_word(tmp_path, monkeypatch):
    from solid_bandits.cli.reproduce import OUTSIZED
    from solid_bandits.paper.names import ALL
    from solid_bandits.paper.reader import load

    titles = [*(load(name, "paper").title for name in ALL), *(one.title for one in OUTSIZED.values())]
    for columns in ("80", "60"):
        monkeypatch.setenv("COLUMNS", columns)
        _, printed, _ = run_command(monkeypatch, tmp_path, "--list")
        assert "…" not in printed
        if columns == "80":  # no word is broken either
            assert {word for title in titles for word in title.split()} <= set(printed.split())


def test_what_the_list_says_of_jester_is_what_its_runs_took():
    from solid_bandits.cli.reproduce import OUTSIZED

    runs = Path(__file__).parents[2] / "studies" / "jester" / "runs.jsonl"
    lines = [json.loads(line) for line in runs.read_text(encoding="utf-8").splitlines()]
    kept = [line for line in lines if line["policy"] != "RandUCB"]  # which the experiment does not play
    each = len(kept) / len({line["policy"] for line in kept})
    steps, seconds = OUTSIZED["jester"].paper
    assert steps == 100 * sum(line["horizon"] for line in kept) / each
    assert seconds == pytest.approx(100 * sum(line["seconds"] for line in kept) / each, rel=0.02)


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
