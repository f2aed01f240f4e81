"""A plan: the arguments of `simulate`, checked."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numba

from solid_bandits._internal import checks
from solid_bandits._internal.checks import short
from solid_bandits._internal.decoding import as_plain
from solid_bandits._internal.parameters import check_parameters, parameter
from solid_bandits._internal.types import Bools, Floats, Ints, Plain
from solid_bandits.core.loop import checkpoints
from solid_bandits.core.problem import Problem
from solid_bandits.core.randomness import POLICY, make_rng
from solid_bandits.core.spread import depends_on_units, finding_of_rounds, warn
from solid_bandits.gpu.device import check_fits, require_gpu, task_runs
from solid_bandits.policies.contract import CompiledAgent, Policy, TablePolicy, start
from solid_bandits.policies.plain import PlainAgent
from solid_bandits.simulation.labels import labelled
from solid_bandits.simulation.results_format import Configuration, PlayedProblem
from solid_bandits.streams.base import Stream, StreamKind, kind_of, names_of, sizes_of
from solid_bandits.streams.decisions import Record
from solid_bandits.streams.rounds import sound_blocks

Playable = Problem | Stream
"""Types that can be played: problems and streams."""

MOST_RUNS = 2**32
"""Run numbers are smaller than this."""


@dataclass
class Plan:
    """A problem or a stream, or a family of them, with policies and how often and how long each plays."""

    problem: Playable | Callable[[int], Playable]
    policies: Mapping[str, Policy]
    horizon: int
    runs: int = parameter(kind=int, least=1, most=MOST_RUNS)
    seed: int = parameter(kind=int, least=0)
    diagnostics: bool = parameter(False)
    pulls: bool = parameter(False)
    device: str = parameter("cpu", choices=("cpu", "gpu"))
    first_run: int = parameter(0, least=0, most=MOST_RUNS)
    """The number of the first run."""
    tell_noise: bool = parameter(True)
    """Whether policies are told σ."""
    record: Record | None = None
    name: str = ""
    """The name of the problem, where it has one."""
    kind: StreamKind | None = field(init=False, default=None)
    """The kind of the streams of all runs; None where problems are played."""
    first: Playable = field(init=False)
    """The problem or the stream of the first run."""
    agent_types: dict[str, Any] = field(init=False, default_factory=dict)
    """numba's type of each policy's agents, label -> type; None for policies in plain Python."""
    gpu_runs: dict[str, int] = field(init=False, default_factory=dict)
    """Number of runs per GPU task, label -> runs."""

    def __post_init__(self) -> None:
        self.policies = labelled(self.policies)
        if self.horizon is not None:  # a stream may have its own
            checks.integer("horizon", self.horizon, least=1)
        check_parameters(self)
        checks.integer("first_run", self.first_run, least=0, most=MOST_RUNS - self.runs)
        if self.device == "gpu":
            require_gpu()
            self._refuse_records("must be False with device='gpu', got True; record them with device='cpu'")
        if callable(self.problem):
            _check_function(self.problem)
        self.first = self.problem_of(self.first_run)
        if isinstance(self.first, Stream):
            self._begin_stream(self.first)
        elif not isinstance(self.first, Problem):
            got = (
                f"a function that returns {short(self.first)}"
                if callable(self.problem)
                else short(self.first)
            )
            raise checks.ArgumentError(
                "problem", f"must be a Problem or a Stream, or a function from a run to one, got {got}"
            )
        elif self.record is not None:
            raise checks.ArgumentError(
                "record", "must be left out for a problem; sb.streams.of_problem makes a stream of it"
            )
        checks.integer("horizon", self.horizon, least=1)
        self._look_at_policies()

    def _refuse_records(self, complaint: str) -> None:
        for name in ("diagnostics", "pulls"):
            if getattr(self, name):
                raise checks.ArgumentError(name, complaint)

    def _begin_stream(self, stream: Stream) -> None:
        """Check the arguments that matter only for a stream, and fit its ridge model."""
        self.kind = kind_of(stream)
        if stream.length is not None:
            length = checks.integer("length", stream.length, least=1)
            self.horizon = length if self.horizon is None else self.horizon
            if self.horizon > length:
                raise checks.ArgumentError(
                    "horizon", f"must be at most {length}, the rounds of the stream, got {self.horizon}"
                )
        if self.device == "gpu":
            raise checks.ArgumentError("device", "must be 'cpu' for a stream, got 'gpu'")
        self._refuse_records("must be left out for a stream: policies that decide from features have none")
        _ = stream.fit  # made once, here, and sent to the worker processes

    def _look_at_policies(self) -> None:
        """Start each policy once: if it refuses the problem, it should do so now and not after hours of the others."""
        dependent = False
        for label, policy in self.policies.items():
            agent = idle_agent(policy, self.first, self.horizon, self.tell_noise)
            dependent = dependent or depends_on_units(agent)
            plain = isinstance(agent, PlainAgent)
            self.agent_types[label] = None if plain else numba.typeof(agent)  # type: ignore[no-untyped-call]
            if self.device == "gpu":
                check_fits(policy.name, agent)
                each_its_own = callable(self.problem) or getattr(policy, "kernels", None) is not None
                self.gpu_runs[label] = task_runs(agent, each_its_own)
        # Checked here, so that the warning appears once and not in each worker.
        if isinstance(self.first, Stream) and dependent:
            names = names_of(self.first, "feature_names", self.first.dim)
            words = finding_of_rounds(self.first.dim, names, _offers(self.first, self.seed, self.first_run))
            if words is not None:
                warn(words)

    @property
    def fixed(self) -> bool:
        """Whether every run plays the same problem."""
        return not callable(self.problem)

    def problem_of(self, run: int) -> Playable:
        """Return the problem or the stream of run number `run`."""
        return self.problem(run) if callable(self.problem) else self.problem

    @property
    def on_stream(self) -> bool:
        """Whether a stream is played."""
        return self.kind is not None

    @property
    def steps(self) -> Ints:
        """The steps at which results are recorded."""
        return checkpoints(self.horizon)

    def configuration(self) -> Plain:
        """Return everything that the results depend on, as plain data."""
        first = self.first
        if self.fixed:
            description, fingerprint = repr(first), first.fingerprint
        else:
            # Describing all problems would take long where they are large; a changed generator shows in the first and
            # the last.
            description = f"a new problem in each run, the first {first!r}"
            fingerprint = f"{first.fingerprint}-{self.problem_of(self.first_run + self.runs - 1).fingerprint}"
        arms = tuple(first.arm_names or ()) if isinstance(first, Stream) else ()
        problem = PlayedProblem(description, fingerprint, self.name, arms)
        configuration = Configuration(
            problem=problem,
            policies={
                label: {name: as_plain(value) for name, value in policy.describe().items()}
                for label, policy in self.policies.items()
            },
            horizon=int(self.horizon),
            runs=int(self.runs),
            seed=int(self.seed),
            diagnostics=bool(self.diagnostics),
            first_run=int(self.first_run),
            pulls=bool(self.pulls),
            tell_noise=bool(self.tell_noise),
            stream=self.on_stream,
        )
        return cast("Plain", as_plain(configuration))


def _offers(stream: Stream, seed: int, run: int) -> Iterator[tuple[Floats, Bools]]:
    """Yield the features and the mask of each round of a stream."""
    for block in sound_blocks(stream.blocks(seed, run), *sizes_of(stream)):
        arrays = block.arrays
        for features, available, count in zip(arrays.features, arrays.available, arrays.counts, strict=True):
            yield features[:count], available[:count]


def _check_function(function: Callable[..., object]) -> None:
    """Raise a ValueError unless the function takes the number of a run as its only required argument."""
    try:
        inspect.signature(function).bind(0)
    except TypeError as error:
        raise checks.ArgumentError(
            "problem", f"must be a Problem, or a function from a run to one, got {short(function)} ({error})"
        ) from None
    except ValueError:
        return  # functions written in another language have no signature


def idle_agent(policy: Policy, problem: Playable, horizon: int, tell_noise: bool) -> CompiledAgent:
    """Return an agent that will not play; it shows its type, and whether the policy accepts the problem."""
    if isinstance(problem, Stream) and isinstance(policy, TablePolicy):
        from solid_bandits.policies.catalogue import DECIDING

        raise ValueError(
            f"policies must decide from features to play a stream, got {policy.name}, which plans over a table of "
            f"contexts known in advance; use one of {', '.join(DECIDING)}"
        )
    table = None if isinstance(problem, Stream) else problem.table
    return start(policy, problem.setting(horizon, tell_noise), table, make_rng(0, 0, POLICY))
