"""What the page's charts are drawn from."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from solid_bandits._types import Plain
from solid_bandits.experiments.outcome import Outcome
from solid_bandits.report.markup import swatch
from solid_bandits.report.palette import BAND_OPACITY, looks
from solid_bandits.report.scale import regret_scale
from solid_bandits.results import Results
from solid_bandits.statistics.estimate import Estimate
from solid_bandits.statistics.measures import measures

# A curve needs no more points than a small chart has room for, and no more figures than a hover label shows.
MOST_CHECKPOINTS = 120
FIGURES = 5


def experiments_data(outcomes: Sequence[Outcome]) -> Plain:
    """What the page's charts are drawn from."""
    return {
        "band_opacity": BAND_OPACITY,
        "bound": {"label": "asymptotic lower bound v* log t", "swatch": swatch("currentColor", "dash")},
        "experiments": [_experiment_data(outcome) for outcome in outcomes],
    }


def _experiment_data(outcome: Outcome) -> Plain:
    styles = looks(outcome.policies)
    return {
        "name": outcome.name,
        "title": outcome.title,
        "reference": outcome.reference,
        "policies": [
            {
                "label": label,
                "colour": look.colour,
                "dash": look.dash,
                "swatch": swatch(look.colour, look.dash),
                "hidden": label in outcome.played and outcome.played[label].reading != outcome.reading,
            }
            for label, look in styles.items()
        ],
        "parts": [
            {"label": label, **_part_data(results, outcome)} for label, results in outcome.parts.items()
        ],
    }


def _part_data(results: Results, outcome: Outcome) -> Plain:
    """Curves and bars of one part; "policy" is a place in the experiment's list of policies."""
    summary, bound = results.summary(), results.bound
    scale = regret_scale(summary, bound)
    places = {label: place for place, label in enumerate(outcome.policies)}
    steps = _thinned(summary["step"].unique().sort().to_list())
    found = {entry.policy: entry for entry in measures(results, outcome.reference)}
    curves: list[Plain] = []
    for label in results.policies:
        if label not in found:  # asked for, but without a run
            continue
        curve = summary.filter((pl.col("policy") == label) & pl.col("step").is_in(steps)).sort("step")
        banded = curve["low"].null_count() == 0
        curves.append(
            {
                "policy": places[label],
                "off_scale": label in scale.off_scale,
                "mean": _rounded(curve["mean"]),
                "low": _rounded(curve["low"]) if banded else None,
                "high": _rounded(curve["high"]) if banded else None,
            }
        )
    last = max(steps)
    return {
        "step": steps,
        "top": _round(scale.top),
        "bound": None if bound is None else [_round(bound * math.log(step)) for step in steps],
        "policies": curves,
        "order": [places[label] for label in found],
        "measures": {
            "regret": _bars(
                {label: entry.regret for label, entry in found.items()},
                places,
                bound=None if bound is None else bound * math.log(last),
            ),
            "difference": _bars({label: entry.difference for label, entry in found.items()}, places),
            "slope": _bars({label: entry.slope for label, entry in found.items()}, places, bound=bound),
            "exploring": _bars({label: entry.exploring for label, entry in found.items()}, places),
            "time": _bars(
                {
                    label: None if entry.step_seconds is None else Estimate(entry.step_seconds)
                    for label, entry in found.items()
                },
                places,
            ),
        },
    }


def _bars(values: dict[str, Estimate | None], places: dict[str, int], bound: float | None = None) -> Plain:
    """Mean and interval by the policy's place, and how far the linear axis goes."""
    known = {label: value for label, value in values.items() if value is not None}
    top = None
    if known:
        sizes = {
            "policy": list(known),
            "step": 1,
            "mean": [abs(value.value or 0.0) for value in known.values()],
            "high": [max(abs(end) for end in value if end is not None) for value in known.values()],
        }
        top = _round(regret_scale(pl.DataFrame(sizes)).top)
    return {
        "top": top,
        "bound": None if bound is None else _round(bound),
        "values": {str(places[label]): _rounded(value) for label, value in known.items()},
    }


def _thinned(steps: list[int]) -> list[int]:
    """At most MOST_CHECKPOINTS of the steps, the first and the last among them."""
    places = np.unique(np.linspace(0, len(steps) - 1, MOST_CHECKPOINTS).round().astype(int))
    return [steps[place] for place in places]


def _rounded(values: Iterable[float | None]) -> list[float | None]:
    return [_round(value) for value in values]


def _round(value: float | None) -> float | None:
    """FIGURES significant figures; what is no number is null, as json knows no other name for it."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{FIGURES}g}")
    return int(short) if short.is_integer() else short
