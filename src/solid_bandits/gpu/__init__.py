"""The same kernels on a GPU: one thread plays one run.

`policies/` and the loop are compiled for the GPU as they are. What differs is here: where a run's state lives
(`layout`), how its agent is put together in a thread (`kernel`), and how runs are sent there and brought back
(`wave`).
"""
