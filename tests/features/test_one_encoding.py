"""The same rows through a bandit, its log, its store, files, a stream, the service and evaluation: the same features,
bit for bit.
"""

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from histories import features_of, offer_of, seeds
from served import stored
from solid_bandits import logs, ope
from solid_bandits.features.design import Design
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.logs.named import expanded
from solid_bandits.ope.rows import Reader
from solid_bandits.service.model import caught_up_model
from solid_bandits.service.open_store import FILE


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


NAMES = {"age": "number", "device": "category", "member": "boolean", "seen": "weekday", "tags": "tags"}
ROWS = 24


def visitor(rng):
    words = ["ios", "tv", None, f"new {rng.integers(5)}"]
    return {
        "age": None if rng.random() < 0.2 else float(rng.normal(2026, 9)),
        "device": words[rng.integers(4)],
        "member": bool(rng.random() < 0.4),
        "seen": f"2026-03-{rng.integers(1, 29):02d}",
        "tags": [f"t{one}" for one in rng.integers(4, size=2)],
    }


@pytest.mark.parametrize("own", [False, True], ids=["blocks", "arms with features"])
def test_one_table_through_stream_bandit_log_service_and_evaluation(own, tmp_path):
    """Item by item: a data frame as a stream, a bandit, its log, a table from elsewhere, a service's model over HTTP,
    and what `evaluate` gives to reward models.
    """
    rng = np.random.default_rng(9)
    arms = ["x", "y"]
    features = sb.Features(NAMES, None if own else arms, {"price": "number"} if own else ())
    people = [visitor(rng) for _ in range(ROWS)]
    prices = rng.normal(3.0, 1.0, size=(ROWS, 2)).tolist()
    offered = [
        {arm: {"price": price} for arm, price in zip(arms, row, strict=True)} if own else None
        for row in prices
    ]
    bandit = sb.Bandit(features=features, floor=0.3, seed=0)
    for place, (values, brought) in enumerate(zip(people, offered, strict=True)):
        bandit.decide(values, brought, event_id=f"e{place}")
        bandit.learn(f"e{place}", float(place % 3))
    log, design = bandit.log(), bandit.design
    encoded = [design.encode(bandit.recall(f"e{place}").named) for place in range(ROWS)]
    expected = np.array([expanded(design, one) for one in encoded])

    frame = pl.DataFrame(people).with_columns(reward_x=1.0, reward_y=0.0)
    frame = frame.with_columns(
        pl.Series(f"price_{arm}", [row[place] for row in prices]) for place, arm in enumerate(arms)
    )
    stream = sb.streams.from_frame(frame, reward="reward_{arm}", named=features)
    (rounds,) = stream.every()
    assert rounds.arrays.features.tobytes() == expected.tobytes()

    of_log = [np.array(row.to_list()) for row in logs.with_features(log, features)["features"]]
    assert np.array(of_log).tobytes() == expected.tobytes()
    if not own:
        table = frame.with_columns(arm=pl.Series(["x", "y"] * (ROWS // 2)), reward=pl.lit(1.0))
        foreign = logs.with_features(logs.from_table(table, context=NAMES, arms=arms), features)["features"]
        assert np.array([row.to_list() for row in foreign]).tobytes() == expected.tobytes()

    spec = {"name": "news", "context": NAMES, "floor": 0.3, "seed": 0}
    spec |= {"arm_features": {"price": "number"}} if own else {"arms": arms}
    with stored(tmp_path) as client:
        client.post("/v1/models", json=spec).raise_for_status()
        for place, (values, brought) in enumerate(zip(people, offered, strict=True)):
            asked = {"context": values, "arms": brought, "event_id": f"e{place}"}
            made = client.post("/v1/models/news/decisions", json=asked)
            assert made.json()["probabilities"] == bandit.recall(f"e{place}").probabilities.tolist()
            client.post("/v1/models/news/rewards", json={"event_id": f"e{place}", "reward": place % 3})
    store = SqliteStore(tmp_path / FILE)
    try:
        served = caught_up_model(None, store.models()[0], store).bandit
        for place in range(ROWS):
            found = served.design.encode(bandit.recall(f"e{place}").named)
            assert found.tobytes() == encoded[place].tobytes()
    finally:
        store.close()

    rows = next(Reader(bandit).blocks())
    shown = rows.features if own else rows.context
    wanted = expected if own else expected[:, 0, 1 : design.dim]
    assert shown.tobytes() == np.ascontiguousarray(wanted).tobytes()
    seen = ope.targets._encoded(design, next(Reader(log).blocks()))
    assert seen.tobytes() == np.array(encoded).tobytes()


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
