"""Workers, which do tasks: processes of this machine, or a Dask cluster. Results come in any order.

A task is a function and its arguments; what it returns must not depend on where it runs. A worker that dies takes its
task with it: the task is given to another.
"""

import ctypes
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import suppress
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple

from solid_bandits._internal import checks, extras
from solid_bandits._internal.files import first_line
from solid_bandits._internal.kernel_cache import family, folder, join
from solid_bandits._internal.signals import handled
from solid_bandits._internal.sources import package_hash
from solid_bandits._internal.types import Plain

MOST_DEATHS = 3
"""After so many deaths of workers in a row without a finished task, the tasks are suspected."""

# Runs are what is played in parallel; threads of linear algebra below them would fight for the same cores.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


class Task(NamedTuple):
    """Something to do."""

    key: Any
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class WorkersLostError(RuntimeError):
    """The workers died again and again, or could not be reached."""


class Processes:
    """Processes of this machine, one per core unless `jobs` says otherwise; a single one is this process itself."""

    share_compiled_code = True
    """Whether what one of them compiles, the others load."""

    def __init__(self, jobs: int | None = None) -> None:
        self.count = _cores() if jobs is None else checks.integer("jobs", jobs, least=1)

    def do(self, tasks: Sequence[Task]) -> Generator[tuple[Any, Any]]:
        """Do the tasks, and yield key and returned value of each when it is done.

        After the death of a worker, what was not finished is done by new ones.
        """
        if self.count == 1 or len(tasks) == 1:
            for task in tasks:
                yield task.key, task.function(*task.arguments)
            return
        from joblib.externals.loky.process_executor import BrokenProcessPool

        folder()  # warns here, once, if compiled code cannot be kept: workers are told
        left = {task.key: task for task in tasks}
        deaths = 0
        while left:
            before = len(left)
            try:
                yield from self._attempt(left)
            except BrokenProcessPool as error:
                deaths = 1 if len(left) < before else deaths + 1
                if deaths >= MOST_DEATHS:
                    raise WorkersLostError(
                        f"worker processes died {deaths} times in a row without finishing a task "
                        f"({first_line(error)}); is there enough memory? Try fewer jobs"
                    ) from None

    def _attempt(self, left: dict[Any, Task]) -> Iterator[tuple[Any, Any]]:
        """Do the tasks of `left` and take out what is done, until all are or a worker dies."""
        from joblib.externals.loky import get_reusable_executor

        # A worker's parent is, to the kernel, the thread that started it: only the main one lasts as long as we do.
        lasting = threading.current_thread() is threading.main_thread()
        executor = get_reusable_executor(
            self.count,
            timeout=600,
            initializer=_begin,
            initargs=(os.getpid(), lasting, *family()),
            env=ONE_THREAD,
        )
        waiting = iter(list(left.values()))
        futures: dict[Future[Any], Any] = {}

        def submit(count: int) -> None:
            for task in islice(waiting, count):
                futures[executor.submit(task.function, *task.arguments)] = task.key

        finished = False
        try:
            # No more than the workers are soon to take: an executor with a long queue cannot be ended at once.
            # Ctrl-C waits while processes start: they inherit this, and would die of it with a traceback each.
            with handled(signal.SIG_IGN, signal.SIGINT):
                submit(2 * self.count)
            while futures:
                done, _ = wait(futures, return_when=FIRST_COMPLETED)
                # What was finished before a worker died is taken first: it need not be done again.
                for future in sorted(done, key=lambda one: one.exception() is not None):
                    result = future.result()
                    key = futures.pop(future)
                    del left[key]
                    yield key, result
                    submit(1)  # may find that a worker has died; what was finished is with the caller by now
            finished = True
        finally:
            if not finished:  # an error, an interrupt, or a caller that wants no more
                _forget_waiting(executor)
                executor.shutdown(wait=True, kill_workers=True)


def _cores() -> int:
    """Return the cores that this process may use."""
    from joblib import cpu_count

    return int(cpu_count())


def _forget_waiting(executor: Any) -> None:
    """Take back what no worker has been given: loky's thread would give it up, then look for it, and die of that."""
    with suppress(AttributeError, queue.Empty):
        while True:
            executor._work_ids.get_nowait()


def _begin(parent: int, lasting: bool, family_name: str, warned: bool) -> None:
    """Initialise a worker process."""
    join(family_name, warned)
    if lasting:
        _die_with_the_parent()
    if os.getppid() != parent:
        os._exit(1)
    # Ctrl-C reaches every process of the terminal: one message, not one traceback each.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_the_parent() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    # A parent that is killed cannot tell its workers; without this they would go on for nobody. Compiled code does
    # not let a thread run before it is through: hence the kernel, where it can be asked.
    threading.Thread(target=end_with_the_parent, daemon=True).start()


def _die_with_the_parent() -> None:
    """Have the kernel kill this process when its parent ends, on systems where it does that."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class DaskCluster:
    """The workers of a running Dask cluster, which have the same version of this package installed.

    Args:
        address: HOST:PORT of the cluster's scheduler.

    """

    share_compiled_code = False  # the workers may be on several machines

    def __init__(self, address: str) -> None:
        distributed = extras.load("distributed", "backend 'dask'")
        try:
            self._client = distributed.Client(address, timeout=10)
        except (OSError, ValueError, TypeError) as error:
            raise ValueError(
                f"address must be HOST:PORT of a Dask scheduler, got {address!r}, where none answers "
                f"({first_line(error)}); start one with `dask scheduler`"
            ) from None
        try:
            self._check_workers(address)
        except BaseException:
            self._client.close()
            raise
        self.count = sum(self._client.nthreads().values())

    def _check_workers(self, address: str) -> None:
        if not self._client.nthreads():
            raise ValueError(
                f"address must be a Dask scheduler with workers, got {address!r}, which has none; start some with "
                f"`dask worker {address} --nthreads 1`"
            )
        try:
            self._client.run(_alike, identity())
        except Exception as error:  # whatever a worker without this package raises
            raise ValueError(
                f"a worker at {address!r} cannot do the work ({first_line(error)}); "
                "install the same versions on all machines"
            ) from None

    def do(self, tasks: Sequence[Task]) -> Generator[tuple[Any, Any]]:
        """Do the tasks, as `Processes` does; the scheduler gives those of a dead worker to another."""
        distributed: Any = import_module("distributed")
        here = identity()
        futures = {
            self._client.submit(_do_alike, here, task.function, *task.arguments, pure=False): task.key
            for task in tasks
        }
        lost = (distributed.KilledWorker, CancelledError, OSError, TimeoutError)
        try:
            for future in distributed.as_completed(futures):
                try:
                    result = future.result()
                except lost as error:
                    raise WorkersLostError(f"the Dask cluster is lost ({first_line(error)})") from None
                yield futures.pop(future), result
                future.release()
        finally:
            with suppress(*lost):  # a cluster that is gone has nothing to cancel
                self._client.cancel(list(futures), force=True)

    def close(self) -> None:
        """Leave the cluster; it goes on running."""
        self._client.close()


Workers = Processes | DaskCluster


def identity() -> Plain:
    """Return what must be the same on all machines of an experiment: results are compared to the last bit."""
    from importlib.metadata import version

    return {"code": package_hash()[:16], **{name: version(name) for name in ("numpy", "numba")}}


def _alike(here: Plain) -> None:
    """Raise an error unless this worker has the same code and versions as the one who asks."""
    if identity() != here:
        raise WorkersLostError(f"it has {identity()}, the command has {here}")


def _do_alike(here: Plain, function: Callable[..., Any], *arguments: Any) -> Any:
    """Do a task on a worker that may have joined the cluster after the others were asked."""
    _alike(here)
    return function(*arguments)
