"""Readings of SOLID in a report: the one that figures show, the others next to it, and the ranking."""

from collections.abc import Sequence
from dataclasses import replace

from solid_bandits.paper.names import AFTERWARDS, COUNTED, ON_THEIR_OWN
from solid_bandits.paper.outcome import Outcome, Sentence, UnderReading, Verdict
from solid_bandits.paper.ranking import Standing, counted
from solid_bandits.paper.readings import READINGS, default_reading, only, played_label, under

# Up to this many policies share a panel for all readings; with more, each reading has its own.
FEW = 2

READINGS_FOLDER = "readings"
"""Subfolder for figures of policies under all readings."""

WORDS = {
    "theorem": "√γ ‖φ‖ times 2BL/σ², Eq. (gt) as printed",
    "plain": "√γ ‖φ‖, without numerical constants",
    "local": "by how much the divergence at the closest alternative can be larger",
    "none": "no bonus",
}
"""Reading -> its bonus in g_t."""

LATER = "†"
"""Mark of a sentence that was added after the rule was committed."""
LEFT_OUT = "‡"
"""Mark of a sentence of an experiment that the rule leaves out."""


def all_readings(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the readings under which anything was played, the most literal first."""
    return [one for one in READINGS if any(one in outcome.readings for outcome in outcomes)]


def usual_reading(outcomes: Sequence[Outcome]) -> str:
    """Return the reading of the figures; empty if nothing was played under several."""
    return default_reading(all_readings(outcomes))


def verdict_under(outcome: Outcome, sentence: Sentence, reading: str) -> Verdict | None:
    """Return the verdict in a reading's column; None if the sentence's SOLID was played only under another one."""
    if reading and not outcome.readings:
        named = {*sentence.claim.policies, *sentence.claim.against}
        given = [results.manifest["configuration"]["policies"] for results in outcome.parts.values()]
        played = {one[label].get("bonus") for one in given for label in named & one.keys()} - {None}
        if played and reading not in played:
            return None
    return sentence.under(reading)


def mark_of(outcome: Outcome) -> str:
    """Return the mark of the experiment's sentences if they do not count in the ranking, else an empty text."""
    if outcome.name in AFTERWARDS:
        return LATER
    return LEFT_OUT if outcome.name in ON_THEIR_OWN else ""


def main_view(outcome: Outcome) -> Outcome:
    """Return the experiment under the reading of the figures alone."""
    parts = {
        label: under(results, outcome.played, outcome.reading) for label, results in outcome.parts.items()
    }
    return replace(outcome, parts=parts)


def readings_view(outcome: Outcome) -> Outcome | None:
    """Return the experiment's policies under all readings, side by side; None with fewer than two readings."""
    if len(outcome.readings) < 2 or not outcome.played:
        return None
    parts = {}
    if len({one.label for one in outcome.played.values()}) > FEW:
        for label, results in outcome.parts.items():
            for reading in outcome.readings:
                name = reading if len(outcome.parts) == 1 else f"{label}, {reading}"
                parts[name] = under(results, outcome.played, reading)
        return replace(outcome, parts=parts)
    for label, results in outcome.parts.items():
        here = [policy for policy in results.policies if policy in outcome.played]
        here.sort(key=lambda policy: _order(outcome, outcome.played[policy]))
        if here:
            parts[label] = only(results, {policy: played_label(*outcome.played[policy]) for policy in here})
    return replace(outcome, parts=parts)


def _order(outcome: Outcome, one: UnderReading) -> tuple[int, int]:
    labels = list(dict.fromkeys(other.label for other in outcome.played.values()))
    return labels.index(one.label), outcome.readings.index(one.reading)


def chosen_words(outcomes: Sequence[Outcome], standings: Sequence[Standing]) -> str:
    """Describe the choice made by the rule in a sentence or two; empty where there is nothing to rank."""
    if not standings:
        return ""
    first, usual = standings[0], usual_reading(outcomes)
    names = [outcome.name for outcome in counted(outcomes)]
    some = (
        ""
        if set(names) >= set(COUNTED)
        else f" These are {len(names)} of the {len(COUNTED)} experiments it is for."
    )
    agrees = "which is that of Solid()" if first.reading == usual else f"Solid() has {usual!r}"
    return (
        "The rule of studies/jester/plan.md, written before the runs (the paper's sentences, confirmed minus refuted; "
        f"of equal sums the more literal), ranks {', '.join(map(_standing, standings))}: "
        f"the paper's reading is {first.reading!r}, {agrees}.{some}"
    )


def _standing(one: Standing) -> str:
    return f"{one.reading} ({one.sum:+d})".replace("-", "−")
