"""Experiments from TOML files. The format is described in docs/experiments.md."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from solid_bandits import _check
from solid_bandits._check import ArgumentError, short
from solid_bandits._files import TAKEN, check_name, read_bytes
from solid_bandits._types import Plain
from solid_bandits.experiments.claim_check import check_claim
from solid_bandits.experiments.experiment import (
    CONSTRUCTORS,
    RANDOM_KINDS,
    Experiment,
    NewEachRun,
    Part,
    slugs,
)
from solid_bandits.experiments.names import NAMES, OWN, SCALES
from solid_bandits.experiments.outcome import Claim, Played
from solid_bandits.experiments.readings import READINGS, played_label, under_each
from solid_bandits.experiments.source import Source
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.naming import find
from solid_bandits.problem import Problem, check_size
from solid_bandits.simulation import Plan
from solid_bandits.simulation.plan import Playable
from solid_bandits.streams import from_file
from solid_bandits.streams.files import SUFFIXES


def load(source: str | Path, scale: str = "paper") -> Experiment:
    """An experiment by its name (one of `NAMES`) or from a TOML file.

    A ValueError names the file, the line, what was found and what would do.
    """
    _check.choice("scale", scale, SCALES)
    if str(source) in NAMES:
        text = (files("solid_bandits.experiments") / f"{source}.toml").read_text(encoding="utf-8")
        return _Reader(Source(f"{source}.toml", text), Path(), scale).experiment(str(source), scale)
    path = Path(source)
    if path.suffix != ".toml":
        _check.choice("experiment", str(source), [*NAMES, "all", "a .toml file"])
    try:
        text = read_bytes(path, _LARGEST).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror or error
        raise ValueError(f"experiment file {str(path)!r} cannot be read ({reason})") from None
    # Its name is that of its directory in the results, where these are taken.
    if path.stem.casefold() in (*NAMES, *TAKEN) or not path.stem.strip("."):
        raise ValueError(
            f"experiment file {str(path)!r} has the name {path.stem!r}, which is taken; rename it"
        )
    check_name(f"the name of experiment file {str(path)!r}", path.stem)
    try:
        return _Reader(Source(str(path), text), path.parent, scale).experiment(path.stem, OWN)
    except RecursionError:
        raise ValueError(
            f"{path}, line {_deepest_line(text)}: tables and lists are nested too deeply"
        ) from None


_LARGEST = 10**5
"""Bytes of a file; the largest of the paper's has 5,000."""


def _deepest_line(text: str) -> int:
    nesting = [sum(map(line.count, "[{.")) for line in text.split("\n")]
    return nesting.index(max(nesting)) + 1


# Key -> what it must be, for each kind of table.
_TOP = {
    "title": str,
    "about": str,
    "horizon": int,
    "runs": int,
    "seed": int,
    "diagnostics": bool,
    "pulls": bool,
    "readings": list,
    "quick": dict,
    "problem": list,
    "policy": list,
    "claim": list,
}
_PROBLEM = {
    "label": str,
    "kind": str,
    "file": str,
    "parameters": dict,
    "new_each_run": bool,
    "horizon": int,
    "runs": int,
    "quick": dict,
}
_POLICY = {"label": str, "name": str, "parameters": dict, "problems": list, "quick": bool}
_QUICK = {"horizon": int, "runs": int, "play": bool}
_CLAIM: dict[str, Any] = {
    field.name: field.type if field.type in (str, float) else list for field in fields(Claim)
}
_WORDS = {
    str: "text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


class _Reader:
    """One file on its way to an experiment at one scale."""

    def __init__(self, source: Source, folder: Path, scale: str) -> None:
        self.source = source
        self.content = source.content
        self.folder = folder
        self.scale = scale
        self.played: dict[str, Played] = {}

    def experiment(self, name: str, scale: str) -> Experiment:
        with self.source.at():
            _check_table(self.content, _TOP, needed=("horizon", "runs", "problem", "policy"))
            _check.integer("seed", self.content.get("seed", 0), least=0)
            _check_readings(self.readings)
            for key in ("problem", "policy", "claim"):
                for table in self.content.get(key, []):
                    if not isinstance(table, dict):
                        raise ArgumentError(key, f"must be a list of tables, [[{key}]], got {short(table)}")
        sizes = self.sizes(self.content)
        plans = dict(self.plans(sizes))
        if not plans:
            raise ValueError(
                f"{self.source.name} has nothing to play at scale {self.scale!r}; give a problem with policies"
            )
        names = slugs([*plans])
        for label, slug in zip(plans, names, strict=True):
            with self.source.at("problem", self.problem_labels.index(label), "label"):
                check_name("label, in letters, digits and dashes,", slug)
                if names.count(slug) > 1:
                    raise ValueError(f"label must differ from others in letters and digits, got {label!r}")
        parts = tuple(
            Part(label, plan, slug) for (label, plan), slug in zip(plans.items(), names, strict=True)
        )
        title, about = self.content.get("title", name), self.content.get("about", "")
        claims = tuple(self.claims(parts))
        return Experiment(name, title, about, scale, parts, claims, self.readings, self.played)

    @property
    def readings(self) -> tuple[str, ...]:
        return tuple(self.content.get("readings", ()))

    @property
    def problem_labels(self) -> list[str]:
        return [table.get("label", table.get("kind", "file")) for table in self.content["problem"]]

    def sizes(self, table: Plain, *path: str | int) -> Plain:
        """Horizon and runs that a table gives at this scale, and whether it plays at all."""
        sizes: Plain = {key: table[key] for key in ("horizon", "runs") if key in table}
        quick = table.get("quick", {})
        with self.source.at(*path):
            _check_sizes(sizes)
        with self.source.at(*path, "quick"):
            _check_table(quick, _QUICK)
            _check_sizes(quick)
        return sizes | quick if self.scale == "quick" else sizes

    def plans(self, sizes: Plain) -> Iterator[tuple[str, Plan]]:
        labels = self.problem_labels
        for index, table in enumerate(self.content["problem"]):
            with self.source.at("problem", index):
                _check_table(table, _PROBLEM)
                if labels[index] in labels[:index]:
                    raise ArgumentError(
                        "label", f"must differ from other problems', got {labels[index]!r} again"
                    )
            own = self.sizes(table, "problem", index)
            if not own.pop("play", True):
                continue
            problem, kind = self.problem(table, index)
            policies = self.policies(labels[index], kind, problem)
            if not policies:
                continue
            size = {**sizes, **own}
            with self.source.at("problem", index):
                plan = Plan(
                    problem,
                    policies,
                    size["horizon"],
                    size["runs"],
                    self.content.get("seed", 0),
                    self.content.get("diagnostics", False),
                    self.content.get("pulls", False),
                )
            yield labels[index], plan

    def problem(self, table: Plain, index: int) -> tuple[Playable | Callable[[int], Playable], str]:
        """The problem or stream of a [[problem]] table, and what kind it is."""
        data = Path(table.get("file", "")).suffix.lower() in SUFFIXES
        with self.source.at("problem", index):
            if "file" in table:
                if table.keys() & {"kind", "new_each_run"} or ("parameters" in table and not data):
                    raise ArgumentError(
                        "file",
                        "must be given without kind and new_each_run, and without parameters if it is no data",
                    )
            elif "kind" not in table:
                raise ArgumentError(
                    "kind",
                    f'is missing; give one of {", ".join(CONSTRUCTORS)}, or file = "NAME.npz" or of data',
                )
            else:
                _check.choice("kind", table["kind"], CONSTRUCTORS)
                if table.get("new_each_run", False) and table["kind"] not in RANDOM_KINDS:
                    raise ArgumentError(
                        "new_each_run",
                        f"must be left out, as a {table['kind']} problem is always the same, got True",
                    )
        if data:
            with self.source.at("problem", index, "parameters"):
                path = self.folder / table["file"]
                return _called(partial(from_file, path), table.get("parameters", {})), "data"
        if "file" in table:
            with self.source.at("problem", index, "file"):
                return Problem.load(self.folder / table["file"]), "file"
        kind, parameters = table["kind"], table.get("parameters", {})
        with self.source.at("problem", index, "parameters"):
            problem = _called(CONSTRUCTORS[kind], parameters)
        return (NewEachRun(kind, parameters) if table.get("new_each_run", False) else problem), kind

    def policies(
        self, part: str, kind: str, problem: Playable | Callable[[int], Playable]
    ) -> dict[str, Policy]:
        """Label -> policy, of those that play on this part."""
        first = problem(0) if callable(problem) else problem
        found: dict[str, Policy] = {}
        for index, table in enumerate(self.content["policy"]):
            with self.source.at("policy", index):
                _check_table(table, _POLICY, needed=("name",))
                entry = find("name", table["name"])
                for label in table.get("problems", []):
                    _check.choice("problems", label, self.problem_labels)
            if part not in table.get("problems", [part]) or (
                self.scale == "quick" and not table.get("quick", True)
            ):
                continue
            label, given = table.get("label", entry.label), table.get("parameters", {})
            with self.source.at("policy", index, "parameters"):
                policy = entry.build(kind, first.n_arms, given)
            here = self.under_readings(label, policy, given)
            with self.source.at("policy", index):
                for one in (label, *here):
                    if one in (*found, *self.plain(found)):
                        raise ArgumentError("label", f"must differ from other policies', got {one!r} again")
            with self.source.at("policy", index, "name"):
                # A policy may refuse the problem: say so at its own line.
                Plan(first, here, horizon=1, runs=1, seed=0)
            found |= here
        return found

    def under_readings(self, label: str, policy: Policy, given: Plain) -> dict[str, Policy]:
        """A policy by its label; where its reading is open, once under each reading that the file asks for."""
        here: dict[str, Policy] = {}
        for reading, one in under_each(policy, given, self.readings).items():
            played = played_label(label, reading)
            self.played[played] = Played(label, reading)
            here[played] = one
        return here or {label: policy}

    def plain(self, labels: Iterable[str]) -> list[str]:
        """What the file calls the policies that are played by these labels."""
        return list(dict.fromkeys(self.played.get(label, Played(label, "")).label for label in labels))

    def claims(self, parts: tuple[Part, ...]) -> Iterator[Claim]:
        """The claims; those that speak of parts or policies that this scale leaves out are left out too."""
        played = {part.label: self.plain(part.plan.policies) for part in parts}
        tables = self.content["policy"]
        named = list(dict.fromkeys(table.get("label", find("name", table["name"]).label) for table in tables))
        left_out = set(named).difference(*played.values())
        for index, table in enumerate(self.content.get("claim", [])):
            with self.source.at("claim", index):
                _check_table(table, _CLAIM, needed=("text", "source", "rule"))
                claim = Claim.from_plain(table)
                for label in claim.parts:
                    _check.choice("parts", label, self.problem_labels)
                for field in ("policies", "against", "beside"):
                    for label in getattr(claim, field):
                        _check.choice(field, label, named)
                if not set(claim.parts) <= set(played) or left_out & {*claim.policies, *claim.against}:
                    continue
                here = [set(played[label]) for label in claim.parts or played]
                beside = tuple(label for label in claim.beside if all(label in policies for policies in here))
                claim = replace(claim, beside=beside)
                check_claim(claim, played)
            yield claim


def _check_table(table: Plain, known: Mapping[str, type], needed: tuple[str, ...] = ()) -> None:
    """Raise an error unless `table` has only known keys, with values of their types, and all needed ones."""
    for key, value in table.items():
        _check_key("key", key, known)
        kind = known[key]
        fits = isinstance(value, (int, float) if kind is float else kind)
        if not fits or (isinstance(value, bool) and kind is not bool):
            raise ArgumentError(key, f"must be {_WORDS[kind]}, got {short(value)}")
    for key in needed:
        if key not in table or table[key] in ([], ""):
            raise ArgumentError(key, "is missing")


def _check_key(what: str, key: str, known: Iterable[str]) -> None:
    try:
        _check.choice(what, key, known)
    except ArgumentError as error:
        error.argument = key  # the line is that of the key itself
        raise


def _check_readings(readings: tuple[str, ...]) -> None:
    for place, reading in enumerate(readings):
        _check.choice("readings", reading, READINGS)
        if reading in readings[:place]:
            raise ArgumentError("readings", f"must name each reading once, got {reading!r} twice")


def _check_sizes(sizes: Plain) -> None:
    for key in sizes.keys() & {"horizon", "runs"}:
        _check.integer(key, sizes[key], least=1)


def _called(function: Callable[..., Playable], parameters: Plain) -> Playable:
    sizes = [parameters.get(name, 8) for name in ("n_contexts", "n_arms", "dim")]
    if all(isinstance(one, int) and one > 0 for one in sizes):
        check_size(*sizes)
    try:
        return function(**parameters)
    except TypeError as error:
        raise ValueError(f"parameters do not fit: {str(error).split('() ')[-1]}") from None
