"""Attack the certified brackets: exact rational arithmetic against every claim of the lower bound's programs.

Run: python attacks/brackets.py [--count 6000] [--seed 0]

Draws problems of many kinds, asks `lower_bound`, `pure_exploration` and `lower_bound_at`, and recomputes in fractions
what the evidence inside each answer proves: spans, projections, gaps, information and prices, without rounding. An
answer is refuted if its allocation or policy is infeasible by however little or costs more than `upper`, or if its
alternatives prove less than `lower`. (With bounded alternatives feasibility has no closed form: an answer is refuted if
an alternative with too little information is found, and confirmed exactly.) A refusal is a ValueError; refusals are
counted by reason. Exit status 1 if any answer is refuted.
"""

import argparse
import re
import sys
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from counted import show

import solid_bandits as sb
from exact import null_space, rational, reduced, solve

ZERO = Fraction(0)


class Referee:
    """A problem in fractions."""

    def __init__(self, problem: sb.Problem) -> None:
        self.problem = problem
        self.features = rational(problem.features).reshape(-1, problem.dim)
        self.theta = rational(problem.theta)
        self.probs = rational(problem.context_probs)
        self.variance = Fraction(problem.noise_std) ** 2
        shape = problem.n_contexts, problem.n_arms
        means = (self.features @ self.theta).reshape(shape)
        self.best = np.array([max(range(shape[1]), key=lambda a, x=x: means[x, a]) for x in range(shape[0])])
        top = means[np.arange(shape[0]), self.best]
        self.gaps = (top[:, None] - means).ravel()
        self.optimal = np.arange(shape[0]) * shape[1] + self.best
        self.others = np.setdiff1d(np.arange(shape[0] * shape[1]), self.optimal)
        self.tied = any(self.gaps[i] == 0 for i in self.others)
        self.ball = None if problem.theta_bound is None else Fraction(problem.theta_bound) ** 2

    def flaws(self, answer) -> list[str]:
        """Return the flaws of an answer; empty if every claim holds."""
        if self.tied:
            return ["an exact tie was not seen"]
        if isinstance(answer, sb.bounds.LowerBound):
            return self.free(answer)
        whole = np.array(
            [[Fraction(int(i == j)) for j in range(self.problem.dim)] for i in range(self.problem.dim)]
        )
        lengths = [rational(answer.policy).sum(axis=1), np.full(len(self.probs), Fraction(1))]
        found = []
        z = Fraction(answer.upper if isinstance(answer, sb.bounds.PureExploration) else answer.z)
        # Both the policy as it is, and its rows divided by their sums.
        for sums in lengths:
            policy = rational(answer.policy) / sums[:, None]
            pulls = ((z * self.probs)[:, None] * policy).ravel()
            if any(value < 0 for value in pulls):
                found.append("the policy is negative")
            if self.short(pulls, whole):
                found.append("the policy is infeasible")
            if isinstance(answer, sb.bounds.LowerBoundAt) and (pulls * self.gaps).sum() > answer.upper:
                found.append("the policy costs more than upper")
        weights, means = self.prices(answer.alternatives, whole)
        prices = (
            (means**2 @ weights / (2 * self.variance)).reshape(answer.policy.shape) if len(weights) else None
        )
        total = weights.sum() if len(weights) else ZERO
        proven = ZERO
        if prices is not None and isinstance(answer, sb.bounds.LowerBoundAt):
            gaps = self.gaps.reshape(prices.shape)
            proven = total + z * (self.probs * (gaps - prices).min(axis=1)).sum()
        elif prices is not None and total > 0:
            proven = total / (self.probs * prices.max(axis=1)).sum()
        if answer.lower > max(proven, ZERO):
            found.append("the alternatives prove less than lower")
        return found

    def free(self, answer) -> list[str]:
        """Return the flaws of an answer to (P)."""
        space = null_space([self.features[i] for i in self.optimal], self.problem.dim)
        pulls = rational(answer.allocation).ravel()
        found = []
        if any(value < 0 for value in pulls):
            found.append("the allocation is negative")
        if self.short(pulls, space):
            found.append("the allocation is infeasible")
        if (pulls * self.gaps).sum() > answer.upper:
            found.append("the allocation costs more than upper")
        weights, means = self.prices(answer.alternatives, space)
        proven = ZERO
        if len(weights) and weights.sum() > 0:
            price = max((means[i] ** 2 @ weights) / self.gaps[i] for i in self.others)
            proven = 2 * self.variance * weights.sum() / price
        if answer.lower > proven:
            found.append("the alternatives prove less than lower")
        return found

    def short(self, pulls, space) -> bool:
        """Return whether some alternative θ - θ' in the space gets less information than 1."""
        spread = self.features @ space if space.shape[1] else np.zeros((len(self.features), 0), dtype=object)
        _, pivots = reduced(spread)
        if not pivots:
            return False
        if self.ball is not None:
            return self.short_in_ball(pulls, space)
        spread = spread[:, pivots]
        matrix = sum((pulls[i] * np.outer(spread[i], spread[i]) for i in np.flatnonzero(pulls > 0)), ZERO)
        if np.ndim(matrix) == 0 or len(reduced(matrix)[1]) < len(pivots):
            return any(any(value != 0 for value in spread[i]) for i in self.others)
        count = self.problem.n_arms
        normals = np.array([spread[self.optimal[i // count]] - spread[i] for i in self.others]).T
        squares = (normals * solve(matrix, normals)).sum(axis=0)
        return any(
            self.gaps[i] ** 2 < 2 * self.variance * square
            for i, square in zip(self.others, squares, strict=True)
        )

    def short_in_ball(self, pulls, space) -> bool:
        """Return whether a search in floats finds an alternative that has, checked exactly, less information than 1."""
        basis = np.linalg.qr(space.astype(float))[0]
        theta, count = self.theta.astype(float), self.problem.n_arms
        centre = basis.T @ theta
        known = theta - basis @ centre
        radius = np.sqrt(max(float(self.ball) - known @ known, 0.0))
        rows = self.features.astype(float) @ basis
        weights = pulls.astype(float)
        matrix = (rows.T * weights) @ rows
        eigenvalues, axes = np.linalg.eigh(matrix)
        exact = rational(basis)
        for i in self.others:
            normal = (rows[self.optimal[i // count]] - rows[i]) / float(self.gaps[i])
            if not normal @ centre + radius * np.linalg.norm(normal) > 1:
                continue
            end = centre + radius * normal / np.linalg.norm(normal)
            v, c = axes.T @ normal, axes.T @ centre
            beta = axes @ _closest(v, c, np.maximum(eigenvalues, 1e-14 * eigenvalues[-1]), radius)
            if not np.isfinite(beta).all() or ((rows @ beta) ** 2) @ weights > 2.1 * float(self.variance):
                continue
            for step in (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-10):
                shift = self.projected(exact @ rational(beta + step * (end - beta)), space)
                means = self.features @ shift
                if means[self.optimal[i // count]] - means[i] < self.gaps[i]:
                    continue
                if ((self.theta - shift) ** 2).sum() <= self.ball:
                    if (pulls * means**2).sum() < 2 * self.variance:
                        return True
                    break
        return False

    def projected(self, shift, space):
        """Return the projection of a vector on the space."""
        return space @ solve(space.T @ space, space.T @ shift) if space.shape[1] else 0 * shift

    def prices(self, alternatives, space):
        """Return the weights of valid alternatives, and their change of each mean, shape (pairs, alternatives)."""
        weights, columns = [], []
        for j, weight in enumerate(rational(alternatives.weights)):
            pair = int(alternatives.contexts[j]) * self.problem.n_arms + int(alternatives.arms[j])
            shift = rational(alternatives.shifts[j])
            if space.shape[1] < len(shift):
                shift = self.projected(shift, space)
            means = self.features @ shift
            ahead = means[self.optimal[int(alternatives.contexts[j])]] - means[pair]
            if ahead <= 0 or weight < 0:
                continue
            factor = self.gaps[pair] / ahead
            if self.ball is not None and ((self.theta - factor * shift) ** 2).sum() > self.ball:
                continue
            weights.append(weight)
            columns.append(factor * means)
        return np.array(weights, dtype=object), np.array(columns, dtype=object).T


@np.errstate(all="ignore")
def _closest(v, centre, eigenvalues, radius):
    """Minimise Σ eigenvalue β² with vᵀβ >= 1 and ‖centre - β‖ <= radius, by bisection for the ball's multiplier."""

    def at(kappa):
        weight = 1 / (eigenvalues + kappa)
        return (kappa * centre + (1 - kappa * (centre * v) @ weight) / (v * v @ weight) * v) * weight

    if np.linalg.norm(centre - at(0.0)) <= radius:
        return at(0.0)
    low, high = np.log(eigenvalues[-1]) - 80, np.log(eigenvalues[-1]) + 40
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.linalg.norm(centre - at(np.exp(middle))) > radius else (low, middle)
    return at(np.exp(high))


def _shape(rng):
    return int(rng.integers(1, 4)), int(rng.integers(2, 6)), int(rng.integers(1, 6))


def plain(rng):
    """Draw Gaussian features."""
    shape = _shape(rng)
    return {"features": rng.normal(size=shape), "theta": rng.normal(size=shape[2])}


def near_dependent(rng):
    """Draw features with fewer directions than coordinates, plus small deviations."""
    shape = _shape(rng)
    few = int(rng.integers(1, shape[2] + 1))
    features = rng.normal(size=(*shape[:2], few)) @ rng.normal(size=(few, shape[2]))
    return {
        "features": features + 10.0 ** rng.uniform(-18, -4) * rng.normal(size=shape),
        "theta": rng.normal(size=shape[2]),
    }


def near_span(rng):
    """Draw arms that are almost combinations of the optimal ones."""
    made = plain(rng)
    features, theta = made["features"], made["theta"]
    best = features[np.arange(len(features)), (features @ theta).argmax(axis=1)]
    chosen = rng.random(features.shape[:2]) < 0.6
    inside = rng.uniform(-0.7, 0.7, size=(*features.shape[:2], len(best))) @ best
    inside += 10.0 ** rng.uniform(-18, -4) * rng.normal(size=features.shape)
    return {"features": np.where(chosen[..., None], inside, features), "theta": theta}


def parallel(rng):
    """Draw arms that almost lie on a line in the plane."""
    slope = rng.normal(size=2)
    lengths = rng.normal(size=(1, int(rng.integers(2, 6)), 1))
    features = lengths * slope + 10.0 ** rng.uniform(-17, -6) * rng.normal(size=(*lengths.shape[:2], 2))
    return {"features": features, "theta": rng.normal(size=2)}


def scaled(rng):
    """Draw a problem of any other kind, in other units."""
    made = KINDS[str(rng.choice([name for name in KINDS if name not in ("scaled", "bounded")]))](rng)
    made["features"] = made["features"] * 10.0 ** rng.choice([-100.0, -50.0, -7.0, 7.0, 50.0, 100.0])
    made["theta"] = made["theta"] * 10.0 ** rng.choice([-50.0, -7.0, 0.0, 7.0, 50.0])
    return {**made, "noise_std": 10.0 ** rng.choice([-20.0, -3.0, 0.0, 3.0, 20.0])}


def uneven(rng):
    """Draw rows and coordinates of very different sizes."""
    shape = _shape(rng)
    features = rng.normal(size=shape) * 10.0 ** rng.uniform(-5, 5, size=(*shape[:2], 1))
    factors = 10.0 ** rng.uniform(-8, 8, size=shape[2])
    return {
        "features": features * factors,
        "theta": rng.normal(size=shape[2]) / factors,
        "noise_std": 10 ** rng.uniform(-2, 2),
    }


def degenerate(rng):
    """Draw small integers of low rank, some divided by ten."""
    shape = _shape(rng)
    few = int(rng.integers(1, shape[2] + 1))
    features = rng.integers(-3, 4, size=(*shape[:2], few)) @ rng.integers(-3, 4, size=(few, shape[2]))
    return {"features": features * rng.choice([1.0, 0.125, 0.1]), "theta": rng.normal(size=shape[2])}


def ties(rng):
    """Draw small integers, tied exactly or up to rounding."""
    shape = _shape(rng)
    unit = rng.choice([1.0, 0.1, 0.3])
    theta = rng.integers(-4, 5, size=shape[2]) * rng.choice([1.0, 0.1])
    return {"features": rng.integers(-2, 3, size=shape) * unit, "theta": theta + 0.0}


def duplicates(rng):
    """Draw arms that are copies or multiples of others, in the same context or another."""
    made = plain(rng)
    features = made["features"]
    table = features.reshape(-1, features.shape[2])
    for i in range(len(table)):
        if rng.random() < 0.5:
            table[i] = table[rng.integers(len(table))] * rng.choice([1.0, 0.5, 0.25, -1.0, 0.3])
    return made


def close_gaps(rng):
    """Draw means that are almost equal."""
    made = plain(rng)
    features, theta = made["features"], made["theta"]
    flat = features - (features @ theta)[..., None] * theta / (theta @ theta)
    return {"features": flat + 10.0 ** rng.uniform(-14, -2) * features + theta, "theta": theta}


def bounded(rng):
    """Draw a problem with a bound on the parameters of alternatives."""
    made = (plain, plain, near_dependent, degenerate, duplicates)[rng.integers(5)](rng)
    stretch = rng.choice([1.0, 1 + 1e-6, 1.02, 1.3, 4.0])
    made["features"] = made["features"] * rng.choice([1e-50, 1.0, 1.0, 1e27])
    return {**made, "theta_bound": stretch * float(np.linalg.norm(made["theta"]))}


KINDS = {
    kind.__name__: kind
    for kind in (
        plain, near_dependent, near_span, parallel, scaled, uneven, degenerate, ties, duplicates, close_gaps, bounded,
    )
}  # fmt: skip


def draw(kind: str, seed: int, number: int) -> sb.Problem:
    """Return problem `number` of a kind."""
    rng = np.random.default_rng([seed, number])
    made = KINDS[kind](rng)
    count = len(made["features"])
    if rng.random() < 0.5:
        probs = rng.dirichlet(np.ones(count)) + 1e-3
        made["context_probs"] = probs / probs.sum()
    return sb.Problem(**made)


def _plain_reason(error: ValueError) -> str:
    return re.sub(r"[-+]?\d[\d.e+-]*", "#", str(error))[:90]


def _tolerance(number: int) -> float:
    return (1e-6, 1e-6, 1e-9, 1e-3)[number % 7 % 4]


def answers(problem: sb.Problem, number: int):
    """Yield every program's answer, or the reason why there is none."""

    def ask(call):
        try:
            return call()
        except ValueError as error:
            return _plain_reason(error)

    tol = _tolerance(number)
    pure = ask(lambda: sb.bounds.pure_exploration(problem, tol))
    yield "lower_bound", ask(lambda: sb.bounds.lower_bound(problem, tol))
    yield "pure_exploration", pure
    if not isinstance(pure, str):
        z = (1.0001, 1.5, 3.0, 1e3)[number % 4] * (pure.upper or 1.0)
        yield "lower_bound_at", ask(lambda: sb.bounds.lower_bound_at(problem, z, tol))


def attack(count: int, seed: int) -> tuple[Counter, Counter, list[str], dict[str, list[float]]]:
    """Return counts of answers by (kind, program), reasons of refusals, the flaws found, and widths of brackets."""
    tally, reasons, found = Counter(), Counter(), []
    widths: dict[str, list[float]] = {}
    names = list(KINDS)
    for number in range(count):
        kind = names[number % len(names)]
        try:
            problem = draw(kind, seed, number)
        except ValueError as error:
            reasons["Problem: " + _plain_reason(error)] += 1
            continue
        referee = Referee(problem)
        for program, answer in answers(problem, number):
            tally[kind, program, "tried"] += 1
            if isinstance(answer, str):
                tally[kind, program, "refused"] += 1
                reasons[answer] += 1
                continue
            flaws = referee.flaws(answer)
            if flaws:
                tally[kind, program, "refuted"] += 1
                found.append(f"{kind} {number} {program}: {'; '.join(flaws)}")
            tally[kind, program, "wide"] += not answer.converged
            if answer.upper > 0 and _tolerance(number) == 1e-6:
                widths.setdefault(kind, []).append((answer.upper - answer.lower) / answer.upper)
    return tally, reasons, found, widths


def main() -> None:
    """Attack, print the tables, exit with 1 if anything was refuted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=6000, help="problems to draw")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    began = time.monotonic()
    tally, reasons, found, widths = attack(given.count, given.seed)
    print(f"{'kind':16}{'program':18}{'tried':>8}{'refused':>9}{'refuted':>9}")
    for kind, program in dict.fromkeys((kind, program) for kind, program, _ in tally):
        counts = [tally[kind, program, what] for what in ("tried", "refused", "refuted")]
        print(f"{kind:16}{program:18}{counts[0]:8}{counts[1]:9}{counts[2]:9}")
    totals = [
        sum(n for key, n in tally.items() if key[2] == what) for what in ("tried", "refused", "refuted")
    ]
    print(f"{'all':34}{totals[0]:8}{totals[1]:9}{totals[2]:9}")
    print(f"wider than asked for: {sum(n for key, n in tally.items() if key[2] == 'wide')}")
    print("\nrelative widths of the brackets asked for to 1e-6: median, 90%, largest, share over 1e-6")
    for kind, values in widths.items():
        middle, high, most = np.quantile(values, [0.5, 0.9, 1.0])
        print(f"{kind:16}{middle:9.1e}{high:9.1e}{most:9.1e}{np.mean(np.array(values) > 1e-6):8.3f}")
    print("\nrefused because")
    for reason, times in reasons.most_common():
        print(f"{times:6}  {reason}")
    if found:
        print("\nrefuted")
        print("\n".join(found))
    print()
    words = f"brackets of {given.count:,} problems against fractions ({totals[1]:,} refused)"
    show(words, totals[0], totals[2], given.seed, began)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
