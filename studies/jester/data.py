"""What the Jester problems are like, before any policy plays: the numbers and the figure of docs/jester.md.

Usage: python studies/jester/data.py --out DIR [--source FILE]   (about 4 minutes on one core; fits are kept)

The fit's quality for three seeds; for ten runs' problems the ranks, the gaps and the lower bound; the lower bound
against the number of contexts; a short run of each policy, to see that dead units trouble nobody.
"""

import argparse
import math
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import solid_bandits as sb
from solid_bandits.paper import jester

FIT_SEEDS = range(3)
SEEDS = range(10)
FRACTIONS = (0.001, 0.002, 0.003, 0.004, 0.005, 0.007)
TOLERANCE = 1e-3
POLICIES = {
    "SOLID": replace(sb.Solid.paper_random(40), bonus="theorem"),
    "LinUCB": sb.LinUCB(radius="paper"),
    "LinTS (paper)": sb.LinTS(scale="paper"),
    "LinTS (posterior)": sb.LinTS(scale="posterior"),
}


def table(heads, rows):
    """Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def optimal_features(problem):
    """φ*(x), one row for each context."""
    return problem.features[np.arange(problem.n_contexts), problem.optimal_arms]


def second_gaps(problem):
    """For each context, how much worse the second-best arm is."""
    return np.sort(problem.gaps, axis=1)[:, 1]


def rank(vectors):
    """Numerical rank."""
    return int(np.linalg.matrix_rank(vectors.reshape(-1, vectors.shape[-1])))


def greedy_steps(problem):
    """Steps of pulling best arms only that give information 1 against every alternative."""
    best = optimal_features(problem)
    inverse = np.linalg.pinv(best.T @ (best * problem.context_probs[:, None]), hermitian=True)
    apart = best[:, None] - problem.features
    norms = np.einsum("xai,ij,xaj->xa", apart, inverse, apart, optimize=True)
    wrong = problem.gaps > 0
    return float((2 * problem.noise_std**2 * norms[wrong] / problem.gaps[wrong] ** 2).max())


def timed(function, *arguments, **named):
    """The result and the seconds it took."""
    start = time.perf_counter()
    result = function(*arguments, **named)
    return result, time.perf_counter() - start


def everyone(model):
    """For all users: the share of pairs in which each unit is active, and the gap to the second-best arm."""
    active, gaps = np.zeros(model.dim), []
    for users in np.array_split(np.arange(model.n_users), 20):
        problem = model.problem(users)
        active += (problem.features > 0).sum(axis=(0, 1))
        gaps.append(second_gaps(problem))
    return active / (model.n_users * len(model.jokes)), np.concatenate(gaps)


def fits(source):
    """One row for each seed of the fit."""
    for seed in FIT_SEEDS:
        model, seconds = timed(jester.jester_model, source, seed)
        active, gaps = everyone(model)
        problem = jester.jester(source, seed=0, fit_seed=seed)
        yield (
            seed,
            f"{seconds:.1f} s",
            f"{model.rmse:.10f}",
            f"{model.r2_train:.4f}",
            f"{model.r2_held_out:.4f}",
            int((active == 0).sum()),
            rank(problem.features),
            rank(optimal_features(problem)),
            f"{problem.L:.3g}, {problem.B:.3g}",
            f"{gaps.min():.1e}",
            *(f"{np.quantile(gaps, q):.4f}" for q in (0.01, 0.1, 0.5, 0.9)),
        )


def runs(source):
    """One row for each run's problem."""
    for seed in SEEDS:
        problem, built = timed(jester.jester, source, seed=seed)
        bound, seconds = timed(sb.bounds.lower_bound, problem, TOLERANCE)
        soonest = sb.bounds.pure_exploration(problem, TOLERANCE)
        gaps = second_gaps(problem)
        yield (
            seed,
            f"{1e3 * built:.0f} ms",
            rank(problem.features),
            rank(optimal_features(problem)),
            len(np.unique(problem.optimal_arms)),
            f"{gaps.min():.1e}",
            *(f"{np.quantile(gaps, q):.4f}" for q in (0.1, 0.5, 0.9)),
            f"{bound.value:g} in [{bound.lower:g}, {bound.upper:g}]",
            f"{1e3 * seconds:.0f} ms",
            f"{soonest.z_min:.1e}",
            f"{greedy_steps(problem):.1e}",
        )


def sizes(source):
    """One row for each number of contexts, three problems each."""
    for fraction in FRACTIONS:
        problems = [jester.jester(source, users_fraction=fraction, seed=seed) for seed in range(3)]
        answers = [timed(sb.bounds.lower_bound, problem, TOLERANCE) for problem in problems]
        yield (
            fraction,
            problems[0].n_contexts,
            ", ".join(str(rank(optimal_features(problem))) for problem in problems),
            ", ".join(f"{bound.value:.5g}" for bound, _ in answers),
            f"{max((b.upper - b.lower) / b.value if b.value else 0 for b, _ in answers):.0e}",
            f"{1e3 * max(seconds for _, seconds in answers):.0f} ms",
        )


def short_run(source):
    """One row for each policy: 2,000 steps of the first run's problem."""
    problem = jester.jester(source)
    results = sb.simulate(problem, POLICIES, 2000, runs=2, seed=0)
    last = results.table.filter(results.table["step"] == 2000)
    for policy in POLICIES:
        regrets = last.filter(last["policy"] == policy)["regret"].to_numpy()
        if not np.isfinite(regrets).all():
            raise ArithmeticError(f"{policy}: regret {regrets}")
        yield policy, f"{regrets.mean():.0f}", f"{problem.gaps.mean() * 2000:.0f}"


def figure_of(source):
    """Left: gaps of all users and of the runs. Right: singular values of all and of the optimal arms' features."""
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    gaps = np.sort(everyone(jester.jester_model(source))[1])
    share = np.arange(1, len(gaps) + 1) / len(gaps)
    left.plot(gaps, share, color="C0", label=f"all {len(gaps):,} users")
    least = [second_gaps(jester.jester(source, seed=seed)).min() for seed in SEEDS]
    left.plot(
        least, np.full(len(least), 1 / 191), "|", color="C3", ms=10, label=f"least of {len(least)} runs"
    )
    left.set(
        xscale="log", yscale="log", xlabel="gap of the second-best joke", ylabel="share of users with less"
    )
    left.legend(frameon=False, fontsize=8)
    problem = jester.jester(source)
    pairs = problem.n_contexts * problem.n_arms
    for vectors, count, name in (
        (problem.features.reshape(-1, problem.dim), pairs, "all pairs"),
        (optimal_features(problem), problem.n_contexts, "optimal arms"),
    ):
        values = np.linalg.svd(vectors, compute_uv=False) / math.sqrt(count)
        live = values[values > 1e-10]
        right.plot(np.arange(1, len(live) + 1), live, ".-", ms=3, lw=0.8, label=f"{name}: rank {len(live)}")
    right.axvline(problem.dim, color="0.6", dashes=(4, 2))
    right.set(yscale="log", xlabel="index (dashed: d = 65)", ylabel="singular value of the features / √rows")
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main():
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="where the tables and the figure go")
    parser.add_argument(
        "--source", type=Path, help="the ratings, where SOLID_BANDITS_DATA does not name them"
    )
    arguments = parser.parse_args()
    source, out = arguments.source, arguments.out
    out.mkdir(parents=True, exist_ok=True)
    parts = (
        (
            "fit seed, time (kept: load), RMSE, R² train, R² held out, dead units, rank, rank of best, L and B, "
            "least gap, 1%, 10%, 50%, 90%",
            fits,
        ),
        (
            "seed, built in, rank, rank of best, distinct best, least gap, 10%, 50%, 90%, v* and bracket, time, "
            "z_min, greedy steps",
            runs,
        ),
        ("users_fraction, contexts, ranks of best, v*, widest bracket, longest time", sizes),
        ("policy, regret at 2,000, uniform play", short_run),
    )
    text = ""
    for heads, rows in parts:
        block = table(heads.split(", "), list(rows(source)))
        print(block, flush=True)
        text += block + "\n"
    (out / "jester-data.md").write_text(text, encoding="utf-8")
    figure_of(source).savefig(out / "jester-data.png", dpi=200)


if __name__ == "__main__":
    main()
