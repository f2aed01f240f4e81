"""Policies to be evaluated, by words: what the command line takes."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from solid_bandits import logs
from solid_bandits._check import ArgumentError
from solid_bandits.agent import Agent
from solid_bandits.live.file import read as read_bandit
from solid_bandits.logs.files import DSJSON
from solid_bandits.ope.fitted import fitted
from solid_bandits.ope.rows import Reader
from solid_bandits.ope.targets import Loaded, as_target
from solid_bandits.policies.contract import DecisionPolicy
from solid_bandits.policies.naming import by_name


def by_words(
    texts: Sequence[str], source: pl.DataFrame | Path, columns: Mapping[str, str], context: Sequence[str]
) -> tuple[dict[str, Any], pl.DataFrame | Path]:
    """Label -> policy, and the rows to evaluate them on.

    `uniform`; `always:ARM`; `column:NAME`, a column of probabilities; the file of an agent or a bandit; or one of our
    policies by name, which learns from the first half of the log: then all are evaluated on the second half.
    """
    found: dict[str, Any] = {}
    learners: dict[str, DecisionPolicy] = {}
    for text in dict.fromkeys(texts):
        kind, _, name = text.partition(":")
        if text == "uniform" or (kind == "always" and name):
            found[text] = as_target(text)
        elif kind == "column" and name:
            found[text] = _column(source, name)
        elif Path(text).is_file():
            found[Path(text).name] = _loaded(Path(text))
        else:
            for label, policy in by_name([text], "random", 2).items():
                if not isinstance(policy, DecisionPolicy):
                    raise ArgumentError("policy", f"must be one that decides from features, got {text!r}")
                learners[label] = policy
    if not learners:
        return found, source
    if any(text.startswith("column:") for text in texts):
        raise ArgumentError(
            "policy", "must not mix columns of probabilities with policies that learn from the log"
        )
    log = Reader(source, columns or None, context).table()
    if log["features"].null_count() and not log["context"].null_count():
        log = logs.crossed(log)
    rest = log
    for label, policy in learners.items():
        agent, rest = fitted(log, policy)
        found[f"{label}, of the first half"] = agent
    return found, rest


def rows_where(path: Path, conditions: Sequence[str]) -> pl.DataFrame:
    """The rows of a table or a log in which columns have these values, each given as `column=value`."""
    table = _table(path) if path.suffix in (".csv", ".parquet") else logs.read(path)
    for condition in conditions:
        name, equals, value = condition.partition("=")
        if not equals:
            raise ArgumentError("where", f"must look like run=0, got {condition!r}")
        if name not in table.columns:
            raise ArgumentError("where", f"must name one of {', '.join(table.columns)}, got {condition!r}")
        if table[name].dtype.is_nested():
            raise ArgumentError("where", f"must name a column without lists, got {condition!r}")
        words = table[name].cast(pl.String)
        if value not in words:
            known = ", ".join(map(str, words.unique(maintain_order=True).head(5)))
            raise ArgumentError("where", f"must leave rows, got {condition!r} where {name} has {known}")
        table = table.filter(words == value)
    return table


def _column(source: pl.DataFrame | Path, name: str) -> pl.Series:
    """A column, with the rows and in the order in which `Reader` numbers them."""
    if isinstance(source, pl.DataFrame):
        table = source
    elif source.is_dir() or source.suffix in DSJSON:
        table = logs.read(source)
    else:
        table = _table(source)
    if name not in table.columns or not isinstance(table[name].dtype, pl.List | pl.Array):
        raise ArgumentError("policy", f"must name a column of lists of probabilities, got {name!r}")
    return table[name]


def _table(path: Path) -> pl.DataFrame:
    try:
        return pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise ArgumentError(
            "log", f"must be a table that can be read, got {str(path)!r} ({reason})"
        ) from None


def _loaded(path: Path) -> Agent | Loaded:
    if zipfile.is_zipfile(path):
        content = read_bandit(path)
        learnt = [record.event_id for record in content.records if record.reward is not None]
        return Loaded(Agent._restored(content.agent), learnt)
    return Agent.load(path)
