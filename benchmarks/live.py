"""A million decisions with ids, and a million logged rows evaluated: rates, memory, and the same estimate as in order.

    python benchmarks/live.py --out DIR
    python benchmarks/live.py --out DIR --evaluate

Of the rewards half come at once, 40% up to 5,000 decisions late, in random order, and 10% never. The log goes to
DIR/log in parts, and is then made one Parquet file, which is evaluated.
"""

import argparse
import heapq
import resource
import shutil
import time
from pathlib import Path

import numpy as np
import polars as pl

import solid_bandits as sb
from solid_bandits import ope

ARMS, DIM, LATEST, BLOCK = 5, 8, 5000, 10_000


def megabytes():
    """The largest memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def play(decisions, directory):
    """Decide and learn; the bandit, and the features and rewards in the order of their decisions."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=DIM) / DIM
    bandit = sb.Bandit(sb.RandUCB(), dim=DIM, noise_std=0.5, floor=0.05, log=directory, window=2 * LATEST)
    waiting, count = [], 0
    design, rewards = (
        np.ones((decisions, DIM)),
        np.ones(decisions),
    )  # all at once: memory is to be the bandit's
    started, memory = time.process_time(), []
    for number in range(decisions):
        if number % BLOCK == 0:
            features = rng.normal(size=(BLOCK, ARMS, DIM))
            kinds, delays, noise = rng.random(BLOCK), rng.integers(1, LATEST, size=BLOCK), rng.random(BLOCK)
            memory.append(megabytes())
        place = number % BLOCK
        choice = bandit.decide(features[place], event_id=f"event-{number}")
        row = features[place, choice.arm]
        reward = float(noise[place] < 0.5 + 0.2 * np.tanh(row @ theta))
        if kinds[place] < 0.9:
            design[count], rewards[count] = row, reward
            count += 1
        if kinds[place] < 0.5:
            bandit.learn(choice.event_id, reward)
        elif kinds[place] < 0.9:
            heapq.heappush(waiting, (number + int(delays[place]), choice.event_id, reward))
        while waiting and waiting[0][0] <= number:
            _, event_id, late = heapq.heappop(waiting)
            bandit.learn(event_id, late)
    bandit.learn_many((event_id, late) for _, event_id, late in waiting)
    bandit.flush()
    seconds = time.process_time() - started
    rate = decisions / seconds
    print(
        f"{decisions:,} decisions, {count:,} rewards: {seconds:.1f} CPU seconds, {rate:,.0f} decisions a second"
    )
    early, half = memory[min(10, len(memory) - 1)], memory[len(memory) // 2]
    print(f"memory: {early:.0f} MB early, {half:.0f} MB halfway, {memory[-1]:.0f} MB at the end")
    return bandit, design[:count], rewards[:count]


def compare(bandit, design, rewards):
    """The estimate beside that of dense algebra, and of the same rewards in the order of their decisions."""
    rng = np.random.default_rng(0)
    rng.normal(size=DIM)  # as `play` draws
    first = rng.normal(size=(BLOCK, ARMS, DIM))[0]
    ridge = 0.2 * (first**2).sum(axis=1).max()
    theta = np.linalg.solve(ridge * np.eye(DIM) + design.T @ design, design.T @ rewards)
    ordered = sb.Agent(sb.RandUCB(), dim=DIM, noise_std=0.5)
    decision = ordered.decide(first)
    for row, reward in zip(design, rewards, strict=True):
        ordered.learn(decision._replace(features=row), float(reward))
    order, dense = (np.abs(bandit.agent.theta - other).max() for other in (ordered.theta, theta))
    print(
        f"largest difference of the estimate: to rewards in order {order:.1e}, to dense algebra {dense:.1e}"
    )


def evaluate(path, agent):
    """A log in one file, evaluated."""
    rows = pl.scan_parquet(path).select(pl.len()).collect().item()
    print(f"log: {rows:,} rows, {path.stat().st_size / 1e6:.0f} MB; memory {megabytes():.0f} MB before")
    for label, policy in (("uniform", "uniform"), ("the agent at the end", agent)):
        started = time.process_time()
        found = ope.evaluate(path, policy)
        seconds = time.process_time() - started
        print(
            f"{label}: {seconds:.1f} CPU seconds, {rows / seconds:,.0f} rows a second, memory {megabytes():.0f} MB"
        )
        print(found.table.select("estimator", "value", "low", "high"))


def main():
    """Play, compare and write a log; or evaluate it, in a process of its own so that memory is the evaluation's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--evaluate", action="store_true", help="evaluate what an earlier run wrote")
    given = parser.parse_args()
    path = given.out / "log.parquet"
    if given.evaluate:
        evaluate(path, sb.Agent.load(given.out / "agent.json"))
        return
    shutil.rmtree(given.out / "log", ignore_errors=True)
    given.out.mkdir(parents=True, exist_ok=True)
    bandit, design, rewards = play(given.decisions, given.out / "log")
    compare(bandit, design, rewards)
    bandit.agent.save(given.out / "agent.json")
    parts = [pl.scan_parquet(part) for part in sorted((given.out / "log").glob("part-*.parquet"))]
    pl.concat(parts).sort("sequence").sink_parquet(path, row_group_size=50_000)


if __name__ == "__main__":
    main()
