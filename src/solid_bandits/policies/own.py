"""Validate a user's kernels, and report errors with the user's line."""

# mypy: allow-untyped-calls

import inspect
import linecache
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.errors import NumbaError

from solid_bandits._internal.checks import short
from solid_bandits._internal.compiling import Kernel
from solid_bandits._internal.types import Bools, Floats
from solid_bandits.estimation.regression import fits, is_regression

_OURS = (Path(__file__).parents[1], Path(numba.__file__).parent)
_PLACE = re.compile(r" at (?P<file>\S[^\n]*?) \((?P<line>\d+)\)")
_CALL = re.compile(r"^Cannot bind .* to signature '(?P<names>.*)' due to \"TypeError: (?P<why>.*)\"")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class OwnPolicyError(ValueError):
    """Raised for a user's policy that does not follow the contract."""


def is_distribution(probabilities: Floats, available: Bools) -> bool:
    """Return whether these are probabilities of the available arms."""
    sums = bool((probabilities >= 0).all() and abs(probabilities.sum() - 1) <= 1e-9)
    return sums and not probabilities[~available].any()


def check_agent(policy: str, agent: Any, plans: bool) -> None:
    """Raise an error for an agent that compiled code cannot take, or whose state could not be carried between steps."""
    if not _is_named_tuple(agent):
        raise OwnPolicyError(
            f"{policy}.start must return a named tuple of numbers and arrays, got {short(agent)}"
        )
    if not _is_named_tuple(getattr(agent, "state", None)):
        raise OwnPolicyError(
            f"{policy}.start must return an agent with a field `state`, a named tuple of arrays, got {short(agent)}"
        )
    if plans != hasattr(agent, "table"):
        wanted = "with a field `table`" if plans else "without a field `table`, which table policies have"
        raise OwnPolicyError(f"{policy}.start must return an agent {wanted}, got {short(agent)}")
    _check_parts(policy, agent, "")


def check_regression(policy: str, agent: Any, dim: int, kernels: Any, half_life: float | None) -> None:
    """Raise an error for a regression of the wrong dimension, or an `update` that would not know the age of
    decisions.
    """
    for value in agent.state:
        if is_regression(value) and not fits(value, dim):
            raise OwnPolicyError(
                f"{policy}.start must return a regression of dim {dim}; make it with the setting given"
            )
    if half_life is not None and kernels.update is not None:
        raise OwnPolicyError(
            f"{policy} must have no kernel `update` with a half_life: a late reward has the weight of its decision, "
            "which only the regression's own update knows"
        )


def _check_parts(policy: str, parts: Any, path: str) -> None:
    for name, value in parts._asdict().items():
        where = f"{path}{name}"
        if is_regression(value):
            continue
        if _is_named_tuple(value):
            _check_parts(policy, value, f"{where}.")
            continue
        array = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
        if path.startswith("state") and not array:
            raise OwnPolicyError(
                f"{policy}.start must return arrays of numbers in `state`, got {short(value)} as {where}; a number "
                "that changes is np.array(0.0)"
            )
        if not (array or isinstance(value, bool | int | float | np.generic | tuple | None)):
            raise OwnPolicyError(
                f"{policy}.start must return a named tuple of numbers and arrays, got {short(value)} as {where}"
            )


def check_like(policy: str, agent: Any, usual: Any, path: str = "") -> None:
    """Raise an error unless an agent for our kernels has arrays of the sizes, and counts of the values, of the usual
    one.
    """
    if type(agent) is not type(usual):
        where = f" as {path}" if path else ""
        raise OwnPolicyError(
            f"{policy}.start must return an agent that fits the kernels of {type(usual).__name__}, got "
            f"{short(agent)}{where}; give kernels of its own"
        )
    if isinstance(usual, tuple):
        for name, value, wanted in zip(usual._fields, agent, usual, strict=True):  # type: ignore[attr-defined]
            check_like(policy, value, wanted, f"{path}.{name}" if path else name)
    elif isinstance(usual, np.ndarray):
        if (agent.shape, agent.dtype) != (usual.shape, usual.dtype):
            raise OwnPolicyError(
                f"{policy}.start must return {path} of {usual.dtype} and shape {usual.shape}, got {agent.dtype} and "
                f"{agent.shape}"
            )
        if usual.dtype.kind == "i" and not np.array_equal(agent, usual):
            raise OwnPolicyError(f"{policy}.start must leave {path} at {short(usual)}, got {short(agent)}")
    elif isinstance(usual, int) and agent != usual:
        raise OwnPolicyError(f"{policy}.start must leave {path} at {usual!r}, got {agent!r}")


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def check_kernels(policy: str, kernels: Any, agent: Any, takes_context: bool) -> None:
    """Raise an error for kernels that are not compiled, or that take other arguments."""
    asked = ("agent", "context", "out") if takes_context else ("agent", "arms", "available", "out")
    told = ("agent", "context", "arm", "reward") if takes_context else ("agent", "features", "reward")
    for name, wanted in (("act", asked), ("update", told)):
        kernel = getattr(kernels, name)
        if kernel is None and name == "update" and is_regression(getattr(agent.state, "regression", None)):
            continue
        function = getattr(kernel, "py_func", kernel if inspect.isfunction(kernel) else None)
        if function is None or (function is kernel and not numba.config.DISABLE_JIT):  # type: ignore[attr-defined]
            raise OwnPolicyError(
                f"{policy}.kernels must have an {name} compiled by sb.extend.jit, got {kernel!r}; for plain Python "
                "give an object with act and update instead"
            )
        try:
            inspect.signature(function).bind(*wanted)
        except TypeError as error:
            raise OwnPolicyError(
                f"{policy}'s kernel {function.__name__} must take ({', '.join(wanted)}), got "
                f"{inspect.signature(function)} ({error})"
            ) from None


def fingerprint(value: Any, seen: frozenset[int] = frozenset()) -> Any:
    """Return a fingerprint of a kernel: its code and the values of the names in it, which numba compiles in.

    Copies of a kernel that came to this process at different times, as in workers, have equal fingerprints.
    """
    function = getattr(value, "py_func", value)
    if inspect.isfunction(function):
        if id(function) in seen or _is_ours(function.__code__.co_filename):
            return function.__module__, function.__qualname__
        seen |= {id(function)}
        known = inspect.getclosurevars(function)
        names = sorted({**known.nonlocals, **known.globals}.items())
        return function.__code__, tuple((name, fingerprint(one, seen)) for name, one in names)
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, bool | int | float | complex | str | bytes | tuple | np.generic | None):
        return type(value).__qualname__, repr(value)
    return getattr(value, "__name__", type(value).__qualname__)


@contextmanager
def compiling(policy: Any, agent: Any, kernels: Callable[[], Any]) -> Iterator[None]:
    """Raise an error that locates and explains the failure if numba cannot compile a user's kernel."""
    try:
        yield
    except NumbaError:
        reason = _reason(policy.name, agent, kernels())
        if reason is None:
            raise
        raise OwnPolicyError(reason) from None


def _reason(policy: str, agent: Any, kernels: Any) -> str | None:
    """Return why one of the kernels cannot be compiled, trying them one by one; None if all can."""
    table = getattr(agent, "table", None)
    dim = (
        table.features.shape[2]
        if table is not None
        else agent.setting.dim
        if hasattr(agent, "setting")
        else 1
    )
    shown, own = np.zeros((1, dim)), np.zeros((1, dim))
    shown.flags.writeable = False  # like a problem's features
    for arms in (shown, own):
        mask, floats = np.ones(1, dtype=np.bool_), np.zeros(1)
        asked: tuple[Any, ...] = (agent, 0) if kernels.takes_context else (agent, arms, mask)
        told: tuple[Any, ...] = (agent, 0, 0, 0.0) if kernels.takes_context else (agent, arms[0], 0.0)
        for name, arguments in (("act", (*asked, None)), ("act", (*asked, floats)), ("update", told)):
            kernel = getattr(kernels, name)
            if kernel is None:
                continue
            dispatcher = kernel.dispatcher if isinstance(kernel, Kernel) else kernel
            signature = tuple(numba.typeof(one) for one in arguments)
            function = dispatcher.py_func
            try:
                dispatcher.compile(signature)
            except NumbaError as error:
                return f"{policy}'s kernel {function.__name__} cannot be compiled: {_numba_complaint(error, function)}"
            result = dispatcher.overloads[signature].signature.return_type
            if name == "act" and not _is_choice(result):
                place = _code_at(function.__code__.co_filename, function.__code__.co_firstlineno)
                return (
                    f"{policy}'s kernel {function.__name__} must return an arm and whether it explored, such as "
                    f"`return arm, False`, got {result} ({place})"
                )
    return None


def _is_choice(result: Any) -> bool:
    """Return whether a type is what `act` must return: an arm and whether it explored."""
    pair = isinstance(result, types.BaseTuple) and len(result) == 2
    return pair and isinstance(result[0], types.Integer) and isinstance(result[1], types.Boolean)


def _numba_complaint(error: NumbaError, function: Any) -> str:
    """Return numba's complaint in one line, with the innermost line of the user's code that it is about."""
    text = _COLOUR.sub("", str(error))
    lines = [
        line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("Failed ")
    ]
    message = lines[0] if lines else type(error).__name__
    if message.endswith("found for signature:") and len(lines) > 1:
        message = f"{message.removesuffix(' for signature:')} for {lines[1].removeprefix('>>> ')}"
    call = _CALL.search(message)
    if call:
        names = re.findall(r"[(,] ?(\w+)(?=[:,)=])", call["names"])
        message = f"a call must give ({', '.join(names)}): {call['why']}"
    found = [(place["file"], int(place["line"])) for place in _PLACE.finditer(text)]
    if error.loc is not None:  # type: ignore[attr-defined]
        found.append((error.loc.filename, error.loc.line))  # type: ignore[attr-defined]
    found.append((function.__code__.co_filename, function.__code__.co_firstlineno))
    file, line = next((one for one in found if not _is_ours(one[0])), found[-1])
    return f"{message} ({_code_at(file, line)})"


def _is_ours(file: str) -> bool:
    return any(Path(file).is_relative_to(place) for place in _OURS)


def _code_at(file: str, line: int) -> str:
    near = os.path.relpath(file) if Path(file).is_relative_to(Path.cwd()) else file
    text = linecache.getline(file, line).strip()
    return f"{near}, line {line}: {text}" if text else f"{near}, line {line}"
