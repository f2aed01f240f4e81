"""Jester at the paper's horizon: figure, table and verdicts from the runs that are finished, however many.

Usage: python studies/jester/judge.py [RUNS.jsonl] [DOCS]

Writes DOCS/_tables/jester.md and DOCS/_static/jester-full.png; docs/jester.md and docs/reproduction.md have them.
Every line counts in the table and the figure. Verdicts are run by run: on the runs that all policies compared have.
"""

import json
import sys
import tomllib
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.ticker import MultipleLocator
from msgspec import convert

from solid_bandits._internal.wording import count, duration, plus_minus
from solid_bandits.paper.judging import judge
from solid_bandits.paper.outcome import Answer, Claim, Outcome
from solid_bandits.report.figure import regret_figure, save_figure
from solid_bandits.simulation.results import Results
from solid_bandits.simulation.table_format import COLUMNS
from solid_bandits.statistics.intervals import student
from solid_bandits.statistics.metrics import slope

HERE = Path(__file__).parent
PAPER = 100
"""Runs of the paper."""
SOLID = "SOLID"
FIGURE = "_static/jester-full.png"
ASYMPTOTIC = (
    "**What the refutation does not say.** The paper's sentence is asymptotic: it is about regret as n grows without "
    "limit. The rule judges it at the horizon of the paper's experiment, which is too short for it: of the "
    "ten problems examined in docs/jester.md the least z_min is 8.9 million steps, more than four "
    "times the 2 million played. A slope that still grows there does not refute the asymptotic statement."
)
"""Beside the verdict on the second sentence."""


def lines_of(path):
    """Every finished run; a (policy, run) that is there twice counts once, and must be the same twice."""
    found = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        key = line["policy"], line["run"]
        if key in found and found[key]["regret"] != line["regret"]:
            raise ValueError(f"{path} has two different lines for {key[0]}, run {key[1]}")
        found.setdefault(key, line)
    if not found:
        raise ValueError(f"{path} has no finished run")
    return list(found.values())


def results_of(lines, names):
    """Results of some policies, label in the file -> label here."""
    frames = [
        pl.DataFrame(
            {
                "policy": [names[line["policy"]]] * len(line["steps"]),
                "run": [line["run"]] * len(line["steps"]),
                "step": line["steps"],
                "regret": line["regret"],
                "explored": line["explored"],
            },
            schema=COLUMNS,
        )
        for line in lines
        if line["policy"] in names
    ]
    configuration = {
        "policies": {label: {} for label in names.values()},
        "horizon": lines[0]["horizon"],
        "runs": max(line["run"] for line in lines) + 1,
        "seed": lines[0]["seed"],
    }
    return Results(pl.concat(frames), {"configuration": configuration})


def paired(lines, labels):
    """The lines of the runs that all of these policies have."""
    runs = [{line["run"] for line in lines if line["policy"] == label} for label in labels]
    common = set.intersection(*runs)
    return [line for line in lines if line["policy"] in labels and line["run"] in common], len(common)


def claims_of():
    """The sentences of the paper."""
    content = tomllib.loads((files("solid_bandits.paper") / "jester.toml").read_text(encoding="utf-8"))
    return [convert(table, Claim) for table in content["claim"]]


def readings_of(lines):
    """The readings of SOLID that were played: label -> reading."""
    labels = dict.fromkeys(line["policy"] for line in lines)
    return {label: label.split(", ")[1] for label in labels if label.startswith(f"{SOLID}, ")}


def judgements(lines, readings):
    """Claim, reading, number of runs and verdict, which is None where there are too few runs."""
    there = {line["policy"] for line in lines}
    for claim in claims_of():
        for label, reading in readings.items():
            others = [other for other in (*claim.against, *claim.beside, "RandUCB") if other in there]
            if not set(claim.against) <= there:
                continue
            kept, runs = paired(lines, [label, *others])
            beside = tuple(other for other in others if other not in claim.against)
            if not kept or runs < 2:
                yield claim, reading, runs, None
                continue
            here = results_of(kept, {label: SOLID, **{other: other for other in others}})
            yield claim, reading, runs, judge(replace(claim, beside=beside), {"Jester": here})


def verdicts(lines, readings):
    """Sentence by sentence and reading by reading: rows of a table."""
    rows = []
    for claim, reading, runs, found in judgements(lines, readings):
        text = claim.text.replace("*", r"\*")
        if found is None:
            rows.append([text, reading, "too few runs", ""])
            continue
        numbers = []
        for one in found.comparisons:
            value, low, high = one.estimate
            half = None if low is None else (high - low) / 2
            mark = "" if one.counted else " (beside)"
            numbers.append(f"{one.what.removesuffix(', Jester')}: {plus_minus(value, half, '+')}{mark}")
        answer = f"**{found.answer}**"
        if claim.rule == "slowing" and found.answer is Answer.REFUTED:
            answer += " at this horizon"
        rows.append([text, f"{reading}, {count(runs, 'run')}", answer, "<br>".join(numbers)])
    return rows


def outcome(lines):
    """The verdicts as those of the other experiments, for the page that has them all."""
    readings = readings_of(lines)
    found = [
        replace(verdict, claim=claim, reading=reading)
        for claim, reading, _, verdict in judgements(lines, readings)
        if verdict is not None
    ]
    return Outcome("jester", "Jester", "", "paper", {}, tuple(found), readings=tuple(readings.values()))


def standing(lines, label):
    """A row of the table on policies."""
    own = [line for line in lines if line["policy"] == label]
    regret = student(np.array([line["regret"][-1] for line in own]))
    share = np.mean([line["explored"][-1] / line["horizon"] for line in own])
    seconds = np.array([line["seconds"] for line in own])
    slopes = slope(results_of(own, {label: label}), label, 1.0)
    grows = student(slopes) if slopes is not None else None
    half = None if regret.low is None else (regret.high - regret.low) / 2
    grows_half = None if grows is None or grows.low is None else (grows.high - grows.low) / 2
    return [
        label,
        len(own),
        plus_minus(regret.value, half),
        "" if grows is None else plus_minus(grows.value, grows_half),
        f"{share:.1%}",
        duration(float(seconds.mean())),
        duration(float(seconds.sum())),
    ]


def table(heads, rows):
    """Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def fragment(lines):
    """What the pages show."""
    labels = list(dict.fromkeys(line["policy"] for line in lines))
    readings = readings_of(lines)
    rows = sorted((standing(lines, label) for label in labels), key=lambda row: mean(lines, row[0]))
    codes = {json.dumps(line["made_by"], sort_keys=True) for line in lines}
    horizon = lines[0]["horizon"]
    least, most = (pick(row[1] for row in rows) for pick in (min, max))
    runs = f"{least}" if least == most else f"{least} to {most}"
    hours = sum(line["seconds"] for line in lines)
    return "\n\n".join(
        [
            f"{runs} runs of each policy are finished (the paper has {PAPER}), {horizon:,} steps each, a new draw of "
            "191 users in each run; regret and slope (per unit of log t over the last decade) with 95% Student "
            f"intervals over runs. All lines took {duration(hours)} of CPU time; {count(len(codes), 'state')} of "
            "the code made them. SOLID has the parameters of the random problems, RandUCB the ridge of 0.2 that it had "
            "when the plan was committed.",
            table(
                ["policy", "runs", "regret", "slope", "exploring rounds", "CPU, a run", "CPU, all runs"], rows
            ),
            f"![Mean cumulative regret on Jester, {horizon:,} steps]({FIGURE})",
            "The paper's sentences on it, judged run by run on the runs that all policies compared have; the intervals "
            "that count hold together at 95%:",
            table(["sentence", "reading", "verdict", "numbers"], verdicts(lines, readings)),
            *alike(lines, list(readings)),
            "In every one of these problems that was solved v\\* = 0: the best jokes of 191 users span all features, "
            "so no logarithmic regret is forced on anyone, and SOLID's is to end sub-logarithmic. The second sentence "
            "asks whether it does so within the paper's horizon: a slope that grows from decade to decade is regret "
            "that grows faster than log t.",
            ASYMPTOTIC,
        ]
    )


def alike(lines, labels):
    """Runs that SOLID plays in the same way under two readings: λ is at 0 under both, and the readings are one."""
    found = []
    for place, one in enumerate(labels):
        for two in labels[place + 1 :]:
            kept, runs = paired(lines, [one, two])
            curves = {(line["policy"], line["run"]): line["regret"] for line in kept}
            same = sum(curves[key] == curves.get((two, key[1])) for key in curves if key[0] == one)
            found.append(
                f"In {same} of {count(runs, 'run')} {one} and {two} have the same regret to the last digit."
            )
    return found


def mean(lines, label):
    """Mean regret at the end."""
    return float(np.mean([line["regret"][-1] for line in lines if line["policy"] == label]))


def main():
    """Read, judge, draw and write."""
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "runs.jsonl"
    docs = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE.parents[1] / "docs"
    lines = lines_of(source)
    (docs / "_tables" / "jester.md").write_text(fragment(lines) + "\n", encoding="utf-8")
    labels = sorted({line["policy"] for line in lines}, key=lambda label: mean(lines, label))
    results = results_of(lines, {label: label for label in labels})
    figure = regret_figure(results, title="Jester")
    figure.axes[0].xaxis.set_major_locator(MultipleLocator(500_000))
    save_figure(figure, docs / FIGURE)


if __name__ == "__main__":
    main()
