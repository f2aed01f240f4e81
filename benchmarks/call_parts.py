"""Where the time of a bandit's decision and its reward goes, part by part: `python benchmarks/call_parts.py`.

Each part is called by itself, again and again, with what it is given in `Bandit.decide` and `Bandit.learn` at (8, 8);
the least of some repetitions counts, in the thread's processor time and less an empty call. Parts within
others have a dash. In a bandit at work they take more: what they read is then not at hand.
"""

import inspect
import itertools
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import solid_bandits as sb
from solid_bandits.core.decision import Decision
from solid_bandits.live.arguments import moment, reward_of
from solid_bandits.live.remembered import Remembered
from solid_bandits.logs.records import as_table

SIZE = 8
COUNT = 4000
REPETITIONS = 7


def microseconds(part: Callable[[], object], count: int = COUNT) -> float:
    """The least time of a call."""
    least = float("inf")
    for _ in range(REPETITIONS):
        start = time.thread_time()
        for _ in range(count):
            part()
        least = min(least, (time.thread_time() - start) / count)
    return least * 1e6


def main() -> None:
    """Print a table."""
    features = np.random.default_rng(0).normal(size=(SIZE, SIZE))
    bandit, agent = sb.Bandit(dim=SIZE, log=False), sb.Agent(dim=SIZE)
    for number in range(300):
        bandit.decide(features, event_id=f"known-{number}")
        bandit.learn(f"known-{number}", 0.5)
        agent.learn(agent.decide(features), 0.5)
    told = {"looked_at": True} if "looked_at" in inspect.signature(bandit._offer).parameters else {}
    offer = bandit._offer(features, None, "one", None, None, **told)
    decision = agent.decide(features)
    counted = itertools.count()

    def whole() -> None:
        event_id = f"event-{next(counted)}"
        _ = bandit.decide(features, event_id=event_id).probabilities
        bandit.learn(event_id, 0.5)

    def turn() -> None:
        with bandit._turn:
            pass

    def fresh() -> Any:
        made: list[Decision] = [agent.decide(features) for _ in range(COUNT * REPETITIONS)]
        return iter(made)

    made, remembered = fresh(), Remembered(COUNT)
    bandit.beside = None

    def take() -> None:
        bandit._take_in(next(made), offer, f"taken-{next(counted)}", 1)

    added = [
        agent.decide(features).replace(event_id=str(place), ordinal=place, arms=offer.arms)
        for place in range(COUNT)
    ]
    queue = itertools.cycle(added)

    def add() -> None:
        one = next(queue)
        remembered._all.pop(one.event_id, None)
        remembered.add(one)

    log = sb.Bandit(dim=SIZE)
    rows = []
    for place in range(COUNT):
        rows.append(log.decide(features, event_id=f"row-{place}"))
        log.learn(f"row-{place}", 0.5)
    parts: list[tuple[str, Callable[[], object], int]] = [
        ("decide and learn, probabilities read", whole, 1),
        (
            "decide: what is offered, checked",
            lambda: bandit._offer(features, None, "one", None, None, **told),
            1,
        ),
        ("decide: whether the id is known", lambda: bandit._recalled("unheard of"), 1),
        ("decide: the time", lambda: moment("time", None), 1),
        ("decide: a turn", turn, 1),
        ("decide: the agent", lambda: agent.decide(features), 1),
        ("decide: the record, as far as a bandit fills it in", take, 1),
        ("- its place in memory", add, 1),
        (
            "reading probabilities (with the agent's decision)",
            lambda: agent.decide(features).probabilities,
            1,
        ),
        ("learn: the reward, checked", lambda: reward_of(0.5), 1),
        ("learn: the decision of the id", lambda: bandit._recalled("known-7"), 1),
        ("learn: the agent", lambda: agent.learn(decision, 0.5), 1),
        ("learn: a reward that was learnt before, whole", lambda: bandit.learn("known-7", 0.5), 1),
        ("the log: a row of its table", lambda: as_table(rows), COUNT),
    ]
    empty = microseconds(lambda: None)
    print(f"load average {os.getloadavg()[0]:.1f}\n\n| part | us |\n|---|---|")
    for name, part, each in parts:
        found = microseconds(part, COUNT if each == 1 else 1) / each
        print(f"| {name} | {found - empty / each:.2f} |", flush=True)


if __name__ == "__main__":
    main()
