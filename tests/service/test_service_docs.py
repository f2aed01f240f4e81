"""The code of docs/service.md, as a reader would run it: a real service, real proxies, a real backup."""

import os
import re
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager

import httpx
import numpy as np
import pytest

import solid_bandits as sb
from page_code import DOCS, read_page
from served import PATIENCE, SPEC, TWO, ended, process, stored, until

ADDRESS = "http://127.0.0.1:8080"
TEXT = (DOCS / "service.md").read_text(encoding="utf-8")
ELSEWHERE = ("pip install", "make service-demo", "solid-bandits serve", "solid-bandits vacuum")
"""Commands that the tests do by other means, or that need a database."""


def block(language, beginning):
    """The one block in a language that begins so."""
    (found,) = [
        one for one in re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL) if one.startswith(beginning)
    ]
    return found


def run(line, folder, url, **variables):
    """A line of a console block, in a shell; what it printed."""
    line = line.replace(ADDRESS, url).replace("solid-bandits", f"{sys.executable} -m solid_bandits")
    ended = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ended.returncode == 0, (line, ended.stdout, ended.stderr)
    return ended.stdout


@pytest.mark.slow
def test_the_page_from_the_first_line_to_the_last(tmp_path, monkeypatch):
    if shutil.which("sqlite3") is None:
        pytest.skip("sqlite3, the program that takes the page's backup, is not installed")
    page = read_page("service.md")
    assert page.commands[2] == "solid-bandits serve --data decisions"
    with process(tmp_path / "decisions") as server:
        monkeypatch.setenv("ADMIN_KEY", server.key)
        said = {}
        waiting = [line for line in page.commands if not line.startswith(ELSEWHERE)]
        while waiting[0].startswith("solid-bandits keys"):
            line = waiting.pop(0)
            said[line.split()[3]] = run(line, tmp_path, server.url).split()[-1]
        monkeypatch.setenv("WRITER_KEY", said["writer"])
        names = {}
        exec(compile(page.script.replace(ADDRESS, server.url), "service.md", "exec"), names)
        try:
            check_numbers(names)
            patient = {"timeout": PATIENCE, "patience": PATIENCE}
            with sb.client.Client(server.url, said["reader"], **patient) as reader:
                assert reader.stats("news")["decisions"] >= 3000
                with pytest.raises(sb.client.ServiceError, match="403"):
                    reader.decide("news", names["described"]([0, 0, 1]))
            printed = [
                (line, run(line, tmp_path, server.url, WRITER_KEY=said["writer"]))
                for line in waiting
                if shutil.which(line.split()[0]) or line.startswith(("solid-bandits", "mkdir"))
            ]
        finally:
            names["client"].close()
            names["admin"].close()
        assert server.end() == 0
    for line, words in printed:
        if "replay" in line:
            assert "identical" in words or "nothing to replay; all" in words, line
        if line.startswith("curl"):
            assert '"visit-2"' in words, line
    assert (tmp_path / "restored" / "service.db").is_file()


def check_numbers(names):
    """Against what the page's own world earns, in standard errors; a quarter of an interval's width is one."""
    suits = np.random.default_rng(1).uniform(size=(200_000, 3))
    base, more = np.array(list(names["chances"].values())).T
    means = base + more * suits
    truth = {
        "uniform": means.mean(),
        "always:football": means[:, 1].mean(),
        "mine": means[np.arange(len(suits)), suits.argmax(axis=1)].mean(),
    }
    found = {one["policy"]: one["estimates"] for one in names["found"]["policies"]}
    assert list(found) == ["uniform", "always:football", "Greedy, of the first half"]
    values = {}
    for policy in ("uniform", "always:football"):
        name = "anytime" if policy == "always:football" else "cadr"  # which has too few rewards here
        (row,) = [one for one in found[policy] if one["estimator"] == name]
        values[policy] = (row["value"], (row["high"] - row["low"]) / 4)
    low, high = names["mine"].interval("cadr")
    values["mine"] = (names["mine"].value("cadr"), (high - low) / 4)
    for policy, (value, error) in values.items():
        assert abs(value - truth[policy]) < 4.5 * error, policy  # three times 7e-6
    stats = names["stats"]["values"]
    assert stats["over_uniform"]["low"] > 0
    assert str({name: round(value, 2) for name, value in stats["policy"].items()}).replace("'", '"') in TEXT
    assert names["choice"].arm in names["articles"]
    assert "customer-17" not in str(names["admin"].log("news")["event_id"].to_list())
    assert "visit-1" not in names["admin"].log("news")["event_id"].to_list()


@contextmanager
def proxied(command, folder):
    """A proxy with a certificate of our own, `command(port)`; where it listens, once it does."""
    log = folder / "proxy.log"

    def start():
        with socket.socket() as free, log.open("w") as said:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            free.close()
            environment = os.environ | {"HOME": str(folder)}
            return port, subprocess.Popen(
                command(port), cwd=folder, env=environment, stdout=said, stderr=said
            )

    port, running = start()

    def listens():
        nonlocal port, running
        if running.poll() is not None:  # somebody has taken the port meanwhile
            assert "in use" in log.read_text(), log.read_text()
            port, running = start()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
        except OSError:
            return False
        return running.poll() is None

    try:
        until(listens, "the proxy listens")
        yield port
    finally:
        ended(running)


def make_certificate(folder):
    """A certificate of our own for this machine."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    words = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout own.key -out own.pem"
    )
    words += " -addext subjectAltName=DNS:localhost"
    subprocess.run(words.split(), cwd=folder, check=True, capture_output=True, timeout=PATIENCE)


def configured(folder, inner):
    """The command of an nginx with what a whole configuration has around this part."""
    path = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    if path is None:
        pytest.skip("nginx is not installed")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    scratch = "".join(f"{one}_temp_path {folder}/{one};\n" for one in kinds)
    (folder / "nginx.conf").write_text(
        f"daemon off;\npid {folder}/nginx.pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{scratch}{inner}}}\n"
    )
    return [path, "-e", "stderr", "-c", str(folder / "nginx.conf"), "-p", str(folder)]


def nginx(folder, port, upstream):
    """The page's server, at a port that anybody may use."""
    inner = block("nginx", "upstream").replace(ADDRESS.removeprefix("http://"), upstream)
    inner = inner.replace("listen 443", f"listen 127.0.0.1:{port}").replace(
        "/etc/ssl/decisions", str(folder / "own")
    )
    return configured(folder, inner)


def caddy(folder, port, upstream):
    """The page's site, with our certificate instead of one from the network."""
    path = shutil.which("caddy")
    if path is None:
        pytest.skip("Caddy is not installed")
    inner = block("text", "decisions.example.com").replace(ADDRESS.removeprefix("http://"), upstream)
    own = f"https://localhost:{port} {{\n    tls {folder}/own.pem {folder}/own.key"
    inner = inner.replace("decisions.example.com {", own)
    (folder / "Caddyfile").write_text(f"{{\n    admin off\n    auto_https disable_redirects\n}}\n{inner}")
    return [path, "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


@pytest.mark.parametrize("proxy", [nginx, caddy])
def test_behind_a_proxy_with_tls(tmp_path, monkeypatch, proxy):
    with stored(tmp_path / "data") as http:
        upstream = f"{http.base_url.host}:{http.base_url.port}"
        proxy(tmp_path, 443, upstream)  # skips where there is none
        make_certificate(tmp_path)
        http.post("/v1/models", json=SPEC).raise_for_status()
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "own.pem"))  # as the page says
        key = http.headers["authorization"].removeprefix("Bearer ")
        with (
            proxied(lambda port: proxy(tmp_path, port, upstream), tmp_path) as port,
            sb.client.Client(f"https://localhost:{port}", key, timeout=PATIENCE, patience=PATIENCE) as client,
        ):
            choices = client.decide_many("news", [{"features": TWO}] * 100)
            assert all(one.counted for one in client.learn_many("news", [(c.event_id, 1) for c in choices]))
            assert client.log("news").height == 100
            with httpx.Client(timeout=PATIENCE) as plain:
                page = plain.get(f"https://localhost:{port}/")
            assert "Decision service" in page.text
            assert page.headers["content-security-policy"].startswith("default-src 'none'")


def test_every_call_and_limit_on_the_page_is_there():
    from solid_bandits.live.store import Alone
    from solid_bandits.service import schemas
    from solid_bandits.service.app import make_app
    from solid_bandits.service.connections import Bounds
    from solid_bandits.service.open_store import FILE
    from solid_bandits.service.runtime import Settings

    schema = make_app(None, Alone(), Settings()).openapi()
    table = {
        (method, path.split("?")[0].replace("NAME", "{name}"), role)
        for line in TEXT.splitlines()
        if line.startswith("| `")
        for method, path in re.findall(r"`(GET|POST) ([^`]+)`", line)
        for role in [line.split("|")[2].strip()]
    }
    there = {
        (method.upper(), path, one.get("x-role", "none"))
        for path, methods in schema["paths"].items()
        for method, one in methods.items()
    }
    page = {("GET", "/", "none"), ("GET", "/openapi.json", "none"), ("GET", "/health", "none")}
    assert table - page <= there
    assert {path for _, path, _ in there} - {path for _, path, _ in table} <= {"/v1/models/{name}"}
    assert schemas.MOST_DIM == schemas.MOST_ARMS == schemas.MOST_AT_ONCE == 1000
    assert f"decisions/{FILE}" in TEXT
    assert Settings().largest_body == 4 << 20
    assert Settings().rate == 1000
    assert Bounds() == Bounds(connections=1_000, head_bytes=64 << 10, head_lines=100, seconds=10.0)
    assert set(schemas.ModelSpec.model_fields) - {"name", "parameters"} <= set(re.findall(r"\w+", TEXT))
