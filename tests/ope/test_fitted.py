"""A policy that learns from the first half of a log."""

import numpy as np
import pytest

import solid_bandits as sb


@pytest.fixture(scope="module")
def bandit():
    rng = np.random.default_rng(1)
    made = sb.Bandit(sb.EpsilonGreedy(epsilon=0.3), dim=2, noise_std=0.5, floor=0.2)
    for _ in range(60):
        features = rng.normal(size=(3, 2))
        choice = made.decide(features)
        made.learn(choice.event_id, features[choice.arm, 0])
    return made


def test_the_log_may_be_a_table_a_file_or_the_bandit_itself(bandit, tmp_path):
    log = bandit.log()
    sb.logs.write(log, tmp_path / "log.parquet")
    asked = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = [sb.ope.fitted(source, sb.LinTS()) for source in (log, tmp_path / "log.parquet", bandit)]
    wanted = sb.Agent(sb.LinTS(), dim=2, noise_std=log["reward"].head(30).std(), probabilities=True)
    for row in log.head(30).iter_rows(named=True):
        features = np.array(row["features"])[row["arms"].index(row["arm"])]
        wanted.learn(sb.Decision(0, features), row["reward"])
    for agent, rest in found:
        assert rest.equals(log.tail(30))
        np.testing.assert_allclose(agent.probabilities(asked), wanted.probabilities(asked), atol=0.2)
        assert np.argmax(agent.probabilities(asked)) == 0


@pytest.mark.parametrize(
    ("log", "policy", "message"),
    [
        ("nowhere.parquet", sb.LinTS(), "log must be a file that can be read, got 'nowhere.parquet'"),
        (3, sb.LinTS(), "table must be a table of named columns"),
        ("nowhere.parquet", sb.Solid(), "policy must be one that decides from features, such as LinTS"),
    ],
)
def test_what_it_cannot_learn_from_is_said_in_one_line(log, policy, message):
    with pytest.raises(ValueError, match=message):
        sb.ope.fitted(log, policy)
