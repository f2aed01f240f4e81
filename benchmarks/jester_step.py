"""A step of SOLID on Jester (191 contexts, 40 arms, d = 65) compared with the BLAS products that it contains.

Usage: SOLID_BANDITS_DATA=folder OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/jester_step.py
           [--stages 50 500 5000 20000] [--rounds K] [--write FILE]

Both run in this process on one thread and alternate; times are medians of the thread's CPU time, which excludes other
work on the machine. The products are (F * w).T @ F and F @ W^-1 over all pairs. Two policies: the paper's, whose
multiplier is soon 0, so that no step needs the closest alternative any more; and the same without the bonus in g_t,
whose multiplier stays positive, so that every exploring step needs it.
"""

import argparse
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import solid_bandits as sb
from solid_bandits.core.loop import Trace, _begin, _loop
from solid_bandits.estimation.linalg.gram import GRAM_RIDGE, sparse_weighted_gram
from solid_bandits.estimation.linalg.vectors import inner_products
from solid_bandits.estimation.regression import observe_reward
from solid_bandits.estimation.tables import bring_up_to_date
from solid_bandits.paper import jester
from solid_bandits.planning.pruned import pruned_alternative
from solid_bandits.policies.solid.algorithm import must_explore, update_omega
from solid_bandits.policies.solid.confidence import width
from solid_bandits.policies.solid.constraint import optimistic_gradient, write_bonuses, write_weights

HORIZON = 50_000
STEPS = 5  # steps per measurement, so that caches are as warm as in a run
POLICIES = {
    "paper": replace(sb.Solid.paper_random(40), bonus="theorem"),
    "no bonus in g": replace(sb.Solid.paper_random(40), bonus="none"),
}


def seconds(call):
    start = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - start) * 1e-9


def blas_products(features, weights, inverse):
    for _ in range(STEPS):
        (features * weights[:, None]).T @ features
        features @ inverse


def measure(agent, truth, environment, rounds):
    """Return medians of the seconds of an exploring step and of the BLAS products, in turns of STEPS each.

    Also returns the shares of exploring steps, of steps with a positive multiplier, and of renewed bounds.
    """
    features = agent.table.features.reshape(-1, agent.table.features.shape[2])
    state, work = agent.state, agent.work
    step_times, blas_times, explored, informed, renewed = [], [], 0, 0, 0
    for _ in range(rounds):
        weights = ((state.context_counts / state.step.item())[:, None] * state.omega).ravel()
        W = (features * weights[:, None]).T @ features
        W += GRAM_RIDGE * np.trace(W) / len(W) * np.eye(len(W))
        inverse = np.linalg.inv(W)
        blas_times.append(seconds(lambda w=weights, i=inverse: blas_products(features, w, i)))
        before = state.explored.item(), work.bounds.gram.copy()
        trace = Trace(np.array([STEPS]), np.zeros(1), np.zeros(1, dtype=np.int64))
        step_times.append(seconds(lambda t=trace: _loop(agent, truth, t, environment, 0, 1)))
        explored += state.explored.item() - before[0]
        informed += state.multiplier.item() > 0
        renewed += not np.array_equal(before[1], work.bounds.gram)
    shares = explored / (rounds * STEPS), informed / rounds, renewed / (rounds * STEPS)
    return np.median(step_times) / STEPS, np.median(blas_times) / STEPS, shares


def parts(agent, repeats):
    """Return the median seconds of each part of a step, called on its own in the current state."""
    table, state, work, params = agent.table, agent.state, agent.work, agent.params
    step = state.step.item()
    squared_width = width(params.confidence, agent.setting, step, state.explored.item())
    normaliser = params.phases.normalisation[state.phase.item()]
    columns = table.columns
    calls = {
        "exploitation test": lambda: must_explore(agent, 0, step),
        "weights and bonuses": lambda: (write_weights(agent), write_bonuses(agent, squared_width)),
        "V_omega": lambda: sparse_weighted_gram(
            columns, work.weights, table.feature_bound, work.chosen, work.columns, work.gram
        ),
        "closest alternative": lambda: pruned_alternative(
            table.features,
            columns,
            state.regression.tables.means,
            work.gram,
            work.factor,
            work.bounds,
            work.delta,
        ),
        "information": lambda: inner_products(columns, work.delta, work.information),
        "gradient and the above": lambda: optimistic_gradient(
            state.projected, agent, squared_width, normaliser
        ),
        "omega": lambda: update_omega(agent, 0.0),
        "least squares": lambda: (
            observe_reward(state.regression, table.features[0, 0], 0.0, 0),
            bring_up_to_date(state.regression, table),
        ),
    }
    carried = [*state.regression.estimator, *state.regression.tables]
    kept = [array.copy() for array in carried]
    times = {}
    for name, call in calls.items():
        call()
        times[name] = np.median([seconds(call) for _ in range(repeats)])
    for array, before in zip(carried, kept, strict=True):
        array[...] = before
    return times


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stages", type=int, nargs="+", default=[50, 500, 5_000, 20_000])
    parser.add_argument("--rounds", type=int, default=30, help="number of rounds at each stage")
    parser.add_argument("--write", type=Path, help="also write the tables to this Markdown file")
    arguments = parser.parse_args()
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        parser.error("set OPENBLAS_NUM_THREADS=1: this compares one thread with one thread")
    problem = jester.jester(seed=0)
    rows = [
        "| policy | after steps | exploring | multiplier > 0 | weights that matter | bounds renewed | step ms "
        "| BLAS ms | ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    profile = []
    for name, policy in POLICIES.items():
        agent, truth, trace, environment = _begin(
            problem, policy, HORIZON, 0, 0, np.array(arguments.stages, dtype=np.int64)
        )
        for stage, steps in enumerate(arguments.stages):
            _loop(agent, truth, trace, environment, stage, stage + 1)
            spent, blas, (exploring, informed, renewed) = measure(agent, truth, environment, arguments.rounds)
            write_weights(agent)
            matter = int((agent.work.weights > 1e-25).sum())
            rows.append(
                f"| {name} | {steps:,} | {exploring:.0%} | {informed:.0%} | {matter:,} | {renewed:.0%} "
                f"| {spent * 1e3:.3f} | {blas * 1e3:.3f} | {spent / blas:.2f} |"
            )
            print(rows[-1], flush=True)
            times = parts(agent, 25)
            if not profile:
                profile += [
                    "| policy | after steps | " + " | ".join(times) + " |",
                    "|---" * (len(times) + 2) + "|",
                ]
            profile.append(
                f"| {name} | {steps:,} | " + " | ".join(f"{t * 1e6:.0f}" for t in times.values()) + " |"
            )
    text = "\n".join([*rows, "", "Microseconds of the parts, each called on its own:", "", *profile]) + "\n"
    print(text)
    if arguments.write:
        arguments.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
