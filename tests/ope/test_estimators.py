"""Estimators against closed forms, exact expectations, other packages and each other."""

import itertools

import numpy as np
import polars as pl
import pytest
from estimators.bandits import ips as vw_ips
from estimators.bandits import snips as vw_snips

import solid_bandits as sb
from solid_bandits import logs, ope
from solid_bandits.logs.schema import COLUMNS, SIMULATED
from solid_bandits.ope.estimators import shrunk, switched
from solid_bandits.ope.models import as_model
from solid_bandits.ope.rows import Reader
from solid_bandits.ope.targets import as_target
from solid_bandits.ope.terms import collect, dr_terms


def fixed_log(rows, seed=0, arms=3, dim=2, uniform=False):
    """A log of a logger that does not learn, with its features and the true means."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, arms, dim))
    probabilities = (
        np.full((rows, arms), 1 / arms)
        if uniform
        else rng.dirichlet(np.ones(arms), size=rows) * 0.9 + 0.1 / arms
    )
    arm = np.array([rng.choice(arms, p=one / one.sum()) for one in probabilities])
    means = 0.5 + 0.2 * features @ np.array([1.0, -0.5])
    reward = means[np.arange(rows), arm] + 0.1 * rng.normal(size=rows)
    table = {
        "arm": arm,
        "reward": reward,
        "probabilities": probabilities.tolist(),
        "features": features.tolist(),
    }
    return logs.from_table(table), features, probabilities, means


def test_ips_and_snips_are_those_of_vw_estimators():
    log, _, probabilities, _ = fixed_log(500)
    target = np.random.default_rng(1).dirichlet(np.ones(3), size=500)
    theirs = {"ips": vw_ips.Estimator(), "snips": vw_snips.Estimator()}
    places = log["arm"].cast(int).to_numpy()
    for row, place in enumerate(places):
        for estimator in theirs.values():
            estimator.add_example(probabilities[row, place], log["reward"][row], target[row, place])
    ours = ope.evaluate(log, target, ["ips", "snips"])
    for name, estimator in theirs.items():
        assert ours.value(name) == pytest.approx(estimator.get(), rel=1e-12)


def by_hand(log, target, probabilities, q):
    """All estimators as their definitions say, row by row."""
    places, reward = log["arm"].cast(int).to_list(), log["reward"].to_list()
    weight = [target[i][a] / probabilities[i][a] for i, a in enumerate(places)]
    base = [sum(target[i][a] * q[i][a] for a in range(3)) for i in range(len(places))]
    rest = [reward[i] - q[i][a] for i, a in enumerate(places)]
    count = len(places)
    return {
        "ips": sum(w * r for w, r in zip(weight, reward, strict=True)) / count,
        "snips": sum(w * r for w, r in zip(weight, reward, strict=True)) / sum(weight),
        "dm": sum(base) / count,
        "dr": sum(b + w * e for b, w, e in zip(base, weight, rest, strict=True)) / count,
        "switch-dr": sum(b + (w if w <= 2 else 0) * e for b, w, e in zip(base, weight, rest, strict=True))
        / count,
        "dros": sum(b + 3 * w / (w * w + 3) * e for b, w, e in zip(base, weight, rest, strict=True)) / count,
    }


def test_every_estimator_is_its_definition():
    log, features, probabilities, _ = fixed_log(300)
    rng = np.random.default_rng(2)
    target, q = rng.dirichlet(np.ones(3), size=300), rng.normal(size=(300, 3))
    expected = by_hand(log, target, probabilities, q)
    found = ope.evaluate(log, target, list(expected), model=q.tolist(), threshold=2, strength=3)
    for name, value in expected.items():
        assert found.value(name) == pytest.approx(value, rel=1e-12), name
    same = ope.evaluate(log, pl.Series(target.tolist()), ["dr"], model=q.tolist())
    assert same.value("dr") == pytest.approx(expected["dr"], rel=1e-12)
    weights = rng.normal(size=2)
    modelled = ope.evaluate(log, target, ["dm"], model=lambda shown: shown @ weights)
    assert modelled.value("dm") == pytest.approx(float((target * (features @ weights)).sum(axis=1).mean()))


def test_ips_and_dr_are_unbiased_by_enumeration():
    """All logs of two rows with three arms and rewards that depend on the arm alone: expectations are sums."""
    probabilities, means = np.array([0.2, 0.3, 0.5]), np.array([1.0, -2.0, 0.5])
    target, q = np.array([0.6, 0.1, 0.3]), np.array([3.0, 0.0, -1.0])
    expected = dict.fromkeys(("ips", "dr"), 0.0)
    for arms in itertools.product(range(3), repeat=2):
        chance = float(np.prod(probabilities[list(arms)]))
        log = logs.from_table(
            {"arm": arms, "reward": means[list(arms)], "probabilities": [probabilities.tolist()] * 2},
            arms=["0", "1", "2"],
        )
        found = ope.evaluate(log, [target] * 2, list(expected), model=[q.tolist()] * 2)
        for name in expected:
            expected[name] += chance * found.value(name)
    assert expected["ips"] == pytest.approx(target @ means)
    assert expected["dr"] == pytest.approx(target @ means)


def test_limits_of_switching_and_shrinking():
    weight = np.array([0.0, 0.5, 2.0, 10.0])
    assert switched(weight, 2.0).tolist() == [0, 0.5, 2.0, 0]
    assert np.allclose(shrunk(weight, 1e12), weight)
    assert np.allclose(shrunk(weight, 1e-12), 0, atol=1e-6)
    assert shrunk(weight, np.inf) is weight
    log, _, _, _ = fixed_log(200)
    found = ope.evaluate(log, "uniform", threshold=1e9, strength=1e12)
    assert found.value("switch-dr") == pytest.approx(found.value("dr"))
    assert found.value("dros") == pytest.approx(found.value("dr"), rel=1e-6)


def test_a_log_evaluates_its_own_logger_to_its_mean():
    log, _, _, _ = fixed_log(400)
    found = ope.evaluate(log, log["probabilities"], logger="fixed")
    assert found.value("ips") == found.value("snips") == pytest.approx(log["reward"].mean())
    assert found.diagnostics["effective sample size"] == pytest.approx(400)
    assert found.diagnostics["mean weight"] == pytest.approx(1)


def test_the_walking_model_knows_the_past_alone():
    """Its prediction of each row is that of dense ridge regression on the rows before it; the direct method's is of
    all."""
    log, features, _, _ = fixed_log(60)
    target = np.full((60, 3), 1 / 3)
    model = as_model("linear")
    collected = collect(Reader(log), {"it": as_target(target)}, model, None, True)["it"]
    found = collected.terms
    places, reward = log["arm"].cast(int).to_numpy(), log["reward"].to_numpy()
    design = np.concatenate([features, np.ones((60, 3, 1))], axis=2)
    chosen = design[np.arange(60), places]
    for row in range(60):
        past = chosen[:row]
        theta = np.linalg.solve(np.eye(3) + past.T @ past, past.T @ reward[:row])
        assert found.expected[row] == pytest.approx(chosen[row] @ theta, rel=1e-9, abs=1e-12)
        assert found.baseline[row] == pytest.approx(design[row].mean(axis=0) @ theta, rel=1e-9, abs=1e-12)
    theta = np.linalg.solve(np.eye(3) + chosen.T @ chosen, chosen.T @ reward)
    assert collected.direct == pytest.approx(float((design @ theta).mean()), rel=1e-9)
    assert dr_terms(found).shape == (60,)


def test_contexts_that_arms_share_have_a_regression_for_each_arm():
    rng = np.random.default_rng(3)
    x, arm = rng.normal(size=200), rng.integers(2, size=200)
    table = {"arm": arm, "reward": np.where(arm == 1, 1 + x, -x), "probability": np.full(200, 0.5), "x": x}
    found = ope.evaluate(table, "always:1", ["dm", "dr"], context=["x"])
    assert found.value("dm") == pytest.approx(1 + x.mean(), abs=0.02)
    bare = ope.evaluate({name: table[name] for name in ("arm", "reward", "probability")}, "always:1", ["dm"])
    ones = table["reward"][arm == 1]
    assert bare.value("dm") == pytest.approx(ones.sum() / (len(ones) + 1))  # a ridge of 1


def test_replay_is_the_mean_of_the_rows_that_agree():
    log, features, _, _ = fixed_log(400, uniform=True)

    def best(shown, names):
        return int(np.argmax(shown[:, 0]))

    agree = log["arm"].cast(int).to_numpy() == features[:, :, 0].argmax(axis=1)
    found = ope.evaluate(log, best, ["replay"], logger="fixed")
    assert found.value("replay") == pytest.approx(log["reward"].to_numpy()[agree].mean())
    other, _, _, _ = fixed_log(100)
    with pytest.raises(
        ValueError, match="must apply to this log, got 'replay': needs a logger that is uniform"
    ):
        ope.evaluate(other, best, ["replay"])


def test_blocks_make_no_difference(monkeypatch, tmp_path):
    log, _, _, _ = fixed_log(300)
    logs.write(log, tmp_path / "log.parquet")
    whole = ope.evaluate(log, "uniform", reward_range=(-2, 3))
    monkeypatch.setattr("solid_bandits.ope.rows.BLOCK", 37)
    for source in (log, tmp_path / "log.parquet", str(tmp_path / "log.parquet")):
        parts = ope.evaluate(source, "uniform", reward_range=(-2, 3))
        for name in ope.ESTIMATORS:
            one, other = (
                table.table.row(by_predicate=pl.col("estimator") == name)[1:4] for table in (whole, parts)
            )
            assert [value is None for value in one] == [value is None for value in other]
            assert np.allclose(
                [v for v in one if v is not None], [v for v in other if v is not None], rtol=1e-9
            ), name


def test_rows_without_rewards_are_left_out_or_given_one():
    log, _, _, _ = fixed_log(100)
    gappy = log.with_columns(pl.when(pl.col("sequence") % 4 > 0).then("reward").alias("reward"))
    found = ope.evaluate(gappy, "uniform")
    assert found.diagnostics["rows"] == 75
    assert any("25 decisions without a reward left out" in one for one in found.cautions)
    filled = ope.evaluate(gappy, "uniform", ["ips"], missing_reward=0.0)
    assert filled.diagnostics["rows"] == 100
    everything = gappy.with_columns(pl.col("reward").fill_null(0.0))
    assert filled.value("ips") == pytest.approx(ope.evaluate(everything, "uniform", ["ips"]).value("ips"))


@pytest.mark.parametrize(
    ("change", "more", "message"),
    [
        (
            {"probability": None, "probabilities": None},
            {},
            "log cannot answer: the probability of the chosen arm is missing",
        ),
        (
            {"probability": 0.0, "probabilities": None},
            {},
            "log cannot answer: the chosen arm has probability 0 in row 0",
        ),
        ({"reward": None}, {}, "log must have rows with a reward, got none"),
        ({}, {"policy": "always:9"}, "policy must be an arm that is on offer in every row, got '9'"),
        ({}, {"policy": "sometimes"}, "policy must be uniform or always:ARM"),
        ({}, {"policy": 3}, "policy must be an Agent"),
        (
            {},
            {"policy": lambda shown, names: [0.5, 0.2, 0.2]},
            "policy must give probabilities >= 0 that sum to 1",
        ),
        (
            {},
            {"policy": lambda shown, names: [1.0]},
            "policy must return 3 probabilities, or the place of an arm",
        ),
        (
            {},
            {"policy": sb.Agent(sb.Greedy(), dim=5, noise_std=1.0)},
            "policy must be an agent of dim 2 as the log is",
        ),
        ({}, {"policy": sb.Agent(sb.LinTS(), dim=2, noise_std=1.0)}, "LinTS with probabilities=True"),
        ({}, {"estimators": ["ipss"]}, "estimators must be one of .* did you mean 'ips'"),
        ({}, {"estimators": "ips"}, "estimators must be a list of names"),
        ({}, {"logger": "odd"}, "logger must be one of fixed, learning"),
        ({}, {"bootstrap": 10}, "bootstrap must be 0 for a logger that learns"),
        ({}, {"reward_range": (0, 0.1)}, "reward_range must hold all rewards"),
        ({}, {"reward_range": (1, 0)}, "reward_range must be two finite numbers"),
        ({}, {"estimators": ["anytime"]}, "must apply to this log, got 'anytime': needs reward_range"),
        ({}, {"model": "quadratic"}, "model must be 'linear'"),
        ({}, {"confidence": 1.0}, "confidence must be"),
        ({}, {"threshold": -1}, "threshold must be >= 0"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_words(change, more, message):
    log, _, _, _ = fixed_log(50)
    kinds = {name: log.schema[name] for name in change}
    broken = log.with_columns(pl.lit(value, dtype=kinds[name]).alias(name) for name, value in change.items())
    with pytest.raises(ValueError, match=message):
        ope.evaluate(broken, **({"policy": "uniform"} | more))


def test_no_support_is_refused_and_the_direct_method_is_not():
    certain = logs.from_table(
        {"arm": [0, 0, 0], "reward": [1.0, 2.0, 3.0], "probabilities": [[1.0, 0.0]] * 3}, arms=["0", "1"]
    )
    message = (
        r"log cannot answer: in 3 of 3 rows the policy would choose arms .* probability 0, 50% of its choices"
    )
    with pytest.raises(ValueError, match=message):
        ope.evaluate(certain, "uniform")
    assert ope.evaluate(certain, "uniform", ["dm"]).value("dm") == pytest.approx(6 / 4 / 2)
    assert ope.evaluate(certain, "always:0", ["ips"]).value("ips") == pytest.approx(2.0)


def test_wrong_propensities_are_noticed():
    """Logged as 1/2 each, drawn 9 to 1: the mean weight of a fixed arm is not 1."""
    rng = np.random.default_rng(4)
    arm = (rng.random(2000) < 0.1).astype(int)
    found = ope.evaluate(
        {"arm": arm, "reward": arm * 1.0, "probability": np.full(2000, 0.5)}, "always:1", ["ips"]
    )
    assert any("instead of 1, by more than 4 standard errors" in one for one in found.cautions)


def test_only_adaptive_intervals_for_a_logger_that_learns():
    log, _, _, _ = fixed_log(300)
    found = ope.evaluate(log, "uniform", reward_range=(-3, 3))
    have = {row["estimator"] for row in found.table.iter_rows(named=True) if row["low"] is not None}
    assert have == {"cadr", "anytime"}
    with pytest.raises(
        ValueError, match="estimator 'ips' has no interval here: no interval: the logger learns"
    ):
        found.interval("ips")
    fixed = ope.evaluate(log, "uniform", logger="fixed", reward_range=(-3, 3), bootstrap=50)
    have = {row["estimator"] for row in fixed.table.iter_rows(named=True) if row["low"] is not None}
    assert have == set(ope.ESTIMATORS) - {"replay", "dm"}
    assert fixed.interval("dr")[0] < fixed.value("dr") < fixed.interval("dr")[1]


def test_recorded_decisions_of_a_simulation_are_a_log(tmp_path):
    """A file as `simulate` records it: arms by number, some not available; against IPS by hand."""
    rng = np.random.default_rng(8)
    rows, records = 80, []
    for step in range(1, rows + 1):
        available = [True, True, bool(rng.random() < 0.5)] if step % 3 else None
        offered = ["0", "1", "2"] if available is None or available[2] else ["0", "1"]
        own = rng.dirichlet(np.ones(len(offered)))
        place = int(rng.choice(len(offered), p=own))
        records.append(
            dict.fromkeys(COLUMNS | SIMULATED)
            | {
                "policy": "LinTS",
                "run": 0,
                "sequence": step,
                "event_id": f"LinTS-0-{step}",
                "arms": offered,
                "arm": offered[place],
                "probability": own[place],
                "probabilities": own.tolist(),
                "explored": False,
                "reward": rng.normal(),
                "features": rng.normal(size=(len(offered), 2)).tolist(),
            }
        )
    pl.DataFrame(records, schema=COLUMNS | SIMULATED).write_parquet(tmp_path / "decisions.parquet")
    counts = [len(one["arms"]) for one in records]
    by_hand = np.mean(
        [one["reward"] / one["probability"] / count for one, count in zip(records, counts, strict=True)]
    )
    found = ope.evaluate(tmp_path / "decisions.parquet", "uniform")
    assert found.value("ips") == pytest.approx(by_hand, rel=1e-12)
    agent = sb.Agent(sb.Greedy(), dim=2, noise_std=1.0, floor=0.1)
    assert np.isfinite(ope.evaluate(tmp_path / "decisions.parquet", agent, ["dr"]).value("dr"))


def test_rewards_that_do_not_vary():
    log = logs.from_table({"arm": [0, 1] * 60, "reward": [0.0] * 120, "probabilities": [[0.5, 0.5]] * 120})
    found = ope.evaluate(log, "always:1", logger="fixed", bootstrap=20)
    for row in found.table.iter_rows(named=True):
        assert row["value"] == 0.0
        assert row["low"] is None or row["low"] <= 0.0 <= row["high"]
    never = ope.evaluate(log.filter(arm="0"), "always:1", ["ips", "dr"])
    assert never.value("ips") == 0.0
    assert never.diagnostics["effective sample size"] == 0


def test_a_bandit_and_its_agent_are_policies_and_a_bandit_is_a_log():
    rng = np.random.default_rng(5)
    bandit = sb.Bandit(sb.RandUCB(), dim=2, noise_std=0.5, floor=0.2)
    for _ in range(120):
        choice = bandit.decide(rng.normal(size=(int(rng.integers(2, 5)), 2)))
        bandit.learn(choice.event_id, rng.normal())
    by_bandit, by_agent = (ope.evaluate(bandit, one, ["ips"]).value("ips") for one in (bandit, bandit.agent))
    log = bandit.log()
    own = [bandit.agent.probabilities(np.array(features)) for features in log["features"].to_list()]
    assert by_bandit == by_agent == pytest.approx(ope.evaluate(log, own, ["ips"]).value("ips"), rel=1e-12)


def test_replaying_an_agent_that_learns_is_a_run_of_it():
    """Mean reward of the run against runs in the world, of the same length: within 4 standard errors (6e-5)."""
    rng = np.random.default_rng(6)
    contexts = rng.normal(size=(5, 3, 2))
    means = contexts @ np.array([1.0, -1.0])
    rows, probabilities = 6000, np.array([0.2, 0.5, 0.3])
    place, arm = rng.integers(5, size=rows), rng.choice(3, size=rows, p=probabilities)
    reward = means[place, arm] + 0.3 * rng.normal(size=rows)
    log = logs.from_table(
        {
            "arm": arm,
            "reward": reward,
            "probabilities": [probabilities.tolist()] * rows,
            "features": contexts[place].tolist(),
        }
    )
    found = ope.replay(log, sb.Agent(sb.LinTS(), dim=2, noise_std=0.3, seed=1))
    length = len(found.rewards)
    assert length == pytest.approx(rows * 0.2, rel=0.15)  # least probability times rows
    assert found.agent._compiled.state.regression.step == length
    assert found.agent._compiled.state.regression.estimator.rewards == length
    world = []
    for seed in range(20):
        agent, own = sb.Agent(sb.LinTS(), dim=2, noise_std=0.3, seed=seed), np.random.default_rng(seed)
        total = 0.0
        for _ in range(length):
            context = own.integers(5)
            decision = agent.decide(contexts[context])
            agent.learn(decision, outcome := means[context, decision.arm] + 0.3 * own.normal())
            total += outcome
        world.append(total / length)
    error = np.hypot(np.std(world, ddof=1), found.rewards.std() / np.sqrt(length))
    assert abs(found.value.value - np.mean(world)) < 4 * error
    bare = log.with_columns(
        pl.Series("probabilities", [[1.0, 0.0, 0.0]] * rows),
        pl.lit(None, dtype=pl.Float64).alias("probability"),
    )
    with pytest.raises(ValueError, match="some arm on offer has probability 0; log with a floor"):
        ope.replay(bare, sb.Agent(sb.LinTS(), dim=2, noise_std=0.3))
