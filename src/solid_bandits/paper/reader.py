"""Experiments from TOML files. The format is described in docs/experiments.md."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path

from solid_bandits._internal import checks
from solid_bandits._internal.calls import made
from solid_bandits._internal.checks import ArgumentError
from solid_bandits._internal.files import TAKEN, check_name, read_bytes
from solid_bandits._internal.types import Plain
from solid_bandits.core.problem import Problem
from solid_bandits.paper.claim_check import check_claim
from solid_bandits.paper.experiment import Experiment, NewEachRun, Part, slugs
from solid_bandits.paper.names import NAMES, OWN, SCALES
from solid_bandits.paper.naming import DATA, constructor
from solid_bandits.paper.outcome import Claim, UnderReading
from solid_bandits.paper.readings import played_label, under_each
from solid_bandits.paper.source import Source
from solid_bandits.paper.tables import ProblemTable, read_tables
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.naming import find
from solid_bandits.simulation.plan import Plan, Playable
from solid_bandits.streams import from_file


def load(source: str | Path, scale: str = "paper") -> Experiment:
    """Return an experiment by its name (one of `NAMES`) or from a TOML file.

    A ValueError names the file, the line, what was found and what would do.
    """
    checks.choice("scale", scale, SCALES)
    if str(source) in NAMES:
        text = (files("solid_bandits.paper") / f"{source}.toml").read_text(encoding="utf-8")
        return _Reader(Source(f"{source}.toml", text), Path(), scale).experiment(str(source), scale)
    path = Path(source)
    if path.suffix != ".toml":
        checks.choice("experiment", str(source), [*NAMES, "all", "a .toml file"])
    try:
        text = read_bytes(path, _LARGEST).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror or error
        raise ValueError(f"experiment file {str(path)!r} cannot be read ({reason})") from None
    # Its name becomes the name of its directory in the results, where these names are taken.
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
"""Largest size of a file in bytes; the largest of the paper's has 5,000."""


def _deepest_line(text: str) -> int:
    nesting = [sum(map(line.count, "[{.")) for line in text.split("\n")]
    return nesting.index(max(nesting)) + 1


class _Reader:
    """Reader of one file, which becomes an experiment at one scale."""

    def __init__(self, source: Source, folder: Path, scale: str) -> None:
        self.source = source
        self.tables = read_tables(source)
        self.folder = folder
        self.quick = scale == "quick"
        self.problem_labels = [table.called for table in self.tables.problem]
        self.played: dict[str, UnderReading] = {}

    def experiment(self, name: str, scale: str) -> Experiment:
        plans = dict(self.plans())
        if not plans:
            at = "quick" if self.quick else "paper"
            raise ValueError(
                f"{self.source.name} has nothing to play at scale {at!r}; give a problem with policies"
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
        title = name if self.tables.title is None else self.tables.title
        claims, readings = tuple(self.claims(parts)), tuple(self.tables.readings)
        return Experiment(name, title, self.tables.about, scale, parts, claims, readings, self.played)

    def plans(self) -> Iterator[tuple[str, Plan]]:
        tables, labels = self.tables, self.problem_labels
        for index, table in enumerate(tables.problem):
            with self.source.at("problem", index):
                if labels[index] in labels[:index]:
                    raise ArgumentError(
                        "label", f"must differ from other problems' labels, got {labels[index]!r} twice"
                    )
            if self.quick and not table.quick.play:
                continue
            problem, kind = self.problem(table, index)
            policies = self.policies(labels[index], kind, problem)
            if not policies:
                continue
            size = tables.sizes(self.quick) | table.sizes(self.quick)
            with self.source.at("problem", index):
                plan = Plan(
                    problem,
                    policies,
                    size["horizon"],
                    size["runs"],
                    tables.seed,
                    tables.diagnostics,
                    tables.pulls,
                )
            yield labels[index], plan

    def problem(self, table: ProblemTable, index: int) -> tuple[Playable | Callable[[int], Playable], str]:
        """Return the problem or stream of a [[problem]] table, and its kind."""
        if table.file and not table.is_data:
            with self.source.at("problem", index, "file"):
                return Problem.load(self.folder / table.file), "file"
        with self.source.at("problem", index, "parameters"):
            if table.is_data:
                return made(partial(from_file, self.folder / table.file), table.parameters), DATA
            problem = made(constructor(table.kind), table.parameters)
        return (NewEachRun(table.kind, table.parameters) if table.new_each_run else problem), table.kind

    def policies(
        self, part: str, kind: str, problem: Playable | Callable[[int], Playable]
    ) -> dict[str, Policy]:
        """Return label -> policy for the policies that play in this part."""
        first = problem(0) if callable(problem) else problem
        found: dict[str, Policy] = {}
        for index, table in enumerate(self.tables.policy):
            with self.source.at("policy", index):
                entry = find("name", table.name)
                for label in table.problems or []:
                    checks.choice("problems", label, self.problem_labels)
            if part not in (table.problems or [part]) or (self.quick and not table.quick):
                continue
            label, given = table.label or entry.label, table.parameters
            with self.source.at("policy", index, "parameters"):
                policy = entry.build(kind, first.n_arms, given)
            here = self.under_readings(label, policy, given)
            with self.source.at("policy", index):
                for one in (label, *here):
                    if one in (*found, *self.plain(found)):
                        raise ArgumentError(
                            "label", f"must differ from other policies' labels, got {one!r} twice"
                        )
            with self.source.at("policy", index, "name"):
                # If a policy refuses the problem, the error should name the policy's line.
                Plan(first, here, horizon=1, runs=1, seed=0)
            found |= here
        return found

    def under_readings(self, label: str, policy: Policy, given: Plain) -> dict[str, Policy]:
        """Return a policy by its label; where its reading is open, once under each requested reading."""
        here: dict[str, Policy] = {}
        for reading, one in under_each(policy, given, self.tables.readings).items():
            played = played_label(label, reading)
            self.played[played] = UnderReading(label, reading)
            here[played] = one
        return here or {label: policy}

    def plain(self, labels: Iterable[str]) -> list[str]:
        """Return the labels that the file uses for the policies that are played under these labels."""
        return list(dict.fromkeys(self.played.get(label, UnderReading(label, "")).label for label in labels))

    def claims(self, parts: tuple[Part, ...]) -> Iterator[Claim]:
        """Yield the claims, without those about parts or policies that this scale leaves out."""
        played = {part.label: self.plain(part.plan.policies) for part in parts}
        named = [one.label or find("name", one.name).label for one in self.tables.policy]
        left_out = set(named).difference(*played.values())
        for index, claim in enumerate(self.tables.claim):
            with self.source.at("claim", index):
                for label in claim.parts:
                    checks.choice("parts", label, self.problem_labels)
                for field in ("policies", "against", "beside"):
                    for label in getattr(claim, field):
                        checks.choice(field, label, named)
                if not set(claim.parts) <= set(played) or left_out & {*claim.policies, *claim.against}:
                    continue
                here = [set(played[label]) for label in claim.parts or played]
                beside = tuple(label for label in claim.beside if all(label in policies for policies in here))
                kept = replace(claim, beside=beside)
                check_claim(kept, played)
            yield kept
