"""What the endpoints take and answer, as JSON."""

import math
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)

from solid_bandits._internal import checks
from solid_bandits._internal.types import Plain
from solid_bandits.core.setting import LARGEST_FEATURE, LARGEST_REWARD
from solid_bandits.features.spec import LARGEST_LIMIT, Features
from solid_bandits.service.named import check_size, declared, kinds_of

MOST_DIM = 1_000
MOST_ARMS = 1_000
MOST_NUMBERS = 100_000
"""Features of an offer, of all arms together: they are kept in memory while it waits for its reward."""
MOST_AT_ONCE = 1_000
LONGEST_ID = 200
LARGEST = 1e12
"""Largest size of other numbers."""


def _printable(value: str) -> str:
    """Return a text that any store and any log can keep."""
    if not value.isprintable():
        raise ValueError(f"must be printable, got {checks.short(value)}")
    return value


NAME_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,63}$"
NAME = "1 to 64 small letters, digits, - and _, the first a letter or digit"
Name = Annotated[str, Field(pattern=NAME_PATTERN, description="Of a model.")]
Number = Annotated[float, Field(ge=-LARGEST_FEATURE, le=LARGEST_FEATURE, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=LARGEST, allow_inf_nan=False)]
Reward = Annotated[float, Field(ge=-LARGEST_REWARD, le=LARGEST_REWARD, allow_inf_nan=False)]
Printable = Annotated[str, Field(min_length=1, max_length=LONGEST_ID), AfterValidator(_printable)]
EventId = Annotated[
    Printable, Field(description="Of a decision: printable characters, chosen by the caller.")
]
Subject = Annotated[
    Printable, Field(description="Whom a decision is about, for deletion: printable characters.")
]
ArmName = Annotated[str, Field(min_length=1, max_length=LONGEST_ID)] | Annotated[int, Field(strict=True)]

Values = Annotated[
    dict[str, Any],
    Field(max_length=MOST_DIM),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {"type": ["number", "boolean", "string", "array", "null"]},
            "description": "Values by names: numbers, true and false, text, dates in ISO form, lists of texts, null.",
        }
    ),
]
Kind = Literal["number", "boolean", "category", "tags", "date", "weekday", "hour"]
Kinds = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=LONGEST_ID)], Kind | None],
    Field(max_length=MOST_DIM),
    BeforeValidator(kinds_of),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": {"type": "string"}},
                {"type": "object", "additionalProperties": {"enum": [*get_args(Kind), None]}},
            ]
        }
    ),
]


def _example(content: Plain) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [content]})


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ModelSpec(_Asked):
    """A model: one of the policies that decide from features, and what it is told.

    Features have names: those of the `context`, and those of the `arms` or of what each arm brings (`arm_features`). Or
    decisions bring a matrix with `dim` columns.
    """

    model_config = _example(
        {
            "name": "news",
            "context": {"age": "number", "device": None},
            "arms": ["climate", "football", "science"],
            "floor": 0.05,
            "default_reward": 0,
            "wait": 600,
        }
    )

    name: Name
    policy: Annotated[
        str, Field(max_length=64, description="By name, as `solid-bandits policies` lists them.")
    ] = "randucb"
    parameters: Annotated[
        dict[str, bool | int | float | str | None], Field(description="Of the policy.")
    ] = {}
    dim: Annotated[
        int | None,
        Field(
            ge=1, le=MOST_DIM, description="Features of an arm, where decisions bring matrices; else null."
        ),
    ] = None
    context: Annotated[
        Kinds | None,
        Field(
            description="Names of what is known about a decision, or names and types; null is the first value's."
        ),
    ] = None
    arms: Annotated[
        list[Printable] | None,
        Field(min_length=1, max_length=MOST_ARMS, description="To begin with; each learns for itself."),
    ] = None
    arm_features: Annotated[
        Kinds | None, Field(description="Names of what each arm of a decision brings, or names and types.")
    ] = None
    interactions: Annotated[
        Literal["all"] | list[Annotated[list[str], Field(min_length=2, max_length=2)]] | None,
        Field(max_length=MOST_DIM, description="Pairs of names whose products are features, too."),
    ] = None
    categories: Annotated[
        int,
        Field(ge=1, le=LARGEST_LIMIT, description="Of a name, that have a column each; others share one."),
    ] = 100
    noise_std: Annotated[Positive | None, Field(description="Of the rewards; null is unknown.")] = None
    theta_bound: Annotated[
        Positive | None, Field(description="On the norm of theta; some policies need it.")
    ] = None
    floor: Annotated[
        float,
        Field(ge=0, le=1, allow_inf_nan=False, description="Share of decisions that are drawn uniformly."),
    ] = 0.05
    half_life: Annotated[
        Positive | None, Field(description="Decisions in which evidence loses half its weight.")
    ] = None
    default_reward: Annotated[
        Reward | None,
        Field(description="What a decision earns whose reward did not come within `wait`."),
    ] = None
    wait: Annotated[
        Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] | None,
        Field(description="Seconds after which a decision expires; null is never."),
    ] = None
    window: Annotated[
        int, Field(ge=1, le=10_000_000, description="Decisions after which one that is still open expires.")
    ] = 100_000
    seed: Annotated[
        int | None, Field(ge=0, le=2**53, description="Of all random numbers; null draws one.")
    ] = None

    @property
    def features(self) -> Features | None:
        """What is declared of named features; None where decisions bring matrices."""
        return declared(self.context, self.arms, self.arm_features, self.interactions, self.categories)

    @model_validator(mode="after")
    def _of_names_or_numbers(self) -> "ModelSpec":
        features = self.features
        if self.dim is None and features is None:
            raise ValueError("dim must be given, or context and arms: names of features")
        if self.dim is not None and features is not None:
            raise ValueError("dim must be left out where features have names")
        if features is not None:
            check_size(features, len(features.arms or ()))
        return self

    @model_validator(mode="after")
    def _with_a_wait(self) -> "ModelSpec":
        if self.default_reward is not None and self.wait is None:
            raise ValueError("wait must be given with default_reward")
        return self


class ModelFacts(ModelSpec):
    """A model and where it stands."""

    created: Annotated[float, Field(description="Seconds since 1970.")]


class Models(BaseModel):
    """All models."""

    models: list[ModelFacts]


class ArmsChanged(_Asked):
    """An arm to be added, or removed."""

    model_config = _example({"add": "travel", "like": "science"})

    add: Printable | None = None
    like: Annotated[
        Printable | None, Field(description="What the new arm knows; null starts from the prior.")
    ] = None
    remove: Printable | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> "ArmsChanged":
        if (self.add is None) == (self.remove is None):
            raise ValueError("one of add and remove must be given")
        if self.remove is not None and self.like is not None:
            raise ValueError("like must be left out with remove")
        return self


class ArmsNow(BaseModel):
    """The arms that are there."""

    arms: list[str]
    changed: Annotated[bool, Field(description="Whether this call has changed them.")]


class DecisionAsked(_Asked):
    """An offer: what is known by names, and the arms; or the features of its arms, one row each."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "event_id": "visit-1",
                    "context": {"age": 34, "device": "ios"},
                    "arms": ["climate", "science"],
                },
                {"event_id": "visit-2", "features": [[1, 0, 0.5], [0, 1, 0.2]], "arms": ["red", "blue"]},
            ]
        },
    )

    features: Annotated[
        list[Annotated[list[Number], Field(max_length=MOST_DIM, fail_fast=True)]] | None,
        Field(
            min_length=1,
            max_length=MOST_ARMS,
            fail_fast=True,
            description=f"Where features have no names. At most {MOST_NUMBERS:,} numbers in all.",
        ),
    ] = None
    context: Annotated[
        Values | None, Field(description="Values by names; a name that is left out is missing.")
    ] = None
    arms: Annotated[
        Annotated[
            Annotated[list[ArmName], Field(fail_fast=True), Tag("[names]")]
            | Annotated[dict[Printable, Values], Tag("{values}")],
            Discriminator(lambda value: "{values}" if isinstance(value, dict) else "[names]"),
        ]
        | None,
        Field(
            max_length=MOST_ARMS,
            description="Names of those on offer; null is all, or 0, 1, ... for the rows of a matrix. With "
            "`arm_features`, a table of their own values by name.",
        ),
    ] = None
    available: Annotated[
        Annotated[list[Annotated[bool, Field(strict=True)]], Field(fail_fast=True)] | None,
        Field(max_length=MOST_ARMS, description="Which of them may be chosen; null is all."),
    ] = None
    event_id: Annotated[EventId | None, Field(description="Null makes one, which no retry can repeat.")] = (
        None
    )
    subject: Subject | None = None

    @model_validator(mode="after")
    def _not_too_many(self) -> "DecisionAsked":
        count = sum(map(len, () if self.features is None else self.features))  # an array, of large bodies
        if count > MOST_NUMBERS:
            raise ValueError(f"features must be at most {MOST_NUMBERS:,} numbers in all, got {count:,}")
        if self.features is not None and isinstance(self.arms, dict):
            raise ValueError("arms must be a list of names beside features")
        return self


class DecisionsAsked(_Asked):
    """Many offers, decided in this order; all of them are checked before the first is decided."""

    decisions: Annotated[list[DecisionAsked], Field(min_length=1, max_length=MOST_AT_ONCE, fail_fast=True)]


class DecisionMade(BaseModel):
    """What was decided."""

    event_id: str
    arm: str | int
    probability: float
    arms: Annotated[list[str | int], Field(description="Those that could be chosen.")]
    probabilities: list[float]
    explored: bool
    again: Annotated[bool, Field(description="Whether the id was known: this is what was decided then.")]
    time: Annotated[float, Field(description="Seconds since 1970.")]
    version: Annotated[str, Field(description="Of code, policy and what it had learnt.")]


class DecisionsMade(BaseModel):
    """What was decided, in the order in which it was asked."""

    decisions: list[DecisionMade]


class RewardGiven(_Asked):
    """The reward of a decision."""

    model_config = _example({"event_id": "visit-1", "reward": 1.0})

    event_id: EventId
    reward: Reward


class RewardsGiven(_Asked):
    """Many rewards, learnt in this order; each has its own receipt."""

    rewards: Annotated[list[RewardGiven], Field(min_length=1, max_length=MOST_AT_ONCE, fail_fast=True)]


class RewardReceipt(BaseModel):
    """What became of a reward.

    `learned` now; `again`, as this reward had been learnt; `conflict`, as another reward had been; `late`, as the
    decision had expired; `unknown`, as there is no decision of this id. One reward alone: 200 for the first two, 409
    for the next two, 404 for the last. Of many each has its own status and the answer is 200.
    """

    event_id: str
    status: Literal["learned", "again", "conflict", "late", "unknown"]
    counted: Annotated[bool, Field(description="Whether the state changed.")]
    reward: Annotated[float | None, Field(description="What counts for this id.")]
    message: str


class RewardReceipts(BaseModel):
    """What became of them, in the order in which they were given."""

    rewards: list[RewardReceipt]


class DeletionAsked(_Asked):
    """Which events to erase: some ids, all about someone, or all before a time. What was learnt from them stays."""

    model_config = _example({"subject": "customer-17"})

    event_ids: Annotated[
        Annotated[list[EventId], Field(fail_fast=True)] | None, Field(min_length=1, max_length=10_000)
    ] = None
    subject: Subject | None = None
    before: Annotated[
        float | None, Field(ge=0, le=1e11, allow_inf_nan=False, description="Seconds since 1970.")
    ] = None

    @model_validator(mode="after")
    def _one_of_them(self) -> "DeletionAsked":
        if sum(one is not None for one in (self.event_ids, self.subject, self.before)) != 1:
            raise ValueError("one of event_ids, subject and before must be given")
        return self


class Deleted(BaseModel):
    """How many decisions were erased, with their rewards."""

    decisions: int
    still_in_files: Annotated[
        str | None,
        Field(description="Why files may have them for a while; it is tried again. Else it is not there."),
    ] = None


class Estimate(BaseModel):
    """A value by one estimator; without an interval where none is known to hold."""

    estimator: str
    value: float | None
    low: float | None
    high: float | None
    interval: str | None
    note: str | None


class PolicyValue(BaseModel):
    """What a policy would have earned per decision."""

    policy: str
    estimates: list[Estimate]
    cautions: list[str]


class EvaluationAnswer(BaseModel):
    """Off-policy estimates from the newest rows of the log."""

    rows: Annotated[int, Field(description="Decisions that they are made from.")]
    earned: Annotated[float | None, Field(description="Mean reward of those with one, as they were played.")]
    policies: list[PolicyValue]


class Health(BaseModel):
    """That the service decides and learns, and how it is."""

    status: Literal["ok"]
    version: str
    leading: Annotated[int, Field(description="Models that this node leads.")]
    following: Annotated[int, Field(description="Models that others lead.")]
    failed: Annotated[int, Field(description="Models that cannot be used now.")]
    commit_age: Annotated[float, Field(description="Seconds since something was last committed.")]


class Failed(BaseModel):
    """Why not, in one sentence."""

    error: str


def _kind(value: Any, many: str) -> str:
    found = many in value if isinstance(value, dict) else hasattr(value, many)
    return "many" if found else "one"


DecisionBody = Annotated[
    Annotated[DecisionAsked, Tag("one")] | Annotated[DecisionsAsked, Tag("many")],
    Discriminator(lambda value: _kind(value, "decisions")),
]
RewardBody = Annotated[
    Annotated[RewardGiven, Tag("one")] | Annotated[RewardsGiven, Tag("many")],
    Discriminator(lambda value: _kind(value, "rewards")),
]


def plain_number(value: float | None) -> float | None:
    """Return a number for JSON."""
    return None if value is None or not math.isfinite(value) else float(value)
