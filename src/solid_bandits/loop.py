"""One (problem, policy, seed) gives one trace. No policy mathematics here."""

from typing import NamedTuple

import numpy as np

from solid_bandits._compile import compiled_for, jit_apart
from solid_bandits._types import Bools, Floats, Ints, Plain, Words
from solid_bandits.policies.contract import CompiledAgent, Policy, act, kernels, start, update
from solid_bandits.policies.own import OwnPolicyError, compiling
from solid_bandits.policies.plain import PlainAgent
from solid_bandits.problem import Problem
from solid_bandits.setting import LARGEST_REWARD
from solid_bandits.stream import ENVIRONMENT, POLICY, make_stream, normal, uniform


class Truth(NamedTuple):
    """What the loop knows and a policy does not."""

    features: Floats
    means: Floats
    gaps: Floats
    context_edges: Floats
    """ρ summed up to each context."""
    noise_std: float
    available: Bools
    """All arms, always."""


class Trace(NamedTuple):
    """What one run records, at each checkpoint."""

    steps: Ints
    regret: Floats
    explored: Ints


@jit_apart
def _loop(
    agent: CompiledAgent, truth: Truth, trace: Trace, environment: Words, first: int, last: int
) -> tuple[int, int]:
    """Play from checkpoint `first` - 1 (the start, if 0) to checkpoint `last` - 1.

    One context and one noise are drawn per step, whatever the policy does. Returns the step at which the policy named
    an arm that is none, and that arm; (0, 0) if it never did.
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
            arms = truth.features[context]
            arm, explores = act(agent, context, arms, truth.available)
            if not 0 <= arm < arms.shape[0]:
                return step, arm
            update(agent, context, arm, arms[arm], truth.means[context, arm] + noise)
            regret += truth.gaps[context, arm]
            if explores:
                explored += 1
        trace.regret[checkpoint] = regret
        trace.explored[checkpoint] = explored
    return 0, 0


def _advance(policy: Policy, run: tuple[CompiledAgent, Truth, Trace, Words], first: int, last: int) -> None:
    """The loop, compiled; the same text run by Python for a policy in plain Python."""
    agent, truth, _, _ = run
    with compiling(policy, agent, lambda: kernels(type(agent))):
        if isinstance(agent, PlainAgent):
            loop = getattr(_loop, "py_func", _loop)
        else:
            loop = compiled_for(_loop, *run, first, last)
        step, arm = loop(*run, first, last)
    if step > 0:
        raise OwnPolicyError(
            f"{policy.name}'s kernel act must return an arm from 0 to {len(truth.available) - 1}, got {arm} "
            f"at step {step}"
        )


def checkpoints(horizon: int, count: int = 200) -> Ints:
    """At most `count` steps from 1 to `horizon`, half of them evenly spaced in time and half in log time."""
    even = np.linspace(1, horizon, count // 2)
    log = np.geomspace(1, horizon, count - count // 2)
    steps: Ints = np.unique(np.concatenate([even, log, [horizon]]).round().astype(np.int64))
    return steps


def play(problem: Problem, policy: Policy, horizon: int, seed: int, run: int, steps: Ints) -> Trace:
    """Run number `run` of a policy: its contexts and noise depend on seed and run only, not on the policy."""
    begun = _begin(problem, policy, horizon, seed, run, steps)
    _advance(policy, begun, 0, len(steps))
    return begun[2]


def play_recorded(
    problem: Problem, policy: Policy, horizon: int, seed: int, run: int, steps: Ints
) -> tuple[Trace, list[Plain]]:
    """The same run, with the policy's diagnostics at each checkpoint where it shows any."""
    begun = _begin(problem, policy, horizon, seed, run, steps)
    agent, _, trace, _ = begun
    rows = []
    for checkpoint in range(len(steps)):
        _advance(policy, begun, checkpoint, checkpoint + 1)
        diagnostics = policy.diagnostics(agent)
        if diagnostics is not None:
            rows.append({"run": run, "step": int(steps[checkpoint]), **diagnostics})
    return trace, rows


def _begin(
    problem: Problem, policy: Policy, horizon: int, seed: int, run: int, steps: Ints
) -> tuple[CompiledAgent, Truth, Trace, Words]:
    largest = float(np.abs(problem.means).max())
    if largest > LARGEST_REWARD:
        raise ValueError(
            f"problem must have mean rewards of at most {LARGEST_REWARD:g} in size, got {largest:g}; use larger units"
        )
    available = np.ones(problem.n_arms, dtype=np.bool_)
    available.flags.writeable = False
    truth = Truth(
        features=problem.features,
        means=problem.means,
        gaps=problem.gaps,
        context_edges=np.cumsum(problem.context_probs),
        noise_std=problem.noise_std,
        available=available,
    )
    agent = start(policy, problem.setting(horizon), problem.table, make_stream(seed, run, POLICY))
    trace = Trace(steps, np.zeros(len(steps)), np.zeros(len(steps), dtype=np.int64))
    return agent, truth, trace, make_stream(seed, run, ENVIRONMENT)
