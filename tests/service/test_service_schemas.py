"""What is refused before a model sees it."""

import pytest
from pydantic import TypeAdapter, ValidationError

from served import SPEC, TWO, stored
from solid_bandits.service import schemas


def test_signs_that_a_store_cannot_keep_are_refused(tmp_path):
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


def test_an_offer_has_so_many_numbers_at_most():
    schemas.DecisionAsked(features=[[1.0] * 1_000] * 100)
    with pytest.raises(ValidationError, match="at most 100,000 numbers in all, got 101,000"):
        schemas.DecisionAsked(features=[[1.0] * 1_000] * 101)
