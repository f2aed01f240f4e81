"""The guard: this run beside the committed one, and beside what the project wants."""

import json
from pathlib import Path

from bench.plain import Speedup
from bench.timing import Measured

LIMIT = 0.25
"""How much worse than the committed ratio is worth a warning."""
GOALS = {
    ("SOLID exploring", (4, 8, 8)): 60.0,
    ("SOLID exploring", (4, 32, 8)): 25.0,
    ("SOLID searching", (4, 8, 8)): 60.0,
    ("SOLID searching", (4, 32, 8)): 25.0,
}
"""Least speed-up over the plain NumPy reference."""
WITHIN_THREE = [f"{label} any 191,40,65" for label in ("LinUCB", "LinTS", "Greedy")]
"""What is to stay within three times its floor, beside all steps of SOLID."""


def regressions(
    committed: dict[str, float], measured: dict[str, float], higher_is_better: bool, limit: float = LIMIT
) -> dict[str, float]:
    """Name -> how many times worse than committed, where that is more than `limit`; other names are new."""
    worse = {}
    for name, value in measured.items():
        if name in committed and committed[name] > 0 and value > 0:
            factor = committed[name] / value if higher_is_better else value / committed[name]
            if factor > 1.0 + limit:
                worse[name] = factor
    return worse


def load(path: Path) -> dict[str, dict[str, float]]:
    """The committed ratios; none where there is no file."""
    if not path.exists():
        return {"floor": {}, "numpy": {}}
    content = json.loads(path.read_text(encoding="utf-8"))
    return {part: {name: row["ratio"] for name, row in content[part].items()} for part in ("floor", "numpy")}


def verdict(
    committed: dict[str, dict[str, float]], results: list[Measured], speedups: list[Speedup]
) -> list[str]:
    """Warnings, and what is left to be reached."""
    lines = []
    ratios = {result.cell.key: result.ratio for result in results}
    for name, factor in regressions(committed["floor"], ratios, higher_is_better=False).items():
        lines.append(
            f"WARNING: {name}: {ratios[name]:.2f} times its floor, {committed['floor'][name]:.2f} when "
            f"committed ({factor - 1:+.0%})"
        )
    speeds = {speedup.key: speedup.ratio for speedup in speedups}
    for name, factor in regressions(committed["numpy"], speeds, higher_is_better=True).items():
        lines.append(
            f"WARNING: {name}: {speeds[name]:.0f} times as fast as NumPy, {committed['numpy'][name]:.0f} "
            f"when committed ({factor - 1:+.0%} time)"
        )
    return lines


def goals(results: list[Measured], speedups: list[Speedup]) -> list[str]:
    """What the project wants of these numbers, and whether it has it."""
    lines = [
        f"{'reached' if result.ratio <= 3 else 'MISSED'}: {result.cell.key} within 3 times its floor: "
        f"{result.ratio:.2f}"
        for result in results
        if result.cell.label == "SOLID" or result.cell.key in WITHIN_THREE
    ]
    for speedup in speedups:
        least = GOALS.get((speedup.name, speedup.size))
        if least:
            lines.append(
                f"{'reached' if speedup.ratio >= least else 'MISSED'}: {speedup.key} at least {least:.0f} "
                f"times as fast as NumPy: {speedup.ratio:.0f}"
            )
        if speedup.name == "LinUCB (rank-one NumPy)":
            lines.append(
                f"{'reached' if speedup.compiled <= 5e-7 else 'MISSED'}: LinUCB {speedup.size} at least "
                f"2,000,000 steps/s: {1 / speedup.compiled:,.0f}, where NumPy does {1 / speedup.plain:,.0f}"
            )
    return lines


def as_json(results: list[Measured], speedups: list[Speedup]) -> str:
    """What the guard compares with, one line per entry so that changes read well."""
    content = {
        "floor": {
            result.cell.key: {
                "ratio": round(result.ratio, 3),
                "us": float(f"{result.time * 1e6:.4g}"),
                "floor_us": float(f"{result.floor * 1e6:.4g}"),
            }
            for result in results
        },
        "numpy": {
            speedup.key: {"ratio": round(speedup.ratio, 2), "us": float(f"{speedup.compiled * 1e6:.4g}")}
            for speedup in speedups
        },
    }
    parts = []
    for part, rows in content.items():
        inner = ",\n".join(f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in rows.items())
        parts.append(f"  {json.dumps(part)}: {{\n{inner}\n  }}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
