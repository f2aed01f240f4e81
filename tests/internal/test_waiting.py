"""The line for whoever waits for the compiler."""

import time

from solid_bandits._internal import waiting


def test_it_is_said_if_it_takes_long_and_not_otherwise(capsys, monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 0.05)
    with waiting.said_if_long("compiling LinUCB"):
        time.sleep(0.5)
    assert capsys.readouterr().err == "compiling LinUCB\n"
    monkeypatch.setattr(waiting, "PATIENCE", 0.5)
    with waiting.said_if_long("compiling LinUCB"):
        pass
    time.sleep(0.6)
    assert capsys.readouterr().err == ""
