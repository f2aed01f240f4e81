"""Logs without probabilities: they are estimated, checked for calibration, and doubted by a stated factor.

The logger is modelled by a conditional logit: arm a has the utility α_a + B_aᵀ[x, x²] + βᵀφ(a), from the context x that
arms share and their own features φ(a), standardised; probabilities are proportional to the exponential of the utility
among the arms on offer. Each row's probabilities come from a fit to the other folds.

No model contains what the logger knew and the log does not. `Estimated.band` says what that could do: in the marginal
sensitivity model (Tan 2006; Zhao, Small and Bhattacharya 2019, arXiv 1711.11286) the odds of the chosen arm may be off
by a factor of Γ either way, so that 1 / g lies between 1 + (1/ĝ - 1) / Γ and 1 + Γ (1/ĝ - 1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.optimize import minimize

from solid_bandits._internal import checks
from solid_bandits._internal.checks import ArgumentError
from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits.ope.models import as_model
from solid_bandits.ope.rows import Reader, Rows
from solid_bandits.ope.targets import as_target
from solid_bandits.ope.terms import collect

RIDGE = 1.0
"""Weight of the squares of B and β, subtracted from the likelihood."""
CERTAIN = 0.995
"""Share of predictable choices from which a logger counts as deterministic."""
BINS = 10
SMALL = 0.01
"""Estimated probability of chosen arms below which a caution is given."""
DETERMINISTIC = (
    "cannot answer: the logger's choice can be foretold in {share:.1%} of the rows, so that it is deterministic and "
    "nothing in the log tells what another arm would have earned"
)


@dataclass(frozen=True)
class Estimated:
    """A log with estimated probabilities.

    Args:
        log: the log with `probabilities` and `probability`, which `evaluate`, `compare` and the others accept.
        calibration: by tenths of the estimated probabilities of all arms: the mean estimate, the share that was chosen,
            its standard error, and the number of rows.
        cautions: warnings to read first.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> rng = np.random.default_rng(0)
        >>> log = {"arm": rng.choice(["a", "b"], p=[0.8, 0.2], size=500), "reward": rng.random(500)}
        >>> found = sb.ope.estimated(log)
        >>> [[round(chance, 1) for chance in sorted(found.log["probabilities"][0])], found.calibration["rows"].sum()]
        [[0.2, 0.8], 1000]
    """

    log: pl.DataFrame
    calibration: pl.DataFrame
    cautions: list[str]

    def band(
        self,
        policy: Any,
        gammas: Sequence[float] = (1.0, 1.2, 1.5, 2.0),
        *,
        confidence: float = 0.95,
        samples: int = 200,
        seed: int = 0,
    ) -> pl.DataFrame:
        """Return, for each Γ, the least and the largest value that the policy could have, and their interval.

        The value is the self-normalised one (`snips`); `least` and `largest` are its extremes over all probabilities
        that Γ allows, and `low` and `high` add the luck of the rows by the percentile bootstrap.

        Args:
            policy: as for `evaluate`.
            gammas: the factors, each >= 1; at 1 the estimated probabilities are true.
            confidence: level of the interval.
            samples: number of bootstrap samples.
            seed: seed of the bootstrap.
        """
        level = checks.number("confidence", confidence, above=0, below=1)
        count = checks.integer("samples", samples, least=1)
        factors = [checks.number("gammas", one, least=1) for one in gammas]
        reader = Reader(self.log)
        asked = {"it": as_target(policy, reader.height)}
        terms = collect(reader, asked, as_model(None), None, True)["it"].terms
        order = np.argsort(terms.reward, kind="stable")
        reward, matched, odds = terms.reward[order], terms.matched[order], (1 / terms.propensity - 1)[order]
        if not matched.any():
            raise ArgumentError("policy", "must choose what was logged in some row")
        rng = np.random.default_rng(seed)
        draws = [
            np.bincount(rng.integers(len(order), size=len(order)), minlength=len(order)) for _ in range(count)
        ]
        rows = []
        for factor in factors:
            ends = np.array(
                [
                    extremes(reward, matched * times, odds, factor)
                    for times in draws
                    if (matched * times).any()
                ]
            )
            least, largest = extremes(reward, matched, odds, factor)
            low = float(np.quantile(ends[:, 0], (1 - level) / 2))
            high = float(np.quantile(ends[:, 1], (1 + level) / 2))
            rows.append((factor, least, largest, min(low, least), max(high, largest)))
        return pl.DataFrame(rows, schema=["gamma", "least", "largest", "low", "high"], orient="row")


def extremes(reward: Floats, matched: Floats, odds: Floats, factor: float) -> tuple[float, float]:
    """Return the extremes of Σ w r / Σ w with w = π (1 + λ (1/ĝ - 1)), 1/Γ <= λ <= Γ; `reward` must ascend.

    At the largest value λ is Γ from some reward on and 1/Γ below, at the least the other way round.
    """
    small, large = matched * (1 + odds / factor), matched * (1 + odds * factor)

    def totals(below: Floats, above: Floats) -> Floats:
        front = np.concatenate([[0.0], np.cumsum(below)])
        back = np.concatenate([np.cumsum(above[::-1])[::-1], [0.0]])
        found: Floats = front + back
        return found

    largest = (totals(small * reward, large * reward) / totals(small, large)).max()
    least = (totals(large * reward, small * reward) / totals(large, small)).min()
    return float(least), float(largest)


def estimated(
    log: Any,
    *,
    folds: int = 5,
    columns: Mapping[str, str] | None = None,
    context: Sequence[str] = (),
    seed: int = 0,
) -> Estimated:
    """Estimate the probabilities of a logger that did not log them.

    Args:
        log: as for `evaluate`; probabilities in it are ignored.
        folds: number of parts of the rows; the probabilities of each come from a fit to the others.
        columns: as for `evaluate`.
        context: as for `evaluate`.
        seed: seed of the folds.

    Raises:
        ValueError: the logger is deterministic, so that no model helps.

    Example:
        >>> import numpy as np
        >>> import solid_bandits as sb
        >>> rng = np.random.default_rng(0)
        >>> age = rng.normal(size=1000)
        >>> arm = (rng.random(1000) < 1 / (1 + np.exp(-age))).astype(int)
        >>> log = {"arm": arm, "reward": 0.5 * arm + 0.1 * rng.normal(size=1000), "age": age}
        >>> found = sb.ope.estimated(log, context=["age"])
        >>> round(sb.ope.evaluate(found.log, "always:1", ["snips"], logger="fixed").value("snips"), 1)
        0.5
        >>> found.band("always:1", [1.0, 2.0]).columns
        ['gamma', 'least', 'largest', 'low', 'high']
    """
    parts = checks.integer("folds", folds, least=2)
    reader = Reader(log, columns, context)
    table = reader.table()
    # All rows at once, with or without a reward, because the choice is known in each.
    whole = Reader(table.with_columns(pl.lit(0.0).alias("reward")), features=reader.features)
    blocks = list(whole.blocks())
    if not blocks or table.height < 2 * parts:
        raise ArgumentError("log", f"must have at least {2 * parts} rows, got {table.height}")
    arms = len(blocks[-1].names)
    width = max(rows.mask.shape[1] for rows in blocks)
    parted = [_offers(rows, width) for rows in blocks]
    offers = _Offers(*(np.concatenate(part) for part in zip(*parted, strict=True)))
    fold = np.random.default_rng(checks.integer("seed", seed, least=0)).permutation(table.height) % parts
    found = np.zeros(offers.mask.shape)
    for part in range(parts):
        inside = fold == part
        found[inside] = _Logit(arms, offers.some(~inside)).probabilities(offers.some(inside))
    every = np.arange(len(found))
    share = float((found.argmax(axis=1) == offers.place).mean())
    if share >= CERTAIN:
        raise ArgumentError("log", DETERMINISTIC.format(share=share))
    chosen = found[every, offers.place]
    counts = offers.mask.sum(axis=1)
    lists = [row[:count].tolist() for row, count in zip(found, counts, strict=True)]
    added = table.with_columns(
        pl.Series("probabilities", lists, dtype=pl.List(pl.Float64)), pl.Series("probability", chosen)
    )
    cautions = [
        "probabilities are estimated: what the logger knew and the log does not say biases every value"
    ]
    small = int((chosen < SMALL).sum())
    if small:
        cautions.append(f"in {small:,} rows the chosen arm has an estimated probability below {SMALL:g}")
    calibration = _calibration(found[offers.mask], (np.arange(width) == offers.place[:, None])[offers.mask])
    off = calibration.filter((pl.col("estimated") - pl.col("chosen")).abs() > 3 * pl.col("standard error"))
    if off.height:
        cautions.append(
            f"in {off.height} of {calibration.height} tenths the estimates are off by more than 3 standard errors: the "
            "model of the logger does not fit"
        )
    return Estimated(added, calibration, cautions)


class _Offers(NamedTuple):
    """Description of rows, with one entry per row in each array."""

    shared: Floats
    """The context and its squares."""
    own: Floats
    """The features of the arms, shape (rows, arms, dim)."""
    codes: Ints
    mask: Bools
    place: Ints

    def some(self, where: Bools) -> "_Offers":
        shared, own, codes, mask, place = self
        return _Offers(shared[where], own[where], codes[where], mask[where], place[where])


def _offers(rows: Rows, width: int) -> _Offers:
    count, more = len(rows.place), width - rows.mask.shape[1]
    shared = np.zeros((count, 0)) if rows.context is None else rows.context
    own = np.zeros((*rows.mask.shape, 0)) if rows.features is None else rows.features
    return _Offers(
        np.hstack([shared, shared**2]),
        np.pad(own, ((0, 0), (0, more), (0, 0))),
        np.pad(rows.codes, ((0, 0), (0, more)), constant_values=-1),
        np.pad(rows.mask, ((0, 0), (0, more))),
        rows.place,
    )


class _Logit:
    """A fitted conditional logit, which maximises the likelihood minus the ridge; constants are not shrunk."""

    def __init__(self, arms: int, offers: _Offers) -> None:
        shared, own, _, mask, _ = offers
        self._arms = arms
        self._shared = _scale(shared)
        self._own = _scale(own[mask])
        self.shape = (arms, 1 + shared.shape[1])
        self.size = arms * (1 + shared.shape[1]) + own.shape[2]
        self.values = self._best(offers)

    def _scaled(self, offers: _Offers) -> tuple[Floats, Floats]:
        shared, own = offers.shared, offers.own
        one = np.ones((len(shared), 1))
        return np.hstack([one, (shared - self._shared[0]) / self._shared[1]]), (
            own - self._own[0]
        ) / self._own[1]

    def _chances(self, values: Floats, described: Floats, own: Floats, codes: Ints, mask: Bools) -> Floats:
        split = self.shape[0] * self.shape[1]
        utility = np.take_along_axis(
            described @ values[:split].reshape(self.shape).T, np.maximum(codes, 0), axis=1
        )
        utility = np.where(mask, utility + own @ values[split:], -np.inf)
        utility -= utility.max(axis=1, keepdims=True)
        chances = np.exp(utility)
        found: Floats = chances / chances.sum(axis=1, keepdims=True)
        return found

    def _best(self, offers: _Offers) -> Floats:
        _, _, codes, mask, place = offers
        described, own = self._scaled(offers)
        every, split = np.arange(len(place)), self.shape[0] * self.shape[1]
        shrunk = np.ones(self.size)
        shrunk[: split : self.shape[1]] = 0.0
        onto = np.zeros((len(place), mask.shape[1], self._arms))
        np.put_along_axis(onto, np.maximum(codes, 0)[:, :, None], mask[:, :, None].astype(np.float64), axis=2)

        def loss(values: Floats) -> tuple[float, Floats]:
            chances = self._chances(values, described, own, codes, mask)
            missing = -chances
            missing[every, place] += 1.0  # for the chosen arm
            by_arm = np.einsum("nk,nka->na", missing, onto)
            gradient = np.concatenate([(by_arm.T @ described).ravel(), np.einsum("nk,nkd->d", missing, own)])
            penalty = shrunk * values
            fit = float(np.log(np.maximum(chances[every, place], 1e-300)).sum())
            return 0.5 * RIDGE * float(penalty @ values) - fit, RIDGE * penalty - gradient

        start = np.zeros(self.size)
        found: Floats = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
        return found

    def probabilities(self, offers: _Offers) -> Floats:
        """Return the probabilities of the arms on offer, shape (rows, arms)."""
        return self._chances(self.values, *self._scaled(offers), offers.codes, offers.mask)


def _scale(values: Floats) -> tuple[Floats, Floats]:
    spread = values.std(axis=0)
    return values.mean(axis=0), np.where(spread > 0, spread, 1.0)


def _calibration(found: Floats, chosen: Bools) -> pl.DataFrame:
    """Return the calibration by tenths of the estimates, or fewer parts if many estimates are equal."""
    cuts = np.unique(np.quantile(found, np.linspace(0, 1, BINS + 1)[1:-1]))
    place = np.searchsorted(cuts, found, side="left")
    rows = []
    for one in np.unique(place):
        inside = place == one
        count, mean = int(inside.sum()), float(found[inside].mean())
        error = float(np.sqrt((found[inside] * (1 - found[inside])).sum())) / count
        rows.append((mean, float(chosen[inside].mean()), error, count))
    return pl.DataFrame(rows, schema=["estimated", "chosen", "standard error", "rows"], orient="row")
