"""Decisions and rewards over HTTP: the same as a bandit's, once, in batches, and again."""

import io

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from served import SPEC, TWO, stored
from solid_bandits import logs


@pytest.fixture
def client(tmp_path):
    with stored(tmp_path) as found:
        assert found.post("/v1/models", json=SPEC).status_code == 201
        yield found


def decide(client, **asked):
    return client.post("/v1/models/news/decisions", json={"features": TWO} | asked)


def learn(client, event_id, reward):
    return client.post("/v1/models/news/rewards", json={"event_id": event_id, "reward": reward})


def test_it_decides_as_a_bandit_does(client):
    """The same calls to `sb.Bandit`: the same arms and probabilities, bit for bit, one by one and in batches."""
    bandit = sb.Bandit(sb.RandUCB(), dim=3, noise_std=0.5, floor=0.1, seed=7)
    rng = np.random.default_rng(3)
    for turn in range(15):
        offers = rng.normal(size=(4, 5, 3)).round(3)
        asked = [
            {"event_id": f"{turn}-{place}", "features": one.tolist()} for place, one in enumerate(offers)
        ]
        if turn % 2:
            answer = client.post("/v1/models/news/decisions", json={"decisions": asked})
            made = answer.json()["decisions"]
            choices = bandit.decide_many(asked)
        else:
            made = [client.post("/v1/models/news/decisions", json=one).json() for one in asked]
            choices = [
                bandit.decide(offer, event_id=one["event_id"])
                for one, offer in zip(asked, offers, strict=True)
            ]
        for one, choice in zip(made, choices, strict=True):
            assert one["arm"] == choice.arm
            assert one["probabilities"] == choice.probabilities.tolist()
            assert one["probability"] == choice.probability
            assert one["explored"] == choice.explored
            assert one["version"].endswith(f"/{bandit._learned}")
        rewards = [{"event_id": one["event_id"], "reward": float(rng.normal())} for one in made[:3]]
        answer = client.post("/v1/models/news/rewards", json={"rewards": rewards})
        assert [one["status"] for one in answer.json()["rewards"]] == ["learned"] * 3
        bandit.learn_many((one["event_id"], one["reward"]) for one in rewards)
    facts = client.get("/v1/models/news/stats").json()
    assert facts["open"] == bandit.waiting == 15
    assert facts["decisions"] == 60
    assert facts["last_sequence"] == 60 + 45


def test_the_same_id_gets_the_same_decision_and_changes_nothing(client):
    first = decide(client, event_id="a", arms=["red", "blue"]).json()
    assert not first.pop("again")
    again = decide(client, event_id="a", arms=["red", "blue"], features=[[0, 0, 1], [9, 9, 9]]).json()
    assert again.pop("again")
    assert again == first
    assert client.get("/v1/models/news/stats").json()["last_sequence"] == 1
    both = client.post(
        "/v1/models/news/decisions",
        json={"decisions": [{"event_id": "b", "features": TWO}, {"event_id": "b", "features": TWO}]},
    ).json()["decisions"]
    assert [one.pop("again") for one in both] == [False, True]
    assert both[0] == both[1]


def test_the_same_id_among_other_arms_is_a_conflict(client):
    decide(client, event_id="a", arms=["red", "blue"])
    answer = decide(client, event_id="a", arms=["red", "green"])
    assert answer.status_code == 409
    assert "'a' was decided among other arms" in answer.json()["error"]
    two = [{"event_id": "b", "features": TWO}, {"event_id": "b", "features": TWO, "arms": ["x", "y"]}]
    assert client.post("/v1/models/news/decisions", json={"decisions": two}).status_code == 409
    assert client.get("/v1/models/news/stats").json()["last_sequence"] == 1


def test_a_second_reward_changes_nothing_and_another_one_is_a_conflict(client):
    decide(client, event_id="a")
    assert learn(client, "a", 1.0).json()["status"] == "learned"
    version = decide(client).json()["version"]
    assert learn(client, "a", 1.0).json() == {
        "event_id": "a", "status": "again", "counted": False, "reward": 1.0,
        "message": "event_id 'a' had learned 1 before",
    }  # fmt: skip
    other = learn(client, "a", 0.5)
    assert other.status_code == 409
    assert other.json() == {"error": "event_id 'a' had learned 1; 0.5 was not taken in"}
    assert learn(client, "nobody", 1.0).status_code == 404
    assert decide(client).json()["version"] == version
    many = [("a", 1.0), ("a", 2.0), ("nobody", 1.0)]
    answer = client.post(
        "/v1/models/news/rewards",
        json={"rewards": [{"event_id": one, "reward": value} for one, value in many]},
    )
    assert answer.status_code == 200
    assert [one["status"] for one in answer.json()["rewards"]] == ["again", "conflict", "unknown"]


def test_a_batch_with_one_wrong_decision_decides_nothing(client):
    asked = [{"features": TWO}, {"features": [[1.0, 0.0]]}]
    answer = client.post("/v1/models/news/decisions", json={"decisions": asked})
    assert answer.status_code == 422
    assert answer.json()["error"] == "decision 1 of 2: features must have 3 numbers for each arm, got 2"
    assert client.get("/v1/models/news/stats").json()["last_sequence"] == 0


def test_only_available_arms_are_chosen(client):
    for _ in range(30):
        made = decide(client, arms=["red", "blue"], available=[False, True]).json()
        assert (made["arm"], made["arms"], made["probabilities"]) == ("blue", ["blue"], [1.0])
    assert decide(client, available=[False, False]).status_code == 422
    assert decide(client, available=[True]).status_code == 422
    numbered = decide(client, available=[False, True]).json()
    assert numbered["arm"] == 1  # as the caller counts them


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"features": [[1, 0]]}, "must have 3 numbers"),
        ({"features": [[1, 0, 0], [1, 0]]}, "must have 3 numbers"),
        ({"features": []}, "features"),
        ({"features": [[1, 0, 1e308]]}, "features"),
        ({"features": [[1, 0, "x"]]}, "features[0][2] must be a number, got 'x'"),
        ({"features": [[1, 0, None]]}, "features[0][2] must be a number, got None"),
        ({"features": TWO, "arms": ["a"]}, "arms must be 2 names"),
        ({"features": TWO, "arms": ["a", "a"]}, "different from each other"),
        ({"features": TWO, "arms": ["a", 1.5]}, "arms"),
        ({"features": TWO, "event_id": ""}, "event_id"),
        ({"features": TWO, "event_id": "a\nb"}, "printable"),
        ({"features": TWO, "event_id": "a" * 201}, "event_id"),
        ({"features": TWO, "colour": 1}, "colour"),
        ({"decisions": []}, "decisions"),
        ({"features": [[0.0] * 3] * 1001}, "features"),
        ([], "body"),
        ("x", "body"),
    ],
)
def test_what_cannot_be_decided_is_refused_in_one_sentence(client, body, words):
    answer = client.post("/v1/models/news/decisions", json=body)
    assert answer.status_code == 422
    assert words in answer.json()["error"]
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    "text", ['{"features": [[1, 0, NaN]]}', '{"features": [[1, 0, Infinity]]}', "{", "", "\xff"]
)
def test_numbers_that_are_none_and_text_that_is_no_json_are_refused(client, text):
    answer = client.post(
        "/v1/models/news/decisions",
        content=text.encode("latin-1"),
        headers={"content-type": "application/json"},
    )
    assert answer.status_code in (400, 422)
    assert set(answer.json()) == {"error"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"policy": "randucbb"}, "randucb"),
        ({"policy": "solid"}, "decides from features"),
        ({"parameters": {"colour": 1}}, "parameter must be"),
        ({"parameters": {"ridge": -1}}, "ridge must be"),
        ({"dim": 0}, "dim"),
        ({"dim": 1001}, "dim"),
        ({"name": "No"}, "name"),
        ({"name": "../x"}, "name"),
        ({"floor": 1.5}, "floor"),
        ({"default_reward": 0}, "wait must be given"),
        ({"half_life": 0}, "half_life"),
    ],
)
def test_models_that_cannot_be_are_refused(client, spec, words):
    answer = client.post("/v1/models", json=SPEC | {"name": "other"} | spec)
    assert answer.status_code == 422, answer.text
    assert words in answer.json()["error"]
    assert [one["name"] for one in client.get("/v1/models").json()["models"]] == ["news"]


def test_models_have_one_name_each_and_a_seed_of_their_own(client):
    other = client.post("/v1/models", json=SPEC | {"floor": 0.5})
    assert other.status_code == 409
    assert "with other settings" in other.json()["error"]
    seeds = {client.post("/v1/models", json={"name": name, "dim": 2}).json()["seed"] for name in ("a", "b")}
    assert len(seeds) == 2


def test_a_model_asked_for_again_is_the_one_there_is(client):
    """A call whose answer was lost is repeated, and must not be told that its own model is in the way."""
    for asked in (SPEC, {"name": "unseeded", "dim": 2}):
        first = client.post("/v1/models", json=asked)
        again = client.post("/v1/models", json=asked)
        assert again.status_code == 201
        assert again.json() == first.json()
    assert client.get("/v1/models/news").json()["floor"] == 0.1
    assert client.get("/v1/models/nobody").status_code == 404
    assert client.get("/v1/models/nobody/stats").status_code == 404


def test_the_log_is_one_of_ours(client, tmp_path):
    for place in range(40):
        decide(client, event_id=f"e{place}", arms=["red", "blue"])
        if place % 2:
            learn(client, f"e{place}", place / 40)
    answer = client.get("/v1/models/news/log")
    table = pl.read_parquet(io.BytesIO(answer.content))
    assert logs.schema.check_log(table).equals(table)
    assert table["event_id"].to_list() == [f"e{place}" for place in range(40)]
    assert table["reward"].to_list() == [place / 40 if place % 2 else None for place in range(40)]
    assert table["reward_sequence"].null_count() == 20
    other = client.get("/v1/models/news/log?format=dsjson")
    (tmp_path / "log.dsjson").write_bytes(other.content)
    again = logs.read_dsjson(tmp_path / "log.dsjson")
    assert again["arm"].to_list() == table["arm"].to_list()
    assert again["probability"].to_list() == table["probability"].to_list()
    # A range of it: rewards that came after the range are there.
    some = pl.read_parquet(io.BytesIO(client.get("/v1/models/news/log?after=1&until=2").content))
    assert some["event_id"].to_list() == ["e1"]
    assert some["reward"].to_list() == [1 / 40]


def test_an_answer_that_is_too_large_is_refused_with_what_would_do(tmp_path):
    size = 8 * (2 + 6) * 4  # four decisions of two arms and three features
    with stored(tmp_path, report_bytes=size) as client:
        client.post("/v1/models", json=SPEC)
        for place in range(10):
            decide(client, event_id=f"e{place}")
        answer = client.get("/v1/models/news/log")
        assert answer.status_code == 422
        assert answer.json()["error"].startswith("until must be at most 4:")
        some = pl.read_parquet(io.BytesIO(client.get("/v1/models/news/log?after=0&until=4").content))
        assert some.height == 4


def test_an_answer_is_from_so_many_events_at_most(tmp_path):
    with stored(tmp_path, report_events=4, report_newest=3) as client:
        client.post("/v1/models", json=SPEC)
        for place in range(6):
            decide(client, event_id=f"e{place}")
        for path in ("log", "evaluate"):
            answer = client.get(f"/v1/models/news/{path}?after=1")
            assert answer.status_code == 422
            assert answer.json()["error"].startswith("until must be at most 5: an answer is from 4 events")
        for words in ("after=1&until=5", "after=2", f"after=2&until={2**62}"):
            some = pl.read_parquet(io.BytesIO(client.get(f"/v1/models/news/log?{words}").content))
            assert some.height == 4
        newest = pl.read_parquet(io.BytesIO(client.get("/v1/models/news/log").content))
        assert newest["event_id"].to_list() == ["e3", "e4", "e5"]


def test_it_evaluates_other_policies_as_the_library_does(client):
    rng = np.random.default_rng(0)
    for place in range(60):
        made = decide(client, event_id=f"e{place}", arms=["red", "blue"]).json()
        learn(client, f"e{place}", float((made["arm"] == "red") + rng.normal()))
    answer = client.get("/v1/models/news/evaluate?policy=uniform&policy=always:red&policy=greedy").json()
    table = pl.read_parquet(io.BytesIO(client.get("/v1/models/news/log").content))
    agent, rest = sb.ope.fitted(
        table, sb.policies.Greedy() if hasattr(sb.policies, "Greedy") else sb.Greedy()
    )
    assert answer["rows"] == rest.height == 30
    assert answer["earned"] == pytest.approx(rest["reward"].mean())
    targets = dict(
        zip(
            ["uniform", "always:red", "Greedy, of the first half"],
            ["uniform", "always:red", agent],
            strict=True,
        )
    )
    assert [one["policy"] for one in answer["policies"]] == list(targets)
    for one in answer["policies"]:
        expected = sb.ope.evaluate(rest, targets[one["policy"]])
        found = {row["estimator"]: row["value"] for row in one["estimates"]}
        assert found["ips"] == pytest.approx(expected.value("ips"))
        assert found["snips"] == pytest.approx(expected.value("snips"))


@pytest.mark.parametrize(
    "policy", ["/etc/passwd", "nobody", "greedy(", "always:", "solid", "randucb(ridge=-1)"]
)
def test_policies_that_are_none_are_refused_and_no_file_is_read(client, policy):
    decide(client)
    answer = client.get("/v1/models/news/evaluate", params={"policy": policy})
    assert answer.status_code == 422
    assert "policy" in answer.json()["error"] or "ridge" in answer.json()["error"]


def test_the_page_and_the_schema_need_no_other_host(client):
    schema = client.get("/openapi.json").json()
    asked = schema["components"]["schemas"]
    for name in ("ModelSpec", "DecisionAsked", "RewardGiven", "DeletionAsked"):
        assert asked[name]["examples"], name
    assert client.get("/docs").status_code == 404
    page = client.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert client.get("/page/../app.py").status_code == 404


def test_metrics_count_requests_and_events(client):
    for _ in range(3):
        decide(client)
    text = client.get("/metrics").text
    assert 'solid_bandits_events_total{kind="decision"} 3' in text
    route = 'method="POST",route="/v1/models/{name}/decisions",status="200"'
    assert f"solid_bandits_requests_total{{{route}}} 3" in text
    for line in text.splitlines():
        assert line.startswith("#") or len(line.rsplit(" ", 1)) == 2
        if not line.startswith("#"):
            float(line.rsplit(" ", 1)[1])
