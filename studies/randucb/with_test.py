"""Does the exploitation test add anything to RandUCB? The control of docs/randucb.md, on the tuning families.

Usage: python studies/randucb/with_test.py FOLDER   (some minutes on two cores)

Plays RandUCB, the same with SOLID's exploitation test in front of it, and LinTS; writes FOLDER/with_test.jsonl, a line
of final regrets for each policy, family and horizon, and prints what the rule of the plan says.
"""

import json
import sys
from pathlib import Path

import numpy as np
from families import FIRST, RUNS, TUNING
from measure import LINTS, cells_of, geometric_mean, objective, play_all
from tested import Tested

import solid_bandits as sb

SEED = 11
"""Of contexts, noise and policies; not used before."""
HORIZONS = (1_000, 10_000)
FAMILIES = TUNING | {name: family for name, family in FIRST.items() if not name.startswith("jester")}
TESTED = "RandUCB with the test"
PLAIN = "RandUCB"
RESAMPLES = 2000


def difference(regrets):
    """Mean log R with the test minus without, and its standard error over resampled runs."""
    rng = np.random.default_rng(0)
    draws = []
    for resample in range(RESAMPLES + 1):
        runs = rng.integers(0, RUNS, RUNS) if resample else np.arange(RUNS)
        logs = [
            np.log(regrets[TESTED, name, n][runs].mean()) - np.log(regrets[PLAIN, name, n][runs].mean())
            for name in FAMILIES
            for n in HORIZONS
        ]
        draws.append(np.mean(logs))
    return draws[0], float(np.std(draws[1:], ddof=1))


def main(folder):
    """Play, write, judge."""
    policies = {
        PLAIN: sb.RandUCB(temperature=0.5, growth=0.2, ridge=0.2),
        TESTED: Tested(),
        LINTS: sb.LinTS(),
    }
    regrets = play_all(policies, FAMILIES, HORIZONS, RUNS, SEED)
    with (folder / "with_test.jsonl").open("w", encoding="utf-8") as file:
        for (label, family, horizon), values in sorted(regrets.items()):
            line = {"policy": label, "family": family, "horizon": horizon}
            file.write(json.dumps(line | {"regret": [float(f"{value:.6g}") for value in values]}) + "\n")
    for label in (PLAIN, TESTED):
        cells = cells_of(regrets, regrets, label)
        print(
            f"{label}: geometric mean of R {geometric_mean(cells):.3f}, objective {objective(cells):.3f}, "
            f"largest R {max(cell.ratio for cell in cells.values()):.2f}, "
            f"largest Q {max(cell.tail for cell in cells.values()):.2f}, "
            f"stuck {sum(cell.stuck for cell in cells.values()) * RUNS:.0f}"
        )
    mean, error = difference(regrets)
    print(f"log ratio, with the test minus without: {mean:.3f} ± {error:.3f} (standard error)")
    print("the test becomes an option" if mean < -2 * error else "the test is left out")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
