"""What an experiment gave: its results part by part, and the verdicts on the paper's claims about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, NamedTuple

from solid_bandits.simulation.results import Results
from solid_bandits.statistics.estimate import Estimate

OURS = "ours"
"""The source of a claim that is not the paper's."""


@dataclass(frozen=True)
class Claim:
    """A sentence that results can confirm or refute.

    Args:
        text: the sentence, in the source's words as far as they can be checked.
        source: where it stands, such as "Section 6, toy"; "ours" where it is not the paper's.
        rule: how it is judged, a key of `rules.RULES`.
        metric: what is compared, a key of `statistics.metrics.METRICS`.
        policies: the policies that the sentence is about.
        against: those that it sets them against.
        beside: further policies, compared in the same way and shown, but not part of the verdict.
        parts: labels of the parts it speaks of, in order; all of them if empty.
        at: where in the run the metric is read, as a share of the horizon.
        margin: what counts as the same, as a share of what is compared with, or the rule's limit: see `rules.RULES`.
        arm: (context, arm), counted from 0, that the rule "allocation" or the metric speaks of.
        least_horizon: steps that a part needs before the sentence can be judged on it; with fewer it is undecided.

    """

    __pydantic_config__: ClassVar = {"strict": True, "extra": "forbid"}
    """How one is read from a TOML file."""

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
    """What results say to a claim, or to one comparison in it."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NOT_TESTABLE = "not testable"
    """What is compared is the same in every run: evidence of nothing."""


@dataclass(frozen=True)
class Comparison:
    """One number that a verdict rests on.

    Args:
        what: the number in words, such as "regret of LinUCB - regret of SOLID, ρ(x₁) = 0.5".
        estimate: the number and its interval; its value is None where the results do not hold it.
        answer: what this number alone says.
        counted: whether it is part of the verdict, or only shown beside it.

    """

    what: str
    estimate: Estimate
    answer: Answer
    counted: bool = True


@dataclass(frozen=True)
class Verdict:
    """A claim, what the results say to it, and the numbers."""

    claim: Claim
    answer: Answer
    rule: str
    """The rule in words, margins and levels included."""
    comparisons: tuple[Comparison, ...]
    reading: str = ""
    """The reading of SOLID under which it holds; empty where the claim is not on a policy with several."""
    too_short: bool = False
    """Whether a part has fewer steps than the claim asks for. The answer is then undecided, whatever the numbers."""

    @property
    def words(self) -> str:
        """The answer, and whether it is the horizon's fault."""
        return f"{self.answer} at this horizon" if self.too_short else str(self.answer)

    @property
    def counted(self) -> list[Comparison]:
        """The comparisons that are part of the verdict."""
        return [comparison for comparison in self.comparisons if comparison.counted]

    @property
    def deciding(self) -> list[Comparison]:
        """The comparisons that made the verdict what it is."""
        return [one for one in self.counted if one.answer == self.answer] or self.counted


class UnderReading(NamedTuple):
    """A policy under one of its readings."""

    label: str
    """What the experiment calls it."""
    reading: str


class Sentence(NamedTuple):
    """A claim with its verdicts, reading -> verdict; the reading is empty where there is but one verdict."""

    claim: Claim
    verdicts: dict[str, Verdict]

    def under(self, reading: str) -> Verdict | None:
        """Return the verdict under a reading; that of all readings where the claim does not depend on them."""
        return self.verdicts.get(reading, self.verdicts.get(""))


@dataclass(frozen=True)
class Outcome:
    """An experiment after it was played.

    Args:
        name: such as "toy".
        title: a heading.
        about: a sentence or two on what is played and where it stands in the paper.
        scale: "quick" or "paper", or "own" for a user's experiment.
        parts: label -> results, in order. Of each, `manifest["configuration"]` is what was asked (horizon, runs,
            seed, policies), `manifest["seconds"]` CPU seconds per policy, and `manifest["lower_bound"]` v*:
            {"value", "lower", "upper"} (means over runs where each run has its own problem; a single problem also
            has "allocation", contexts x arms), or {"reason"} where there is none.
        verdicts: one per claim; one per claim and reading where it is on a policy with several readings.
        readings: those of SOLID that were played, if several were asked for.
        reading: the one of them under which labels are plain: that of figures, and of tables where no other is named.
        played: the labels of policies under readings, and what they are; the others have none.

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
        """One verdict per claim: that under `reading` where there are several."""
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
