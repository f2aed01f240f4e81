"""Nodes of the service on one PostgreSQL: leaders killed, stopped, robbed of their lock and cut off, the database
crashed.

Clients decide, repeat and reward all the while, through any node, and repeat a call until it is acknowledged.
Afterwards every acknowledged decision and reward must be in the log, once and as it was answered, no former leader may
have written, and the log, replayed, must give the same decisions bit for bit.

Leaders are cut off in network namespaces of the attack's own (`namespaces`), where root may make such: from all, from
the database alone, in both directions or in one, or from clients and nodes alone. What is lost is lost silently. Once
another has taken over, the cut is healed, and the former leader must notice. One that is cut off from clients alone
stays the leader: decisions are made again once it can be reached.

    python attacks/service_nodes.py --kills 20 --stops 20 --locks 20 --crashes 20 --cuts 10 --seed 0
"""

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import httpx
import namespaces

from cluster import Cluster, cluster
from nodes import Node, Nodes, Place, kill_leader, nodes, pause_leader, take_lock

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


class Cut:
    """A way of cutting the leader off, by its links and whether what it is sent is lost too."""

    def __init__(self, links: tuple[str, ...], both: bool = True, stays: bool = False) -> None:
        self._links, self._both, self._stays = links, both, stays

    def __call__(self, running: Nodes, there: namespaces.Network) -> float:
        """Cut, wait until another leads, heal, and wait until the former leader knows; seconds without decisions."""
        leader = running.leader_there()
        number = running.nodes.index(leader) + 1
        began = time.monotonic()
        try:
            for link in self._links:
                there.cut(link, number, self._both)
            if self._stays:
                time.sleep(CUT)
            else:
                seconds = running.served_again(began)
                running.until(lambda: running.leader() not in (None, leader), "nobody took over")
        finally:
            for link in self._links:
                there.heal(link, number)
        if self._stays:
            return running.served_again(time.monotonic())
        running.until(lambda: knows(running, leader), "the former leader does not notice")
        return seconds


def knows(running: Nodes, node: Node) -> bool:
    """Whether a node says that it does not lead."""
    try:
        return not running.believes_to_lead(node)
    except httpx.HTTPError:
        return False


CUT = 3.0
"""Seconds for which a leader that stays one is cut off: longer than the lease."""
CUTS = {
    "leader cut off from all": Cut((namespaces.DATABASE, namespaces.CLIENTS)),
    "leader cut off from the database": Cut((namespaces.DATABASE,)),
    "what the leader sends to the database is lost": Cut((namespaces.DATABASE,), both=False),
    "leader cut off from clients and nodes for 3 s; counted from then": Cut(
        (namespaces.CLIENTS,), stays=True
    ),
}


def attack(kind: str, times: int, lease: float, seed: int) -> bool:
    """Play one kind of attack `times` times under load and print its row; return whether all is well."""
    name, play = ROUNDS[kind]
    with cluster(fsync=True) as database, nodes(database.database(), lease=lease) as running:
        return under_load(name, times, running, seed, lambda: play(running, database))


def attack_cuts(times: int, lease: float, seed: int, there: namespaces.Network) -> bool:
    """The same for each way of cutting off, in namespaces; called in the hub."""
    well = []
    with cluster(fsync=True, network=f"10.{namespaces.NETWORKS[namespaces.DATABASE]}.0.0/16") as database:
        for name, cut in CUTS.items():
            url = database.database()
            places = []
            for number in range(1, there.nodes + 1):
                begin = ("ip", "netns", "exec", there.node(number))
                host = there.address(namespaces.CLIENTS, number, False)
                reached = there.address(namespaces.DATABASE, number, True)
                places.append(Place(begin, host, url.replace("@/", f"@{reached}/").partition("?")[0]))
            with nodes(url, lease=lease, places=places) as running:
                well.append(under_load(name, times, running, seed, lambda: cut(running, there)))  # noqa: B023
    return all(well)


def under_load(name: str, times: int, running: Nodes, seed: int, play: Callable[[], float]) -> bool:
    """Play something so many times while clients call; print its row; whether all is well."""
    chance = random.Random(f"{seed} {name}")
    seconds: list[float] = []
    running.start(clients=4, seed=seed)
    running.served_again(time.monotonic())
    for number in range(times):
        running.decide(DECISIONS)
        time.sleep(chance.uniform(0.0, 0.5))
        seconds.append(play())
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


def in_namespaces(times: int, lease: float, seed: int) -> bool:
    """Play the cuts by a process in the hub; whether all is well, or there can be no namespaces here."""
    why = namespaces.why_not()
    if why is not None:
        print(f"leaders are not cut off: {why}", flush=True)
        return True
    with namespaces.network(2) as there:
        again = [
            sys.executable,
            __file__,
            "--within",
            there.name,
            "--cuts",
            str(times),
            "--lease",
            str(lease),
        ]
        return not subprocess.run(["ip", "netns", "exec", there.hub, *again, "--seed", str(seed)]).returncode


def main() -> None:
    """Attack from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for kind in ROUNDS:
        parser.add_argument(f"--{kind}", type=int, default=20)
    parser.add_argument("--lease", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cuts", type=int, default=10, help="Of each way of cutting the leader off.")
    parser.add_argument("--within", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.within:
        there = namespaces.Network(given.within, 2)
        sys.exit(0 if attack_cuts(given.cuts, given.lease, given.seed, there) else 1)
    print(HEAD, flush=True)
    wanted = {kind: getattr(given, kind) for kind in ROUNDS}
    well = [attack(kind, times, given.lease, given.seed) for kind, times in wanted.items() if times]
    if given.cuts:
        well.append(in_namespaces(given.cuts, given.lease, given.seed))
    sys.exit(0 if all(well) else 1)


if __name__ == "__main__":
    main()
