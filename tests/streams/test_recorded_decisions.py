"""Recorded decisions: the columns, and that they are what happened."""

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from solid_bandits.streams import decisions
from solid_bandits.streams.decision_table import SCHEMA

FRAME = pl.DataFrame(
    {
        "round": [0, 0, 0, 1, 1, 2, 3, 3] * 30,
        "x": np.random.default_rng(1).normal(size=240),
        "open": [True, True, False, True, True, True, True, True] * 30,
        "reward": np.random.default_rng(2).normal(size=240),
    }
).with_columns(round=pl.col("round") + 4 * (pl.int_range(240) // 8))
STREAM = sb.streams.from_frame(FRAME, reward="reward", round="round", features="x", available="open")
POLICIES = {
    "RandUCB": sb.RandUCB(),
    "LinTS": sb.LinTS(),
    "LinTS, votes": sb.LinTS(votes=16),
    "LinUCB": sb.LinUCB(),
    "EpsilonGreedy": sb.EpsilonGreedy(epsilon=0.3),
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("record") / "log.parquet"
    record = sb.streams.Record(str(path), probabilities=True, features=True)
    results = sb.simulate(STREAM, POLICIES, runs=3, seed=1, jobs=1, record=record)
    assert [one.name for one in path.parent.iterdir()] == ["log.parquet"]
    return results, pl.read_parquet(path)


def test_there_is_a_row_for_each_decision_in_order(recorded):
    _, log = recorded
    assert dict(log.schema) == SCHEMA
    keys = [(policy, run, step) for policy in POLICIES for run in range(3) for step in range(1, 121)]
    assert log.select("policy", "run", "sequence").rows() == keys


def test_recording_changes_no_decision(recorded):
    results, log = recorded
    plain = sb.simulate(STREAM, POLICIES, runs=3, seed=1, jobs=1)
    assert plain.table.equals(results.table)
    sums = log.group_by("policy", "run", maintain_order=True).agg(
        pl.col("reward").sum(), pl.col("explored").sum()
    )
    last = results.table.filter(step=120)
    assert np.allclose(sums["reward"], last["reward"])
    assert sums["explored"].to_list() == last["explored"].to_list()


def test_the_rounds_are_those_of_the_frame(recorded):
    _, log = recorded
    by_round = {str(key[0]): group for key, group in FRAME.group_by("round")}
    assert set(log["event_id"]) == set(by_round)
    for row in log.filter(policy="LinTS", run=1).iter_rows(named=True):
        data = by_round[row["event_id"]]
        open_ = data["open"].to_list()
        assert row["arms"] == [str(arm) for arm, is_open in enumerate(open_) if is_open]
        assert [features[0] for features in row["features"]] == data.filter("open")["x"].to_list()
        place = row["arms"].index(row["arm"])
        assert row["reward"] == row["means"][place] == data["reward"][int(row["arm"])]


def test_run_r_has_the_same_rounds_for_every_policy(recorded):
    _, log = recorded
    for run in range(3):
        orders = {tuple(log.filter(policy=policy, run=run)["event_id"]) for policy in POLICIES}
        assert len(orders) == 1


def test_probabilities_are_those_of_the_arms(recorded):
    _, log = recorded
    some_open = log.with_columns(offered=pl.col("arms").list.len())
    # LinTS knows them in closed form with two arms, and not with more.
    unknown = some_open.filter(pl.col("probability").is_null())
    assert set(unknown["policy"]) <= {"LinTS"}
    assert (unknown["offered"] > 2).all()
    assert unknown["probabilities"].null_count() == unknown.height
    known = some_open.filter(pl.col("probability").is_not_null())
    assert (known["probability"] > 0).all()
    for row in known.iter_rows(named=True):
        assert len(row["probabilities"]) == row["offered"]
        assert row["probabilities"][row["arms"].index(row["arm"])] == row["probability"]
        assert sum(row["probabilities"]) == pytest.approx(1)
    assert (known.filter(policy="LinUCB")["probability"] == 1).all()
    assert (known.filter(offered=1)["probability"] == 1).all()


def test_inverse_probabilities_have_mean_one_for_each_arm(recorded):
    """E[1 / p(arm) · 1{arm = a}] = 1 where a can be pulled; epsilon-greedy, two arms, 3 · 60 rounds or so."""
    _, log = recorded
    two = log.filter((pl.col("policy") == "EpsilonGreedy") & (pl.col("arms") == ["0", "1"]))
    for arm in (0, 1):
        shares = two["probabilities"].list.get(arm).to_numpy()
        weights = np.where(
            two["arm"].cast(pl.Int64).to_numpy() == arm, 1 / two["probability"].to_numpy(), 0.0
        )
        deviation = np.sqrt((1 / shares - 1).sum()) / len(shares)
        assert abs(weights.mean() - 1) < 4 * deviation  # false alarms: about 1e-4


def test_the_predicted_reward_is_the_estimate_of_before(recorded):
    _, log = recorded
    one = log.filter(policy="EpsilonGreedy", run=0)
    V, U = np.eye(2), np.zeros(2)
    for row in one.iter_rows(named=True):
        phi = np.array(row["features"][row["arms"].index(row["arm"])])
        assert row["predicted"] == pytest.approx(phi @ np.linalg.solve(V, U), abs=1e-9)
        V += np.outer(phi, phi)
        U += phi * row["reward"]


def test_parts_and_processes_do_not_show(recorded, tmp_path, monkeypatch):
    _, log = recorded
    monkeypatch.setattr(decisions, "ROWS_AT_ONCE", 50)
    record = sb.streams.Record(str(tmp_path / "log.parquet"), probabilities=True, features=True)
    sb.simulate(STREAM, POLICIES, runs=3, seed=1, jobs=1, record=record)
    assert pl.read_parquet(record.path).equals(log)
    other = sb.streams.Record(str(tmp_path / "other.parquet"), probabilities=True, features=True)
    sb.simulate(STREAM, POLICIES, runs=3, seed=1, jobs=2, record=other)
    assert pl.read_parquet(other.path).equals(log)


def test_what_is_not_asked_for_is_null(tmp_path):
    sb.simulate(
        STREAM,
        {"RandUCB": sb.RandUCB()},
        runs=1,
        jobs=1,
        record="decisions",
        record_to=tmp_path / "a.parquet",
    )
    log = pl.read_parquet(tmp_path / "a.parquet")
    assert dict(log.schema) == SCHEMA
    assert log["features"].null_count() == log["probabilities"].null_count() == log.height
    assert log["probability"].null_count() == 0


def test_one_run_of_one_policy_is_evaluated_as_any_log(recorded, tmp_path):
    """From a table, from a file read in blocks, and by the columns of a log alone."""
    _, log = recorded
    one = log.filter(policy="EpsilonGreedy", run=1)
    found = sb.ope.evaluate(one, "uniform").table
    one.write_parquet(tmp_path / "one.parquet")
    sb.logs.write(sb.logs.read(tmp_path / "one.parquet"), tmp_path / "plain.parquet")
    for name in ("one", "plain"):
        assert sb.ope.evaluate(tmp_path / f"{name}.parquet", "uniform").table.equals(found)
    log.write_parquet(tmp_path / "all.parquet")
    for several in (log, tmp_path / "all.parquet"):
        with pytest.raises(ValueError, match="decisions of one policy in one run, got 15"):
            sb.ope.evaluate(several, "uniform")


class Dies:
    def act(self, arms, available):
        raise RuntimeError("here")

    def update(self, features, reward):
        pass


def test_nothing_is_left_of_a_simulation_that_failed(tmp_path):
    with pytest.raises(RuntimeError, match="here"):
        sb.simulate(
            STREAM,
            {"Greedy": sb.Greedy(), "Dies": Dies()},
            runs=1,
            jobs=1,
            record="decisions",
            record_to=tmp_path / "a.parquet",
        )
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_not_overwritten(tmp_path):
    (tmp_path / "a.parquet").write_text("mine")
    with pytest.raises(ValueError, match=r"record must go to a new file, got .*a.parquet"):
        sb.simulate(
            STREAM,
            {"Greedy": sb.Greedy()},
            runs=1,
            jobs=1,
            record="decisions",
            record_to=tmp_path / "a.parquet",
        )
    assert (tmp_path / "a.parquet").read_text() == "mine"


def test_an_agent_that_replays_the_log_decides_the_same(recorded):
    """The compiled functions are those of live decisions."""
    from solid_bandits.core.randomness import POLICY, make_rng
    from solid_bandits.policies.contract import start

    _, log = recorded
    for label in ("RandUCB", "LinTS, votes"):
        agent = sb.Agent(POLICIES[label], dim=2, noise_std=1.0)
        setting = STREAM.setting(120)
        agent._compiled = start(POLICIES[label], setting, None, make_rng(1, 2, POLICY))
        agent._hand_over()
        for row in log.filter(policy=label, run=2).iter_rows(named=True):
            decision = agent.decide(row["features"])
            assert row["arms"][decision.arm] == row["arm"]
            assert decision.probability == row["probability"]
            agent.learn(decision, row["reward"])
