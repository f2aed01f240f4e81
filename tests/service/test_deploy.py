"""What `deploy/` has, tried as far as a machine without Docker, systemd or Grafana can."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from test_service_docs import configured, make_certificate, proxied

from served import PATIENCE, SPEC, TWO, stored
from solid_bandits.service.server import ENDED_AT_ONCE

DEPLOY = Path(__file__).parents[2] / "deploy"
ROOT = DEPLOY.parent


def text(name):
    return (DEPLOY / name).read_text(encoding="utf-8")


def configuration(folder, port, upstream):
    """The site of nginx, at another port, with another certificate and a limit that is soon reached."""
    (folder / "upstream.conf").write_text(text("upstream.conf").replace("127.0.0.1:8080", upstream))
    site = text("nginx.conf").replace("/etc/nginx/upstream.conf", str(folder / "upstream.conf"))
    site = site.replace("/etc/nginx/tls/decisions", str(folder / "own")).replace(
        "listen 443", f"listen 127.0.0.1:{port}"
    )
    assert "rate=500r/s" in site
    assert "burst=1000" in site
    # So that it is too much however slowly it is asked.
    site = site.replace("rate=500r/s", "rate=1r/m").replace("burst=1000", "burst=20")
    return configured(folder, site)


def test_the_site_of_nginx_serves_and_limits(tmp_path):
    with stored(tmp_path / "data") as client:
        client.post("/v1/models", json=SPEC).raise_for_status()
        upstream = f"{client.base_url.host}:{client.base_url.port}"
        configuration(tmp_path, 443, upstream)  # skips where there is none
        make_certificate(tmp_path)
        with (
            proxied(lambda port: configuration(tmp_path, port, upstream), tmp_path) as port,
            httpx.Client(
                base_url=f"https://localhost:{port}", verify=False, headers=client.headers, timeout=PATIENCE
            ) as behind,
        ):
            assert behind.get("/health").json()["status"] == "ok"
            answer = behind.post("/v1/models/news/decisions", json={"features": TWO})
            assert answer.status_code == 200
            assert "max-age" in answer.headers["strict-transport-security"]
            assert behind.get("/metrics").status_code == 404
            assert behind.post("/v1/models/news/decisions", content=b" " * (5 << 20)).status_code == 413
            statuses = {behind.get("/health").status_code for _ in range(200)}
            assert statuses == {200, 429}


def test_the_unit_is_one_that_systemd_takes(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "solid-bandits.service"
    unit.write_text(
        text("solid-bandits.service").replace("/opt/solid-bandits/bin/solid-bandits", "/bin/true")
    )
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_dashboard_asks_for_metrics_that_are_there(tmp_path):
    board = json.loads(text("grafana.json"))
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"solid_bandits_\w+", target["expr"])
    }
    with stored(tmp_path) as client:
        client.post("/v1/models", json=SPEC)
        client.post("/v1/models/news/decisions", json={"features": TWO})
        found = client.get("/metrics").text
    there = set(re.findall(r"^# TYPE (\w+)", found, re.MULTILINE))
    there |= {f"{name}_{part}" for name in there for part in ("bucket", "count", "total")}
    there.add("solid_bandits_failed_model")  # only where one has
    assert asked <= there
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) == 12


def test_compose_and_dockerfile_name_files_that_are_there():
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load(text("compose.yaml"))
    assert set(compose["services"]) == {"database", "one", "two", "proxy"}
    local = [
        volume.split(":")[0]
        for service in compose["services"].values()
        for volume in service.get("volumes", [])
        if volume.startswith("./") and volume.split(":")[0] != "./tls"
    ]
    assert local
    assert all((DEPLOY / one).is_file() for one in local)
    copied = [
        name
        for line in text("Dockerfile").splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for name in line.split()[1:-1]
    ]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
    assert compose["services"]["one"]["stop_grace_period"] == "100s"
    assert ENDED_AT_ONCE == 5
