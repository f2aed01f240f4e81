"""Plain data for the charts of the page of experiments."""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from solid_bandits._internal.types import Plain
from solid_bandits.paper.outcome import Outcome
from solid_bandits.report.chart_data import curve, rounded
from solid_bandits.report.palette import BAND_OPACITY, looks
from solid_bandits.report.scale import regret_scale
from solid_bandits.simulation.results import Results
from solid_bandits.statistics.estimate import Estimate
from solid_bandits.statistics.measures import measures

# A curve needs no more points than fit in a small chart, and no more digits than a hover label shows.
MOST_CHECKPOINTS = 120
FIGURES = 5


def experiments_data(outcomes: Sequence[Outcome]) -> Plain:
    """Return the data of the page's charts."""
    return {
        "band_opacity": BAND_OPACITY,
        "bound": {"label": "asymptotic lower bound v* log t"},
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
                "hidden": label in outcome.played and outcome.played[label].reading != outcome.reading,
            }
            for label, look in styles.items()
        ],
        "parts": [
            {"label": label, **_part_data(results, outcome)} for label, results in outcome.parts.items()
        ],
    }


def _part_data(results: Results, outcome: Outcome) -> Plain:
    """Return curves and bars of one part; "policy" is an index into the experiment's list of policies."""
    summary, bound = results.summary(), results.bound
    scale = regret_scale(summary, bound)
    places = {label: place for place, label in enumerate(outcome.policies)}
    steps = _thinned(summary["step"].unique().sort().to_list())
    shown = summary.filter(pl.col("step").is_in(steps)).sort("step")
    found = {entry.policy: entry for entry in measures(results, outcome.reference)}
    curves: list[Plain] = []
    for label in results.policies:
        if label not in found:  # requested, but without a run
            continue
        drawn = curve(shown, label)
        curves.append(
            {
                "policy": places[label],
                "off_scale": label in scale.off_scale,
                **{key: drawn[key] and rounded(drawn[key], FIGURES) for key in ("mean", "low", "high")},
            }
        )
    at_the_end = None if bound is None else bound * math.log(max(steps))
    return {
        "step": steps,
        "top": rounded([scale.top], FIGURES)[0],
        "bound": None if bound is None else rounded((bound * math.log(step) for step in steps), FIGURES),
        "policies": curves,
        "order": [places[label] for label in found],
        "measures": {
            "regret": _bars({label: one.regret for label, one in found.items()}, places, at_the_end),
            "difference": _bars({label: one.difference for label, one in found.items()}, places),
            "slope": _bars({label: one.slope for label, one in found.items()}, places, bound),
            "exploring": _bars({label: one.exploring for label, one in found.items()}, places),
            "time": _bars({label: _time(one.step_seconds) for label, one in found.items()}, places),
        },
    }


def _time(seconds: float | None) -> Estimate | None:
    return None if seconds is None else Estimate(seconds)


def _bars(values: dict[str, Estimate | None], places: dict[str, int], bound: float | None = None) -> Plain:
    """Return mean and interval by the policy's index, and the end of the linear axis."""
    known = {label: value for label, value in values.items() if value is not None}
    top = None
    if known:
        sizes = {
            "policy": list(known),
            "step": 1,
            "mean": [abs(value.value or 0.0) for value in known.values()],
            "high": [max(abs(end) for end in value if end is not None) for value in known.values()],
        }
        top = regret_scale(pl.DataFrame(sizes)).top
    top, bound = rounded([top, bound], FIGURES)
    drawn = {str(places[label]): rounded(value, FIGURES) for label, value in known.items()}
    return {"top": top, "bound": bound, "values": drawn}


def _thinned(steps: list[int]) -> list[int]:
    """Choose at most MOST_CHECKPOINTS of the steps, including the first and the last."""
    places = np.unique(np.linspace(0, len(steps) - 1, MOST_CHECKPOINTS).round().astype(int))
    return [steps[place] for place in places]
