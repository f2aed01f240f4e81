"""The line for whoever waits for the compiler."""

import threading

from served import joined, until
from solid_bandits._internal import waiting


def timers():
    return [one for one in threading.enumerate() if isinstance(one, threading.Timer)]


def test_it_is_said_if_it_takes_long_and_not_otherwise(capsys, monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 0.05)
    with waiting.said_if_long("compiling LinUCB"):
        said = []
        until(lambda: said.append(capsys.readouterr().err) or "\n" in said[-1], "it is said")
    assert "".join(said) == "compiling LinUCB\n"
    monkeypatch.setattr(waiting, "PATIENCE", 3600.0)
    with waiting.said_if_long("compiling LinUCB"):
        (timer,) = timers()
        assert timer.interval == 3600.0
    joined(timer)  # called off
    assert capsys.readouterr().err == ""
