"""Calls in the shape of Azure Personalizer's Rank and Reward: its clients need another endpoint and key, no more."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from solid_bandits._internal.checks import ArgumentError
from solid_bandits.features.nested import merged
from solid_bandits.service.errors import invalid
from solid_bandits.service.schemas import (
    LONGEST_ID,
    MOST_ARMS,
    DecisionAsked,
    DecisionMade,
    EventId,
    Printable,
    Reward,
)

Objects = Annotated[
    list[dict[str, Any]],
    Field(max_length=1_000, fail_fast=True, description="Nested ones are named with dots, `user.age`."),
    WithJsonSchema({"type": "array", "items": {"type": "object"}}),
]


class RankedAsked(BaseModel):
    """An action that may be chosen."""

    model_config = ConfigDict(extra="ignore")  # as Personalizer did

    id: Printable
    features: Objects | None = None


class RankAsked(BaseModel):
    """A Rank call."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [
                {
                    "contextFeatures": [{"timeOfDay": "morning"}],
                    "actions": [
                        {"id": "pasta", "features": [{"taste": "salty"}]},
                        {"id": "cake", "features": [{"taste": "sweet"}]},
                    ],
                    "excludedActions": [],
                    "eventId": "visit-1",
                    "deferActivation": False,
                }
            ]
        },
    )

    contextFeatures: Objects | None = None  # noqa: N815 (its name)
    actions: Annotated[list[RankedAsked], Field(min_length=1, max_length=MOST_ARMS, fail_fast=True)]
    excludedActions: Annotated[  # noqa: N815
        list[Annotated[str, Field(max_length=LONGEST_ID)]] | None,
        Field(max_length=MOST_ARMS, description="Ids that are not to be chosen."),
    ] = None
    eventId: EventId | None = None  # noqa: N815
    deferActivation: Annotated[  # noqa: N815
        bool | None, Field(description="Must be false: what was decided counts at once.")
    ] = None


class Ranked(BaseModel):
    """An action and the probability with which it was to be chosen."""

    id: str
    probability: float


class RankMade(BaseModel):
    """The chosen action first, then the others by their probabilities; excluded ones, with 0, last."""

    ranking: list[Ranked]
    eventId: str  # noqa: N815
    rewardActionId: str  # noqa: N815


class RewardValue(BaseModel):
    """The reward of an event."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [{"value": 1.0}]})

    value: Reward


def as_offer(asked: RankAsked, own: bool) -> DecisionAsked:
    """A Rank call as an offer of named values, among arms with features of their own or among names alone."""
    if asked.deferActivation:
        raise invalid("deferActivation must be false: what was decided counts at once, got true")
    excluded = set(asked.excludedActions or ())
    ids = [one.id for one in asked.actions]
    if len(set(ids)) < len(ids):
        raise invalid("actions must have ids that differ")
    if excluded.issuperset(ids):
        raise invalid("excludedActions must leave an action")
    offered = [(place, one) for place, one in enumerate(asked.actions) if one.id not in excluded]
    values = {one.id: _values(f"actions[{place}].features", one.features) for place, one in offered}
    arms: Any = values
    if not own:
        told = next((name for name, row in values.items() if row), None)
        if told is not None:
            raise invalid(
                f"actions must have no features, as the model has none of its arms, got some of {told!r}; make it with "
                "arm_features"
            )
        arms = list(values)
    return DecisionAsked.model_construct(
        features=None,
        context=_values("contextFeatures", asked.contextFeatures),
        arms=arms,
        available=None,
        event_id=asked.eventId,
        subject=None,
    )


def _values(where: str, objects: Sequence[dict[str, Any]] | None) -> dict[str, Any]:
    try:
        return merged(objects or ())
    except ArgumentError as error:
        raise invalid(f"{where}: {error}") from None


def as_ranking(asked: RankAsked, made: DecisionMade) -> RankMade:
    """What was decided, as Personalizer answered."""
    chances = dict(zip(map(str, made.arms), made.probabilities, strict=True))
    chosen = str(made.arm)
    ids = sorted([one.id for one in asked.actions], key=lambda one: (one != chosen, -chances.get(one, -1.0)))
    ranking = [Ranked.model_construct(id=one, probability=chances.get(one, 0.0)) for one in ids]
    return RankMade.model_construct(ranking=ranking, eventId=made.event_id, rewardActionId=chosen)
