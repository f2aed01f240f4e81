"""`make service-demo`: it shows its page, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import solid_bandits as sb
from solid_bandits.service.demo import SPECS, World

MAKEFILE = Path(__file__).parent.parent.parent / "Makefile"


def test_make_has_it():
    recipe = "service-demo: .venv/service\n\t$(BIN)/python -m solid_bandits.service.demo\n"
    assert recipe in MAKEFILE.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_from_the_address_to_the_end(tmp_path, number):
    command = [sys.executable, "-m", "solid_bandits.service.demo", "--port", "0", "--per-second", "100"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    running = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        said = ""
        while "Ctrl-C" not in said:
            line = running.stdout.readline()
            assert line, (said, running.stderr.read())
            said += line
        url, key = re.search(r"page +(\S+)/\n +key +(\S+)", said).groups()
        assert "Decision service" in httpx.get(url + "/").text
        with sb.Client(url, key) as client:
            assert [model["name"] for model in client.models()] == list(SPECS)
            while not all(client.stats(name)["rewards"] for name in SPECS):
                assert running.poll() is None
        running.send_signal(number)
        rest, complaints = running.communicate(timeout=60)
    finally:
        if running.poll() is None:
            running.kill()
            running.communicate()
    assert running.returncode == 0, complaints
    assert re.search(r"ended: [\d,]+ decisions, [\d,]+ rewards\n$", rest)
    assert "Traceback" not in complaints
    assert [one for one in tmp_path.iterdir() if (one / "service.db").exists()] == []
    with pytest.raises(httpx.ConnectError):  # the service has ended too
        httpx.get(url + "/health")


@pytest.mark.parametrize("model", SPECS)
def test_the_best_arm_depends_on_the_visitor(model):
    world = World(0)
    drawn = [getattr(world, model)() for _ in range(500)]
    assert all(offer["features"].shape[1] == SPECS[model]["dim"] for offer, _ in drawn)
    assert len({int(expected.argmax()) for _, expected in drawn}) >= 2
    if model == "news":
        assert all((expected >= 0).all() and (expected <= 1).all() for _, expected in drawn)
