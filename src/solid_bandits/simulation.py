"""One (problem, policy, seed) gives one trace; many of them, in parallel, give results. No policy mathematics here."""

import platform
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple, TypeVar

import joblib
import numba
import numpy as np
import polars as pl

from solid_bandits import _check
from solid_bandits._compile import jit
from solid_bandits._types import Floats, Ints, Plain, Words
from solid_bandits.policies.contract import CompiledAgent, Policy, act, update
from solid_bandits.problem import Problem
from solid_bandits.results import COLUMNS, FORMAT, Results
from solid_bandits.stream import ENVIRONMENT, POLICY, make_stream, normal, uniform

T = TypeVar("T")

BLOCKS_PER_POLICY = 20
"""Tasks that a policy's runs are split into: enough for even work and smooth progress, few enough to cost nothing."""


class Truth(NamedTuple):
    """What the loop knows and a policy does not."""

    means: Floats
    gaps: Floats
    context_edges: Floats
    """ρ summed up to each context."""
    noise_std: float


class Trace(NamedTuple):
    """What one run records, at each checkpoint."""

    steps: Ints
    regret: Floats
    explored: Ints


@jit
def _loop(
    agent: CompiledAgent, truth: Truth, trace: Trace, environment: Words, first: int, last: int
) -> None:
    """Play from checkpoint `first` - 1 (the start, if 0) to checkpoint `last` - 1.

    One context and one noise are drawn per step, whatever the policy does.
    """
    step = trace.steps[first - 1] if first > 0 else 0
    regret = trace.regret[first - 1] if first > 0 else 0.0
    explored = trace.explored[first - 1] if first > 0 else 0
    last_context = truth.context_edges.shape[0] - 1
    for checkpoint in range(first, last):
        while step < trace.steps[checkpoint]:
            step += 1
            point = uniform(environment)
            noise = truth.noise_std * normal(environment)
            context = 0
            while context < last_context and point >= truth.context_edges[context]:
                context += 1
            arm, explores = act(agent, context)
            update(agent, context, arm, truth.means[context, arm] + noise)
            regret += truth.gaps[context, arm]
            if explores:
                explored += 1
        trace.regret[checkpoint] = regret
        trace.explored[checkpoint] = explored


def checkpoints(horizon: int, count: int = 200) -> Ints:
    """At most `count` steps from 1 to `horizon`, half of them evenly spaced in time and half in log time."""
    even = np.linspace(1, horizon, count // 2)
    log = np.geomspace(1, horizon, count - count // 2)
    steps: Ints = np.unique(np.concatenate([even, log]).round().astype(np.int64))
    return steps


def play(problem: Problem, policy: Policy, horizon: int, seed: int, run: int, steps: Ints) -> Trace:
    """Run number `run` of a policy: its contexts and noise depend on seed and run only, not on the policy."""
    agent, truth, trace, environment = _begin(problem, policy, horizon, seed, run, steps)
    _loop(agent, truth, trace, environment, 0, len(steps))
    return trace


def play_recorded(
    problem: Problem, policy: Policy, horizon: int, seed: int, run: int, steps: Ints
) -> tuple[Trace, list[Plain]]:
    """The same run, with the policy's insides at each checkpoint where it shows any."""
    agent, truth, trace, environment = _begin(problem, policy, horizon, seed, run, steps)
    rows = []
    for checkpoint in range(len(steps)):
        _loop(agent, truth, trace, environment, checkpoint, checkpoint + 1)
        insides = policy.insides(agent)
        if insides is not None:
            rows.append({"run": run, "step": int(steps[checkpoint]), **insides})
    return trace, rows


def _begin(
    problem: Problem, policy: Policy, horizon: int, seed: int, run: int, steps: Ints
) -> tuple[CompiledAgent, Truth, Trace, Words]:
    truth = Truth(problem.means, problem.gaps, np.cumsum(problem.context_probs), problem.noise_std)
    agent = policy.start(problem.view(horizon), make_stream(seed, run, POLICY))
    trace = Trace(steps, np.zeros(len(steps)), np.zeros(len(steps), dtype=np.int64))
    return agent, truth, trace, make_stream(seed, run, ENVIRONMENT)


class _Block(NamedTuple):
    """A task: some consecutive runs of one policy."""

    policy: str
    first: int
    runs: int


class _Outcome(NamedTuple):
    """What a task gives."""

    block: _Block
    traces: list[Trace]
    insides: list[Plain]
    seconds: float


def _play_block(
    block: _Block, problem: Problem, policy: Policy, horizon: int, seed: int, steps: Ints, insides: bool
) -> _Outcome:
    start = time.process_time()
    traces, rows = [], []
    for run in range(block.first, block.first + block.runs):
        if insides:
            trace, run_rows = play_recorded(problem, policy, horizon, seed, run, steps)
            rows += run_rows
        else:
            trace = play(problem, policy, horizon, seed, run, steps)
        traces.append(trace)
    return _Outcome(block, traces, rows, time.process_time() - start)


def _in_worker(task: Callable[..., T], *arguments: Any) -> T:
    """Run a task in a worker process, which leaves Ctrl-C to its parent: one message, not one traceback each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return task(*arguments)


def _compile_ahead(problem: Problem, policy: Policy) -> None:
    """Fill the compiler's cache on disk, so that the processes to come load what they need."""
    play(problem, policy, horizon=1, seed=0, run=0, steps=np.ones(1, dtype=np.int64))


def configuration_of(
    problem: Problem,
    policies: Mapping[str, Policy],
    horizon: int,
    runs: int,
    seed: int,
    insides: bool = False,
) -> Plain:
    """Everything that decides what the results are, as plain data; bad arguments raise a ValueError."""
    if not policies:
        raise ValueError("policies is empty; give at least one, such as {'SOLID': Solid()}")
    for label, policy in policies.items():
        if not isinstance(policy, Policy):
            raise ValueError(f"policies[{label!r}] is {policy!r}; give a policy such as Solid()")
        # A policy may refuse the problem (several contexts, say): better now than after hours of the others.
        policy.start(problem.view(), make_stream(0, 0, POLICY))
    return {
        "problem": {"description": repr(problem), "fingerprint": problem.fingerprint},
        "policies": {label: policy.describe() for label, policy in policies.items()},
        "horizon": _check.integer("horizon", horizon, least=1),
        "runs": _check.integer("runs", runs, least=1),
        "seed": _check.integer("seed", seed, least=0),
        "insides": bool(insides),
    }


def simulate(
    problem: Problem,
    policies: Mapping[str, Policy],
    horizon: int,
    runs: int = 100,
    seed: int = 0,
    jobs: int | None = None,
    progress: Callable[[float], None] | None = None,
    insides: bool = False,
) -> Results:
    """Play every policy on the problem, `runs` times each.

    Run r of every policy sees the same contexts and the same noise (common random numbers), so policies can be
    compared run by run. Results depend on the arguments only, not on `jobs`.

    Args:
        problem: what is played.
        policies: label -> policy.
        horizon: n, the number of steps; the policies are told.
        runs: independent repetitions.
        seed: of everything random.
        jobs: processes; None is one per core.
        progress: called with the fraction of the work done, from 0 to 1.
        insides: also record, at each checkpoint, what policies show of themselves (`results.insides`): SOLID its
            multiplier, phase, normalisation, test statistic, threshold and exploration policy.

    Example:
        >>> import solid_bandits as sb
        >>> policies = {"SOLID": sb.Solid.paper_toy(), "LinUCB": sb.LinUCB()}
        >>> results = sb.simulate(sb.problems.toy(), policies, horizon=1000, runs=10)
        >>> final = results.final()
    """
    configuration = configuration_of(problem, policies, horizon, runs, seed, insides)
    workers = joblib.cpu_count() if jobs is None else _check.integer("jobs", jobs, least=1)
    steps = checkpoints(horizon)
    blocks = [block for label in policies for block in _blocks(label, runs)]
    report = progress or (lambda fraction: None)

    started = datetime.now(UTC)
    clock = time.perf_counter()
    seconds = dict.fromkeys(policies, 0.0)
    traces: dict[str, dict[int, Trace]] = {label: {} for label in policies}
    rows: dict[str, dict[int, list[Plain]]] = {label: {} for label in policies}
    done = 0
    report(0.0)
    for outcome in _outcomes(blocks, problem, policies, horizon, seed, steps, workers, insides):
        block = outcome.block
        traces[block.policy].update(enumerate(outcome.traces, start=block.first))
        rows[block.policy][block.first] = outcome.insides
        seconds[block.policy] += outcome.seconds
        done += block.runs
        report(done / (runs * len(policies)))
    manifest: Plain = {
        "format": FORMAT,
        "configuration": configuration,
        "versions": _versions(),
        "started": started.isoformat(timespec="seconds"),
        "wall_seconds": round(time.perf_counter() - clock, 3),
        "seconds": {label: round(value, 3) for label, value in seconds.items()},
        "jobs": workers,
    }
    return Results(_table(traces, runs, steps), manifest, _insides_table(rows) if insides else None)


def _blocks(label: str, runs: int) -> list[_Block]:
    size = -(-runs // BLOCKS_PER_POLICY)
    return [_Block(label, first, min(size, runs - first)) for first in range(0, runs, size)]


def _outcomes(
    blocks: list[_Block],
    problem: Problem,
    policies: Mapping[str, Policy],
    horizon: int,
    seed: int,
    steps: Ints,
    workers: int,
    insides: bool,
) -> Iterator[_Outcome]:
    """Play the blocks in processes (in this one if one is enough) and yield each when it is done."""
    if workers == 1 or len(blocks) == 1:
        for block in blocks:
            yield _play_block(block, problem, policies[block.policy], horizon, seed, steps, insides)
        return
    with joblib.Parallel(n_jobs=workers, batch_size=1, return_as="generator_unordered") as pool:
        # Policies whose agents have one type share compiled code, and two processes need not compile the same.
        view, stream = problem.view(horizon), make_stream(seed, 0, POLICY)
        rest = (horizon, seed, steps, insides)
        kinds = {numba.typeof(policy.start(view, stream)): policy for policy in policies.values()}  # type: ignore[no-untyped-call]
        for _ in pool(
            joblib.delayed(_in_worker)(_compile_ahead, problem, policy) for policy in kinds.values()
        ):
            pass
        yield from pool(
            joblib.delayed(_in_worker)(_play_block, block, problem, policies[block.policy], *rest)
            for block in blocks
        )


def _table(traces: dict[str, dict[int, Trace]], runs: int, steps: Ints) -> pl.DataFrame:
    ordered = [(label, run, traces[label][run]) for label in traces for run in range(runs)]
    return pl.DataFrame(
        {
            "policy": np.repeat([label for label, _, _ in ordered], len(steps)),
            "run": np.repeat([run for _, run, _ in ordered], len(steps)),
            "step": np.tile(steps, len(ordered)),
            "regret": np.concatenate([trace.regret for _, _, trace in ordered]),
            "explored": np.concatenate([trace.explored for _, _, trace in ordered]),
        },
        schema=COLUMNS,
    )


def _insides_table(rows: dict[str, dict[int, list[Plain]]]) -> pl.DataFrame:
    ordered = [
        {"policy": label, **row}
        for label, blocks in rows.items()
        for first in sorted(blocks)
        for row in blocks[first]
    ]
    return pl.DataFrame(ordered, infer_schema_length=None)


def _versions() -> dict[str, str]:
    packages = ("solid-bandits", "numpy", "numba", "polars")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
