"""Outcome of an experiment: its results part by part, and the verdicts on the paper's claims about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, NamedTuple

from solid_bandits.simulation.results import Results
from solid_bandits.statistics.estimate import Estimate

OURS = "ours"
"""Source of a claim that is not the paper's."""


@dataclass(frozen=True)
class Claim:
    """A sentence that results can confirm or refute.

    Args:
        text: the sentence, in the source's words as far as they can be checked.
        source: where the sentence stands, such as "Section 6, toy"; "ours" if it is not the paper's.
        rule: the rule it is judged by, a key of `rules.RULES`.
        metric: the metric that is compared, a key of `statistics.metrics.METRICS`.
        policies: the policies that the sentence is about.
        against: the policies that they are compared with.
        beside: further policies, compared in the same way and shown, but not part of the verdict.
        parts: labels of the parts it is about, in order; empty for all of them.
        at: the point of the run at which the metric is read, as a share of the horizon.
        margin: relative difference that counts as none, or the rule's limit: see `rules.RULES`.
        arm: (context, arm), counted from 0, for the rule "allocation" or a metric of one arm.
        least_horizon: number of steps that a part needs for the sentence to be judged on it; with fewer it is
            undecided.

    """

    __pydantic_config__: ClassVar = {"strict": True, "extra": "forbid"}
    """How a field is read from a TOML file."""

    text: str
    source: str
    rule: str
    metric: str = "regret"
    policies: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    at: float = 1.0
    margin: float = 0.2
    arm: tuple[int, int] | None = None
    least_horizon: int = 0


class Answer(StrEnum):
    """The answer of results to a claim, or to one comparison in it."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NOT_TESTABLE = "not testable"
    """The compared number is the same in every run, so it is evidence of nothing."""


@dataclass(frozen=True)
class Comparison:
    """One number that a verdict rests on.

    Args:
        what: a description of the number, such as "regret of LinUCB - regret of SOLID, ρ(x₁) = 0.5".
        estimate: the number and its interval; its value is None where the results do not contain it.
        answer: the answer that this number alone gives.
        counted: whether it is part of the verdict, or only shown beside it.

    """

    what: str
    estimate: Estimate
    answer: Answer
    counted: bool = True


@dataclass(frozen=True)
class Verdict:
    """A claim, the answer of the results to it, and the numbers behind it."""

    claim: Claim
    answer: Answer
    rule: str
    """The rule in words, margins and levels included."""
    comparisons: tuple[Comparison, ...]
    reading: str = ""
    """The reading of SOLID that the verdict is for; empty if the claim's policies do not have several."""
    too_short: bool = False
    """Whether a part has fewer steps than the claim requires. The answer is then undecided, whatever the numbers."""

    @property
    def words(self) -> str:
        """The answer, marked if the horizon is too short."""
        return f"{self.answer} at this horizon" if self.too_short else str(self.answer)

    @property
    def counted(self) -> list[Comparison]:
        """The comparisons that are part of the verdict."""
        return [comparison for comparison in self.comparisons if comparison.counted]

    @property
    def deciding(self) -> list[Comparison]:
        """The comparisons that determined the verdict."""
        return [one for one in self.counted if one.answer == self.answer] or self.counted


class UnderReading(NamedTuple):
    """A policy under one of its readings."""

    label: str
    """The label of the policy in the experiment."""
    reading: str


class Sentence(NamedTuple):
    """A claim with its verdicts, reading -> verdict; the reading is empty where there is only one verdict."""

    claim: Claim
    verdicts: dict[str, Verdict]

    def under(self, reading: str) -> Verdict | None:
        """Return the verdict under a reading; if the claim does not depend on readings, its only verdict."""
        return self.verdicts.get(reading, self.verdicts.get(""))


@dataclass(frozen=True)
class Outcome:
    """An experiment after it was played.

    Args:
        name: for instance "toy".
        title: heading.
        about: a sentence or two on what is played and where the paper discusses it.
        scale: "quick" or "paper", or "own" for a user's experiment.
        parts: label -> results, in order. In each, `manifest["configuration"]` holds the arguments (horizon, runs,
            seed, policies), `manifest["seconds"]` CPU seconds per policy, and `manifest["lower_bound"]` v*:
            {"value", "lower", "upper"} (means over runs where each run has its own problem; a single problem also
            has "allocation", contexts x arms), or {"reason"} where there is none.
        verdicts: one per claim, or one per claim and reading where its policies have several readings.
        readings: readings of SOLID that were played, if several were asked for.
        reading: the one of them whose labels are plain: the reading of figures, and of tables that name no other.
        played: labels of policies under readings, with the policy and reading of each; other policies have none.

    """

    name: str
    title: str
    about: str
    scale: str
    parts: dict[str, Results]
    verdicts: tuple[Verdict, ...]
    readings: tuple[str, ...] = ()
    reading: str = ""
    played: Mapping[str, UnderReading] = field(default_factory=dict)

    @property
    def sentences(self) -> list[Sentence]:
        """The claims, each with its verdicts."""
        found: list[Sentence] = []
        for verdict in self.verdicts:
            last = found[-1] if found else None
            if last is None or last.claim != verdict.claim or verdict.reading in last.verdicts:
                last = Sentence(verdict.claim, {})
                found.append(last)
            last.verdicts[verdict.reading] = verdict
        return found

    @property
    def usual(self) -> list[Verdict]:
        """One verdict per claim: the one under `reading` where there are several."""
        found = (sentence.under(self.reading) for sentence in self.sentences)
        return [verdict for verdict in found if verdict is not None]

    @property
    def policies(self) -> list[str]:
        """The labels of all policies of all parts, in the order of their first appearance."""
        return list(dict.fromkeys(label for results in self.parts.values() for label in results.policies))

    @property
    def reference(self) -> str:
        """The policy that others are compared with: the first one given."""
        return self.policies[0]
