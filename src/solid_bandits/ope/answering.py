"""Choice of the interval of an evaluation to rely on, with the reason."""

from collections.abc import Mapping
from typing import NamedTuple

from solid_bandits._internal import wording
from solid_bandits._internal.types import Plain
from solid_bandits.ope.contract import Value

SEEN = 0.05
"""Level of the test against drift: a smaller p-value counts as drift."""
DRIFT = "p-value of a value that does not drift"
UNDER_DRIFT = (
    "the value seems to have changed over the log: anytime holds the mean over the period all the same, while cadr "
    "estimates a mean in which rows weigh by their precision"
)


class Answer(NamedTuple):
    """The value and the interval to rely on.

    Example:
        >>> import solid_bandits as sb
        >>> trial = {"arm": ["a", "b"] * 40, "reward": [1.0, 1.0, 0.0, 0.0] * 20, "probability": [0.5] * 80}
        >>> answer = sb.ope.evaluate(trial, "always:a", logger="fixed").answer
        >>> answer.estimator, answer.why
        ('anytime', 'fewer than 50 effective rewards: a normal approximation cannot be trusted')
        >>> 0 <= answer.low < 0.5 < answer.high <= 1
        True
    """

    estimator: str
    value: float
    low: float | None
    """Ends of the interval; None if none is valid."""
    high: float | None
    why: str
    """Why this one was chosen."""


def answer(values: Mapping[str, Value], learning: bool, numbers: Plain) -> Answer:
    """Choose among the values of the requested estimators.

    `cadr` for a logger that learns, or `dr` for one that does not, if its interval is shown and there is no sign of
    drift; else `anytime`, whose bounds are valid for any logger, for few rewards and under drift.
    """
    first = "cadr" if learning else "dr"
    drifts = numbers.get(DRIFT, 1.0) < SEEN
    shown = [name for name, value in values.items() if value.low is not None]
    if first in shown and not (drifts and "anytime" in shown):
        return _of(first, values, _reason(first))
    if "anytime" in shown:
        return _of("anytime", values, _fallback(values.get(first), drifts and first in shown))
    if shown:
        return _of(shown[0], values, "the only kind of interval that was asked for and holds")
    known = [name for name, value in values.items() if value.value is not None]
    name = next((one for one in (first, "anytime", "dr") if one in known), known[0])
    note = values[name].note
    return _of(name, values, f"{note}; " * bool(note) + "reward_range makes bounds possible that always hold")


def _reason(name: str) -> str:
    if name == "cadr":
        return "enough effective rewards for a normal approximation, and no drift is seen"
    return "enough effective rewards for a normal approximation, and the logger did not learn"


def _fallback(wanted: Value | None, drifts: bool) -> str:
    if drifts:
        return "the value seems to have drifted: these bounds hold the mean over the period all the same"
    if wanted is None:
        return "these bounds hold for any logger"
    reason = wanted.note.rpartition("no interval: ")[2]
    return f"{reason}: a normal approximation cannot be trusted"


def _of(name: str, values: Mapping[str, Value], why: str) -> Answer:
    value = values[name]
    assert value.value is not None  # checked by the caller
    return Answer(name, value.value, value.low, value.high, why)


def said(label: str, found: Answer, level: float) -> str:
    """Describe an answer in a sentence.

    Example:
        >>> said("uniform", Answer("dr", 0.5, 0.4, 0.6, "it holds"), 0.95)
        'uniform earns 0.500 per decision, 0.400 to 0.600 with 95% confidence (dr: it holds).'
    """
    value = wording.number(found.value)
    if found.low is None or found.high is None:
        return (
            f"{label} earns about {value} per decision, without an interval ({found.estimator}: {found.why})."
        )
    ends = f"{wording.number(found.low)} to {wording.number(found.high)}"
    sure = f"{wording.given(100 * level)}% confidence"
    return f"{label} earns {value} per decision, {ends} with {sure} ({found.estimator}: {found.why})."
