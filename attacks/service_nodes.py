"""Nodes of the service on one PostgreSQL: leaders killed, paused and robbed of their lock, the database crashed.

Clients decide, repeat and reward all the while, through any node, and repeat a call until it is acknowledged.
Afterwards every acknowledged decision and reward must be in the log, once and as it was answered, no former leader may
have written, and the log, replayed, must give the same decisions bit for bit.

    python attacks/service_nodes.py --kills 20 --stops 20 --locks 20 --crashes 20 --seed 0
"""

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from cluster import Cluster, cluster
from nodes import Nodes, kill_leader, nodes, pause_leader, take_lock

HEAD = (
    "| attack | times | acknowledged | lost | doubled | leaders | takeover, median (s) | largest (s) | failed |\n"
    "|---|---|---|---|---|---|---|---|---|"
)
DECISIONS = 50
"""Least number of acknowledged calls between two rounds."""
Round = Callable[[Nodes, Cluster], float]


def kill(running: Nodes, _: Cluster) -> float:
    """Kill the leader, and start another node in its place; return the seconds without decisions."""
    seconds = kill_leader(running)
    running.add()
    return seconds


def crash(running: Nodes, database: Cluster) -> float:
    """Crash the database and restart it; return the seconds without decisions, including the start."""
    database.stop("immediate")
    began = time.monotonic()
    database.start()
    return running.served_again(began)


ROUNDS: dict[str, tuple[str, Round]] = {
    "kills": ("leader killed (SIGKILL)", kill),
    "stops": ("leader stopped, goes on after the takeover", lambda running, _: pause_leader(running)),
    "locks": ("session with the lock ended, its node writes on", lambda running, _: take_lock(running)),
    "crashes": ("database crashed and restarted", crash),
}


def attack(kind: str, times: int, lease: float, seed: int) -> bool:
    """Play one kind of attack `times` times under load and print its row; return whether all is well."""
    name, play = ROUNDS[kind]
    chance = random.Random(f"{seed} {kind}")
    seconds: list[float] = []
    with cluster(fsync=True) as database, nodes(database.database(), lease=lease) as running:
        running.start(clients=4, seed=seed)
        running.served_again(time.monotonic())
        for number in range(times):
            running.decide(DECISIONS)
            time.sleep(chance.uniform(0.0, 0.5))
            seconds.append(play(running, database))
            print(f"  {name} {number + 1} of {times}: {seconds[-1]:.2f} s", file=sys.stderr, flush=True)
        running.served_again(time.monotonic())
        running.stop()
        outcome = running.outcome()
        for words in [*outcome.wrong[:20], outcome.words]:
            print(f"  {words}", file=sys.stderr)
        said = [one for one in running.said() if "Traceback" in one]
        for words in said:
            print(words[-3000:], file=sys.stderr)
    print(
        f"| {name} | {times} | {outcome.acknowledged:,} | {outcome.lost} | {outcome.doubled} | {outcome.leaders} | "
        f"{median(seconds):.1f} | {max(seconds):.1f} | {0 if outcome.well and not said else 1} |",
        flush=True,
    )
    return outcome.well and not said


def main() -> None:
    """Attack from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for kind in ROUNDS:
        parser.add_argument(f"--{kind}", type=int, default=20)
    parser.add_argument("--lease", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(HEAD, flush=True)
    wanted = {kind: getattr(given, kind) for kind in ROUNDS}
    well = [attack(kind, times, given.lease, given.seed) for kind, times in wanted.items() if times]
    sys.exit(0 if all(well) else 1)


if __name__ == "__main__":
    main()
