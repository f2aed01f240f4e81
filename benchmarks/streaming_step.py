"""CPU time of a step of streaming SOLID compared with finite SOLID's, by the number of contexts, in one run.

Usage: python benchmarks/streaming_step.py [--out lines.jsonl]

8 arms, d = 8, the paper's sparse features, σ = 1. Policies alternate; the least of three times counts, less the cost of
starting (a run of one step). `no budget` explores as SOLID does, so that like is compared with like.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

import solid_bandits as sb

STEPS = {4: 20_000, 50: 20_000, 500: 4_000, 5_000: 400}
"""Steps of SOLID, by the number of contexts."""
POLICIES = {
    "SOLID": sb.Solid.paper_random(8),
    "streaming": sb.rivals.StreamingSolid(),
    "no budget": sb.rivals.StreamingSolid(budget=None),
}


def made(n_contexts):
    rng = np.random.default_rng(n_contexts)
    features = rng.uniform(size=(n_contexts, 8, 8)) * (rng.uniform(size=(n_contexts, 8, 8)) < 0.5)
    return sb.Problem(features, rng.uniform(size=8), noise_std=1.0)


def seconds(problem, policy, horizon):
    began = time.process_time()
    results = sb.simulate(problem, {"policy": policy}, horizon=horizon, runs=1, jobs=1)
    return time.process_time() - began, results.final()["explored"].item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    for policy in POLICIES.values():
        seconds(made(4), policy, 10)
    for n_contexts, steps in STEPS.items():
        problem = made(n_contexts)
        problem.means, problem.table  # noqa: B018  # made once, before the clock
        seconds(problem, POLICIES["SOLID"], 1)  # other code is used from this many pairs on
        lengths = {name: steps if name == "SOLID" else 20_000 for name in POLICIES}
        starts, wholes = dict.fromkeys(POLICIES, np.inf), dict.fromkeys(POLICIES, np.inf)
        shares = {}
        for _ in range(3):
            for name, policy in POLICIES.items():
                starts[name] = min(starts[name], seconds(problem, policy, 1)[0])
                whole, explored = seconds(problem, policy, lengths[name])
                wholes[name] = min(wholes[name], whole)
                shares[name] = explored / lengths[name]
        least = {name: (wholes[name] - starts[name]) / lengths[name] * 1e6 for name in POLICIES}
        row = {"contexts": n_contexts, "microseconds": least, "explored": shares}
        print(json.dumps(row), flush=True)
        if out is not None:
            with out.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
