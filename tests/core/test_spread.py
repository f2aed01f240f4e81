"""Columns of very different spread: one warning that names them, and none where there is nothing to say."""

import copy
import pickle
import threading
import warnings

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from solid_bandits.core import spread

SAID = "features are of very different spread"


def offers(scales, decisions=150, arms=3, seed=0):
    """Features N(0, 1) times a scale per column."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(decisions, arms, len(scales))) * scales


def heard(player, given):
    """What is said while decisions are made: pairs of the number of the decision and the words."""
    found = []
    for number, features in enumerate(given, start=1):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            player.decide(features)
        found += [(number, str(one.message), one.category, one.filename) for one in caught]
    return found


def make(kind, dim):
    return {"agent": sb.Agent, "bandit": sb.Bandit}[kind](dim=dim)


@pytest.mark.parametrize("kind", ["agent", "bandit"])
def test_a_player_warns_once_and_names_the_columns(kind):
    found = heard(make(kind, 3), offers([5e4, 1.0, 0.01], decisions=300))
    ((number, words, category, filename),) = found
    assert number == spread.LEAST
    assert category is UserWarning
    assert filename == __file__  # the caller's line, however deep the warning comes from
    assert words.startswith(f"{SAID}: arms on offer differ in column 0 by up to ")
    assert "in column 2 by up to" in words
    assert words.index("column 2") < words.index("column 1")  # the smallest first
    assert "standardise" in words


def test_the_numbers_are_the_largest_differences():
    agent = sb.Agent(dim=2)
    given = [[[1000.0, 0.0], [0.0, 0.25]]] * 7 + [[[0.0, 0.5], [-3000.0, 0.0], [9e9, -9e9]]]
    mask = [True, True, False]  # what may not be pulled is not on offer
    for features in given[:-1]:
        agent.decide(features)
    with pytest.warns(UserWarning, match=r"column 0 by up to 3,000, and in column 1 by up to 0\.500\."):
        agent.decide(given[-1], available=mask)


@pytest.mark.parametrize(("scale", "warns"), [(60.0, False), (250.0, True)])
def test_the_factor(scale, warns):
    """Differences of exactly 1 and of a scale: no chance in it."""
    given = [np.array([[0.0, 0.0], [1.0, one]]) for one in (scale, -scale) * 70]
    assert bool(heard(sb.Agent(dim=2), given)) == warns


def test_exactly_the_factor_is_not_more():
    given = [np.array([[0.0, 0.0], [1.0, 100.0]])] * 130
    assert heard(sb.Agent(dim=2), given) == []


def test_columns_in_which_the_arms_are_equal_do_not_count():
    """A shared intercept, a Unix time, and a shared column that rounding makes differ in its last digits."""
    given = offers([1.0, 1.0, 1.0, 1.0, 1.0])
    given[:, :, 1] = 1.0
    given[:, :, 2] = 1.7e9 + np.arange(len(given))[:, None]
    given[:, :, 3] = 0.1 * (1 + 2e-16 * np.arange(3))
    given[:, :, 4] = 0.0
    assert np.ptp(given[:, :, 3], axis=1).max() > 0
    assert heard(sb.Agent(dim=5), given) == []


@pytest.mark.parametrize("arms", [3, 40])
def test_blocks_of_rare_arms_are_not_small(arms):
    """Three of many arms on offer at a time: most blocks are 0 most of the time."""
    rng = np.random.default_rng(1)
    given = []
    for _ in range(300):
        offered = np.sort(rng.choice(arms, size=3, replace=False))
        context = np.append(rng.normal(size=2), 1.0)
        given.append(np.kron(np.eye(arms)[offered], context))
    assert heard(sb.Agent(dim=3 * arms), given) == []


def test_seldom_set_flags_are_not_small():
    """Flags that are set once in fifty arms, beside a number."""
    rng = np.random.default_rng(2)
    given = np.concatenate([10 * rng.normal(size=(200, 5, 1)), rng.random((200, 5, 30)) < 0.02], axis=2)
    assert heard(sb.Agent(dim=31), given) == []


def test_false_alarms_are_rare():
    """2,000 agents, 16 decisions, two arms, features N(0, 1).

    A spread below 1/100 of another, which is at most 8 but for 1e-7, needs 16 differences below 0.08: (0.045)^16.
    """
    for seed in range(2_000):
        given = offers(np.ones(5), decisions=16, arms=2, seed=seed)
        seen = spread.Spread(5)
        for features in given:
            seen.add(features, np.ones(2, dtype=np.bool_))
        assert seen.finding() is None


def test_late_changes_of_units_are_not_looked_for():
    given = np.concatenate([offers([1.0, 1.0], decisions=spread.DECISIONS), offers([1e6, 1.0])])
    agent = sb.Agent(dim=2)
    assert heard(agent, given) == []
    assert not agent.watch.looking


def test_changes_of_units_within_the_first_decisions_are_found():
    given = np.concatenate([offers([1.0, 1.0], decisions=100), offers([1e6, 1.0])])
    ((number, *_),) = heard(sb.Agent(dim=2), given)
    assert number == spread.DECISIONS


def test_many_columns_are_counted():
    ((_, words, *_),) = heard(sb.Agent(dim=7), offers([1e6, *[1.0] * 6]))
    assert words.count("by up to") == 4
    assert ", in 3 other columns by little." in words


class Plain:
    """A policy of a user's own, which may do with units what it likes."""

    def act(self, arms, available):
        return int(np.flatnonzero(available)[0])

    def update(self, features, reward):
        pass


@pytest.mark.parametrize(
    ("policy", "warns"), [(sb.LinUCB(), True), (sb.LinTS(), True), (sb.Greedy(), True), (Plain(), False)]
)
def test_policies_with_a_ridge_are_those_that_depend_on_units(policy, warns):
    agent = sb.Agent(policy, dim=2, noise_std=1.0)
    assert bool(heard(agent, offers([1e6, 1.0], decisions=20))) == warns


def test_a_fading_policy_warns_too():
    agent = sb.Agent(sb.RandUCB(ridge=0.2), dim=2, noise_std=1.0, half_life=100)
    assert len(heard(agent, offers([1e6, 1.0], decisions=20))) == 1


def test_a_table_is_looked_at_when_the_agent_is_made():
    contexts = offers([1e6, 1.0], decisions=2)
    with pytest.warns(UserWarning, match=SAID) as caught:
        agent = sb.Agent(sb.Solid(), contexts=contexts, noise_std=1.0, theta_bound=1.0)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    agent.decide(context=0)  # and not again
    sb.Agent(sb.rivals.UCB1(), contexts=contexts[:1], noise_std=1.0).decide(
        context=0
    )  # has no use for features


def test_a_warning_that_is_an_error_leaves_the_decision_to_be_asked_for_again():
    given = offers([1e6, 1.0], decisions=spread.LEAST + 1)
    bandit, other = sb.Bandit(dim=2), sb.Bandit(dim=2)
    other.agent.watch.warn = lambda words: None
    for features in given[:-2]:
        bandit.decide(features)
        other.decide(features)
    with pytest.raises(UserWarning, match=SAID):
        bandit.decide(given[-2])
    assert bandit.decisions == spread.LEAST - 1
    for features in given[-2:]:
        one, two = bandit.decide(features), other.decide(features)
        assert (one.event_id, one.arm, one.probability) == (two.event_id, two.arm, two.probability)


def test_looking_changes_no_decision():
    given = offers([1e6, 1.0])
    watched, blind = sb.Agent(dim=2), sb.Agent(dim=2)
    blind.watch.looking = False
    watched.watch.warn = lambda words: None
    for features in given:
        one, two = watched.decide(features), blind.decide(features)
        assert one.arm == two.arm
        for agent, decision in ((watched, one), (blind, two)):
            agent.learn(decision, 1.0)


def test_one_that_is_loaded_or_copied_looks_anew(tmp_path):
    given = offers([1e6, 1.0], decisions=40)
    agent, bandit = sb.Agent(dim=2), sb.Bandit(dim=2)
    for player in (agent, bandit):
        assert len(heard(player, given)) == 1
        player.save(tmp_path / "saved")
        loaded = type(player).load(tmp_path / "saved")
        assert [number for number, *_ in heard(loaded, given)] == [spread.LEAST]
    for twin in (copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        assert len(heard(twin, given)) == 1


def test_threads_hear_it_once():
    given, words = offers([1e6, 1.0], decisions=200), []
    agent = sb.Agent(dim=2)
    agent.watch.warn = words.append
    threads = [threading.Thread(target=lambda: [agent.decide(one) for one in given]) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(words) == 1


def frame(rounds=300, seed=0):
    rng = np.random.default_rng(seed)
    columns = {"income": 35_000 * np.exp(rng.normal(0, 0.5, rounds)), "share": rng.random(rounds)}
    clicks = {f"click_{arm}": rng.integers(0, 2, rounds) for arm in "abc"}
    return pl.DataFrame(columns | clicks)


POLICIES = {"Greedy": sb.Greedy(), "RandUCB": sb.RandUCB()}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_stream_of_data_is_named_by_its_columns_and_once(jobs):
    stream = sb.streams.from_frame(frame(), reward="click_{arm}", context=["income", "share"])
    assert stream.feature_names == ["income", "share", "intercept"] * 3
    with pytest.warns(UserWarning, match=SAID) as caught:
        sb.simulate(stream, POLICIES, runs=4, jobs=jobs)
    ((words, filename),) = [(str(one.message), one.filename) for one in caught]
    assert filename == __file__
    assert "differ in 'income' by up to" in words
    assert "in 'share' by up to 1.00" in words  # at least 0.995: the largest of 128
    assert "in 'intercept' by up to 1.00" in words


def test_names_are_those_of_the_columns_that_are_written():
    """A number of its own in each column of the frame is found where its name is."""
    data = pl.DataFrame({"r_a": [1.0], "r_b": [0.0], "p_a": [2.0], "p_b": [3.0], "x": [5.0], "y": [7.0]})
    stream = sb.streams.from_frame(data, reward="r_{arm}", features="p_{arm}", context=["x", "y"])
    assert stream.feature_names == ["p_{arm}", "x", "y", "intercept", "x", "y", "intercept"]
    (block,) = stream.blocks(0, 0)
    first, second = block.arrays.features[0]
    assert first.tolist() == [2, 5, 7, 1, 0, 0, 0]
    assert second.tolist() == [3, 0, 0, 0, 5, 7, 1]


def test_a_file_is_named_by_its_columns(tmp_path):
    frame().write_parquet(tmp_path / "data.parquet")
    stream = sb.streams.from_file(
        tmp_path / "data.parquet", reward="click_{arm}", context=["income", "share"]
    )
    with pytest.warns(UserWarning, match="'income'"):
        sb.simulate(stream, sb.Greedy(), runs=1, jobs=1)


def test_standardised_columns_are_silent_and_so_are_classes():
    data = frame()
    data = data.with_columns(
        *[(pl.col(name) - pl.col(name).mean()) / pl.col(name).std() for name in ("income", "share")]
    )
    stream = sb.streams.from_frame(data, reward="click_{arm}", context=["income", "share"])
    sb.simulate(stream, POLICIES, runs=2, jobs=1)  # a warning would be an error
    rows = np.random.default_rng(0).normal(size=(200, 2))
    classes = ["low", "high"] * 100
    sb.simulate(sb.streams.classification(rows, classes), POLICIES, runs=1, jobs=1)
    with pytest.warns(UserWarning, match=r"X\[:, 1\]"):
        sb.simulate(sb.streams.classification(rows * [1, 1e5], classes), POLICIES, runs=1, jobs=1)


class Own(sb.streams.Stream):
    """A stream of a user's own."""

    dim, n_arms, noise_std = 2, 2, 1.0

    def blocks(self, seed, run):
        rng = np.random.default_rng([seed, run])
        while True:
            features = rng.normal(size=(50, 2, 2)) * [1e4, 1.0]
            yield sb.streams.Rounds(features, features @ [1e-4, 1.0], noise=rng.normal(size=50))


def test_a_stream_of_ones_own_may_name_its_features():
    with pytest.warns(UserWarning, match="differ in column 0 by"):
        sb.simulate(Own(), sb.Greedy(), horizon=200, runs=1, jobs=1)
    named = Own()
    named.feature_names = ["metres", "hours"]
    with pytest.warns(UserWarning, match="differ in 'metres' by"):
        sb.simulate(named, sb.Greedy(), horizon=200, runs=1, jobs=1)
    sb.simulate(named, Plain(), horizon=200, runs=1, jobs=1)
    named.feature_names = ["metres"]
    with pytest.raises(ValueError, match=r"feature_names must be None or 2 names"):
        sb.simulate(named, sb.Greedy(), horizon=200, runs=1, jobs=1)


def test_what_it_costs():
    """On 8 worlds as in docs/scaling.md, RandUCB earns more on standardised columns, by more than 5 standard errors."""
    rng = np.random.default_rng(3)
    gained = []
    for run in range(8):
        income, shares = 35_000 * np.exp(rng.normal(0, 0.5, 2_000)), rng.beta(2, 3, (2_000, 3))
        raw = np.column_stack([income, shares])
        standard = (raw - raw.mean(axis=0)) / raw.std(axis=0)
        means = rng.normal(0.13, 0.025, 4) + standard @ rng.normal(0, 0.05, (4, 4))
        clicks = (rng.random((2_000, 4)) < means).astype(float)
        earned = []
        for columns in (raw, standard):
            data = pl.DataFrame(
                {f"x{place}": column for place, column in enumerate(columns.T)}
                | {f"click_{arm}": clicks[:, arm] for arm in range(4)}
            )
            stream = sb.streams.from_frame(
                data, reward="click_{arm}", context=[f"x{place}" for place in range(4)]
            )
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", SAID)
                results = sb.simulate(stream, sb.RandUCB(), runs=1, jobs=1, tell_noise=False, first_run=run)
            earned.append(results.table["reward"].max() / 2_000)
        gained.append(earned[1] - earned[0])
    assert np.mean(gained) > 5 * np.std(gained, ddof=1) / np.sqrt(8)
    assert np.mean(gained) > 0.03
