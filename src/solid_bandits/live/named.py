"""A bandit whose decisions bring named values: its design, the agent that grows with it, and why an arm was chosen."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from solid_bandits._internal import checks, tables
from solid_bandits.core.agent import Agent
from solid_bandits.core.decision import Decision
from solid_bandits.features.design import Design, Named
from solid_bandits.features.spec import Features
from solid_bandits.features.values import of_pandas
from solid_bandits.policies.growth import explain, require_growing, with_basis, with_block, with_column

if TYPE_CHECKING:  # loaded by whoever has a table
    import polars as pl


class Frame(Protocol):
    """A data frame of polars or pandas."""

    @property
    def columns(self) -> Any:
        """Return its columns."""


class Part(NamedTuple):
    """Contribution of one name to the estimate and to the squared width of two arms, the chosen one and the
    runner-up.
    """

    estimate: float
    squared_width: float
    other_estimate: float
    other_squared_width: float


class Why(NamedTuple):
    """Contribution of each named feature to the chosen arm's estimate and width, compared with the runner-up.

    The parts of an estimate sum to it, and so do those of a squared width, ‖φ‖²_{V^-1} in units of σ². The runner-up is
    the arm with the largest estimate among the others on offer. All is by what the bandit knows when this is read.
    """

    arm: str
    runner_up: str | None
    parts: dict[str, Part]
    """Contributions by name; `constant` is the arm's own level, `age × price` an interaction."""

    @property
    def estimate(self) -> float:
        """The expected reward of the chosen arm."""
        return sum(part.estimate for part in self.parts.values())

    @property
    def squared_width(self) -> float:
        """‖φ‖²_{V^-1} of the chosen arm."""
        return sum(part.squared_width for part in self.parts.values())

    def table(self) -> "pl.DataFrame":
        """The parts as a table, the largest difference to the runner-up first."""
        frame: pl.DataFrame = tables.DataFrame(
            [{"name": name} | part._asdict() for name, part in self._sorted()]
        )
        return frame

    def _sorted(self) -> list[tuple[str, Part]]:
        return sorted(self.parts.items(), key=lambda one: -abs(one[1].estimate - one[1].other_estimate))

    def __str__(self) -> str:
        other = "" if self.runner_up is None else f" (beside {self.runner_up})"
        lines = [f"{self.arm}{other}: estimate {self.estimate:.4g}, squared width {self.squared_width:.4g}"]
        for name, part in self._sorted():
            beside = "" if self.runner_up is None else f" ({part.other_estimate:+.4g})"
            lines.append(f"  {name}: {part.estimate:+.4g}{beside}, width² {part.squared_width:+.4g}")
        return "\n".join(lines)


def new_agent(features: Features, policy: Any, **settings: Any) -> tuple[Design, Agent]:
    """Return the design of these features before its first row, and an agent of its size."""
    design = Design(features)
    if design.blocked:
        agent = Agent(policy, dim=1 + design.dim, blocks=len(design.arms), **settings)
    else:
        agent = Agent(policy, dim=design.dim, grows=True, **settings)
    require_growing(agent.policy, agent._setting, agent._compiled)
    return design, agent


def take(design: Design, agent: Agent, named: Named) -> None:
    """Take in the values of a decision, the agent growing with them."""
    change = design.take(named)
    if change.added:
        agent.change(with_column, count=change.added)
    if change.basis is not None:
        agent.change(with_basis, basis=change.basis)


def chosen_of(named: Named, place: int) -> Named:
    """Return the values of one arm alone."""
    own = None if named.own is None else (named.own[place],)
    raws = None if named.own_raw is None else (named.own_raw[place],)
    return Named(named.context, (named.arms[place],), own, named.raw, raws)


def add_arm(design: Design, agent: Agent, arm: str, like: str | None) -> None:
    """Add an arm, or take a removed one back."""
    number = None if like is None else design.arms.index(like)
    added = design.add_arm(arm)
    if added is None:
        return
    if design.blocked:
        agent.change(with_block, like=number)
    elif added:
        agent.change(with_column, count=added)


def why(design: Design, agent: Agent, decision: Decision) -> Why:
    """Return what each named feature of a decision adds, by what is known now."""
    named: Named = decision.named
    rows = np.ascontiguousarray(design.encode(named))
    runner_up = None
    if len(rows) > 1:
        means = agent.predict(rows)[0]
        means[decision.place] = -np.inf
        runner_up = int(means.argmax())
    with agent._lock:
        found = explain(agent._compiled, rows, decision.place, runner_up)
    other = found.runner_up
    parts: dict[str, list[float]] = {}
    for place, name in enumerate(design.said_by()):
        own = parts.setdefault(name, [0.0] * 4)
        own[0] += float(found.chosen.estimate[place])
        own[1] += float(found.chosen.squared_width[place])
        if other is not None:
            own[2] += float(other.estimate[place])
            own[3] += float(other.squared_width[place])
    return Why(
        named.arms[decision.place],
        None if runner_up is None else named.arms[runner_up],
        {name: Part(*numbers) for name, numbers in parts.items()},
    )


def offers_of(
    frame: Any, features: Features, event_ids: Any = None, subjects: Any = None
) -> list[dict[str, Any]]:
    """Return the rows of a frame of polars or pandas as offers; it must have all columns of the context."""
    if features.arm_features:
        raise checks.ArgumentError(
            "context",
            "must be values by names where arms bring features of their own, got a data frame: use decide_many",
        )
    present = [str(name) for name in frame.columns]
    missing = [name for name in features.context if name not in present]
    if missing:
        raise checks.ArgumentError(
            "frame", f"must have the columns {', '.join(features.context)}, got no {missing[0]!r}"
        )
    rows: list[Any]
    if _is_polars(frame):
        rows = frame.select(*features.context).rows(named=True)
    else:
        columns = [[of_pandas(one) for one in frame[name].tolist()] for name in features.context]
        rows = [dict(zip(features.context, row, strict=True)) for row in zip(*columns, strict=True)]
    offers = [{"context": row} for row in rows]
    for name, values in (("event_id", event_ids), ("subject", subjects)):
        if values is not None:
            if isinstance(values, str) or len(values) != len(offers):
                raise checks.ArgumentError(
                    name, f"must be a list of {len(offers)}, one a row, got {checks.short(values)}"
                )
            offers = [{**offer, name: value} for offer, value in zip(offers, values, strict=True)]
    return offers


def _is_polars(given: Any) -> Any:
    """Return whether this is a frame of polars, which need not be loaded to say no."""
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(given, polars.DataFrame)


def is_frame(given: Any) -> bool:
    """Return whether this is a data frame; raise an ArgumentError if its rows are yet to be computed."""
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(given, polars.LazyFrame):
        raise checks.ArgumentError("context", "must be a frame with its rows, got a LazyFrame: collect() it")
    return _is_polars(given) or (
        hasattr(given, "columns") and hasattr(given, "iloc") and not isinstance(given, Mapping)
    )


def declared(
    features: Features | None,
    context: Any,
    arms: Sequence[str] | None,
    arm_features: Any,
    interactions: Any,
    dim: int | None,
) -> Features | None:
    """Return the features that a bandit's arguments declare; None where it takes matrices."""
    told = {"context": context, "arms": arms, "arm_features": arm_features, "interactions": interactions}
    given = [name for name, value in told.items() if value is not None and (arms is value or len(value))]
    if features is not None and not isinstance(features, Features):
        raise checks.ArgumentError("features", f"must be sb.Features(...), got {checks.short(features)}")
    if features is not None and given:
        raise checks.ArgumentError(given[0], "must be left out where features is given, which says it")
    if dim is not None and (features is not None or given):
        raise checks.ArgumentError(
            "dim",
            f"must be left out where features have names, got {dim} and {given[0] if given else 'features'}",
        )
    if features is None and not given:
        if dim is None:
            raise checks.ArgumentError(
                "dim",
                "must be given where decisions bring matrices; or context and arms, where they have names",
            )
        return None
    return features or Features(context or (), arms, arm_features or (), interactions)
