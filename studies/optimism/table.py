"""When exploration has to be bought: the tables of the pages, from the runs that are finished.

Usage: python studies/optimism/table.py [RUNS.jsonl] [DOCS]

Writes DOCS/_tables/end-of-optimism.md (the experiment's claims at their horizon; docs/reproduction.md and
docs/rivals.md have it) and DOCS/_tables/bought.md (docs/bought.md has it).
"""

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from cells import (
    CONTEXTUAL,
    EMBEDDED,
    FAR,
    GAPS,
    INFORMATIVE,
    LONG,
    LONGEST,
    PROBLEMS,
    RUNS,
    SLOW,
    TOY,
    cells,
)
from played import FILE, cells_of, lines_of, linucb_without_noise

import solid_bandits as sb
from solid_bandits._internal.wording import ABSENT
from solid_bandits.paper.judging import judge
from solid_bandits.paper.outcome import Answer
from solid_bandits.paper.reader import load
from solid_bandits.paper.readings import READINGS
from solid_bandits.paper.report.markdown import escaped, plus_minus, with_interval
from solid_bandits.simulation.results import Results
from solid_bandits.simulation.table_format import COLUMNS
from solid_bandits.statistics.intervals import student

SOLID = "SOLID (toy)"
"""The experiment's name of the SOLID that the claims speak of."""
LABELS = {reading: f"SOLID, {reading}" for reading in READINGS}
"""Reading -> the label in the file."""
CLAIMED = (*LABELS.values(), "AO-IDS", "SPL", "LinUCB", "LinTS (posterior)", "LinTS (paper)", "RandUCB")
"""Policies that stand beside the experiment's claims."""
SHOWN = (100_000, 300_000, 1_000_000, LONG)
BOUND = 8
"""v*, for ξ <= 0.1: the certified brackets are in docs/reproduction.md."""
LAST = 4
"""The claims up to this one are on regret; the fifth is on the lower bound alone."""
TWO = ("ξ = 0.01", "ξ = 0.1")
"""The experiment's problems."""


def table(heads, rows, right=()):
    """Write a pipe table of cells that are Markdown already; the columns `right` hold numbers."""
    rules = ["---:" if place in right else "---" for place in range(len(heads))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rules, *rows))


def played_by(played, problem, horizon, among=None):
    """Return the cells of one problem to one horizon, the least regret at the end first; all have every run."""
    here = [
        one
        for (name, policy, steps), one in played.items()
        if name == problem and steps == horizon and (among is None or policy in among) and one.runs == RUNS
    ]
    return sorted(here, key=lambda one: one.last.mean())


def regret_table(played, problem, among=None, horizon=LONG, shown=SHOWN):
    """Write mean regret at some checkpoints, and the pulls of the arm that informs at the last."""
    rows = [
        [
            escaped(one.policy),
            *(plus_minus(student(one.at(step))) for step in shown),
            f"{one.informative[:, -1].mean():,.0f}",
        ]
        for one in played_by(played, problem, horizon, among)
    ]
    heads = ["", *(f"{step:,} steps" for step in shown), "pulls of the informative arm"]
    return table(heads, rows, right=range(1, len(heads)))


def results_of(played, problem, names):
    """Return results of some policies on one problem, label in the file -> label here."""
    frames = []
    for label, name in names.items():
        one = played.get((problem, label, LONG))
        if one is not None:
            runs, steps = one.regret.shape
            columns = {
                "policy": [name] * runs * steps,
                "run": np.repeat(np.arange(runs), steps),
                "step": np.tile(one.steps, runs),
                "regret": one.regret.reshape(-1),
                "explored": np.zeros(runs * steps, dtype=np.int64),  # these claims do not ask
            }
            frames.append(pl.DataFrame(columns, schema=COLUMNS))
    found = list(dict.fromkeys(frame["policy"][0] for frame in frames))
    configuration = {"policies": {name: {} for name in found}, "horizon": LONG, "runs": RUNS, "seed": 0}
    return Results(pl.concat(frames), {"configuration": configuration})


def judged(played):
    """Rows: a claim of the experiment, a reading, and what its rule says to these runs."""
    experiment = load("end-of-optimism", "paper")
    others = {policy for _, policy, _ in played} - set(LABELS.values())
    for place, claim in enumerate(experiment.claims[:LAST], start=1):
        readings = LABELS if SOLID in (*claim.policies, *claim.against) else {"": LABELS["local"]}
        text = f"{place}: {escaped(claim.text)}"
        for reading, label in readings.items():
            names = {label: SOLID} | {other: other for other in others}
            parts = {part.label: results_of(played, part.label, names) for part in experiment.parts}
            verdict = judge(replace(claim, beside=()), parts)
            numbers = "<br>".join(
                f"{escaped(one.what)}: {with_interval(one.estimate)}" for one in verdict.comparisons
            )
            decided = verdict.answer in (Answer.CONFIRMED, Answer.REFUTED)
            yield [text, reading, numbers, f"**{verdict.words}**" if decided else verdict.words]
            text = ""  # said once


def own_pulls(horizon):
    """Pulls of e₂ at which SOLID's test passes at the horizon: Δ²/‖φ*-φ‖² is N/4 at the third arm, and d is 2."""
    return 4 * (math.log(horizon) + 2 * math.log(math.log(horizon)))


def claims_fragment(played):
    """Write what stands below the experiment's own claims."""
    blocks = [
        f"**Played on to {LONG:,} steps** by `studies/optimism/play.py`: mean regret of {RUNS} runs with "
        "95% Student intervals, SOLID with the toy's parameters under its four readings. RandUCB is not part of the "
        "experiment. Every policy is told σ. SOLID, AO-IDS and SPL are told the horizon too, as their thresholds have "
        "log log n: their first column does not repeat the experiment. More policies, problems and steps are in "
        "[When exploration has to be bought](bought.md).",
    ]
    for problem in TWO:
        blocks += [f"{escaped(problem)}:", regret_table(played, problem, CLAIMED)]
    blocks += [
        "The threshold of the first three, as in all experiments, lacks the factor 2 of the theory: SOLID's test "
        f"passes once e₂ has been pulled about 4 (log n + 2 log log n) = {own_pulls(LONG):.0f} times, while v\\* log n "
        f"= {BOUND * math.log(LONG):.0f}. A regret below v\\* log n is therefore no evidence of asymptotic "
        f"optimality: what these forms promise is v\\*/2 = {BOUND / 2:.0f} per unit of log n, not v\\* = {BOUND}.",
        f"The experiment's claims on regret, by the same rules, at {LONG:,} steps:",
        table(["claim", "reading", "numbers at the last step", "verdict"], list(judged(played))),
    ]
    return "\n\n".join(blocks)


def wanted_pulls(problem, horizon):
    """η* log n of the arm that informs."""
    found = sb.bounds.lower_bound(PROBLEMS[problem])
    return found.allocation[INFORMATIVE.get(problem, (0, 0))] * math.log(horizon)


def far_table(played, problem):
    """Write the five policies that were played furthest."""
    shown = (LONG, LONGEST)
    rows = [
        [
            escaped(one.policy),
            *(plus_minus(student(one.at(step))) for step in shown),
            f"{one.informative[:, -1].mean():,.0f}",
        ]
        for one in played_by(played, problem, LONGEST, FAR)
    ]
    return table(["", *(f"{step:,} steps" for step in shown), "pulls of e₂"], rows, right=range(1, 4))


def ratios_table(played):
    """Write every policy's regret over that of SOLID `local`, problem by problem."""
    problems = [f"ξ = {xi}" for xi in sorted(GAPS)] + [EMBEDDED, CONTEXTUAL, TOY]
    problems = [name for name in problems if played_by(played, name, LONG, [LABELS["local"]])]
    labels = dict.fromkeys(
        cell.policy for cell in cells() if cell.horizon == LONG and cell.policy not in SLOW
    )
    rows = []
    for label in labels:
        row = [escaped(label)]
        for name in problems:
            one, base = (played.get((name, policy, LONG)) for policy in (label, LABELS["local"]))
            whole = one is not None and base is not None and one.runs == base.runs == RUNS
            row.append(f"{one.last.mean() / base.last.mean():.2f}" if whole else ABSENT)
        if set(row[1:]) != {ABSENT}:
            rows.append(row)
    regret = ["*regret of SOLID, local*"]
    regret += [plus_minus(student(played[name, LABELS["local"], LONG].last)) for name in problems]
    return table(["", *map(escaped, problems)], [regret, *rows], right=range(1, len(problems) + 1))


def slow_table(played):
    """Write the policies that were not played to the end, at the horizons that they reached."""
    rows = []
    for name in (f"ξ = {xi}" for xi in GAPS):
        reached = sorted({horizon for problem, _, horizon in played if problem == name and horizon < LONG})
        for horizon in reached:
            for one in played_by(played, name, horizon):
                pulls = f"{one.informative[:, -1].mean():,.0f}"
                rows.append(
                    [escaped(name), escaped(one.policy), f"{horizon:,}", plus_minus(student(one.last)), pulls]
                )
    for label in (*SLOW, "OSSB", "SOLID, theory"):
        one = played.get((TWO[0], label, LONG))
        if one is not None and one.runs == RUNS:
            pulls = f"{one.informative[:, -1].mean():,.0f}"
            rows.append([escaped(TWO[0]), escaped(label), f"{LONG:,}", plus_minus(student(one.last)), pulls])
    return table(["", "", "steps", "regret", "pulls of e₂"], rows, right=range(2, 5)) if rows else ""


def prediction_table(played):
    """Write LinUCB's regret beside what it would be without noise."""
    rows = []
    for name, xi in (("ξ = 0.01", 0.01), ("ξ = 0.1", 0.1)):
        one = played[name, "LinUCB", LONG]
        rows.append([escaped(name), *(f"{value:,.0f}" for value in linucb_without_noise(xi, SHOWN))])
        rows.append(["measured", *(plus_minus(student(one.at(step))) for step in SHOWN)])
    return table(["LinUCB", *(f"{step:,} steps" for step in SHOWN)], rows, right=range(1, 5))


def missing(played):
    """Say which cells of the plan are not finished."""
    found = {}
    for cell in cells():
        one = played.get((cell.problem, cell.policy, cell.horizon))
        if one is None or one.runs < RUNS:
            found.setdefault(f"{cell.problem}, {cell.horizon:,} steps", []).append(cell.policy)
    if not found:
        return "Every cell of the plan was played."
    words = "; ".join(f"{where}: {', '.join(policies)}" for where, policies in found.items())
    return f"Of the plan, not finished and left out: {escaped(words)}."


def fragment(played):
    """Write what the page of the study shows."""
    blocks = [
        f"Regret at {LONG:,} steps ({RUNS} runs) over that of SOLID in the reading `local`; below 1 is better:",
        ratios_table(played),
        "Mean regret on the way at ξ = 0.01, ± 95%; η\\* log n asks for "
        f"{wanted_pulls(TWO[0], LONG):.0f} pulls of e₂ at the last step:",
        regret_table(played, TWO[0]),
        "at ξ = 0.1:",
        regret_table(played, TWO[1]),
    ]
    if far := [problem for problem in TWO if played_by(played, problem, LONGEST, FAR)]:
        blocks.append(f"To {LONGEST:,} steps (a run of its own, since thresholds depend on the horizon):")
        for problem in far:
            blocks += [f"{escaped(problem)}:", far_table(played, problem)]
    if slow := slow_table(played):
        blocks += ["Policies that take seconds or minutes a run, at the horizons that they reached:", slow]
    blocks += [
        "LinUCB's regret can be predicted without a run: it is what it would be if every reward were its mean.",
        prediction_table(played),
        missing(played),
    ]
    return "\n\n".join(blocks)


def main():
    """Read and write."""
    played = cells_of(lines_of(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE))
    docs = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parents[2] / "docs"
    for name, text in (("end-of-optimism", claims_fragment(played)), ("bought", fragment(played))):
        (docs / "_tables" / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
