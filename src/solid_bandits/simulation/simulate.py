"""`simulate`: play, and keep all results in memory."""

import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

from solid_bandits._internal.types import Plain
from solid_bandits.simulation.assembly import assemble
from solid_bandits.simulation.block import Block, BlockResult
from solid_bandits.simulation.fraction import Fraction, Told
from solid_bandits.simulation.labels import Policies
from solid_bandits.simulation.plan import Plan, Playable
from solid_bandits.simulation.playing import Extra, Game, Progress, Sink, device_name, play, workers_for
from solid_bandits.simulation.results import Results
from solid_bandits.streams.base import Stream
from solid_bandits.streams.decisions import Record, make_record, recorded


class Memory(Sink):
    """A sink that keeps blocks and extras unchanged."""

    def __init__(self) -> None:
        self.played: dict[Block, BlockResult] = {}
        self.extras: Plain = {}

    def keep(self, task: Block | str, outcome: Any) -> None:
        """Store the result of a task."""
        if isinstance(task, Block):
            self.played[task] = outcome
        else:
            self.extras[task] = outcome


def simulate(
    problem: Playable | Callable[[int], Playable],
    policies: Policies,
    horizon: int | None = None,
    runs: int = 100,
    seed: int = 0,
    jobs: int | None = None,
    progress: Told = None,
    diagnostics: bool = False,
    pulls: bool = False,
    device: str = "cpu",
    first_run: int = 0,
    tell_noise: bool = True,
    record: str | Record | None = None,
    record_to: str | os.PathLike[str] = "decisions.parquet",
) -> Results:
    """Play every policy on the problem or stream, `runs` times each.

    Run r of every policy sees the same problem, the same contexts and the same noise (common random numbers), so
    policies can be compared run by run. Results depend only on the arguments, not on `jobs`.

    Args:
        problem: what is played, a `Problem` or a `Stream`; or a function from the number of a run to its problem or
            stream, for a new one in each run.
        policies: a policy, a list of policies, or label -> policy; each is one of this package, or an object with `act`
            and `update` (docs/own-policy.md). Without labels, policies of one class are distinguished by the parameters
            in which they differ: `LinUCB (scale=0.5)`.
        horizon: n, the number of steps, which the policies know. None plays a finite stream to its end.
        runs: independent repetitions.
        seed: seed of all random numbers.
        jobs: number of processes; None uses one per core.
        progress: True shows a bar, on a terminal or in a notebook, once the work takes longer than 2 seconds; None does
            so
            in notebooks only, False never. A function is called with the fraction of the work done, from 0 to 1.
        diagnostics: also record internal quantities of the policies at each checkpoint (`results.diagnostics`); for
            SOLID
            its multiplier, phase, normalisation, test statistic, threshold and exploration policy.
        pulls: also record how often each arm has been pulled in each context up to each checkpoint: the column `pulls`
            of
            `results.diagnostics`, a list of counts for each context.
        device: `gpu` plays all runs together on a GPU, with the same kernels and the same random numbers: run r is
            the same on CPU and GPU (docs/gpu.md). For millions of runs see `summarise`.
        first_run: the number of the first run; with `runs=1` it plays a single run again.
        tell_noise: whether the policies are told σ. Policies that plan over a table of contexts need it; the others
            estimate it from the rewards if they are not told.
        record: `"decisions"` writes every decision on a stream to the Parquet file `record_to` (docs/streams.md has
            its columns); or `sb.streams.Record(path, probabilities=True, features=True)`, for more of them.
        record_to: path of the file, which must not exist yet.

    Example:
        >>> import solid_bandits as sb
        >>> results = sb.simulate(sb.problems.toy(), [sb.Solid(), sb.LinUCB()], horizon=1000, runs=10)
        >>> final = results.final()
    """
    kept = make_record(record, record_to)
    # The plan labels the policies, wraps plain objects as policies, and takes the horizon of a finite stream.
    given: Any = (
        problem,
        policies,
        horizon,
        runs,
        seed,
        diagnostics,
        pulls,
        device,
        first_run,
        tell_noise,
        kept,
    )
    plan = Plan(*given)
    told = Fraction(runs * len(plan.policies), progress)
    with told.waiting:
        return simulate_plan(plan, jobs, told)


def simulate_plan(
    plan: Plan, jobs: int | None, progress: Progress, extras: tuple[Extra, ...] = ()
) -> Results:
    """Play a plan into memory, reporting to `progress`. The results of extras go into the manifest."""
    workers = workers_for(plan, jobs)
    started, clock, memory = datetime.now(UTC), time.perf_counter(), Memory()
    shared = (
        plan.problem.shared() if isinstance(plan.problem, Stream) and workers.count > 1 else nullcontext()
    )
    with shared, recorded(plan.record):
        play([Game(plan, memory, extras)], workers, progress)
    facts = {
        "started": started.isoformat(timespec="seconds"),
        "wall_seconds": round(time.perf_counter() - clock, 3),
        "jobs": workers.count,
        "device": device_name(plan),
        **memory.extras,
    }
    return assemble(plan, memory.played, facts)
