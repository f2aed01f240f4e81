"""Loading a directory of experiments: the results of those that are complete, and the verdicts on their claims."""

from pathlib import Path
from typing import TYPE_CHECKING

from solid_bandits._internal import checks
from solid_bandits._internal.decoding import Content
from solid_bandits._internal.files import (
    EXPERIMENT_FILE,
    FORMAT,
    MANIFEST_FILE,
    TAKEN,
    check_name,
    read_json,
)
from solid_bandits.paper.names import NAMES
from solid_bandits.paper.outcome import Claim, Outcome, UnderReading
from solid_bandits.paper.readings import READINGS, arranged, default_reading, judged
from solid_bandits.simulation.results import Results

if TYPE_CHECKING:
    from solid_bandits.paper.experiment import Experiment


class Description(Content):
    """Contents of EXPERIMENT_FILE: everything a report needs besides the results."""

    format: int
    name: str
    title: str
    about: str
    scale: str
    parts: dict[str, str]
    readings: tuple[str, ...]
    played: dict[str, UnderReading]
    claims: tuple[Claim, ...]

    def __post_init__(self) -> None:
        check_name("name", self.name, TAKEN)
        for slug in self.parts.values():
            check_name("parts", slug)
        for reading in self.readings:
            checks.choice("readings", reading, READINGS)
        for one in self.played.values():
            checks.choice("played", one.reading, self.readings)


def description(experiment: "Experiment") -> Description:
    """Return the description of an experiment, which is written before it is played."""
    same = ("name", "title", "about", "scale", "readings", "played", "claims")
    fields = {name: getattr(experiment, name) for name in same}
    return Description(FORMAT, parts={part.label: part.slug for part in experiment.parts}, **fields)


def load_outcomes(out: Path) -> list[Outcome]:
    """Return the complete experiments of a directory, in the order of the paper, the user's own last."""
    found = []
    for path in sorted(out.glob(f"*/{EXPERIMENT_FILE}")):
        about = read_json(path, Description)
        homes = {label: path.parent / slug for label, slug in about.parts.items()}
        if not all((home / MANIFEST_FILE).exists() for home in homes.values()):
            continue
        parts = {label: Results.load(home) for label, home in homes.items()}
        reading = default_reading(about.readings)
        found.append(
            Outcome(
                about.name,
                about.title,
                about.about,
                about.scale,
                {label: arranged(results, about.played, reading) for label, results in parts.items()},
                tuple(judged(about.claims, parts, about.readings, about.played)),
                about.readings,
                reading,
                {one.label if one.reading == reading else label: one for label, one in about.played.items()},
            )
        )
    order = {name: place for place, name in enumerate(NAMES)}
    return sorted(found, key=lambda one: (order.get(one.name, len(order)), one.name))
