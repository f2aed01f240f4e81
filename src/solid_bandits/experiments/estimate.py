"""How long an experiment will take, before it is played: a rough guess, corrected by what is measured on the way."""

from solid_bandits.experiments.experiment import Experiment
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.oam import OAM
from solid_bandits.problem import Problem
from solid_bandits.simulation import Plan

# CPU microseconds of a step: (once, per pair of context and arm and dimension), fitted by eye to the run behind
# docs/reproduction.md. A policy that is not here costs as much as the most expensive.
_COSTS = {
    "Solid": (1.7, 0.005),
    "LinUCB": (0.4, 0.0005),
    "LinTS": (0.6, 0.001),
    "Greedy": (0.3, 0.0005),
    "EpsilonGreedy": (0.35, 0.0005),
    "UCB1": (0.1, 0.0),
    "IDS": (0.7, 0.006),
    "SPL": (0.8, 0.006),
    "OSSB": (3.0, 0.06),
    "EndOfOptimism": (1.0, 0.001),
    "OAM": (0.8, 0.06),
}


def step_seconds(policy: Policy, problem: Problem) -> float:
    """CPU seconds of a step, roughly."""
    pairs = problem.n_contexts * problem.n_arms
    once, per_entry = _COSTS.get(type(policy).__name__, _COSTS["OAM"])
    cost = once + per_entry * pairs * problem.dim
    if isinstance(policy, OAM) and policy.resolve_every > 1:
        cost /= min(policy.resolve_every, 10)
    return cost * 1e-6


def plan_seconds(plan: Plan) -> dict[str, float]:
    """CPU seconds of one run, label -> seconds."""
    problem = plan.problem_of(0)
    return {label: plan.horizon * step_seconds(policy, problem) for label, policy in plan.policies.items()}


def experiment_seconds(experiment: Experiment) -> float:
    """CPU seconds of an experiment."""
    return sum(part.plan.runs * sum(plan_seconds(part.plan).values()) for part in experiment.parts)
