"""An experiment: problems x policies x horizon x runs, read from a TOML file. The paper's own are files of this folder.

The format is described in docs/experiments.md.
"""

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from solid_bandits import _check, problems
from solid_bandits._types import Plain
from solid_bandits.experiments.claims import check_claim
from solid_bandits.experiments.outcome import Claim
from solid_bandits.policies.catalogue import CATALOGUE
from solid_bandits.policies.contract import Policy
from solid_bandits.problem import Problem
from solid_bandits.simulation import Plan

SCALES = ("quick", "paper")
OWN = "own"
"""The scale of results of a user's own file, whichever of the two it was played at."""

# In the order of the paper; `reproduce --list` and `reproduce all` follow it.
NAMES = (
    "toy",
    "random",
    "ablation-z0",
    "ablation-lambda1",
    "ablation-policy-step",
    "ablation-multiplier-step",
    "ablation-schedule",
    "ablation-reset",
    "ablation-tracking",
    "ablation-exploit-test",
    "end-of-optimism",
    "asymptotics",
    "jester",
)

ON_THEIR_OWN = ("jester",)
"""Those that `all` leaves out: they need data that is not part of the package, and hours at the paper's scale."""

_CONSTRUCTORS: dict[str, Callable[..., Problem]] = {
    "toy": problems.toy,
    "random": problems.random,
    "end-of-optimism": problems.end_of_optimism,
    "jester": problems.jester,
}

RANDOM_KINDS = ("random", "jester")
"""Those whose problems have a seed."""


@dataclass(frozen=True)
class Part:
    """One panel of an experiment's figure: all policies on one problem, or on one family of problems."""

    label: str
    plan: Plan
    slug: str
    """The name of its directory: letters, digits and dashes."""


@dataclass(frozen=True)
class Experiment:
    """What is to be played, and what is claimed about it."""

    name: str
    title: str
    about: str
    scale: str
    parts: tuple[Part, ...]
    claims: tuple[Claim, ...]

    @property
    def steps(self) -> int:
        """Steps of all policies in all runs of all parts."""
        return sum(part.plan.horizon * part.plan.runs * len(part.plan.policies) for part in self.parts)


def _slugs(labels: list[str]) -> list[str]:
    """A name for the directory of each label: letters, digits and dashes, numbered where labels come to the same."""
    slugs: list[str] = []
    for number, label in enumerate(labels, start=1):
        plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
        slug = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-") or "part"
        slugs.append(f"{slug}-{number}" if slug in slugs or slug == "part" else slug)
    return slugs


@dataclass(frozen=True)
class NewEachRun:
    """A new problem in each run: the constructor's, with a seed of its own."""

    kind: str
    parameters: Mapping[str, Any]

    def __call__(self, run: int) -> Problem:
        """The problem of one run."""
        parameters = {**self.parameters, "seed": self.parameters.get("seed", 0) + run}
        return _CONSTRUCTORS[self.kind](**parameters)


def load(source: str | Path, scale: str = "paper") -> Experiment:
    """An experiment by its name (one of `NAMES`) or from a TOML file.

    A ValueError names the file, the line, what was found and what would do.
    """
    _check.choice("scale", scale, SCALES)
    if str(source) in NAMES:
        text = (files("solid_bandits.experiments") / f"{source}.toml").read_text(encoding="utf-8")
        return _Reader(f"{source}.toml", text, Path()).experiment(str(source), scale)
    path = Path(source)
    if path.suffix != ".toml":
        _check.choice("experiment", str(source), [*NAMES, "all", "a .toml file"])
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ValueError(f"experiment file {str(path)!r} cannot be read ({reason})") from None
    # Its name is that of its directory in the results, where these are taken.
    if path.stem in (*NAMES, "all", "figures") or not path.stem.strip("."):
        raise ValueError(
            f"experiment file {str(path)!r} would be called {path.stem!r}, which is taken; rename it"
        )
    return replace(_Reader(str(path), text, path.parent).experiment(path.stem, scale), scale=OWN)


# Key -> what it must be, for each kind of table.
_TOP = {
    "title": str,
    "about": str,
    "horizon": int,
    "runs": int,
    "seed": int,
    "insides": bool,
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
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


class _Reader:
    """One file on its way to an experiment; knows where in the text it is, for the errors."""

    def __init__(self, name: str, text: str, folder: Path) -> None:
        self.name = name
        self.text = text
        self.folder = folder
        self.place: tuple[str, int] = ("", 0)  # the table that is being read: [[policy]] number 2, say
        self.key = ""
        self.within = ""  # the table inside that one

    def experiment(self, name: str, scale: str) -> Experiment:
        try:
            content = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{self.name} is not TOML: {error}") from None
        with self.at("", 0):
            self.check(content, _TOP, needed=("horizon", "runs", "problem", "policy"))
            sizes = self.sizes(content, scale)
        plans = dict(self.plans(content, scale, sizes))
        if not plans:
            raise ValueError(
                f"{self.name} has nothing to play at scale {scale!r}; give a problem with policies"
            )
        parts = tuple(
            Part(label, plan, slug)
            for (label, plan), slug in zip(plans.items(), _slugs([*plans]), strict=True)
        )
        claims = tuple(self.claims(content, parts, every=self.problem_labels(content)))
        return Experiment(name, content.get("title", name), content.get("about", ""), scale, parts, claims)

    def plans(self, content: Plain, scale: str, sizes: Plain) -> Iterator[tuple[str, Plan]]:
        labels = self.problem_labels(content)
        for index, table in enumerate(content["problem"]):
            with self.at("problem", index):
                self.check(table, _PROBLEM)
                if labels[index] in labels[:index]:
                    raise ValueError(
                        f"label is {labels[index]!r}, which another problem has; give each its own"
                    )
                own = self.sizes(table, scale)
                if not own.pop("play", True):
                    continue
                problem, kind = self.problem(table)
                size = {**sizes, **own}
                label = table.get("label", kind)
            policies = self.policies(content, scale, label, kind, problem)
            if not policies:
                continue
            with self.at("problem", index):
                plan = Plan(
                    problem,
                    policies,
                    size["horizon"],
                    size["runs"],
                    content.get("seed", 0),
                    content.get("insides", False),
                )
            yield label, plan

    def sizes(self, table: Plain, scale: str) -> Plain:
        """Horizon and runs that a table gives at this scale, and whether it plays at all."""
        sizes: Plain = {key: table[key] for key in ("horizon", "runs") if key in table}
        quick = table.get("quick", {})
        for key, size in sizes.items():
            _check.integer(key, size, least=1)
        self.within = "quick"
        self.check(quick, _QUICK)
        for key in quick.keys() - {"play"}:
            _check.integer(key, quick[key], least=1)
        self.within = ""
        return sizes | quick if scale == "quick" else sizes

    def problem(self, table: Plain) -> tuple[Problem | Callable[[int], Problem], str]:
        """The problem of a [[problem]] table, and what kind it is."""
        if "file" in table:
            self.key = "file"
            if table.keys() & {"kind", "parameters", "new_each_run"}:
                raise ValueError(
                    "file is given together with kind, parameters or new_each_run; give one of them"
                )
            return Problem.load(self.folder / table["file"]), "file"
        if "kind" not in table:
            self.key = ""
            raise ValueError(f'kind is missing; give one of {", ".join(_CONSTRUCTORS)}, or file = "NAME.npz"')
        self.key = "kind"
        kind = _check.choice("kind", table["kind"], _CONSTRUCTORS)
        self.key = "parameters"
        parameters = table.get("parameters", {})
        if table.get("new_each_run", False):
            if kind not in RANDOM_KINDS:
                self.key = "new_each_run"
                raise ValueError(
                    f"new_each_run is true, but a {kind} problem is always the same; leave it out"
                )
            self.call(_CONSTRUCTORS[kind], parameters)
            return NewEachRun(kind, parameters), kind
        return self.call(_CONSTRUCTORS[kind], parameters), kind

    def call(self, function: Callable[..., Any], parameters: Plain) -> Any:
        try:
            return function(**parameters)
        except TypeError as error:
            raise ValueError(f"parameters do not fit: {str(error).split('() ')[-1]}") from None

    def policies(
        self, content: Plain, scale: str, part: str, kind: str, problem: Problem | Callable[[int], Problem]
    ) -> dict[str, Policy]:
        """Label -> policy, of those that play on this part."""
        first = problem(0) if callable(problem) else problem
        result: dict[str, Policy] = {}
        for index, table in enumerate(content["policy"]):
            with self.at("policy", index):
                self.check(table, _POLICY, needed=("name",))
                entry = CATALOGUE[_check.choice("name", table["name"], CATALOGUE)]
                self.key = "problems"
                known = self.problem_labels(content)
                for label in table.get("problems", []):
                    _check.choice("problems", label, known)
                if part not in table.get("problems", [part]) or (
                    scale == "quick" and not table.get("quick", True)
                ):
                    continue
                self.key = "parameters"
                parameters = table.get("parameters", {})
                made = entry.make(kind, first.n_arms)
                for name in parameters:
                    self.key = name
                    _check.choice("parameter", name, [field.name for field in fields(made)])
                self.key = next(iter(parameters), "name")
                policy = replace(made, **parameters)
                label = table.get("label", entry.label)
                if label in result:
                    self.key = "label"
                    raise ValueError(f"label is {label!r}, which another policy has; give each its own")
                # A policy may refuse the problem: say so at its own line.
                Plan(first, {label: policy}, horizon=1, runs=1, seed=0)
                result[label] = policy
        return result

    def claims(self, content: Plain, parts: tuple[Part, ...], every: list[str]) -> Iterator[Claim]:
        """The claims; those that speak of parts or policies that this scale leaves out are left out too."""
        played = {part.label: list(part.plan.policies) for part in parts}
        tables = content["policy"]
        named = list(dict.fromkeys(table.get("label", CATALOGUE[table["name"]].label) for table in tables))
        for index, table in enumerate(content.get("claim", [])):
            with self.at("claim", index):
                self.check(table, _CLAIM, needed=("text", "source", "rule"))
                claim = Claim.from_plain(table)
                for label in claim.parts:
                    _check.choice("parts", label, every)
                for field in ("policies", "against", "beside"):
                    for label in getattr(claim, field):
                        _check.choice(field, label, named)
                if not set(claim.parts) <= set(played):
                    continue
                here = [set(played[label]) for label in claim.parts or played]
                left_out = set(named).difference(*played.values())
                if left_out & {*claim.policies, *claim.against}:
                    continue
                beside = tuple(label for label in claim.beside if all(label in policies for policies in here))
                claim = replace(claim, beside=beside)
                check_claim(claim, played)
                yield claim

    def problem_labels(self, content: Plain) -> list[str]:
        return [table.get("label", table.get("kind", "file")) for table in content["problem"]]

    def check(self, table: Any, known: Mapping[str, type], needed: tuple[str, ...] = ()) -> None:
        """Raise a ValueError unless `table` has only known keys, with values of their types, and all needed ones."""
        if not isinstance(table, dict):
            raise ValueError(f"{self.key or self.place[0]} is {table!r}; give a table")
        for key, value in table.items():
            self.key = key
            _check.choice("key", key, known)
            kind = known[key]
            fits = isinstance(value, (int, float) if kind is float else kind)
            if not fits or (isinstance(value, bool) and kind is not bool):
                raise ValueError(f"{key} is {value!r}; give {_WORDS[kind]}")
        for key in needed:
            if key not in table or table[key] in ([], ""):
                self.key = ""
                raise ValueError(f"{key} is missing")

    @contextmanager
    def at(self, table: str, index: int) -> Iterator[None]:
        """Errors within name the file and the line."""
        self.place, self.within, self.key = (table, index), "", ""
        try:
            yield
        except ValueError as error:
            # Errors begin with the name of what is wrong.
            line = self.line(str(error).split()[0], self.key)
            raise ValueError(f"{self.name}, line {line}: {error}") from None

    def line(self, *keys: str) -> int:
        """The line of the first key that is found, or of the head of its table; TOML's reader does not tell."""
        lines = self.text.splitlines()
        table, index = self.place
        heads = [i for i, line in enumerate(lines) if re.match(r"\s*\[\[", line)]
        mine = [i for i in heads if re.match(rf"\s*\[\[\s*{table}\s*\]\]", lines[i])] if table else [0]
        start = mine[index] if index < len(mine) else 0
        end = min([i for i in heads if i > start], default=len(lines))
        places = {
            key: [i for i in range(start, end) if re.search(_key_at(key), lines[i])]
            for key in (self.within, *keys)
            if key
        }
        inner = min(places.get(self.within, []), default=start)
        for key in keys:
            found = [i for i in places.get(key, []) if i >= inner]
            if found:
                return found[0] + 1
        return inner + 1


def _key_at(key: str) -> str:
    """A pattern for a line that gives a value to `key`, or is the head of the table of that name."""
    return rf"(^|[\s{{,])\"?{re.escape(key)}\"?\s*=|^\s*\[\s*{re.escape(key)}\s*\]"
