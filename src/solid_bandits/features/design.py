"""Features of arms from named values: which there are, one vector an arm, and how they move when columns do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.types import Floats, Plain
from solid_bandits.core.setting import LARGEST_DIM
from solid_bandits.features.columns import Columns, Moves, Row
from solid_bandits.features.spec import Features

Factor = tuple[int, int]
"""Side, 0 for the context and 1 for an arm's own features, and column."""
Term = tuple[Factor, ...]
"""A feature before it is given to arms: the product of so many columns. None is the constant 1."""
OVERHEAD = 300
"""Bytes of a table of values besides the values, about."""
MOST_GROWN = 2_000
"""Features beyond which no category gets a column of its own."""


class Slot(NamedTuple):
    """One feature."""

    term: Term
    arm: str | None
    """The arm that alone has it, in a joint model; None is all."""


class Named(NamedTuple):
    """The named values of a decision, checked, as a log keeps them."""

    context: Mapping[str, Any]
    arms: tuple[str, ...]
    own: tuple[Mapping[str, Any], ...] | None = None
    """Own features of each arm on offer, if arms have any."""
    raw: list[float] | None = None
    """The columns of the context, where all of them were there when it was checked."""
    own_raw: tuple[list[float] | None, ...] | None = None

    @property
    def size(self) -> int:
        """Bytes of memory that it takes besides the arms' names, about."""
        rows = (self.context, *(self.own or ()))
        numbers = sum(len(raw) for raw in (self.raw, *(self.own_raw or ())) if raw is not None)
        return (
            OVERHEAD * len(rows) + sum(_size(value) for row in rows for value in row.values()) + 32 * numbers
        )


class Change(NamedTuple):
    """What a row changes of the features before it is encoded."""

    added: int
    """New features at the end: of each arm where arms have blocks."""
    basis: Floats | None
    """φ_new = basis @ φ_old, after the new ones are there."""


@dataclass
class Growth:
    """Types fixed by checks of rows that are not encoded yet."""

    context: dict[str, str | None]
    own: dict[str, str | None]


class Design:
    """Named values as features of arms; its state comes about from the order of the rows, and from nothing else.

    Args:
        features: what was declared.
    """

    def __init__(self, features: Features) -> None:
        self.features = features
        self.context = Columns(features.context, features.categories, "context")
        self.own = Columns(features.arm_features, features.categories, "arm_features")
        self.sides = (self.context, self.own)
        self.rows = 0
        """Number of rows that were added."""
        self.arms: list[str] = list(features.arms or ())
        """All that have coefficients of their own, those that were removed included, in the order of their blocks."""
        self.removed: set[str] = set()
        self._block_of = {arm: number for number, arm in enumerate(self.arms)}
        self.slots: list[Slot] = []
        self._grow()

    @property
    def blocked(self) -> bool:
        """Whether arms share nothing: then there is one vector for all, and coefficients by arm."""
        return self.features.blocked

    @property
    def dim(self) -> int:
        """Number of features; per arm, if arms have blocks."""
        return len(self.slots)

    def names(self) -> list[str]:
        """Return the names of the features."""
        found = []
        for term, arm in self.slots:
            word = " × ".join(self.sides[side].columns[place].label() for side, place in term) or "intercept"
            found.append(word if arm is None else f"{word} of {arm}")
        return found

    def said_by(self) -> list[str]:
        """Return by which names each feature is said: `age`, `age × price`, or `constant`."""
        return [
            " × ".join(self.sides[side].columns[place].name for side, place in term) or "constant"
            for term, _ in self.slots
        ]

    def offered(self) -> list[str]:
        """Return the arms with coefficients of their own that have not been removed."""
        return [arm for arm in self.arms if arm not in self.removed]

    # -- terms --

    def _terms(self) -> list[Term]:
        """Return all terms that the columns there are ask for."""
        found: list[Term] = [()]
        found += [((0, place),) for place in range(1, self.context.width)]
        found += [((1, place),) for place in range(1, self.own.width)]
        for one, other in self.features.pairs():
            first, second = (
                [(side, place) for place in self.sides[side].places[name].values()]
                for side, name in (one, other)
            )
            found += [tuple(sorted((a, b))) for a in first for b in second]
        return found

    def _grow(self) -> int:
        """Add the features that the columns and the arms there are ask for; return how many."""
        known = set(self.slots)
        fresh: list[Slot] = []
        for term in self._terms():
            shared = self.blocked or not self.arms or any(side == 1 for side, _ in term)
            those = (None,) if shared else self.arms
            fresh += [slot for arm in those if (slot := Slot(term, arm)) not in known]
        if (count := len(self.slots) + len(fresh)) > LARGEST_DIM:
            # By arms and names alone: categories stop long before.
            raise checks.ArgumentError("features", f"must be at most {LARGEST_DIM:,}, got {count:,}")
        self.slots += fresh
        shift = self.context.width - 1  # own columns, without their constant, follow those of the context
        index = np.zeros((2, len(self.slots)), dtype=np.int64)
        for place, (term, _) in enumerate(self.slots):
            for factor, (side, column) in enumerate(term):
                index[factor, place] = column if side == 0 else shift + column
        self._first, self._second = index
        self._seen = self.context.width, self.own.width
        self._share_room()
        self._simple = all(len(term) < 2 for term, _ in self.slots)
        self._flat = self._simple and bool((self._first == np.arange(len(self.slots))).all())
        if self.arms and not self.blocked:
            arms = np.array(self.arms, dtype=object)[:, None]
            owners = np.array([slot.arm for slot in self.slots], dtype=object)
            shared_slots = np.array([slot.arm is None for slot in self.slots])
            self._mask = ((owners == arms) | shared_slots).astype(np.float64)
        return len(fresh)

    def _share_room(self) -> None:
        """Say how many columns for categories either side may still get before they share one."""
        left = max(0, MOST_GROWN - len(self.slots)) // 2
        widths = [side.width for side in self.sides]
        for number, side in enumerate(self.sides):
            partners = [
                widths[other]
                for pair in self.features.pairs()
                for (mine, _), (other, _) in (pair, pair[::-1])
                if mine == number
            ]
            many = 1 if self.blocked or not self.arms else len(self.arms)
            side.room = left // ((1 + sum(partners)) * many)

    # -- rows --

    def begin_check(self) -> Growth:
        """Return what a batch of checks begins with."""
        return Growth(dict(self.context.kinds), dict(self.own.kinds))

    def check(
        self, context: Row | None, arms: Any, growth: Growth | None = None, made: bool = False
    ) -> Named:
        """Return the values of a decision as a log keeps them; nothing changes.

        Args:
            context: values by names.
            arms: the arms on offer: names, or a table of their own features by names; None is all that are there.
            growth: of the batch that this row is in, which it goes on with.
            made: whether this was decided before, when arms that are removed now may have been on offer.
        """
        growth = growth or self.begin_check()
        shared, raw = self.context.check({} if context is None else context, growth.context)
        if not self.features.arm_features:
            return Named(shared, self.names_of(arms, made), None, raw)
        if not isinstance(arms, Mapping) or not arms:
            raise checks.ArgumentError(
                "arms",
                "must be a table of the arms on offer with their features, such as {'tea': {'price': 3.0}}, got "
                f"{checks.short(arms)}",
            )
        names = tuple(arms)
        if self.arms:
            self.names_of(names, made)
        own, raws = [], []
        for arm, values in arms.items():
            if not checked_name(arm):
                raise bad_name(arm)
            try:
                mine, its = self.own.check(values, growth.own)
            except checks.ArgumentError as error:
                raise checks.ArgumentError(f"arms[{arm!r}]:", str(error)) from None
            own.append(mine)
            raws.append(its)
        return Named(shared, names, tuple(own), raw, tuple(raws))

    def names_removed(self, arms: Any) -> bool:
        """Return whether an arm that was removed is among these."""
        if not self.removed or not isinstance(arms, Sequence | Mapping | np.ndarray):
            return False
        return any(isinstance(arm, str) and arm in self.removed for arm in arms)

    def names_of(self, arms: Any, made: bool = False) -> tuple[str, ...]:
        """Return the names of the arms on offer, checked; None is all that are there."""
        if arms is None:
            found = self.offered()
            if not found:
                raise checks.ArgumentError("arms", "must be there to decide, got none: add_arm adds one")
            return tuple(found)
        if isinstance(arms, str | Mapping) or not isinstance(arms, Sequence | np.ndarray) or not len(arms):
            raise checks.ArgumentError("arms", f"must be a list of names, got {checks.short(arms)}")
        for arm in arms:
            known = isinstance(arm, str) and arm in self._block_of
            if not known or (arm in self.removed and not made):
                state = "was removed" if known else "is not there"
                raise checks.ArgumentError(
                    "arms",
                    f"must be among {', '.join(map(repr, self.offered()[:8]))}, got {checks.short(arm)}, which {state}"
                    f"; add it with add_arm({arm!r})",
                )
        if len(set(arms)) < len(arms):
            raise checks.ArgumentError("arms", f"must be different from each other, got {checks.short(arms)}")
        return tuple(arms)

    def take(self, named: Named) -> Change:
        """Take in a checked row: new columns, means and spreads; return how the features change before it."""
        added = 0
        marks = [side.mark() for side in self.sides]
        raw = self.context.placed(named.context, named.raw, grow=True)
        own = self._placed_own(named, grow=True)
        if own and len(own[0]) < self.own.width:  # a later arm has brought a column
            own = self._placed_own(named)
        if self._seen != (self.context.width, self.own.width):
            try:
                added = self._grow()
            except checks.ArgumentError:
                for side, mark in zip(self.sides, marks, strict=True):
                    side.go_back(mark)
                raise
        self.rows += 1
        far = self.context.absorb(raw)
        for mine in own:
            if self.own.absorb(mine):
                far = True
        basis = None
        if far or self.rows & (self.rows - 1) == 0:
            basis = self._basis(self.context.renew(), self.own.renew())
        return Change(added, basis)

    def _placed_own(self, named: Named, grow: bool = False) -> list[list[float]]:
        own = named.own or ()
        raws = named.own_raw or (None,) * len(own)
        return [self.own.placed(row, raw, grow) for row, raw in zip(own, raws, strict=True)]

    def encode(self, named: Named) -> Floats:
        """Return the features of a checked row that was taken in, in the coordinates in force, shape (arms, dim).

        Where arms have blocks: their numbers, and then the one vector that they share, shape (arms, 1 + dim).
        """
        values = self.context.scaled(self.context.placed(named.context, named.raw))
        if self.blocked:
            vector = np.array(values)
            if not self._flat:
                vector = vector[self._first] * vector[self._second]
            found = np.empty((len(named.arms), 1 + len(vector)))
            found[:, 0] = [self._block_of[arm] for arm in named.arms]
            found[:, 1:] = vector
            return found
        rows = [values + self.own.scaled(mine)[1:] for mine in self._placed_own(named)]
        joined = np.array(rows)
        found = joined[:, self._first]
        if not self._simple:
            found *= joined[:, self._second]
        if self.arms:
            found *= self._mask[[self._block_of[arm] for arm in named.arms]]
        return found

    # -- coordinates --

    def _basis(self, context: Moves, own: Moves) -> Floats | None:
        """Return the matrix that brings features into the new coordinates, None where none has changed."""
        moves = (context, own)
        if not any(moves):
            return None
        places = {slot: place for place, slot in enumerate(self.slots)}
        basis = np.zeros((len(self.slots), len(self.slots)))
        for row, (term, arm) in enumerate(self.slots):
            for part, weight in _expanded(term, moves).items():
                if arm is not None or Slot(part, None) in places:
                    basis[row, places[Slot(part, arm)]] += weight
                else:  # what all arms share is the sum of what each has
                    for one in self.arms:
                        basis[row, places[Slot(part, one)]] += weight
        return basis

    # -- arms --

    def add_arm(self, arm: str) -> int | None:
        """Add an arm; return how many features it adds to a joint model, None where it is back again."""
        if arm in self._block_of:
            self.removed.discard(arm)
            return None
        self._block_of[arm] = len(self.arms)
        self.arms.append(arm)
        try:
            return self._grow()
        except checks.ArgumentError:
            self.arms.remove(arm)
            del self._block_of[arm]
            raise

    def remove_arm(self, arm: str) -> None:
        """Take an arm off the offers; its coefficients stay."""
        self.removed.add(arm)

    def check_add(self, arm: Any, like: Any) -> None:
        """Raise an error unless this arm can be added."""
        if self.features.arms is None:
            raise checks.ArgumentError(
                "arm", "cannot be added: arms come with each decision, with their features"
            )
        if not checked_name(arm):
            raise bad_name(arm)
        if arm in self._block_of and arm not in self.removed:
            raise checks.ArgumentError("arm", f"must be a new one, got {arm!r}, which is there")
        if like is None:
            return
        if like not in self._block_of:
            raise checks.ArgumentError("like", f"must be an arm, got {checks.short(like)}")
        if not self.blocked:
            raise checks.ArgumentError("like", "needs arms that share nothing: leave out arm_features")
        if arm in self._block_of:
            raise checks.ArgumentError("like", f"must be left out: {arm!r} comes back with its own estimate")

    def check_remove(self, arm: Any) -> None:
        """Raise an error unless this arm can be removed."""
        if arm not in self._block_of or arm in self.removed:
            raise checks.ArgumentError("arm", f"must be one that is there, got {checks.short(arm)}")
        if len(self.offered()) == 1:
            raise checks.ArgumentError("arm", f"must not be the last one, got {arm!r}; add another first")

    # -- state --

    def state(self) -> Plain:
        """Return everything that came about, as plain data."""
        return {
            "context": self.context.state(),
            "own": self.own.state(),
            "rows": self.rows,
            "arms": self.arms,
            "removed": sorted(self.removed),
            "slots": [[list(map(list, slot.term)), slot.arm] for slot in self.slots],
        }

    @classmethod
    def restored(cls, features: Features, state: Plain) -> "Design":
        """Return the design whose state this is; a ValueError where it is not one of these features."""
        found = cls(features)
        found.context.restore(state["context"])
        found.own.restore(state["own"])
        found.rows = checks.integer("rows", state["rows"], least=0)
        arms = [str(arm) for arm in state["arms"]]
        if arms[: len(found.arms)] != found.arms or len(set(arms)) < len(arms) or (arms and not found.arms):
            raise ValueError(f"arms must begin with those declared, got {checks.short(arms)}")
        found.arms, found.removed = arms, set(state["removed"])
        found._block_of = {arm: number for number, arm in enumerate(arms)}
        found.slots = [
            Slot(tuple((int(side), int(place)) for side, place in term), arm) for term, arm in state["slots"]
        ]
        if found._grow() or len(set(found.slots)) < len(found.slots):
            raise ValueError("slots must be all features of these columns and arms, each once")
        return found


def _expanded(term: Term, moves: tuple[Moves, Moves]) -> dict[Term, float]:
    """Return a product of new coordinates as a sum of products of the old ones."""
    found: dict[Term, float] = {(): 1.0}
    for side, place in term:
        move = moves[side].get(place)
        after: dict[Term, float] = {}
        for part, weight in found.items():
            pieces = [((side, place), 1.0 if move is None else move.factor)]
            whole = tuple(sorted((*part, pieces[0][0])))
            after[whole] = after.get(whole, 0.0) + weight * pieces[0][1]
            if move is not None:
                after[part] = after.get(part, 0.0) + weight * move.shift
                if move.absent:
                    gone = tuple(sorted((*part, (side, move.absent))))
                    after[gone] = after.get(gone, 0.0) - weight * move.shift
        found = after
    return found


def _size(value: Any) -> int:
    """Bytes of memory of a value and its place under a name, about."""
    if isinstance(value, list):
        return 100 + sum(_size(one) for one in value)
    return 100 + (len(value) if isinstance(value, str) else 0)


def checked_name(arm: Any) -> bool:
    """Return whether an arm can have this name."""
    return isinstance(arm, str) and 0 < len(arm) <= 200 and arm.isprintable()


def bad_name(arm: Any) -> checks.ArgumentError:
    """Return the error of an arm's name."""
    return checks.ArgumentError(
        "arms", f"must have names of 1 to 200 printable characters, got {checks.short(arm)}"
    )
