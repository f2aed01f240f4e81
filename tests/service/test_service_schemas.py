"""What is refused before a model sees it."""

import pytest
from pydantic import TypeAdapter, ValidationError

from served import SPEC, TWO, stored
from solid_bandits.service import schemas


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with stored(tmp_path_factory.mktemp("service")) as found:
        found.post("/v1/models", json=SPEC).raise_for_status()
        yield found


def test_characters_that_a_store_cannot_keep_are_refused(tmp_path):
    with stored(tmp_path) as client:
        client.post("/v1/models", json=SPEC)
        for sign in ("\0", "\n", "\x1b", "\u2028"):
            text = f"a{sign}b"
            for path, body in [
                ("decisions", {"features": TWO, "event_id": text}),
                ("decisions", {"features": TWO, "subject": text}),
                ("rewards", {"event_id": text, "reward": 1.0}),
                ("deletions", {"event_ids": [text]}),
                ("deletions", {"subject": text}),
            ]:
                answer = client.post(f"/v1/models/news/{path}", json=body)
                assert answer.status_code == 422, (sign, path, answer.text)
                assert "must be printable" in answer.json()["error"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (schemas.DecisionBody, {"decisions": [{"features": "x"}] * 900}),
        (schemas.DecisionBody, {"features": [["x"] * 900] * 900}),
        (schemas.DecisionBody, {"features": TWO, "available": [3] * 900}),
        (schemas.RewardBody, {"rewards": [{}] * 900}),
        (schemas.DeletionAsked, {"event_ids": [3] * 900}),
    ],
)
def test_a_long_list_of_wrong_things_is_a_short_list_of_errors(kind, body):
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(kind).validate_python(body)
    assert refused.value.error_count() <= 2


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("models", SPEC | {"dim": 0}, "dim must be >= 1, got 0"),
        ("models", SPEC | {"dim": 1001}, "dim must be <= 1,000, got 1001"),
        ("models", SPEC | {"dim": "many"}, "dim must be a whole number, got 'many'"),
        ("models", SPEC | {"dim": 2.5}, "dim must be a whole number, got 2.5"),
        ("models", SPEC | {"half_life": 0}, "half_life must be > 0, got 0"),
        ("models", SPEC | {"floor": [1]}, "floor must be a number, got [1]"),
        ("models", SPEC | {"name": "No"}, f"name must be {schemas.NAME}, got 'No'"),
        ("models", SPEC | {"default_reward": 0}, "wait must be given with default_reward"),
        ("models", SPEC | {"parameters": 3}, "parameters must be a JSON object, got 3"),
        ("models", SPEC | {"parameters": {"ridge": [1]}},
         "parameters.ridge must be true or false or a whole number or a number or text, got [1]"),
        ("models", SPEC | {"colour": 1}, "colour is not an argument here; leave it out"),
        ("models/news/decisions", {"age": 34}, "age is not an argument here; leave it out, or put it into context"),
        ("models/news/decisions", {"decisions": [{"context": {}, "age": 34}]},
         "decisions[0].age is not an argument here; leave it out, or put it into context"),
        ("models", {"name": "x"}, "dim must be given, or context and arms: names of features"),
        ("models", [1], "the body must be a JSON object, got [1]"),
        ("models/news/decisions", {}, "features must be given"),
        ("models/news/decisions", {"features": []}, "features must be a list of at least 1, got 0"),
        ("models/news/decisions", {"features": [[1e308, 0, 0]]}, "features[0][0] must be <= "),
        ("models/news/decisions", {"features": 3}, "features must be a list, got 3"),
        ("models/news/decisions", {"features": TWO, "arms": ["a", 1.5]},
         "arms[1] must be text or a whole number, got 1.5"),
        ("models/news/decisions", {"features": TWO, "available": [1, 0]}, "available[0] must be true or false, got 1"),
        ("models/news/decisions", {"features": TWO, "event_id": "a" * 201},
         "event_id must be text of at most 200 characters, got 'aaa"),
        ("models/news/decisions", {"features": TWO, "event_id": "a\nb"}, "event_id must be printable, got 'a\\nb'"),
        ("models/news/decisions", {"decisions": [{"features": TWO}, {"features": [["x"]]}]},
         "decisions[1].features[0][0] must be a number, got 'x'"),
        ("models/news/decisions", 3, "the body must be a JSON object, got 3"),
        ("models/news/rewards", {"event_id": "a", "reward": None}, "reward must be a number, got None"),
        ("models/news/rewards", {"rewards": [{"event_id": "a"}]}, "rewards[0].reward must be given"),
        ("models/news/deletions", {}, "one of event_ids, subject and before must be given"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_argument_what_would_do_and_what_was_received(client, path, body, words):
    answer = client.post(f"/v1/{path}", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(words)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("log?after=-1", "after must be >= 0, got '-1'"),
        ("log?after=x", "after must be a whole number, got 'x'"),
        ("log?format=csv", "format must be 'parquet' or 'dsjson', got 'csv'"),
        ("evaluate?policy=", "policy[0] must be text of at least 1 characters, got ''"),
    ],
)
def test_so_does_one_of_what_is_asked_in_an_address(client, query, words):
    answer = client.get(f"/v1/models/news/{query}")
    assert (answer.status_code, answer.json()) == (422, {"error": words})


def test_so_does_one_of_a_body_that_is_no_json(client):
    for content in (b"{", b'{"dim": NaN'):
        answer = client.post("/v1/models", content=content, headers={"content-type": "application/json"})
        assert answer.status_code == 422
        assert answer.json()["error"].startswith("the body must be JSON (")


def test_an_offer_has_so_many_numbers_at_most():
    schemas.DecisionAsked(features=[[1.0] * 1_000] * 100)
    with pytest.raises(ValidationError, match="at most 100,000 numbers in all, got 101,000"):
        schemas.DecisionAsked(features=[[1.0] * 1_000] * 101)
