from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import naive
import solid_bandits as sb
from solid_bandits.core.loop import _begin, _loop, checkpoints

POLICIES = {
    "SOLID": sb.Solid(),
    "LinUCB": sb.LinUCB(),
    "paper": sb.LinTS(scale="paper"),
    "posterior": sb.LinTS(),
    "Greedy": sb.Greedy(),
}


def test_results_do_not_depend_on_the_number_of_processes():
    problem = sb.problems.toy()
    tables = [sb.simulate(problem, POLICIES, 300, runs=23, seed=4, jobs=jobs).table for jobs in (1, 2, 3)]
    assert_frame_equal(tables[0], tables[1], check_exact=True)
    assert_frame_equal(tables[0], tables[2], check_exact=True)


def test_a_run_does_not_depend_on_its_company():
    """Neither on how many runs there are, nor on which other policies play, nor on its label."""
    problem = sb.problems.random(seed=1)
    many = sb.simulate(problem, POLICIES, 200, runs=9, seed=0, jobs=1).table
    few = sb.simulate(problem, {"x": POLICIES["SOLID"]}, 200, runs=4, seed=0, jobs=1).table
    kept = many.filter((pl.col("policy") == "SOLID") & (pl.col("run") < 4)).with_columns(policy=pl.lit("x"))
    assert_frame_equal(few, kept, check_exact=True)


@pytest.mark.parametrize("name", POLICIES)
def test_regret_and_exploring_rounds_are_the_references(name):
    """The reference draws contexts and noise from (seed, run) alone: every policy sees the same ones."""
    problem, horizon = sb.problems.toy(first_context_prob=0.7), 400
    table = sb.simulate(problem, {name: POLICIES[name]}, horizon, runs=2, seed=5, jobs=1).table
    for run in range(2):
        played = list(naive.steps(problem, POLICIES[name], horizon, seed=5, run=run))
        regret = np.cumsum([problem.gaps[context, arm] for context, arm, *_ in played])
        explored = np.cumsum([explored for _, _, explored, *_ in played])
        rows = table.filter(pl.col("run") == run)
        assert rows["regret"].to_numpy() == pytest.approx(regret[rows["step"].to_numpy() - 1])
        assert (rows["explored"].to_numpy() == explored[rows["step"].to_numpy() - 1]).all()


def test_seeds_and_runs_differ():
    problem = sb.problems.toy()
    first, second = (
        sb.simulate(problem, {"p": sb.LinTS()}, 500, runs=2, seed=seed, jobs=1).table for seed in (0, 1)
    )
    finals = [
        frame.filter((pl.col("step") == 500) & (pl.col("run") == run))["regret"].item()
        for frame in (first, second)
        for run in (0, 1)
    ]
    assert len(set(finals)) == 4


def test_contexts_come_with_their_probabilities():
    # Regret of a policy with one arm to choose from tells nothing; count contexts through what SOLID counts.
    problem = sb.Problem(np.eye(3)[:, None, :], [1, 2, 3], context_probs=[0.5, 0.3, 0.2])
    horizon = 20_000
    agent, truth, trace, environment = _begin(problem, sb.Solid(), horizon, 0, 0, np.array([horizon]))
    _loop(agent, truth, trace, environment, 0, 1)
    shares = agent.state.context_counts / horizon
    errors = np.sqrt(problem.context_probs * (1 - problem.context_probs) / horizon)
    assert (np.abs(shares - problem.context_probs) < 5 * errors).all()  # false alarm below 2e-6
    # And the noise has the right size: the estimates are within 5 standard errors of θ, and so is its variance.
    estimator = agent.state.regression.estimator
    theta = np.linalg.solve(estimator.triangle, estimator.targets)
    assert (np.abs(theta - problem.theta) < 5 / np.sqrt(shares * horizon) + 1e-3).all()
    assert estimator.residual / horizon == pytest.approx(1, abs=5 * np.sqrt(2 / horizon) + 1e-3)


@given(st.integers(1, 10**7))
def test_checkpoints(horizon):
    steps = checkpoints(horizon)
    assert (steps[0], steps[-1]) == (1, horizon)
    assert (np.diff(steps) > 0).all()
    assert len(steps) <= 200
    if horizon >= 10_000:
        assert len(steps) >= 150
        assert (steps[1:] <= steps[:-1] + horizon / 90).all()


def test_progress_ends_at_one():
    seen = []
    sb.simulate(sb.problems.toy(), {"g": sb.Greedy()}, 10, runs=30, jobs=1, progress=seen.append)
    assert seen[0] == 0
    assert seen[-1] == 1
    assert seen == sorted(seen)


def test_the_manifest_says_what_was_done():
    results = sb.simulate(sb.problems.toy(), POLICIES, 10, runs=3, seed=7, jobs=1)
    configuration = results.manifest["configuration"]
    assert (configuration["horizon"], configuration["runs"], configuration["seed"]) == (10, 3, 7)
    assert configuration["policies"]["SOLID"] == {"kind": "Solid", **vars(POLICIES["SOLID"])}
    assert configuration["problem"]["fingerprint"] == sb.problems.toy().fingerprint
    assert results.manifest["versions"]["solid-bandits"] == sb.__version__
    assert results.table.columns == ["policy", "run", "step", "regret", "explored"]


BAD = [
    ({"horizon": 0}, "horizon must be an integer >= 1, got 0"),
    ({"horizon": 1.5}, "horizon must be an integer >= 1, got 1.5"),
    ({"runs": 0}, "runs must be an integer >= 1, got 0"),
    ({"seed": -1}, "seed must be an integer >= 0, got -1"),
    ({"jobs": 0}, "jobs must be an integer >= 1, got 0"),
    ({"policies": {}}, "policies must not be empty"),
    (
        {"policies": {"x": sb.Solid}},
        r"policies\['x'\] must be an object, got the class Solid; give Solid\(\)",
    ),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        sb.simulate(
            **{"problem": sb.problems.toy(), "policies": POLICIES, "horizon": 10, "runs": 1, **change}
        )


@dataclass(frozen=True)
class Odd(sb.Greedy):
    """A policy with parameters that no file can hold."""

    function: object = len
    table: object = None


@pytest.mark.parametrize("table", [None, {(1, 2): 3}, np.ones(2), object()])
def test_parameters_that_no_file_can_hold_are_text_in_the_manifest(table, tmp_path):
    results = sb.simulate(sb.problems.toy(), {"odd": Odd(table=table)}, 10, runs=2, jobs=1)
    described = results.manifest["configuration"]["policies"]["odd"]
    assert described["function"] == "<built-in function len>"
    results.save(tmp_path)
    results.save(tmp_path)  # they are the same
    assert sb.Results.load(tmp_path).manifest["configuration"] == results.manifest["configuration"]
