"""Rewards, shares and calibration of made-up tables with known answers."""

import numpy as np
import polars as pl
import pytest

from solid_bandits.statistics.on_streams import (
    OTHER_ARMS,
    arm_shares,
    calibration,
    calibration_errors,
    final_rewards,
    reward_rates,
)


def test_rewards_per_round():
    table = pl.DataFrame(
        {
            "policy": ["a"] * 4,
            "run": [0, 0, 1, 1],
            "step": [10, 20, 10, 20],
            "reward": [5.0, 20.0, 15.0, 40.0],
            "ridge_regret": [0.0, 1.0, 0.0, 3.0],
        }
    )
    assert reward_rates(table)["mean"].to_list() == [1.0, 1.5]
    last = final_rewards(table)
    assert last["mean"].item() == 1.5
    assert last["ridge_regret"].item() == 2.0
    # Student's 95% quantile with one degree of freedom is 12.706.
    assert last["high"].item() - 1.5 == pytest.approx(12.7062 * 0.5, rel=1e-4)


def pulls_table(pulls, steps):
    """From pulls up to each step, shape (steps, arms)."""
    return pl.DataFrame(
        [
            {"policy": "a", "step": step, "arm": arm, "pulls": int(count)}
            for step, row in zip(steps, pulls, strict=True)
            for arm, count in enumerate(row)
        ]
    )


def test_shares_are_those_of_each_stretch():
    shares = arm_shares(pulls_table([[10, 0], [10, 10], [15, 25]], [10, 20, 40]))
    for step, expected in ((10, [1.0, 0.0]), (20, [0.0, 1.0]), (40, [0.25, 0.75])):
        assert shares.filter(pl.col("step") == step).sort("arm")["share"].to_list() == pytest.approx(expected)


def test_arms_that_are_seldom_pulled_are_one():
    final = np.arange(20, 0, -1)
    shares = arm_shares(pulls_table([final], [int(final.sum())]))
    assert sorted(shares["arm"].to_list()) == [OTHER_ARMS, *range(8)]
    assert shares.filter(pl.col("arm") == OTHER_ARMS)["share"].item() == pytest.approx(
        final[8:].sum() / final.sum()
    )
    assert shares["share"].sum() == pytest.approx(1)


def test_no_arms_no_shares():
    assert arm_shares(pulls_table([[1]], [1]).clear()).height == 0


def test_bins_hold_equally_many_rounds_of_the_second_half():
    predicted = np.random.default_rng(0).permutation(1000) / 100
    samples = pl.DataFrame(
        {
            "policy": "a",
            "run": 0,
            "step": np.arange(1, 2001),
            "predicted": [*[1e6] * 1000, *predicted],
            "reward": 0.0,
        }
    ).with_columns(reward=2 * pl.col("predicted"))
    binned = calibration(samples)
    assert binned["rounds"].to_list() == [100] * 10
    assert binned["predicted"].to_list() == pytest.approx([(100 * k + 49.5) / 100 for k in range(10)])
    assert binned["reward"].to_list() == pytest.approx((2 * binned["predicted"]).to_list())
    assert calibration_errors(samples) == {"a": pytest.approx(4.995)}
    assert calibration_errors(samples.with_columns(reward="predicted"))["a"] == pytest.approx(0, abs=1e-12)
