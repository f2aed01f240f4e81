"""What an experiment gave: its results part by part, and the verdicts on the paper's claims about it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from solid_bandits._types import Plain
from solid_bandits.results import Results
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
        arm: (context, arm) that the rule "allocation" speaks of, counted from 0.

    """

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

    @classmethod
    def from_plain(cls, fields: Plain) -> "Claim":
        """A claim from what a file holds, where tuples are lists."""
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()
        }
        return cls(**values)


class Answer(StrEnum):
    """What results say to a claim, or to one comparison in it."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


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

    @property
    def counted(self) -> list[Comparison]:
        """The comparisons that are part of the verdict."""
        return [comparison for comparison in self.comparisons if comparison.counted]

    @property
    def deciding(self) -> list[Comparison]:
        """The comparisons that made the verdict what it is."""
        return [one for one in self.counted if one.answer == self.answer] or self.counted


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
        verdicts: one per claim.

    """

    name: str
    title: str
    about: str
    scale: str
    parts: dict[str, Results]
    verdicts: tuple[Verdict, ...]

    @property
    def policies(self) -> list[str]:
        """The labels of all policies of all parts, in the order of their first appearance."""
        return list(dict.fromkeys(label for results in self.parts.values() for label in results.policies))

    @property
    def reference(self) -> str:
        """The policy that others are compared with: the first one given."""
        return self.policies[0]
