"""The file of a bandit: what is in it comes back, and what cannot be is refused."""

import json
import zipfile
from io import BytesIO

import polars as pl
import pytest

import solid_bandits as sb
from bandits import ARMS, NAMES, carried, make, played

FAR = 2**62


def members_of(content):
    archive = zipfile.ZipFile(BytesIO(content))
    return {name: archive.read(name) for name in archive.namelist()}


def archived(members):
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, value in members.items():
            archive.writestr(name, value)
    return out.getvalue()


def damaged(content, **changes):
    """The bytes of a bandit's file with fields of its main part changed."""
    members = members_of(content)
    members["bandit.json"] = json.dumps(json.loads(members["bandit.json"]) | changes).encode()
    return archived(members)


def altered(content, member, change):
    """The bytes of a bandit's file with one of its tables changed."""
    members, out = members_of(content), BytesIO()
    change(pl.read_parquet(BytesIO(members[member]))).write_parquet(out)
    return archived(members | {member: out.getvalue()})


def row_with(which, **values):
    """A change of one row."""

    def change(table):
        rows = table.rows(named=True)
        rows[which] |= values
        return pl.DataFrame(rows, schema=table.schema)

    return change


@pytest.fixture
def saved(tmp_path):
    """A bandit with three decisions, the first learned, the second expired, the third open; its file and bytes."""
    bandit = make(half_life=10.0)
    for place, event_id in enumerate("abc"):
        bandit.decide(ARMS, NAMES, event_id, time=place)
    bandit.learn("a", 1.0, time=5)
    bandit.expire(event_id="b", time=6)
    path = tmp_path / "bandit.zip"
    bandit.save(path)
    return bandit, path, path.read_bytes()


def refused(path, content, message):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"bandit file .*{message}") as caught:
        sb.Bandit.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"file": "another"}, "not a file that Bandit.save wrote"),
        ({"version": 9}, "must be of version 2 .*, got 9: it was written by another version"),
        ({"version": True}, "must be of version 2 .*, got True"),
        ({"version": 2.0}, "must be of version 2 .*, got 2.0"),
        ({"window": 0}, "window must be an integer >= 1"),
        ({"window": True}, "window must be an integer >= 1, got True"),
        ({"counters": [1, 2]}, "counters must be three whole numbers"),
        ({"counters": [3, 5, True]}, "counters must be an integer"),
        ({"counters": [2, 5, 1]}, "memory must have the last decisions"),
        ({"counters": [3, 5, 3]}, "counters must have decisions and rewards among their events"),
        ({"counters": [3, 4, 1]}, "log must have sequence numbers from 1 to 4"),
        ({"seed": -1}, "seed must be an integer >= 0"),
        ({"seed": True}, "seed must be an integer"),
        ({"log": 7}, "log must be one of directory, memory, none, got 7"),
        ({"log": "../outside"}, "log must be one of directory, memory, none, got '../outside'"),
        ({"log": "none"}, "log must be 'none' without rows"),
        ({"written": 1.5}, "written must be an integer"),
        ({"more": 7}, "it must have the fields file, version"),
        ({"agent": {}}, "must be a file that Agent.save wrote"),
    ],
)
def test_main_parts_that_cannot_be(saved, changes, message):
    _, path, content = saved
    refused(path, damaged(content, **changes), message)


RECORDS = [
    (
        row_with(2, probabilities=[7.0, -3.0, -3.0]),
        r"memory of 'c' must have probabilities >= 0 that sum to 1",
    ),
    (row_with(2, probabilities=[0.5, 0.6, 0.1]), r"memory of 'c' must have probabilities"),
    (row_with(2, probabilities=[float("nan")] * 3), r"memory of 'c' must have probabilities"),
    (row_with(0, probabilities=[0.5, 0.5, float("nan")]), r"memory of 'a' must have probabilities"),
    (row_with(0, probabilities=[0.5, 0.5, None]), r"memory of 'a' must have probabilities"),
    (row_with(2, probabilities=[0.5, 0.5]), "memory of 'c' must have an arm among its arms, and their"),
    (row_with(2, event_id="a"), "memory must have each event_id once"),
    (row_with(2, event_id="c\n"), "event_id must be text of 1 to 200 printable signs"),
    (row_with(2, event_id=""), "event_id must be text of 1 to 200 printable signs"),
    (row_with(2, event_id=None), "memory must have no gaps"),
    (row_with(2, arms=["1", "1", "2"]), "arms must be different"),
    (row_with(2, arms=["1", "2", "1"], whole=[True, False, False]), "arms must be different"),
    (row_with(2, arms=["1", None, "2"]), "arms must be text or whole numbers, got None"),
    (row_with(2, arms=["a\n", "b", "2"]), "arms must have names of 1 to 200 printable signs"),
    (row_with(2, arms=["a", "b", " 2"]), "memory must have whole numbers as they are written"),
    (row_with(2, arms=["a", "b", "c"]), "cannot be read .*invalid literal"),
    (row_with(2, whole=[True]), "cannot be read"),
    (row_with(2, place=3), "memory of 'c' must have an arm among its arms"),
    (row_with(2, status="late"), "memory of 'c' must have a status that can be, got 'late'"),
    (
        row_with(2, reward=1.0),
        "memory of 'c' must have a reward if it was learned, and none while it is open",
    ),
    (row_with(0, reward=None), "memory of 'a' must have a reward if it was learned"),
    (row_with(0, reward=1e300), r"memory of 'a' must have a reward of at most 1e\+30 in size, got 1e\+300"),
    (row_with(0, reward=float("nan")), "memory of 'a' must have a reward of at most"),
    (row_with(2, time=FAR), "memory of 'c' must have a time within the years 1 to 9999"),
    (row_with(2, time=-FAR), "memory of 'c' must have a time within the years 1 to 9999"),
    (row_with(2, features=None), "memory of 'c' must have features while it is open"),
    (
        row_with(0, features=[[1.0, 2.0]] * 3),
        "memory of 'a' must have features while it is open, and only then",
    ),
    (
        row_with(2, features=[[1.0]] * 3),
        r"memory of 'c' must have features of dim 2 for each arm, got \(3, 1\)",
    ),
    (row_with(2, features=[[1.0], [1.0, 2.0], [3.0]]), "cannot be read"),
    (row_with(2, features=[[1.0, None]] * 3), "features of 'c' must be finite"),
    (row_with(2, features=[[1e31, 0.0]] * 3), r"features of 'c' must be at most 1e\+30"),
    (row_with(2, number=2), "memory must have the last decisions, in order of their number"),
    (row_with(2, sequence=2), "memory must have the last decisions, in order of their sequence"),
    (row_with(0, sequence=0), "memory must have the last decisions, in order of their sequence"),
    (row_with(2, policy_number=9), "decision.number must be an integer from 1 to 3, got 9"),
    (row_with(2, policy_number=None), "memory must have policy_number with a half-life, and only then"),
    (lambda table: table.drop("place"), "memory must have the columns"),
    (lambda table: table.with_columns(pl.col("number").cast(pl.Float64)), "memory must have the columns"),
]


@pytest.mark.parametrize(("change", "message"), RECORDS)
def test_memories_that_cannot_be(saved, change, message):
    _, path, content = saved
    refused(path, altered(content, "memory.parquet", change), message)


ROWS = [
    (row_with(0, event_id=None), "log must have event_id in every row"),
    (row_with(0, features=None), "log must have features in every row"),
    (row_with(0, features=[[1.0]] * 3), "log must have features of dim 2"),
    (row_with(0, features=[[1.0, None]] * 3), "log"),
    (row_with(0, reward=1e300), "log .*reward"),
    (row_with(0, event_id="a\n"), "log must have ids and arms of 1 to 200 printable signs"),
    (row_with(0, sequence=9), "log must have sequence numbers from 1 to 5"),
    (row_with(0, reward_sequence=9), "log must have sequence numbers from 1 to 5"),
    (row_with(0, sequence=2), "log must have each decision once"),
    (row_with(0, sequence=3), "log must have no row of a decision that is open"),
    (row_with(0, reward_time=None), "log must have reward_time in every row"),
    (row_with(0, probabilities=[7.0, -3.0, -3.0]), "log"),
    (
        lambda table: table.with_columns(pl.lit(FAR).cast(pl.Datetime("us", "UTC")).alias("time")),
        "log .*time",
    ),
]


@pytest.mark.parametrize(("change", "message"), ROWS)
def test_rows_that_cannot_be(saved, change, message):
    _, path, content = saved
    refused(path, altered(content, "log.parquet", change), message)


def test_without_a_half_life_decisions_have_no_number_of_the_policy(tmp_path):
    path = tmp_path / "bandit.zip"
    bandit = make()
    bandit.decide(ARMS, NAMES, "a")
    bandit.save(path)
    refused(
        path,
        altered(path.read_bytes(), "memory.parquet", row_with(0, policy_number=1)),
        "memory must have policy_number with a half-life, and only then",
    )


def test_files_that_are_none_are_refused(saved, tmp_path):
    bandit, path, content = saved
    for wrong in (b"", content[:-40], b"PK\x03\x04", archived({"other": b""})):
        refused(path, wrong, "cannot be read")
    for wrong in (5, None, [1], b"bytes"):
        with pytest.raises(ValueError, match="path must be a path, got"):
            sb.Bandit.load(wrong)
        with pytest.raises(ValueError, match="path must be a path, got"):
            bandit.save(wrong)
    path.write_bytes(content)
    assert carried(sb.Bandit.load(path)) == carried(bandit)
    with pytest.raises(ValueError, match="cannot be written"):
        bandit.save(tmp_path / "nowhere" / "bandit")


def test_a_compressed_member_that_is_damaged_is_refused(saved):
    _, path, content = saved
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members_of(content).items():
            archive.writestr(name, value)
    wrong = bytearray(out.getvalue())
    wrong[60:120] = b"\xff" * 60
    refused(path, bytes(wrong), "cannot be read")


def test_a_state_that_cannot_be_names_the_file(saved):
    _, path, content = saved
    agent = json.loads(members_of(content)["bandit.json"])["agent"]
    agent["state"] = {}
    refused(path, damaged(content, agent=agent), "cannot be used")


def test_whatever_a_bandit_took_in_comes_back(tmp_path):
    """Also decisions of a log without probabilities, and of one whose probabilities sum to 1 roughly."""
    table = {"arm": [0, 1], "reward": [1.0, None], "features": [[[1.0, 0.0], [0.0, 1.0]]] * 2}
    bandit = make()
    bandit.warm_start(sb.logs.from_table(table))
    rough = sb.logs.from_table(
        {
            "event_id": ["r"],
            "arm": ["x"],
            "arms": [["x", "y"]],
            "probabilities": [[0.5 + 9e-7, 0.5]],
            "probability": [0.5 + 9e-7],
            "features": table["features"][:1],
        }
    )
    bandit.warm_start(rough)
    played(bandit, 10, seed=2)
    bandit.save(tmp_path / "bandit.zip")
    again = sb.Bandit.load(tmp_path / "bandit.zip")
    assert str(carried(again)) == str(carried(bandit))  # as text: some probabilities are not a number
    assert again.recall("r").probabilities.tolist() == [0.5 + 9e-7, 0.5]
