"""SOLID's diagnostics for the page, averaged over runs and compared with the optimum of the lower bound."""

import math

import numpy as np
import polars as pl

from solid_bandits._internal.types import Floats, Plain
from solid_bandits.report.chart_data import rounded
from solid_bandits.simulation.results import Results
from solid_bandits.statistics.summary import summarise

_NEEDED = ("multiplier", "normalisation", "explored", "statistic", "threshold", "omega")

# The policies ω are most of the embedded data: use no more checkpoints than a slider can distinguish, and fewer where
# each policy is large.
MOST_CHECKPOINTS = 40
MOST_PROBABILITIES = 20_000

# Difference of log z within which a target's z counts as equal to z_k. Targets are solved at exactly the z_k that
# occur; anything beyond rounding means that they belong to another problem.
_SAME_LOG_Z = 0.01


class Targets:
    """The optimal policies ω*_z of (P_z) by z, from `manifest["targets"]`.

    Args:
        manifest: manifest of the results.

    """

    def __init__(self, manifest: Plain) -> None:
        found = manifest.get("targets") or {"context_probs": [], "at": []}
        self.context_probs = np.array(found["context_probs"], dtype=np.float64)
        self.at: list[Plain] = found["at"]

    def nearest(self, z: float) -> int | None:
        """Return the index in `at` of the target whose z is relatively closest; None if none is at this z."""
        gaps = [abs(math.log(target["z"] / z)) for target in self.at]
        place = min(range(len(gaps)), key=gaps.__getitem__, default=None)
        return place if place is not None and gaps[place] <= _SAME_LOG_Z else None

    def omega(self, z: float) -> Floats | None:
        """Return ω*_z, shape (contexts, arms); None where (P_z) is infeasible or was not solved."""
        place = self.nearest(z)
        omega = None if place is None else self.at[place]["omega"]
        return None if omega is None else np.array(omega, dtype=np.float64)

    def multiplier(self, z: float) -> float | None:
        """Return λ*(z); None where (P_z) is infeasible or was not solved."""
        place = self.nearest(z)
        return None if place is None else self.at[place]["multiplier"]


def diagnostics_data(results: Results) -> Plain | None:
    """Return the data of the section's charts; None if no policy has SOLID's diagnostics.

    An infinite statistic becomes null, because JSON has no infinity.
    """
    frame = results.diagnostics
    if frame is None or not set(_NEEDED) <= set(frame.columns):
        return None
    shown = frame.filter(pl.all_horizontal(pl.col(column).is_not_null() for column in _NEEDED))
    targets = Targets(results.manifest)
    policies = [
        _policy(place, rows.sort("step", "run"), targets)
        for place, label in enumerate(results.policies)
        if not (rows := shown.filter(pl.col("policy") == label)).is_empty()
    ]
    if not policies:
        return None
    return {
        "policies": policies,
        "targets": [
            {
                "omega": None if target["omega"] is None else _pictured(np.array(target["omega"])),
                "value": target["value"],
            }
            for target in targets.at
        ],
        "context_probs": targets.context_probs.tolist() or None,
        "lower_bound": results.bound,
    }


def distances(rows: pl.DataFrame, targets: Targets) -> pl.DataFrame:
    """Compute Σ_x ρ(x) TV(ω_t(x, ·), ω*_z(x, ·)) at each row's own z_k, if known: policy, run, step, distance."""
    known = {z: targets.omega(z) for z in rows["normalisation"].unique().to_list()}
    parts = [rows.select("policy", "run", "step", distance=pl.lit(0.0)).clear()]
    # Checkpoint by checkpoint, because the policies of a hundred runs together would be large.
    for part in rows.partition_by("step", "normalisation"):
        optimum = known[part["normalisation"][0]]
        if optimum is not None:
            apart = np.abs(_policies_of(part, len(optimum)) - optimum).sum(axis=2) / 2
            distance = pl.Series("distance", apart @ targets.context_probs)
            parts.append(part.select("policy", "run", "step", distance))
    return pl.concat(parts).sort("step", "run")


def _policy(place: int, rows: pl.DataFrame, targets: Targets) -> Plain:
    quartiles = rows.group_by("step", maintain_order=True).agg(
        # The midpoint of two neighbours is the usual median, and never computes infinity minus infinity.
        pl.col("statistic").quantile(0.5, "midpoint").alias("statistic"),
        pl.col("statistic").quantile(0.25, "midpoint").alias("statistic_low"),
        pl.col("statistic").quantile(0.75, "midpoint").alias("statistic_high"),
        pl.col("threshold").median(),
        # The lower of two medians: a z_k that occurs in some run, not one between two phases.
        pl.col("normalisation").quantile(0.5, "lower").alias("z"),
        pl.col("normalisation").quantile(0.25, "lower").alias("z_low"),
        pl.col("normalisation").quantile(0.75, "higher").alias("z_high"),
    )
    medians: list[float] = quartiles["z"].to_list()
    apart = distances(rows, targets)
    return {
        "policy": place,
        "step": quartiles["step"].to_list(),
        "multiplier": _student(rows, pl.col("multiplier")),
        "multiplier_target": rounded(targets.multiplier(z) for z in medians),
        "statistic": _quartile_band(quartiles, "statistic"),
        "threshold": rounded(quartiles["threshold"]),
        "z": _quartile_band(quartiles, "z"),
        "exploring": _student(rows, pl.col("explored") / pl.col("step")),
        "exploring_lately": _exploring_lately(rows),
        "distance": None if apart.is_empty() else _student(apart, pl.col("distance")),
        "omega": _checkpoints(rows, dict(zip(quartiles["step"], medians, strict=True)), targets),
    }


def _student(rows: pl.DataFrame, value: pl.Expr) -> Plain:
    """Return the mean and its 95% interval over runs."""
    summary = summarise(rows.select("policy", "step", value=value), "value")
    return {"step": summary["step"].to_list()} | {
        name: rounded(summary[name]) for name in ("mean", "low", "high")
    }


def _quartile_band(quartiles: pl.DataFrame, name: str) -> Plain:
    return {
        "median": rounded(quartiles[name]),
        "low": rounded(quartiles[f"{name}_low"]),
        "high": rounded(quartiles[f"{name}_high"]),
    }


def _exploring_lately(rows: pl.DataFrame) -> list[float | None]:
    """Return the share of exploring rounds since the previous checkpoint, averaged over runs."""
    totals = rows.group_by("step", maintain_order=True).agg(pl.col("explored").mean())
    steps, explored = (np.concatenate([[0], totals[name].to_numpy()]) for name in ("step", "explored"))
    return rounded(np.diff(explored) / np.diff(steps))


def _checkpoints(rows: pl.DataFrame, medians: dict[int, float], targets: Targets) -> Plain:
    """Average ω_t over runs at some checkpoints, with the index of ω*_z for the median z."""
    first = rows["omega"][0].to_numpy()
    # The probabilities of each context sum to 1, so their total is the number of contexts.
    n_contexts = round(first.sum())
    most = min(MOST_CHECKPOINTS, max(2, MOST_PROBABILITIES // len(first)))
    every = np.array(list(medians))
    steps = every[np.unique(np.linspace(0, len(every) - 1, most).round().astype(int))].tolist()
    parts = rows.filter(pl.col("step").is_in(steps)).partition_by("step", maintain_order=True)
    return {
        "step": steps,
        "z": rounded(medians[step] for step in steps),
        "target": [targets.nearest(medians[step]) for step in steps],
        "mean": [_pictured(_policies_of(part, n_contexts).mean(axis=0)) for part in parts],
    }


def _policies_of(rows: pl.DataFrame, n_contexts: int) -> Floats:
    """Return the policies ω as an array, shape (rows, contexts, arms)."""
    return rows["omega"].explode().to_numpy().reshape(len(rows), n_contexts, -1)


def _pictured(omega: Floats) -> list[list[float]]:
    """Round probabilities to the precision that can be read from a picture."""
    return (np.round(omega, 4) + 0.0).tolist()
