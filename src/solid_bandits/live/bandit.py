"""A policy in production: decisions with ids, late and missing rewards, arms that come and go, a log of it all."""

import os
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, overload

from numpy import ndarray
from numpy.typing import ArrayLike

from solid_bandits._internal import checks, extras
from solid_bandits._internal.checks import short
from solid_bandits.core.agent import Agent
from solid_bandits.core.decision import (
    EXPIRED,
    OPEN,
    Decision,
    Receipt,
)
from solid_bandits.features.spec import Features
from solid_bandits.live.arguments import Time, moment, now, reward_of, text_id, text_ids
from solid_bandits.live.arms import Arms
from solid_bandits.live.batches import Batches
from solid_bandits.live.history import MemoryHistory
from solid_bandits.live.ledger import check_same
from solid_bandits.live.named import Frame, declared, is_frame, new_agent, offers_of
from solid_bandits.policies.contract import DecisionPolicy, Policy

if TYPE_CHECKING:  # tables and stores are loaded when there are some
    import polars as pl

PathLike = str | os.PathLike[str]
WINDOW = 100_000


class Bandit(Arms, Batches):
    """An agent with a memory of its decisions and a log.

    Every decision has an id. Asking again with the same id returns the same decision, and a second reward for an id
    changes nothing and says so: calls may be repeated. A bandit is deterministic: the same calls with the same ids and
    times lead to the same state, bit for bit. It can be shared between threads.

    What is known about a decision has names: `context` is what all arms share. With `arms`, each arm learns for itself
    what it means. With `arm_features`, arms come with each decision and bring features of their own. Or else decisions
    bring a matrix, one row an arm, and `dim` is its width.

    Args:
        policy: one that decides from features, such as `LinTS()`; None is `RandUCB()`.
        context: names of what is known about a decision, or a table of names and types.
        arms: names of the arms; `add_arm` and `remove_arm` change them.
        arm_features: names of what each arm brings, such as a price, or a table of names and types.
        interactions: pairs of names whose products are features, too; see `sb.Features`.
        features: all of this, written out as `sb.Features`.
        dim: d, the number of features of an arm, where decisions bring matrices.
        noise_std: σ, the standard deviation of the rewards' noise; None if it is unknown.
        floor: ε, the share of decisions whose arm is drawn uniformly, so that each of K arms has a probability of at
            least ε / K. Without one a log cannot say what other policies would have earned.
        half_life: decisions after which evidence has lost half its weight, for rewards that drift; None
            disables forgetting.
        theta_bound: B, an upper bound on ‖θ*‖; some policies need it.
        seed: of all random numbers.
        window: after how many further decisions one that is still open expires without a reward. Without a store, ids
            are forgotten then: a reward is for an unknown id.
        log: whether a log is kept in memory where there is no store.
        store: a new file, in which all decisions and rewards are kept: `Bandit.open` goes on from it, also after the
            process was killed. None keeps them in memory.
        commit_every: after how many calls the store is written to the disk. With 1, what a call returned is on the
            disk. With n, a power loss or a kill can take the last n - 1 calls, unless `flush` or `close` came after.

    Example:
        >>> import solid_bandits as sb
        >>> bandit = sb.Bandit(arms=["climate", "football"], context=["age", "device"], floor=0.05)
        >>> decision = bandit.decide({"age": 34, "device": "ios"}, event_id="visit 1")
        >>> bandit.learn("visit 1", reward=1.0).counted
        True
        >>> bandit.learn("visit 1", reward=0.0).counted
        False
        >>> bandit.decide({"age": 34, "device": "ios"}, event_id="visit 1").arm == decision.arm
        True
        >>> bandit = sb.Bandit(sb.LinTS(), dim=2, noise_std=0.5, floor=0.05)
        >>> bandit.decide([[1, 0], [0, 1]], arms=["red", "blue"]).arms
        ('red', 'blue')
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        context: Mapping[str, str | None] | Sequence[str] | None = None,
        arms: Sequence[str] | None = None,
        arm_features: Mapping[str, str | None] | Sequence[str] | None = None,
        interactions: str | Sequence[tuple[str, str]] | None = None,
        features: Features | None = None,
        dim: int | None = None,
        noise_std: float | None = None,
        floor: float = 0.0,
        half_life: float | None = None,
        theta_bound: float | None = None,
        seed: int = 0,
        window: int = WINDOW,
        log: bool = True,
        store: PathLike | None = None,
        commit_every: int = 1,
    ) -> None:
        if policy is not None and not isinstance(policy, DecisionPolicy):
            raise ValueError(
                f"policy must be one that decides from features, such as LinTS(), got {short(policy)}"
            )
        checks.integer("window", window, least=1)
        checks.integer("commit_every", commit_every, least=1)
        checks.switch("log", log)
        if store is None and commit_every != 1:
            raise ValueError(f"commit_every must be 1 without a store, got {commit_every}")
        if store is not None and not log:
            raise ValueError("log must be True with a store, which keeps one, got False")
        names = declared(features, context, arms, arm_features, interactions, dim)
        settings: dict[str, Any] = {
            "noise_std": noise_std,
            "theta_bound": theta_bound,
            "seed": seed,
            "probabilities": True,
            "floor": floor,
            "half_life": half_life,
        }
        design = None
        if names is None:
            agent = Agent(policy, dim=dim, **settings)
        else:
            design, agent = new_agent(names, policy, **settings)
        self._begin(agent, int(seed), int(window), design)
        if store is not None:
            from solid_bandits.live import stored

            stored.create(self, store, int(commit_every))
        elif log:
            self._history = MemoryHistory()

    @overload
    def decide(
        self, context: Frame, arms: None = None, event_id: Any = None, time: Time | None = None
    ) -> list[Decision]: ...

    @overload
    def decide(
        self,
        context: Any = None,
        arms: Any = None,
        event_id: str | None = None,
        time: Time | None = None,
        available: ArrayLike | None = None,
        subject: str | None = None,
    ) -> Decision: ...

    def decide(
        self,
        context: Any = None,
        arms: Any = None,
        event_id: Any = None,
        time: Time | None = None,
        available: ArrayLike | None = None,
        subject: Any = None,
    ) -> Decision | list[Decision]:
        """Choose one of the arms on offer.

        Args:
            context: values by names, such as `{"age": 34}`; a name that is left out is missing. Or the features of the
                arms on offer, shape (arms, dim), of a bandit that was made with `dim`. A data frame of polars or pandas
                is a decision a row, among all arms: a list of decisions is returned, and `event_id` and `subject`, if
                given, are lists.
            arms: names of those on offer; None is all. With `arm_features`, a table of their own values by name:
                `{"tea": {"price": 3.0}}`. Beside a matrix, the names of its rows, text or whole numbers: None is 0, 1,
                ..., and names may be new.
            event_id: of this decision; None makes one. If it is known already, the earlier decision is returned
                and nothing changes.
            time: of the decision, for the log and `expire`; None is now.
            available: which rows of a matrix may be chosen, truth values of shape (arms,); None is all. The others are
                not on offer: neither the decision nor the log has them.
            subject: whom the decision is about, so that a person's decisions can be deleted.
        """
        if type(context) is not ndarray and is_frame(context):
            if self.design is None:
                raise ValueError("context must be a matrix where features have no names, got a data frame")
            offers = offers_of(context, self.design.features, event_id, subject)
            for name, value in (("arms", arms), ("available", available)):
                if value is not None:
                    raise ValueError(
                        f"{name} must be left out with a data frame, whose rows are decided among all arms; "
                        "decide_many takes some for each decision"
                    )
            return self.decide_many(offers, time)
        when = now() if time is None else moment("time", time)
        with self._turn:
            offer = self._offer(context, arms, event_id, subject, available, looked_at=True)
            if event_id is not None:
                known = self._recalled(event_id)
                if known is not None:
                    if offer.features is not None:
                        self.agent._arms(offer.features)
                    check_same(offer, known.arms)
                    return self._repeated(known)
            return self._decide(offer, when)

    def learn(self, event_id: str, reward: float, time: Time | None = None) -> Receipt:
        """Learn from the reward of a decision; if it has one already, nothing changes. An unknown id is an error."""
        value = reward_of(reward)
        when = now() if time is None else moment("time", time)
        with self._turn:
            known = self._recalled(event_id) if isinstance(event_id, str) else None
            if known is None:
                raise self._unknown(event_id)
            return self._learn(event_id, known, value, when)

    def learn_many(
        self,
        rewards: Mapping[str, float] | Iterable[tuple[str, float]],
        time: Time | None = None,
        *,
        strict: bool = True,
    ) -> list[Receipt]:
        """Learn from many rewards, (id, reward) each, in this order; all are checked before the first is used.

        With `strict=False` an unknown id is not an error: its receipt says so.
        """
        try:
            pairs = list(rewards.items() if isinstance(rewards, Mapping) else rewards)
            pairs = [(event_id, reward) for event_id, reward in pairs]
        except (TypeError, ValueError):
            raise ValueError(f"rewards must be pairs of an id and a reward, got {short(rewards)}") from None
        when = moment("time", time)
        with self._turn:
            known = self._known([one for one, _ in pairs if isinstance(one, str)])
            checked = []
            for place, (event_id, reward) in enumerate(pairs):
                try:
                    if strict and (not isinstance(event_id, str) or event_id not in known):
                        raise self._unknown(event_id)
                    checked.append((text_id(event_id), reward_of(reward)))
                except ValueError as error:
                    raise ValueError(f"reward {place} of {len(pairs)}: {error}") from None
            return [self._learn(one, known.get(one), reward, when) for one, reward in checked]

    def expire(
        self,
        before: Time | None = None,
        reward: float | None = None,
        time: Time | None = None,
        event_ids: Iterable[str] | None = None,
    ) -> list[str]:
        """Stop waiting for the rewards of open decisions, those made before a time or all; returns their ids.

        Args:
            before: a time; None is all that are open.
            reward: the default that is learnt for each; None learns nothing from them.
            time: when they expired, for the log; None is now.
            event_ids: these alone.
        """
        limit = None if before is None else moment("before", before)
        value = None if reward is None else reward_of(reward)
        when = moment("time", time)
        with self._turn:
            waiting = self._remembered.open()
            if event_ids is not None:
                known = self._known(ids := text_ids("event_ids", event_ids))
                if missing := [one for one in ids if one not in known]:
                    raise self._unknown(missing[0])
                waiting = [one for one in known.values() if one.status == OPEN]
            late = [one for one in waiting if limit is None or one.time < limit]
            for decision in late:
                self._close(decision, EXPIRED, value, when)
            return [decision.event_id for decision in late]

    def open_ids(self) -> list[str]:
        """Return the ids of the decisions still waiting for their rewards, oldest first."""
        with self._turn:
            return [decision.event_id for decision in self._remembered.open()]

    def recall(self, event_id: str) -> Decision | None:
        """Return a decision with its outcome; None if it was not made, or too long ago."""
        with self._turn:
            found = self._known([text_id(event_id)]).get(event_id)
            return None if found is None else self._explained(found)

    @property
    def waiting(self) -> int:
        """Return the number of decisions that wait for their rewards."""
        return self._remembered.waiting

    @property
    def decisions(self) -> int:
        """Return the number of decisions made."""
        return self._decisions

    def log(self) -> "pl.DataFrame":
        """All decisions, including open ones, as a table (`sb.logs` has its columns, files and deletion)."""
        extras.load("polars", "a bandit's log")
        with self._turn:
            return self._history.table(self._remembered.open(), self._policy)

    def delete(
        self,
        event_id: str | Sequence[str] | None = None,
        before: Time | None = None,
        subject: str | None = None,
    ) -> int:
        """Delete decisions with their rewards: one or some, all before a time, or all about someone; returns how many.

        They go from memory, log and store. What was learnt from them stays in the estimate.
        """
        if sum(one is not None for one in (event_id, before, subject)) != 1:
            raise ValueError("event_id, before or subject must be given to delete, and one alone")
        limit = None if before is None else moment("before", before)
        ids = None if event_id is None else text_ids("event_id", event_id)
        if subject is not None:
            text_id(subject, "subject")
        when = moment("time", None)
        with self._turn:
            if ids is not None:
                found = {name: one for name in ids if (one := self._remembered.find(name)) is not None}
            else:
                found = {
                    one.event_id: one
                    for one in self._remembered
                    if (one.subject == subject if limit is None else one.time < limit)
                }
            gone = dict.fromkeys(found) | self._history.select(ids, limit, subject)
            if gone:
                self._changing = True
                self._sequence += 1
                self._history.erase(list(gone), self._sequence, when)
            for (
                decision
            ) in found.values():  # not all of these ids: one may have been used again, for somebody else
                self._remembered.drop(decision)
                # The memory's order of decisions has it until its turn.
                decision.offered = decision.features = decision.named = None
            return len(gone)

    def warm_start(self, log: "pl.DataFrame") -> int:
        """Learn from a log, of this package or from elsewhere; returns how many rewards were used.

        Its decisions count as if this bandit had made them: the policy is asked about each, and its answer is
        discarded. Their ids are remembered, and open ones may still get their rewards; one that leaves the window gets
        its outcome then, where the log has it later. The whole log is checked before its first row is used.
        """
        from solid_bandits.logs.records import steps_of

        with self._turn:
            steps = steps_of(log, self._dim, self.design)
            known = self._known([step.decision.event_id for step in steps if step.status == OPEN])
            if known:
                raise ValueError(
                    f"log must have events that are new, got event_id {next(iter(known))!r} again"
                )
            before = self._learned
            outcomes = {step.decision.event_id: step[1:4] for step in steps if step.status != OPEN}
            for step in steps:
                if step.status == OPEN:
                    self._adopt(step.decision, outcomes)
                elif step.decision.status == OPEN:  # it has not left the window
                    self._close(*step[:4])
            return self._learned - before

    @classmethod
    def from_log(cls, log: "pl.DataFrame", policy: Policy | None = None, **settings: Any) -> "Bandit":
        """Make a new bandit that has learnt from a log; `settings` are those of a new one.

        Without names, such as `context` and `arms`, it learns from the log's features, and `dim` is theirs.
        """
        from solid_bandits.logs.records import width_of

        if not settings.keys() & {"context", "arms", "arm_features", "features"}:
            settings["dim"] = width_of(log)
        bandit = cls(policy, **settings)
        bandit.warm_start(log)
        return bandit

    @classmethod
    def open(cls, store: PathLike, policy: Policy | None = None, *, commit_every: int = 1) -> "Bandit":
        """Open the bandit of a store in its last state, whether it was closed or its process killed.

        A store is open in one process at a time.

        Args:
            store: the file.
            policy: if it is one of your own, the policy of the bandit, as in `Agent.load`.
            commit_every: see `Bandit`.
        """
        checks.integer("commit_every", commit_every, least=1)
        from solid_bandits.live import stored

        return stored.reopen(store, policy, int(commit_every))

    def flush(self) -> None:
        """Write to the disk what a group of calls (`commit_every`) still keeps in memory."""
        with self._turn:
            self._history.commit()

    def close(self) -> None:
        """Write what waits, and let go of the store; the bandit cannot be used afterwards. Without a store, nothing."""
        self._history.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def save(self, path: PathLike) -> None:
        """Write a snapshot to one file, whole or not at all: the agent and all decisions that are remembered.

        The log is not in it: write it with `sb.logs.write`, or keep the bandit in a store.
        """
        with self._turn:
            from solid_bandits.live import snapshots

            snapshots.save(self, path)

    def export(self, path: PathLike) -> None:
        """Write what the next decision is made by, features included, for another scorer (docs/edge.md)."""
        with self._turn:
            self.agent.export(path, self.design)

    @classmethod
    def load(cls, path: PathLike, policy: Policy | None = None) -> "Bandit":
        """Read what `save` wrote; the bandit carries on in memory, exactly where it was.

        Its log begins anew, with the decisions that are open: those that were closed before are in the old one.

        Args:
            path: of the file.
            policy: if it is one of your own, the policy that was saved, as in `Agent.load`.
        """
        from solid_bandits.live import snapshots

        bandit = snapshots.load(path, policy)
        bandit._history = MemoryHistory()
        return bandit

    def __repr__(self) -> str:
        return f"Bandit({self._policy}, {self._decisions:,} decisions, {self.waiting:,} open)"
