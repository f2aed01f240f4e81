"""What rewards are expected to be: a ridge regression that is walked through the log, so that no row is predicted from
itself or from what came after it. Logs of a policy that learns allow nothing else.
"""

from typing import Any

import numpy as np
import polars as pl

from solid_bandits._check import ArgumentError, short
from solid_bandits._compile import jit_allocating
from solid_bandits._types import Floats, Ints
from solid_bandits.estimation.estimator import Estimator, observe, write_theta
from solid_bandits.ope.rows import Rows
from solid_bandits.ope.targets import by_row, check_lists
from solid_bandits.setting import LARGEST_REWARD

RIDGE = 1.0


class Nothing:
    """The model that expects 0: doubly robust estimates are then those by weights alone."""

    def predict(self, rows: Rows, target: Floats) -> Floats:
        """0 for all."""
        return np.zeros(rows.mask.shape)

    def direct(self) -> float:
        """The direct method's value."""
        return 0.0


class Given:
    """Predictions that were made before: a function of features, or one list per row of the log."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._total, self._count = 0.0, 0

    def predict(self, rows: Rows, target: Floats) -> Floats:
        """What the function or the lists say."""
        found = self._called(rows) if callable(self._model) else by_row("model", "rewards", self._model, rows)
        sound = ((found >= -LARGEST_REWARD) & (found <= LARGEST_REWARD)).all(axis=1)
        if not sound.all():
            row = int((~sound).argmax())
            raise ArgumentError(
                "model",
                f"must give finite rewards of at most {LARGEST_REWARD:g} in size, got "
                f"{short(found[row, : rows.counts[row]].tolist())} in row {rows.where[row]}",
            )
        self._total += float((target * found).sum())
        self._count += len(found)
        return found

    def _called(self, rows: Rows) -> Floats:
        found = np.zeros(rows.mask.shape)
        for row, count in enumerate(rows.counts):
            given = rows.features if rows.features is not None else rows.context
            shown = None if given is None else given[row, :count] if rows.features is not None else given[row]
            values = np.asarray(self._model(shown))
            if values.dtype.kind not in "biuf" or values.shape != (count,):
                raise ArgumentError(
                    "model",
                    f"must give {count} rewards in row {rows.where[row]}, one for each arm, got "
                    f"{short(values.tolist())}",
                )
            found[row, :count] = values
        return found

    def direct(self) -> float:
        """The mean of what it expects of the target."""
        return self._total / self._count


class Walking:
    """Ridge regressions on what describes the arms: one on [features, 1] where arms have features of their own, else
    one for each arm on [context, 1], or on 1 alone.
    """

    def __init__(self, ridge: float = RIDGE) -> None:
        self._ridge = ridge
        self._triangles = np.zeros((0, 0, 0))
        self._weights = self._targets = self._totals = np.zeros((0, 0))
        self._count = 0

    def predict(self, rows: Rows, target: Floats) -> Floats:
        """Predict each row, then take in its reward, row after row."""
        described = rows.features if rows.features is not None else rows.context
        shared = rows.features is None
        width = 1 + (0 if described is None else described.shape[-1])
        self._widen(len(rows.names) if shared else 1, width)
        if described is None:
            described = np.zeros((len(rows.place), 1, 0))
        elif shared:
            described = described[:, None, :]
        found = np.zeros(rows.mask.shape)
        state = (self._triangles, self._weights, self._targets, self._totals)
        walk(*state, described, rows.codes, rows.counts, rows.place, rows.reward, target, found, shared)
        self._count += len(found)
        return found

    def _widen(self, models: int, width: int) -> None:
        have = len(self._weights)
        if have == 0:
            self._triangles = np.zeros((0, width, width))
            self._weights = self._targets = self._totals = np.zeros((0, width))
        if self._weights.shape[1] != width:
            raise ArgumentError("log", "must have features of one dimension")
        more = models - have
        if more > 0:
            eye = np.broadcast_to(np.eye(width), (more, width, width))
            self._triangles = np.concatenate([self._triangles, eye])
            self._weights = np.concatenate([self._weights, np.full((more, width), self._ridge)])
            self._targets = np.concatenate([self._targets, np.zeros((more, width))])
            self._totals = np.concatenate([self._totals, np.zeros((more, width))])

    def direct(self) -> float:
        """The direct method's value, by the models as they are at the end: the target's mean features times θ."""
        thetas = [
            np.linalg.solve(triangle, goal)
            for triangle, goal in zip(self._triangles, self._targets, strict=True)
        ]
        return float((np.array(thetas) * self._totals).sum()) / self._count


Model = Nothing | Given | Walking


def as_model(model: Any, rows: int | None = None) -> Model:
    """What `evaluate` takes for a model; `rows` is the height of the log, where it is known."""
    if model is None:
        return Nothing()
    if isinstance(model, str):
        if model != "linear":
            raise ArgumentError(
                "model", f"must be 'linear', a function, predictions or None, got {short(model)}"
            )
        return Walking()
    if isinstance(model, np.ndarray | pl.Series | list | tuple):
        check_lists("model", model, rows)
    elif not callable(model):
        raise ArgumentError("model", f"must be 'linear', a function, predictions or None, got {short(model)}")
    return Given(model)


@jit_allocating
def walk(
    triangles: Floats,
    weights: Floats,
    goals: Floats,
    totals: Floats,
    described: Floats,
    codes: Ints,
    counts: Ints,
    place: Ints,
    reward: Floats,
    target: Floats,
    found: Floats,
    shared: bool,
) -> None:
    """Write each row's predictions by the models before it, take in its reward, and add up the target's features."""
    width = weights.shape[1]
    theta, row, gains = np.zeros(width), np.zeros(width), np.zeros(width)
    one = np.ones(width)  # its last entry stays: the constant
    number, none = np.array(0.0), np.array(0)
    for i in range(codes.shape[0]):
        for k in range(counts[i]):
            model = codes[i, k] if shared else 0
            for j in range(width - 1):
                one[j] = described[i, 0 if shared else k, j]
            if shared or k == 0:
                kept = Estimator(
                    triangles[model], weights[model], goals[model], number, number, none, number, number
                )
                write_theta(kept, theta)
            value = 0.0
            for j in range(width):
                value += one[j] * theta[j]
                totals[model, j] += target[i, k] * one[j]
            found[i, k] = value
        k = place[i]
        model = codes[i, k] if shared else 0
        for j in range(width - 1):
            one[j] = described[i, 0 if shared else k, j]
        kept = Estimator(triangles[model], weights[model], goals[model], number, number, none, number, number)
        observe(kept, one, reward[i], row, gains)
