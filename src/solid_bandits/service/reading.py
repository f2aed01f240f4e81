"""The log of a model as a file, and evaluations of other policies on it, computed in a separate process.

`python -m solid_bandits.service.reading` repeatedly takes one request as a line of JSON and answers it in one line. It
reads the store itself, so that nothing of the log is in the service's memory, and the service may end it at any time
(`reports.Reports`).
"""

import json
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl

from solid_bandits import logs, ope
from solid_bandits._internal.types import Plain
from solid_bandits.features.spec import Features
from solid_bandits.live.store import StoreError
from solid_bandits.live.tables import table_of
from solid_bandits.ope.named import evaluate_words
from solid_bandits.service.helpers import begin
from solid_bandits.service.open_store import open_store
from solid_bandits.service.schemas import Estimate, EvaluationAnswer, ModelSpec, PolicyValue, plain_number


def as_file(table: pl.DataFrame, kind: str, path: Path) -> None:
    """Write a Parquet or dsjson file."""
    if kind == "parquet":
        table.write_parquet(path)
    else:
        logs.write_dsjson(table, path)


def evaluated(table: pl.DataFrame, policies: Sequence[str], features: Features | None) -> EvaluationAnswer:
    """Return values of policies given by name: `uniform`, `always:ARM`, or one of ours, fitted to the first half.

    It sees named values as the model's `features` declare them.

    Files cannot be named, unlike on the command line, because these names come from callers.
    """
    found = evaluate_words(table, policies, features)
    numbers = next(iter(found.values())).diagnostics
    return EvaluationAnswer(
        rows=numbers["rows"] + numbers["rows without a reward, left out"],
        earned=plain_number(numbers["mean reward of the log"]),
        policies=[_value(label, evaluation) for label, evaluation in found.items()],
    )


def _value(label: str, evaluation: ope.Evaluation) -> PolicyValue:
    estimates = [
        Estimate(
            estimator=row["estimator"],
            value=plain_number(row["value"]),
            low=plain_number(row["low"]),
            high=plain_number(row["high"]),
            interval=row["interval"],
            note=row["note"],
        )
        for row in evaluation.table.iter_rows(named=True)
    ]
    return PolicyValue(policy=label, estimates=estimates, cautions=list(evaluation.cautions))


def answered(asked: Plain) -> Plain:
    """Answer a request: what to do, where the log is, which events, and where to put the answer."""
    after, until = asked["after"], asked["until"]
    place = (Path(asked["data"]), None) if asked["database"] is None else (None, asked["database"])
    with closing(open_store(*place)) as store:
        end = store.last(asked["model"])
        last = end if until is None else min(until, end)
        first = max(last - asked["newest"], 0) if after is None else after
        most = asked["events"]
        if last - first > most:
            words = f"until must be at most {first + most}: an answer is from {most:,} events at most"
            return {"invalid": words}
        try:
            table = table_of(store, asked["model"], asked["policy"], first, last, asked["bytes"])
            if asked["policies"] is None:
                as_file(table, asked["format"], Path(asked["path"]))
                return {}
            row = next(row for row in store.models() if row.id == asked["model"])
            features = ModelSpec.model_validate_json(row.spec).features
            return {"answer": evaluated(table, asked["policies"], features).model_dump_json()}
        except StoreError:
            raise
        except ValueError as error:
            return {"invalid": str(error)}


def main() -> None:
    """Answer requests until there are no more."""
    begin(nice=19)
    for line in sys.stdin:
        found: dict[str, Any]
        try:
            found = answered(json.loads(line))
        except StoreError:
            found = {"unavailable": "the log cannot be read now; try again"}
        except Exception as error:
            found = {"fault": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
