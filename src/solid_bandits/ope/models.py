"""Models of the expected reward. The ridge regression learns row by row, so that no row is predicted from itself or
from later ones: logs of a learning policy permit nothing else.
"""

from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from solid_bandits._internal.checks import ArgumentError, short
from solid_bandits._internal.compiling import jit_allocating
from solid_bandits._internal.types import Floats, Ints
from solid_bandits.core.setting import LARGEST_REWARD
from solid_bandits.estimation.estimator import Estimator, observe, write_theta
from solid_bandits.ope.rows import Rows
from solid_bandits.ope.targets import by_row, check_lists

RIDGE = 1.0


class ZeroModel:
    """The model that expects 0, with which doubly robust estimates use weights alone."""

    def __init__(self) -> None:
        self._sums: dict[str, Any] = {}

    def predict(self, rows: Rows) -> Floats:
        """Return the expected reward of each arm on offer, shape (rows, arms)."""
        return np.zeros(rows.mask.shape)

    def add_policy(self, label: str, rows: Rows, policy: Floats, expected: Floats) -> None:
        """Count a policy's choices in these rows, for the direct method."""
        self._sums[label] = self._sums.get(label, 0.0) + float((policy * expected).sum())

    def direct(self, label: str, count: int) -> float:
        """Return the direct method's value of a policy, after `count` rows."""
        return float(self._sums[label]) / count


class GivenModel(ZeroModel):
    """Predictions made beforehand: a function of features, or one list per row of the log."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._model = model

    def predict(self, rows: Rows) -> Floats:
        """Return the numbers of the function or the lists, checked."""
        found = self._called(rows) if callable(self._model) else by_row("model", "rewards", self._model, rows)
        sound = ((found >= -LARGEST_REWARD) & (found <= LARGEST_REWARD)).all(axis=1)
        if not sound.all():
            row = int((~sound).argmax())
            raise ArgumentError(
                "model",
                f"must give finite rewards of at most {LARGEST_REWARD:g} in size, got "
                f"{short(found[row, : rows.counts[row]].tolist())} in row {rows.where[row]}",
            )
        return found

    def _called(self, rows: Rows) -> Floats:
        found = np.zeros(rows.mask.shape)
        for row, count in enumerate(rows.counts):
            values = np.asarray(self._model(rows.shown(row)))
            if values.dtype.kind not in "biuf" or values.shape != (count,):
                raise ArgumentError(
                    "model",
                    f"must give {count} rewards in row {rows.where[row]}, one for each arm, got "
                    f"{short(values.tolist())}",
                )
            found[row, :count] = values
        return found


class RidgeModel(ZeroModel):
    """Ridge regressions on the description of the arms: one on [features, 1] if arms have their own features, otherwise
    one for each arm on [context, 1], or on 1 alone. Named values are encoded as `logs.with_features` does.
    """

    def __init__(self) -> None:
        super().__init__()
        self._triangles = np.zeros((0, 0, 0))
        self._weights = self._targets = np.zeros((0, 0))

    def predict(self, rows: Rows) -> Floats:
        """Predict each row, then learn its reward, row after row."""
        shared = rows.features is None
        described = _described(rows)
        self._widen(len(rows.names) if shared else 1, 1 + described.shape[-1])
        found = np.zeros(rows.mask.shape)
        state = (self._triangles, self._weights, self._targets)
        predict_in_order(*state, described, rows.codes, rows.counts, rows.place, rows.reward, found, shared)
        return found

    def _widen(self, models: int, width: int) -> None:
        have = len(self._weights)
        if have == 0:
            self._triangles = np.zeros((0, width, width))
            self._weights = self._targets = np.zeros((0, width))
        if self._weights.shape[1] != width:
            raise ArgumentError("log", "must have features of one dimension")
        more = max(models - have, 0)
        eye = np.broadcast_to(np.eye(width), (more, width, width))
        self._triangles = np.concatenate([self._triangles, eye])
        self._weights = np.concatenate([self._weights, np.full((more, width), RIDGE)])
        self._targets = np.concatenate([self._targets, np.zeros((more, width))])

    def add_policy(self, label: str, rows: Rows, policy: Floats, expected: Floats) -> None:
        """Add the features of the arms that the policy would choose; each model has its own sums."""
        described = _described(rows)
        if rows.features is not None:
            arms = policy[..., None] * described
            found = np.append(arms.sum(axis=(0, 1)), policy.sum())[None]
        else:
            row = np.nonzero(rows.mask)[0]
            weights = csr_array(
                (policy[rows.mask], (rows.codes[rows.mask], row)), (len(rows.names), len(policy))
            )
            found = weights @ np.hstack([described[:, 0], np.ones((len(policy), 1))])
        before = self._sums.get(label, found[:0])
        self._sums[label] = found + np.pad(before, ((0, len(found) - len(before)), (0, 0)))  # new arms

    def direct(self, label: str, count: int) -> float:
        """Return the value under the final models: the mean of the features of the chosen arms, times θ."""
        thetas = [
            np.linalg.solve(triangle, goal)
            for triangle, goal in zip(self._triangles, self._targets, strict=True)
        ]
        return float((np.array(thetas) * self._sums[label]).sum()) / count


def _described(rows: Rows) -> Floats:
    """Return the features of the arms, shape (rows, arms, dim); of one arm if all share a context."""
    if rows.features is not None:
        return rows.features
    return np.zeros((len(rows.place), 1, 0)) if rows.context is None else rows.context[:, None, :]


Model = ZeroModel


def as_model(model: Any, rows: int | None = None) -> Model:
    """Return the model that an argument of `evaluate` denotes; `rows` is the height of the log, if known."""
    if model is None:
        return ZeroModel()
    if isinstance(model, str) and model == "linear":
        return RidgeModel()
    if isinstance(model, np.ndarray | pl.Series | list | tuple):
        check_lists("model", model, rows)
    elif not callable(model):
        raise ArgumentError("model", f"must be 'linear', a function, predictions or None, got {short(model)}")
    return GivenModel(model)


@jit_allocating
def predict_in_order(
    triangles: Floats,
    weights: Floats,
    goals: Floats,
    described: Floats,
    codes: Ints,
    counts: Ints,
    place: Ints,
    reward: Floats,
    found: Floats,
    shared: bool,
) -> None:
    """Write each row's predictions by the models before it, then learn its reward."""
    width = weights.shape[1]
    theta, row, gains = np.zeros(width), np.zeros(width), np.zeros(width)
    one = np.ones(width)  # its last entry is always the constant
    number = np.array(0.0)
    sums = number, number, np.array(0), number, number, number  # unused
    for i in range(codes.shape[0]):
        for k in range(counts[i]):
            model = codes[i, k] if shared else 0
            for j in range(width - 1):
                one[j] = described[i, 0 if shared else k, j]
            if shared or k == 0:
                kept = Estimator(triangles[model], weights[model], goals[model], *sums)
                write_theta(kept, theta)
            value = 0.0
            for j in range(width):
                value += one[j] * theta[j]
            found[i, k] = value
        k = place[i]
        model = codes[i, k] if shared else 0
        for j in range(width - 1):
            one[j] = described[i, 0 if shared else k, j]
        kept = Estimator(triangles[model], weights[model], goals[model], *sums)
        observe(kept, one, reward[i], row, gains)
