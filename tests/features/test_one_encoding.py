"""The same rows through a bandit, its log, its store, files and evaluation: the same features, bit for bit."""

import numpy as np
import pytest

import solid_bandits as sb
from histories import features_of, offer_of, seeds
from solid_bandits import logs, ope
from solid_bandits.features.design import Design
from solid_bandits.logs.named import expanded
from solid_bandits.ope.rows import Reader


@pytest.mark.parametrize("number", range(8))
def test_the_same_rows_have_the_same_features_everywhere(number, tmp_path):
    rng = seeds(20)[number + 12]
    features = features_of(rng)
    design = Design(features)
    bandit = sb.Bandit(features=features, floor=0.3, seed=0, store=tmp_path / "a.db")
    for place in range(25):
        offer = offer_of(features, rng, design.offered())
        design.take(design.check(*offer))
        decision = bandit.decide(*offer, event_id=f"e{place}")
        bandit.learn(decision.event_id, float(rng.normal()))
    said = [bandit.recall(f"e{place}").named for place in range(25)]
    expected = [expanded(design, design.encode(one)) for one in said]
    live = [expanded(bandit.design, bandit.design.encode(one)) for one in said]
    log = bandit.log()
    logs.write(log, tmp_path / "log.parquet")
    logs.write_dsjson(log, tmp_path / "log.dsjson")
    bandit.close()
    sources = [log, logs.read(tmp_path / "log.parquet"), logs.read(tmp_path / "log.dsjson")]
    frames = [
        [np.array(row.to_list()) for row in logs.with_features(one, features)["features"]] for one in sources
    ]
    for found in (live, *frames):
        for one, other in zip(found, expected, strict=True):
            assert np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()
    again = sb.Bandit.open(tmp_path / "a.db")
    assert [again.design.encode(one).tobytes() for one in said] == [
        design.encode(one).tobytes() for one in said
    ]
    again.close()


def test_evaluation_sees_what_the_bandit_would_see(tmp_path):
    rng = np.random.default_rng(3)
    bandit = sb.Bandit(arms=["x", "y"], context=["age", "device"], floor=0.2, seed=1)
    for place in range(120):
        values = {"age": float(rng.normal(40, 9)), "device": str(rng.choice(["ios", "tv"]))}
        decision = bandit.decide(values, event_id=f"e{place}")
        bandit.learn(decision.event_id, float(rng.normal()))
    log = bandit.log()
    rows = next(Reader(log).blocks())
    found = ope.targets.as_target(bandit).probabilities(rows)
    for place in (0, 50, 119):
        named = bandit.recall(f"e{place}").named
        expected = bandit.agent.probabilities(bandit.design.encode(named))
        np.testing.assert_array_equal(found[place], expected)


def test_policies_of_other_features_are_evaluated_on_one_log():
    """Only age matters: a bandit that sees it is worth more than one that does not."""
    rng = np.random.default_rng(4)
    bandit = sb.Bandit(arms=["x", "y"], context=["age", "device"], floor=1.0, seed=1)
    for place in range(1200):
        values = {"age": float(rng.normal(40, 9)), "device": str(rng.choice(["ios", "tv"]))}
        decision = bandit.decide(values, event_id=f"e{place}")
        sign = 1.0 if decision.arm == "x" else -1.0
        bandit.learn(decision.event_id, sign * np.sign(values["age"] - 40) + 0.1 * float(rng.normal()))
    log = bandit.log()
    targets = {
        label: sb.Bandit.from_log(log[:600], arms=["x", "y"], context=names)
        for label, names in (("with age", ["age", "device"]), ("without", ["device"]))
    }
    found = ope.evaluate(log[600:], targets, ["ips"])
    assert found["with age"].value("ips") > 0.7
    assert abs(found["without"].value("ips")) < 0.3
