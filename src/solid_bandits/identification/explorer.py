"""A search step by step: ask for an arm, say its reward, until the answer is found."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from solid_bandits._internal import checks
from solid_bandits._internal.checks import ArgumentError
from solid_bandits._internal.compiling import jit_apart
from solid_bandits._internal.types import Floats
from solid_bandits.core.setting import check_features
from solid_bandits.identification.contract import Rule, choose
from solid_bandits.identification.even import Even
from solid_bandits.identification.frank_wolfe import FrankWolfe
from solid_bandits.identification.knowledge import (
    Knowledge,
    Told,
    is_found,
    is_preparing,
    make_knowledge,
    most_uncertain,
    statistic,
    take_in,
    threshold,
)
from solid_bandits.identification.lazy_tracking import LazyTrackAndStop
from solid_bandits.identification.lingame import LinGame
from solid_bandits.identification.lingape import LinGapE

RULES: dict[str, type[Rule]] = {
    "lingape": LinGapE,
    "lingame": LinGame,
    "frank-wolfe": FrankWolfe,
    "lazy-track-and-stop": LazyTrackAndStop,
    "even": Even,
}
THRESHOLDS = ("mixture", "heuristic")


@jit_apart
def next_arm(rule: Any, known: Knowledge, context: int) -> int:
    """The arm to pull in a context."""
    return most_uncertain(known, context) if is_preparing(known) else choose(rule, known, context)


@jit_apart
def learn_of(known: Knowledge, context: int, arm: int, reward: float) -> bool:
    """Learn from a reward; say whether the answer is found."""
    take_in(known, context, arm, reward)
    return is_found(known)


@jit_apart
def play(
    rule: Any, known: Knowledge, contexts: Any, means: Floats, noise: Floats, first: int, end: int
) -> tuple[int, bool]:
    """Play rounds `first` to `end` of some that were drawn, or until the answer is found; return where play ended."""
    for t in range(first, end):
        context = contexts[t]
        arm = most_uncertain(known, context) if is_preparing(known) else choose(rule, known, context)
        take_in(known, context, arm, means[context, arm] + noise[t])
        if is_found(known):
            return t + 1, True
    return end, False


class Explorer:
    """A search for the best arm of each context, with your own rewards.

    Args:
        features: of all arms in all contexts, shape (contexts, arms, dim); of one context, shape (arms, dim).
        rule: how arms are chosen, as for `identify`.
        delta: the probability with which the answer may be wrong.
        noise_std: σ: rewards are φᵀθ* plus sub-Gaussian noise of it. For rewards within a range, half of its width
            is never too small.
        threshold: as for `identify`.

    Example:
        >>> import numpy as np
        >>> from solid_bandits import identification
        >>> rng = np.random.default_rng(0)
        >>> search = identification.Explorer(np.eye(3), "lingape", delta=0.05, noise_std=0.5)
        >>> while not search.found:
        ...     arm = search.next()
        ...     search.learn(float(rng.random() < [0.2, 0.8, 0.3][arm]))
        >>> search.arms
        [1]
    """

    def __init__(
        self,
        features: ArrayLike,
        rule: Rule | str = "lazy-track-and-stop",
        *,
        delta: float = 0.05,
        noise_std: float,
        threshold: str = "mixture",
    ) -> None:
        array = np.asarray(features)
        table = check_features(
            "features", array[None] if array.ndim == 2 else array, "contexts", "arms", "dim"
        )
        flat = table.reshape(-1, table.shape[2])
        if np.linalg.matrix_rank(flat) < table.shape[2]:
            raise ArgumentError(
                "features", f"must span all {table.shape[2]} dimensions, so that θ can be learnt"
            )
        if isinstance(rule, str):
            checks.choice("rule", rule, list(RULES))
        elif not isinstance(rule, Rule):
            raise ArgumentError("rule", f"must be a rule or one of {', '.join(RULES)}, got {rule!r}")
        checks.choice("threshold", threshold, THRESHOLDS)
        told = Told(
            checks.number("delta", delta, above=0, below=1),
            checks.number("noise_std", noise_std, above=0),
            threshold == "heuristic",
        )
        self.rule = RULES[rule]() if isinstance(rule, str) else rule
        self.known = make_knowledge(np.ascontiguousarray(table), told)
        self.at_work = self.rule.start(self.known)
        self.found = False
        """Whether the answer is found; more rewards may still be taken in."""
        self._plan_at = 0.0
        self._waiting: tuple[int, int] | None = None

    @property
    def samples(self) -> int:
        """Number of rewards so far."""
        return int(self.known.every.rewards.item())

    @property
    def arms(self) -> list[int]:
        """The arm of each context that is best as far as is known; the answer, once it is found."""
        known = self.known.answer if np.isfinite(self.statistic) else self.known.best
        return [int(arm) for arm in known]

    @property
    def statistic(self) -> float:
        """How much speaks against all alternatives, in units of log-likelihood."""
        return float(statistic(self.known))

    @property
    def threshold(self) -> float:
        """What the statistic has to exceed."""
        return float(threshold(self.known))

    def next(self, context: int = 0) -> int:
        """The arm to pull now, in a context; it waits for its reward."""
        place = checks.index("context", context, len(self.known.features))
        self.prepare()
        arm = int(next_arm(self.at_work, self.known, place))
        self._waiting = place, arm
        return arm

    def learn(self, reward: float) -> None:
        """Take in the reward of the arm that was asked for last."""
        if self._waiting is None:
            raise ValueError("learn must follow next: no arm waits for a reward")
        value = checks.number("reward", reward)
        context, arm = self._waiting
        self._waiting = None
        self.found = bool(learn_of(self.known, context, arm, value))

    def prepare(self) -> float:
        """Plan, where the rule is to plan anew; return the number of rewards at which it will be."""
        if self.samples >= self._plan_at and not is_preparing(self.known):
            self._plan_at = self.rule.plan(self.at_work, self.known)
        elif is_preparing(self.known):
            return self.samples + 1
        return self._plan_at
