"""The same kernels on a GPU, with one thread per run.

`policies/` and the loop are compiled for the GPU unchanged. The differences are here: where a run's state is stored
(`layout`), how a thread assembles its agent (`kernel`), and how runs are sent and their results brought back (`wave`).
"""
