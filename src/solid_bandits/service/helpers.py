"""What the processes beside the service do first: they end with it, and give way to it."""

import os
import signal
from contextlib import suppress
from pathlib import Path


def begin(nice: int) -> None:
    """Leave Ctrl-C to the service, end with it however it ends, where the kernel can, and be the first to go where
    memory ends.
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
