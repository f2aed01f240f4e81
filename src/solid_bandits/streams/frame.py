"""A data frame, or arrays of a classification problem, as a stream."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from solid_bandits._internal import checks
from solid_bandits._internal.files import first_line
from solid_bandits._internal.types import Floats, Ints, Plain
from solid_bandits.core.randomness import ENVIRONMENT, seed_sequence
from solid_bandits.core.setting import check_features
from solid_bandits.streams.base import Stream
from solid_bandits.streams.columns import Cells, Columns, order_names
from solid_bandits.streams.encoding import Encoder, Layout, Piece
from solid_bandits.streams.named import Naming, Told, values_needed
from solid_bandits.streams.pieces import read_piece, round_starts
from solid_bandits.streams.rounds import Rounds

LEAST_SHARED = 2**20
"""Number of bytes from which an array is shared between processes instead of copied to each."""


class DataStream(Stream):
    """Rounds in memory, in a new order in each run unless told otherwise.

    Subclasses implement `take`, which returns the rounds of given numbers.
    """

    linear = False
    _folder: Path | None = None

    def __init__(
        self, length: int, layout: Layout, noise_std: float | None, ridge: float, shuffle: bool
    ) -> None:
        layout.check()
        self.layout = layout
        self.length = length
        self.n_arms, self.dim = layout.n_arms, layout.dim
        self.noise_std = None if noise_std is None else checks.positive("noise_std", noise_std)
        self.ridge = checks.positive("ridge", ridge)
        self.shuffle = checks.switch("shuffle", shuffle)
        self.arrays: dict[str, Any] = {}

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Pickle large arrays as file names inside the context, so that processes map a single copy of them."""
        with TemporaryDirectory(prefix="solid-bandits-", ignore_cleanup_errors=True) as folder:
            for name, values in self.arrays.items():
                if values.nbytes >= LEAST_SHARED:
                    np.save(Path(folder) / f"{name}.npy", values)
            self._folder = Path(folder)
            try:
                yield
            finally:
                self._folder = None

    def __getstate__(self) -> Plain:
        """Return everything except the arrays that are shared."""
        if self._folder is None:
            return self.__dict__
        left = {name: one for name, one in self.arrays.items() if one.nbytes < LEAST_SHARED}
        return {**self.__dict__, "arrays": left}

    def __setstate__(self, state: Plain) -> None:
        """Restore the state, mapping shared arrays from the disk."""
        folder = state.pop("_folder", None)
        self.__dict__.update(state)
        for path in folder.glob("*.npy") if folder else ():
            self.arrays[path.stem] = np.load(path, mmap_mode="r")

    def take(self, rows: Ints) -> Piece:
        """Return the rounds with these numbers."""
        raise NotImplementedError

    def blocks(self, seed: int, run: int) -> Iterator[Rounds]:
        """Yield every round once."""
        assert self.length is not None
        order = np.arange(self.length)
        if self.shuffle:
            np.random.Generator(np.random.SFC64(seed_sequence(seed, run, ENVIRONMENT))).shuffle(order)
        return self._in_order(order)

    def every(self) -> Iterator[Rounds]:
        """Yield every round once, in the given order."""
        return self._in_order(np.arange(self.length or 0))

    def _in_order(self, order: Ints) -> Iterator[Rounds]:
        encoder = Encoder(self.layout)
        for first in range(0, len(order), encoder.size):
            yield encoder.encode(self.take(order[first : first + encoder.size]))

    def parameters(self) -> Plain:
        """Return everything that the rounds depend on."""
        return {
            "data": _hash(*self.arrays.values()),
            "layout": list(self.layout),
            "noise_std": self.noise_std,
            "ridge": self.ridge,
            "shuffle": self.shuffle,
        }


class FrameStream(DataStream):
    """Rounds of a data frame."""

    def __init__(
        self,
        piece: Piece,
        arms: tuple[str, ...],
        layout: Layout,
        noise_std: float | None,
        ridge: float,
        shuffle: bool,
        feature_names: list[str],
    ) -> None:
        super().__init__(len(piece.counts), layout, noise_std, ridge, shuffle)
        self.arrays = dict(zip(Piece._fields[:-1], piece[:-1], strict=True))
        self.event_ids = piece.event_ids
        self.arm_names = list(arms) or None
        self.feature_names = feature_names

    def take(self, rows: Ints) -> Piece:
        """Return the rounds with these numbers."""
        return Piece(**self.arrays, event_ids=self.event_ids).at(rows)


class ClassificationStream(DataStream):
    """Rows with one class each: the arms are the classes, and the right one has reward 1."""

    def __init__(
        self, contexts: Floats, right: Ints, names: Sequence[str], intercept: bool, noise_std: float | None,
        ridge: float, shuffle: bool,
    ) -> None:  # fmt: skip
        layout = Layout(len(names), 0, contexts.shape[1], True, intercept)
        super().__init__(len(right), layout, noise_std, ridge, shuffle)
        self.arrays = {"contexts": contexts, "right": right}
        self.arm_names = list(names)
        self.feature_names = layout.names((), [f"X[:, {place}]" for place in range(contexts.shape[1])])

    def take(self, rows: Ints) -> Piece:
        """Return the rounds with these numbers, with rewards made from the classes."""
        count = len(rows)
        rewards = np.zeros((count, self.n_arms))
        rewards[np.arange(count), self.arrays["right"][rows]] = 1.0
        everything = np.ones((count, self.n_arms), dtype=np.bool_)
        counts = np.full(count, self.n_arms, dtype=np.int64)
        return Piece(
            np.zeros((count, self.n_arms, 0)),
            self.arrays["contexts"][rows],
            rewards,
            everything,
            counts,
            rows,
        )


def from_frame(
    frame: Any,
    *,
    reward: str | None = None,
    label: str | None = None,
    round: str | None = None,  # named like the column
    arm: str | None = None,
    features: str | Sequence[str] = (),
    context: str | Sequence[str] = (),
    available: str | None = None,
    event_id: str | None = None,
    intercept: bool = True,
    named: Told | None = None,
    noise_std: float | None = None,
    ridge: float = 1.0,
    shuffle: bool = True,
) -> FrameStream:
    """Return the rounds of a polars or pandas data frame that has the reward of every available arm.

    A row is a round if columns are named after arms: `reward="reward_{arm}"`, `features=["price_{arm}"]`; or if `label`
    names the right arm. A row is an arm of a round if `round` is given, the column that identifies the round.

    Args:
        frame: the data.
        reward: the column of the rewards, or their template.
        label: the column of the right arm's name, which has reward 1; others have 0. Instead of `reward`.
        round: the column that tells rounds apart, where a row is an arm of a round.
        arm: the column of the arms' names, where a row is an arm of a round; None where arms have none.
        features: columns of each arm itself, or their templates; their coefficients are the same for all arms. They are
            numbers that are features already, as those of `context`.
        context: columns of the round; each arm has coefficients of its own for them (joint features).
        available: the column or the template that says which arms may be pulled: True and False, or 1 and 0. Features
            and rewards of other arms may be missing.
        event_id: the column of the rounds' names, for recorded decisions; None uses their numbers.
        intercept: whether each arm also has a constant of its own.
        named: instead of `features` and `context`, columns of values (numbers, words, dates, missing ones) that
            `sb.Features` makes features of, as for live decisions: names of the context, a table of names and types, or
            `sb.Features(...)`. Where a row is a round, an arm's own value `price` is in the column `price_ARM`.
        noise_std: σ, which policies are told; None is that of the residuals of a ridge fit to all rewards.
        ridge: ν of that fit.
        shuffle: whether rounds come in a new order in each run; False keeps the order of the frame.

    Example:
        >>> import polars as pl
        >>> import solid_bandits as sb
        >>> frame = pl.DataFrame({"age": [20, 30, 40], "reward_a": [1, 0, 1], "reward_b": [0, 1, 0]})
        >>> sb.streams.from_frame(frame, reward="reward_{arm}", context="age")
        FrameStream(3 rounds, arms=2, dim=4)
    """
    columns = Columns(reward, label, round, arm, features, context, available, event_id, intercept)  # type: ignore[arg-type]
    found = _columns_of(frame)
    present = list(found)
    by_template = not columns.long and columns.label is None
    arms = columns.arms_among(present) if by_template else ()
    columns.check_present(present, arms)
    needed = columns.needed(arms)
    if named is not None:
        needed = list(dict.fromkeys([*needed, *values_needed(named, columns, arms, present)]))
    _check_once(frame, needed)
    table = _polars(frame, {name: found[name] for name in needed})
    if table.height == 0:
        raise checks.ArgumentError("frame", "must have rows, got none")
    rows = np.arange(table.height)
    if columns.long:
        table, rows = _grouped(table, columns)
    cells = Cells(table, rows)
    with_arms = columns.arm or columns.label
    if with_arms is not None:
        arms = order_names(set(cells.words(with_arms)))
    n_arms = len(arms)
    if columns.round is not None and not arms:
        n_arms = int(np.diff(np.append(round_starts(table[columns.round]), table.height)).max())
    if named is not None:
        naming = Naming(named, columns, arms, not isinstance(frame, pl.DataFrame | pl.LazyFrame))
        piece = naming.piece(cells, naming.take(cells, n_arms))
        return FrameStream(piece, naming.arms, naming.layout, noise_std, ridge, shuffle, naming.feature_names)
    piece = read_piece(columns, arms, n_arms, cells)
    layout = columns.layout(piece.rewards.shape[1])
    names = layout.names(columns.features, columns.context)
    return FrameStream(piece, arms, layout, noise_std, ridge, shuffle, names)


def classification(
    X: ArrayLike,
    y: ArrayLike,
    *,
    intercept: bool = True,
    noise_std: float | None = None,
    ridge: float = 1.0,
    shuffle: bool = True,
) -> ClassificationStream:
    """Return classified rows as rounds: the arms are the classes, and pulling the right one gives 1, any other 0.

    Features are joint ones of context and arm, d = classes * (columns + 1). They are computed when needed; only X and y
    are stored.

    Args:
        X: shape (rows, columns).
        y: the class of each row: text or whole numbers.
        intercept: whether each arm also has a constant of its own.
        noise_std: σ, which policies are told; None uses the residuals of a ridge fit.
        ridge: ν of that fit.
        shuffle: whether rows come in a new order in each run.

    Example:
        >>> import solid_bandits as sb
        >>> sb.streams.classification([[0.0], [1.0], [2.0]], ["low", "low", "high"])
        ClassificationStream(3 rounds, arms=2, dim=4)
    """
    contexts = check_features("X", X, "rows", "columns")
    labels = _labels(y)
    if labels.shape != (len(contexts),):
        raise checks.ArgumentError(
            "y", f"must have shape ({len(contexts)},), one for each row, got {labels.shape}"
        )
    cells = Cells(pl.DataFrame([_series("y", labels)]), np.arange(len(labels)))
    words = cells.words("y")
    names = order_names(set(words))
    place = {name: number for number, name in enumerate(names)}
    right = np.array([place[word] for word in words], dtype=np.int64)
    return ClassificationStream(
        contexts, right, names, checks.switch("intercept", intercept), noise_std, ridge, shuffle
    )


def _grouped(table: pl.DataFrame, columns: Columns) -> tuple[pl.DataFrame, Ints]:
    """Return the rows grouped by round, rounds in order of their first rows, and the rows' numbers."""
    assert columns.round is not None
    names = Cells(table, np.arange(table.height)).words(columns.round)  # raises if one is missing
    if table.schema[columns.round] == pl.Object:  # polars cannot group by objects
        table = table.with_columns(pl.Series(columns.round, names))
    placed = table.with_row_index("\0row").with_columns(
        pl.col("\0row").min().over(columns.round).alias("\0first")
    )
    ordered = placed.sort("\0first", "\0row")
    return ordered.drop("\0row", "\0first"), ordered["\0row"].cast(pl.Int64).to_numpy()


def _columns_of(frame: Any) -> dict[str, Any]:
    """Return names of the columns as text -> as the frame has them."""
    if isinstance(frame, pl.LazyFrame):
        with _collected():
            return {name: name for name in frame.collect_schema().names()}
    try:
        return {str(name): name for name in frame.columns}
    except (AttributeError, TypeError):
        raise checks.ArgumentError(
            "frame", f"must be a data frame of polars or pandas, got {type(frame).__name__}"
        ) from None


@contextmanager
def _collected() -> Iterator[None]:
    """Turn errors of a lazy frame, raised when it is collected, into one line."""
    try:
        yield
    except pl.exceptions.PolarsError as error:
        raise checks.ArgumentError(
            "frame", f"must be a lazy frame that can be collected ({first_line(error)})"
        ) from None


def _check_once(frame: Any, names: Sequence[str]) -> None:
    """Raise an error for duplicate column names, which pandas allows, if one of them is to be read."""
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        return
    present = list(map(str, frame.columns))
    for name in names:
        if present.count(name) > 1:
            raise ValueError(
                f"column {name!r} must be in the frame once, got {present.count(name)} of that name"
            )


def _labels(y: Any) -> Any:
    """Return classes as an array of text, numbers, times, or objects that are checked one by one."""
    try:
        labels = np.asarray(y)
    except ValueError:
        raise checks.ArgumentError(
            "y", f"must be text or whole numbers, one for each row, got {checks.short(y)}"
        ) from None
    if labels.dtype.kind not in "biufUSMO" or isinstance(y, np.ma.MaskedArray):
        got = "masked values" if isinstance(y, np.ma.MaskedArray) else labels.dtype
        raise checks.ArgumentError("y", f"must be text or whole numbers, got {got}")
    return labels.astype(np.float64) if labels.dtype.kind == "f" else labels


def _polars(frame: Any, names: dict[str, Any]) -> pl.DataFrame:
    """Return the columns of these names as polars, whichever library made the frame."""
    if isinstance(frame, pl.LazyFrame):
        with _collected():
            return frame.select(list(names)).collect()
    if isinstance(frame, pl.DataFrame):
        return pl.DataFrame([frame.get_column(name) for name in names])
    return pl.DataFrame([_series(name, frame[given].to_numpy()) for name, given in names.items()])


def _series(name: str, values: Any) -> pl.Series:
    """Return a column of pandas; in one of Python's objects, missing values are None, NaN or pandas' NA."""
    if values.dtype.kind != "O":
        return pl.Series(name, values)
    known = [None if _is_missing(one) else one for one in values]
    try:
        return pl.Series(name, known)
    except (
        TypeError,
        ValueError,
        OverflowError,
        pl.exceptions.PolarsError,
    ):  # mixed types: `Cells` checks each value
        return pl.Series(name, known, dtype=pl.Object)


def _is_missing(value: Any) -> bool:
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _hash(*arrays: Any) -> str:
    digest = hashlib.sha256()
    for one in arrays:
        digest.update(repr((one.shape, one.dtype.str)).encode())
        digest.update(np.ascontiguousarray(one).tobytes())
    return digest.hexdigest()[:16]
