"""What is to be played: the arguments of `simulate`, checked."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from solid_bandits import _check
from solid_bandits._check import short
from solid_bandits._types import Ints, Plain
from solid_bandits.gpu.device import check_fits, require_gpu
from solid_bandits.loop import checkpoints
from solid_bandits.policies.contract import CompiledAgent, Policy, TablePolicy, start
from solid_bandits.problem import Problem
from solid_bandits.simulation.labels import labelled
from solid_bandits.stream import POLICY, make_stream
from solid_bandits.streams import Record, Stream
from solid_bandits.streams.base import StreamKind, kind_of

Playable = Problem | Stream
"""What is played."""

MOST_RUNS = 2**32
"""Runs are numbered below it."""


@dataclass(frozen=True)
class Plan:
    """A problem or a stream, or a family of them, policies, and how often and how long each plays."""

    problem: Playable | Callable[[int], Playable]
    policies: Mapping[str, Policy]
    horizon: int
    runs: int
    seed: int
    diagnostics: bool = False
    pulls: bool = False
    device: str = "cpu"
    """`cpu` or `gpu`."""
    first_run: int = 0
    """The number of the first run."""
    tell_noise: bool = True
    """Whether policies are told σ."""
    record: Record | None = None
    kind: StreamKind | None = field(init=False, default=None)
    """What the stream of every run is; None where problems are played."""

    def __post_init__(self) -> None:
        self._check_arguments()
        problem = self.problem_of(self.first_run)
        if not isinstance(problem, Problem | Stream):
            got = f"a function that returns {short(problem)}" if callable(self.problem) else short(problem)
            raise _check.ArgumentError(
                "problem", f"must be a Problem or a Stream, or a function from a run to one, got {got}"
            )
        if isinstance(problem, Stream):  # the one moment at which these are written
            object.__setattr__(self, "kind", kind_of(problem))
            if self.horizon is None:
                object.__setattr__(self, "horizon", problem.length)
        _check.integer("horizon", self.horizon, least=1)
        if isinstance(problem, Stream):
            self._check_stream(problem)
        elif self.record is not None:
            raise _check.ArgumentError(
                "record", "must be left out for a problem; sb.streams.of_problem makes a stream of it"
            )
        for policy in self.policies.values():
            # A policy may refuse the problem (several contexts, say): better now than after hours of the others.
            agent = idle_agent(policy, problem, self.horizon, self.tell_noise)
            if self.device == "gpu":
                check_fits(policy.name, agent)

    def _check_arguments(self) -> None:
        """Everything but the horizon, which a stream may have itself."""
        # The one moment at which the frozen field is written.
        object.__setattr__(self, "policies", labelled(self.policies))
        if self.horizon is not None:
            _check.integer("horizon", self.horizon, least=1)
        _check.integer("runs", self.runs, least=1, most=MOST_RUNS)
        _check.integer("seed", self.seed, least=0)
        _check.integer("first_run", self.first_run, least=0, most=MOST_RUNS - self.runs)
        for name in ("diagnostics", "pulls", "tell_noise"):
            _check.switch(name, getattr(self, name))
        _check.choice("device", self.device, ("cpu", "gpu"))
        if self.device == "gpu":
            require_gpu()
            for name in ("diagnostics", "pulls"):
                if getattr(self, name):
                    raise _check.ArgumentError(
                        name, "must be False with device='gpu', got True; record them with device='cpu'"
                    )
        if callable(self.problem):
            _check_function(self.problem)

    def _check_stream(self, stream: Stream) -> None:
        if stream.length is not None and self.horizon > _check.integer("length", stream.length, least=1):
            raise _check.ArgumentError(
                "horizon", f"must be at most {stream.length}, the rounds there are, got {self.horizon}"
            )
        if self.device == "gpu":
            raise _check.ArgumentError("device", "must be 'cpu' for a stream, got 'gpu'")
        for name in ("diagnostics", "pulls"):
            if getattr(self, name):
                raise _check.ArgumentError(
                    name, "must be left out for a stream: policies that decide from features have none"
                )
        _ = stream.fit  # made here, once: the processes that play take it along

    @property
    def fixed(self) -> bool:
        """Whether every run is on the same problem."""
        return not callable(self.problem)

    def problem_of(self, run: int) -> Playable:
        """The problem or the stream of run number `run`."""
        return self.problem(run) if callable(self.problem) else self.problem

    @property
    def on_stream(self) -> bool:
        """Whether a stream is played."""
        return self.kind is not None

    @property
    def steps(self) -> Ints:
        """The checkpoints."""
        return checkpoints(self.horizon)

    def configuration(self) -> Plain:
        """Everything that decides what the results are, as plain data."""
        first = self.problem_of(self.first_run)
        if self.fixed:
            description, fingerprint = repr(first), first.fingerprint
        else:
            # All of them would take long where problems are large; a changed generator shows in the first and last.
            description = f"a new problem in each run, the first {first!r}"
            fingerprint = f"{first.fingerprint}-{self.problem_of(self.first_run + self.runs - 1).fingerprint}"
        names = first.arm_names if isinstance(first, Stream) else None
        arms = {} if names is None else {"arms": names}
        numbered = {"first_run": int(self.first_run)} if self.first_run else {}
        return {
            "problem": {"description": description, "fingerprint": fingerprint, **arms},
            "policies": {label: policy.describe() for label, policy in self.policies.items()},
            "horizon": int(self.horizon),
            "runs": int(self.runs),
            "seed": int(self.seed),
            "diagnostics": bool(self.diagnostics),
            **numbered,
            # Only where it is asked for: results from before it could be are still what was asked.
            **({"pulls": True} if self.pulls else {}),
            **({} if self.tell_noise else {"tell_noise": False}),
            **({"stream": True} if isinstance(first, Stream) else {}),
        }


def _check_function(function: Callable[..., object]) -> None:
    """Refuse what is called otherwise than with the number of a run."""
    try:
        inspect.signature(function).bind(0)
    except TypeError as error:
        raise _check.ArgumentError(
            "problem", f"must be a Problem, or a function from a run to one, got {short(function)} ({error})"
        ) from None
    except ValueError:
        return  # what is written in another language does not tell


def idle_agent(policy: Policy, problem: Playable, horizon: int, tell_noise: bool) -> CompiledAgent:
    """An agent that is not going to play: for what its type is, and whether the policy takes the problem."""
    if isinstance(problem, Stream) and isinstance(policy, TablePolicy):
        raise ValueError(
            f"policies must decide from features to play a stream, got {policy.name}, which plans over a table of "
            "contexts known in advance; use RandUCB, LinTS, VIDS, StreamingSolid, LinUCB, EpsilonGreedy or Greedy"
        )
    table = None if isinstance(problem, Stream) else problem.table
    return start(policy, problem.setting(horizon, tell_noise), table, make_stream(0, 0, POLICY))
