"""What saved results must be: the columns of their tables and the fields of their manifest."""

import polars as pl

from solid_bandits import _check, _files
from solid_bandits._files import ARMS_FILE, CALIBRATION_FILE, DIAGNOSTICS_FILE, FORMAT, TABLE_FILE
from solid_bandits._types import Plain

COLUMNS = {
    "policy": pl.String,
    "run": pl.Int64,
    "step": pl.Int64,
    "regret": pl.Float64,
    "explored": pl.Int64,
}
STREAM_COLUMNS = {**COLUMNS, "reward": pl.Float64, "ridge_regret": pl.Float64}
"""Of the table of a simulation on a stream."""
ARMS_COLUMNS = {"policy": pl.String, "step": pl.Int64, "arm": pl.Int64, "pulls": pl.Int64}
CALIBRATION_COLUMNS = {
    "policy": pl.String,
    "run": pl.Int64,
    "step": pl.Int64,
    "predicted": pl.Float64,
    "reward": pl.Float64,
}
FIELDS = {DIAGNOSTICS_FILE: "diagnostics", ARMS_FILE: "arms", CALIBRATION_FILE: "calibration"}
"""Tables beside the first, and the fields that hold them."""

_SHAPED = {
    "format": int,
    "configuration": {
        "policies": {"*": dict},
        "horizon": int,
        "runs": int,
        "seed": int,
        "diagnostics?": bool,
        "first_run?": int,
        "pulls?": bool,
        "tell_noise?": bool,
        "stream?": bool,
        "problem?": {"name?": str, "description?": str, "fingerprint?": str, "arms?": [str]},
    },
    "tables": {"*": {"sha256": str, "rows": int}},
    "versions?": {"*": str},
    "started?": str,
    "finished?": str,
    "wall_seconds?": float,
    "seconds?": {"*": float},
    "jobs?": int,
    "device?": str,
    "made_by?": {"*": str},
    "lower_bound?": {
        "value?": (float, None),
        "lower?": (float, None),
        "upper?": (float, None),
        "allocation?": [[float]],
        "problems?": int,
        "reason?": str,
    },
    "targets?": {
        "context_probs": [float],
        "n_arms": int,
        "at": [
            {
                "z": float,
                "omega": ([[float]], None),
                "multiplier": (float, None),
                "value": (float, None),
            }
        ],
    },
}
"""What a manifest holds."""


def check_table(table: pl.DataFrame, configuration: Plain) -> None:
    """Raise a ValueError unless there is one row per policy, run and checkpoint of what was asked for."""
    columns = STREAM_COLUMNS if configuration.get("stream", False) else COLUMNS
    if dict(table.schema) != columns:
        raise ValueError(f"must have columns {list(columns)}, got {table.columns}")
    keys = table.select("policy", "run", "step")
    policies, runs, steps = (set(keys[name].unique()) for name in keys.columns)
    first = configuration.get("first_run", 0)
    whole = (
        keys.height > 0
        and keys.null_count().sum_horizontal().item() == 0
        and policies == set(configuration["policies"])
        and (len(runs), min(runs), max(runs))
        == (configuration["runs"], first, first + configuration["runs"] - 1)
        and max(steps, default=0) == configuration["horizon"]
        and keys.height == len(policies) * len(runs) * len(steps) == keys.n_unique()
    )
    if not whole:
        raise ValueError("must have one row for each policy, run and checkpoint of its configuration")


def check_manifest(manifest: object) -> None:
    """Raise a ValueError that names the field unless this is the manifest of results of this format."""
    _files.check_fields(manifest, _SHAPED)
    assert isinstance(manifest, dict)
    configuration, tables = manifest["configuration"], manifest["tables"]
    if manifest["format"] != FORMAT:
        raise ValueError(f"format must be {FORMAT}, got {manifest['format']}")
    if not configuration["policies"]:
        raise ValueError("configuration.policies must not be empty")
    for name in ("horizon", "runs"):
        _check.integer(f"configuration.{name}", configuration[name], least=1)
    wanted = [TABLE_FILE]
    recorded = configuration.get("diagnostics", False) or configuration.get("pulls", False)
    wanted += [DIAGNOSTICS_FILE] if recorded else []
    wanted += [ARMS_FILE, CALIBRATION_FILE] if configuration.get("stream", False) else []
    if set(tables) != set(wanted):
        raise ValueError(f"tables must be {', '.join(wanted)}, got {', '.join(map(repr, tables))}")
    strangers = set(manifest.get("seconds", {})) - set(configuration["policies"])
    if strangers:
        raise ValueError(
            f"seconds must be those of the policies, got {', '.join(sorted(map(repr, strangers)))}"
        )
