"""What the display says of the time that is left."""

import io

import pytest
from rich.console import Console

from solid_bandits.cli import progress
from solid_bandits.simulation.playing import Work

TASK = Work("SOLID", runs=1, steps=100, seconds=1.0)


@pytest.fixture
def display():
    return progress.Display(2, Console(file=io.StringIO(), width=200))


def said(display):
    return display.console.file.getvalue()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(7e-4, "less than a second"), (1.9, "less than a second"), (9.0, "about 4.5 s"), (1200, "about 10 min")],
)
def test_an_estimate_has_no_figures_below_a_second(display, seconds, words):
    display.begin([Work("SOLID", 1, 100, seconds / 3)] * 3, kept=0)
    assert said(display).startswith(f"3 tasks to do, {words} on 2 workers (estimate")


def test_what_is_left_is_said_likewise(display, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    display.begin([TASK] * 2, kept=1)
    display.start()
    display.advance(TASK)
    assert said(display).endswith("steps/s, less than a second left, last: SOLID\n")
    display.advance(TASK)
    assert said(display).endswith("steps/s, last: SOLID\n")
