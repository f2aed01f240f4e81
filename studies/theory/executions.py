"""(P̃_z), the mismatch and (P̃_α) on the toy: docs/_tables/executions.md.

Usage: python studies/theory/executions.py
"""

from pathlib import Path

import numpy as np

import solid_bandits as sb
from solid_bandits._internal.wording import number

TABLES = Path(__file__).parents[2] / "docs" / "_tables"
PROBS = (0.5, 0.9, 0.99)
ZS = (100, 500, 1_000, 5_000, 10_000, 100_000)


def table(heads, rows):
    """Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def shown(value):
    """Four figures; a dash where there is no such number."""
    return "impossible" if np.isinf(value) else number(value, 4)


def by_context(problem, z):
    """u*(z), infinite below z_min."""
    return (
        np.inf
        if z < sb.bounds.pure_exploration(problem).lower
        else sb.bounds.lower_bound_at(problem, z).value
    )


def row(prob, z):
    """One problem at one z."""
    problem = sb.problems.toy(first_context_prob=prob, noise_std=1.0)
    prescribed = sb.bounds.lower_bound_in_total(problem, z)
    played = sb.bounds.execute(problem, prescribed.allocation)
    return [
        prob,
        f"{z:,}",
        shown(prescribed.value),
        ", ".join(number(one, 3) for one in played.mismatch),
        shown(played.regret),
        number(played.information, 3),
        shown(sb.bounds.best_execution(problem, prescribed.allocation).value),
        shown(by_context(problem, z)),
    ]


def main():
    """Solve and write."""
    heads = [
        "ρ(x₁)",
        "z",
        "(P̃_z)",
        "α_z(x₁), α_z(x₂)",
        "regret as played",
        "information as played",
        "(P̃_α)",
        "(P_z)",
    ]
    rows = [row(prob, z) for prob in PROBS for z in ZS]
    (TABLES / "executions.md").write_text(table(heads, rows), encoding="utf-8")


if __name__ == "__main__":
    main()
