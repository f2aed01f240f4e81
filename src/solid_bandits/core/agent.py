"""A policy at work, one decision at a time: for rewards that come from the world and not from a simulation."""

import copy
import os
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy import empty, float64, ndarray
from numpy.typing import ArrayLike

from solid_bandits._internal import checks
from solid_bandits._internal.files import first_line
from solid_bandits._internal.types import Floats
from solid_bandits.core import agent_kernels
from solid_bandits.core.agent_file import AgentFile, PathLike, read_agent, write_agent
from solid_bandits.core.agent_kernels import CHECKED, REFUSED, UNCHECKED
from solid_bandits.core.at_work import AtWork
from solid_bandits.core.batch import Batch
from solid_bandits.core.decision import Decision, made
from solid_bandits.core.offer import (
    ALL,
    FLOAT,
    as_many,
    as_mask,
    as_offers,
    is_mask,
    is_ready,
    listed,
)
from solid_bandits.core.setting import LARGEST_REWARD, check_blocks, check_features, make_setting, make_table
from solid_bandits.core.spread import Watch
from solid_bandits.policies.contract import DecisionPolicy, Policy
from solid_bandits.policies.default import default_policy
from solid_bandits.policies.plain import PlainAgent, Player, as_policy
from solid_bandits.policies.state import (
    check_counts,
    check_evidence,
    check_tables,
    fill_state,
    state_to_plain,
)


class Agent(AtWork):
    """A policy that decides and learns.

    It runs the same compiled functions as a simulation. Rewards may arrive at once, late, in any order, or never. An
    agent can be shared between threads: calls take turns. It can be copied and pickled; copies are independent.

    It warns once, within its first 128 decisions, if columns of features, counted from 0, differ among the arms on
    offer by amounts more than a factor of 100 apart (docs/scaling.md). An agent that was loaded looks anew.

    Args:
        policy: parameters, such as `LinTS()`; or an object with `act` and `update` (docs/own-policy.md). None is
            `RandUCB()`, which needs no further information.
        dim: d, the number of features, if each decision brings its features.
        contexts: the features of all contexts, shape (contexts, arms, dim), if they are known in advance: for
            policies such as `Solid()` that plan over all of them. Give `dim` or `contexts`.
        noise_std: σ, the standard deviation of the rewards' noise. If None, policies that can do so estimate it from
            the rewards.
        theta_bound: B, an upper bound on ‖θ*‖; some policies need it.
        horizon: n, the number of decisions, if it is known.
        seed: of the policy's own random numbers.
        probabilities: whether every decision must have its probabilities, even if that takes time: LinTS with more
            than two arms then draws its arm from the votes of 64 models.
        floor: ε, the share of decisions whose arm is drawn uniformly from those available, so that each of K has a
            probability of at least ε / K; `probabilities` account for it, and are always known with it.
        half_life: decisions after which evidence has lost half its weight, for rewards that drift; None
            disables forgetting. It is the policy's own parameter of this name.
        blocks: K, if each arm has coefficients of its own, of which other arms learn nothing: rows of features are
            then [block number, x_1, ..., x_d], and `dim` is d + 1. 0 is one estimate for all arms.
        grows: whether columns may be added and coordinates changed later on (`policies.growth`); always with blocks.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(dim=2)
        >>> decision = agent.decide([[1, 0], [0, 1], [1, 1]], available=[True, True, False])
        >>> agent.learn(decision, reward=1.0)
        >>> means, stds = agent.predict([[1, 0], [0, 1]])
    """

    def __init__(
        self,
        policy: Policy | Player | None = None,
        *,
        dim: int | None = None,
        contexts: ArrayLike | None = None,
        noise_std: float | None = None,
        theta_bound: float | None = None,
        horizon: int | None = None,
        seed: int = 0,
        probabilities: bool = False,
        floor: float = 0.0,
        half_life: float | None = None,
        blocks: int = 0,
        grows: bool = False,
    ) -> None:
        known = default_policy() if policy is None else as_policy("policy", policy)
        known = known if half_life is None else known.with_half_life(half_life)
        checks.switch("probabilities", probabilities)
        share = checks.number("floor", floor, least=0, most=1)
        if floor > 0 and not isinstance(known, DecisionPolicy):
            raise ValueError(
                f"floor needs a policy that decides from features, such as LinTS, got {known.name}"
            )
        if (dim is None) == (contexts is None):
            got = "neither" if dim is None else "both"
            raise ValueError(f"dim or contexts must be given, and not both, got {got}")
        table = None if contexts is None else make_table(contexts, "contexts")
        size = table.features.shape[2] if table is not None else dim
        assert size is not None  # one of the two was given
        known = known.with_probabilities() if probabilities or floor > 0 else known
        setting = make_setting(size, noise_std, theta_bound, horizon, blocks, grows)
        super().__init__(known, setting, table, seed, share)
        self.watch = Watch(self._compiled, size, None if table is None else table.features)
        self._is_patient = self._is_plain or self._takes_context or self.fades
        """Whether each offer and each outcome is looked at in Python: compiled code does not take it as it comes."""
        self._is_slow = self._is_patient or self.watch.looking
        """Whether each offer is, for now."""

    def decide(
        self,
        features: ArrayLike | None = None,
        available: ArrayLike | None = None,
        context: int | None = None,
    ) -> Decision:
        """Choose one of the arms on offer.

        Args:
            features: of the arms on offer, shape (arms, dim); or
            context: a context of the table that the agent was given.
            available: which of the arms may be pulled, shape (arms,); None is all. Not for policies that plan over a
                table.
        """
        # Most calls end here. What compiled code is not sure of is looked at again below, and refused in words.
        if (
            type(features) is ndarray
            and context is None
            and features.ndim == 2
            and features.dtype == FLOAT
            and (flags := features.flags).c_contiguous
            and flags.aligned
            and (available is None or is_mask(available, len(features)))
            and not self._is_slow
        ):
            count = len(features)
            kept = empty(count + self._dim)
            lock = self._lock
            lock.acquire()
            try:
                mask = ALL if available is None else available
                arm, said = self._decide(self._kind, self._address, UNCHECKED, features, mask, kept)
            finally:
                lock.release()
            if said >= 0:
                return made(arm, said, kept, count)
            if said != REFUSED:
                raise self._wrong(arm, said, kept[:count])
        return self._decide_slowly(features, available, context)

    def _decide_slowly(
        self, features: ArrayLike | None, available: ArrayLike | None, context: int | None
    ) -> Decision:
        """Decide offers in any form, with messages for invalid ones."""
        if self._takes_context and (features is not None or available is not None):
            raise ValueError(
                f"{self.policy.name} plans over the contexts of its table with all their arms; give "
                "decide(context=...) alone, or use a policy such as RandUCB"
            )
        if self._takes_context and context is None:
            raise ValueError(f"context must be given to decide: {self.policy.name} has a table of contexts")
        place = CHECKED
        if context is not None:
            if self._table is None:
                raise ValueError(
                    "features must be given to decide instead of context, got context="
                    f"{checks.short(context)}: this agent has no contexts"
                )
            if features is not None:
                raise ValueError("context or features must be given to decide, and not both, got both")
            place = checks.index("context", context, self._table.features.shape[0])
            arms = self._table.features[place]
        else:
            arms = self._arms(features)
        mask = as_mask(available, arms.shape[0])
        if self.watch.looking:
            self.watch.look(arms, mask)
            self._is_slow = self._is_patient or self.watch.looking
        with self._lock:
            decision = self._drawn(place, arms, mask)
            decision.number = self._made() if self.fades else None
        decision.context = None if context is None else place
        return decision

    def decide_many(
        self, features: ArrayLike | Sequence[ArrayLike], available: ArrayLike | Sequence[Any] | None = None
    ) -> Batch:
        """Decide many offers at once, under what has been learnt so far.

        Each is decided as if it were the next: evidence and the number of decisions are the same for all of them, the
        policy's random numbers go on from offer to offer. Afterwards as many decisions have been made as there were
        offers: with a `half_life` evidence has faded by so many. Policies that have seen no arms yet take the scale
        of their ridge from the first offer. A policy in plain Python is asked about one after the other.

        Args:
            features: of the arms on offer, shape (offers, arms, dim); where offers differ in their arms, a list with
                an array (arms, dim) for each.
            available: which of them may be pulled, shape (offers, arms), or a list with a mask, or None, for each
                offer; None is all.
        """
        if self._takes_context:
            raise ValueError(
                f"{self.policy.name} plans over the contexts of its table, one at a time; use decide(context=...), or "
                "a policy such as RandUCB"
            )
        rows, starts, mask = as_many(features, available, self._dim, self._arms)
        for first, end in pairwise(starts.tolist()):
            if not self.watch.looking:
                break
            own = mask[first:end] if len(mask) else np.ones(end - first, dtype=np.bool_)
            self.watch.look(rows[first:end], own)
            self._is_slow = self._is_patient or self.watch.looking
        with self._lock:
            drawn = self._drawn_many(rows, starts, mask)
        return Batch(*drawn, starts)

    def probabilities(self, features: ArrayLike, available: ArrayLike | None = None) -> Floats | None:
        """Return the distribution from which `decide` would draw its arm now, changing nothing; None if it is
        unknown.
        """
        if self._takes_context:
            raise ValueError(f"{self.policy.name} plans over a table; its decisions have their probabilities")
        arms = self._arms(features)
        mask = as_mask(available, arms.shape[0])
        with self._lock, self._unchanged():
            found = self._drawn(CHECKED, arms, mask).probabilities
        return None if found is None else found.copy()

    def probabilities_many(
        self, features: ArrayLike, counts: ArrayLike, available: ArrayLike
    ) -> Floats | None:
        """The same for many offers at once, each as if it were the next: features (offers, arms, dim), of which the
        first `counts` arms of an offer are on offer, and available (offers, arms).
        """
        if self._takes_context:
            raise ValueError(f"{self.policy.name} plans over a table; its decisions have their probabilities")
        offers, counted, masks = as_offers(features, counts, available, self._dim)
        found = np.zeros(masks.shape)
        floor = self._floor, self._floor_rng
        with self._lock, self._unchanged():
            if self._is_plain:
                for row, count in enumerate(counted):
                    with self._unchanged():
                        drawn = self._drawn(CHECKED, offers[row, :count], masks[row, :count]).probabilities
                        found[row, :count] = np.nan if drawn is None else drawn
            else:
                before = copy.deepcopy(self._compiled.state)
                agent_kernels.survey(self._held, before, offers, counted, masks, found, *floor)
        return None if np.isnan(found).any() else found

    def learn(self, decision: Decision, reward: float) -> None:
        """Learn from the reward of one of this agent's decisions."""
        if (
            type(decision) is Decision
            and (kept := decision._kept) is not None
            and (type(reward) is float or type(reward) is float64)
            and not self._is_patient
        ):
            lock = self._lock
            lock.acquire()
            try:
                if self._learn(self._kind, self._address, UNCHECKED, 0, kept, decision._count, reward, 0):
                    return
            finally:
                lock.release()
        outcome = self._outcome(decision, reward)
        with self._lock:
            self._take(decision, outcome)

    def learn_many(self, decisions: Batch | Iterable[Decision], rewards: ArrayLike | Iterable[float]) -> None:
        """Learn from many rewards, in this order; all are checked before the first is used.

        Args:
            decisions: what `decide_many` returned, or a list of decisions.
            rewards: one for each.
        """
        if isinstance(decisions, Batch):
            self._learn_batch(decisions, rewards)
            return
        if isinstance(decisions, Decision):
            raise ValueError("decisions must be a list of decisions, got one; use learn")
        decisions = listed("decisions", decisions)
        rewards = _as_many_rewards(rewards, len(decisions))
        outcomes = []
        for place, pair in enumerate(zip(decisions, rewards, strict=True)):
            try:
                outcomes.append(self._outcome(*pair))
            except ValueError as error:
                raise ValueError(f"decision {place} of {len(decisions)}: {error}") from None
        with self._lock:
            for decision, outcome in zip(decisions, outcomes, strict=True):
                self._take(decision, outcome)

    def _learn_batch(self, batch: Batch, rewards: Any) -> None:
        features: Any = batch.features
        if type(features) is not ndarray or not is_ready(features):
            features = check_features("decisions.features", features, "decisions", "dim")
        if self._takes_context or features.shape != (len(batch), self._dim):
            raise ValueError(
                f"decisions must be of an agent with dim {self._dim}, got features of {features.shape[-1]}"
            )
        if self._setting.blocks:
            check_blocks("decisions.features", features, self._setting.blocks)
        values = rewards
        if type(rewards) is not ndarray or rewards.dtype != FLOAT or rewards.shape != (len(batch),):
            given = _as_many_rewards(rewards, len(batch))
            values = np.array([self._one_of_many(one, row, len(given)) for row, one in enumerate(given)])
        values = np.ascontiguousarray(values)
        if not np.abs(values).max() <= LARGEST_REWARD:
            for row, one in enumerate(values.tolist()):
                self._one_of_many(one, row, len(values))
        number = batch.number
        self._check_number(None if number is None else number + len(batch) - 1)
        with self._lock:
            self._learn_all(features, values, number)

    def _one_of_many(self, reward: Any, row: int, count: int) -> float:
        try:
            return _as_reward(reward)
        except ValueError as error:
            raise ValueError(f"decision {row} of {count}: {error}") from None

    def save(self, path: PathLike) -> None:
        """Write one JSON file of plain numbers: policy, setting, table, state and version."""
        if isinstance(self._compiled, PlainAgent):
            raise ValueError(
                "policy must keep its state in arrays to be saved, got the plain Python of "
                f"{type(self._compiled.player).__name__}; pickle the agent instead"
            )
        write_agent(path, self._content())

    def export(self, path: PathLike, design: Any = None) -> None:
        """Write what the next decision is made by as plain numbers, for another scorer (docs/edge.md).

        Args:
            path: of the file.
            design: of the named features, where a bandit has some.
        """
        from solid_bandits.core import export  # which loads the policies that it knows

        with self._lock:
            export.write_model(path, self.policy, self._setting, self._compiled, self._floor, design)

    @classmethod
    def load(cls, path: PathLike, policy: Policy | None = None) -> "Agent":
        """Read what `save` wrote; the agent carries on where it was. Loading never imports or runs code from the file.

        Args:
            path: of the file.
            policy: if it is one of your own, the policy that was saved, with the same parameters.
        """
        content = read_agent(path, policy)
        try:
            return cls._restored(content)
        except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
            raise ValueError(f"agent file {os.fspath(path)!r} cannot be used: {first_line(error)}") from None

    def _content(self) -> AgentFile:
        with self._lock:
            if isinstance(self._compiled, PlainAgent):
                state = copy.deepcopy(self._compiled.player)
            else:
                state = state_to_plain(self._compiled.state)
        table = None if self._table is None else self._table.features
        floor = None if self._floor == 0 else (self._floor, self._floor_rng.tolist())
        return AgentFile(self.policy, self._setting, table, state, floor)

    @classmethod
    def _restored(cls, content: AgentFile) -> "Agent":
        policy, setting, contexts, state, floor = content
        agent = cls(
            policy,
            dim=None if contexts is not None else setting.dim,
            contexts=contexts,
            noise_std=setting.noise_std or None,
            theta_bound=setting.theta_bound or None,
            horizon=setting.horizon or None,
            floor=0.0 if floor is None else floor[0],
            blocks=setting.blocks,
            grows=setting.grows,
        )
        if floor is not None:
            agent._floor_rng[:] = floor[1]
        if isinstance(agent._compiled, PlainAgent):
            agent._compiled.player = state
            return agent
        fill_state(agent._compiled.state, state)
        check_counts(agent._compiled.state)
        check_tables(agent._compiled)
        check_evidence(agent._compiled)
        policy.check_state(agent._compiled)
        return agent

    def __reduce__(self) -> tuple[Any, ...]:
        return self._restored, (self._content(),)

    def __repr__(self) -> str:
        return f"Agent({self.policy!r}, dim={self._dim})"

    def _outcome(self, decision: Decision, reward: float) -> tuple[int, int, Floats, float]:
        """Return context, arm, features and reward in compiled form."""
        if not isinstance(decision, Decision):
            raise ValueError(f"decision must be what decide returned, got {checks.short(decision)}")
        value = _as_reward(reward)
        if not self._takes_context:
            features: Any = decision.features
            if type(features) is not np.ndarray or features.ndim != 1 or not is_ready(features):
                features = check_features("decision.features", features, "dim")
            if features.shape[0] != self._dim:
                raise ValueError(
                    f"decision must be of an agent with dim {self._dim}, got features of {features.shape[0]}"
                )
            if self._setting.blocks:
                check_blocks("decision.features", features, self._setting.blocks)
            self._check_number(decision.number)
            return 0, 0, features, value  # which arm it was, and where, is nothing to these policies
        assert self._table is not None  # its policy takes contexts
        if decision.context is None:
            raise ValueError("decision must be of an agent with contexts, got one without a context")
        context = checks.index("decision.context", decision.context, self._table.features.shape[0])
        arm = checks.index("decision.place", decision.place, self._table.features.shape[1])
        return context, arm, self._table.features[context, arm], value


def _as_reward(reward: Any) -> float:
    if isinstance(reward, bool | np.bool_):  # a click
        reward = float(reward)
    return checks.number("reward", reward, least=-LARGEST_REWARD, most=LARGEST_REWARD)


def _as_many_rewards(rewards: Any, count: int) -> list[Any]:
    found = listed("rewards", rewards)
    if len(found) != count:
        raise ValueError(f"rewards must have {count} entries, one per decision, got {len(found)}")
    return found
