"""Readings of SOLID's constraint: a policy that leaves its reading open is played once under each requested reading.

A policy that an experiment calls "SOLID" is played as "SOLID [theorem]", "SOLID [plain]" and so on. Claims speak of
"SOLID" and are judged once per reading; figures and tables call it that under the reading that `Solid()` has.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from solid_bandits.paper.judging import judge
from solid_bandits.paper.outcome import Claim, UnderReading, Verdict
from solid_bandits.simulation.results import Results

if TYPE_CHECKING:
    from solid_bandits.policies.contract import Policy

# The part of this module that reports use must not load the compiler, so `Solid` is imported where it is needed.

READINGS = ("theorem", "plain", "local", "none")
"""All readings, the most literal first."""


def played_label(label: str, reading: str) -> str:
    """Return the label of a policy under one of several readings."""
    return f"{label} [{reading}]"


def under_each(policy: "Policy", given: Mapping[str, object], readings: Sequence[str]) -> "dict[str, Policy]":
    """Return reading -> policy under it; empty unless the reading is open in `given`, the parameters in the file."""
    from solid_bandits.policies.solid.policy import Solid

    if not isinstance(policy, Solid) or policy.form != "experiments" or "bonus" in given:
        return {}
    return {reading: replace(policy, bonus=reading) for reading in readings}


def default_reading(readings: Sequence[str]) -> str:
    """Return the reading of `Solid()`, or else the first of those that were played; empty if there are none."""
    if not readings:
        return ""
    from solid_bandits.policies.solid.policy import Solid

    usual = Solid().bonus
    return usual if usual in readings else readings[0]


def under(results: Results, played: Mapping[str, UnderReading], reading: str) -> Results:
    """Return results under one reading: its policies under their plain labels, without those of other readings."""
    return only(results, _plain_labels(results, played, reading))


def arranged(results: Results, played: Mapping[str, UnderReading], reading: str) -> Results:
    """Return results under all readings: those of `reading` first and with plain labels, those of the others last."""
    first = _plain_labels(results, played, reading)
    return only(results, first | {label: label for label in results.policies if label not in first})


def _plain_labels(results: Results, played: Mapping[str, UnderReading], reading: str) -> dict[str, str]:
    """Return label -> plain label for the policies under a reading and for those without readings."""
    found = {label: played.get(label, UnderReading(label, reading)) for label in results.policies}
    return {label: one.label for label, one in found.items() if one.reading == reading}


def only(results: Results, names: Mapping[str, str]) -> Results:
    """Return the results of some of the policies, label -> new label, in this order."""

    def renamed(table: pl.DataFrame) -> pl.DataFrame:
        kept = table.filter(pl.col("policy").is_in(list(names)))
        return kept.with_columns(pl.col("policy").replace(dict(names)))

    configuration = results.manifest["configuration"]
    manifest = {
        **results.manifest,
        "configuration": {
            **configuration,
            "policies": {new: configuration["policies"][old] for old, new in names.items()},
        },
        "seconds": {new: results.seconds[old] for old, new in names.items() if old in results.seconds},
    }
    diagnostics = None if results.diagnostics is None else renamed(results.diagnostics)
    return Results(renamed(results.table), manifest, diagnostics)


def judged(
    claims: Sequence[Claim],
    parts: Mapping[str, Results],
    readings: Sequence[str],
    played: Mapping[str, UnderReading],
) -> Iterator[Verdict]:
    """Return the verdicts on the claims: one per reading for a claim on policies that have readings, else one."""
    usual = default_reading(readings)
    views = {
        reading: {label: under(results, played, reading) for label, results in parts.items()}
        for reading in readings or [usual]
    }
    open_labels = {one.label for one in played.values()}
    for claim in claims:
        if open_labels & {*claim.policies, *claim.against}:
            for reading in readings:
                yield replace(judge(claim, views[reading]), reading=reading)
        else:
            yield judge(claim, views[usual])
