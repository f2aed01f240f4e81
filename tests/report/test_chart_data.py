"""Numbers for charts."""

import math

import polars as pl

from solid_bandits.report.chart_data import curve, rounded


def test_a_curve_has_an_interval_where_every_step_has_one():
    columns = {"policy": ["a", "a", "b", "b"], "step": [1, 2, 1, 2], "mean": [0.5, 1.0, 2.0, 3.0]}
    summary = pl.DataFrame(columns | {"low": [0.0, 0.5, None, 2.0], "high": [1.0, 1.5, None, 4.0]})
    assert curve(summary, "a") == {"step": [1, 2], "mean": [0.5, 1.0], "low": [0.0, 0.5], "high": [1.0, 1.5]}
    assert curve(summary, "b") == {"step": [1, 2], "mean": [2.0, 3.0], "low": None, "high": None}


def test_what_is_no_number_is_null():
    values = [math.pi, 1e7 / 3, 2.0, 0.0, math.inf, math.nan, None]
    assert rounded(values, 5) == [3.1416, 3333300, 2, 0, None, None, None]
