"""Models of named features over HTTP: the same as a bandit's, arms that come and go, Rank calls, replay."""

import asyncio
import io
import json
from datetime import datetime, timedelta
from typing import get_args

import httpx
import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from served import replayed, stored
from solid_bandits.core.decision import OPEN
from solid_bandits.features.values import TYPES
from solid_bandits.ope.named import evaluate_words
from solid_bandits.service import parsing, schemas
from solid_bandits.service.named import check_size
from solid_bandits.service.stats import Stats

NEWS = {
    "name": "news", "context": ["age", "device"], "arms": ["climate", "football", "science"], "floor": 0.2, "seed": 7,
}  # fmt: skip
SHOP = {
    "name": "shop", "context": {"hour": "number", "user.age": None}, "arm_features": ["taste", "price"], "floor": 0.2,
    "seed": 5,
}  # fmt: skip
RANK = "/v1/models/shop/personalizer/v1.0"


@pytest.fixture
def client(tmp_path):
    with stored(tmp_path) as found:
        for spec in (NEWS, SHOP):
            found.post("/v1/models", json=spec).raise_for_status()
        yield found


def somebody(rng):
    words = ["ios", "tv", "web", None, f"new {rng.integers(9)}"]
    return {"age": float(rng.normal(40, 9)), "device": words[rng.integers(5)]}


def decide(client, **asked):
    return client.post("/v1/models/news/decisions", json=asked)


def same(one, choice):
    assert one["event_id"] == choice.event_id
    assert one["arm"] == choice.arm
    assert one["arms"] == list(choice.arms)
    assert one["probabilities"] == choice.probabilities.tolist()
    assert one["explored"] == choice.explored


def test_it_decides_as_a_bandit_does(client, tmp_path):
    """One by one, in batches and among some arms, with new categories, and arms that come and go: bit for bit."""
    features = sb.Features(NEWS["context"], NEWS["arms"])
    bandit = sb.Bandit(features=features, floor=0.2, seed=7)
    rng = np.random.default_rng(3)
    for turn in range(24):
        asked = [{"event_id": f"{turn}-{place}", "context": somebody(rng)} for place in range(3)]
        if turn % 4 == 1:
            asked[1]["arms"] = ["science", "climate"]
        if turn % 2:
            made = client.post("/v1/models/news/decisions", json={"decisions": asked}).json()["decisions"]
            choices = bandit.decide_many(asked)
        else:
            made = [decide(client, **one).json() for one in asked]
            choices = [bandit.decide(one["context"], event_id=one["event_id"]) for one in asked]
        for one, choice in zip(made, choices, strict=True):
            same(one, choice)
            assert one["version"].endswith(f"/{bandit._learned}")
        rewards = [{"event_id": one["event_id"], "reward": float(rng.normal())} for one in made[:2]]
        client.post("/v1/models/news/rewards", json={"rewards": rewards}).raise_for_status()
        bandit.learn_many((one["event_id"], one["reward"]) for one in rewards)
        if turn == 7:
            client.post("/v1/models/news/arms", json={"add": "travel", "like": "science"}).raise_for_status()
            bandit.add_arm("travel", like="science")
        if turn in (11, 17):
            client.post("/v1/models/news/arms", json={"remove": "football"}).raise_for_status()
            bandit.remove_arm("football")
        if turn == 14:
            client.post("/v1/models/news/arms", json={"add": "football"}).raise_for_status()
            bandit.add_arm("football")
    assert client.get("/v1/models/news/arms").json()["arms"] == ["climate", "science", "travel"]
    log = client.get("/v1/models/news/log?format=dsjson").text
    (tmp_path / "log.dsjson").write_text(log)
    assert sb.logs.values(sb.logs.read_dsjson(tmp_path / "log.dsjson")).equals(sb.logs.values(bandit.log()))


def test_arms_bring_features(client):
    bandit = sb.Bandit(features=sb.Features(SHOP["context"], None, SHOP["arm_features"]), floor=0.2, seed=5)
    rng = np.random.default_rng(5)
    for turn in range(12):
        arms = {
            f"tea {number}": {"price": float(rng.normal(3, 1)), "taste": ["mild", "strong"][number % 2]}
            for number in range(turn, turn + 3)
        }
        asked = {"context": {"hour": turn, "user.age": 30}, "arms": arms, "event_id": f"e{turn}"}
        same(
            client.post("/v1/models/shop/decisions", json=asked).json(),
            bandit.decide(*list(asked.values())[:2], f"e{turn}"),
        )
        client.post(
            "/v1/models/shop/rewards", json={"event_id": f"e{turn}", "reward": turn % 2}
        ).raise_for_status()
        bandit.learn(f"e{turn}", turn % 2)
    assert client.get("/v1/models/shop/arms").json() == {"arms": [], "changed": False}


def test_a_repeated_call_changes_nothing_also_where_arms_have_come_since(client):
    first = decide(client, event_id="a", context={"age": 3}).json()
    client.post("/v1/models/news/arms", json={"add": "travel"}).raise_for_status()
    again = decide(client, event_id="a", context={"age": 3}).json()
    assert (first.pop("again"), again.pop("again")) == (False, True)
    assert again == first
    other = decide(client, event_id="a", context={"age": 3}, arms=["travel", "science"])
    assert other.status_code == 409
    for change, changed in (
        ({"add": "travel"}, False),
        ({"remove": "travel"}, True),
        ({"remove": "travel"}, False),
    ):
        answer = client.post("/v1/models/news/arms", json=change).json()
        assert answer["changed"] == changed
    assert client.get("/v1/models/news/stats").json()["last_sequence"] == 3


def test_a_repeated_call_may_name_an_arm_that_was_removed(client):
    path = "/v1/models/news/personalizer/v1.0/rank"
    ranked = {
        "contextFeatures": [{"age": 3}],
        "actions": [{"id": "science"}, {"id": "climate"}],
        "eventId": "r",
    }
    asked = {"event_id": "a", "context": {"age": 3}, "arms": ["climate", "science"]}
    rank = client.post(path, json=ranked).json()
    made = decide(client, **asked).json()
    client.post("/v1/models/news/arms", json={"remove": "science"}).raise_for_status()
    assert client.post(path, json=ranked).json() == rank
    assert decide(client, **asked).json() == made | {"again": True}
    many = decide(client, decisions=[asked, {"event_id": "b", "context": {"age": 4}}]).json()["decisions"]
    assert [one["again"] for one in many] == [True, False]
    refused = decide(client, **(asked | {"event_id": "c"}))
    assert refused.status_code == 422
    assert "'science', which was removed" in refused.text


def test_rank_and_reward_in_the_shape_of_personalizer(client):
    key = client.headers["authorization"].split()[1]
    asked = {
        "contextFeatures": [{"hour": 9}, {"user": {"age": 34}}],
        "actions": [
            {"id": "milk", "features": [{"taste": "mild"}, {"price": 1.5}]},
            {"id": "tea", "features": [{"taste": "strong"}]},
            {"id": "water"},
        ],
        "excludedActions": ["water"],
        "eventId": "visit-1",
        "deferActivation": False,
        "unknown": "is left out",
    }
    headers = {"Ocp-Apim-Subscription-Key": key}
    answer = httpx.post(f"{client.base_url}{RANK}/rank", json=asked, headers=headers, timeout=60)
    assert answer.status_code == 201
    found = answer.json()
    assert set(found) == {"ranking", "eventId", "rewardActionId"}
    bandit = sb.Bandit(features=sb.Features(SHOP["context"], None, SHOP["arm_features"]), floor=0.2, seed=5)
    arms = {"milk": {"taste": "mild", "price": 1.5}, "tea": {"taste": "strong"}}
    choice = bandit.decide({"hour": 9, "user.age": 34}, arms)
    assert found["eventId"] == "visit-1"
    assert found["rewardActionId"] == choice.arm == found["ranking"][0]["id"]
    assert found["ranking"][-1] == {"id": "water", "probability": 0.0}
    chances = {one["id"]: one["probability"] for one in found["ranking"]}
    assert chances == dict(zip(choice.arms, choice.probabilities.tolist(), strict=True)) | {"water": 0.0}
    assert client.post(f"{RANK}/rank", json=asked).json() == found
    for _ in range(2):
        reward = client.post(f"{RANK}/events/visit-1/reward", json={"value": 0.5})
        assert (reward.status_code, reward.content) == (204, b"")
    assert client.post(f"{RANK}/events/visit-1/reward", json={"value": 1}).status_code == 409
    assert client.post(f"{RANK}/events/nobody/reward", json={"value": 1}).status_code == 404


RANKS = [
    ({"actions": []}, "actions must be a list of at least 1, got 0"),
    ({"actions": [{"id": "a"}, {"id": "a"}]}, "actions must have ids that differ"),
    ({"actions": [{"id": "a"}], "excludedActions": ["a"]}, "excludedActions must leave an action"),
    ({"actions": [{"id": "a"}], "deferActivation": True}, "deferActivation must be false"),
    ({"actions": [{"id": "a", "features": [{"size": 3}]}]}, "'size' must be a declared name of arm_features"),
    (
        {"actions": [{"id": "a"}], "contextFeatures": [{"hour": 1}, {"hour": 2}]},
        "contextFeatures: hour must be said once",
    ),
    ({"actions": [{"id": "a"}], "contextFeatures": [{"hour": "noon"}]}, "hour must be a number, got 'noon'"),
]


@pytest.mark.parametrize(("asked", "words"), RANKS)
def test_rank_calls_that_cannot_be_are_refused_in_one_line(client, asked, words):
    answer = client.post(f"{RANK}/rank", json=asked)
    assert answer.status_code == 422
    assert words in answer.json()["error"]
    assert client.get("/v1/models/shop/stats").json()["last_sequence"] == 0


def test_rank_among_the_arms_of_a_model(client):
    asked = {"contextFeatures": [{"age": 3}], "actions": [{"id": "science"}, {"id": "climate"}]}
    found = client.post("/v1/models/news/personalizer/v1.1-preview.3/rank", json=asked).json()
    assert {one["id"] for one in found["ranking"]} == {"science", "climate"}
    asked["actions"][0]["features"] = [{"length": 3}]
    answer = client.post("/v1/models/news/personalizer/v1.0/rank", json=asked)
    assert "actions must have no features" in answer.json()["error"]


WRONG = [
    (
        {},
        {"ag": 3},
        "'ag' must be a declared name of context: there are 'age', 'device'; did you mean 'age'?",
    ),
    ({}, {"age": "x"}, None),
    ({"arms": ["nobody"]}, {}, "got 'nobody', which is not there"),
    ({"arms": {"science": {"price": 1}}}, {}, "arms must be a list of names"),
    ({"available": [True]}, {}, "available must be left out where arms have names"),
    (
        {"features": [[1.0]]},
        None,
        "features must be left out, as they have names here: give context and arms",
    ),
    ({"arms": {"a\n": {}}}, {}, "must be printable"),
]


@pytest.mark.parametrize(("more", "context", "words"), WRONG)
def test_what_cannot_be_is_refused_in_one_line(client, more, context, words):
    decide(client, context={"age": 3.0}, event_id="first").raise_for_status()
    answer = decide(client, context=context, **more)
    assert answer.status_code == 422
    assert (words or "age must be a number, got 'x'") in answer.json()["error"]
    assert client.get("/v1/models/news/stats").json()["last_sequence"] == 1


SPECS = [
    ({"dim": 3}, "dim must be left out where features have names"),
    ({"arms": None}, "arms or arm_features must be given"),
    ({"context": {"age": "nmber"}}, "context.age must be 'number', 'boolean'"),
    ({"context": ["age", "age"]}, "context must name each feature once"),
    ({"context": [3]}, "context must be names, or a table of names and types, got 3"),
    ({"arms": ["a", "a"]}, "arms must be different from each other"),
    ({"interactions": [["age", "nobody"]]}, "interactions must be one of age, device, got 'nobody'"),
    ({"categories": 0}, "categories must be >= 1"),
    (
        {"arms": [f"arm {number}" for number in range(1000)]},
        "at most 10,000,000 numbers once all categories have come",
    ),
]


@pytest.mark.parametrize(("changed", "words"), SPECS)
def test_models_that_cannot_be(client, changed, words):
    answer = client.post("/v1/models", json=NEWS | {"name": "other"} | changed)
    assert answer.status_code == 422
    assert words in answer.json()["error"]
    assert len(client.get("/v1/models").json()["models"]) == 2


def test_arms_over_http_have_a_limit():
    features = sb.Features({"age": "number"}, ["a"])
    check_size(features, 1000)
    with pytest.raises(
        ValueError, match="arms must be at most 1,000, those that were removed included, got 1,001"
    ):
        check_size(features, 1001)


def test_types_are_those_of_features():
    assert get_args(schemas.Kind) == TYPES


@pytest.mark.parametrize("arms", [None, ["a", "b", "c"]])
@pytest.mark.parametrize("own", [(), ["price", "taste"]])
def test_no_model_becomes_larger_than_the_limit_says(arms, own):
    """The features that there are after more categories than have columns are at most those that are reckoned with."""
    from solid_bandits.features.design import Design
    from solid_bandits.service.named import _width

    if arms is None and not own:
        return
    features = sb.Features(["one", "two"], arms, own, categories=5)
    design, rng = Design(features), np.random.default_rng(0)
    for _ in range(200):
        context = {name: f"w{rng.integers(20)}" if rng.random() < 0.9 else None for name in features.context}
        brought = {name: f"w{rng.integers(20)}" if rng.random() < 0.9 else None for name in own}
        design.take(design.check(context, dict.fromkeys(arms or ["x"], brought) if own else None))
    assert design.dim <= _width(features, len(arms or ()), 5)
    assert design.dim >= 0.9 * _width(features, len(arms or ()), 5)
    check_size(features, 3)


def test_restart_and_replay_bit_for_bit(tmp_path):
    """Two halves with a restart between them: the second goes on as if there had been none, and the log replays."""
    rng = np.random.default_rng(8)
    bandit = sb.Bandit(features=sb.Features(NEWS["context"], NEWS["arms"]), floor=0.2, seed=7)
    numbers = []
    for half in range(2):
        with stored(tmp_path) as client:
            if half == 0:
                client.post("/v1/models", json=NEWS).raise_for_status()
            else:
                assert client.get("/v1/models/news/stats").json()["values"] == numbers[-1]
            for turn in range(20):
                one = {"event_id": f"{half}-{turn}", "context": somebody(rng)}
                same(decide(client, **one).json(), bandit.decide(one["context"], event_id=one["event_id"]))
                if turn % 3:
                    client.post(
                        "/v1/models/news/rewards", json={"event_id": one["event_id"], "reward": turn % 2}
                    )
                    bandit.learn(one["event_id"], turn % 2)
            client.post("/v1/models/news/arms", json={"add": f"arm {half}"}).raise_for_status()
            bandit.add_arm(f"arm {half}")
            numbers.append(client.get("/v1/models/news/stats").json()["values"])
    status, words = replayed(tmp_path)
    assert status == 0
    assert "40 decisions" in words
    assert "2 arm changes" in words
    assert "identical" in words


def test_values_of_the_page_are_doubly_robust_by_what_the_bandit_expects():
    """Against the formula: Σ_a π(a) q(a) + π(a) / g(a) (r - q(a)), q being the bandit's estimates before the reward."""
    rng = np.random.default_rng(2)
    bandit, twin = (sb.Bandit(arms=["a", "b"], context=["age"], floor=0.4, seed=1) for _ in range(2))
    bandit.beside = Stats(None)
    terms = []
    for place in range(60):
        context = {"age": float(rng.normal())}
        decision = bandit.decide(context, event_id=f"e{place}")
        twin.decide(context, event_id=f"e{place}")
        if place % 5 == 4:
            continue
        reward = float(rng.normal() + (decision.arm == "a"))
        expected = twin.agent.predict(twin.design.encode(twin.recall(f"e{place}").named))[0]
        chances, chosen = decision.probabilities, decision.place
        term = []
        for policy in (np.full(2, 0.5), np.eye(2)[expected.argmax()]):
            residual = policy[chosen] / chances[chosen] * (reward - expected[chosen])
            term.append(float(policy @ expected + residual))
        terms.append(term)
        bandit.learn(decision.event_id, reward)
        twin.learn(decision.event_id, reward)
    found = bandit.beside.answer(0)["values"]
    uniform, greedy = np.mean(terms, axis=0)
    assert found["uniform"]["value"] == pytest.approx(uniform, rel=1e-9)
    assert found["greedy"]["value"] == pytest.approx(greedy, rel=1e-9)
    assert found["rows"] == len(terms) == 48


def test_large_bodies_are_read_by_the_other_process_and_are_the_same(client):
    words = [{"age": float(number), "device": f"word {number} " + "x" * 150} for number in range(400)]
    asked = {"decisions": [{"context": one, "event_id": f"e{place}"} for place, one in enumerate(words)]}
    assert len(json.dumps(asked)) > parsing.SMALL
    made = client.post("/v1/models/news/decisions", json=asked).json()["decisions"]
    bandit = sb.Bandit(features=sb.Features(NEWS["context"], NEWS["arms"]), floor=0.2, seed=7)
    for one, choice in zip(made, bandit.decide_many(asked["decisions"]), strict=True):
        same(one, choice)
    actions = [{"id": f"a{place}", "features": [{"taste": "y" * 190}]} for place in range(400)]
    body = {"contextFeatures": [{"hour": 3}], "actions": actions, "eventId": "r"}
    assert len(json.dumps(body)) > parsing.SMALL
    found = client.post(f"{RANK}/rank", json=body)
    assert found.status_code == 201
    assert len(found.json()["ranking"]) == 400
    wrong = client.post(f"{RANK}/rank", json=body | {"eventId": 3})
    assert wrong.json()["error"] == "eventId must be text, got 3"


def test_old_decisions_are_left_to_the_log_and_read_again(tmp_path):
    rng = np.random.default_rng(1)
    with stored(tmp_path, decisions_memory=20_000) as client:
        client.post("/v1/models", json=NEWS).raise_for_status()
        bandit = sb.Bandit(features=sb.Features(NEWS["context"], NEWS["arms"]), floor=0.2, seed=7)
        for place in range(60):
            context = somebody(rng)
            same(
                decide(client, context=context, event_id=f"e{place}").json(),
                bandit.decide(context, event_id=f"e{place}"),
            )
        used = client.get("/metrics").text
        held = [line for line in used.splitlines() if line.startswith("solid_bandits_decisions_memory_bytes")]
        assert float(held[0].split()[-1]) <= 20_000
        for place in range(60):
            answer = client.post(
                "/v1/models/news/rewards", json={"event_id": f"e{place}", "reward": place % 3}
            )
            assert answer.json()["status"] == "learned"
            bandit.learn(f"e{place}", place % 3)
        context = somebody(rng)
        same(decide(client, context=context, event_id="last").json(), bandit.decide(context, event_id="last"))
    assert "identical" in replayed(tmp_path)[1]


def test_a_bandit_without_a_page_keeps_no_expectations():
    bandit = sb.Bandit(arms=["a", "b"], context=["age"])
    decision = bandit.decide({"age": 3}, event_id="a")
    assert decision.status == OPEN
    bandit.learn("a", 1.0)
    assert bandit.recall("a").expected is None


def test_the_clients_say_names(client):
    key = client.headers["authorization"].split()[1]
    url = str(client.base_url)
    with sb.client.Client(url, key) as mine:
        mine.create("more", context={"age": "number", "seen": "date"}, arms=["a", "b"], floor=0.1)
        choice = mine.decide(
            "more", {"age": np.float64(3.0), "seen": np.datetime64("2026-03-01").item()}, event_id="x"
        )
        assert choice.arms == ("a", "b")
        assert mine.decide("more", None, arms=["b"]).arms == ("b",)
        assert len(mine.decide_many("more", [{"context": {"age": 1}}, {"context": {}, "arms": ["a"]}])) == 2
        assert mine.learn("more", "x", 1.0).counted
        assert mine.add_arm("more", "c", like="a") == ["a", "b", "c"]
        assert mine.remove_arm("more", "a") == mine.arms("more") == ["b", "c"]
        priced = mine.decide("shop", {"hour": 3}, arms={"tea": {"price": np.int64(3)}, "milk": {}})
        assert set(priced.arms) == {"tea", "milk"}
        with pytest.raises(ValueError, match="'ag' must be a declared name"):
            mine.decide("more", {"ag": 3})
        with pytest.raises(ValueError, match="context must be a table of values by their names"):
            mine.decide_many("more", [{"context": 3}])

    async def visit():
        async with sb.client.AsyncClient(url, key) as theirs:
            await theirs.add_arm("more", "d")
            made = await theirs.decide("more", {"age": 4})
            await theirs.remove_arm("more", "d")
            return made, await theirs.arms("more")

    made, arms = asyncio.run(visit())
    assert made.arms == ("b", "c", "d")
    assert arms == ["b", "c"]


def test_policies_are_evaluated_as_the_model_declares(client):
    """Days of the week, not the words of 300 different times."""
    spec = {"name": "days", "context": {"t": "weekday"}, "arms": ["x", "y"], "floor": 0.4, "seed": 3}
    client.post("/v1/models", json=spec).raise_for_status()
    rng = np.random.default_rng(2)
    times = [datetime(2026, 1, 1) + timedelta(hours=5 * place) for place in range(300)]
    asked = [{"event_id": str(n), "context": {"t": one.isoformat()}} for n, one in enumerate(times)]
    made = client.post("/v1/models/days/decisions", json={"decisions": asked}).json()["decisions"]
    rewards = [
        {
            "event_id": one["event_id"],
            "reward": float((one["arm"] == "x") == (time.weekday() < 5)) + rng.normal(),
        }
        for one, time in zip(made, times, strict=True)
    ]
    client.post("/v1/models/days/rewards", json={"rewards": rewards}).raise_for_status()
    log = pl.read_parquet(io.BytesIO(client.get("/v1/models/days/log").content))
    answer = client.get("/v1/models/days/evaluate", params={"policy": "greedy"}).json()["policies"][0]
    found = {one["estimator"]: one["value"] for one in answer["estimates"]}
    (wanted,) = evaluate_words(log, ["greedy"], sb.Features({"t": "weekday"}, ["x", "y"])).values()
    (untyped,) = evaluate_words(log, ["greedy"]).values()
    assert found["ips"] == wanted.value("ips")
    assert found["ips"] != untyped.value("ips")
