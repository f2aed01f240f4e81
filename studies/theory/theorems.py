"""The bounds of Theorems 1 and 2 beside measured regret: docs/_tables/theorems-*.md.

Usage: python studies/theory/theorems.py [--runs 10] [--most 1_000_000]
"""

import argparse
from pathlib import Path

import solid_bandits as sb
from solid_bandits._internal.wording import number, plus_minus
from solid_bandits.statistics.intervals import student

TABLES = Path(__file__).parents[2] / "docs" / "_tables"
PROBLEMS = {
    "toy": sb.problems.toy(),
    "random": sb.problems.random(n_arms=4, seed=0),
}
HORIZONS = (1_000, 10_000, 100_000, 1_000_000)
FAR = (1e7, 1e10, 1e20, 1e40, 1e60, 1e100)


def table(heads, rows):
    """Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def short(value):
    """Two digits, as a power of ten where it is large."""
    if value < 1e5:
        return number(float(f"{value:.3g}"))
    digits, power = f"{value:.1e}".split("e")
    return f"{digits}·10{str(int(power)).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def power(n):
    """A horizon as a power of ten."""
    return short(n).replace("1.0·", "") if n >= 1e5 else number(n)


def bounds(problem, n):
    """The cells that do not need runs."""
    multiplier = 2 * problem.B * problem.L * sb.bounds.pure_exploration(problem, tol=1e-4).upper
    first = sb.bounds.regret_bound(problem, n)
    second, zero = (sb.bounds.worst_case_bound(problem, n, one) for one in (multiplier, 0.0))
    return [
        short(first.most),
        short(first.terms["v* c / 2σ²"]),
        *(f"{short(one.value)}{', vacuous' if one.vacuous else ''}" for one in (first, second, zero)),
    ]


def measured(problem, n, runs):
    """Mean regret at the end with its interval, of the form of the theorems and of that of the experiments."""
    multiplier = 2 * problem.B * problem.L * sb.bounds.pure_exploration(problem, tol=1e-4).upper
    policies = {"theory": sb.Solid.theory(multiplier), "experiments": sb.Solid(bonus="theorem")}
    results = sb.simulate(problem, policies, horizon=n, runs=runs, seed=0, jobs=1)
    cells = []
    for label in policies:
        rows = results.table.filter((results.table["policy"] == label) & (results.table["step"] == n))
        found = student(rows["regret"].to_numpy())
        cells.append(plus_minus(found.value, (found.high - found.low) / 2))
    share = results.table.filter((results.table["policy"] == "theory") & (results.table["step"] == n))
    return [*cells, f"{share['explored'].mean() / n:.0%}"]


def turning_points(problem):
    """Where each bound first says something, and where that of Theorem 1 begins to grow with log n."""
    multiplier = 2 * problem.B * problem.L * sb.bounds.pure_exploration(problem, tol=1e-4).upper
    zero = first_power(lambda n: not sb.bounds.worst_case_bound(problem, n, 0.0).vacuous)
    second = first_power(lambda n: not sb.bounds.worst_case_bound(problem, n, multiplier).vacuous)
    first = first_power(lambda n: not sb.bounds.regret_bound(problem, n).vacuous)
    settled = first_power(lambda n: sb.bounds.regret_bound(problem, n).exploring < n)
    return [zero, second, first, settled]


def first_power(holds):
    """The first tenth of a power of ten at which something begins to hold."""
    low, high = 5, 1500
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(10 ** (middle / 10)) else (middle, high)
    return short(10 ** (high / 10))


def main():
    """Play, compute and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--most", type=int, default=1_000_000)
    arguments = parser.parse_args()
    heads = [
        "n",
        "measured, `Solid.theory`",
        "measured, as in the experiments",
        "`Solid.theory` explores",
        "any policy",
        "v\\* c / 2σ²",
    ]
    heads += ["Theorem 1", "Theorem 2", "Theorem 2, λ_max = 0"]
    for name, problem in PROBLEMS.items():
        rows = [
            [power(n), *measured(problem, n, arguments.runs), *bounds(problem, n)]
            for n in HORIZONS
            if n <= arguments.most
        ]
        rows += [[power(n), "", "", "", *bounds(problem, n)] for n in FAR]
        (TABLES / f"theorems-{name}.md").write_text(table(heads, rows), encoding="utf-8")
    rows = [[name, *turning_points(problem)] for name, problem in PROBLEMS.items()]
    heads = ["problem", "Theorem 2, λ_max = 0", "Theorem 2", "Theorem 1", "Theorem 1 grows with log n"]
    (TABLES / "theorems-from.md").write_text(table(heads, rows), encoding="utf-8")
    rows = []
    for name, problem in PROBLEMS.items():
        terms = sb.bounds.regret_bound(problem, 1e6).terms
        rows.append([name, *(short(value) for value in terms.values())])
    (TABLES / "theorems-terms.md").write_text(
        table(["n = 10⁶", *(term.replace("*", r"\*") for term in terms)], rows), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
