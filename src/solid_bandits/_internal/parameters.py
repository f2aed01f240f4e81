"""Limits of parameters, declared once next to their defaults, for checks, tables, help and files."""

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, NamedTuple

from solid_bandits._internal import checks
from solid_bandits._internal.checks import ArgumentError

_KEY = "solid_bandits"


@dataclass(frozen=True)
class Constraint:
    """Set of values that a parameter takes.

    Args:
        kind: type of a number or a switch: float, int or bool. Ignored if `choices` are given.
        above: a number must be greater. Without an upper limit, it is also limited so that no product of it overflows.
        least: a number must not be smaller.
        most: a number must not be greater.
        choices: the words that it can be.
        none: whether it can be None.
        word: the one word that may replace a number.

    """

    kind: type = float
    above: float | None = None
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    none: bool = False
    word: str | None = None

    def check(self, name: str, value: Any) -> None:
        """Raise an ArgumentError that names the parameter if it cannot have this value."""
        if value is None and self.none:
            return
        if self.choices:
            checks.choice(name, value, self.choices)
        elif self.word is not None and isinstance(value, str):
            if value != self.word:
                raise ArgumentError(name, f"must be a number {self._limits} or {self.word!r}, got {value!r}")
        elif self.kind is bool:
            checks.switch(name, value)
        elif self.kind is int:
            limits = {} if self.most is None else {"most": int(self.most)}
            checks.integer(name, value, least=int(self.least or 0), **limits)
        elif self.most is not None:
            checks.number(name, value, above=self.above, least=self.least, most=self.most)
        elif self.above == 0:
            checks.positive(name, value)
        else:
            if self.above or self.least:
                checks.number(name, value, above=self.above, least=self.least)
            checks.not_negative(name, value)

    @property
    def words(self) -> str:
        """The allowed values in a few words: a number > 0, or 'evidence'."""
        if self.choices:
            found = [repr(one) for one in self.choices]
        elif self.kind is bool:
            found = ["True", "False"]
        else:
            found = [f"{'an integer' if self.kind is int else 'a number'} {self._limits}"]
        found += [repr(self.word)] if self.word else []
        found += ["None"] if self.none else []
        return " or ".join(filter(None, [", ".join(found[:-1]), found[-1]]))

    @property
    def _limits(self) -> str:
        if self.least is not None and self.most is not None:
            return f"from {_written(self.least)} to {_written(self.most)}"
        given = [(">", self.above), (">=", self.least), ("<=", self.most)]
        return " and ".join(f"{sign} {_written(limit)}" for sign, limit in given if limit is not None)


def _written(limit: float) -> str:
    return f"{limit:,}" if isinstance(limit, int) else f"{limit:g}"


class Parameter(NamedTuple):
    """A declared parameter of a class with its default, or of an object with its value."""

    name: str
    value: Any
    constraint: Constraint


def parameter(default: Any = MISSING, *, choices: Iterable[str] = (), **limits: Any) -> Any:
    """Return a field of a frozen dataclass that declares its limits; `limits` are the arguments of `Constraint`.

    Its kind is the type of its default if that is an integer or a truth value, and else a number.

    Example:
        >>> @dataclass(frozen=True)
        ... class Softmax:
        ...     temperature: float = parameter(0.1, above=0)
        ...     def __post_init__(self) -> None:
        ...         check_parameters(self)
        >>> Softmax(temperature=-1)
        Traceback (most recent call last):
            ...
        solid_bandits._internal.checks.ArgumentError: temperature must be > 0, got -1
    """
    kind = type(default) if isinstance(default, int) else float
    constraint = Constraint(**{"kind": kind, "choices": tuple(choices), **limits})
    return field(default=default, metadata={_KEY: constraint})


def parameters_of(owner: Any) -> list[Parameter]:
    """Return the declared parameters of a class, with their defaults, or of an object, with its values.

    Parameters that can only be passed by name, which a class may inherit, come last.
    """
    declared = sorted(
        (one for one in fields(owner) if _KEY in one.metadata), key=lambda one: bool(one.kw_only)
    )
    return [
        Parameter(one.name, getattr(owner, one.name, one.default), one.metadata[_KEY]) for one in declared
    ]


def check_parameters(chosen: Any) -> None:
    """Check every declared parameter of an object, in the order of its fields."""
    for one in parameters_of(chosen):
        one.constraint.check(one.name, one.value)
