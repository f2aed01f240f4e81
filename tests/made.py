"""Results and outcomes made by hand: what reports are given in tests."""

import numpy as np
import polars as pl

from solid_bandits.paper.outcome import Claim, Outcome
from solid_bandits.simulation.results import Results
from solid_bandits.simulation.table_format import COLUMNS

AWKWARD = '<b>&"$x$</script>'
LABELS = {"SOLID": 2.0, "LinUCB": 9.0, AWKWARD: 12.0, "LinTS posterior": 2.1}
FEW_STEPS = np.array([1, 10, 50, 100, 250, 500, 750, 1000])
STEPS = np.unique(np.geomspace(1, 5000, 40).astype(np.int64))

BOUND = {"value": 2.5, "lower": 2.499, "upper": 2.501, "allocation": [[0.0, 1.0]]}
FOUR = {"SOLID": 2.0, "LinUCB": 5.0, "LinTS (posterior)": 1.5, "$a$ | b": 3.0}


def make_part(slopes, runs=6, horizon=2000, bound=BOUND, stuck=(), seed=0, **manifest) -> Results:
    """Regret around slope * log t; that of the stuck policies is linear."""
    rng = np.random.default_rng(seed)
    steps = np.unique(np.geomspace(1, horizon, 30).astype(np.int64))
    frames = []
    for policy, slope in slopes.items():
        growth = steps * 0.5 if policy in stuck else np.log1p(steps)
        for run in range(runs):
            regret = slope * growth + np.cumsum(rng.random(len(steps))) * 0.1
            columns = {"policy": policy, "run": run, "step": steps, "regret": regret, "explored": steps // 4}
            frames.append(pl.DataFrame(columns, schema=COLUMNS))
    configuration = {
        "policies": {policy: {} for policy in slopes},
        "horizon": horizon,
        "runs": runs,
        "seed": 3,
    }
    return Results(
        pl.concat(frames), {"format": 1, "configuration": configuration, "lower_bound": bound, **manifest}
    )


def make_outcome(parts, verdicts=(), **fields) -> Outcome:
    usual = {"name": "toy", "title": "The toy", "about": "What is played.", "scale": "quick"}
    return Outcome(**{**usual, **fields}, parts=parts, verdicts=tuple(verdicts))


def make_results(
    slopes: dict[str, float], runs: int = 20, stuck: tuple[str, ...] = (), **manifest
) -> Results:
    """Random walks around slope * log t; the stuck policies' regret is linear."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=runs)  # what a run has in common between policies
    frames = []
    for policy, slope in slopes.items():
        growth = STEPS * 0.5 if policy in stuck else np.log1p(STEPS)
        for run in range(runs):
            regret = slope * growth + np.abs(common[run]) + np.cumsum(rng.random(len(STEPS))) * 0.05
            columns = {"policy": policy, "run": run, "step": STEPS, "regret": regret, "explored": STEPS // 2}
            frames.append(pl.DataFrame(columns, schema=COLUMNS))
    configuration = {
        "problem": {"name": "toy", "description": "Problem(contexts=2, L<1)", "fingerprint": "ab12"},
        "policies": {policy: {"kind": "Solid", "z0": 1.0} for policy in slopes},
        "horizon": 5000,
        "runs": runs,
        "seed": 7,
    }
    versions = {"solid-bandits": "0.1.0"}
    return Results(
        pl.concat(frames), {"format": 1, "configuration": configuration, "versions": versions, **manifest}
    )


def from_curves(curves, steps=FEW_STEPS, explored=None, **manifest) -> Results:
    """Policy -> runs x checkpoints of regret."""
    frames = []
    for policy, regret in curves.items():
        runs, count = np.shape(regret)
        columns = {
            "policy": [policy] * (runs * count),
            "run": np.repeat(np.arange(runs), count),
            "step": np.tile(steps, runs),
            "regret": np.ravel(regret).astype(float),
            "explored": np.ravel((explored or {}).get(policy, np.zeros((runs, count), dtype=int))),
        }
        frames.append(pl.DataFrame(columns, schema=COLUMNS))
    # Neither policies nor runs stand in any order that a reader may rely on.
    table = pl.concat(frames).sample(fraction=1, shuffle=True, seed=0)
    configuration = {"policies": {policy: {} for policy in curves}, "horizon": int(steps[-1]), "runs": runs}
    diagnostics = manifest.pop("diagnostics", None)
    return Results(table, {"format": 1, "configuration": configuration, **manifest}, diagnostics)


def claim_of(rule, **fields) -> Claim:
    given = {"text": "so it is", "source": "ours", "rule": rule, "policies": ("A",)} | fields
    return Claim(**given)
