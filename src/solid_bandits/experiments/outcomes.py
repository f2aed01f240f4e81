"""What a directory of experiments holds: the results of those that are complete, and the verdicts on their claims."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from solid_bandits._files import EXPERIMENT_FILE, FORMAT, MANIFEST_FILE, StoreError, read_json
from solid_bandits._types import Plain
from solid_bandits.experiments.names import NAMES
from solid_bandits.experiments.outcome import Claim, Outcome, Played
from solid_bandits.experiments.readings import READINGS, arranged, default_reading, judged
from solid_bandits.results import Results

if TYPE_CHECKING:
    from solid_bandits.experiments.experiment import Experiment


def description(experiment: "Experiment") -> Plain:
    """What EXPERIMENT_FILE holds: all that a report needs beside the results."""
    return {
        "format": FORMAT,
        "name": experiment.name,
        "title": experiment.title,
        "about": experiment.about,
        "scale": experiment.scale,
        "parts": {part.label: part.slug for part in experiment.parts},
        "readings": list(experiment.readings),
        "played": {label: list(one) for label, one in experiment.played.items()},
        "claims": [asdict(claim) for claim in experiment.claims],
    }


def outcomes(out: Path) -> list[Outcome]:
    """What is complete in a directory of experiments, in the order of the paper, a user's own after them."""
    found = []
    for path in sorted(out.glob(f"*/{EXPERIMENT_FILE}")):
        about = read_json(path, "name", "title", "about", "scale", "parts", "claims", "readings", "played")
        homes = {label: path.parent / slug for label, slug in about["parts"].items()}
        if not all((home / MANIFEST_FILE).exists() for home in homes.values()):
            continue
        parts = {label: Results.load(home) for label, home in homes.items()}
        try:
            claims = [Claim.from_plain(claim) for claim in about["claims"]]
        except TypeError:
            raise StoreError(
                f"{os.fspath(path)!r} has claims of another version; rerun the experiment"
            ) from None
        readings, played = _readings(path, about)
        reading = default_reading(readings)
        found.append(
            Outcome(
                about["name"],
                about["title"],
                about["about"],
                about["scale"],
                {label: arranged(results, played, reading) for label, results in parts.items()},
                tuple(judged(claims, parts, readings, played)),
                readings,
                reading,
                {one.label if one.reading == reading else label: one for label, one in played.items()},
            )
        )
    order = {name: place for place, name in enumerate(NAMES)}
    return sorted(found, key=lambda one: (order.get(one.name, len(order)), one.name))


def _readings(path: Path, about: Plain) -> tuple[tuple[str, ...], dict[str, Played]]:
    """The readings of SOLID that were played, and the labels under which they were."""
    readings, played = about["readings"], about["played"]
    words = isinstance(readings, list) and all(one in READINGS for one in readings)
    pairs = isinstance(played, dict) and all(
        isinstance(one, list)
        and len(one) == len(Played._fields)
        and all(isinstance(word, str) for word in one)
        for one in played.values()
    )
    if not words or not pairs or any(Played(*one).reading not in readings for one in played.values()):
        raise StoreError(f"{os.fspath(path)!r} must have readings and the labels they were played under")
    return tuple(readings), {label: Played(*one) for label, one in played.items()}
