"""What is to be played: the arguments of `simulate`, checked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from reprlib import repr as short

from solid_bandits import _check
from solid_bandits._types import Ints, Plain
from solid_bandits.loop import checkpoints
from solid_bandits.policies.contract import CompiledAgent, Policy, start
from solid_bandits.policies.plain import as_policy
from solid_bandits.problem import Problem
from solid_bandits.stream import POLICY, make_stream


@dataclass(frozen=True)
class Plan:
    """A problem or a family of them, policies, and how often and how long each plays."""

    problem: Problem | Callable[[int], Problem]
    policies: Mapping[str, Policy]
    horizon: int
    runs: int
    seed: int
    diagnostics: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.policies, Mapping):
            raise _check.ArgumentError(
                "policies",
                f"must be labels with policies, such as {{'SOLID': Solid()}}, got {self.policies!r}",
            )
        if not self.policies:
            raise _check.ArgumentError("policies", "must not be empty; give one such as {'SOLID': Solid()}")
        _check.integer("horizon", self.horizon, least=1)
        _check.integer("runs", self.runs, least=1)
        _check.integer("seed", self.seed, least=0)
        _check.switch("diagnostics", self.diagnostics)
        for label in self.policies:
            if not isinstance(label, str):
                raise _check.ArgumentError("policies", f"must have words for labels, got {label!r}")
        problem = self.problem_of(0)
        if not isinstance(problem, Problem):
            got = f"a function that returns {short(problem)}" if callable(self.problem) else short(problem)
            raise _check.ArgumentError(
                "problem", f"must be a Problem, or a function from a run to one, got {got}"
            )
        policies = {label: as_policy(f"policies[{label!r}]", one) for label, one in self.policies.items()}
        object.__setattr__(self, "policies", policies)  # the one moment at which the frozen field is written
        for policy in policies.values():
            # A policy may refuse the problem (several contexts, say): better now than after hours of the others.
            idle_agent(policy, problem, self.horizon)

    @property
    def fixed(self) -> bool:
        """Whether every run is on the same problem."""
        return not callable(self.problem)

    def problem_of(self, run: int) -> Problem:
        """The problem of run number `run`."""
        return self.problem(run) if callable(self.problem) else self.problem

    @property
    def steps(self) -> Ints:
        """The checkpoints."""
        return checkpoints(self.horizon)

    def configuration(self) -> Plain:
        """Everything that decides what the results are, as plain data."""
        first = self.problem_of(0)
        if self.fixed:
            description, fingerprint = repr(first), first.fingerprint
        else:
            # All of them would take long where problems are large; a changed generator shows in the first and last.
            description = f"a new problem in each run, the first {first!r}"
            fingerprint = f"{first.fingerprint}-{self.problem_of(self.runs - 1).fingerprint}"
        return {
            "problem": {"description": description, "fingerprint": fingerprint},
            "policies": {label: policy.describe() for label, policy in self.policies.items()},
            "horizon": int(self.horizon),
            "runs": int(self.runs),
            "seed": int(self.seed),
            "diagnostics": bool(self.diagnostics),
        }


def idle_agent(policy: Policy, problem: Problem, horizon: int) -> CompiledAgent:
    """An agent that is not going to play: for what its type is, and whether the policy takes the problem."""
    return start(policy, problem.setting(horizon), problem.table, make_stream(0, 0, POLICY))
