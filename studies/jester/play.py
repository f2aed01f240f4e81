"""Jester at the paper's horizon: plays the runs that are missing, one line each. `plan.md` says what and why.

Usage: SOLID_BANDITS_DATA=FOLDER python studies/jester/play.py [--runs 20] [--jobs 1] [--policy LABEL ...]

A run takes from half a minute to some minutes of one core. Stopped at any time, it goes on with the runs that are not
in runs.jsonl: on any machine, in any clone.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import solid_bandits as sb
from solid_bandits.core.loop import checkpoints, play
from solid_bandits.paper.reader import load
from solid_bandits.simulation.workers import Processes, Task, identity

FILE = Path(__file__).with_name("runs.jsonl")
CHECKPOINTS = 60
N_ARMS = 40
PAPER = sb.Solid.paper_random(N_ARMS)
POLICIES = {
    "SOLID, theorem": replace(PAPER, bonus="theorem"),
    "SOLID, local": replace(PAPER, bonus="local"),  # what the rule chose
    "LinUCB": sb.LinUCB(radius="paper"),
    "LinTS (paper)": sb.LinTS(scale="paper"),
    "LinTS (posterior)": sb.LinTS(),
    "RandUCB": sb.RandUCB(temperature=0.5, growth=0.2, ridge=0.2),  # the default when the plan was committed
}


def finished():
    """(policy, run) of every line."""
    if not FILE.exists():
        return set()
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return {(line["policy"], line["run"]) for line in map(json.loads, lines)}


def play_run(problem_of, policy, horizon, seed, run):
    """One run: what its line says."""
    problem = problem_of(run)
    play(problem, policy, 1, seed, run, checkpoints(1))  # compiled before the clock starts
    start = time.thread_time()
    trace = play(problem, policy, horizon, seed, run, checkpoints(horizon, CHECKPOINTS))
    return {
        "horizon": horizon,
        "seed": seed,
        "seconds": round(time.thread_time() - start, 1),
        "steps": trace.steps.tolist(),
        "regret": [float(f"{value:.7g}") for value in trace.regret],
        "explored": trace.explored.tolist(),
        "made_by": identity(),
    }


def main():
    """Play what is missing, run by run: all policies have as many runs, whenever it is stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--policy", action="append", choices=list(POLICIES))
    arguments = parser.parse_args()
    plan = load("jester", "paper").parts[0].plan
    done = finished()
    tasks = [
        Task((label, run), play_run, (plan.problem_of, POLICIES[label], plan.horizon, plan.seed, run))
        for run in range(arguments.runs)
        for label in arguments.policy or POLICIES
        if (label, run) not in done
    ]
    print(f"{len(tasks)} runs to play")
    for (label, run), line in Processes(arguments.jobs).do(tasks):
        with FILE.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"policy": label, "run": run, **line}) + "\n")
        print(f"{label}, run {run}: regret {line['regret'][-1]:.0f}, {line['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
