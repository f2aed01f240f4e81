"""Whether a log can tell about a policy: weights, effective sample size, support."""

import math
from typing import Any

import numpy as np

from solid_bandits import _words
from solid_bandits._check import ArgumentError
from solid_bandits._types import Plain
from solid_bandits.live.bandit import Bandit
from solid_bandits.ope.rows import Reader
from solid_bandits.ope.targets import learnt_events
from solid_bandits.ope.terms import Found

SMALL = 100
"""An effective sample size below this wants a word."""


def check_support(found: Found) -> None:
    """Refuse a log whose logger never chose what the policy would."""
    if found.unsupported > 0:
        rows = len(found.terms.reward)
        raise ArgumentError(
            "log",
            f"cannot answer: in {found.unsupported_rows:,} of {rows:,} rows the policy would choose arms that the "
            f"logger gave probability 0, {100 * found.unsupported:.3g}% of its choices; log with a floor, or evaluate "
            "a policy that stays among the logger's arms",
        )


def diagnostics(found: Found) -> Plain:
    """Numbers, by their names."""
    terms = found.terms
    weight, rows = terms.weight, len(terms.weight)
    total, squares = float(weight.sum()), float((weight**2).sum())
    effective = total**2 / squares if squares > 0 else 0.0
    error = float(weight.std()) / math.sqrt(rows)
    quantiles = np.quantile(weight, [0.5, 0.9, 0.99, 0.999])
    largest = np.sort(weight)[-max(rows // 100, 1) :].sum()
    return {
        "rows": rows,
        "rows without a reward, left out": found.left_out,
        "effective sample size": effective,
        "effective share": effective / rows,
        "mean weight": total / rows,
        "standard error of the mean weight": error,
        "weight, median": float(quantiles[0]),
        "weight, 90%": float(quantiles[1]),
        "weight, 99%": float(quantiles[2]),
        "weight, 99.9%": float(quantiles[3]),
        "weight, largest": float(weight.max()),
        "share of the weight in 1% of the rows": float(largest) / total if total > 0 else 0.0,
        "smallest probability of a chosen arm": float(terms.propensity.min()),
        "rows that the policy might have played": float((terms.matched > 0).mean()),
    }


def seen_before(log: Any, policy: Any, reader: Reader) -> list[str]:
    """A word on a policy that is known to have learnt from rewards of this log: a bandit, or an agent of one."""
    owner = log if isinstance(log, Bandit) and policy is log.agent else policy
    known = learnt_events(owner)
    shared = int(reader.rewarded().is_in(list(known)).sum() or 0) if known else 0
    if not shared:
        return []
    return [
        f"the policy has learnt from {_words.count(shared, 'reward')} of this log, at the least: it knows their noise, "
        "and looks better than it is; evaluate it on rows that came later, or a policy of sb.ope.fitted on the rest"
    ]


def cautions(found: Found, numbers: Plain) -> list[str]:
    """What a reader should know before the numbers, in words."""
    said = []
    if found.left_out:
        said.append(
            f"{_words.count(found.left_out, 'decision')} without a reward left out; if they go missing for a reason, "
            "give missing_reward"
        )
    if numbers["effective sample size"] < SMALL:
        said.append(
            f"the weights leave an effective sample of {_words.number(numbers['effective sample size'])} rows: "
            "the policy is far from the logger"
        )
    off = abs(numbers["mean weight"] - 1)
    if off > 4 * numbers["standard error of the mean weight"] and off > 1e-9:
        said.append(
            f"the mean weight is {_words.number(numbers['mean weight'])} instead of 1, by more than 4 standard errors: "
            "the logged probabilities are not those that arms were drawn with, or arms have no support"
        )
    if math.isnan(found.unsupported):
        said.append(
            "the log has the probability of the chosen arm alone: whether the logger could have chosen all that the "
            "policy chooses cannot be checked"
        )
    return said
