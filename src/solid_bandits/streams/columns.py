"""Meaning of the columns of a table, and their numbers, checked: an error names the column and the row."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np
import polars as pl

from solid_bandits._internal import checks
from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits.core.setting import LARGEST_FEATURE, LARGEST_REWARD
from solid_bandits.streams.encoding import Layout

ARM = "{arm}"
"""Placeholder for an arm's name in a template of column names."""
_NAMES = "names, all text or all whole numbers"
TRUTHS = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}


@dataclass(frozen=True)
class Columns:
    """The meaning of the columns of a table, as a user states it.

    A row is a round if `reward` is a template such as `reward_{arm}`, or if `label` names the column of the right arm;
    it is an arm of a round if `round` names the column that identifies the round.
    """

    reward: str | None = None
    label: str | None = None
    round: str | None = None
    arm: str | None = None
    features: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    available: str | None = None
    event_id: str | None = None
    intercept: bool = True

    def __post_init__(self) -> None:
        for name in ("features", "context"):
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        for name in ("reward", "label", "round", "arm", "available", "event_id"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value):
                raise checks.ArgumentError(name, f"must be the name of a column, got {checks.short(value)}")
        checks.switch("intercept", self.intercept)
        if (self.reward is None) == (self.label is None):
            got = "neither" if self.reward is None else "both"
            raise checks.ArgumentError("reward", f"or label must be given, and not both, got {got}")
        if self.long:
            self._check_long()
        elif self.label is not None:
            self._check_label()
        else:
            self._check_wide()

    @property
    def long(self) -> bool:
        """Whether a row is an arm of a round."""
        return self.round is not None

    def _leave_out(self, reason: str, *names: str) -> None:
        for name in names:
            if getattr(self, name):
                raise checks.ArgumentError(name, f"must be left out where {reason}")

    def _check_long(self) -> None:
        self._leave_out("round is given: give reward", "label")
        if self.context and self.arm is None:
            raise checks.ArgumentError(
                "context", "needs arm: it has coefficients of its own for each arm that has a name"
            )

    def _check_label(self) -> None:
        self._leave_out("label is given: its values are the arms", "arm", "available")
        self._leave_out("label is given: give context", "features")

    def _check_wide(self) -> None:
        if self.arm is not None:
            raise checks.ArgumentError(
                "arm", "needs round, the column that tells rounds apart: a row is then one arm of a round"
            )
        templates = {"reward": (self.reward,), "features": self.features, "available": (self.available,)}
        for name, values in templates.items():
            for value in values:
                if value is not None and value.count(ARM) != 1:
                    raise checks.ArgumentError(
                        name,
                        f"must have {ARM} in it once where a row is a round, such as 'price_{ARM}', got {value!r}; "
                        "or give round, where a row is an arm of a round",
                    )

    def arms_among(self, present: Sequence[str]) -> tuple[str, ...]:
        """Return the arms that name columns of a table, in the order of the columns."""
        assert self.reward is not None
        before, after = self.reward.split(ARM)
        pattern = re.compile(re.escape(before) + "(.+)" + re.escape(after))
        found = [match[1] for name in present if (match := pattern.fullmatch(name))]
        if not found:
            raise checks.ArgumentError(
                "reward", f"must match columns, got {self.reward!r}; there are {_listed(present)}"
            )
        return tuple(found)

    def needed(self, arms: Iterable[str]) -> list[str]:
        """Return the names of all columns that are read."""
        single = [self.round, self.arm, self.label, self.event_id, *self.context]
        by_arm = [self.reward, self.available, *self.features]
        if not self.long and self.label is None:
            by_arm = [one.replace(ARM, arm) for one in by_arm if one is not None for arm in arms]
        return list(dict.fromkeys(one for one in [*single, *by_arm] if one is not None))

    def check_present(self, present: Sequence[str], arms: Iterable[str]) -> None:
        """Raise an error unless all columns are present."""
        for name in self.needed(arms):
            if name not in present:
                near = get_close_matches(name, present, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"column {name!r} is missing; there are {_listed(present)}{hint}")

    def layout(self, n_arms: int) -> Layout:
        """Return the layout of the features of rounds with `n_arms` arms."""
        named = not self.long or self.arm is not None
        layout = Layout(n_arms, len(self.features), len(self.context), named, self.intercept)
        layout.check()
        return layout


def _names(name: str, values: Any) -> tuple[str, ...]:
    # A set is rejected because its order differs between processes.
    if not isinstance(values, str | list | tuple | np.ndarray) or (
        np.ndim(values) == 0 and not isinstance(values, str)
    ):
        raise checks.ArgumentError(name, f"must be a list of names of columns, got {checks.short(values)}")
    given = (values,) if isinstance(values, str) else tuple(values)
    for place, one in enumerate(given):
        if not isinstance(one, str) or not one:
            raise checks.ArgumentError(name, f"must be names of columns, got {checks.short(one)}")
        if one in given[:place]:
            raise checks.ArgumentError(name, f"must name each column once, got {one!r} twice")
    return given


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "") if names else "none"


class Cells:
    """The columns of some consecutive rows.

    Args:
        frame: the rows.
        rows: their numbers in the whole table, for messages.
        text: whether the cells are text that represents numbers, as in a CSV file.

    """

    def __init__(self, frame: pl.DataFrame, rows: Ints, text: bool = False) -> None:
        self.frame, self.rows, self.text = frame, rows, text

    def bad(self, column: str, wrong: Bools, wanted: str) -> ValueError:
        """Return the error for the first row in which something is wrong."""
        place = int(wrong.argmax())
        value = self.frame[column][place]
        value = value.to_list() if isinstance(value, pl.Series) else value
        got = "nothing" if value is None else checks.short(value)
        return ValueError(f"column {column!r} must hold {wanted}, got {got} in row {self.rows[place]}")

    def _floats(self, column: str) -> Floats:
        series = self.frame[column]
        if series.dtype == pl.Object:
            return self._floats_of_objects(column)
        if series.dtype == pl.String and self.text:
            series = series.str.strip_chars().cast(pl.Float64, strict=False)
        elif not (series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null)):
            wrong = series.is_not_null()
            if series.dtype == pl.String:  # a non-number turned the whole column into text; report it first
                wrong &= series.cast(pl.Float64, strict=False).is_null()
            raise self.bad(
                column, wrong.to_numpy() if wrong.any() else series.is_not_null().to_numpy(), "numbers"
            )
        values: Floats = series.cast(pl.Float64).to_numpy()
        return values

    def _floats_of_objects(self, column: str) -> Floats:
        values = self.frame[column].to_list()
        wrong = np.array([one is not None and not isinstance(one, Real | np.bool_) for one in values])
        if wrong.any():
            raise self.bad(column, wrong, "numbers")
        return np.array([np.nan if one is None else _as_float(one) for one in values])

    def numbers(self, column: str, largest: float, needed: Bools | None = None) -> Floats:
        """Return finite numbers of at most this size; 0 where they are not needed."""
        values = self._floats(column)
        with np.errstate(invalid="ignore"):
            wrong = ~(np.abs(values) <= largest)
        if needed is not None:
            wrong &= needed
        if wrong.any():
            raise self.bad(column, wrong, f"finite numbers of at most {largest:g} in size")
        return values if needed is None else np.where(needed, values, 0.0)

    def features(self, column: str, needed: Bools | None = None) -> Floats:
        """Return numbers that are valid as features."""
        return self.numbers(column, LARGEST_FEATURE, needed)

    def rewards(self, column: str, needed: Bools | None = None) -> Floats:
        """Return numbers that are valid as rewards."""
        return self.numbers(column, LARGEST_REWARD, needed)

    def truths(self, column: str) -> Bools:
        """Return truth values from True and False, or 1 and 0."""
        series = self.frame[column]
        if series.dtype == pl.Boolean and series.null_count() == 0:
            flags: Bools = series.to_numpy()
            return flags
        if series.dtype == pl.String and self.text:
            lower = series.str.strip_chars().str.to_lowercase()
            values = (
                lower.replace_strict(TRUTHS, default=None, return_dtype=pl.Boolean)
                .cast(pl.Float64)
                .to_numpy()
            )
        else:
            values = self._floats(column)
        wrong = ~((values == 0.0) | (values == 1.0))
        if wrong.any():
            raise self.bad(column, wrong, "true and false, or 1 and 0")
        return values == 1.0

    def words(self, column: str) -> list[str]:
        """Return names: text, or whole numbers as text."""
        series = self.frame[column]
        if series.dtype == pl.Object:
            return self._words_of_objects(column)
        wrong = series.is_null().to_numpy()
        if wrong.any():
            raise self.bad(column, wrong, "names")
        if series.dtype.is_float():
            values = series.to_numpy()
            with np.errstate(invalid="ignore"):
                wrong = ~((values % 1.0 == 0.0) & (np.abs(values) < 2.0**63))
            if not wrong.any():
                series = series.cast(pl.Int64)
        elif series.dtype == pl.Binary:  # text, if it decodes as text
            series = pl.Series([_decoded(one) for one in series], dtype=pl.String)
            wrong = series.is_null().to_numpy()
        elif series.dtype.is_nested() or series.dtype == pl.Duration:
            wrong = np.ones(len(series), dtype=np.bool_)
        if wrong.any():
            raise self.bad(column, wrong, _NAMES)
        return series.cast(pl.String).to_list()

    def _words_of_objects(self, column: str) -> list[str]:
        values = self.frame[column].to_list()
        kind = str if isinstance(values[0], str) else int
        found = [one if isinstance(one, str) else checks.whole(one) for one in values]
        wrong = np.array([not isinstance(one, kind) for one in found])
        if wrong.any():
            raise self.bad(column, wrong, _NAMES)
        return list(map(str, found))

    def codes(self, column: str, names: dict[str, int]) -> Ints:
        """Return names as their numbers."""
        return np.array([names[one] for one in self.words(column)], dtype=np.int64)


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def order_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return names in order: numerically if all are finite numbers (ties as words), otherwise as words."""
    found = sorted(names)
    try:
        numbers = {name: float(name) for name in found}
    except ValueError:
        return tuple(found)
    if not all(map(math.isfinite, numbers.values())):
        return tuple(found)
    return tuple(sorted(found, key=lambda name: (numbers[name], name)))
