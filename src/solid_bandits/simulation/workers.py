"""Workers for tasks: processes of this machine, or a Dask cluster. Results come in any order.

A task is a function and its arguments; its result must not depend on where it runs. If a worker dies, its task is
given to another.
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
"""Number of consecutive deaths of workers, without a finished task between them, after which the tasks are blamed."""

# Runs are played in parallel; threads of linear algebra inside them would compete for the same cores.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


class Task(NamedTuple):
    """A task: a function with its arguments, and the key that its result is returned with."""

    key: Any
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class WorkersLostError(RuntimeError):
    """The workers died again and again, or could not be reached."""


class Processes:
    """Processes of this machine, one per core unless `jobs` says otherwise; with one job, this process itself."""

    share_compiled_code = True
    """Whether code that one worker compiles can be loaded by the others."""

    def __init__(self, jobs: int | None = None) -> None:
        self.count = _cores() if jobs is None else checks.integer("jobs", jobs, least=1)

    def do(self, tasks: Sequence[Task]) -> Generator[tuple[Any, Any]]:
        """Do the tasks, and yield the key and returned value of each when it is done.

        After the death of a worker, unfinished tasks are done by new workers.
        """
        if self.count == 1 or len(tasks) == 1:
            for task in tasks:
                yield task.key, task.function(*task.arguments)
            return
        from joblib.externals.loky.process_executor import BrokenProcessPool

        folder()  # warns here, once, if compiled code cannot be kept; workers stay silent
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
        """Do the tasks of `left`, removing each when it is done, until none is left or a worker dies."""
        from joblib.externals.loky import get_reusable_executor

        # The kernel regards the thread that started a worker as its parent; only the main thread lasts as long as the
        # process.
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
            # Submit no more than the workers will take soon, because an executor with a long queue cannot be stopped at
            # once. Ctrl-C is deferred while processes start: they would inherit it and each die with a traceback.
            with handled(signal.SIG_IGN, signal.SIGINT):
                submit(2 * self.count)
            while futures:
                done, _ = wait(futures, return_when=FIRST_COMPLETED)
                # Results finished before a worker died are taken first, so that they need not be computed again.
                for future in sorted(done, key=lambda one: one.exception() is not None):
                    result = future.result()
                    key = futures.pop(future)
                    del left[key]
                    yield key, result
                    submit(1)  # may find that a worker has died; finished results have been yielded by now
            finished = True
        finally:
            if not finished:  # an error, an interrupt, or a caller that stopped early
                _forget_waiting(executor)
                executor.shutdown(wait=True, kill_workers=True)


def _cores() -> int:
    """Return the number of cores that this process may use."""
    from joblib import cpu_count

    return int(cpu_count())


def _forget_waiting(executor: Any) -> None:
    """Cancel queued items before shutdown; otherwise loky's thread drops them, looks for them, and dies of that."""
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
    # Ctrl-C reaches every process of the terminal; one message is enough, without one traceback per process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_the_parent() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    # A parent that is killed cannot stop its workers, and without this they would run on for nobody. Compiled code
    # blocks other threads until it returns, so the kernel is used where it offers this.
    threading.Thread(target=end_with_the_parent, daemon=True).start()


def _die_with_the_parent() -> None:
    """Ask the kernel to kill this process when its parent ends, on systems that can."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class DaskCluster:
    """The workers of a running Dask cluster on which the same version of this package is installed.

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
        except Exception as error:  # a worker without this package may raise anything
            raise ValueError(
                f"a worker at {address!r} cannot do the work ({first_line(error)}); "
                "install the same versions on all machines"
            ) from None

    def do(self, tasks: Sequence[Task]) -> Generator[tuple[Any, Any]]:
        """Do the tasks, as `Processes` does; the scheduler reassigns those of a dead worker."""
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
        """Disconnect from the cluster, which keeps running."""
        self._client.close()


Workers = Processes | DaskCluster


def identity() -> Plain:
    """Return the versions that must agree on all machines of an experiment, since results are compared to the last
    bit.
    """
    from importlib.metadata import version

    return {"code": package_hash()[:16], **{name: version(name) for name in ("numpy", "numba")}}


def _alike(here: Plain) -> None:
    """Raise an error unless this worker has the same code and versions as the caller."""
    if identity() != here:
        raise WorkersLostError(f"it has {identity()}, the command has {here}")


def _do_alike(here: Plain, function: Callable[..., Any], *arguments: Any) -> Any:
    """Do a task on a worker that may have joined the cluster after the check of the others."""
    _alike(here)
    return function(*arguments)
