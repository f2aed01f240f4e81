"""A bandit without what its log says anyway: the agent, counters, and the ids of the open decisions."""

from collections.abc import Iterable
from typing import NamedTuple

from solid_bandits._types import Floats, Plain
from solid_bandits.agent import Agent
from solid_bandits.agent_file import agent_from_plain, agent_to_plain
from solid_bandits.live.bandit import Bandit
from solid_bandits.live.memory import Arm, Record


class Logged(NamedTuple):
    """An open decision as a log has it."""

    event_id: str
    time: int
    arms: tuple[Arm, ...]
    place: int
    probabilities: Floats
    explored: bool
    version: str
    features: Floats


def packed(bandit: Bandit) -> Plain:
    """What `unpacked` needs, as JSON can say it. Ids of closed decisions are forgotten: their log remembers them."""
    with bandit._lock:
        opened = bandit._memory.open()
        return {
            "agent": agent_to_plain(bandit.agent._content()),
            "seed": bandit._seed,
            "counters": [bandit._decisions, bandit._sequence, bandit._learned],
            "window": bandit._memory.window,
            "open": [[one.event_id, one.number, one.policy_number, one.sequence] for one in opened],
        }


def open_ids(plain: Plain) -> list[str]:
    """The ids of the open decisions of a packed bandit, oldest first."""
    return [one[0] for one in plain["open"]]


def unpacked(plain: Plain, decisions: Iterable[Logged]) -> Bandit:
    """The bandit that was packed, with its open decisions from the log; it keeps no log of its own."""
    agent = Agent._restored(agent_from_plain(plain["agent"], "snapshot"))
    bandit = Bandit.__new__(Bandit)
    # Snapshots from before the seed was in them lead to the same decisions: it only names the model.
    bandit._begin(agent, plain.get("seed", 0), plain["window"], None)
    bandit._decisions, bandit._sequence, bandit._learned = plain["counters"]
    found = {one.event_id: one for one in decisions}
    for event_id, number, policy_number, sequence in plain["open"]:
        one = found.get(event_id)
        if one is None:
            raise ValueError(f"log must have the open decision {event_id!r} of the snapshot")
        bandit._memory.add(
            Record(
                event_id=event_id,
                number=number,
                policy_number=policy_number,
                sequence=sequence,
                time=one.time,
                arms=one.arms,
                place=one.place,
                probabilities=one.probabilities,
                explored=one.explored,
                version=one.version,
                features=one.features,
            )
        )
    return bandit
