"""Processes that die, fail and end: what is finished is taken, what is not is done again."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest
from joblib.externals.loky import get_reusable_executor

from solid_bandits.simulation.workers import MOST_DEATHS, Processes, Task, WorkersLostError


def square(number):
    return number * number


def die_once(number, mark):
    """Kill the own process the first time, as the kernel does when memory is short."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def die(number):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(number):
    raise ValueError(f"no {number}")


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_every_task_is_done_once(jobs):
    tasks = [Task(("square", i), square, (i,)) for i in range(20)]
    done = list(Processes(jobs).do(tasks))
    assert sorted(done) == [(("square", i), i * i) for i in range(20)]


def test_a_killed_worker_is_replaced_and_its_task_done_again(tmp_path):
    tasks = [Task(i, die_once, (i, tmp_path / f"mark{i % 2}")) for i in range(12)]
    assert sorted(Processes(2).do(tasks)) == [(i, i * i) for i in range(12)]


def test_nothing_is_lost_when_a_worker_dies_while_the_caller_is_busy():
    """The results that had come by then are with the caller, and the other tasks are done again."""
    tasks = [Task(i, slowly, (i,)) for i in range(20)]
    got = []
    for key, pid in Processes(2).do(tasks):
        got.append(key)
        if len(got) == 1:
            time.sleep(1.0)  # several tasks are done when the caller comes back
        elif len(got) == 2:
            with suppress(ProcessLookupError):  # it waited for work for so long that it has ended
                os.kill(pid, signal.SIGKILL)
            time.sleep(1.0)
    assert sorted(got) == list(range(20))


def slowly(number):
    time.sleep(0.05)
    return os.getpid()


def test_tasks_that_kill_every_worker_are_given_up():
    with pytest.raises(WorkersLostError, match=f"died {MOST_DEATHS} times in a row"):
        list(Processes(2).do([Task(i, die, (i,)) for i in range(3)]))


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_a_task_is_the_callers(jobs):
    with pytest.raises(ValueError, match="no 1"):
        list(Processes(jobs).do([Task(0, square, (0,)), Task(1, fail, (1,))]))
    assert sorted(Processes(jobs).do([Task(i, square, (i,)) for i in range(3)])) == [(0, 0), (1, 1), (2, 4)]


def test_jobs_are_checked():
    with pytest.raises(ValueError, match="jobs must be an integer >= 1, got 0"):
        Processes(0)


SCRIPT = """
import os, sys, time
from solid_bandits.simulation.workers import Processes, Task
def wait(path):
    open(path + str(os.getpid()), "w").close()
    time.sleep(3600)
list(Processes(2).do([Task(i, wait, (sys.argv[1],)) for i in range(2)]))
"""


def running(pid):
    """Whether a process is there and not only waiting to be collected."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


# Compiled code keeps every thread of its process from running.
BUSY = SCRIPT.replace("time.sleep(3600)", "pow(3, 10**9)")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at processes through /proc")
@pytest.mark.parametrize("script", [SCRIPT, BUSY], ids=["waiting", "busy"])
def test_workers_end_with_a_killed_parent(tmp_path, script):
    prefix = str(tmp_path) + "/"
    parent = subprocess.Popen([sys.executable, "-c", script, prefix], stderr=subprocess.DEVNULL)
    until(lambda: len(os.listdir(tmp_path)) == 2)
    workers = [int(name) for name in os.listdir(tmp_path)]
    assert all(map(running, workers))
    parent.kill()
    parent.wait()
    until(lambda: not any(map(running, workers)))


def until(condition, seconds=400):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_work_that_is_given_up_is_not_looked_for(monkeypatch):
    """Closed while a task waits that no worker was given, as an interrupt may find it: no thread dies of it."""
    died = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    tasks = [Task(place, time.sleep, (seconds,)) for place, seconds in enumerate([0.0, 3600.0, 3600.0])]
    doing = Processes(2).do(tasks)
    next(doing)
    executor = get_reusable_executor(reuse=True)
    executor._work_ids.put(10**9)
    doing.close()
    assert not [one for one in died if one.exc_type is KeyError]
    assert executor._work_ids.empty()
