"""Checks that a claim can be judged; the error names the field, what it must be and what was received."""

from collections.abc import Mapping, Sequence

from solid_bandits._internal import checks
from solid_bandits._internal.checks import ArgumentError
from solid_bandits.paper.outcome import Claim
from solid_bandits.paper.rules import RULES
from solid_bandits.paper.rules.rule import Rule
from solid_bandits.statistics.metrics import METRICS


def check_claim(claim: Claim, parts: Mapping[str, Sequence[str]]) -> None:
    """Raise an ArgumentError unless the claim can be judged; `parts` maps labels to the labels of their policies."""
    for field in ("text", "source"):
        value = getattr(claim, field)
        if not value.strip():
            raise ArgumentError(field, f"must be a sentence, got {value!r}")
    rule = RULES[checks.choice("rule", claim.rule, RULES)]
    checks.choice("metric", claim.metric, METRICS)
    checks.number("at", claim.at, above=0, most=1)
    checks.number("margin", claim.margin, above=0)
    checks.integer("least_horizon", claim.least_horizon, least=0)
    for field in ("policies", "against", "beside", "parts"):
        labels = list(getattr(claim, field))
        twice = next((label for label in labels if labels.count(label) > 1), None)
        if twice is not None:
            raise ArgumentError(field, f"must name each label once, got {twice!r} twice")
    _check_parts(claim, rule, parts)
    _check_policies(claim, rule, parts)
    _check_arm(claim, rule)


def _check_parts(claim: Claim, rule: Rule, parts: Mapping[str, Sequence[str]]) -> None:
    for label in claim.parts:
        checks.choice("parts", label, parts)
    named = list(claim.parts or parts)
    least, words = (2, "a first and a last part") if rule.across else (1, "a part")
    if len(named) < least:
        raise ArgumentError("parts", f"must name {words} for rule {claim.rule!r}, got {named!r}")


def _check_policies(claim: Claim, rule: Rule, parts: Mapping[str, Sequence[str]]) -> None:
    wanted = {"policies": int(rule.of_policies), "against": rule.against}
    for field, least in wanted.items():
        labels = getattr(claim, field)
        if least == 0 and labels:
            raise _not_taken(field, claim.rule, list(labels))
        if len(labels) < least or (least == 2 and len(labels) > 2):
            count = "exactly two labels" if least == 2 else "at least one label"
            raise ArgumentError(field, f"must have {count} for rule {claim.rule!r}, got {list(labels)!r}")
    if claim.beside and not rule.of_policies:
        raise _not_taken("beside", claim.rule, list(claim.beside))
    seen: dict[str, str] = {}
    for field in ("policies", "against", "beside"):
        for label in getattr(claim, field):
            if label in seen:
                raise ArgumentError(
                    field,
                    f"must not name {label!r}, which is in {seen[label]} too: it would be compared with itself",
                )
            seen[label] = field
            _check_in_parts(field, label, claim, parts)


def _check_in_parts(field: str, label: str, claim: Claim, parts: Mapping[str, Sequence[str]]) -> None:
    having = [part for part, policies in parts.items() if label in policies]
    for part in claim.parts or parts:
        if having and part not in having:
            raise ArgumentError(
                field,
                f"must be played in every part of the claim, got {label!r}, which part {part!r} does not have; leave "
                f"it out, or let parts be among {', '.join(having)}",
            )
        checks.choice(field, label, parts[part])


def _check_arm(claim: Claim, rule: Rule) -> None:
    by_metric = rule.uses_metric and METRICS[claim.metric].of_arm
    if rule.of_policies and not by_metric:
        if claim.arm is not None:
            raise _not_taken("arm", claim.rule, claim.arm)
        return
    if claim.arm is None or len(claim.arm) != 2:
        what = f"metric {claim.metric!r}" if by_metric else f"rule {claim.rule!r}"
        raise ArgumentError("arm", f"must be [context, arm], counted from 0, for {what}, got {claim.arm!r}")
    for place, value in enumerate(claim.arm):
        if value < 0:
            raise ArgumentError("arm", f"must be two integers >= 0, got {value!r} at index {place}")


def _not_taken(field: str, rule: str, given: object) -> ArgumentError:
    return ArgumentError(field, f"must be left out, as rule {rule!r} takes none, got {given!r}")
