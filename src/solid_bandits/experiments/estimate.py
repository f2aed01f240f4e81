"""How long an experiment will take, before it is played: a rough guess, corrected by what is measured on the way."""

from solid_bandits.experiments.experiment import Experiment
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.oam import OAM
from solid_bandits.problem import Problem
from solid_bandits.simulation import Plan

# CPU microseconds of a step: (once, per pair of context and arm, per pair and dimension), fitted to the run behind
# docs/reproduction.md. A policy that is not here costs as much as the most expensive.
_COSTS: dict[str, tuple[float, float, float]] = {
    "Solid": (0.3, 0.05, 0.012),
    "LinUCB": (0.2, 0.01, 0.002),
    "LinTS": (0.4, 0.01, 0.002),
    "Greedy": (0.1, 0.005, 0.002),
    "EpsilonGreedy": (0.1, 0.005, 0.002),
    "UCB1": (0.1, 0.01, 0.0),
    "IDS": (1.0, 0.1, 0.05),
    "SPL": (1.0, 0.2, 0.1),
    "OSSB": (1.0, 0.1, 0.05),
    "EndOfOptimism": (0.3, 0.02, 0.01),
    "OAM": (1.0, 0.3, 0.2),
}


def step_seconds(policy: Policy, problem: Problem) -> float:
    """CPU seconds of a step, roughly."""
    pairs = problem.n_contexts * problem.n_arms
    once, per_pair, per_entry = _COSTS.get(type(policy).__name__, _COSTS["OAM"])
    cost = once + per_pair * pairs + per_entry * pairs * problem.dim
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
