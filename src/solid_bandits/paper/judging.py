"""Verdicts on claims, computed from results by stated rules, never typed in.

A rule turns a claim into numbers with intervals (`Comparison`). Each confirms the claim, refutes it, leaves it
undecided, or is the same in every run and can say nothing; one function combines them. Nothing is simulated here. A
false verdict must be rare over the whole claim, not for each number: the intervals that count share an error of 5%
(Bonferroni).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from solid_bandits._internal.wording import given
from solid_bandits.paper.claim_check import check_claim
from solid_bandits.paper.outcome import Answer, Claim, Comparison, Verdict
from solid_bandits.paper.rules import RULES
from solid_bandits.paper.rules.rule import Case, Part, Rule
from solid_bandits.simulation.results import Results
from solid_bandits.statistics.metrics import METRICS

ERROR = 0.05
"""Allowed probability of a false verdict on a claim, shared by all its counted comparisons."""


def judge(claim: Claim, parts: Mapping[str, Results]) -> Verdict:
    """Return the verdict of the results on a claim; `parts` maps labels to results."""
    check_claim(claim, {label: results.policies for label, results in parts.items()})
    rule = RULES[claim.rule]
    named = tuple(Part(label, parts[label]) for label in claim.parts or parts)
    scopes: list[tuple[Part, ...]] = [(part,) for part in named]
    if rule.whole or rule.across:
        scopes = [named if rule.whole else (named[0], named[-1])]
    subjects = list(_subjects(claim, rule))
    # Counted before anything is read, so that a number that turns out to be missing does not widen the others' share.
    counted = len(scopes) * sum(counts for _, _, counts in subjects)
    too_short = any(part.results.horizon < claim.least_horizon for part in named)
    comparisons = []
    for scope in scopes:
        for policy, others, counts in subjects:
            level = 1 - ERROR / (counted if counts else 1)
            found = rule.compare(Case(claim, scope, policy, others, level))
            answer = Answer.UNDECIDED if too_short else found.answer
            comparisons.append(replace(found, answer=answer, counted=counts))
    answer, words = together(comparisons), _rule_words(claim, counted)
    return Verdict(claim, answer, words, tuple(comparisons), too_short=too_short)


def together(comparisons: Sequence[Comparison]) -> Answer:
    """Combine the answers that count: refuted if any is, else not testable if any is, confirmed if all are, else
    undecided.
    """
    answers = [comparison.answer for comparison in comparisons if comparison.counted]
    for answer in (Answer.REFUTED, Answer.NOT_TESTABLE):
        if answer in answers:
            return answer
    if answers and all(answer is Answer.CONFIRMED for answer in answers):
        return Answer.CONFIRMED
    return Answer.UNDECIDED


def _subjects(claim: Claim, rule: Rule) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    """Yield (policy, others, counted) for each comparison in a part.

    The policies of `beside` join the others where the rule takes those one at a time, and else the policies.
    """
    if not rule.of_policies:
        yield "", (), True
    for policy in claim.policies:
        if rule.against == 1:
            counted = [claim.against] if rule.whole else [(other,) for other in claim.against]
            yield from ((policy, others, True) for others in counted)
            yield from ((policy, (other,), False) for other in claim.beside)
        else:
            yield policy, claim.against, True
    if rule.against != 1:
        yield from ((policy, claim.against, False) for policy in claim.beside)


def _rule_words(claim: Claim, counted: int) -> str:
    """Return the rule in words, with the claim's metric, margin and level."""
    rule = RULES[claim.rule]
    here = []
    if rule.uses_metric:
        where = "the end" if claim.at == 1 else f"{given(claim.at)} of the horizon"
        words = METRICS[claim.metric].words
        here.append(f"{words} {where}" if words.endswith(("up to", "before")) else f"{words} at {where}")
    if rule.uses_margin:
        here.append(f"margin {given(claim.margin)}")
    if rule.uses_level:
        level, whole = given(1 - ERROR / counted, 5), given(1 - ERROR)
        shared = f", {whole} for the {counted} that count together" if counted > 1 else ""
        beside = f", {whole} each for those beside" if claim.beside and counted > 1 else ""
        here.append(f"level {level} for each interval{shared}{beside}")
    if claim.least_horizon:
        here.append(f"a horizon of {claim.least_horizon:,} steps or more, undecided below it")
    return f"{rule.words} Here: {'; '.join(here)}." if here else rule.words
