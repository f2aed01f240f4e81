"""One (problem, policy, seed) gives one trace. No policy mathematics here."""

from typing import NamedTuple

import numpy as np

from solid_bandits._internal.checks import short
from solid_bandits._internal.compiling import compiled_for, jit, jit_apart
from solid_bandits._internal.types import Bools, Floats, Ints, Plain, Words
from solid_bandits.core.problem import Problem
from solid_bandits.core.randomness import ENVIRONMENT, POLICY, make_rng, normal, uniform
from solid_bandits.core.setting import LARGEST_REWARD, Setting, Table
from solid_bandits.policies.contract import CompiledAgent, Policy, act, kernels, start, update
from solid_bandits.policies.own import OwnPolicyError, compiling
from solid_bandits.policies.plain import PlainAgent


class Truth(NamedTuple):
    """Data that the loop knows and a policy does not."""

    features: Floats
    means: Floats
    gaps: Floats
    context_edges: Floats
    """Cumulative ρ."""
    noise_std: float
    available: Bools
    """Mask of the available arms: all, always."""


class Trace(NamedTuple):
    """Record of one run at each checkpoint."""

    steps: Ints
    regret: Floats
    explored: Ints
    pulls: Ints = np.zeros((0, 0), dtype=np.int64)  # never written to: if empty, nothing is counted
    """(contexts, arms): number of pulls of each arm so far, if requested."""


@jit
def draw_round(context_edges: Floats, noise_std: float, environment: Words) -> tuple[int, float]:
    """Return the context and the noise of one step: two draws, whatever the policy does."""
    point = uniform(environment)
    noise = noise_std * normal(environment)
    context, last = 0, context_edges.shape[0] - 1
    while context < last and point >= context_edges[context]:
        context += 1
    return context, noise


@jit_apart
def _loop(
    agent: CompiledAgent, truth: Truth, trace: Trace, environment: Words, first: int, last: int
) -> tuple[int, int]:
    """Play from checkpoint `first` - 1 (the start, if 0) to checkpoint `last` - 1.

    One context and one noise are drawn per step, whatever the policy does. Returns the step at which the policy chose
    an arm that does not exist, and that arm; (0, 0) if it never did.
    """
    step = trace.steps[first - 1] if first > 0 else 0
    regret = trace.regret[first - 1] if first > 0 else 0.0
    explored = trace.explored[first - 1] if first > 0 else 0
    counting = trace.pulls.shape[0] > 0
    for checkpoint in range(first, last):
        while step < trace.steps[checkpoint]:
            step += 1
            context, noise = draw_round(truth.context_edges, truth.noise_std, environment)
            arms = truth.features[context]
            arm, explores = act(agent, context, arms, truth.available, None)
            if not 0 <= arm < arms.shape[0]:
                return step, arm
            update(agent, context, arm, arms[arm], truth.means[context, arm] + noise, 0)
            regret += truth.gaps[context, arm]
            if explores:
                explored += 1
            if counting:
                trace.pulls[context, arm] += 1
        trace.regret[checkpoint] = regret
        trace.explored[checkpoint] = explored
    return 0, 0


def _advance(policy: Policy, run: tuple[CompiledAgent, Truth, Trace, Words], first: int, last: int) -> None:
    """Run the loop, compiled, or as Python for a policy in plain Python."""
    agent, truth, _, _ = run
    with compiling(policy, agent, lambda: kernels(type(agent))):
        if isinstance(agent, PlainAgent):
            loop = getattr(_loop, "py_func", _loop)
        else:
            loop = compiled_for(_loop, *run, first, last)
        step, arm = loop(*run, first, last)
    if step > 0:
        refuse_arm(policy, arm, step, len(truth.available))


def refuse_arm(policy: Policy, arm: int, step: int, n_arms: int) -> None:
    """Raise the error for a policy that chose an arm that does not exist."""
    raise OwnPolicyError(
        f"{policy.name}'s kernel act must return an arm from 0 to {n_arms - 1}, got {arm} at step {step}"
    )


def checkpoints(horizon: int, count: int = 200) -> Ints:
    """Return at most `count` steps from 1 to `horizon`, half of them evenly spaced in time and half in log time."""
    even = np.linspace(1, horizon, count // 2)
    log = np.geomspace(1, horizon, count - count // 2)
    steps: Ints = np.unique(np.concatenate([even, log, [horizon]]).round().astype(np.int64))
    return steps


def play(
    problem: Problem, policy: Policy, horizon: int, seed: int, run: int, steps: Ints, tell_noise: bool = True
) -> Trace:
    """Play run number `run` of a policy; its contexts and noise depend on seed and run only, not on the policy."""
    begun = _begin(problem, policy, horizon, seed, run, steps, tell_noise)
    _advance(policy, begun, 0, len(steps))
    return begun[2]


def play_recorded(
    problem: Problem,
    policy: Policy,
    horizon: int,
    seed: int,
    run: int,
    steps: Ints,
    diagnostics: bool = True,
    pulls: bool = False,
    tell_noise: bool = True,
) -> tuple[Trace, list[Plain]]:
    """Play the same run, recording the policy's diagnostics and the pulls at each checkpoint."""
    agent, truth, trace, environment = _begin(problem, policy, horizon, seed, run, steps, tell_noise)
    if pulls:
        trace = trace._replace(pulls=np.zeros(problem.gaps.shape, dtype=np.int64))
    begun = agent, truth, trace, environment
    rows: list[Plain] = []
    for checkpoint in range(len(steps)):
        _advance(policy, begun, checkpoint, checkpoint + 1)
        row = (policy.diagnostics(agent) if diagnostics else None) or {}
        if pulls:
            row = {**row, "pulls": trace.pulls.tolist()}
        if row:
            rows.append({"run": run, "step": int(steps[checkpoint]), **row})
    return trace, rows


def _begin(
    problem: Problem, policy: Policy, horizon: int, seed: int, run: int, steps: Ints, tell_noise: bool = True
) -> tuple[CompiledAgent, Truth, Trace, Words]:
    agent, _ = start_run(problem, policy, horizon, seed, run, tell_noise)
    trace = Trace(steps, np.zeros(len(steps)), np.zeros(len(steps), dtype=np.int64))
    return agent, make_truth(problem), trace, make_rng(seed, run, ENVIRONMENT)


def start_run(
    problem: Problem, policy: Policy, horizon: int, seed: int, run: int, tell_noise: bool
) -> tuple[CompiledAgent, Words]:
    """Return the agent of a run and its random numbers; raise an error for inconsistent problems."""
    if not isinstance(problem, Problem):  # a function from runs to problems may return anything
        raise ValueError(f"problem must be a Problem in every run, got {short(problem)} in run {run}")
    setting, table = problem.setting(horizon, tell_noise), problem.table
    _check_shapes(problem, setting, table)
    rng = make_rng(seed, run, POLICY)
    return start(policy, setting, table, rng), rng


def make_truth(problem: Problem) -> Truth:
    """Return the loop's data of a problem, whose mean rewards must lie in the stated range."""
    largest = float(np.abs(problem.means).max())
    if largest > LARGEST_REWARD:
        raise ValueError(
            f"problem must have mean rewards of at most {LARGEST_REWARD:g} in size, got {largest:g}; use larger units"
        )
    available = np.ones(problem.features.shape[1], dtype=np.bool_)
    available.flags.writeable = False
    return Truth(
        features=problem.features,
        means=problem.means,
        gaps=problem.gaps,
        context_edges=np.cumsum(problem.context_probs),
        noise_std=problem.noise_std,
        available=available,
    )


def _check_shapes(problem: Problem, setting: Setting, table: Table) -> None:
    """Raise an error for inconsistent arrays, reshaped in place or from a subclass, since the loop relies on them."""
    n_contexts, n_arms, dim = problem.features.shape
    found = {
        "theta": (problem.theta.shape, (dim,)),
        "context_probs": (problem.context_probs.shape, (n_contexts,)),
        "means": (problem.means.shape, (n_contexts, n_arms)),
        "gaps": (problem.gaps.shape, (n_contexts, n_arms)),
        "table.features": (table.features.shape, (n_contexts, n_arms, dim)),
        "table.columns": (table.columns.shape, (dim, n_contexts * n_arms)),
        "setting.dim": (setting.dim, dim),
    }
    for name, (got, wanted) in found.items():
        if got != wanted:
            raise ValueError(
                f"problem must be as it was made, with {name} of {wanted} for features of shape "
                f"{problem.features.shape}, got {got}"
            )
