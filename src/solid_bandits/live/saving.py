"""A bandit to and from what its file says."""

import os
from typing import TYPE_CHECKING

from solid_bandits._files import first_line
from solid_bandits.agent import Agent
from solid_bandits.live import file
from solid_bandits.live.journal import DIRECTORY, MEMORY, NONE, old_journal
from solid_bandits.live.memory import OPEN
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.fading import Fading

if TYPE_CHECKING:
    from solid_bandits.live.bandit import Bandit

PathLike = str | os.PathLike[str]


def content_of(bandit: "Bandit") -> file.BanditFile:
    """What the file of a bandit says; whoever asks holds its lock."""
    journal = bandit._journal
    kind = NONE if journal is None else MEMORY if journal.directory is None else DIRECTORY
    return file.BanditFile(
        agent=bandit.agent._content(),
        seed=bandit._seed,
        counters=(bandit._decisions, bandit._sequence, bandit._learned),
        window=bandit._memory.window,
        log=kind,
        written=0 if journal is None else journal.written,
        witness="" if journal is None else journal.witness,
        limit=None if journal is None else journal.limit,
        records=list(bandit._memory),
        rows=None if journal is None else journal.held(),
    )


def restore(bandit: "Bandit", path: PathLike, policy: Policy | None, log: PathLike | bool | None) -> None:
    """Make a bandit, which is nothing yet, what a file says."""
    content = file.read(path, policy)
    journal = old_journal(log, content.log, content.written, content.witness)
    opened = [record for record in content.records if record.status == OPEN]
    try:
        agent = Agent._restored(content.agent)
        for record in opened:
            if isinstance(agent.policy, Fading) != (record.policy_number is not None):
                raise ValueError("memory must have policy_number with a half-life, and only then")
            agent._check_number(record.policy_number)
    except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
        raise ValueError(f"bandit file {os.fspath(path)!r} cannot be used: {first_line(error)}") from None
    bandit._begin(agent, content.seed, content.window, journal)
    bandit._decisions, bandit._sequence, bandit._learned = content.counters
    for record in content.records:
        bandit._memory.add(record)
    if journal is not None and content.rows is not None:
        # A bandit that was loaded and saved again before it wrote had left the directory's history earlier.
        limit = content.limit or (content.counters[1], [record.sequence for record in opened])
        journal.restore(content.rows, *limit)
