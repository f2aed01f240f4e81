"""Models whose features have names: what is declared over HTTP, how large they may become, what tries them out."""

from collections.abc import Mapping, Sequence
from typing import Any

from solid_bandits._internal import checks
from solid_bandits._internal.checks import short
from solid_bandits.features.design import MOST_GROWN
from solid_bandits.features.spec import Features
from solid_bandits.features.values import BOOLEAN, CATEGORY, DATE, HOUR, NUMBER, TAGS, WEEKDAY

MOST_NAMED = 1_000
"""Arms of a model that have coefficients of their own."""
MOST_NUMBERS = 10_000_000
"""Of the triangles of a model once all categories have come, for which there is memory twice."""
TRIED: Mapping[str | None, Sequence[Any]] = {
    NUMBER: (1.0, 3.0, 2.0),
    BOOLEAN: (True, False, True),
    CATEGORY: ("a", "b", "a"),
    TAGS: (["a"], ["a", "b"], []),
    DATE: ("2026-03-01", "2026-03-02", "2026-03-05"),
    WEEKDAY: ("2026-03-01", "2026-03-02", "2026-03-05"),
    HOUR: ("2026-03-01T01:00", "2026-03-01T02:00", "2026-03-01T03:00"),
    None: (1.0, 3.0, 2.0),
}
"""Values by type, of three decisions: they add columns, and the coordinates are renewed."""


def kinds_of(given: Any) -> Any:
    """A list of names as a table of names and types; others are left to whoever checks them."""
    if not isinstance(given, list):
        return given
    for name in given:
        if not isinstance(name, str):
            raise ValueError(f"must be names, or a table of names and types, got {short(name)}")
    if len(set(given)) < len(given):
        raise ValueError(f"must name each feature once, got {short(given)}")
    return dict.fromkeys(given)


def check_size(features: Features, arms: int) -> None:
    """Raise an error where a model with so many arms, removed ones included, could become too large."""
    if arms > MOST_NAMED:
        raise ValueError(
            f"arms must be at most {MOST_NAMED:,}, those that were removed included, got {arms:,}"
        )
    least, most = _width(features, arms, 0), _width(features, arms, features.categories)
    width = max(least, min(most, MOST_GROWN))
    numbers = width**2 * (max(arms, 1) if features.blocked else 1)
    if numbers > MOST_NUMBERS:
        shape = f"{arms} arms of {width} features each" if features.blocked else f"{width} features"
        raise ValueError(
            f"context, arms and arm_features must make a model of at most {MOST_NUMBERS:,} numbers once all categories "
            f"have come, got {numbers:,} ({shape}); declare types, or lower categories ({features.categories})"
        )


def _width(features: Features, arms: int, categories: int) -> int:
    """How many features there are with so many categories of each name, of each arm where arms share nothing."""
    context, own = (
        {name: _columns(kind, categories) for name, kind in side.items()}
        for side in (features.context, features.arm_features)
    )
    both = context | own
    products = sum(both[one] * both[other] for one, other in features.interactions)
    many = 1 if features.blocked else max(arms, 1)
    return (1 + sum(context.values())) * many + sum(own.values()) + products


def _columns(kind: str | None, categories: int) -> int:
    if kind in (NUMBER, BOOLEAN, DATE):
        return 2
    return 1 + {WEEKDAY: min(categories, 7), HOUR: min(categories, 24)}.get(kind or "", categories + 1)


def trials(features: Features) -> list[tuple[dict[str, Any], Any]]:
    """Contexts and arms of some decisions that try out a model."""
    arms = list(features.arms or ("a", "b"))[:2]
    found: list[tuple[dict[str, Any], Any]] = []
    for place in range(3):
        context = {name: TRIED[kind][place] for name, kind in features.context.items()}
        own = {name: TRIED[kind][place] for name, kind in features.arm_features.items()}
        found.append((context, dict.fromkeys(arms, own) if own else None))
    return found


def declared(
    context: Mapping[str, str | None] | None,
    arms: Sequence[str] | None,
    arm_features: Mapping[str, str | None] | None,
    interactions: Any,
    categories: int,
) -> Features | None:
    """The features that a model's settings declare, checked; None where there are none."""
    if context is None and arms is None and arm_features is None:
        if interactions is not None:
            raise checks.ArgumentError("interactions", "must be left out where features have no names")
        return None
    return Features(context or {}, arms, arm_features or {}, interactions, categories)
