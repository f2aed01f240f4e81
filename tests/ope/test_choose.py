"""Choosing settings from a log: terms that are what they should be, and the answer that the log cannot tell."""

import numpy as np
import pytest

import solid_bandits as sb
from solid_bandits import ope
from solid_bandits.ope.models import as_model
from solid_bandits.ope.rows import Reader
from solid_bandits.ope.targets import as_target
from solid_bandits.ope.terms import collect, dr_terms


def uniform_log(rows, seed=0, arms=3, noise=0.3):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, arms, 2))
    arm = rng.integers(arms, size=rows)
    return {
        "arm": arm,
        "reward": features[np.arange(rows), arm] @ [0.5, -0.2] + noise * rng.normal(size=rows),
        "probabilities": np.full((rows, arms), 1 / arms).tolist(),
        "features": features.tolist(),
    }


def test_a_policy_that_does_not_learn_has_its_doubly_robust_value():
    log = uniform_log(600)
    always = [[1.0, 0.0, 0.0]] * 600
    found = ope.choose(log, {"one": always, "uniform": "uniform"}, blocks=6)
    asked = {"one": as_target(always)}
    terms = collect(Reader(log), asked, as_model("linear"), None, True)["one"].terms
    row = dict(zip(found.table["policy"], found.table["value"], strict=True))
    assert row["one"] == pytest.approx(dr_terms(terms).mean(), rel=1e-12)  # blocks are of the same length


def test_settings_that_are_the_same_cannot_be_told_apart():
    found = ope.choose(
        uniform_log(1500), {"one": sb.Greedy(), "other": sb.Greedy(), "never": "uniform"}, blocks=5
    )
    assert found.best is None
    assert found.said.startswith("Cannot tell: one earned most in 5 runs of about")
    assert found.said.endswith("per decision, but other may be better.")
    rows = {row["policy"]: row for row in found.table.iter_rows(named=True)}
    assert rows["other"]["behind"] == 0
    assert rows["never"]["settled"]
    assert found.decisions == pytest.approx(100, rel=0.25)  # a third of 300 rows


def test_exploration_is_accounted_for():
    """Greedy and a policy that explores in 9 of 10 rounds: in value they differ by about 0.6 of what there is."""
    found = ope.choose(
        uniform_log(3000), {"greedy": sb.Greedy(), "wild": sb.EpsilonGreedy(epsilon=0.9)}, blocks=5
    )
    assert found.best == "greedy"
    value = dict(zip(found.table["policy"], found.table["value"], strict=True))
    assert value["wild"] < 0.25 * value["greedy"]


@pytest.mark.long
def test_the_value_is_that_of_live_runs():
    """EpsilonGreedy(0.3) in 12 logs of 5 runs, about 100 decisions each, and in 400 live runs of 100: within 4 standard
    errors of their difference (6e-5)."""
    found = [
        ope.choose(
            uniform_log(1500, seed),
            {"it": sb.EpsilonGreedy(epsilon=0.3), "no": "uniform"},
            blocks=5,
            seed=seed,
        )
        for seed in range(12)
    ]
    values = np.array(
        [dict(zip(one.table["policy"], one.table["value"], strict=True))["it"] for one in found]
    )
    live = np.zeros(400)
    for run in range(400):
        rng = np.random.default_rng([run, 1])
        agent = sb.Agent(sb.EpsilonGreedy(epsilon=0.3), dim=2, noise_std=0.6, seed=run)
        for _ in range(100):
            offer = rng.normal(size=(3, 2))
            decision = agent.decide(offer)
            mean = offer[decision.arm] @ [0.5, -0.2]
            agent.learn(decision, mean + 0.3 * rng.normal())
            live[run] += mean / 100
    error = np.sqrt(values.var(ddof=1) / 12 + live.var(ddof=1) / 400)
    assert abs(values.mean() - live.mean()) < 4 * error


@pytest.mark.parametrize(
    ("policies", "settings", "message"),
    [
        ({"one": "uniform"}, {}, "policies must be two labels to policies or more"),
        (["uniform", "uniform"], {}, "policies must be two labels to policies or more"),
        ({"a": sb.Greedy(), "b": "uniform"}, {"blocks": 50}, "log cannot answer: runs would have"),
        ({"a": sb.Greedy(), "b": "uniform"}, {"blocks": 2}, "blocks must be"),
    ],
)
def test_what_cannot_be_chosen(policies, settings, message):
    with pytest.raises(ValueError, match=message):
        ope.choose(uniform_log(300), policies, **settings)
