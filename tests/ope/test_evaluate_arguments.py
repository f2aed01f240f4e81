"""What `evaluate` cannot take is refused in one line; and what a policy has learnt from is said."""

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from solid_bandits import logs, ope
from solid_bandits.cli import main

ROWS = 30


def a_log():
    rng = np.random.default_rng(0)
    return logs.from_table(
        {
            "arm": rng.integers(3, size=ROWS),
            "reward": rng.random(ROWS),
            "probabilities": [[0.2, 0.3, 0.5]] * ROWS,
            "features": rng.normal(size=(ROWS, 3, 2)).tolist(),
        }
    )


THIRDS = [[0.2, 0.3, 0.5]] * ROWS


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"model": [[1, 2, 3]]}, "model must have one list for each of the 30 rows of the log, got 1"),
        ({"model": 5}, "model must be 'linear', a function, predictions or None, got 5"),
        ({"model": {}}, r"model must be 'linear', a function, predictions or None, got \{\}"),
        (
            {"model": [["a", "b", "c"]] * ROWS},
            r"model must have 3 rewards in row 0, .* got \['a', 'b', 'c'\]",
        ),
        (
            {"model": [[1.0, 2.0]] * ROWS},
            r"model must have 3 rewards in row 0, one for each arm, got \[1.0, 2.0\]",
        ),
        (
            {"model": [[1.0, None, 2.0]] * ROWS},
            "model must give finite rewards of at most .* got .* in row 0",
        ),
        ({"model": np.full((ROWS, 3), 1e300)}, "model must give finite rewards of at most .* in row 0"),
        (
            {"model": np.zeros(ROWS)},
            "model must be one list of numbers per row of the log, got an array of float64",
        ),
        ({"model": lambda shown: "x"}, "model must give 3 rewards in row 0, one for each arm, got 'x'"),
        (
            {"policy": pl.Series(THIRDS[:7])},
            "policy must have one list for each of the 30 rows of the log, got 7",
        ),
        (
            {"policy": [*THIRDS, [1.0, 0, 0]]},
            "policy must have one list for each of the 30 rows of the log, got 31",
        ),
        (
            {"policy": pl.Series([0.5] * ROWS)},
            "policy must be one list of numbers per row of the log, got a Series",
        ),
        (
            {"policy": np.zeros((ROWS, 3, 1))},
            "policy must be one list of numbers per row .* got an array of float64",
        ),
        (
            {"policy": pl.Series([["a", "b", "c"]] * ROWS)},
            "policy must be one list of numbers per row of the log",
        ),
        (
            {"policy": pl.Series([[0.5, 0.5]] * ROWS)},
            r"policy must have 3 probabilities in row 0, .* got \[0.5, 0.5\]",
        ),
        (
            {"policy": pl.Series([None, *THIRDS[1:]])},
            "policy must have 3 probabilities in row 0, .* got None",
        ),
        (
            {"policy": pl.Series([[0.5, None, 0.5]] * ROWS)},
            "policy must give probabilities >= 0 that sum to 1",
        ),
        ({"policy": np.full((ROWS, 2), 0.5)}, "policy must have 3 probabilities in row 0"),
        ({"policy": [5] * ROWS}, "policy must have 3 probabilities in row 0, one for each arm, got 5"),
        ({"policy": [["a"] * 3] * ROWS}, "policy must have 3 probabilities in row 0"),
        (
            {"policy": lambda shown, names: "x"},
            r"policy must return a probability for each arm, or the place of one, such as names.index\(",
        ),
        ({"missing_reward": 1e300}, "missing_reward must be .* got 1e"),
        ({"reward_range": (-1e308, 1e308)}, "reward_range must be two finite numbers of at most"),
        ({"log": pl.Series([1.0])}, "log must be a log, a table or a file"),
        ({"log": np.zeros(3)}, "log must be a log, a table or a file"),
    ],
)
def test_arguments_of_other_types_are_one_line(more, message):
    given = {"log": a_log(), "policy": "uniform"} | more
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        ope.evaluate(**given)
    assert "\n" not in str(caught.value)


def test_arrays_of_fixed_width_are_lists():
    log = a_log()
    fixed = pl.Series(THIRDS, dtype=pl.Array(pl.Float64, 3))
    found = [ope.evaluate(log, one, ["ips"], logger="fixed").value("ips") for one in (fixed, THIRDS)]
    assert found[0] == found[1] == pytest.approx(log["reward"].mean())


@pytest.fixture(scope="module")
def bandit():
    rng = np.random.default_rng(1)
    made = sb.Bandit(sb.EpsilonGreedy(epsilon=0.3), dim=2, noise_std=0.5, floor=0.2)
    for number in range(80):
        features = rng.normal(size=(3, 2))
        choice = made.decide(features, event_id=f"visit {number}")
        if number % 4:
            made.learn(choice.event_id, float(features[choice.arm, 0]))
    return made


def said(found):
    return [one for one in found.cautions if "has learnt from" in one]


def test_a_policy_that_saw_these_rewards_is_said_to_have_seen_them(bandit, tmp_path):
    logs.write(bandit.log(), tmp_path / "log.parquet")
    for log, policy in [
        (bandit, bandit),
        (bandit, bandit.agent),
        (bandit.log(), bandit),
        (bandit.log()[::-1], bandit),
        (tmp_path / "log.parquet", bandit),
    ]:
        (words,) = said(ope.evaluate(log, policy))
        assert words.startswith(
            "the policy has learnt from 60 rewards of this log, at the least: it knows their noise"
        )
    assert said(ope.evaluate(bandit, bandit, ["dm"]))
    (half,) = said(ope.evaluate(bandit.log().head(40), bandit))
    assert "from 30 rewards" in half


def test_others_are_not(bandit):
    other = bandit.log().with_columns(pl.col("event_id") + " again")
    assert said(ope.evaluate(other, bandit)) == []
    assert said(ope.evaluate(bandit, "uniform")) == []
    agent, rest = ope.fitted(bandit, sb.Greedy(), floor=0.1)
    assert said(ope.evaluate(rest, agent)) == []


def test_the_file_of_a_bandit_tells_too(bandit, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "300")
    logs.write(bandit.log(), tmp_path / "log.parquet")
    bandit.save(tmp_path / "bandit.zip")
    arguments = ["evaluate", tmp_path / "log.parquet", "--policy", tmp_path / "bandit.zip"]
    monkeypatch.setattr("sys.argv", ["solid-bandits", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert "the policy has learnt from 60 rewards of this log" in capsys.readouterr().out
