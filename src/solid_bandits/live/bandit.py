"""A policy in production: decisions with ids, late and missing rewards, arms that come and go, a log of it all."""

import hashlib
import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from solid_bandits import __version__, _check
from solid_bandits._types import Floats
from solid_bandits.agent import Agent
from solid_bandits.decision import Decision
from solid_bandits.live import file
from solid_bandits.live.answers import Choice, Receipt
from solid_bandits.live.arguments import checked_id, names_of, now, reward_of
from solid_bandits.live.journal import Journal, as_table
from solid_bandits.live.memory import EXPIRED, LEARNED, OPEN, Arm, Memory, Record, row_of
from solid_bandits.live.replaying import history
from solid_bandits.logs.files import in_order, parts
from solid_bandits.logs.schema import microseconds
from solid_bandits.offer import as_arms, as_mask
from solid_bandits.policies.contract import DecisionPolicy, Policy

PathLike = str | os.PathLike[str]
Time = datetime | float
"""An aware datetime, or seconds since 1970."""
WINDOW = 100_000


class Bandit:
    """An agent with a memory of its decisions and a log.

    Every decision has an id. Asking again with the same id returns the same decision, and a second reward for an id
    changes nothing and says so: calls may be repeated. A bandit is deterministic: the same calls with the same ids and
    times lead to the same state, bit for bit. It can be shared between threads.

    Args:
        policy: one that decides from features, such as `LinTS()`; None is `RandUCB()`.
        dim: d, the number of features of an arm.
        noise_std: σ, the standard deviation of the rewards' noise; None if it is unknown.
        floor: ε, the share of decisions whose arm is drawn uniformly, so that each of K arms has a probability of at
            least ε / K. Without one a log cannot say what other policies would have earned.
        half_life: decisions after which evidence has lost half its weight, for rewards that drift; None is never.
        theta_bound: B, an upper bound on ‖θ*‖; some policies need it.
        seed: of all random numbers.
        window: how many decisions an id is remembered for. After that a reward is for an unknown id, and a
            decision that is still open expires without one.
        log: a directory for the log, written in parts of 10,000 rows; None keeps it in memory, False keeps none.

    Example:
        >>> import solid_bandits as sb
        >>> bandit = sb.Bandit(sb.LinTS(), dim=2, noise_std=0.5, floor=0.05)
        >>> choice = bandit.decide([[1, 0], [0, 1]], arms=["red", "blue"], event_id="visit 1")
        >>> bandit.learn("visit 1", reward=1.0).counted
        True
        >>> bandit.learn("visit 1", reward=0.0).counted
        False
        >>> bandit.decide([[1, 0], [0, 1]], arms=["red", "blue"], event_id="visit 1").arm == choice.arm
        True
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        dim: int,
        noise_std: float | None = None,
        floor: float = 0.0,
        half_life: float | None = None,
        theta_bound: float | None = None,
        seed: int = 0,
        window: int = WINDOW,
        log: PathLike | bool | None = None,
    ) -> None:
        if policy is not None and not isinstance(policy, DecisionPolicy):
            raise ValueError(
                f"policy must be one that decides from features, such as LinTS(), got {short(policy)}"
            )
        if isinstance(log, str | os.PathLike) and parts(Path(log)):
            raise ValueError(
                f"log must be a directory without decisions, got {os.fspath(log)!r}, which holds those of another "
                "bandit; go on with that one by Bandit.load, or give another directory"
            )
        agent = Agent(
            policy,
            dim=dim,
            noise_std=noise_std,
            theta_bound=theta_bound,
            seed=seed,
            probabilities=True,
            floor=floor,
            half_life=half_life,
        )
        self._begin(agent, dim, _check.integer("window", window, least=1), log)

    def _begin(self, agent: Agent, dim: int, window: int, log: PathLike | bool | None) -> None:
        if log is True or (log is not None and not isinstance(log, bool | str | os.PathLike)):
            raise ValueError(f"log must be a directory, None or False, got {log!r}")
        self.agent = agent
        self._dim = dim
        self._memory = Memory(window)
        kept = None if log is None or isinstance(log, bool) else Path(log)
        self._journal = None if log is False else Journal(kept)
        self._decisions = self._sequence = self._learned = 0
        self._lock = threading.RLock()
        described = json.dumps([agent.policy.describe(), agent.floor], sort_keys=True)
        self._policy = f"{agent.policy!r}, floor={agent.floor:g}"
        self._version = f"{__version__}/{hashlib.sha256(described.encode()).hexdigest()[:8]}"

    def decide(
        self,
        features: ArrayLike,
        arms: Sequence[Arm] | None = None,
        event_id: str | None = None,
        time: Time | None = None,
        available: ArrayLike | None = None,
    ) -> Choice:
        """Choose one of the arms on offer.

        Args:
            features: of the arms on offer, shape (arms, dim).
            arms: their names, text or whole numbers; None is 0, 1, ... Names may be new, and may be missing the next
                time.
            event_id: of this decision; None makes one. If it is known already, the earlier decision is returned
                and nothing changes.
            time: of the decision, for the log and `expire`; None is now.
            available: which of the arms may be chosen, truth values of shape (arms,); None is all. The others are not
                on offer: neither the choice nor the log has them.
        """
        rows = as_arms(features, self._dim)
        names = names_of(arms, rows.shape[0])
        if available is not None:
            mask = as_mask(available, rows.shape[0])
            rows = rows[mask]
            names = tuple(name for name, offered in zip(names, mask, strict=True) if offered)
        moment = now() if time is None else microseconds("time", time)
        with self._lock:
            identity = self._new_id() if event_id is None else checked_id(event_id)
            known = self._memory.find(identity)
            if known is not None:
                if [str(arm) for arm in known.arms] != [str(arm) for arm in names]:  # a log has text alone
                    raise ValueError(
                        f"event_id {identity!r} was decided among other arms, {short(known.arms)}, got {short(names)}"
                    )
                if np.isnan(known.probabilities).any():
                    raise ValueError(f"event_id {identity!r} is of a log without probabilities; give another")
                return _choice(known, again=True)
            decision = self.agent.decide(rows)
            if decision.probabilities is None:
                raise ValueError(f"policy must give its probabilities, got {self.agent.policy!r}")
            record = Record(
                event_id=identity,
                number=self._decisions + 1,
                policy_number=decision.number,
                sequence=self._sequence + 1,
                time=moment,
                arms=names,
                place=decision.arm,
                probabilities=decision.probabilities,
                explored=decision.explored,
                version=f"{self._version}/{self._learned}",
                features=rows.copy(),
            )
            self._decisions += 1
            self._sequence += 1
            self._remember(record)
            return _choice(record, again=False)

    def learn(self, event_id: str, reward: float, time: Time | None = None) -> Receipt:
        """Learn from the reward of a decision; if it has one already, nothing changes. An unknown id is an error."""
        value = reward_of(reward)
        moment = now() if time is None else microseconds("time", time)
        with self._lock:
            return self._settle(self._known(event_id), value, moment)

    def learn_many(
        self, rewards: Mapping[str, float] | Iterable[tuple[str, float]], time: Time | None = None
    ) -> list[Receipt]:
        """Learn from many rewards, (id, reward) each, in this order; all are checked before the first is used."""
        try:
            pairs = list(rewards.items() if isinstance(rewards, Mapping) else rewards)
            pairs = [(event_id, reward) for event_id, reward in pairs]
        except (TypeError, ValueError):
            raise ValueError(f"rewards must be pairs of an id and a reward, got {short(rewards)}") from None
        moment = now() if time is None else microseconds("time", time)
        with self._lock:
            checked = []
            for place, (event_id, reward) in enumerate(pairs):
                try:
                    checked.append((self._known(event_id), reward_of(reward)))
                except ValueError as error:
                    raise ValueError(f"reward {place} of {len(pairs)}: {error}") from None
            return [self._settle(record, reward, moment) for record, reward in checked]

    def expire(
        self,
        before: Time | None = None,
        reward: float | None = None,
        time: Time | None = None,
        event_id: str | None = None,
    ) -> list[str]:
        """Stop waiting for the rewards of open decisions, those made before a time or all; returns their ids.

        Args:
            before: a time; None is all that are open.
            reward: the default that is learnt for each; None learns nothing from them.
            time: when they expired, for the log; None is now.
            event_id: this one alone.
        """
        limit = None if before is None else microseconds("before", before)
        value = None if reward is None else reward_of(reward)
        moment = now() if time is None else microseconds("time", time)
        with self._lock:
            waiting = self._memory.open() if event_id is None else [self._known(event_id)]
            late = [one for one in waiting if one.status == OPEN and (limit is None or one.time < limit)]
            for record in late:
                self._close(record, EXPIRED, value, moment)
            return [record.event_id for record in late]

    def open(self) -> list[str]:
        """The ids of the decisions still waiting for their rewards, oldest first."""
        with self._lock:
            return [record.event_id for record in self._memory.open()]

    def recall(self, event_id: str) -> Record | None:
        """What is remembered of a decision; None if it was not made, or too long ago."""
        return self._memory.find(event_id)

    @property
    def waiting(self) -> int:
        """How many decisions wait for their rewards."""
        return self._memory.opened

    @property
    def decisions(self) -> int:
        """How many were made."""
        return self._decisions

    def log(self) -> pl.DataFrame:
        """All decisions, including open ones, as a table (`sb.logs` has its columns, files and deletion)."""
        with self._lock:
            if self._journal is None:
                raise ValueError("log must be kept to be read: this bandit was made with log=False")
            opened = as_table([row_of(record, self._policy) for record in self._memory.open()])
            return in_order(pl.concat([self._journal.table(), opened]))

    def flush(self) -> None:
        """Write the pending rows to the directory of the log; rows of open decisions stay in memory."""
        with self._lock:
            if self._journal is not None:
                self._journal.flush()

    def delete(self, event_id: str | None = None, before: Time | None = None) -> int:
        """Delete one event, or all before a time, from log and memory; returns how many there were.

        What was learnt from them stays in the estimate.
        """
        if (event_id is None) == (before is None):
            raise ValueError("event_id or before must be given to delete, and not both")
        limit = None if before is None else microseconds("before", before)
        with self._lock:
            if event_id is not None:
                found = self._memory.find(event_id)
                gone = [] if found is None else [found]
            else:
                gone = [record for record in self._memory if limit is not None and record.time < limit]
            count = sum(record.status == OPEN for record in gone)
            for record in gone:
                self._memory.drop(record)
                record.features = None  # the memory's order of decisions has it until its turn
            if self._journal is None:
                return len(gone)
            return count + self._journal.delete(event_id, before)

    def warm_start(self, log: pl.DataFrame) -> int:
        """Learn from a log, of this package or from elsewhere; returns how many rewards were used.

        Its decisions count as if this bandit had made them: the policy is asked about each, and its answer is
        discarded. Their ids are remembered, and open ones may still get their rewards.
        """
        taken = 0
        with self._lock:
            steps = history(log, self._dim)
            clash = next((one for one in steps.ids if self._memory.find(one) is not None), None)
            if clash is not None:
                raise ValueError(f"log must have events that are new, got event_id {clash!r} again")
            for row, reward in steps:
                if reward is None:
                    self._sequence += 1
                    self._decisions += 1
                    number = self.agent.decide(row.features).number
                    record = row.record(self._decisions, self._sequence, number)
                    if record.status != OPEN:
                        row.numbered, record.features = number, None
                    self._remember(record)
                else:
                    self.agent.learn(_decision(row.features[row.place], row.place, row.numbered), reward)
                    self._sequence += 1
                    taken += 1
            self._learned += taken
        return taken

    @classmethod
    def from_log(cls, log: pl.DataFrame, policy: Policy | None = None, **settings: Any) -> "Bandit":
        """A new bandit that has learnt from a log; `settings` are those of a new one, `dim` being the log's."""
        widths = log["features"].drop_nulls().list.get(0, null_on_oob=True).list.len().unique().to_list()
        if len(widths) != 1 or not widths[0]:
            raise ValueError(f"log must have features of one dimension, got {short(widths)}")
        bandit = cls(policy, dim=widths[0], **settings)
        bandit.warm_start(log)
        return bandit

    def save(self, path: PathLike) -> None:
        """Write one file, whole or not at all: agent, open and remembered decisions, and the rows not yet written."""
        with self._lock:
            held = None if self._journal is None else self._journal.held()
            counters = (self._decisions, self._sequence, self._learned)
            content = file.BanditFile(
                agent=self.agent._content(),
                counters=counters,
                window=self._memory.window,
                log=False if self._journal is None else self._directory(),
                records=list(self._memory),
                rows=held,
            )
            file.write(path, content)

    def _directory(self) -> str | None:
        assert self._journal is not None
        return None if self._journal.directory is None else os.fspath(self._journal.directory)

    @classmethod
    def load(cls, path: PathLike, policy: Policy | None = None) -> "Bandit":
        """Read what `save` wrote; it carries on exactly where it was. `policy` is for your own, as in `Agent.load`."""
        content = file.read(path, policy)
        agent = Agent._restored(content.agent)
        bandit = cls.__new__(cls)
        bandit._begin(agent, content.agent.setting.dim, content.window, content.log)
        bandit._decisions, bandit._sequence, bandit._learned = content.counters
        for record in content.records:
            bandit._memory.add(record)
        if bandit._journal is not None and content.rows is not None:
            bandit._journal.restore(content.rows)
        return bandit

    def __repr__(self) -> str:
        return f"Bandit({self._policy}, {self._decisions:,} decisions, {self._memory.opened:,} open)"

    def _known(self, event_id: str) -> Record:
        record = self._memory.find(event_id) if isinstance(event_id, str) else None
        if record is None:
            hint = "; give its event_id" if hasattr(event_id, "event_id") else ""
            raise ValueError(
                f"event_id must be that of one of the last {self._memory.window:,} decisions, got "
                f"{short(event_id)}{hint}"
            )
        return record

    def _new_id(self) -> str:
        number = self._decisions + 1
        while self._memory.find(f"decision-{number}") is not None:  # a caller's own
            number += 1
        return f"decision-{number}"

    def _remember(self, record: Record) -> None:
        for old in self._memory.add(record):
            if old.status == OPEN:  # it expires, without a reward
                self._note(old, None, None, None, record.time)

    def _settle(self, record: Record, reward: float, moment: int) -> Receipt:
        if record.status != OPEN:
            had = "without a reward" if record.reward is None else f"with reward {record.reward:g}"
            words = (
                f"event_id {record.event_id!r} was {record.status} {had}; reward {reward:g} was not taken in"
            )
            return Receipt(record.event_id, False, record.reward, words)
        self._close(record, LEARNED, reward, moment)
        return Receipt(record.event_id, True, reward, f"event_id {record.event_id!r} learned {reward:g}")

    def _close(self, record: Record, status: str, reward: float | None, moment: int) -> None:
        assert record.features is not None  # it is open
        self._sequence += 1
        if reward is not None:
            features = record.features[record.place].copy()
            self.agent.learn(_decision(features, record.place, record.policy_number), reward)
            self._learned += 1
        self._note(record, reward, status == EXPIRED, self._sequence, moment)
        self._memory.settle(record, status, reward)

    def _note(
        self, record: Record, reward: float | None, defaulted: bool | None, sequence: int | None, moment: int
    ) -> None:
        if self._journal is not None:
            row = row_of(record, self._policy)
            row |= {"reward": reward, "defaulted": defaulted if reward is not None else None}
            self._journal.add(row | {"reward_sequence": sequence, "reward_time": moment})


def _decision(features: Floats, place: int, number: int | None) -> Decision:
    return Decision(place, None, None, False, features, None, number)


def _choice(record: Record, again: bool) -> Choice:
    probability = record.probabilities[record.place].item()
    return Choice(
        record.event_id, record.arm, probability, record.arms, record.probabilities, record.explored, again
    )
