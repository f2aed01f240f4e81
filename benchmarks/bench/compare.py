"""The guard: this run compared with the committed one, and with the project's goals."""

import json
from pathlib import Path

from bench.calls import Called
from bench.plain import Speedup
from bench.timing import Measured

PARTS = ("floor", "numpy", "calls")
LIMIT = 0.25
"""Relative worsening of a committed ratio that gives a warning."""
GOALS = {
    ("SOLID exploring", (4, 8, 8)): 60.0,
    ("SOLID exploring", (4, 32, 8)): 25.0,
    ("SOLID searching", (4, 8, 8)): 60.0,
    ("SOLID searching", (4, 32, 8)): 25.0,
}
"""Least speed-up over the plain NumPy reference."""
WITHIN_THREE = [f"{label} any 191,40,65" for label in ("LinUCB", "LinTS", "Greedy")]
"""Cells that should stay within three times their floor, besides all steps of SOLID."""


def regressions(
    committed: dict[str, float], measured: dict[str, float], higher_is_better: bool, limit: float = LIMIT
) -> dict[str, float]:
    """Return name -> factor by which it is worse than committed, if above `limit`; names not committed are new."""
    worse = {}
    for name, value in measured.items():
        if name in committed and committed[name] > 0 and value > 0:
            factor = committed[name] / value if higher_is_better else value / committed[name]
            if factor > 1.0 + limit:
                worse[name] = factor
    return worse


def load(path: Path) -> dict[str, dict[str, float]]:
    """Return the committed ratios; empty if there is no file."""
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {part: {name: row["ratio"] for name, row in content.get(part, {}).items()} for part in PARTS}


def verdict(
    committed: dict[str, dict[str, float]], results: list[Measured], speedups: list[Speedup]
) -> list[str]:
    """Return warnings, and the goals that are not reached."""
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


def verdict_of_calls(committed: dict[str, float], calls: list[Called]) -> list[str]:
    """Return warnings about calls from Python whose time relative to their kernels is larger than committed."""
    ratios = {call.key: call.ratio for call in calls}
    return [
        f"WARNING: {name}: {ratios[name]:.2f} times its kernels, {committed[name]:.2f} when committed "
        f"({factor - 1:+.0%})"
        for name, factor in regressions(committed, ratios, higher_is_better=False).items()
    ]


def goals_of_calls(calls: list[Called]) -> list[str]:
    """Return the project's goals for calls from Python, and whether they are met."""
    lines = []
    for call in calls:
        wanted = []
        small = call.size[1:] == (8, 8)
        if "batches" in call.name:
            wanted.append(("at least as fast as NumPy in batches", call.speed >= 1))
        elif call.name.startswith("Agent"):
            most = 2.5 if small else 1.5
            wanted.append((f"at most {most:g} times its kernels", call.ratio <= most))
            if small:
                wanted.append(("at least 3 times as fast as NumPy", call.speed >= 3))
        elif small and call.name.startswith("Bandit"):
            wanted.append(("at least as fast as NumPy", call.speed >= 1))
        for words, reached in wanted:
            got = f"{call.ratio:.2f} times its kernels, {call.speed:.2f} times as fast as NumPy"
            lines.append(f"{'reached' if reached else 'MISSED'}: {call.key} {words}: {got}")
    return lines


def goals(results: list[Measured], speedups: list[Speedup]) -> list[str]:
    """Return the project's goals for these numbers, and whether they are met."""
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


def as_json(results: list[Measured], speedups: list[Speedup], calls: list[Called]) -> str:
    """Return the numbers that the guard compares with, as JSON with one line per entry, so that changes read well."""
    content: dict[str, dict[str, dict[str, float]]] = {
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
        "calls": rows_of_calls(calls),
    }
    return as_lines(content)


def rows_of_calls(calls: list[Called]) -> dict[str, dict[str, float]]:
    """Return the part of `bench.json` for calls."""
    return {
        call.key: {
            "ratio": round(call.ratio, 3),
            "speed": round(call.speed, 3),
            "us": float(f"{call.time * 1e6:.4g}"),
        }
        for call in calls
    }


def as_lines(content: dict[str, dict[str, dict[str, float]]]) -> str:
    """Return JSON with one line per entry."""
    parts = []
    for part, rows in content.items():
        inner = ",\n".join(f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in rows.items())
        parts.append(f"  {json.dumps(part)}: {{\n{inner}\n  }}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
