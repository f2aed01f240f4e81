"""Who may call what: every endpoint without a key, with a wrong one, with too small a role."""

import asyncio
import subprocess
import time

import pytest

from served import SPEC, TWO, bearer, service
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.live.store import Alone
from solid_bandits.service import keys
from solid_bandits.service.app import make_app
from solid_bandits.service.keys import ROLES, Keyring
from solid_bandits.service.open_store import FILE

NAMED = {"name": "named", "context": ["age"], "arms": ["a", "b"], "floor": 0.1, "seed": 1}
# Method, path, body, and the least role; None takes no key.
ENDPOINTS = [
    ("GET", "/", None, None),
    ("GET", "/page/page.js", None, None),
    ("GET", "/health", None, None),
    ("GET", "/openapi.json", None, None),
    ("GET", "/metrics", None, "reader"),
    ("GET", "/v1/models", None, "reader"),
    ("GET", "/v1/models/news", None, "reader"),
    ("GET", "/v1/models/news/stats", None, "reader"),
    ("GET", "/v1/models/news/log", None, "reader"),
    ("GET", "/v1/models/news/log?format=dsjson", None, "reader"),
    ("GET", "/v1/models/news/evaluate", None, "reader"),
    ("POST", "/v1/models/news/decisions", {"event_id": "a", "features": TWO}, "writer"),
    ("POST", "/v1/models/news/rewards", {"event_id": "first", "reward": 1.0}, "writer"),
    ("GET", "/v1/models/named/arms", None, "reader"),
    ("POST", "/v1/models/named/arms", {"add": "c"}, "writer"),
    ("POST", "/v1/models/named/personalizer/v1.0/rank", {"actions": [{"id": "a"}], "eventId": "r"}, "writer"),
    ("POST", "/v1/models/named/personalizer/v1.0/events/ranked/reward", {"value": 1.0}, "writer"),
    ("POST", "/v1/models", SPEC | {"name": "other"}, "admin"),
    ("POST", "/v1/models/news/deletions", {"event_ids": ["nobody"]}, "admin"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    store = SqliteStore(tmp_path_factory.mktemp("service") / FILE, create=True)
    with service(store) as client:
        assert client.post("/v1/models", json=SPEC).status_code == 201
        for event_id in ("first", "second"):
            client.post("/v1/models/news/decisions", json={"event_id": event_id, "features": TWO})
        client.post("/v1/models/news/rewards", json={"event_id": "second", "reward": 0.0})
        assert client.post("/v1/models", json=NAMED).status_code == 201
        ranked = {"actions": [{"id": "a"}, {"id": "b"}], "eventId": "ranked"}
        assert client.post("/v1/models/named/personalizer/v1.0/rank", json=ranked).status_code == 201
        made = {role: keys.create(store, role, role)[0] for role in ROLES}
        del client.headers["Authorization"]
        while client.get("/v1/models", headers=bearer(made["admin"])).status_code == 401:
            time.sleep(0.05)  # until the service has read the keys again
        yield client, store, made
    store.close()


def path_of(path):
    """As the schema has it."""
    for ours, theirs in (
        ("news", "{name}"),
        ("named", "{name}"),
        ("v1.0", "{version}"),
        ("ranked", "{event_id}"),
    ):
        path = path.split("?")[0].replace(f"/{ours}", f"/{theirs}")
    return path


def asked(client, endpoint, key=None):
    method, path, body, _ = endpoint
    return client.request(method, path, json=body, headers={} if key is None else bearer(key))


def test_the_table_has_every_endpoint():
    store = SqliteStore.__new__(SqliteStore)
    app = make_app(store, Alone())
    found = {(method.upper(), path) for path, item in app.openapi()["paths"].items() for method in item}
    listed = {(method, path_of(path)) for method, path, _, _ in ENDPOINTS}
    assert found <= listed
    assert listed - found == {("GET", "/"), ("GET", "/page/page.js"), ("GET", "/openapi.json")}


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: f"{one[0]} {one[1]}")
def test_without_a_key_with_a_wrong_one_and_with_each_role(place, endpoint):
    client, _, made = place
    role = endpoint[3]
    if role is None:
        assert asked(client, endpoint).status_code == 200
        return
    identity, secret = made["admin"].split("_", 2)[1:]
    wrong = [
        None,
        "nonsense",
        f"sb_{identity}_",
        f"sb_{identity}_{secret[:-1]}",
        f"sb_{identity}_{secret}x",
        f"sb_000000000000_{secret}",
    ]
    for key in wrong:
        answer = asked(client, endpoint, key)
        assert answer.status_code == 401, key
        assert answer.headers["www-authenticate"] == "Bearer"
        assert set(answer.json()) == {"error"}
    method, path, body, _ = endpoint
    basic = client.request(method, path, json=body, headers={"Authorization": f"Basic {made['admin']}"})
    assert basic.status_code == 401
    unread = client.request(method, path, content=b"{", headers={"content-type": "application/json"})
    assert unread.status_code == 401  # before anything of the body is looked at
    # From the least role on: each is refused until the one that it takes, and served from there on.
    for place_of, one in enumerate(ROLES):
        answer = asked(client, endpoint, made[one])
        if place_of < ROLES.index(role):
            assert answer.status_code == 403
            assert answer.json() == {"error": f"this takes the role {role}, and the key has {one}"}
        else:
            assert answer.status_code in (200, 201, 204, 409), (
                answer.text
            )  # the second admin call makes it again


def test_a_revoked_key_is_refused_within_a_second(place, monkeypatch):
    client, store, _ = place
    key, row = keys.create(store, "reader", "for a while")
    monkeypatch.setattr(keys, "FRESH", 0.0)
    assert client.get("/v1/models", headers=bearer(key)).status_code == 200
    assert store.revoke_key(row.id, 1)
    assert client.get("/v1/models", headers=bearer(key)).status_code == 401
    assert not store.revoke_key(row.id, 2)


def test_a_new_key_is_known_at_once(place):
    """Whoever made it may use it, whenever the service read the keys last."""
    client, store, _ = place
    for number in range(3):
        key, _ = keys.create(store, "reader", f"new {number}")
        assert client.get("/v1/models", headers=bearer(key)).status_code == 200


def test_keys_that_are_not_known_share_a_question_to_the_store(place, monkeypatch):
    """Anybody may send them, as many as he likes."""
    monkeypatch.setattr(keys, "FRESH", 3600.0)  # however slow the machine is
    _, store, made = place
    asked = []

    class Counting:
        def keys(self):
            asked.append(1)
            return store.keys()

    async def many():
        ring = Keyring(Counting())
        found = await asyncio.gather(*(ring.known(f"sb_nobody_{place}") for place in range(200)))
        assert found == [None] * 200
        before = len(asked)
        assert (await ring.known(made["reader"])).role == "reader"
        assert len(asked) == before  # of one that is known it is not asked

    asyncio.run(many())
    assert len(asked) < 20


def test_the_store_has_no_key(place):
    _, store, made = place
    # By another process: SQLite's locks of this one would end with the first file that it closes.
    files = (store.path, store.path.with_name("service.db-wal"))
    content = subprocess.run(["cat", *files], capture_output=True, check=True).stdout
    for key in made.values():
        secret = key.split("_", 2)[2]
        assert len(secret) == 43  # 32 bytes
        assert secret.encode() not in content
        assert keys.digest(key) in content


def test_keys_are_compared_in_constant_time(place, monkeypatch):
    """By hmac.compare_digest, also where there is no row."""
    _, store, made = place
    compared = []
    monkeypatch.setattr(
        keys.hmac, "compare_digest", lambda one, other: compared.append((one, other)) or one == other
    )
    ring = Keyring(store)
    ring.refresh()
    assert ring.find(made["reader"]).role == "reader"
    assert ring.find("sb_nobody_nothing") is None
    assert [len(one) for pair in compared for one in pair] == [32] * 4


@pytest.mark.parametrize(
    ("role", "name"), [("owner", "a"), ("reader", ""), ("reader", "a\nb"), ("reader", "a" * 101)]
)
def test_keys_with_other_roles_or_names_are_refused(place, role, name):
    with pytest.raises(ValueError, match=r"role must be|name must be"):
        keys.create(place[1], role, name)
