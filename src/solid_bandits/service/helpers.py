"""Set-up of the processes next to the service: they end with it, and yield resources to it."""

import os
import signal
from contextlib import suppress
from pathlib import Path


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
