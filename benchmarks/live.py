"""A million decisions with ids, and a million logged rows evaluated: rates, memory, and whether estimates agree.

    python benchmarks/live.py --out DIR
    python benchmarks/live.py --out DIR --stores
    python benchmarks/live.py --out DIR --evaluate
    python benchmarks/live.py --out DIR --evaluate --rows 250000
    python benchmarks/live.py --out benchmarks --table

Half of the rewards come up to 5,000 decisions late, in random order, 40% at once and 10% never. The bandit keeps its
log in a store, committed in groups of 1,000 calls; it is then written as one Parquet file, which is evaluated. With
--stores a decision and its reward are timed in memory and in a store in DIR, for several `commit_every`, next to the
disk's own time to sync 4 KiB. The output is also written to DIR/live.json, DIR/stores.json and DIR/evaluated.json, with
the load of the machine. The last command prints the table of docs/evaluation.md from those in benchmarks.
"""

import argparse
import heapq
import json
import os
import resource
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl

import solid_bandits as sb
from solid_bandits import ope

ARMS, DIM, LATEST, BLOCK = 5, 8, 5000, 10_000
GROUPS = (1, 10, 100, 1000)
"""`commit_every`."""
AT_ONCE, LATE = 0.4, 0.5
"""Shares of the rewards that come at once and late; the others never come."""


def megabytes():
    """Return the peak memory so far in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def play(decisions, store):
    """Decide and learn; return the bandit, features and rewards in the order of their decisions, and the numbers."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=DIM) / DIM
    bandit = sb.Bandit(
        sb.RandUCB(), dim=DIM, noise_std=0.5, floor=0.05, window=2 * LATEST, store=store, commit_every=1000
    )
    waiting, count, delayed = [], 0, 0
    design, rewards = (
        np.ones((decisions, DIM)),
        np.ones(decisions),
    )  # all at once, so that memory growth is the bandit's
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
        if kinds[place] < AT_ONCE + LATE:
            design[count], rewards[count] = row, reward
            count += 1
        if kinds[place] < AT_ONCE:
            bandit.learn(choice.event_id, reward)
        elif kinds[place] < AT_ONCE + LATE:
            delayed += 1
            heapq.heappush(waiting, (number + int(delays[place]), choice.event_id, reward))
        while waiting and waiting[0][0] <= number:
            _, event_id, late = heapq.heappop(waiting)
            bandit.learn(event_id, late)
    bandit.learn_many((event_id, late) for _, event_id, late in waiting)
    bandit.flush()
    seconds = time.process_time() - started
    memory.append(megabytes())
    places = {share: memory[round(share * (len(memory) - 1))] for share in (0.1, 0.5, 1.0)}
    numbers = {
        "decisions": decisions,
        "rewards": count,
        "late": delayed,
        "never": decisions - count,
        "CPU seconds": seconds,
        "decisions a second": decisions / seconds,
        "memory in MB after a tenth": places[0.1],
        "memory in MB halfway": places[0.5],
        "memory in MB at the end": places[1.0],
    }
    return bandit, design[:count], rewards[:count], numbers


def compare(bandit, design, rewards):
    """Compare the estimate with that of dense algebra, and with the same rewards in the order of their decisions."""
    rng = np.random.default_rng(0)
    rng.normal(size=DIM)  # drawn as in `play`
    first = rng.normal(size=(BLOCK, ARMS, DIM))[0]
    ridge = float(bandit.agent._compiled.state.regression.evidence.ridge)
    theta = np.linalg.solve(ridge * np.eye(DIM) + design.T @ design, design.T @ rewards)
    ordered = sb.Agent(sb.RandUCB(), dim=DIM, noise_std=0.5)
    decision = ordered.decide(first)
    for row, reward in zip(design, rewards, strict=True):
        ordered.learn(decision.replace(features=row), float(reward))
    order, dense = (np.abs(bandit.agent.theta - other).max() for other in (ordered.theta, theta))
    return {"difference to rewards in order": order, "difference to dense algebra": dense}


def syncing(folder, times):
    """Return the seconds to write 4 KiB to a file and sync it."""
    with (folder / "synced").open("wb", buffering=0) as file:
        began = time.perf_counter()
        for _ in range(times):
            file.write(bytes(4096))
            os.fsync(file.fileno())
        return (time.perf_counter() - began) / times


def stores(folder, pairs):
    """Return microseconds of a decision and its reward, one call each: wall and CPU time, in memory and in stores."""
    numbers = {"decisions": pairs, "microseconds to sync 4 KiB": 1e6 * syncing(folder, 200)}
    features = np.random.default_rng(0).normal(size=(pairs, ARMS, DIM))
    for label, every in (
        ("in memory, no log", None),
        ("in memory", None),
        *((f"`commit_every={n}`", n) for n in GROUPS),
    ):
        path = folder / f"every-{every}.db"
        path.unlink(missing_ok=True)
        kept = {"log": label == "in memory"} if every is None else {"store": path, "commit_every": every}
        count = pairs if every is None or every > 10 else pairs // 10
        with sb.Bandit(sb.RandUCB(), dim=DIM, noise_std=0.5, floor=0.05, **kept) as bandit:
            for warm in range(100):
                bandit.learn(bandit.decide(features[0], event_id=f"warm-{warm}").event_id, 0.0)
            began, cpu = time.perf_counter(), time.process_time()
            for number in range(count):
                decision = bandit.decide(features[number], event_id=f"event-{number}")
                bandit.learn(decision.event_id, float(features[number, decision.place, 0]))
            bandit.flush()
            wall, spent = time.perf_counter() - began, time.process_time() - cpu
        numbers |= {f"microseconds, {label}": 1e6 * wall / count, f"CPU, {label}": 1e6 * spent / count}
        if path.exists():
            began = time.perf_counter()
            numbers[f"bytes of a pair, {label}"] = path.stat().st_size / count
            sb.Bandit.open(path).close()
            numbers[f"seconds to open, {label}"] = time.perf_counter() - began
    return numbers


def evaluate(path, agent):
    """Evaluate a log in one file."""
    rows = pl.scan_parquet(path).select(pl.len()).collect().item()
    numbers = {"rows": rows, "file in MB": path.stat().st_size / 1e6, "memory in MB before": megabytes()}
    for label, policy in (("uniform", "uniform"), ("the agent at the end", agent)):
        started = time.process_time()
        found = ope.evaluate(path, policy)
        numbers[f"CPU seconds, {label}"] = time.process_time() - started
        numbers[f"memory in MB, {label}"] = megabytes()
        print(found.table.select("estimator", "value", "low", "high"))
    return numbers


def say(numbers, path):
    """Print numbers and save them, with the load of the machine and the date."""
    numbers |= {
        "load average": os.getloadavg()[1],
        "cores": os.cpu_count(),
        "day": f"{datetime.now(UTC):%Y-%m-%d}",
    }
    numbers = {name: float(f"{one:.4g}") if isinstance(one, float) else one for name, one in numbers.items()}
    for name, value in numbers.items():
        print(f"{name}: {value:,}" if isinstance(value, int | float) else f"{name}: {value}")
    path.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8", newline="\n")


def page_table(folder):
    """Yield the rows of the table in docs/evaluation.md, from the saved numbers."""
    live, all_rows, fewer = (
        json.loads((folder / name).read_text(encoding="utf-8"))
        for name in ("live.json", "evaluated.json", "evaluated-250000.json")
    )
    names = ("uniform", "the agent at the end")
    took = " and ".join(f"{all_rows[f'CPU seconds, {name}']:.1f} s" for name in names)
    grown, less = (
        max(one[f"memory in MB, {name}"] for name in names) - one["memory in MB before"]
        for one in (all_rows, fewer)
    )
    yield (
        f"| {live['decisions']:,} decisions with ids, half of the rewards late, 10% never, the others at once, in a "
        f"store with groups of 1,000 calls | {live['CPU seconds']:.0f} s, {live['decisions a second']:,.0f} decisions "
        "with their rewards a second |"
    )
    yield (
        f"| memory of that after a tenth, halfway and at the end | {live['memory in MB after a tenth']:.0f}, "
        f"{live['memory in MB halfway']:.0f} and {live['memory in MB at the end']:.0f} MB |"
    )
    yield (
        "| the estimate after them: largest difference to dense algebra with the same ridge, and to the same rewards "
        f"in the order of their decisions | {live['difference to dense algebra']:.0e}, "
        f"{live['difference to rewards in order']:.0e} |"
    )
    yield (
        f"| all estimators on the {all_rows['rows']:,} rows of that log ({all_rows['file in MB']:.0f} MB of Parquet), "
        f"for a uniform policy and for an agent | {took} |"
    )
    yield (
        f"| memory of that, beside the {all_rows['memory in MB before']:.0f} MB of the package itself "
        f"| {grown:.0f} MB; on {fewer['rows']:,} rows {less:.0f} MB |"
    )
    yield f"| load average of the 2 cores, then and then | {live['load average']:.1f}, {all_rows['load average']:.1f} |"


def store_table(folder):
    """Yield the rows of the table of stores."""
    kept = json.loads((folder / "stores.json").read_text(encoding="utf-8"))
    for label in [name.removeprefix("CPU, ") for name in kept if name.startswith("CPU, ")]:
        wall, spent = kept[f"microseconds, {label}"], kept[f"CPU, {label}"]
        yield f"| {label} | {spent:,.0f} µs | {wall:,.0f} µs |"


def main():
    """Play, compare and write a log; or evaluate it, in its own process so that memory is the evaluation's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--evaluate", action="store_true", help="evaluate the log of an earlier run")
    parser.add_argument("--rows", type=int, help="evaluate only the first rows")
    parser.add_argument("--stores", action="store_true", help="time stores and commit policies")
    parser.add_argument("--table", action="store_true", help="print the page's table from the files in DIR")
    given = parser.parse_args()
    path = given.out / "log.parquet"
    if given.table:
        print("\n".join([*page_table(given.out), *store_table(given.out)]))
        return
    if given.evaluate and given.rows is not None:
        part = given.out / f"log-{given.rows}.parquet"
        if not part.exists():  # in its own run, so that memory is the evaluation's
            pl.scan_parquet(path).head(given.rows).sink_parquet(part, row_group_size=50_000)
            print(f"{part} is written; run this again")
            return
        numbers = evaluate(part, sb.Agent.load(given.out / "agent.json"))
        say(numbers, given.out / f"evaluated-{given.rows}.json")
        return
    if given.evaluate:
        say(evaluate(path, sb.Agent.load(given.out / "agent.json")), given.out / "evaluated.json")
        return
    given.out.mkdir(parents=True, exist_ok=True)
    if given.stores:
        say(stores(given.out, min(given.decisions, 20_000)), given.out / "stores.json")
        return
    (given.out / "bandit.db").unlink(missing_ok=True)
    bandit, design, rewards, numbers = play(given.decisions, given.out / "bandit.db")
    say(numbers | compare(bandit, design, rewards), given.out / "live.json")
    bandit.agent.save(given.out / "agent.json")
    sb.logs.write(bandit.log(), path)


if __name__ == "__main__":
    main()
