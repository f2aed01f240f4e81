"""Declaration of named features: plain data, from which everything else follows with the rows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from solid_bandits._internal import checks
from solid_bandits._internal.checks import short
from solid_bandits._internal.types import Plain
from solid_bandits.features.values import TYPES

ALL = "all"
LARGEST_LIMIT = 1_000
"""Default number of categories with their own column."""


class Features:
    """Names of what is known about a decision, and how they become features.

    Context is shared by all arms, such as the visitor; arms' features belong to each arm, such as a price. With `arms`
    alone, each arm has its own coefficients for the context, and arms share nothing. With `arm_features`, their
    coefficients are the same for all arms. With both, the effect of the context is each arm's own.

    Numbers are standardised by the values so far, categories have a column each, a missing value (None, or an absent
    name) is a value of its own. A name without a type takes the type of its first value that is not missing.

    Args:
        context: names, or a table of names and types: `number`, `boolean`, `category`, `tags`, `date`, `weekday`,
            `hour`.
        arms: names of the initial arms; None if arms come with each decision and their features.
        arm_features: names of the arms' own features, or a table with their types.
        interactions: pairs of names whose products are features, too; `all` is each name of the context with each of
            the
            arms' own features, which is also the meaning of None if the context could otherwise not matter.
        categories: number of values of a name that have a column each; later values share one.

    Example:
        >>> import solid_bandits as sb
        >>> features = sb.Features(context={"age": "number", "device": None}, arms=["climate", "science"])
        >>> features.context
        {'age': 'number', 'device': None}
    """

    def __init__(
        self,
        context: Mapping[str, str | None] | Sequence[str] = (),
        arms: Sequence[str] | None = None,
        arm_features: Mapping[str, str | None] | Sequence[str] = (),
        interactions: str | Sequence[tuple[str, str]] | None = None,
        categories: int = 100,
    ) -> None:
        self.context = _names("context", context)
        self.arm_features = _names("arm_features", arm_features)
        self.categories = checks.integer("categories", categories, least=1, most=LARGEST_LIMIT)
        self.arms = None if arms is None else _arms(arms)
        if self.arms is None and not self.arm_features:
            raise checks.ArgumentError("arms", "or arm_features must be given, got neither")
        both = set(self.context) & set(self.arm_features)
        if both:
            raise checks.ArgumentError(
                "arm_features", f"must have other names than context, got {sorted(both)[0]!r} in both"
            )
        self.interactions = self._interactions(interactions)
        self._pairs = [(self._side(one), self._side(other)) for one, other in self.interactions]

    def _interactions(self, given: Any) -> tuple[tuple[str, str], ...]:
        if given is None:
            given = ALL if self.arms is None else ()
        if isinstance(given, str):
            checks.choice("interactions", given, (ALL,))
            return tuple((one, other) for one in self.context for other in self.arm_features)
        if not isinstance(given, Iterable):
            raise checks.ArgumentError("interactions", f"must be pairs of names, got {short(given)}")
        found: list[tuple[str, str]] = []
        for pair in given:
            if (
                isinstance(pair, str)
                or not isinstance(pair, Sequence)
                or len(pair) != 2
                or pair[0] == pair[1]
            ):
                raise checks.ArgumentError("interactions", f"must be pairs of two names, got {short(pair)}")
            for name in pair:
                checks.choice("interactions", name, [*self.context, *self.arm_features])
            if (pair[0], pair[1]) in found or (pair[1], pair[0]) in found:
                raise checks.ArgumentError(
                    "interactions", f"must have each pair once, got {short(pair)} again"
                )
            found.append((pair[0], pair[1]))
        return tuple(found)

    def _side(self, name: str) -> tuple[int, str]:
        return (0, name) if name in self.context else (1, name)

    def pairs(self) -> list[tuple[tuple[int, str], tuple[int, str]]]:
        """Return the interactions as two (side, name) pairs: side 0 is the context, 1 the arms' own features."""
        return self._pairs

    @property
    def blocked(self) -> bool:
        """Whether arms share nothing, so that each has its own regression."""
        return not self.arm_features

    def to_plain(self) -> Plain:
        """Return everything as plain data.

        Example:
            >>> import solid_bandits as sb
            >>> features = sb.Features(context=["age"], arms=["tea", "milk"])
            >>> sb.Features.from_plain(features.to_plain()) == features
            True
        """
        return {
            "context": [list(one) for one in self.context.items()],
            "arms": None if self.arms is None else list(self.arms),
            "arm_features": [list(one) for one in self.arm_features.items()],
            "interactions": [list(pair) for pair in self.interactions],
            "categories": self.categories,
        }

    @classmethod
    def from_plain(cls, plain: Plain) -> "Features":
        """Return the features that `to_plain` described."""
        return cls(
            dict(plain["context"]),
            plain["arms"],
            dict(plain["arm_features"]),
            [tuple(pair) for pair in plain["interactions"]],
            plain["categories"],
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Features) and self.to_plain() == other.to_plain()

    def __hash__(self) -> int:
        return hash(repr(self.to_plain()))

    def __repr__(self) -> str:
        shown = [f"context={_shown(self.context)}"] if self.context else []
        shown += [f"arms={list(self.arms)}"] if self.arms is not None else []
        shown += [f"arm_features={_shown(self.arm_features)}"] if self.arm_features else []
        shown += [f"interactions={list(self.interactions)}"] if self.interactions else []
        return f"Features({', '.join(shown)})"


def _shown(kinds: Mapping[str, str | None]) -> Any:
    return dict(kinds) if any(kinds.values()) else list(kinds)


def _names(what: str, given: Any) -> dict[str, str | None]:
    if isinstance(given, str):
        given = (given,)
    if isinstance(given, Mapping):
        found = dict(given)
    elif isinstance(given, Sequence):
        found = dict.fromkeys(given)
        if len(found) < len(given):
            raise checks.ArgumentError(what, f"must name each feature once, got {short(given)}")
    else:
        raise checks.ArgumentError(what, f"must be names, or a table of names and types, got {short(given)}")
    for name, kind in found.items():
        if not isinstance(name, str) or not 0 < len(name) <= 200 or not name.isprintable():
            raise checks.ArgumentError(what, f"must have names that are text, got {short(name)}")
        if kind is not None:
            checks.choice(f"type of {name!r} in {what}", kind, TYPES)
    return found


def _arms(given: Any) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise checks.ArgumentError("arms", f"must be a list of names, got {short(given)}")
    for arm in given:
        if not isinstance(arm, str) or not 0 < len(arm) <= 200 or not arm.isprintable():
            raise checks.ArgumentError(
                "arms", f"must be names of 1 to 200 printable characters, got {short(arm)}"
            )
    if len(set(given)) < len(given):
        raise checks.ArgumentError("arms", f"must be different from each other, got {short(given)}")
    return tuple(given)
