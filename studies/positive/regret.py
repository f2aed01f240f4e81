"""Regret of policies with theorems beside others (plan.md, part 2), from what is played already on.

Usage: python studies/positive/regret.py [--table]
"""

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
sys.path.append(str(FOLDER.parent / "untold"))

from measure import Cell, geometric_mean, measures_of, play_cells, regrets_of  # noqa: E402
from players import CONTROL, FINITE_ONLY, LINTS, OURS, Player, solid  # noqa: E402
from sides import FRESH, LOW_NOISE, OFFSET, SECOND_HELD_OUT, _optimism, _random, _toy  # noqa: E402

import solid_bandits as sb  # noqa: E402

RUNS, SEED, SIDE = 100, 62, 63
PATH = FOLDER / "regret.jsonl"
PAPERS = {
    "toy": _toy(0.1, 0.5, 0.5),
    **{f"random {arms}": _random(SIDE, 4, arms, 8, 0.5, 1.0) for arms in (4, 8, 16, 32)},
    "optimism": _optimism(0.1, 1.0),
}
HORIZONS = {**dict.fromkeys(PAPERS, 5_000), **dict.fromkeys(SECOND_HELD_OUT, 1_000)}
FAMILIES = {
    **PAPERS,
    **{name: family for name, family in SECOND_HELD_OUT.items() if family.kind != "Jester"},
}
UNTOLD = {
    "LinMED": sb.rivals.LinMED(),
    "LinIMED-1": sb.rivals.LinIMED(form=1),
    "LinIMED-2": sb.rivals.LinIMED(form=2),
    "LinIMED-3": sb.rivals.LinIMED(),
    "SquareCB": sb.rivals.SquareCB(),
    "FALCON": sb.rivals.FALCON(),
    "Feel-good TS (smoothed)": sb.rivals.FeelGoodTS(),
    "LinUCB": sb.LinUCB(scale=0.35, ridge="evidence"),
    "LinUCB (paper)": sb.LinUCB(radius="paper", scale=1.0, ridge=1.0),
    OURS: sb.RandUCB(),
    CONTROL: sb.LinTS(ridge="evidence"),
}
PLAYERS = {
    **{
        label: partial(lambda player, family, problem: player, Player(one, False))
        for label, one in UNTOLD.items()
    },
    LINTS: lambda family, problem: Player(sb.LinTS(), True),
    "SOLID": lambda family, problem: Player(solid(family, problem), True),
}


def is_played(label, family):
    """Whether SOLID's table has contexts that come again."""
    return label not in FINITE_ONLY or family.kind not in (FRESH, OFFSET)


def play():
    """What is missing."""
    done = set(regrets_of(PATH))
    for name, family in FAMILIES.items():
        missing = {
            label: player
            for label, player in PLAYERS.items()
            if is_played(label, family) and Cell(label, name, HORIZONS[name]) not in done
        }
        if missing:
            play_cells(PATH, name, family, HORIZONS[name], missing, RUNS, SEED)
            print(name, len(missing), flush=True)


def table():
    """The lines of the page's table: of the families that were played so far."""
    regrets = regrets_of(PATH)
    played = [name for name in PAPERS if Cell(LINTS, name, HORIZONS[name]) in regrets]
    held_out = all(Cell(LINTS, name, HORIZONS[name]) in regrets for name in FAMILIES)
    more = ["held out", "without low noise", "stuck"] if held_out else []
    print("| policy | " + " | ".join([*played, *more]) + " |")
    print("|---|" + "--:|" * (len(played) + len(more)))
    loud = {name: one for name, one in SECOND_HELD_OUT.items() if one.kind != LOW_NOISE}
    for label in PLAYERS:
        cells = []
        for name in played:
            values = regrets[Cell(label, name, HORIZONS[name])]
            cells.append(f"{values.mean():.0f} ± {values.std(ddof=1) / np.sqrt(len(values)):.0f}")
        if held_out:
            measures = measures_of(regrets, label, SECOND_HELD_OUT)
            cells.append(f"{geometric_mean(measures, SECOND_HELD_OUT):.2f}")
            cells.append(f"{geometric_mean(measures_of(regrets, label, loud), SECOND_HELD_OUT):.2f}")
            stuck = round(sum(one.stuck for one in measures.values()) * RUNS)
            cells.append(f"{stuck} of {len(measures) * RUNS}")
        print(f"| {label} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", action="store_true", help="write the table of what was played")
    if parser.parse_args().table:
        table()
    else:
        play()
