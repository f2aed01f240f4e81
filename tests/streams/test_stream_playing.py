"""The loop over blocks, against a slow one; what is the same for all policies; what is refused."""

import pickle

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from solid_bandits._internal.decoding import convert, decode, encode
from solid_bandits.core.loop import checkpoints
from solid_bandits.core.randomness import POLICY, make_rng
from solid_bandits.policies.contract import start
from solid_bandits.policies.plain import as_policy
from solid_bandits.streams.playing import StreamTrace, play_stream


class Ragged(sb.streams.Stream):
    """Rounds with other numbers of arms, some of them not available, and rewards that are not linear."""

    dim, n_arms, length, linear = 3, 5, 400, False

    def __init__(self, size=37):
        self.size = size
        rng = np.random.default_rng(5)
        self.features = rng.normal(size=(400, 5, 3))
        self.means = np.sin(2 * self.features.sum(axis=2))
        self.counts = rng.integers(1, 6, size=400)
        self.open = rng.random((400, 5)) < 0.7
        self.open[np.arange(400), rng.integers(self.counts)] = True

    def blocks(self, seed, run):
        rng = np.random.default_rng([seed, run])
        noise = rng.normal(size=400)
        for first in range(0, 400, self.size):
            part = slice(first, first + self.size)
            counts = self.counts[part]
            yield sb.streams.Rounds(
                self.features[part], self.means[part], self.open[part], counts, noise[part] * 0.1
            )


def slowly(stream, policy, seed, run):
    """The same run in plain Python, one decision at a time: every step's regret, reward, ridge regret and arm."""
    blocks = list(stream.every())
    phi, mu = [], []
    for block in blocks:
        offered = block.arrays.available
        phi.append(block.arrays.features[offered])
        mu.append(block.arrays.means[offered])
    phi, mu = np.concatenate(phi), np.concatenate(mu)
    theta = np.linalg.solve(phi.T @ phi + np.eye(stream.dim), phi.T @ mu)
    agent = sb.Agent(policy, dim=stream.dim, noise_std=stream.setting().noise_std, horizon=400)
    agent._compiled = start(
        as_policy("policy", policy), stream.setting(400), None, make_rng(seed, run, POLICY)
    )
    agent._hand_over()
    rows, predicted = [], []
    for block in stream.blocks(seed, run):
        features, counts, available, means, noise = block.arrays
        for t, count in enumerate(counts):
            arms, mask = features[t, :count], available[t, :count]
            decision = agent.decide(arms, available=mask)
            worth = np.where(mask, means[t, :count], -np.inf)
            reference = int(np.where(mask, arms @ theta, -np.inf).argmax())
            own = worth[decision.arm]
            predicted.append(agent.predict(arms[decision.arm][None])[0][0])
            agent.learn(decision, own + noise[t])
            rows.append((worth.max() - own, own + noise[t], worth[reference] - own, decision.arm))
    return np.array(rows), np.array(predicted), theta


@pytest.mark.parametrize("policy", [sb.Greedy(), sb.RandUCB(), sb.LinTS(), sb.LinUCB()], ids=repr)
def test_the_loop_is_the_slow_one(policy):
    stream = Ragged()
    rows, predicted, theta = slowly(stream, policy, seed=3, run=2)
    assert np.allclose(stream.fit.theta, theta)
    steps = checkpoints(400)
    trace, _ = play_stream(stream, policy, stream.setting(400), 400, 3, 2, steps)
    sums = np.cumsum(rows[:, :3], axis=0)[steps - 1]
    assert np.allclose(np.column_stack([trace.regret, trace.reward, trace.ridge_regret]), sums)
    pulls = np.cumsum(rows[:, 3:] == np.arange(5), axis=0)[steps - 1]
    assert np.array_equal(trace.pulls, pulls)
    assert np.array_equal(trace.sampled, np.arange(1, 401))  # all of them: there are few
    assert np.allclose(trace.received, rows[:, 1])
    assert np.allclose(trace.predicted, predicted)


def test_the_fit_has_its_residuals_and_its_share():
    stream = Ragged()
    phi, mu = [], []
    for block in stream.every():
        phi.append(block.arrays.features[block.arrays.available])
        mu.append(block.arrays.means[block.arrays.available])
    phi, mu = np.concatenate(phi), np.concatenate(mu)
    left = mu - phi @ stream.fit.theta
    assert stream.fit.noise_std == pytest.approx((left**2).mean() ** 0.5)
    assert stream.fit.r_squared == pytest.approx(1 - (left**2).sum() / ((mu - mu.mean()) ** 2).sum())
    assert stream.fit.rewards == len(mu)
    assert stream.setting().noise_std == stream.fit.noise_std


def test_the_fit_is_made_before_processes_take_the_stream(monkeypatch):
    stream = Ragged()
    stream.noise_std = 0.3
    sb.simulate(stream, {"Greedy": sb.Greedy()}, 1, 1, jobs=1)
    assert "fit" in pickle.loads(pickle.dumps(stream)).__dict__


def test_the_size_of_blocks_does_not_show():
    policies = {"RandUCB": sb.RandUCB(), "Greedy": sb.Greedy()}
    one, other = (sb.simulate(Ragged(size), policies, runs=2, jobs=1) for size in (37, 400))
    assert one.table.equals(other.table)
    assert one.calibration.equals(other.calibration)


def test_a_shorter_horizon_is_the_beginning_of_a_longer_one():
    stream = sb.streams.gaussian(4, 3, seed=2)
    policies = {"RandUCB": sb.RandUCB()}
    short, long = (sb.simulate(stream, policies, horizon, 2, jobs=1).table for horizon in (1500, 30_000))
    common = short.join(long, on=["policy", "run", "step"])
    assert common.height > 20
    assert (common["regret"] == common["regret_right"]).all()
    assert (common["reward"] == common["reward_right"]).all()


def test_processes_do_not_show():
    stream = sb.streams.classification(
        np.random.default_rng(0).normal(size=(30_000, 5)), np.arange(30_000) % 3
    )
    policies = {"Greedy": sb.Greedy(), "LinTS": sb.LinTS()}
    one, two = (sb.simulate(stream, policies, 500, 4, jobs=jobs) for jobs in (1, 2))
    assert stream.arrays["contexts"].nbytes > 2**20  # so that it was shared
    assert one.table.equals(two.table)
    assert one.arms.equals(two.arms)


class First:
    """The first arm that is available, in plain Python."""

    def act(self, arms, available):
        return int(available.argmax())

    def update(self, features, reward):
        pass


def test_a_policy_in_plain_python_plays_too():
    results = sb.simulate(Ragged(), {"First": First(), "Greedy": sb.Greedy()}, runs=2, jobs=1)
    stream = Ragged()
    mask = stream.open & (np.arange(5) < stream.counts[:, None])
    best = np.where(mask, stream.means, -np.inf).max(axis=1)
    expected = (best - stream.means[np.arange(400), mask.argmax(axis=1)]).sum()
    final = results.final().filter(pl.col("policy") == "First")
    assert final["mean"].item() == pytest.approx(expected)
    assert set(results.calibration["policy"]) == {"Greedy"}  # it predicts nothing


def test_a_new_stream_in_each_run():
    policies = {"Greedy": sb.Greedy()}
    each = sb.simulate(lambda run: sb.streams.gaussian(3, 2, seed=run), policies, 100, 3, jobs=1).table
    for run in range(3):
        alone = sb.simulate(sb.streams.gaussian(3, 2, seed=run), policies, 100, 3, jobs=1).table
        assert each.filter(pl.col("run") == run).equals(alone.filter(pl.col("run") == run))


def test_results_are_saved_and_loaded(tmp_path):
    results = sb.simulate(Ragged(), {"Greedy": sb.Greedy()}, runs=2, jobs=1)
    results.save(tmp_path / "results")
    loaded = sb.Results.load(tmp_path / "results")
    for name in ("table", "arms", "calibration"):
        assert getattr(loaded, name).equals(getattr(results, name))


def test_a_trace_survives_as_json():
    stream = Ragged()
    steps = checkpoints(400)
    for policy in (sb.Greedy(), as_policy("policy", First())):
        trace, _ = play_stream(stream, policy, stream.setting(400), 400, 0, 0, steps)
        assert np.isnan(trace.predicted[0]) == (policy.name == "First")
        back = convert(decode(encode(trace)), StreamTrace)
        for one, two in zip(trace, back, strict=True):
            assert np.array_equal(one, two, equal_nan=one.dtype == np.float64)
            assert one.dtype == two.dtype


def test_arms_of_which_there_are_many_are_not_counted():
    results = sb.simulate(sb.streams.gaussian(101, 2), {"Greedy": sb.Greedy()}, 50, 1, jobs=1)
    assert results.arms.height == 0
    assert results.table["reward"][-1] != 0


class Wrong:
    """Names an arm that is not available."""

    def act(self, arms, available):
        return int(available.argmin())

    def update(self, features, reward):
        pass


@pytest.mark.parametrize(
    ("policy", "arguments", "message"),
    [
        (sb.Solid(), {}, "policies must decide from features to play a stream, got Solid, which plans over"),
        (sb.Greedy(), {"horizon": 401}, "horizon must be at most 400, the rounds of the stream, got 401"),
        (sb.Greedy(), {"diagnostics": True}, "diagnostics must be left out for a stream"),
        (sb.Greedy(), {"record": "all"}, "record must be one of decisions, got 'all'"),
        (sb.Greedy(), {"record": "decisions", "record_to": "x.csv"}, "ending in .parquet, got 'x.csv'"),
        (Wrong(), {}, "Wrong.act must return an available arm"),
        (sb.LinUCB(radius="theorem"), {}, "theta_bound must be a number > 0 for LinUCB"),
    ],
)
def test_what_will_not_do(policy, arguments, message):
    with pytest.raises(ValueError, match=message):
        sb.simulate(Ragged(), {"one": policy}, runs=1, jobs=1, **arguments)


def test_what_a_stream_without_end_needs():
    with pytest.raises(ValueError, match="horizon must be an integer >= 1, got None"):
        sb.simulate(sb.streams.gaussian(), {"Greedy": sb.Greedy()}, jobs=1)


class Endless(Ragged):
    """Blocks without end, of rewards that are not linear."""

    length = None

    def blocks(self, seed, run):
        while True:
            yield from super().blocks(seed, run)


def test_a_fit_to_a_stream_without_end_needs_to_know_how_much_of_it():
    """Reading every round would never end; with a length, the fit is to that many."""
    with pytest.raises(
        ValueError, match=r"^length must be a number of rounds where linear is False: .* got None"
    ):
        sb.simulate(Endless(), {"Greedy": sb.Greedy()}, horizon=10, runs=1, jobs=1)
    endless, same = Endless(), Ragged()
    endless.length = 400
    assert np.array_equal(endless.fit.theta, same.fit.theta)


class Short(Ragged):
    length = 500


def test_a_stream_that_ends_too_early():
    with pytest.raises(ValueError, match=r"the stream must have 500 rounds, .* got 400"):
        sb.simulate(Short(), {"Greedy": sb.Greedy()}, runs=1, jobs=1)


def test_record_belongs_to_streams():
    with pytest.raises(ValueError, match="record must be left out for a problem"):
        sb.simulate(
            sb.problems.toy(), {"Greedy": sb.Greedy()}, 10, 1, record="decisions", record_to="a.parquet"
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": np.full((1, 2, 1), np.nan)}, "features must be finite"),
        ({"features": np.zeros((1, 2))}, "features must be numbers with 3 axes"),
        ({"means": np.zeros((1, 3))}, r"means must have shape \(1, 2\), got \(1, 3\)"),
        (
            {"available": np.zeros((1, 2), dtype=bool)},
            "available must have an arm in each round, got none in 0",
        ),
        ({"available": np.ones((1, 2))}, "available must be true and false"),
        ({"counts": [3]}, "counts must be from 1 to 2"),
        ({"counts": [0]}, "counts must be from 1 to 2"),
        ({"noise": [np.inf]}, "noise must be finite"),
        ({"event_ids": ["a", "b"]}, "event_ids must be 1, one per round, got 2"),
    ],
)
def test_rounds_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        sb.streams.Rounds(**{"features": np.zeros((1, 2, 1)), "means": np.zeros((1, 2)), **arguments})
