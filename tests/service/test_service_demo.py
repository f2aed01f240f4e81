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
from served import PATIENCE, ended, until
from solid_bandits.service.demo import SPECS, World, interrupted

MAKEFILE = Path(__file__).parent.parent.parent / "Makefile"


def test_make_has_it():
    recipe = "service-demo: .venv/service\n\t$(BIN)/python -m solid_bandits.service.demo\n"
    assert recipe in MAKEFILE.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_from_the_address_to_the_end(tmp_path, number):
    command = [sys.executable, "-m", "solid_bandits.service.demo", "--port", "0", "--per-second", "100"]
    out, err = tmp_path / "out.txt", tmp_path / "err.txt"
    with out.open("w") as said, err.open("w") as complaints:
        running = subprocess.Popen(
            command, env=os.environ | {"TMPDIR": str(tmp_path)}, stdout=said, stderr=complaints
        )
    try:
        shown = begun(running, out, err)
        url, key = re.search(r"page +(\S+)/\n +key +(\S+)", shown).groups()
        assert "Decision service" in httpx.get(url + "/", timeout=PATIENCE).text
        with sb.client.Client(url, key, timeout=PATIENCE, patience=PATIENCE) as client:
            assert [model["name"] for model in client.models()] == list(SPECS)
            until(lambda: all(client.stats(name)["rewards"] for name in SPECS), "rewards of all models come")
        running.send_signal(number)
        assert running.wait(PATIENCE) == 0, err.read_text()
    finally:
        ended(running)
    assert re.search(r"ended: [\d,]+ decisions, [\d,]+ rewards\n$", out.read_text())
    assert "Traceback" not in err.read_text()
    assert [one for one in tmp_path.iterdir() if (one / "service.db").exists()] == []
    with pytest.raises(httpx.ConnectError):  # the service has ended too
        httpx.get(url + "/health")


def begun(running, out, err):
    """What the demonstration prints when it has a page."""

    def there():
        assert running.poll() is None, (out.read_text(), err.read_text())
        return "Ctrl-C" in out.read_text()

    until(there, "there is a page")
    return out.read_text()


def test_an_interrupt_ends_what_waits_and_later_ones_do_not_disturb_the_end():
    """Wherever it comes: also where a handler that took a lock would wait for what it interrupts."""
    before = signal.getsignal(signal.SIGTERM)
    with interrupted():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("model", SPECS)
def test_the_best_arm_depends_on_the_visitor(model):
    world = World(0)
    drawn = [getattr(world, model)() for _ in range(500)]
    assert all(offer["context"].shape[1] == SPECS[model]["dim"] for offer, _ in drawn)
    assert len({int(expected.argmax()) for _, expected in drawn}) >= 2
    if model == "news":
        assert all((expected >= 0).all() and (expected <= 1).all() for _, expected in drawn)
