"""How often the answer of an evaluation holds the truth: 72 cells, drift included. Truth by enumeration.

    python studies/off_policy/answers.py --play LINES --minutes 60        # resumable: LINES grows
    python studies/off_policy/answers.py --play MORE --first 339 --minutes 60       # more seeds than are summed up
    python studies/off_policy/answers.py --sum LINES --json studies/off_policy/answers.json
    python studies/off_policy/answers.py --sum MORE --with studies/off_policy/answers.json --json ...
    python studies/off_policy/answers.py --table studies/off_policy/answers.json

This plan was committed before anything was played.

Worlds are those of `intervals.py`: ten contexts of 2, 4 or 20 arms in R^4, rewards 0 or 1 whose means are linear and
lie between 0.3 and 1.7 times a base rate. Agents know the standard deviation of rewards at the base rate; floor 0.05.
Under drift the means are mirrored around their average in the second half of the rows: the best arm of a context is
then its worst. The truth is the mean over the period.

Cells: the 18 settings of `SETTINGS` (base rate, rows, arms, logger, drift) with the targets uniform; the arm that is
best on average; greedy (the best arm in each context, by the truth of the first half); another learner,
EpsilonGreedy(0.2) that has learnt from 500 rows of a log of its own and stopped. 1,000 logs each as far as time allows;
of 100,000 rows for every fifth seed only. All cells of a seed are played before the next one. (A clock stopped the
first run at 339 seeds, of which the lines were not kept, and later ones add to its counts. Where two runs are put
together, counts are added, and a median width is the mean of the two medians, weighed by their logs.)

What is counted, in every log: the *answer*. That is
- for a logger that learns `cadr`, for a fixed one Student's interval of DR, where there are at least 50 effective
  rewards (`diagnostics.effective_rewards`), at least T rows per squared skewness (`rows_per_skewness`, with the weights
  of the interval), and no drift is seen (`drift` >= 0.05);
- else `anytime`, which there always is, so that no log is silent.
`anytime` is also counted alone. A cell loses if its coverage is significantly below 95%: exact binomial, one-sided, at
5% divided by the number of cells.

T is chosen on even seeds: the smallest of `EDGES` with which no cell of the answers loses. Odd seeds judge it. If none
will do, that is said, and the largest is taken.

Widths: the median width of the answer over 3.92 standard deviations of the DR estimates of all logs of the cell, which
is the normal interval by the true variance of the plain mean.
"""

import argparse
import json
import math
import time
from collections import defaultdict
from functools import lru_cache
from pathlib import Path

import numpy as np
from intervals import LEVEL, Blocks, play
from rare_rewards import FIXED, FLOOR, LEARNING, fixed_log, world
from scipy.stats import binom

import solid_bandits as sb
from solid_bandits.core.randomness import ENVIRONMENT, make_rng
from solid_bandits.ope import adaptive, anytime, diagnostics, estimators
from solid_bandits.ope.models import as_model
from solid_bandits.ope.rows import Rows
from solid_bandits.ope.targets import Target
from solid_bandits.ope.terms import collect, dr_terms

SETTINGS = [
    (0.01, 2_000, 4, "RandUCB", False),
    (0.01, 10_000, 4, "LinTS", False),
    (0.01, 100_000, 4, "LinTS", False),
    (0.02, 10_000, 20, "RandUCB", False),
    (0.02, 10_000, 4, "even", False),
    (0.05, 300, 4, "EpsilonGreedy", False),
    (0.05, 2_000, 4, "tilted", False),
    (0.05, 10_000, 2, "LinTS", False),
    (0.05, 10_000, 4, "RandUCB", False),
    (0.05, 100_000, 4, "RandUCB", False),
    (0.2, 300, 2, "RandUCB", False),
    (0.2, 2_000, 20, "LinTS", False),
    (0.2, 10_000, 4, "EpsilonGreedy", False),
    (0.5, 300, 4, "RandUCB", False),
    (0.5, 2_000, 4, "LinTS", False),
    (0.05, 10_000, 4, "EpsilonGreedy", True),
    (0.2, 10_000, 4, "LinTS", True),
    (0.5, 2_000, 4, "RandUCB", True),
]
EDGES = (0, 5, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 400)
TAKEN = 25
"""T of the package: Cochran's number; the plan's rule chooses 0, at which two cells are near to losing."""
ERROR = 0.05
ENOUGH = 50
SEEN = 0.05


def learnt_log(policy, features, worlds, rows, seed, noise_std):
    """The contexts and rows of one log; the rows are divided evenly among the worlds, one after the other."""
    arms = features.shape[1]
    agent = sb.Agent(
        policy, dim=features.shape[2], noise_std=noise_std, seed=seed, floor=FLOOR, probabilities=True
    )
    context, arm = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    reward, given = np.zeros(rows), np.zeros((rows, arms))
    rng = make_rng(seed, 1, ENVIRONMENT)
    for part, means in enumerate(worlds):
        some = slice(part * rows // len(worlds), (part + 1) * rows // len(worlds))
        log = (context[some], arm[some], reward[some], given[some])
        play(agent, features, means, np.zeros(0), rng, *log)
    every = np.arange(rows)
    return (
        context,
        agent,
        Rows(
            where=every,
            names=[str(a) for a in range(arms)],
            codes=np.tile(np.arange(arms), (rows, 1)),
            counts=np.full(rows, arms),
            mask=np.ones((rows, arms), dtype=bool),
            place=arm,
            propensity=given[every, arm],
            probabilities=given,
            reward=reward,
            features=features[context][..., :-1],
            context=None,
        ),
    )


@lru_cache
def cell_world(arms, rate):
    """Features, means and targets, the other learner among them."""
    features, means, targets = world(arms, rate)
    learner = sb.EpsilonGreedy(epsilon=0.2)
    _, agent, _ = learnt_log(learner, features, [means], 500, 2026, math.sqrt(rate * (1 - rate)))
    other = np.array([agent.probabilities(offer) for offer in features])
    kept = {name: targets[name] for name in ("uniform", "best arm", "greedy")}
    return features, means, kept | {"learner": other}


def missed(value, truth):
    """0: the interval holds the truth; -1: it lies below; 1: above; None: there is none."""
    if value.low is None:
        return None
    return 0 if value.low <= truth <= value.high else -1 if value.high < truth else 1


def one(rate, rows, arms, logger, drift, seed):
    """All that is found in one log."""
    features, means, targets = cell_world(arms, rate)
    worlds = [means, 2 * means.mean() - means] if drift else [means]
    if logger in LEARNING:
        spread = math.sqrt(rate * (1 - rate))
        context, _, log = learnt_log(LEARNING[logger], features, worlds, rows, seed, spread)
    else:
        context, log = fixed_log(logger, features, means, rows, seed)
    asked = {target: Target(lambda _, played=chosen[context]: played) for target, chosen in targets.items()}
    collected = collect(Blocks(log), asked, as_model("linear"), (0.0, 1.0), True)
    found = {}
    for target, chosen in targets.items():
        terms = collected[target].terms
        truth = float(np.mean([(chosen * part).sum(axis=1).mean() for part in worlds]))
        normal = adaptive.cadr if logger in LEARNING else estimators.doubly_robust
        inverse = adaptive.inverses(terms) if logger in LEARNING else np.ones(rows)
        values = [normal(terms, LEVEL), anytime.anytime(terms, LEVEL, (0.0, 1.0))]
        found[target] = [
            round(diagnostics.effective_rewards(terms), 1),
            round(min(diagnostics.rows_per_skewness(terms, inverse), 1e9), 1),
            round(diagnostics.drift(terms), 4),
            float(f"{dr_terms(terms).mean() - truth:.4g}"),
            *(missed(value, truth) for value in values),
            *(None if value.low is None else float(f"{value.high - value.low:.4g}") for value in values),
        ]
    return {"setting": [rate, rows, arms, logger, drift], "seed": seed, "found": found}


def play_all(path, minutes, first):
    """Add lines until so many minutes of CPU time are spent, from the first seed that is not complete."""
    known = set()
    if path.exists():
        for text in path.read_text().splitlines():
            line = json.loads(text)
            known.add((*line["setting"], line["seed"]))
    with path.open("a") as file:
        for seed in range(first, 1000):
            for setting in SETTINGS:
                if (*setting, seed) in known or (setting[1] == 100_000 and seed % 5):
                    continue
                if time.process_time() > 60 * minutes:
                    return
                file.write(json.dumps(one(*setting, seed), separators=(",", ":")) + "\n")
                file.flush()


def added(one, other, logs, more):
    """Two sums as one; `logs` and `more` are their numbers of logs."""
    if isinstance(one, dict):
        return {name: added(one[name], other[name], logs, more) for name in one}
    if isinstance(one, list):
        return [added(*pair, logs, more) for pair in zip(one, other, strict=True)]
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    return (one * logs + other * more) / (logs + more)


def together(one, other):
    """The cells of two runs with different seeds."""
    found = {}
    for cell, first in one.items():
        second = other[cell]
        logs, more = sum(first["logs"]), sum(second["logs"])
        both = added(first, second, logs, more)
        spread = [part["normal by truth"] ** 2 for part in (first, second)]
        both["normal by truth"] = math.sqrt(added(*spread, logs, more))
        errors = [part["bias in standard errors"] for part in (first, second)]
        both["bias in standard errors"] = (
            errors[0] * math.sqrt(logs) + errors[1] * math.sqrt(more)
        ) / math.sqrt(logs + more)
        found[cell] = both
    return found


def summed(path):
    """For each cell the logs, and of even and odd seeds the misses (below, above) of the answers by T, and of all."""
    lines = defaultdict(list)
    for text in path.read_text().splitlines():
        line = json.loads(text)
        for target, numbers in line["found"].items():
            lines["|".join(map(str, (*line["setting"], target)))].append((line["seed"] % 2, *numbers))
    cells = {}
    for cell, logs in lines.items():
        half = np.array([log[0] for log in logs])
        enough, skewed, p, error = (
            np.array([log[place] for log in logs], dtype=float) for place in (1, 2, 3, 4)
        )
        # Where there is no interval, NaN: neither a miss nor shown.
        normal, always, width, wide = (
            np.array([log[place] for log in logs], dtype=float) for place in (5, 6, 7, 8)
        )
        found = {
            "logs": [int((half == side).sum()) for side in (0, 1)],
            "normal by truth": 3.92 * error.std(),
        }

        def counts(misses, sides=half):
            return [[int(((sides == side) & (misses == sign)).sum()) for sign in (-1, 1)] for side in (0, 1)]

        found["bias in standard errors"] = error.mean() / (error.std(ddof=1) / math.sqrt(len(error)))
        found["anytime"] = {"misses": counts(always), "width": float(np.nanmedian(wide))}
        found["normal"] = {
            "misses": counts(normal),
            "shown today": float(((enough >= ENOUGH) & ~np.isnan(normal)).mean()),
        }
        found["answers"] = {}
        for edge in EDGES:
            shown = (enough >= ENOUGH) & (skewed >= edge) & (p >= SEEN) & ~np.isnan(normal)
            found["answers"][str(edge)] = {
                "misses": counts(np.where(shown, normal, always)),
                "normal shown": float(shown.mean()),
                "missed of those": int((shown & (normal != 0)).sum()),
                "width": float(np.median(np.where(shown, width, wide))),
            }
        cells[cell] = found
    return cells


def losing(cells, of, halves):
    """Cells whose coverage is significantly below 95%, of some halves of the seeds."""
    lost = []
    for cell, found in cells.items():
        logs = sum(found["logs"][half] for half in halves)
        missed = sum(sum(of(found)["misses"][half]) for half in halves)
        if logs and binom.sf(missed - 1, logs, 1 - LEVEL) < ERROR / len(cells):
            lost.append((round(1 - missed / logs, 3), logs, cell))
    return sorted(lost)


def chosen(cells):
    """T by the plan's rule."""
    for edge in EDGES:
        if not losing(cells, lambda found, edge=edge: found["answers"][str(edge)], (0,)):
            return edge
    return EDGES[-1]


def table(path):
    """Print the choice of T, its judgement, and the rows of docs/evaluation.md."""
    cells = json.loads(path.read_text())
    for edge in EDGES:
        parts = [
            losing(cells, lambda found, edge=edge: found["answers"][str(edge)], halves)
            for halves in ((0,), (1,), (0, 1))
        ]
        print(edge, "losing on even, odd and all seeds:", *map(len, parts), parts[2])
    edge = chosen(cells)
    print("T =", edge)
    print("losing on odd seeds:", losing(cells, lambda found: found["answers"][str(edge)], (1,)))
    print("anytime, losing on all seeds:", losing(cells, lambda found: found["anytime"], (0, 1)))
    print("\n".join(page_table(cells)))


def page_table(cells):
    """Rows of docs/evaluation.md: a setting each, over its four targets."""
    settings = defaultdict(list)
    for cell, found in cells.items():
        settings[cell.rpartition("|")[0]].append(found)
    lines = []
    for setting, four in settings.items():
        rate, rows, arms, logger, drift = setting.split("|")
        answers = [found["answers"][str(TAKEN)] for found in four]

        def held(entries, four=four):
            return [
                100 * (1 - sum(map(sum, entry["misses"])) / sum(found["logs"]))
                for entry, found in zip(entries, four, strict=True)
            ]

        def wide(entries, four=four):
            return max(
                entry["width"] / found["normal by truth"] for entry, found in zip(entries, four, strict=True)
            )

        normal = held([found["normal"] for found in four])
        shown = 100 * sum(answer["normal shown"] for answer in answers) / len(answers)
        always = [found["anytime"] for found in four]
        lines.append(
            f"| {100 * float(rate):g}% | {int(rows):,} | {arms} | {logger}{', drift' if drift == 'True' else ''} | "
            f"{sum(four[0]['logs'])} | {min(normal):.0f} to {max(normal):.0f}% | {shown:.0f}% | "
            f"{min(held(answers)):.1f}% | {wide(answers):.1f} | {min(held(always)):.1f}% | {wide(always):.1f} |"
        )
    return lines


def main():
    """Play, sum up, or print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--play", type=Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--sum", type=Path)
    parser.add_argument("--with", type=Path, dest="before")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    assert set(FIXED) >= {setting[3] for setting in SETTINGS} - set(LEARNING)
    if given.play:
        play_all(given.play, given.minutes, given.first)
    if given.sum:
        found = summed(given.sum)
        if given.before:
            found = together(json.loads(given.before.read_text()), found)
        given.json.write_text(json.dumps(found, separators=(",", ":")) + "\n")
    if given.table:
        table(given.table)


if __name__ == "__main__":
    main()
