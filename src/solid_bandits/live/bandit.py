"""A policy in production: decisions with ids, late and missing rewards, arms that come and go, a log of it all."""

import hashlib
import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from solid_bandits import __version__, _check
from solid_bandits._check import short
from solid_bandits._types import Floats
from solid_bandits.agent import Agent
from solid_bandits.decision import Decision
from solid_bandits.live import file
from solid_bandits.live.answers import Choice, Receipt, choice_of
from solid_bandits.live.arguments import Time, checked_id, moment, names_of, reward_of, text_id
from solid_bandits.live.journal import Journal, as_table, new_journal
from solid_bandits.live.memory import EXPIRED, LEARNED, OPEN, Arm, Memory, Record, row_of
from solid_bandits.live.replaying import history, width_of
from solid_bandits.live.saving import content_of, restore
from solid_bandits.logs.files import in_order
from solid_bandits.offer import as_arms, as_mask
from solid_bandits.policies.contract import DecisionPolicy, Policy

PathLike = str | os.PathLike[str]
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
        half_life: decisions after which evidence has lost half its weight, for rewards that drift; None
            disables forgetting.
        theta_bound: B, an upper bound on ‖θ*‖; some policies need it.
        seed: of all random numbers.
        window: how many decisions an id is remembered for. After that a reward is for an unknown id, and a
            decision that is still open expires without one.
        log: a directory for the log, written in parts of 10,000 rows; None keeps it in memory, False keeps none.
            A part that cannot be written waits in memory: `log_failure` says why, and `flush` tries again.

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
        _check.integer("window", window, least=1)
        journal = new_journal(log)
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
        self._begin(agent, int(seed), int(window), journal)

    def _begin(self, agent: Agent, seed: int, window: int, journal: Journal | None) -> None:
        self.agent = agent
        self._dim = agent.dim
        self._seed = seed
        self._memory = Memory(window)
        self._journal = journal
        self._decisions = self._sequence = self._learned = 0
        self._lock = threading.RLock()
        self._policy = f"{agent.policy!r}, floor={agent.floor:g}"
        # All that decisions depend on; a half-life is part of the policy.
        settings = [agent.policy.describe(), agent._setting._asdict(), agent.floor, seed]
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        self._version = f"{__version__}/{digest[:8]}"

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
        when = moment("time", time)
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
                return choice_of(known, again=True)
            self._make_room()
            decision = self.agent.decide(rows)
            if decision.probabilities is None:
                raise ValueError(f"policy must give its probabilities, got {self.agent.policy!r}")
            record = Record(
                event_id=identity,
                number=self._decisions + 1,
                policy_number=decision.number,
                sequence=self._sequence + 1,
                time=when,
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
            return choice_of(record, again=False)

    def learn(self, event_id: str, reward: float, time: Time | None = None) -> Receipt:
        """Learn from the reward of a decision; if it has one already, nothing changes. An unknown id is an error."""
        value = reward_of(reward)
        when = moment("time", time)
        with self._lock:
            record = self._known(event_id)
            if record.status == OPEN:
                self._make_room()
            return self._settle(record, value, when)

    def learn_many(
        self, rewards: Mapping[str, float] | Iterable[tuple[str, float]], time: Time | None = None
    ) -> list[Receipt]:
        """Learn from many rewards, (id, reward) each, in this order; all are checked before the first is used."""
        try:
            pairs = list(rewards.items() if isinstance(rewards, Mapping) else rewards)
            pairs = [(event_id, reward) for event_id, reward in pairs]
        except (TypeError, ValueError):
            raise ValueError(f"rewards must be pairs of an id and a reward, got {short(rewards)}") from None
        when = moment("time", time)
        with self._lock:
            checked = []
            for place, (event_id, reward) in enumerate(pairs):
                try:
                    checked.append((self._known(event_id), reward_of(reward)))
                except ValueError as error:
                    raise ValueError(f"reward {place} of {len(pairs)}: {error}") from None
            if any(record.status == OPEN for record, _ in checked):
                self._make_room()
            return [self._settle(record, reward, when) for record, reward in checked]

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
        limit = None if before is None else moment("before", before)
        value = None if reward is None else reward_of(reward)
        when = moment("time", time)
        with self._lock:
            waiting = self._memory.open() if event_id is None else [self._known(event_id)]
            late = [one for one in waiting if one.status == OPEN and (limit is None or one.time < limit)]
            if late:
                self._make_room()
            for record in late:
                self._close(record, EXPIRED, value, when)
            return [record.event_id for record in late]

    def open(self) -> list[str]:
        """The ids of the decisions still waiting for their rewards, oldest first."""
        with self._lock:
            return [record.event_id for record in self._memory.open()]

    def recall(self, event_id: str) -> Record | None:
        """What is remembered of a decision; None if it was not made, or too long ago."""
        return self._memory.find(text_id(event_id))

    @property
    def waiting(self) -> int:
        """How many decisions wait for their rewards."""
        return self._memory.opened

    @property
    def decisions(self) -> int:
        """How many were made."""
        return self._decisions

    @property
    def log_failure(self) -> str | None:
        """Why the log could not be written to its directory the last time; None if it could."""
        return None if self._journal is None else self._journal.failure

    @property
    def log_pending(self) -> int:
        """How many rows of settled decisions are in memory; those of a log in a directory wait to be written."""
        with self._lock:
            return 0 if self._journal is None else self._journal.pending

    def log(self) -> pl.DataFrame:
        """All decisions, including open ones, as a table (`sb.logs` has its columns, files and deletion)."""
        with self._lock:
            if self._journal is None:
                raise ValueError("log must be kept to be read: this bandit was made with log=False")
            opened = as_table([row_of(one, one.features, self._policy) for one in self._memory.open()])
            return in_order(pl.concat([self._journal.table(), opened]))

    def flush(self) -> None:
        """Write the pending rows to the directory of the log; rows of open decisions stay in memory.

        A ValueError says why they cannot be written; they wait on.
        """
        with self._lock:
            if self._journal is not None:
                self._journal.flush()

    def delete(self, event_id: str | None = None, before: Time | None = None) -> int:
        """Delete one event, or all before a time, from log and memory; returns how many there were.

        What was learnt from them stays in the estimate. If files of the log cannot be written, the call raises a
        ValueError, memory keeps what it has, and the call can be repeated.
        """
        if (event_id is None) == (before is None):
            raise ValueError("event_id or before must be given to delete, and not both")
        limit = None if before is None else moment("before", before)
        with self._lock:
            if event_id is not None:
                found = self._memory.find(text_id(event_id))
                gone = [] if found is None else [found]
            else:
                gone = [record for record in self._memory if limit is not None and record.time < limit]
            count = len(gone)
            if self._journal is not None:  # first, as it may fail
                count = sum(record.status == OPEN for record in gone) + self._journal.delete(event_id, before)
            for record in gone:
                self._memory.drop(record)
                record.features = None  # the memory's order of decisions has it until its turn
            return count

    def warm_start(self, log: pl.DataFrame) -> int:
        """Learn from a log, of this package or from elsewhere; returns how many rewards were used.

        Its decisions count as if this bandit had made them: the policy is asked about each, and its answer is
        discarded. Their ids are remembered, and open ones may still get their rewards. The whole log is checked
        before its first row is used.
        """
        taken = 0
        with self._lock:
            steps = history(log, self._dim)
            clash = next((one for one in steps.ids if self._memory.find(one) is not None), None)
            if clash is not None:
                raise ValueError(f"log must have events that are new, got event_id {clash!r} again")
            self._make_room()
            for row, reward in steps:
                if reward is None:
                    number = self.agent.decide(row.features).number
                    self._sequence += 1
                    self._decisions += 1
                    record = row.record(self._decisions, self._sequence, number)
                    if record.status != OPEN:
                        row.numbered, record.features = number, None
                    self._remember(record)
                else:
                    self.agent.learn(_decision(row.features[row.place], row.place, row.numbered), reward)
                    self._sequence += 1
                    self._learned += 1
                    taken += 1
        return taken

    @classmethod
    def from_log(cls, log: pl.DataFrame, policy: Policy | None = None, **settings: Any) -> "Bandit":
        """A new bandit that has learnt from a log; `settings` are those of a new one, `dim` being the log's."""
        bandit = cls(policy, dim=width_of(log), **settings)
        bandit.warm_start(log)
        return bandit

    def save(self, path: PathLike) -> None:
        """Write one file, whole or not at all: agent, open and remembered decisions, and the rows not yet written."""
        with self._lock:
            file.write(path, content_of(self))

    @classmethod
    def load(
        cls, path: PathLike, policy: Policy | None = None, log: PathLike | bool | None = None
    ) -> "Bandit":
        """Read what `save` wrote; it carries on exactly where it was.

        Args:
            path: of the file.
            policy: if it is one of your own, the policy that was saved, as in `Agent.load`.
            log: the directory of the log, which must be named if the bandit had one: a file names no directories.
                Rows that were written there after the file was saved are not part of this bandit's log. They are
                moved to a file `aside-*.parquet` in that directory before the next row is written. None keeps the log
                in memory, or none, as it was; False goes on without one.
        """
        bandit = cls.__new__(cls)
        restore(bandit, path, policy, log)
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

    def _make_room(self) -> None:
        """Raise a StoreError, before anything changes, where the log can take in no more rows."""
        if self._journal is not None:
            self._journal.make_room()

    def _remember(self, record: Record) -> None:
        for old in self._memory.add(record):
            if old.status == OPEN:  # it expires, without a reward
                self._note(old, old.features, None, None, None, record.time)

    def _settle(self, record: Record, reward: float, when: int) -> Receipt:
        if record.status != OPEN:
            had = "without a reward" if record.reward is None else f"with reward {record.reward:g}"
            words = (
                f"event_id {record.event_id!r} was {record.status} {had}; reward {reward:g} was not taken in"
            )
            return Receipt(record.event_id, False, record.reward, words)
        self._close(record, LEARNED, reward, when)
        return Receipt(record.event_id, True, reward, f"event_id {record.event_id!r} learned {reward:g}")

    def _close(self, record: Record, status: str, reward: float | None, when: int) -> None:
        features = record.features
        assert features is not None  # it is open
        if reward is not None:
            chosen = features[record.place].copy()
            self.agent.learn(_decision(chosen, record.place, record.policy_number), reward)
            self._learned += 1
        self._sequence += 1
        self._memory.settle(record, status, reward)
        self._note(record, features, reward, status == EXPIRED, self._sequence, when)

    def _note(
        self,
        record: Record,
        features: Floats | None,
        reward: float | None,
        defaulted: bool | None,
        sequence: int | None,
        when: int,
    ) -> None:
        """Log an outcome. This comes last, so that whatever happens here a call is taken in whole."""
        if self._journal is not None:
            row = row_of(record, features, self._policy)
            row["reward"], row["defaulted"] = reward, None if reward is None else defaulted
            row["reward_sequence"], row["reward_time"] = sequence, when
            self._journal.add(row)


def _decision(features: Floats, place: int, number: int | None) -> Decision:
    return Decision(place, None, None, False, features, None, number)
