"""Where a run's state is stored on a GPU.

The parts of an agent that may change (its state and its scratch) are arrays of the thread that plays the run: the
hardware interleaves those of neighbouring threads, so that threads in step read neighbouring memory, and the compiler
keeps small ones in registers, because their shapes are constants. The read-only parts (parameters, the table) are in
memory that all threads share. The numbers that a thread starts from come in two rows, one of floats and one of
integers; the rows are the same for all runs, or one per run.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal.types import Floats, Ints, Words

READ_ONLY = ("params", "setting", "table")
"""Parts of an agent that our kernels only read; a user's kernels may write to `params`."""
MOST_BYTES = 512 * 1024
"""Largest size in bytes of a thread's own memory under CUDA."""


class Leaf(NamedTuple):
    """One array or number of an agent."""

    path: str
    """Path of the leaf, such as `state.regression.estimator.triangle`."""
    kind: str
    """`float`, `int`, `bool`, `word` (unsigned) or `rng`, the words of the policy's random numbers."""
    shape: tuple[int, ...] | None
    """Shape of the array; None for a number."""
    own: bool
    """Whether it is in the thread's own memory."""
    place: int
    """Index of its first number in the row of its kind; -1 if it is in neither row."""
    alias: str
    """Path of the leaf whose array this one shares; usually its own path."""


class Layout(NamedTuple):
    """All leaves of one type of agent, in one set of shapes, and the tree that holds them."""

    leaves: tuple[Leaf, ...]
    tree: Any
    """Nested (class, [(field, subtree or None or path), ...])."""
    floats: int
    """Length of the row of floats."""
    ints: int
    """Length of the row of integers."""

    @property
    def own_bytes(self) -> int:
        """Bytes of a thread's own memory."""
        return sum(
            8 * int(np.prod(leaf.shape)) if leaf.shape is not None else 0
            for leaf in self.leaves
            if leaf.own and leaf.alias == leaf.path
        )


class UnfitError(ValueError):
    """Raised for a policy that cannot be played on a GPU."""


def make_layout(name: str, agent: Any, rng: Words | None, ours: bool = True) -> Layout:
    """Return the layout of an agent that draws from `rng`; `name` is the policy's name for messages.

    For a user's policy (not `ours`) each thread has its own parameters too, because its kernels may write anywhere.
    """
    read_only = READ_ONLY if ours else READ_ONLY[1:]
    leaves: list[Leaf] = []
    seen: dict[int, str] = {}
    owns: dict[str, bool] = {}
    lengths = {"float": 0, "int": 0}

    def place(kind: str, size: int) -> int:
        row = "float" if kind == "float" else "int"
        start = lengths[row]
        lengths[row] += size
        return start

    def add(value: Any, path: str, own: bool) -> Any:
        if value is None:
            return None
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            below = [(field, add(getattr(value, field), f"{path}.{field}", own)) for field in value._fields]
            return type(value), below
        if isinstance(value, np.ndarray):
            own = own or value is rng
            alias = seen.setdefault(id(value), path)
            kind = "rng" if value is rng else _kind(name, path, value.dtype)
            if alias != path and owns[alias] != own:
                raise UnfitError(
                    f"{name} cannot be played on a GPU: {path} and {alias} are one array, and one of them is only read"
                )
            owns[path] = own
            if 0 in value.shape[1:]:
                raise UnfitError(f"{name} cannot be played on a GPU: {path} is empty, shape {value.shape}")
            rowed = own and kind != "rng" and alias == path
            start = place(kind, value.size) if rowed else -1
            leaves.append(Leaf(path, kind, value.shape, own, start, alias))
            return path
        if isinstance(value, (bool, int, float, np.generic)):
            kind = _kind(name, path, np.asarray(value).dtype)
            leaves.append(Leaf(path, kind, None, own, place(kind, 1), path))
            return path
        raise UnfitError(
            f"{name} cannot be played on a GPU: {path} must be a number, an array or a named tuple of them, "
            f"got {type(value).__name__}"
        )

    tree = (
        type(agent),
        [(field, add(getattr(agent, field), field, field not in read_only)) for field in agent._fields],
    )
    layout = Layout(tuple(leaves), tree, max(lengths["float"], 1), max(lengths["int"], 1))
    if layout.own_bytes > MOST_BYTES:
        raise UnfitError(
            f"{name} cannot be played on a GPU here: a run needs {layout.own_bytes / 1024:,.0f} kB, at most "
            f"{MOST_BYTES // 1024} kB fit into a thread; play it with device='cpu'"
        )
    return layout


def _kind(name: str, path: str, dtype: np.dtype[Any]) -> str:
    for kind, code in (("bool", "b"), ("int", "i"), ("word", "u"), ("float", "f")):
        if dtype.kind == code and (code == "b" or dtype.itemsize == 8):
            return kind
    raise UnfitError(
        f"{name} cannot be played on a GPU: {path} must be of float64, int64, uint64 or bool; got {dtype}"
    )


def check_apart(name: str, agent: Any, layout: Layout) -> None:
    """Raise an error if arrays overlap in memory: each thread has copies, which would not overlap."""
    spans = sorted(
        (*np.lib.array_utils.byte_bounds(leaf_value(agent, leaf.path)), leaf.path)
        for leaf in layout.leaves
        if leaf.shape is not None and leaf.alias == leaf.path and 0 not in leaf.shape
    )
    for (_, end, path), (begin, _, other) in pairwise(spans):
        if begin < end:
            raise UnfitError(f"{name} cannot be played on a GPU: {path} and {other} share their memory")


def leaf_value(agent: Any, path: str) -> Any:
    """Return the value at a path."""
    for field in path.split("."):
        agent = getattr(agent, field)
    return agent


def write_rows(layout: Layout, agents: Sequence[Any]) -> tuple[Floats, Ints]:
    """Return the numbers that agents start from, one row for each."""
    floats = np.zeros((len(agents), layout.floats))
    ints = np.zeros((len(agents), layout.ints), dtype=np.int64)
    for leaf in layout.leaves:
        if leaf.place < 0:
            continue
        rows = floats if leaf.kind == "float" else ints
        for number, agent in enumerate(agents):
            value = np.asarray(leaf_value(agent, leaf.path))
            value = value.astype(np.int64) if leaf.kind == "word" else value
            rows[number, leaf.place : leaf.place + value.size] = value.reshape(-1)
    return floats, ints


def shared_arrays(layout: Layout, agents: Sequence[Any]) -> list[Any]:
    """Return the read-only arrays, each with one entry per agent along its first axis."""
    return [
        np.ascontiguousarray(np.stack([leaf_value(agent, leaf.path) for agent in agents]))
        for leaf in layout.leaves
        if leaf.shape is not None and not leaf.own and leaf.alias == leaf.path
    ]


def differ_by_rng_only(layout: Layout, agent: Any, other: Any) -> bool:
    """Return whether the agents of two runs differ only in their random numbers."""
    return all(
        leaf.kind == "rng"
        or np.array_equal(np.asarray(leaf_value(agent, leaf.path)), np.asarray(leaf_value(other, leaf.path)))
        for leaf in layout.leaves
    )
