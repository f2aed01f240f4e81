"""Policies that are evaluated by words, as the command line and the service take them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from solid_bandits._internal.checks import ArgumentError
from solid_bandits.core.agent import Agent
from solid_bandits.core.agent_file import BANDIT_FILE
from solid_bandits.features.spec import Features
from solid_bandits.live.bandit import Bandit
from solid_bandits.live.tables import features_of
from solid_bandits.ope.evaluate import Evaluation, evaluate
from solid_bandits.ope.fitted import Learner, fit
from solid_bandits.ope.rows import Reader, opened
from solid_bandits.ope.targets import Target, as_target, frozen
from solid_bandits.policies.contract import DecisionPolicy
from solid_bandits.policies.naming import by_name


def evaluate_words(
    log: Any, words: Sequence[str], features: Features | None = None, **settings: Any
) -> dict[str, Evaluation]:
    """Evaluate policies by words, as `asked_words` takes them, on one reading of the log."""
    reader, policies = asked_words(log, words, features=features)
    return evaluate(reader, policies, **settings)


def asked_words(
    log: Any,
    words: Sequence[str],
    *,
    files: bool = False,
    where: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    context: Sequence[str] = (),
    missing_reward: float | None = None,
    without: Sequence[str] = (),
    features: Features | None = None,
) -> tuple[Reader, dict[str, Any]]:
    """Return the log and the policies that words stand for, by their labels.

    Args:
        log: as for `evaluate`.
        words: `uniform`; `always:ARM`; or one of our policies by name, which learns from the first half of the log:
            then all are to be evaluated on the second half, which is what is returned.
        files: whether words may also be the file of an agent or a bandit, or `column:NAME`, a column of probabilities
            of the log, which is a path then.
        where: only rows in which columns have these values, each given as `column=value`; the log is a path then.
        columns: as for `evaluate`.
        context: as for `evaluate`.
        missing_reward: as for `evaluate`.
        without: names of a log with named values; policies that learn are evaluated once more without them.
        features: declaration of the log's named values; None is that of the bandit or store, if it is one.
    """
    named = [word.removeprefix("column:") for word in words if files and word.startswith("column:")]
    if where or named:
        features = features_of(log) if features is None else features
        log = _filtered(opened(log), where)
    targets: dict[str, Any] = {}
    learners: dict[str, Learner] = {}
    for word in dict.fromkeys(words):
        kind, _, name = word.partition(":")
        if word == "uniform" or (kind == "always" and name):
            targets[word] = word
        elif files and kind == "column" and name:
            targets[word] = as_target(_column(log, name))
        elif files and Path(word).is_file():
            targets[Path(word).name] = _loaded(Path(word))
        else:
            for label, policy in by_name([word], "random", 2).items():
                if not isinstance(policy, DecisionPolicy):
                    raise ArgumentError("policy", f"must be one that decides from features, got {word!r}")
                learners[label] = Learner(policy)
    if learners and named:
        raise ArgumentError(
            "policy", "must not mix columns of probabilities with policies that learn from the log"
        )
    if without and not learners:
        raise ArgumentError(
            "without",
            "must go with a policy that learns from the log, such as --policy greedy, got "
            f"{', '.join(words) or 'none'}",
        )
    reader = Reader(log, columns, context, missing_reward, features)
    if learners:
        if without:
            learners |= {
                f"{label} without {', '.join(without)}": Learner(one.policy, _left(reader, without))
                for label, one in learners.items()
            }
        agents, reader = fit(reader, learners)
        targets |= {f"{label}, of the first half": agent for label, agent in agents.items()}
    return reader, targets


def _left(reader: Reader, without: Sequence[str]) -> Features:
    """The features that a log declares, without some names."""
    every = reader.features
    known = [] if every is None else [*every.context, *every.arm_features]
    for name in without:
        if name not in known:
            names = ", ".join(known) or "none"
            raise ArgumentError(
                "without", f"must be a name that the log has, got {name!r}; there are {names}"
            )
    assert every is not None  # one name is known
    context, own = (
        {name: kind for name, kind in side.items() if name not in without}
        for side in (every.context, every.arm_features)
    )
    if not own and every.arms is None:
        raise ArgumentError("without", "must leave a name of the arms' features")
    pairs = [pair for pair in every.interactions if not set(pair) & set(without)]
    return Features(context, every.arms, own, pairs, every.categories)


def _filtered(table: pl.DataFrame, conditions: Sequence[str]) -> pl.DataFrame:
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


def _column(table: pl.DataFrame, name: str) -> pl.Series:
    if name not in table.columns or not isinstance(table[name].dtype, pl.List | pl.Array):
        raise ArgumentError("policy", f"must name a column of lists of probabilities, got {name!r}")
    return table[name]


def _loaded(path: Path) -> Target:
    with path.open("rb") as file:
        bandit = file.read(len(BANDIT_FILE)) == BANDIT_FILE
    return as_target(Bandit.load(path)) if bandit else frozen(Agent.load(path))
