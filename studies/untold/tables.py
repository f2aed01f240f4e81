"""Tables of the study (plan.md) from what was played: the judgement, families, and cells with simultaneous intervals.

Usage: python studies/untold/tables.py [--second] [--out FOLDER]
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from measure import BAD, FOLDER, compare, paired, regrets_of
from players import CONTROL, LINTS, OURS
from scipy import stats
from sides import FRESH, HELD_OUT, LOW_NOISE, OFFSET, SECOND_HELD_OUT

RESAMPLES, LEVEL = 2_000, 0.95
MEAN_TARGET, LOUDER_TARGET = 0.60, 0.68
"""Of the geometric mean of R, with and without the low-noise kind."""
FRESH_ALLOWANCE, OFFSET_ALLOWANCE, TAIL_ALLOWANCE = 1.05, 1.3, 1.1
FRESH_HORIZONS = (1_000, 10_000)
LONG = 1_000_000
FAMILIES = HELD_OUT | SECOND_HELD_OUT
ROUNDS = {
    False: ("held_out.jsonl", "held_out_20.jsonl", "untold", ("toy-H", "random-H")),
    True: ("second_held_out.jsonl", "second_held_out.jsonl", "untold-second", ("toy-K", "random-K")),
}
"""Whether it is the second -> cells, long runs where those have none, names of tables, families of the long runs."""


class Interval(NamedTuple):
    """An estimate with its interval."""

    value: float
    low: float
    high: float

    def __str__(self):
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def ratio_interval(ours, theirs, level):
    """Of a ratio of mean regrets on paired runs: Student's interval of its logarithm by the delta method."""
    ours, theirs = paired(ours, theirs)
    ratio = ours.mean() / theirs.mean()
    parts = ours / ours.mean() - theirs / theirs.mean()
    error = parts.std(ddof=1) / np.sqrt(len(parts))
    reach = stats.t.ppf((1 + level) / 2, len(parts) - 1) * error
    return Interval(ratio, ratio * np.exp(-reach), ratio * np.exp(reach))


def tail_interval(ours, theirs, level, seed=0):
    """Of a ratio of 95th percentiles, by resampling runs in pairs."""
    ours, theirs = paired(ours, theirs)
    rng = np.random.default_rng(seed)
    picks = rng.integers(len(ours), size=(RESAMPLES, len(ours)))
    ratios = np.quantile(ours[picks], 0.95, axis=1) / np.quantile(theirs[picks], 0.95, axis=1)
    low, high = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(np.quantile(ours, 0.95) / np.quantile(theirs, 0.95)), float(low), float(high))


def weights_by_kind(cells):
    """Every kind weighs the same, within it every family, within it every horizon."""
    kinds = {}
    for family, horizon in cells:
        kinds.setdefault(FAMILIES[family].kind, {}).setdefault(family, []).append(horizon)
    return np.array(
        [
            1 / (len(kinds) * len(kinds[FAMILIES[family].kind]) * len(kinds[FAMILIES[family].kind][family]))
            for family, _ in cells
        ]
    )


def mean_interval(regrets, label, against, cells, weights, seed=0):
    """Of the geometric mean of ratios of mean regrets: runs resampled, the same ones for both policies of a cell."""
    rng, values, spread = np.random.default_rng(seed), [], []
    for family, horizon in cells:
        ours, theirs = paired(regrets[label, family, horizon], regrets[against, family, horizon])
        picks = rng.integers(len(ours), size=(RESAMPLES, len(ours)))
        values.append(np.log(ours.mean() / theirs.mean()))
        spread.append(np.log(ours[picks].mean(axis=1) / theirs[picks].mean(axis=1)))
    low, high = np.quantile(weights @ np.array(spread), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(*(float(np.exp(value)) for value in (weights @ np.array(values), low, high)))


def cells_of(regrets, label, against=LINTS):
    """(family, horizon) of the cells that both have played, the long ones apart."""
    return [
        (family, horizon)
        for name, family, horizon in regrets
        if name == label and horizon < LONG and (against, family, horizon) in regrets
    ]


def summary(regrets):
    """Lines on every policy: geometric means of R by kind and by cell, stuck runs, largest R and Q."""
    lines = [
        "| policy | cells | R, kinds weighing the same | without low noise | R, plain mean of cells "
        "| largest R | largest Q | stuck runs | of LinTS |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for label in dict.fromkeys(name for name, _, _ in regrets):
        cells = cells_of(regrets, label)
        if not cells or label == LINTS:
            continue
        louder = [cell for cell in cells if FAMILIES[cell[0]].kind != LOW_NOISE]
        every = [compare(regrets[label, *cell], regrets[LINTS, *cell]) for cell in cells]
        runs = [len(paired(regrets[label, *cell], regrets[LINTS, *cell])[0]) for cell in cells]
        stuck = sum(round(one.stuck * n) for one, n in zip(every, runs, strict=True))
        theirs = sum(round(one.lints_stuck * n) for one, n in zip(every, runs, strict=True))
        plain = np.full(len(cells), 1 / len(cells))
        lines.append(
            f"| {label} | {len(cells)} | {mean_interval(regrets, label, LINTS, cells, weights_by_kind(cells))} | "
            f"{mean_interval(regrets, label, LINTS, louder, weights_by_kind(louder))} | "
            f"{mean_interval(regrets, label, LINTS, cells, plain)} | {max(one.ratio for one in every):.2f} | "
            f"{max(one.tail for one in every):.2f} | {stuck} | {theirs} |"
        )
    return lines


def every_cell(regrets):
    """Mean regrets of all policies in every cell, and R and Q of ours with simultaneous intervals."""
    labels = list(dict.fromkeys(name for name, _, _ in regrets))
    cells = cells_of(regrets, OURS)
    level = 1 - (1 - LEVEL) / max(len(cells), 1)
    lines = [
        "| family | horizon | " + " | ".join(labels) + " | R | Q |",
        "|---|---|" + "---|" * (len(labels) + 2),
    ]
    for family, horizon in cells:
        ours, theirs = regrets[OURS, family, horizon], regrets[LINTS, family, horizon]
        means = [
            f"{regrets[label, family, horizon].mean():.3g}" if (label, family, horizon) in regrets else ""
            for label in labels
        ]
        lines.append(
            f"| {family} | {horizon:,} | {' | '.join(means)} | {ratio_interval(ours, theirs, level)} | "
            f"{tail_interval(ours, theirs, level)} |"
        )
    return lines


class Row(NamedTuple):
    """One condition of the plan."""

    asked: str
    came_out: str
    met: bool | None
    """None where it was not played."""

    def __str__(self):
        words = {True: "met", False: "not met", None: "not played"}
        return f"| {self.asked} | {self.came_out} | {words[self.met]} |"


def judgement(regrets, few, long_families):
    """The conditions of the plan, each with what came out; `few` has the long runs where they are not all played."""
    cells = cells_of(regrets, OURS)
    level = 1 - (1 - LEVEL) / max(len(cells), 1)
    both = {cell: (regrets[OURS, *cell], regrets[LINTS, *cell]) for cell in cells}
    worse = [cell for cell, pair in both.items() if ratio_interval(*pair, level).low > 1]
    tails = [cell for cell, pair in both.items() if tail_interval(*pair, level).low > TAIL_ALLOWANCE]
    rows = [
        *_means(regrets, cells),
        Row("3. no R above 1 (simultaneous intervals)", _named(worse), not worse),
        Row("3. no Q above 1.1 (simultaneous intervals)", _named(tails), not tails),
        _stuck(both),
        _fresh(regrets),
        _offset(regrets),
        *(_long(regrets, few, family) for family in long_families),
    ]
    return ["| asked | came out | |", "|---|---|---|", *map(str, rows)]


def _means(regrets, cells):
    louder = [cell for cell in cells if FAMILIES[cell[0]].kind != LOW_NOISE]
    rows = []
    for words, some, target in (("", cells, MEAN_TARGET), (" without low noise", louder, LOUDER_TARGET)):
        found = mean_interval(regrets, OURS, LINTS, some, weights_by_kind(some))
        rows.append(Row(f"1. R{words} at most {target:.2f}", str(found), found.value <= target))
    fair = cells_of(regrets, OURS, CONTROL)
    found = mean_interval(regrets, OURS, CONTROL, fair, weights_by_kind(fair))
    return [
        *rows,
        Row("2. against LinTS by evidence below 1, beyond the interval", str(found), found.high < 1),
    ]


def _stuck(both):
    """Stuck runs of each family, over its horizons."""
    ours, theirs = {}, {}
    for (family, _), (mine, lints) in both.items():
        limit = BAD * np.median(lints)
        ours[family] = ours.get(family, 0) + int((mine > limit).sum())
        theirs[family] = theirs.get(family, 0) + int((lints > limit).sum())
    more = [
        f"{family} ({count} against {theirs[family]})"
        for family, count in ours.items()
        if count > theirs[family]
    ]
    return Row(
        "4. no more stuck runs than LinTS in any family",
        f"{sum(ours.values())} against {sum(theirs.values())} in all; more in: {', '.join(more) or 'none'}",
        not more,
    )


def _named(cells):
    return ", ".join(f"{family} {horizon:,}" for family, horizon in cells) or "none"


def _fresh(regrets):
    rivals = ("Greedy", LINTS, "LinUCB", "LinUCB (tuned)")
    found = []
    for family, horizon in cells_of(regrets, OURS):
        theirs = [regrets[name, family, horizon] for name in rivals if (name, family, horizon) in regrets]
        if FAMILIES[family].kind == FRESH and horizon in FRESH_HORIZONS:
            best = min(theirs, key=np.mean)
            found.append((ratio_interval(regrets[OURS, family, horizon], best, LEVEL), family, horizon))
    words = "5. never twice: to the best of Greedy, LinTS and LinUCB at most 1.05, the largest"
    return _largest(words, found, FRESH_ALLOWANCE)


def _offset(regrets):
    found = []
    for family, horizon in cells_of(regrets, OURS):
        base = FAMILIES[family].base
        if FAMILIES[family].kind == OFFSET and (OURS, base, horizon) in regrets:
            pair = regrets[OURS, family, horizon], regrets[OURS, base, horizon]
            found.append((ratio_interval(*pair, LEVEL), family, horizon))
    words = "6. uncentred: to the same without the offset at most 1.3, the largest"
    return _largest(words, found, OFFSET_ALLOWANCE)


def _largest(words, found, allowance):
    if not found:
        return Row(words, "", None)
    interval, family, horizon = max(found, key=lambda one: one[0].value)
    return Row(words, f"{interval}, {family} {horizon:,}", interval.value <= allowance)


def _long(regrets, few, family):
    """R at 10⁶ steps, and slopes over the last decade: these runs begin with those of the cell at 10⁵."""
    words = f"7. {family}, 10⁶ steps: R below 1, slope per unit of log n not above that of LinTS"
    wanted = {(label, family, horizon) for label in (OURS, LINTS) for horizon in (LONG, LONG // 10)}
    played = next((some for some in (regrets, few) if wanted <= set(some)), None)
    if played is None:
        return Row(words, "", None)
    (ours, ours_before), (theirs, theirs_before) = (
        (played[label, family, LONG], played[label, family, LONG // 10]) for label in (OURS, LINTS)
    )
    ratio = ratio_interval(ours, theirs, LEVEL)
    mine, lints = (
        (after - before) / np.log(10) for after, before in ((ours, ours_before), (theirs, theirs_before))
    )
    reach = stats.t.ppf((1 + LEVEL) / 2, len(mine) - 1) * (mine - lints).std(ddof=1) / np.sqrt(len(mine))
    gap = (mine - lints).mean()
    return Row(
        words,
        f"{len(ours)} runs: R {ratio}; slopes {mine.mean():.3g} and {lints.mean():.3g}, "
        f"difference {gap:.2g} [{gap - reach:.2g}, {gap + reach:.2g}]",
        bool(ratio.value < 1 and gap <= 0),
    )


def main():
    """Print the tables, and write them where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--second", action="store_true", help="the second round's")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    *files, prefix, long_families = ROUNDS[asked.second]
    regrets, few = (
        {tuple(cell): values for cell, values in regrets_of(FOLDER / name).items()} for name in files
    )
    tables = {
        "judgement": judgement(regrets, few, long_families),
        "summary": summary(regrets),
        "cells": every_cell(regrets),
    }
    for name, lines in tables.items():
        print("\n".join(lines), end="\n\n")
        if asked.out:
            (asked.out / f"{prefix}-{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
