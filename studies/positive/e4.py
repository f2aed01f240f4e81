"""E4 on the end of optimism (plan.md, part 4), from what is played already on.

Usage: python studies/positive/e4.py [--table]
"""

import argparse
import json
from pathlib import Path

import numpy as np

import solid_bandits as sb

PATH = Path(__file__).parent / "e4.jsonl"
RUNS, SEED = 100, 64
GAPS, HORIZONS = (0.01, 0.1), (100_000, 2_000_000)
POLICIES = {
    "E4": sb.rivals.E4(),
    "E4, first batch √n": sb.rivals.E4(first="root"),
    "E4, as published": sb.rivals.E4(first="root", gamma=10.0, ridge=1.0),
}


def lines():
    """What was played."""
    return [json.loads(line) for line in PATH.read_text().splitlines()] if PATH.exists() else []


def play():
    """What is missing."""
    done = {(one["gap"], one["horizon"], one["policy"]) for one in lines()}
    for horizon in HORIZONS:
        for gap in GAPS:
            for label, policy in POLICIES.items():
                if (gap, horizon, label) in done:
                    continue
                problem = sb.problems.end_of_optimism(gap)
                table = sb.simulate(problem, {label: policy}, horizon, RUNS, SEED, jobs=1).table
                last = table.filter(step=horizon).sort("run")
                line = {"gap": gap, "horizon": horizon, "policy": label}
                line |= {"regret": [float(f"{value:.6g}") for value in last["regret"]]}
                line |= {"explored": last["explored"].to_list()}
                with PATH.open("a") as file:
                    file.write(json.dumps(line) + "\n")


def table():
    """The lines of the page's table."""
    print("| policy | ξ | horizon | regret | median | runs above 10 times the median |")
    print("|---|--:|--:|--:|--:|--:|")
    for one in lines():
        regret = np.array(one["regret"])
        error = regret.std(ddof=1) / np.sqrt(len(regret))
        print(
            f"| {one['policy']} | {one['gap']} | {one['horizon']:,} | {regret.mean():,.0f} ± {error:,.0f} | "
            f"{np.median(regret):,.0f} | {(regret > 10 * np.median(regret)).sum()} |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", action="store_true", help="write the table of what was played")
    table() if parser.parse_args().table else play()
