"""The record of a decision: one class for agents, bandits, the service, logs and evaluation. No compiler is loaded."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # a client has decisions without NumPy
    from solid_bandits._internal.types import Floats

Arm = str | int
"""The caller's name for an arm."""

SAID: tuple[str, ...] = ()
"""Further words that a caller may say with a decision, by their names: each is a column of the log, text or null, and
only `Bandit.decide` must take it, too."""
NOTHING: Mapping[str, str] = {}
OFFER = ("features", "arms", "event_id", "subject", "available", *SAID)
"""Arguments of a call for a decision; all but the first are optional."""
OPEN, LEARNED, EXPIRED = "open", "learned", "expired"
"""Status of a decision: waiting for its reward, rewarded, or given up (perhaps with a default reward)."""

EXPLORED, KNOWN = 1, 2
"""Bits of what compiled code says of a decision: whether the round explored, and whether probabilities are known."""


class Decision:
    """A decision, and what became of it.

    An agent fills in the first fields, which are all that learning needs; a bandit adds ids, times and the outcome.
    Two decisions are equal only if they are the same object.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.EpsilonGreedy(epsilon=0.1), dim=2, seed=0)
        >>> decision = agent.decide([[1.0, 0.0], [0.0, 1.0]])
        >>> decision.arm, round(decision.probability, 3)
        (0, 0.95)
        >>> agent.learn(decision, reward=1.0)
        >>> bandit = sb.Bandit(sb.LinTS(), dim=2, noise_std=0.5, seed=0)
        >>> decision = bandit.decide([[1.0, 0.0], [0.0, 1.0]], arms=["tea", "coffee"], event_id="visit-1")
        >>> decision.event_id, decision.arms, decision.probability
        ('visit-1', ('tea', 'coffee'), 0.5)
    """

    # To make the record is a part of what a decision costs: an agent writes six of the fields, a bandit some more, and
    # those that nobody wrote are what `_UNSAID` says.
    __slots__ = (
        "_arms",
        "_bits",
        "_count",
        "_explained",
        "_features",
        "_kept",
        "_learnt",
        "_offered",
        "_probabilities",
        "_version",
        "again",
        "batch",
        "context",
        "event_id",
        "expected",
        "named",
        "number",
        "ordinal",
        "place",
        "reward",
        "reward_sequence",
        "reward_time",
        "said",
        "sequence",
        "status",
        "subject",
        "time",
    )

    place: int
    """Of the chosen arm among those on offer, counted from 0."""
    context: int | None
    """The context of the table, where the agent has one."""
    number: int | None
    """Which decision of the agent this was, counted from 1, where evidence fades (`half_life`): a reward that
    comes late weighs what its decision weighs."""
    event_id: str
    subject: str | None
    """Whom the decision is about, if the caller said so."""
    said: Mapping[str, str]
    """Of `SAID`, what the caller said."""
    time: int
    """Microseconds since 1970."""
    sequence: int
    """Which event of the bandit this was: decisions and outcomes are counted together, from 1."""
    ordinal: int
    """Which decision of the bandit this was, counted from 1."""
    status: str
    reward: float | None
    reward_sequence: int | None
    """Which event of the bandit the outcome was."""
    reward_time: int | None
    """Of the outcome, in microseconds since 1970."""
    named: Any
    """The values that the caller named, where features follow from them: `sb.Bandit(context=...)`."""
    expected: Floats | None
    """Expected rewards of the arms on offer just before the reward was learnt, where somebody asks for them."""
    _explained: Any
    """What explains it: a function of the decision."""
    batch: tuple[int, int] | None
    """Its place among decisions that a bandit made together, and how many these were; None where it was alone."""
    again: bool
    """Whether the id was known: this is what was decided then."""
    _bits: int
    """`EXPLORED` and `KNOWN`, as compiled code says them."""
    _kept: Floats | None
    """What compiled code wrote, and nobody changes: the probabilities of all arms, then the features of the chosen one.
    Read-only parts of it are made when they are asked for."""
    _count: int
    """Arms in `_kept`."""
    _arms: Sequence[Arm] | None
    _features: Floats | None
    _probabilities: Floats | None
    _offered: Floats | None
    _version: str
    """Of the code and the settings; or, where `_learnt` is not known, the whole version."""
    _learnt: int | None
    """How much had been learnt."""

    def __init__(
        self,
        place: int,
        features: Floats | None = None,
        probabilities: Floats | None = None,
        explored: bool = False,
        context: int | None = None,
        number: int | None = None,
        *,
        arms: Sequence[Arm] | None = None,
        offered: Floats | None = None,
        event_id: str = "",
        subject: str | None = None,
        said: Mapping[str, str] = NOTHING,
        time: int = 0,
        sequence: int = 0,
        ordinal: int = 0,
        version: str = "",
        status: str = OPEN,
        reward: float | None = None,
        reward_sequence: int | None = None,
        reward_time: int | None = None,
        named: Any = None,
    ) -> None:
        self.place = place
        self._kept = None
        self._features = features
        self._probabilities = probabilities
        self._bits = KNOWN | EXPLORED if explored else KNOWN
        self.context = context
        self.number = number
        self._arms = arms
        self._offered = offered
        self.event_id = event_id
        self.subject = subject
        self.said = said
        self.time = time
        self.sequence = sequence
        self.ordinal = ordinal
        self._version = version
        self.status = status
        self.reward = reward
        self.reward_sequence = reward_sequence
        self.reward_time = reward_time
        self.named = named

    if not TYPE_CHECKING:  # which is not to believe that a decision has whatever is asked of it

        def __getattr__(self, name: str) -> Any:
            """What nobody wrote; Python asks for it only then."""
            if name in _UNSAID:
                return _UNSAID[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def explored(self) -> bool:
        """Whether the policy gave up some of what it expects now to learn something."""
        return self._bits & EXPLORED != 0

    @explored.setter
    def explored(self, explored: bool) -> None:
        self._bits = self._bits | EXPLORED if explored else self._bits & ~EXPLORED

    @property
    def features(self) -> Floats | None:
        """Of the chosen arm, shape (dim,)."""
        if self._features is None and self._kept is not None:
            self._features = _shown(self._kept[self._count :])
        return self._features

    @features.setter
    def features(self, features: Floats | None) -> None:
        self._let_go()
        self._features = features

    @property
    def probabilities(self) -> Floats | None:
        """Of all arms on offer, shape (arms,): the distribution that the arm was drawn from, under the policy as it
        was. None where `Agent(..., probabilities=True)` was needed and not given.
        """
        found = self._probabilities
        if found is None and self._kept is not None and self._bits & KNOWN:
            found = self._probabilities = self._kept[: self._count]
            found.setflags(False)  # type: ignore[call-arg]  # by its name it takes twice as long
        return found

    @probabilities.setter
    def probabilities(self, probabilities: Floats | None) -> None:
        self._let_go()
        self._probabilities = probabilities

    @property
    def arms(self) -> Sequence[Arm] | None:
        """Names of the arms on offer; None, or the range of their places, where they have none."""
        return range(self._count) if self._arms is None and self._kept is not None else self._arms

    @arms.setter
    def arms(self, arms: Sequence[Arm] | None) -> None:
        if arms is None:
            self._let_go()
        self._arms = arms

    @property
    def offered(self) -> Floats | None:
        """Features of all arms on offer, shape (arms, dim), until the decision is closed and logged."""
        return None if self._offered is None else _shown(self._offered)

    @offered.setter
    def offered(self, offered: Floats | None) -> None:
        self._offered = offered

    @property
    def version(self) -> str:
        """Of the code, the settings and how much had been learnt."""
        return self._version if self._learnt is None else f"{self._version}/{self._learnt}"

    @version.setter
    def version(self, version: str) -> None:
        self._version, self._learnt = version, None

    def _let_go(self) -> None:
        """Make arrays of their own of what compiled code wrote: one of them is about to change, or to be forgotten."""
        if self._kept is not None:
            self._arms = self.arms
            features, probabilities = self.features, self.probabilities
            self._kept = None
            self._features = None if features is None else _shown(features.copy())
            self._probabilities = None if probabilities is None else _shown(probabilities.copy())

    def __getstate__(self) -> dict[str, Any]:
        """What was written, but for what can be read from `_kept` again."""
        left = {"_explained"} if self._kept is None else {"_explained", "_features", "_probabilities"}
        state = {}
        for name in self.__slots__:
            with suppress(AttributeError):
                state[name] = object.__getattribute__(self, name)
        return {name: value for name, value in state.items() if name not in left}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    @property
    def arm(self) -> Arm:
        """The chosen arm, as the caller named it."""
        return self.place if self._arms is None else self._arms[self.place]

    @property
    def probability(self) -> float | None:
        """Of the chosen arm; None where `probabilities` are not known."""
        if self._kept is not None:
            return self._kept.item(self.place) if self._bits & KNOWN else None
        return None if self.probabilities is None else float(self.probabilities[self.place])

    @property
    def why(self) -> Any:
        """What each named feature added to the arm's estimate and to its width, beside the runner-up.

        By what the bandit knows when this is read. Its parts sum to the estimate and to the squared width.

        Example:
            >>> import solid_bandits as sb
            >>> bandit = sb.Bandit(arms=["tea", "milk"], context=["age"])
            >>> decision = bandit.decide({"age": 34})
            >>> list(decision.why.parts)
            ['constant', 'age']
        """
        if self._explained is None:
            raise ValueError(
                "why must be asked of a decision with named features that a bandit of this process returned: a matrix "
                "has no names, and a client does not know the estimate"
            )
        return self._explained(self)

    def replace(self, **changes: Any) -> Decision:
        """A copy with some fields changed."""
        found = copy.copy(self)
        for name, value in changes.items():
            setattr(found, name, value)
        return found

    def __repr__(self) -> str:
        shown = ["event_id", "arm", "probability", "explored", "status", "reward"]
        if not self.event_id:
            shown = ["arm", "probability", "explored"]
        return f"Decision({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _shown(array: Floats) -> Floats:
    """The array, read-only."""
    array.setflags(False)  # type: ignore[call-arg]
    return array


def made(place: int, said: int, kept: Floats, count: int) -> Decision:
    """Return an agent's decision among `count` arms, from what compiled code wrote and said."""
    one = _new(Decision)
    one.place = place
    one._bits = said
    one._kept = kept
    one._count = count
    one._arms = one._probabilities = None
    return one


_UNSAID: dict[str, Any] = {
    **dict.fromkeys(Decision.__slots__),
    "event_id": "",
    "said": NOTHING,
    "time": 0,
    "sequence": 0,
    "ordinal": 0,
    "status": OPEN,
    "again": False,
    "_count": 0,
    "_bits": KNOWN,
    "_version": "",
}
_new = Decision.__new__


LEARNT, AGAIN, CONFLICT, LATE, UNKNOWN = "learned", "again", "conflict", "late", "unknown"
"""Status of a receipt."""


class _Told(NamedTuple):
    event_id: str
    status: str
    """`learned` now; `again`, as this reward had been learnt; `conflict`, as another reward had been; `late`, as the
    decision had expired; `unknown`, as there is no decision of this id."""
    reward: float | None
    """The reward that counts for this id; None if it expired without one, or is unknown."""
    told: float | str
    """The reward that came; or the message, where somebody else has put it into words."""


class Receipt(_Told):
    """What became of a reward.

    Example:
        >>> import solid_bandits as sb
        >>> bandit = sb.Bandit(sb.LinTS(), dim=2, noise_std=0.5, seed=0)
        >>> decision = bandit.decide([[1.0, 0.0], [0.0, 1.0]], event_id="visit-1")
        >>> bandit.learn("visit-1", reward=1.0).counted
        True
        >>> bandit.learn("visit-1", reward=0.0).message
        "event_id 'visit-1' had learned 1; 0 was not taken in"
    """

    __slots__ = ()

    @property
    def counted(self) -> bool:
        """Whether it was taken in now."""
        return self.status == LEARNT

    @property
    def message(self) -> str:
        """In words."""
        if isinstance(self.told, str):
            return self.told
        had, new = "" if self.reward is None else f"{self.reward:g}", f"{self.told:g} was not taken in"
        words = {
            LEARNT: f"learned {had}",
            AGAIN: f"had learned {had} before",
            CONFLICT: f"had learned {had}; {new}",
            LATE: f"had expired {f'with reward {had}' if had else 'without a reward'}; {new}",
            UNKNOWN: "is of no decision",
        }
        return f"event_id {self.event_id!r} {words[self.status]}"
