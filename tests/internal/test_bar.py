"""Whoever waits sees a bar: in a notebook as html, on a terminal as one line, and not at all for what is quick."""

import sys
from types import SimpleNamespace

import pytest

import solid_bandits as sb
from solid_bandits._internal import bar, waiting
from solid_bandits.simulation.fraction import Fraction


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is moved."""
    now = SimpleNamespace(value=100.0)
    monkeypatch.setattr(bar, "time", SimpleNamespace(monotonic=lambda: now.value))
    monkeypatch.setattr(waiting, "PATIENCE", 2.0)
    return now


class Shown:
    """What a notebook has been told to show."""

    def __init__(self):
        self.texts = []

    def update(self, html):
        self.texts.append(html)


def notebook(monkeypatch):
    shown = Shown()

    def display(html, display_id):
        assert display_id is True
        shown.update(html)
        return shown

    page = SimpleNamespace(HTML=lambda text: text, display=display)
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()), display=page)
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", page)
    return shown


def test_quick_work_shows_nothing(clock, capsys):
    told = bar.Bar()
    for fraction in (0.0, 0.5, 1.0):
        clock.value += 0.9
        told(fraction)
    assert capsys.readouterr().err == ""


def test_a_terminal_has_one_line_with_the_time_that_is_left(clock, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    told = bar.Bar()
    clock.value += 50  # compiling
    told(0.0)
    clock.value += 10
    told(0.25)
    clock.value += 30
    told(1.0)
    lines = [line.rstrip() for line in capsys.readouterr().err.split("\r")]
    assert lines == ["", " 25%, 30 s left", "played in 40 s"]


def test_a_file_gets_few_lines(clock, capsys):
    told = bar.Bar()
    for step in range(1, 101):
        clock.value += 0.25
        told(step / 100)
    assert capsys.readouterr().err.splitlines() == ["40%, 15 s left", "80%, 5.0 s left", "played in 25 s"]


def test_a_notebook_has_one_bar_that_moves(clock, capsys, monkeypatch):
    shown = notebook(monkeypatch)
    assert bar.in_notebook()
    told = bar.Bar()
    for fraction in (0.2, 0.6, 1.0):
        clock.value += 3
        told(fraction)
    assert shown.texts[1] == '<progress value="0.600" max="1"></progress>  60%, 4.0 s left'
    assert shown.texts[2] == "played in 9.0 s"
    assert capsys.readouterr().err == ""


def test_only_notebooks_get_a_bar_unasked(monkeypatch):
    assert not isinstance(Fraction(1, None).report, bar.Bar)
    assert isinstance(Fraction(1, True).report, bar.Bar)
    notebook(monkeypatch)
    assert isinstance(Fraction(1, None).report, bar.Bar)
    assert not isinstance(Fraction(1, False).report, bar.Bar)


@pytest.mark.parametrize("play", [sb.simulate, sb.summarise])
def test_a_progress_that_cannot_be_told_says_so(play):
    with pytest.raises(
        ValueError, match="progress must be a function of a fraction, True, False or None, got 3"
    ):
        play(sb.problems.toy(), sb.Greedy(), 10, runs=2, progress=3)
