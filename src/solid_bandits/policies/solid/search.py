"""Search for the closest alternative under V_ω: over all pairs, over those that can be it, or within ‖θ'‖ <= B."""

from typing import NamedTuple

from solid_bandits._internal.compiling import jit
from solid_bandits._internal.dispatch import by_type, variant
from solid_bandits._internal.types import Floats
from solid_bandits.estimation.linalg.gram import sparse_weighted_gram, weighted_gram
from solid_bandits.planning.ball import closest_in_ball
from solid_bandits.planning.closest import closest_alternative
from solid_bandits.planning.pruned import pruned_alternative
from solid_bandits.policies.solid.state import SolidAgent

MANY_PAIRS = 512
"""Number of context-arm pairs from which leaving pairs out saves more than it costs to find out which."""


@by_type
def find_closest(search: object, agent: SolidAgent, means: Floats) -> None:
    """Write V_ω of `work.weights` into `work.gram` and θ-tilde - θ' into `work.delta`, θ' being the closest
    alternative.
    """
    raise NotImplementedError


class EveryPair(NamedTuple):
    """Search in closed form, pair by pair."""

    unused: int
    """Unused; compiled code needs at least one field."""


@jit
def _every_pair(search: EveryPair, agent: SolidAgent, means: Floats) -> None:
    columns, work = agent.table.columns, agent.work
    weighted_gram(columns, work.weights, work.columns, work.gram)
    closest_alternative(columns, means, work.gram, work.factor, work.columns, work.norms, work.delta)


class FewOfMany(NamedTuple):
    """Search with the same result, without the pairs that cannot matter."""

    unused: int
    """Unused; compiled code needs at least one field."""


@jit
def _few_of_many(search: FewOfMany, agent: SolidAgent, means: Floats) -> None:
    table, work = agent.table, agent.work
    sparse_weighted_gram(
        table.columns, work.weights, table.feature_bound, work.chosen, work.columns, work.gram
    )
    pruned_alternative(table.features, table.columns, means, work.gram, work.factor, work.bounds, work.delta)


class InBall(NamedTuple):
    """Search with ‖θ'‖ <= B, as in the theorems."""

    unused: int
    """Unused; compiled code needs at least one field."""


@jit
def _in_ball(search: InBall, agent: SolidAgent, means: Floats) -> None:
    table, work, projected = agent.table, agent.work, agent.state.projected
    assert projected is not None  # this is the theorems' form
    weighted_gram(table.columns, work.weights, work.columns, work.gram)
    closest_alternative(table.columns, means, work.gram, work.factor, work.columns, work.norms, work.delta)
    closest_in_ball(
        table.features,
        agent.setting.theta_bound,
        projected.theta,
        means,
        work.gram,
        work.norms,
        work.delta,
    )


variant(find_closest, EveryPair, _every_pair)
variant(find_closest, FewOfMany, _few_of_many)
variant(find_closest, InBall, _in_ball)
