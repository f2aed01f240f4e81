"""How long an experiment will take, before it is played: a rough guess, corrected by what is measured on the way."""

from solid_bandits.experiments.experiment import Experiment
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.oam import OAM
from solid_bandits.problem import Problem
from solid_bandits.simulation import Block, Plan
from solid_bandits.simulation.plan import Playable

# CPU microseconds of a step: (once, per pair of context and arm, per pair and dimension), fitted by eye to the runs
# behind docs/reproduction.md and docs/jester.md. A policy that is not here costs as much as the most expensive.
_COSTS = {
    "Solid": (0.2, 0.006, 0.0001),
    "LinUCB": (0.12, 0.001, 0.0001),
    "RandUCB": (0.15, 0.001, 0.0001),
    "LinTS": (0.3, 0.001, 0.00015),
    "Greedy": (0.1, 0.001, 0.0001),
    "EpsilonGreedy": (0.1, 0.001, 0.0001),
    "PlainPolicy": (15.0, 0.0, 0.0),
    "UCB1": (0.05, 0.001, 0.0),
    "AOIDS": (0.3, 0.01, 0.001),
    "SPL": (0.3, 0.01, 0.001),
    "OSSB": (2.0, 0.1, 0.06),
    "EndOfOptimism": (0.3, 0.001, 0.0001),
    "OAM": (0.3, 0.0, 0.08),
}

DIAGNOSTICS_SECONDS = 0.1
"""What a run takes to record diagnostics at its checkpoints, whose number hardly depends on the horizon."""
GPU_CORES = 500
"""How many cores a GPU is worth, roughly, once it has thousands of runs to play."""


def step_seconds(policy: Policy, problem: Playable) -> float:
    """CPU seconds of a step, roughly; making or reading the rounds of a stream is not in it."""
    pairs = problem.n_contexts * problem.n_arms if isinstance(problem, Problem) else problem.n_arms
    once, per_pair, per_entry = _COSTS.get(type(policy).__name__, _COSTS["OAM"])
    cost = once + per_pair * pairs + per_entry * pairs * problem.dim
    if isinstance(policy, OAM) and policy.resolve_every > 1:
        cost /= min(policy.resolve_every, 10)
    return cost * 1e-6


def plan_seconds(plan: Plan) -> dict[str, float]:
    """CPU seconds of one run, label -> seconds."""
    problem = plan.problem_of(0)
    recording = DIAGNOSTICS_SECONDS if plan.diagnostics or plan.pulls else 0.0
    return {
        label: plan.horizon * step_seconds(policy, problem) + recording
        for label, policy in plan.policies.items()
    }


def task_seconds(plan: Plan, task: Block | str) -> float:
    """CPU seconds of one task: a block of runs, or the lower bound of each problem."""
    if isinstance(task, Block):
        seconds = plan_seconds(plan)[task.policy] * task.runs
        return seconds / GPU_CORES if plan.device == "gpu" else seconds
    return 0.01 * (1 if plan.fixed else plan.runs)


def experiment_seconds(experiment: Experiment) -> float:
    """CPU seconds of an experiment."""
    return sum(part.plan.runs * sum(plan_seconds(part.plan).values()) for part in experiment.parts)
