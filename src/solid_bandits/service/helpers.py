"""What the processes beside the service have in common: they end with it, give way to it, and take one processor."""

import os
import signal
from contextlib import suppress
from pathlib import Path

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
"""Variables by which libraries are told how many threads they may have."""


def environment() -> dict[str, str]:
    """What such a process is started with: one thread for each library, unless the service was told otherwise. With
    more it would take all processors from decisions.
    """
    return dict.fromkeys(THREADS, "1") | dict(os.environ)


def begin(nice: int) -> None:
    """Leave Ctrl-C to the service, die with it where the kernel supports that, and be the first victim if memory runs
    out.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    with suppress(OSError, AttributeError):
        os.nice(nice)
