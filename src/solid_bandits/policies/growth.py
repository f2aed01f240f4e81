"""Agents that grow while they are at work: one more arm, one more column, new coordinates; and why an arm was chosen.

Each function takes a policy, the setting in which its agent was started, and the agent; it returns the new setting and
the new agent, and leaves its arguments unchanged. The agent's type stays the same, so nothing is recompiled. The
setting must have `blocks`, or `grows`.

    setting, agent = with_block(policy, setting, agent)                 # a new arm
    setting, agent = with_column(policy, setting, agent)                # a new category
    setting, agent = with_basis(policy, setting, agent, basis)          # (m, s) of a column are renewed
    explain(agent, rows, chosen, runner_up).chosen.estimate             # what each feature added
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from solid_bandits._internal import checks
from solid_bandits._internal.types import Floats
from solid_bandits.core.randomness import POLICY, make_rng
from solid_bandits.core.setting import Setting, make_setting
from solid_bandits.estimation.growth import (
    Parts,
    add_block,
    add_columns,
    change_basis,
    parts_of,
    require_apart,
)
from solid_bandits.policies import contract
from solid_bandits.policies.contract import CompiledAgent, Policy
from solid_bandits.policies.regression_policy import Change, RegressionPolicy


class Explanation(NamedTuple):
    """Contribution of each feature, for the arm chosen and for the runner-up."""

    chosen: Parts
    runner_up: Parts | None
    """The runner-up; None if no other arm was on offer."""


def with_block(
    policy: Policy, setting: Setting, agent: CompiledAgent, like: int | None = None
) -> tuple[Setting, Any]:
    """Add a block, numbered `setting.blocks` as it was: a new arm.

    Without `like` it starts from the prior, exactly as if it had been there from the start and never on offer. With it,
    it knows what that block knows: same coefficients, widths and evidence, which is its own from then on, also in the
    ridge by evidence. The rewards behind a copy count once: the estimate of σ has no more degrees of freedom than
    before, and its sum of squares grows only by the ridge's part, ν ‖θ‖², of one more block.

    From then on LinTS and VIDS draw the coefficients of one more block, and so other models.
    """
    _require_regression(policy, agent)
    if like is not None:
        like = checks.index("like", like, setting.blocks)
    return _changed(
        policy,
        setting,
        agent,
        setting._replace(blocks=setting.blocks + 1),
        Change(lambda regression: add_block(regression, like), lambda rows: rows),
    )


def with_column(
    policy: Policy, setting: Setting, agent: CompiledAgent, place: int | None = None, count: int = 1
) -> tuple[Setting, Any]:
    """Add columns of features, in every block if there are blocks, before column `place`; None is the end.

    The result is exactly as if these columns had been there from the start, with zeros: estimate, norms, ridge and σ of
    any arm with zeros in them are unchanged, and their own coefficients have the prior. `place` counts from 0, without
    the block number.
    """
    _require_regression(policy, agent)
    at = setting.width if place is None else checks.integer("place", place, least=0, most=setting.width)
    count = checks.integer("count", count, least=1)
    skipped = setting.dim - setting.width
    return _changed(
        policy,
        setting,
        agent,
        setting._replace(dim=setting.dim + count),
        Change(
            lambda regression: add_columns(regression, at, count),
            lambda rows: np.insert(rows, [skipped + at] * count, 0.0, axis=1),
        ),
    )


def with_basis(
    policy: Policy, setting: Setting, agent: CompiledAgent, basis: ArrayLike
) -> tuple[Setting, Any]:
    """Change the coordinates of features to φ_new = M φ_old in every block, with M = `basis`, shape (width, width).

    This is for columns standardised as (x - m) / s, whose m and s are renewed: M is diagonal except for the column of
    the intercept, (x - m') / s' = (s / s') · (x - m) / s + (m - m') / s' · 1. The evidence without its ridge is moved
    exactly, as if all rewards had come with the new features, and the ridge is put back by its own rules
    (`estimation.growth.change_basis`): the agent's further decisions depend only on the features in the new
    coordinates, however they were written before.
    """
    _require_regression(policy, agent)
    matrix = np.array(checks.array("basis", basis, "width", "width"))
    if matrix.shape != (setting.width, setting.width):
        raise ValueError(f"basis must have shape {(setting.width, setting.width)}, got {matrix.shape}")
    skipped = setting.dim - setting.width

    def moved(rows: Floats) -> Floats:
        return np.hstack([rows[:, :skipped], rows[:, skipped:] @ matrix.T])

    return _changed(
        policy,
        setting,
        agent,
        setting,
        Change(lambda regression: change_basis(regression, matrix), moved),
    )


def explain(agent: CompiledAgent, rows: Floats, chosen: int, runner_up: int | None) -> Explanation:
    """Return what each feature of two of the arms on offer (`rows`, shape (arms, dim)) adds to estimate and squared
    width.
    """
    regression = getattr(agent.state, "regression", None)
    parts = parts_of(regression, rows[chosen])
    return Explanation(parts, None if runner_up is None else parts_of(regression, rows[runner_up]))


def require_growing(policy: Policy, setting: Setting, agent: CompiledAgent) -> None:
    """Raise a ValueError unless the agent can grow; a column is added to a copy of it."""
    with_column(policy, setting, agent)


def _require_regression(policy: Policy, agent: Any) -> None:
    if not isinstance(policy, RegressionPolicy) or not hasattr(agent.state, "regression"):
        raise ValueError(
            "policy must be a RegressionPolicy to grow with named features, with its regression as state.regression, "
            f"such as LinTS, got {policy.name}"
        )
    require_apart(agent.state.regression)


def _changed(
    policy: Policy, setting: Setting, agent: Any, grown: Setting, change: Change
) -> tuple[Setting, Any]:
    """Return an agent started in the grown setting, with the state of the given one."""
    assert isinstance(policy, RegressionPolicy)  # it has been asked
    known = make_setting(
        grown.dim,
        grown.noise_std or None,
        grown.theta_bound or None,
        grown.horizon or None,
        grown.blocks,
        grown.grows,
    )
    fresh: Any = contract.start(policy, known, None, make_rng(0, 0, POLICY))
    return known, fresh._replace(state=policy.carry(agent.state, change))
