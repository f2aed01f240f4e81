"""Intervals on logs of LinMED and SquareCB without a floor (plan.md, part 3). Truth by enumeration.

Usage: python studies/positive/coverage.py [--logs 300]
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from scipy.stats import binom

FOLDER = Path(__file__).parent
sys.path.append(str(FOLDER.parent / "off_policy"))

from intervals import LEVEL, METHODS, Blocks, one_log, problem  # noqa: E402

import solid_bandits as sb  # noqa: E402
from solid_bandits._internal.checks import ArgumentError  # noqa: E402
from solid_bandits.ope.diagnostics import ENOUGH, effective_rewards  # noqa: E402
from solid_bandits.ope.models import as_model  # noqa: E402
from solid_bandits.ope.targets import Target  # noqa: E402
from solid_bandits.ope.terms import collect  # noqa: E402

STEPS = 2_000
LOGGERS = {
    "SquareCB": sb.rivals.SquareCB(),
    "LinMED": sb.rivals.LinMED(),
    "LinMED, scale 1": sb.rivals.LinMED(scale=1.0),
    "SquareCB, scale 1": sb.rivals.SquareCB(scale=1.0),
}
WORLDS = {"0/1, 4 arms": (4, False), "0/1, 10 arms": (10, False), "Gaussian, 4 arms": (4, True)}
SHOWN = {"ips": "IPS, Student", "cadr": "CADR"}


def main():
    """Play, estimate, count; one line a cell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=int, default=300)
    logs = parser.parse_args().logs
    rows = []
    for world, (arms, gaussian) in WORLDS.items():
        features, means, targets = problem(arms)
        for logger, policy in LOGGERS.items():
            start, least, refused = time.process_time(), 1.0, dict.fromkeys(targets, 0)
            found = {(target, method): [] for target in targets for method in SHOWN}
            for seed in range(logs):
                noise = 0.5 * np.random.default_rng((7, seed)).normal(size=STEPS) if gaussian else None
                context, log = one_log(policy, features, means, STEPS, seed, 0.0, None, noise)
                least = min(least, float(log.probabilities.min()))
                scale = None if gaussian else (0.0, 1.0)
                for target, one in targets.items():
                    asked = {target: Target(lambda _, played=one[context]: played)}
                    try:
                        terms = collect(Blocks(log), asked, as_model("linear"), scale, True)[target].terms
                    except ArgumentError:  # a weight above 1e20
                        refused[target] += 1
                        continue
                    if effective_rewards(terms) >= ENOUGH:
                        for method, name in SHOWN.items():
                            found[target, method].append(METHODS[name](terms)[:3])
            for (target, method), values in found.items():
                truth = float((targets[target] * means).sum(axis=1).mean())
                _, low, high = np.array(values, dtype=float).reshape(-1, 3).T
                held = int(((low <= truth) & (truth <= high)).sum())
                line = {
                    "world": world,
                    "logger": logger,
                    "target": target,
                    "method": method,
                    "logs": logs,
                    "refused": refused[target],
                    "shown": len(values),
                    "held": held,
                    "chance": float(binom.cdf(held, len(values), LEVEL)),
                    "width": float((high - low).mean()) if len(values) else None,
                    "least probability": least,
                }
                rows.append(line)
                print(line, flush=True)
            print(f"{world}, {logger}: {time.process_time() - start:.0f} CPU seconds", flush=True)
    (FOLDER / "coverage.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
