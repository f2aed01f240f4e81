"""The bake-off of plan.md: plays what is missing in results.jsonl, the most important first.

Usage: python benchmarks/bakeoff [--minutes 60] [--only ours|vw|peers] [--table]
"""

import argparse
import importlib
import json
import sys
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))

import game  # noqa: E402
import sets  # noqa: E402

PATH = FOLDER / "results.jsonl"
SOURCES = {"ours": "ours", "vw": "vw", "peers": "python_peers"}


def results():
    """What was played so far; a line that was cut off is not counted."""
    lines = PATH.read_text().splitlines() if PATH.exists() else []
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def cells(sources):
    """Every cell in its order: a shuffle after the other; in it small sets first, on each set ours, VW, the others."""
    contenders = [one for source in sources for one in importlib.import_module(SOURCES[source]).CONTENDERS]
    turns = sorted({shuffle + one.waits for one in contenders for shuffle in range(one.shuffles)})
    for turn in turns:
        for name in sorted(sets.NAMES, key=_size):
            for contender in contenders:
                shuffle = turn - contender.waits
                if float(shuffle).is_integer() and 0 <= shuffle < contender.shuffles:
                    yield contender, name, int(shuffle)


def _size(name):
    rows = sets.rows_of(name)
    return rows.n_arms * rows.X.shape[1] ** 2


def play(minutes, sources):
    """Cells that are missing, until time is up."""
    done = {(one["player"], one["set"], one["shuffle"]) for one in results()}
    began = time.monotonic()
    with PATH.open("a") as out, threadpool_limits(1):
        for contender, name, shuffle in cells(sources):
            if time.monotonic() - began > 60 * minutes:
                return
            rows = sets.rows_of(name)
            if (contender.label, name, shuffle) in done or not contender.takes(rows):
                continue
            player = contender.make(rows, shuffle)
            line = {"player": contender.label, "set": name, "shuffle": shuffle}
            X, right = rows.shuffled(shuffle)
            line |= game.play(player, X[: contender.rounds], right[: contender.rounds]) | getattr(
                player, "noted", {}
            )
            out.write(json.dumps(line) + "\n")
            out.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--only", choices=SOURCES)
    parser.add_argument("--table", action="store_true", help="write the tables of what was played")
    given = parser.parse_args()
    if given.table:
        import table

        table.write(results())
    else:
        play(given.minutes, [given.only] if given.only else list(SOURCES))
