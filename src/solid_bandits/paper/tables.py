"""Tables of a TOML experiment as pydantic models, with errors in the wording of the package."""

import json
from dataclasses import fields
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from solid_bandits._internal import checks
from solid_bandits._internal.checks import ArgumentError, must_be_one_of, short
from solid_bandits.paper.naming import DATA_SUFFIXES, HOMES, RANDOM
from solid_bandits.paper.outcome import Claim
from solid_bandits.paper.readings import READINGS
from solid_bandits.paper.source import Path, Source


class Table(BaseModel):
    """A table that accepts only known keys, and only values of exactly their types."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


Size = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(min_length=1)]


class QuickTable(Table):
    """Changes at the quick scale."""

    horizon: Size | None = None
    runs: Size | None = None
    play: bool = True


class SizedTable(Table):
    """A table with a horizon and a number of runs."""

    horizon: Size | None = None
    runs: Size | None = None
    quick: QuickTable = QuickTable()

    def sizes(self, quick: bool) -> dict[str, int]:
        """Return horizon and runs at a scale, as far as this table gives them."""
        tables = [self, self.quick] if quick else [self]
        return {
            name: size
            for one in tables
            for name in ("horizon", "runs")
            if (size := getattr(one, name)) is not None
        }


class ProblemTable(SizedTable):
    """[[problem]]: a panel of the figure."""

    label: Text = ""
    kind: Text = ""
    file: Text = ""
    parameters: dict[str, Any] = {}
    new_each_run: bool = False

    @property
    def called(self) -> str:
        """Its label, or its default label."""
        return self.label or self.kind or "file"

    @property
    def is_data(self) -> bool:
        """Whether it is a data file."""
        return self.file.lower().endswith(DATA_SUFFIXES)

    @model_validator(mode="after")
    def _check(self) -> "ProblemTable":
        if self.file:
            if self.kind or self.new_each_run or (self.parameters and not self.is_data):
                raise ArgumentError(
                    "file",
                    "must be given without kind and new_each_run, and without parameters unless it is a data file",
                )
            return self
        if not self.kind:
            raise ArgumentError(
                "kind", f'is missing; give one of {", ".join(HOMES)}, or file = "NAME.npz" or of data'
            )
        checks.choice("kind", self.kind, HOMES)
        if self.new_each_run and self.kind not in RANDOM:
            raise ArgumentError(
                "new_each_run", f"must be left out, as a {self.kind} problem is always the same, got True"
            )
        return self


class PolicyTable(Table):
    """[[policy]]."""

    name: Text
    label: Text = ""
    parameters: dict[str, Any] = {}
    problems: Annotated[list[str], Field(min_length=1)] | None = None
    quick: bool = True


class FileTable(SizedTable):
    """The whole file."""

    title: str | None = None
    about: str = ""
    horizon: Size
    runs: Size
    seed: Annotated[int, Field(ge=0)] = 0
    diagnostics: bool = False
    pulls: bool = False
    readings: list[str] = []
    problem: Annotated[list[ProblemTable], Field(min_length=1)]
    policy: Annotated[list[PolicyTable], Field(min_length=1)]
    claim: list[Claim] = []

    @model_validator(mode="after")
    def _check(self) -> "FileTable":
        for place, reading in enumerate(self.readings):
            checks.choice("readings", reading, READINGS)
            if reading in self.readings[:place]:
                raise ArgumentError("readings", f"must name each reading once, got {reading!r} twice")
        return self


def read_tables(source: Source) -> FileTable:
    """Return the tables of a file; an error names the line of the first invalid value."""
    try:
        # Validated as JSON, which allows a list for a tuple although types are strict, and does not take a date for
        # text.
        return FileTable.model_validate_json(
            json.dumps(source.content, default=lambda day: {"date": str(day)})
        )
    except ValidationError as errors:
        # An unknown key may be a misspelt one, which is then missing; the unknown key is the error to report.
        first = min(errors.errors(), key=lambda one: _ORDER.get(one["type"], 1))
    raise source.error(*_explained(first))


_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_ORDER = {**dict.fromkeys(_UNKNOWN, 0), "missing": 2}
_KEYS: dict[str, type[Table]] = {"problem": ProblemTable, "policy": PolicyTable, "quick": QuickTable}
_WORDS = {
    "string_type": "text",
    "string_too_short": "non-empty text",
    "too_short": "a non-empty list",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
}


def _explained(error: Any) -> tuple[Path, str]:
    """Return the location of an error, and its message."""
    where, kind = error["loc"], error["type"]
    key = next((one for one in reversed(where) if isinstance(one, str)), "")
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, ArgumentError):
        return (*where, cause.argument), str(cause)
    if kind in _UNKNOWN:
        around = [one for one in where[:-1] if isinstance(one, str)]
        table = _KEYS.get(around[-1]) if around else FileTable
        known = [one.name for one in fields(Claim)] if table is None else list(table.model_fields)
        return where, f"key {must_be_one_of(key, known)}"
    entry = isinstance(where[-1], int)  # an index into a list
    if kind == "missing" and not entry:
        return where, f"{key} is missing"
    if kind in ("model_type", "dataclass_type") and entry:
        wanted = f"a list of tables, [[{key}]]"
    elif kind in ("missing", "too_long"):
        wanted = "a longer list" if kind == "missing" else "a shorter list"
    elif kind == "greater_than_equal":
        wanted = f"an integer >= {error['ctx']['ge']}"
    else:
        wanted = _WORDS.get(kind) or error["msg"].removeprefix("Input should be ")
    return where, f"{key} must be {wanted}, got {short(error['input'])}"
