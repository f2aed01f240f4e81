"""Bounds on parameters over HTTP, because a policy's work for each decision grows with some of them."""

from collections.abc import Sequence
from dataclasses import fields

from solid_bandits.policies.contract import Policy
from solid_bandits.policies.naming import by_name
from solid_bandits.service.errors import invalid

MOST = 1_000
"""Largest value of whole-number parameters, such as samples and votes, unless a policy's defaults are larger."""


def check_parameters(policy: Policy) -> None:
    """Raise a ValueError if a whole-number parameter is too large for a request over the network."""
    for one in fields(policy):
        value = getattr(policy, one.name)
        most = max(MOST, one.default) if isinstance(one.default, int) else MOST
        if isinstance(value, int) and value > most:
            raise ValueError(f"{one.name} must be at most {most} over HTTP, got {value}")


def check_words(words: Sequence[str]) -> None:
    """Check policies given by name, before a process reads a log for them."""
    for word in words:
        if word == "uniform" or word.startswith("always:"):
            continue
        try:
            for policy in by_name([word], "random", 2).values():
                check_parameters(policy)
        except ValueError as error:
            raise invalid(str(error)) from None
