"""A small experiment, played into a directory, and what must be the same however it came about."""

from solid_bandits.paper import engine
from solid_bandits.paper.reader import load
from solid_bandits.simulation.workers import Processes

TOML = """
title = "Small"
horizon = {horizon}
runs = 40
seed = 3

[[problem]]
label = "even"
kind = "toy"

[[problem]]
label = "new"
kind = "random"
new_each_run = true
parameters = {{ n_contexts = 2, n_arms = 3, dim = 3 }}

[[policy]]
name = "linucb"

[[policy]]
name = "greedy"

[[claim]]
text = "LinUCB beats Greedy."
source = "ours"
rule = "less"
policies = ["LinUCB"]
against = ["Greedy"]
"""
SHORT, LONG = 200, 800_000
TASKS = 2 * (20 * 2 + 1)


class Silent:
    """A progress that keeps what it is told."""

    def __init__(self):
        self.total = self.kept = self.done = 0

    def begin(self, tasks, kept):
        self.total, self.kept = kept + len(tasks), kept

    def compiling(self, done, total):
        pass

    def start(self):
        pass

    def advance(self, task):
        self.done += 1


def written(folder, horizon=SHORT, text=TOML):
    path = folder / "small.toml"
    path.write_text(text.format(horizon=horizon), encoding="utf-8")
    return path


def play(path, out, jobs=1):
    told = Silent()
    engine.play([load(path)], out, Processes(jobs), told)
    return told


def contents(out):
    """Everything that must not depend on how the results came about."""
    return {path.relative_to(out): path.read_bytes() for path in sorted(out.rglob("*.parquet"))}


def kept_tasks(out):
    """Half-written files have names that begin with a dot."""
    return len(list(out.rglob("tasks/[!.]*.json")))


def interrupted_after(monkeypatch, tasks, error=KeyboardInterrupt):
    """Raise `error` when so many tasks have been kept."""
    count = 0
    keep = engine.Store.keep

    def counted(store, task, outcome):
        nonlocal count
        count += 1
        if count > tasks:
            raise error
        keep(store, task, outcome)

    monkeypatch.setattr(engine.Store, "keep", counted)
