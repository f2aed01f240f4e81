"""`solid-bandits serve`, `keys` and `replay`, as processes."""

import os
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

import solid_bandits as sb
from served import PATIENCE, SPEC, TWO, bearer, process, stored, until
from solid_bandits.live.sqlite import SqliteStore
from solid_bandits.service.open_store import FILE


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "solid_bandits", *map(os.fspath, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        **options,
    )


def test_a_server_says_where_and_shows_its_first_key_once(tmp_path):
    with process(tmp_path) as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert server.client.get("/v1/models").json() == {"models": []}
        # Bound to loopback alone: other addresses of this machine do not answer.
        port = int(server.url.rsplit(":", 1)[1])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outward:
            try:
                outward.connect(("192.0.2.1", 9))  # sends nothing; says which address would
                other = outward.getsockname()[0]
            except OSError:
                other = "127.0.0.1"
        if not other.startswith("127."):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((other, port), timeout=PATIENCE).close()
        second = command("serve", "--data", tmp_path, "--port", "0")
        assert second.returncode == 2
        assert "is open already, here or in another process" in second.stderr
        assert server.end() == 0
        key = server.key
    with process(tmp_path, key=key) as server:
        assert server.client.get("/v1/models").status_code == 200
        assert server.end() == 0
        assert server.printed == f"listening on {server.url}\n"  # and no key
        assert server.complained == ""


def test_keys_are_created_listed_and_revoked_while_a_server_runs(tmp_path):
    with process(tmp_path) as server:
        made = command("keys", "create", "writer", "--name", "shop", "--data", tmp_path)
        key = made.stdout.split()[-1]
        identity = made.stdout.split()[2]
        listed = command("keys", "list", "--data", tmp_path).stdout
        assert identity in listed
        assert "shop" in listed
        assert key.split("_", 2)[2] not in listed

        def status():
            return server.client.get("/v1/models", headers=bearer(key)).status_code

        assert status() == 200  # at once
        assert server.client.post("/v1/models", json=SPEC, headers=bearer(key)).status_code == 403
        assert command("keys", "revoke", identity, "--data", tmp_path).returncode == 0
        until(lambda: status() != 200, "the server reads the keys again")
        assert status() == 401
        again = command("keys", "revoke", identity, "--data", tmp_path)
        assert again.returncode == 2
        assert "id must be that of a key that is not revoked" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve"], "data or database must be given"),
        (["replay", "nowhere"], "must be the directory of a service or the store of a bandit; it is missing"),
        (["keys", "list", "--data", "nowhere"], "must be the directory of a service"),
        (["keys", "create", "owner", "--data", "."], "must be the directory of a service"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path, arguments, words):
    ended = command(*arguments, cwd=tmp_path)
    assert ended.returncode == 2
    assert words in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_said(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = command("serve", "--data", tmp_path / "new", "--port", str(taken.getsockname()[1]))
        assert ended.returncode == 2
        number = taken.getsockname()[1]
        assert (
            ended.stderr == f"solid-bandits: error: port must be free, got {number}: address already in use\n"
        )
        assert ended.stdout == ""  # no key that nobody could use
        assert list(tmp_path.iterdir()) == []
        (tmp_path / "there").mkdir()
        command("serve", "--data", tmp_path / "there", "--port", str(number))
        assert list((tmp_path / "there").iterdir()) == []  # it was there before, and stays


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "192.0.2.1"], "host and port must be where this machine can listen, got 192.0.2.1:"),
        (["--host", "nowhere.invalid"], "host must be a name or an address of this machine, got 'nowhere.invalid'"),
    ],
)  # fmt: skip
def test_an_address_of_another_machine_is_said(tmp_path, options, words):
    ended = command("serve", "--data", tmp_path / "new", *options)
    assert ended.returncode == 2
    assert words in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="rights are otherwise there")
def test_the_directory_is_its_owners_alone(tmp_path):
    with process(tmp_path / "new"):
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "new" / "service.db").stat().st_mode & 0o777 == 0o600


def test_a_node_that_others_cannot_reach_is_said():
    pytest.importorskip("psycopg")
    nowhere = ("serve", "--database", "postgresql://127.0.0.1:1/none")
    warning = "other nodes cannot reach this one at 127.0.0.1: give --advertise where there are any"
    assert command(*nowhere).stderr.splitlines()[0] == warning
    assert "--advertise" not in command(*nowhere, "--advertise", "http://node:8080").stderr


def test_replay_takes_the_models_that_are_named(tmp_path):
    with stored(tmp_path) as client:
        for name in ("news", "other"):
            client.post("/v1/models", json=SPEC | {"name": name})
            client.post(f"/v1/models/{name}/decisions", json={"features": TWO})
    assert len(command("replay", tmp_path).stdout.splitlines()) == 2
    assert (
        command("replay", tmp_path, "--model", "other").stdout
        == "model 'other': 1 decision, 0 rewards, 1 snapshot compared (events 1 to 1), identical\n"
    )
    assert "model must be" in command("replay", tmp_path, "--model", "nobody").stderr


@pytest.mark.parametrize(
    "arguments", [["serve", "--data", "x"], ["keys", "list", "--data", "x"], ["replay", "x"]]
)
def test_without_the_extra_it_says_what_to_install(tmp_path, arguments):
    """In a process where fastapi cannot be imported."""
    (tmp_path / "fastapi.py").write_text("raise ImportError\n")
    path = os.pathsep.join([os.fspath(tmp_path), os.environ.get("PYTHONPATH", "")])
    ended = command(*arguments, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path})
    assert ended.returncode == 2
    assert "pip install 'solid-bandits[service]'" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_the_package_itself_loads_no_server():
    script = (
        "import sys, solid_bandits as sb; sb.Bandit; import solid_bandits.cli\n"
        "assert not {'fastapi', 'uvicorn', 'starlette', 'pydantic', 'httpx'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=PATIENCE).returncode == 0


def test_a_store_may_be_copied_while_it_is_served(tmp_path):
    """SQLite's own backup of a running service is a service that replays."""
    import sqlite3

    with process(tmp_path / "one") as server:
        server.client.post("/v1/models", json=SPEC)
        for _ in range(5):
            server.client.post("/v1/models/news/decisions", json={"features": TWO})
        (tmp_path / "two").mkdir()
        source = sqlite3.connect(tmp_path / "one" / "service.db")
        target = sqlite3.connect(tmp_path / "two" / "service.db")
        source.backup(target)
        source.close()
        target.close()
    assert (
        "5 decisions, 0 rewards compared (events 1 to 5), identical"
        in command("replay", tmp_path / "two").stdout
    )
    store = SqliteStore(tmp_path / "two" / FILE)
    assert store.last(1) == 5
    store.close()


def test_the_store_of_a_bandit_is_replayed(tmp_path):
    """Also while the bandit is at work; a service's file is not one."""
    with sb.Bandit(sb.LinTS(), dim=3, noise_std=0.5, store=tmp_path / "shop.db") as bandit:
        for number in range(5):
            bandit.learn(bandit.decide(TWO, event_id=f"e{number}").event_id, float(number))
        done = command("replay", tmp_path / "shop.db")
        assert done.returncode == 0
        assert "5 decisions, 5 rewards compared (events 1 to 10), identical" in done.stdout
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute("UPDATE events SET body = '{}' WHERE sequence = 3")
    done = command("replay", tmp_path / "shop.db")
    assert done.returncode == 1
    assert "event 3 (decision): the event is not what was written" in done.stdout
    with closing(SqliteStore(tmp_path / FILE, create=True)) as service:
        service.add_model("news", "{}", 1)
    done = command("replay", tmp_path / FILE)
    assert done.returncode == 2
    assert "must be the store of one bandit; it is not, or of a service" in done.stderr
