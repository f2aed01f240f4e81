"""How many effective rewards an interval needs that rests on a normal approximation. Truth by enumeration.

    python studies/off_policy/rare_rewards.py --play LINES --minutes 25         # resumable: LINES grows
    python studies/off_policy/rare_rewards.py --sum LINES --json studies/off_policy/rare_rewards.json
    python studies/off_policy/rare_rewards.py --table studies/off_policy/rare_rewards.json

This plan was committed before anything was played. Played were seeds 0 to 301, in 13 minutes of CPU time: it was
stopped by the clock.

Worlds are those of `intervals.py`: ten contexts of four (or 20) arms in R^4, rewards 0 or 1 whose means are linear and
lie between 0.3 and 1.7 times a base rate. Agents are told the standard deviation of rewards at the base rate.

Cells:
- learning loggers RandUCB, LinTS, EpsilonGreedy(0.1), floor 0.05; base rates 1, 2, 5, 12, 20, 50%; 500, 2,000 and
  10,000 rows; 4 arms: 54 logs a seed;
- 20 arms: the three loggers, 2, 12 and 50%, 2,000 rows: 9 logs;
- revenue: with the probability above something is bought, for a log-normal amount (σ of the logarithm 1, mean 1):
  RandUCB and LinTS, 5 and 20%, 2,000 rows, 4 arms: 4 logs;
- fixed loggers "even" (1/4 each) and "tilted" (0.05 shared by all arms, the rest to the best arm of another θ); all six
  rates, 500, 2,000 and 10,000 rows: 36 logs;
- targets in each: uniform; the arm that is best on average; greedy (the best arm in each context, by the truth);
  the worst arm in each context. So 412 cells.
10,000 rows are played for seeds whose number leaves 0 or 1 when divided by 4, all other logs for every seed.

Methods: `cadr` for learning loggers; Student's IPS and DR, the normal SNIPS, and the percentile bootstrap of IPS (200
samples, up to 2,000 rows) for fixed ones; `anytime` as it was then for all with rewards on [0, 1]: its bounds are other
ones now, see `answers.py`. Running values (`ope.running`) of
learning loggers, 4 arms, rewards of 0 or 1: 60 looks, spaced geometrically from row 30 to the last; the running mean of
the conditional expectations is the truth.

The number of effective rewards, with u = r - min r or u = max r - r, over all rows of the log, whichever gives less:
- A, observed: (Σ w u)² / Σ (w u)²;
- B, expected if all arms had the same rewards: n² / Σ_t Σ_a π(a)²/g(a) times mean(u)² / mean(u²);
- C, the least of A and B.
Both are the same for r and a + b r, b != 0.

The threshold, from even seeds: for A and for C the smallest T of `EDGES` such that, with logs of fewer than T left out,
(1) no cell's coverage by `cadr` (learning) or by IPS, SNIPS, DR, bootstrap (fixed) is significantly below 95%: exact
    binomial, one-sided, at 5% divided by the number of cells times methods that show anything;
(2) pooled over cells by logger and target, no coverage of logs with a count in [T, 2T) is significantly below 93%,
    at 5% divided by the number of such groups: cells alone have few logs and little power.
Of A and C, the one which then leaves more of all logs an interval is taken. Odd seeds judge it by (1) and (2).
For running values likewise: the smallest T such that in no cell and series the share of logs that ever miss, looks with
fewer than T effective rewards of the series' policy left out, is significantly above 5%; (2) does not apply. The lead
of the policy over another has the count of the other. If no T of the grid will do, that is said and nothing is chosen.
"""

import argparse
import json
import math
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from intervals import DIM, LEVEL, Blocks, one_log, problem
from scipy.stats import binom

import solid_bandits as sb
from solid_bandits.ope import adaptive, anytime, estimators
from solid_bandits.ope.models import as_model
from solid_bandits.ope.rows import Rows
from solid_bandits.ope.running import mean_of
from solid_bandits.ope.targets import Target
from solid_bandits.ope.terms import collect

RATES = (0.01, 0.02, 0.05, 0.12, 0.2, 0.5)
ROWS = (500, 2000, 10_000)
LEARNING = {"RandUCB": sb.RandUCB(), "LinTS": sb.LinTS(), "EpsilonGreedy": sb.EpsilonGreedy(epsilon=0.1)}
FIXED = ("even", "tilted")
FLOOR = 0.05
EDGES = [0, 5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 100, 125, 150, 200, 250, 300, 400, 500, 600, 800, 1000]
LOOKS = 60
BOOTSTRAP = 200
FIXED_METHODS = ("ips", "snips", "dr", "bootstrap")
ERROR = 0.05


def settings():
    """Kind of reward, base rate, rows, arms and logger of every log of a seed."""
    for rate in RATES:
        for rows in ROWS:
            for logger in (*LEARNING, *FIXED):
                yield "click", rate, rows, 4, logger
    for rate in (0.02, 0.12, 0.5):
        for logger in LEARNING:
            yield "click", rate, 2000, 20, logger
    for rate in (0.05, 0.2):
        for logger in ("RandUCB", "LinTS"):
            yield "revenue", rate, 2000, 4, logger


def world(arms, rate):
    """Features, means, and the four targets."""
    features, means, targets = problem(arms, rate)
    one = np.eye(arms)
    always = np.tile(one[means.mean(axis=0).argmax()], (len(means), 1))
    return (
        features,
        means,
        {
            "uniform": targets["uniform"],
            "best arm": always,
            "greedy": targets["greedy"],
            "worst": one[means.argmin(axis=1)],
        },
    )


def fixed_log(logger, features, means, rows, seed):
    """The contexts and rows of a log of a logger that does not learn."""
    arms = means.shape[1]
    rng = np.random.default_rng([seed, 11])
    given = np.full(means.shape, 1 / arms)
    if logger == "tilted":
        other = features[..., :DIM] @ np.random.default_rng(7).normal(size=DIM)
        given = FLOOR * given + (1 - FLOOR) * np.eye(arms)[other.argmax(axis=1)]
    context = rng.integers(len(means), size=rows)
    probabilities = given[context]
    arm = (probabilities.cumsum(axis=1) < rng.random(rows)[:, None]).sum(axis=1).clip(max=arms - 1)
    every = np.arange(rows)
    return context, Rows(
        where=every,
        names=[str(a) for a in range(arms)],
        codes=np.tile(np.arange(arms), (rows, 1)),
        counts=np.full(rows, arms),
        mask=np.ones((rows, arms), dtype=bool),
        place=arm,
        propensity=probabilities[every, arm],
        probabilities=probabilities,
        reward=(rng.random(rows) < means[context, arm]).astype(float),
        features=features[context][..., :DIM],
        context=None,
    )


def effective(weight, second, reward):
    """A and B of rows so far, at every row."""
    every = np.arange(1, len(reward) + 1)
    found = []
    for u in (reward - np.minimum.accumulate(reward)[-1], np.maximum.accumulate(reward)[-1] - reward):
        sums, squares = np.cumsum(weight * u), np.cumsum((weight * u) ** 2)
        observed = np.divide(sums**2, squares, out=np.zeros(len(u)), where=squares > 0)
        plain, power = np.cumsum(u), np.cumsum(u**2)
        share = np.divide(plain**2, power, out=np.zeros(len(u)), where=power > 0)  # n mean(u)² / mean(u²)
        found.append((observed, share * every / np.cumsum(second)))
    (a, b), (c, d) = found
    return np.minimum(a, c), np.minimum(b, d)


def missed(value, truth):
    """0: the interval holds the truth; -1: it lies below; 1: above; None: there is none."""
    if value.low is None:
        return None
    return 0 if value.low <= truth <= value.high else -1 if value.high < truth else 1


def running(rows, context, means):
    """Per series: the largest A and the largest C among the looks that missed (0 where none did), and among all."""
    q = as_model("linear").predict(rows)
    every, mean = np.arange(len(rows.reward)), means[context]
    best = q.argmax(axis=1)
    residual = (rows.reward - q[every, rows.place]) / rows.propensity
    same = best == rows.place
    terms = {
        "policy": rows.reward,
        "uniform": q.mean(axis=1) + residual / q.shape[1],
        "greedy": q[every, best] + residual * same,
    }
    truths = {
        "policy": (rows.probabilities * mean).sum(axis=1),
        "uniform": mean.mean(axis=1),
        "greedy": mean[every, best],
    }
    chances = rows.probabilities
    counts = {
        "policy": effective(np.ones(len(every)), np.ones(len(every)), rows.reward),
        "uniform": effective(
            1 / q.shape[1] / rows.propensity, (1 / chances).mean(axis=1) / q.shape[1], rows.reward
        ),
        "greedy": effective(same / rows.propensity, 1 / chances[every, best], rows.reward),
    }
    for other in ("uniform", "greedy"):
        terms[f"over {other}"] = terms["policy"] - terms[other]
        truths[f"over {other}"] = truths["policy"] - truths[other]
        counts[f"over {other}"] = counts[other]
    found = {}
    steps = sorted({int(step) for step in np.geomspace(30, len(every), LOOKS)})
    for name, values in terms.items():
        held = np.cumsum(truths[name])
        worst, most = np.zeros(2), np.zeros(2)
        for step in steps:
            seen = values[:step]
            around = seen - seen.mean()
            value = mean_of(np.array([step, seen.mean(), (around**2).sum(), (around**3).sum()]), LEVEL)
            if value.low is None:
                continue
            a, b = (count[step - 1] for count in counts[name])
            both = np.array([a, min(a, b)])
            most = np.maximum(most, both)
            if not value.low <= held[step - 1] / step <= value.high:
                worst = np.maximum(worst, np.maximum(both, 1e-9))
        found[name] = [*worst.round(2).tolist(), *most.round(2).tolist()]
    return found


def one(kind, rate, length, arms, logger, seed):
    """All that is found in one log."""
    features, means, targets = world(arms, rate)
    if logger in LEARNING:
        spread = math.sqrt(rate * (1 - rate))
        context, rows = one_log(LEARNING[logger], features, means, length, seed, FLOOR, noise_std=spread)
        if kind == "revenue":  # amounts are drawn apart: the logger learns from what was bought
            amount = np.random.default_rng([seed, 13]).lognormal(-0.5, 1.0, size=length)
            rows = rows._replace(reward=rows.reward * amount)
    else:
        context, rows = fixed_log(logger, features, means, length, seed)
    rng = np.random.default_rng([seed, 17])
    ends = (0.0, 1.0) if kind == "click" else None
    found = {}
    asked = {target: Target(lambda _, played=chosen[context]: played) for target, chosen in targets.items()}
    collected = collect(Blocks(rows), asked, as_model("linear"), ends, True)
    for target, chosen in targets.items():
        terms = collected[target].terms
        truth = float((chosen * means).sum(axis=1).mean())
        a, b = (count[-1] for count in effective(terms.weight, terms.second, terms.reward))
        values = {}
        if logger in LEARNING:
            values["cadr"] = adaptive.cadr(terms, LEVEL)
        else:
            values["ips"] = estimators.ips(terms, LEVEL)
            values["snips"] = estimators.snips(terms, LEVEL)
            values["dr"] = estimators.doubly_robust(terms, LEVEL)
            if length <= 2000:
                low, high = estimators.bootstrap(
                    terms.weight * terms.reward, np.ones(length), LEVEL, BOOTSTRAP, rng
                )
                values["bootstrap"] = values["ips"]._replace(low=low, high=high)
        if ends is not None:
            values["anytime"] = anytime.anytime(terms, LEVEL, ends)
        found[target] = [
            round(float(a), 2),
            round(float(b), 2),
            {
                name: [
                    missed(value, truth),
                    None if value.low is None else float(f"{value.high - value.low:.4g}"),
                ]
                for name, value in values.items()
            },
        ]
    line = {
        "kind": kind,
        "rate": rate,
        "rows": length,
        "arms": arms,
        "logger": logger,
        "seed": seed,
        "found": found,
    }
    if logger in LEARNING and arms == 4 and kind == "click":
        line["running"] = running(rows, context, means)
    return line


def play(path, minutes):
    """Add lines until so many minutes of CPU time are spent, from the first seed that is not complete."""
    known = set()
    if path.exists():
        for line in path.read_text().splitlines():
            have = json.loads(line)
            known.add(tuple(have[name] for name in ("kind", "rate", "rows", "arms", "logger", "seed")))
    with path.open("a") as file:
        for seed in range(100_000):
            for setting in settings():
                if (*setting, seed) in known or (setting[2] == 10_000 and seed % 4 > 1):
                    continue
                if time.process_time() > 60 * minutes:
                    return
                file.write(json.dumps(one(*setting, seed), separators=(",", ":")) + "\n")
                file.flush()


def summed(path):
    """Counts by cell, method, statistic with half (0: even seeds) and bin of effective rewards: logs, below, above."""
    cells = defaultdict(lambda: defaultdict(lambda: defaultdict(lambda: defaultdict(lambda: [0, 0, 0]))))
    widths = defaultdict(list)
    looks = defaultdict(list)
    for text in path.read_text().splitlines():
        line = json.loads(text)
        name = f"{line['kind']}|{line['rate']}|{line['rows']}|{line['arms']}|{line['logger']}"
        half = line["seed"] % 2
        for target, (a, b, methods) in line["found"].items():
            for method, (miss, width) in methods.items():
                if miss is None:
                    continue
                widths[f"{name}|{target}|{method}"].append(width)
                for which, count in (("A", a), ("C", min(a, b))):
                    edge = EDGES[int(np.searchsorted(EDGES, count, side="right")) - 1]
                    if method == "anytime":  # it is never left out
                        edge = 0
                    entry = cells[f"{name}|{target}"][method][f"{which}{half}"][edge]
                    entry[0] += 1
                    entry[1] += miss < 0
                    entry[2] += miss > 0
        for series, four in line.get("running", {}).items():
            looks[f"{name}|{series}|{half}"].append(four)
    ever = {}
    for cell, lines in sorted(looks.items()):
        worst_a, worst_c, most_a, most_c = np.array(lines).T
        ever[cell] = {"logs": len(lines)}
        for which, worst, most in (("A", worst_a, most_a), ("C", worst_c, most_c)):
            shown = [edge for edge in EDGES if (most >= edge).any()]
            ever[cell][which] = [int((worst >= max(edge, 1e-9)).sum()) for edge in shown]
    median = {cell: float(f"{np.median(found):.3g}") for cell, found in sorted(widths.items())}
    return {"edges": EDGES, "cells": dict(sorted(cells.items())), "median widths": median, "running": ever}


def kept(cells, which, halves, least, most=math.inf):
    """(cell, method) -> logs, misses, misses below, of logs with so many effective rewards."""
    found = defaultdict(lambda: [0, 0, 0])
    for cell, methods in cells.items():
        for method, parts in methods.items():
            for half in halves:
                for edge, (logs, below, above) in parts.get(f"{which}{half}", {}).items():
                    if least <= int(edge) < most:
                        entry = found[cell, method]
                        entry[0] += logs
                        entry[1] += below + above
                        entry[2] += below
    return found


def losing(found, promise):
    """Those significantly below the promise after correction, worst first: (share, logs, who)."""
    tests = len(found)
    lost = [
        (1 - entry[1] / entry[0], entry[0], who)
        for who, entry in found.items()
        if binom.sf(entry[1] - 1, entry[0], 1 - promise) < ERROR / tests
    ]
    return sorted(lost, key=lambda one: one[0])


def bands(cells, which, halves, threshold):
    """(logger, target, method) -> logs and misses in [T, 2T)."""
    top = next((edge for edge in EDGES if edge >= 2 * threshold), math.inf)
    found = defaultdict(lambda: [0, 0, 0])
    for (cell, method), entry in kept(cells, which, halves, threshold, top).items():
        *_, logger, target = cell.split("|")
        for place in range(3):
            found[logger, target, method][place] += entry[place]
    return found


def without_anytime(found):
    """All methods that rest on a normal approximation."""
    return {who: entry for who, entry in found.items() if who[-1] != "anytime"}


def verdict(cells, which, halves, threshold):
    """What is lost by (1) and by (2), and the share of all logs that have an interval."""
    plain = without_anytime(kept(cells, which, halves, threshold))
    near = without_anytime(bands(cells, which, halves, threshold))
    every = sum(entry[0] for entry in without_anytime(kept(cells, which, halves, 0)).values())
    return losing(plain, 0.95), losing(near, 0.93), sum(entry[0] for entry in plain.values()) / every


def ever_missed(looks, which, half, place):
    """Cells and series whose logs ever miss significantly more often than 5%, worst first."""
    chosen = {cell: found for cell, found in looks.items() if cell.endswith(f"|{half}")}
    shown = {cell: found for cell, found in chosen.items() if len(found[which]) > place}
    lost = [
        (found[which][place] / found["logs"], found["logs"], cell)
        for cell, found in shown.items()
        if binom.sf(found[which][place] - 1, found["logs"], ERROR) < ERROR / len(shown)
    ]
    return sorted(lost, reverse=True)


def chosen(numbers):
    """The statistic and the threshold that the plan's rule chooses from even seeds, and that of running values."""
    found, running = {}, {}
    for which in "AC":
        for place, threshold in enumerate(EDGES):
            cells, groups, share = verdict(numbers["cells"], which, (0,), threshold)
            if which not in found and not cells and not groups:
                found[which] = share, threshold
            if which not in running and not ever_missed(numbers["running"], which, 0, place):
                running[which] = threshold
    which = max(found, key=lambda one: found[one][0])
    return which, found[which][1], running.get(which)


def table(path):
    """Print what every threshold leaves, the choice, its judgement and the tables of docs/evaluation.md."""
    numbers = json.loads(path.read_text())
    for which in "AC":
        print(
            f"\nstatistic {which}: threshold; losing cells, losing groups, share shown on even seeds; on odd seeds"
        )
        for threshold in EDGES:
            parts = [verdict(numbers["cells"], which, (half,), threshold) for half in (0, 1)]
            print(
                f"{threshold:5}",
                *(f"  {len(cells):4} {len(near):4} {share:7.3f}" for cells, near, share in parts),
            )
        print("running values: threshold, losing cells on even seeds, on odd seeds")
        for place, threshold in enumerate(EDGES):
            print(
                f"{threshold:5}",
                *(len(ever_missed(numbers["running"], which, half, place)) for half in (0, 1)),
            )
    which, threshold, running = chosen(numbers)
    print(f"\nchosen: {which}, {threshold}; running values {running}")
    for half, name in ((0, "even"), (1, "odd")):
        cells, near, share = verdict(numbers["cells"], which, (half,), threshold)
        print(f"{name} seeds: {cells} {near}, {100 * share:.1f}% of intervals shown")
        print("running:", ever_missed(numbers["running"], which, half, EDGES.index(running)))
    print("\nlowest coverage of what is shown, both halves, at least 20 logs")
    shown = kept(numbers["cells"], which, (0, 1), threshold)
    many = {who: entry for who, entry in shown.items() if entry[0] >= 20}
    for who, entry in sorted(many.items(), key=lambda item: -item[1][1] / item[1][0])[:15]:
        print(f"  {percent(entry)} of {entry[0]}, {entry[2]} of {entry[1]} misses below", *who)
    every = kept(numbers["cells"], which, (0, 1), 0)
    share, who = max((shown[who][1] / every[who][0], who) for who in without_anytime(shown))
    print(f"\nshown and missed, as a share of all logs of a cell, at most: {100 * share:.1f}%", *who)
    bounds = {who: entry for who, entry in every.items() if who[1] == "anytime"}
    low = max(bounds, key=lambda who: bounds[who][1] / bounds[who][0])
    print(
        "lowest coverage of anytime:",
        percent(bounds[low]),
        *low,
        "; significantly below:",
        losing(bounds, 0.95),
    )
    for place in (0, EDGES.index(running)):
        pooled = defaultdict(lambda: [0, 0])
        for cell, found in numbers["running"].items():
            if len(found[which]) > place:
                pooled[cell.rpartition("|")[0]][0] += found[which][place]
                pooled[cell.rpartition("|")[0]][1] += found["logs"]
        worst = sorted(((missed / logs, logs, cell) for cell, (missed, logs) in pooled.items()), reverse=True)
        print(f"running values from {EDGES[place]} on, share of logs that ever miss:", worst[:4])
    print("\nand of groups with a count in [T, 2T)")
    near = without_anytime(bands(numbers["cells"], which, (0, 1), threshold))
    for who, entry in sorted(near.items(), key=lambda item: -item[1][1] / item[1][0])[:8]:
        print(f"  {percent(entry)} of {entry[0]}", *who)
    print("\n".join(page_table(numbers, threshold)))
    print("\n".join(page_table(numbers, threshold, FIXED, FIXED_METHODS, (2000,))))


def percent(entry):
    """The coverage."""
    return f"{100 * (1 - entry[1] / entry[0]):.1f}%"


def page_table(numbers, threshold, loggers=tuple(LEARNING), methods=("cadr",), sizes=ROWS):
    """Rows of docs/evaluation.md: by base rate and rows, coverage over all logs and of those that are shown."""
    cells = {
        cell: found
        for cell, found in numbers["cells"].items()
        if cell.split("|")[0] == "click" and cell.split("|")[3] == "4" and cell.split("|")[4] in loggers
    }
    every, shown = (kept(cells, "C", (0, 1), least) for least in (0, threshold))
    lines = []
    for rate in RATES:
        for rows in sizes:

            def here(found, which, rate=rate, rows=rows):
                return [
                    entry
                    for (cell, method), entry in found.items()
                    if cell.startswith(f"click|{rate}|{rows}|") and method in which
                ]

            def worst(entries, least=20):
                many = [entry for entry in entries if entry[0] >= least]
                return percent(min(many, key=lambda entry: 1 - entry[1] / entry[0])) if many else "–"

            def pooled(entries):
                total = np.sum(entries, axis=0) if entries else [0]
                return percent(total) if total[0] else "–"

            before, after = here(every, methods), here(shown, methods)
            if not before:
                continue
            share = sum(entry[0] for entry in after) / sum(entry[0] for entry in before)
            lines.append(
                f"| {100 * rate:g}% | {rows:,} | {pooled(before)} | {worst(before)} | {100 * share:.0f}% | "
                f"{pooled(after)} | {worst(after)} |"
            )
    return lines


def main():
    """Play, sum up, or print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--play", type=Path)
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--sum", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    if given.play:
        play(given.play, given.minutes)
    if given.sum:
        given.json.write_text(json.dumps(summed(given.sum), separators=(",", ":")) + "\n")
    if given.table:
        table(given.table)


if __name__ == "__main__":
    main()
