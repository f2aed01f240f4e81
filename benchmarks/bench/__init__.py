"""A step of every policy: time, floor, ratio, growth; speed compared with plain NumPy; a guard against regressions.

Usage: python benchmarks/bench [--rounds N] [--seconds S] [--only POLICY ...] [--write] [--strict]
       python benchmarks/bench --calls [--rounds N] [--seconds S] [--write] [--strict]

Exploring and exploiting steps are timed separately, in the simulation's own compiled loop, from a state in which
the policy does nothing else: SOLID with a threshold that always or never passes, epsilon-greedy with ε = 1 or
0, the others with noise so large or so small that their own test decides. Every round of the measurement
plays the same steps again from that state, then measures every kernel of the floor (`floors.py`); rounds of
all policies of one size are interleaved, and medians over rounds are reported. Times are CPU times of one
thread, less the loop without a policy.

The ratios are compared with the committed ones (`bench.json`): a warning is given if one is more than 25% worse,
after a second measurement of those that look worse. `--write` commits this run: `bench.json` and `bench.md`.

Calls from Python are measured last (`calls.py`): `Agent` and `Bandit`, one at a time and in batches, next to the
compiled calls in them and to thirty lines of NumPy, and compared with the committed ratios in the same way. As a
short form, `--calls` measures only them, and with `--write` commits only them, in `bench.json` and `calls.md`.
"""

import os

# Set before NumPy is loaded, because single threads are compared.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"
