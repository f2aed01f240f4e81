"""Separate coefficients for each arm, as blocks and as one joint estimate on e_a ⊗ x: time of a decision and a reward.

Usage: OPENBLAS_NUM_THREADS=1 python benchmarks/blocks.py [--rounds K] [--sizes N] [--policies ...] [--write FILE]

Each agent first learns WARM rewards; the rounds then stay between two doublings of the rewards, at which the ridge is
updated, and that is measured separately. The two forms alternate in one process, in another order each round, on the
same offers, each learning from the arm that it chose: in compiled code, as a simulation calls them, and through
`sb.Agent`, which takes some ten microseconds more. Reported are medians of the thread's CPU time, and the median and
the extremes over rounds of the ratio. Arms that differ are counted, ties included. Writing e_a ⊗ x is not timed.
"""

import argparse
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np

import solid_bandits as sb
from solid_bandits._internal.compiling import compiled_for, jit_apart
from solid_bandits.estimation import blocks, evidence
from solid_bandits.policies.contract import act, update


class Size(NamedTuple):
    """Sizes of one measurement."""

    arms: int
    width: int
    warm: int
    """Decisions before the rounds."""
    steps: int
    """Decisions in a round."""


SIZES = [Size(5, 4, 1100, 40), Size(26, 17, 1100, 40), Size(100, 50, 33, 1)]
POLICIES = {
    "RandUCB": sb.RandUCB(),
    "LinTS": sb.LinTS(ridge="evidence"),
    "Greedy": sb.Greedy(ridge="evidence"),
}
FORMS = "blocks", "joint"


def offers(size, count, rng):
    """Return rows of each form, shape (count, arms, dim), and a reward for every arm."""
    theta, x = rng.normal(size=(size.arms, size.width)), rng.normal(size=(count, size.width))
    x[:, 0] = 1.0
    apart = np.zeros((count, size.arms, 1 + size.width))
    apart[:, :, 0], apart[:, :, 1:] = np.arange(size.arms), x[:, None]
    joint = np.zeros((count, size.arms, size.arms, size.width))
    joint[:, range(size.arms), range(size.arms)] = x[:, None]
    rewards = x @ theta.T + rng.normal(size=(count, size.arms))
    return {"blocks": apart, "joint": joint.reshape(count, size.arms, -1)}, rewards


@jit_apart
def loop(agent, rows, rewards, available, arms):
    """Decide and learn for one offer after the other, as a simulation does; the arms go to `arms`."""
    for step in range(rows.shape[0]):
        arm, _ = act(agent, 0, rows[step], available, None)
        update(agent, 0, arm, rows[step, arm], rewards[step, arm], 0)
        arms[step] = arm


def by_kernels(agent, rows, rewards):
    """Return the seconds of a step in compiled code, and the arms."""
    arms, available = np.zeros(len(rows), dtype=np.int64), np.ones(rows.shape[1], dtype=np.bool_)
    compiled = compiled_for(loop, agent._compiled, rows, rewards, available, arms)
    began = time.thread_time_ns()
    compiled(agent._compiled, rows, rewards, available, arms)
    return (time.thread_time_ns() - began) * 1e-9 / len(rows), arms.tolist()


def by_agent(agent, rows, rewards):
    """Return the seconds of a decision and its reward, called from Python, and the arms."""
    arms = []
    began = time.thread_time_ns()
    for shown, reward in zip(rows, rewards, strict=True):
        decision = agent.decide(shown)
        agent.learn(decision, reward[decision.place])
        arms.append(decision.place)
    return (time.thread_time_ns() - began) * 1e-9 / len(rows), arms


def search(agent, joint):
    """Return the seconds of the ridge's three fixed-point iterations, for an agent's current knowledge."""
    regression = agent._compiled.state.regression
    form, row = evidence if joint else blocks, np.zeros(regression.work.vector.shape)
    params = regression.params
    began = time.thread_time_ns()
    form.refine(
        params.search,
        params.search.rounds,
        regression.evidence,
        regression.estimator,
        params.noise_std,
        row,
    )
    return (time.thread_time_ns() - began) * 1e-9


def measure(policy, size, rounds):
    """Return seconds of a step as (way, form) -> one per round; arms that differ; seconds of a ridge update."""
    rng = np.random.default_rng(0)
    agents = {
        "blocks": sb.Agent(policy, dim=size.width + 1, blocks=size.arms),
        "joint": sb.Agent(policy, dim=size.width * size.arms),
    }
    for agent in agents.values():
        agent.watch.looking = False  # the checks of the first 128 decisions are not measured
    taken, differ, played = {(way, form): [] for way in WAYS for form in FORMS}, 0, 0
    for turn in range(-1, rounds):
        for way in WAYS if turn >= 0 else ["compiled"]:
            rows, rewards = offers(size, size.steps if turn >= 0 else size.warm, rng)
            arms = {}
            for place in range(len(FORMS)):
                form = FORMS[(turn + place) % len(FORMS)]
                seconds, arms[form] = WAYS[way](agents[form], rows[form], rewards)
                if turn >= 0:
                    taken[way, form].append(seconds)
            differ += sum(one != other for one, other in zip(*arms.values(), strict=True))
            played += len(rewards)
    times = {key: np.array(one) for key, one in taken.items()}
    searches = {form: min(search(agents[form], form == "joint") for _ in range(3)) for form in FORMS}
    return times, differ, played, searches


def shown(seconds):
    """Format as microseconds, or milliseconds."""
    return f"{1e6 * seconds:#.3g} µs" if seconds < 1e-3 else f"{1e3 * seconds:#.3g} ms"


WAYS = {"compiled": by_kernels, "from Python": by_agent}


def row(name, size, way, measured):
    times, differ, played, searches = measured
    ratios = times[way, "joint"] / times[way, "blocks"]
    cells = [name, f"{size.arms} × {size.width}", way]
    cells += [shown(np.median(times[way, form])) for form in FORMS]
    cells.append(f"{np.median(ratios):.3g} ({ratios.min():.3g} to {ratios.max():.3g})")
    cells.append(" / ".join(shown(searches[form]) for form in FORMS))
    cells.append(f"{differ} of {played}")
    return f"| {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="number of rounds, at most 11")
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="number of sizes, smallest first")
    parser.add_argument("--policies", nargs="*", default=list(POLICIES), choices=list(POLICIES))
    parser.add_argument("--write", type=Path, help="also write the table to this Markdown file")
    arguments = parser.parse_args()
    lines = [
        "| policy | arms × d | called | blocks | joint | joint over blocks | ridge's search | arms that differ |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for size in SIZES[: arguments.sizes]:
        for name in arguments.policies:
            measured = measure(POLICIES[name], size, arguments.rounds)
            for way in WAYS:
                lines.append(row(name, size, way, measured))
                print(lines[-1], flush=True)
    lines += [
        "",
        f"Decide and learn, processor time, median of {arguments.rounds} rounds; Python "
        f"{platform.python_version()}, NumPy {version('numpy')}, numba {version('numba')}.",
    ]
    print("\n".join(lines[-2:]))
    if arguments.write:
        arguments.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
