"""Cells played by many processes: runs in pieces, a line written when all pieces of a cell are there."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import NamedTuple

from loop import final_regret
from measure import write_line

PIECE = 10
"""Runs that a process plays at a time; their problem is made once for all policies."""
_TASKS = []
"""Of this call, for the processes that are forked from it: problems' makers need not travel."""


class Task(NamedTuple):
    """The cells of one family and horizon that are played on the same problems."""

    name: str
    family: object
    horizon: int
    players: dict
    """Label -> player."""
    runs: int


def _piece(place, first, last, seed):
    task = _TASKS[place]
    regrets = {label: [] for label in task.players}
    for run in range(first, last):
        problem = task.family.problem_of(task.horizon, run)
        for label, (policy, told) in task.players.items():
            one = final_regret(problem, policy, task.horizon, seed, run, task.family.rewards, told)
            regrets[label].append(one)
    return regrets


def play_tasks(path, tasks, seed, processes=None):
    """Play them all, the longest first; append a line for each cell."""
    _TASKS[:] = sorted(tasks, key=lambda task: -task.horizon * task.family.problem_of(1, 0).dim ** 2)
    warmed = set()
    for task in _TASKS:  # compiled before the fork, once
        for label, (policy, told) in task.players.items():
            if (label, told) not in warmed:
                warmed.add((label, told))
                final_regret(task.family.problem_of(1, 0), policy, 2, 0, 0, "gaussian", told)
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes or os.cpu_count(), mp_context=context) as pool:
        waiting, pieces = {}, {}
        for place, task in enumerate(_TASKS):
            for first in range(0, task.runs, PIECE):
                future = pool.submit(_piece, place, first, min(first + PIECE, task.runs), seed)
                waiting[future] = place, first
                pieces.setdefault(place, {})[first] = None
        for future in as_completed(waiting):
            place, first = waiting[future]
            pieces[place][first] = future.result()
            if all(piece is not None for piece in pieces[place].values()):
                task, found = _TASKS[place], pieces.pop(place)
                for label, player in task.players.items():
                    regret = [value for key in sorted(found) for value in found[key][label]]
                    write_line(path, label, task.name, task.horizon, player, seed, "cpu", regret)
                print(task.name, task.horizon, len(task.players), flush=True)
