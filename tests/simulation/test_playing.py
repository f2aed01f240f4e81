"""The one way of playing: what a sink has is not played again, and it is finished once, when it has everything."""

import solid_bandits as sb
from solid_bandits.simulation.block import Block, blocks
from solid_bandits.simulation.plan import Plan
from solid_bandits.simulation.playing import Extra, Game, play
from solid_bandits.simulation.workers import Processes


class Sink:
    """Remembers what it is given."""

    def __init__(self, done=()):
        self.done = set(done)
        self.kept = {}
        self.finished = 0

    def open(self):
        return self.done

    def keep(self, task, outcome):
        assert not self.finished
        self.kept[task] = outcome

    def finish(self):
        self.finished += 1


class Told:
    """Remembers what it is told."""

    def __init__(self):
        self.said = []

    def begin(self, tasks, kept):
        self.said.append((len(tasks), kept))

    def compiling(self, done, total):
        self.said.append(("compiling", done, total))

    def start(self):
        self.said.append("start")

    def advance(self, key):
        self.said.append(key)


def plan(runs=3):
    return Plan(sb.problems.toy(), {"Greedy": sb.Greedy(), "LinUCB": sb.LinUCB()}, 20, runs, seed=0)


def double(number):
    return 2 * number


def test_every_task_is_played_once_and_sinks_are_finished():
    extra = Extra("double", double, (21,))
    first, second, told = Sink(), Sink(), Told()
    play([Game(plan(), first, (extra,)), Game(plan(2), second)], Processes(1), told)
    assert first.kept["double"] == 42
    assert [task for task in first.kept if isinstance(task, Block)] == blocks(plan())
    assert list(second.kept) == blocks(plan(2))
    assert (first.finished, second.finished) == (1, 1)
    assert told.said[:3] == [(1 + 6 + 4, 0), ("compiling", 0, 2), ("compiling", 1, 2)]
    assert told.said[3:5] == [("compiling", 2, 2), "start"]
    assert len(told.said) == 5 + 11


def test_what_a_sink_has_is_not_played_again():
    every = blocks(plan())
    part, whole, told = Sink(every[:4]), Sink(every), Told()
    play([Game(plan(), part), Game(plan(), whole)], Processes(1), told)
    assert list(part.kept) == every[4:]
    assert not whole.kept
    assert (part.finished, whole.finished) == (1, 1)
    assert told.said[0] == (2, 10)


def test_with_nothing_to_do_nothing_is_compiled():
    told = Told()
    play([Game(plan(), Sink(blocks(plan())))], Processes(1), told)
    assert told.said == [(0, 6), "start"]
