"""Play the runs of the plan: a line of JSON for each part, family and policy; those that are there are skipped."""
# ruff: noqa: D103

import json
import sys
from pathlib import Path

import numpy as np
from families import Fresh, Jittered
from prototype import Proto

import solid_bandits as sb

HERE = Path(__file__).parent
SEED, TRUTH = 7, 1000


def random_problem(n_arms):
    return lambda run: sb.problems.random(4, n_arms, 8, seed=TRUTH + run)


def end_of_optimism(jitter):
    problem = sb.problems.end_of_optimism(0.1)
    return lambda run: Jittered(problem, jitter) if jitter else problem


FAMILIES = {
    **{f"random, {k} arms": (random_problem(k), k) for k in (4, 8, 16, 32)},
    **{f"end of optimism, {s}": (end_of_optimism(s), 3) for s in (0.0, 0.005, 0.02)},
    "gaussian": (lambda run: sb.streams.gaussian(10, 5, noise_std=0.5, seed=TRUTH + run), 10),
    "joint": (lambda run: sb.streams.joint(5, 3, noise_std=0.5, seed=TRUTH + run), 5),
    "sparse": (lambda run: sb.streams.sparse(10, 10, noise_std=0.5, seed=TRUTH + run), 10),
    "fresh": (lambda run: Fresh(8, 8, 0.5, TRUTH + run), 8),
    "random, jittered": (lambda run: Jittered(random_problem(8)(run), 0.02), 8),
}
RIVALS = {
    "LinTS": sb.LinTS(),
    "LinTS (paper)": sb.LinTS(scale="paper"),
    "LinUCB": sb.LinUCB(radius="paper"),
    "RandUCB": sb.RandUCB(),
    "Greedy": sb.Greedy(),
}
OURS = {"streaming": sb.rivals.StreamingSolid()}
PARTED = {
    "no budget": sb.rivals.StreamingSolid(budget=None),
    "λ = 0": sb.rivals.StreamingSolid(max_multiplier=0.0),
}
WITHOUT_GREEDY = {name: policy for name, policy in RIVALS.items() if name != "Greedy"}
NEVER_TWICE = ("gaussian", "joint", "sparse", "fresh")


def ways(n_arms):
    return {
        way: Proto(way, n_arms, budget=0.5, every=False, contexts=16) for way in ("sums", "table", "both")
    }


def tasks():
    """(part, family, policies, horizon, runs)."""
    for family in ("random, 8 arms", "end of optimism, 0.02", "gaussian", "joint", "fresh"):
        yield "ways", family, ways(FAMILIES[family][1]), 10_000, 50
    for s in (0.005, 0.02):
        yield "2", f"end of optimism, {s}", OURS | PARTED | RIVALS, 100_000, 100
    for k in (4, 8, 16, 32):
        solid = {"SOLID": sb.Solid.paper_random(k)}
        parted = PARTED if k == 8 else {}
        yield "1", f"random, {k} arms", OURS | solid | WITHOUT_GREEDY | parted, 20_000, 100
    # Not in the plan: the ablation without a budget, with the parameters that SOLID has on random problems.
    like_solid = {
        "no budget, SOLID's parameters": sb.rivals.StreamingSolid(z0=8, initial_multiplier=50, budget=None)
    }
    yield "1", "random, 8 arms", like_solid, 20_000, 100
    for family in NEVER_TWICE:
        yield "3", family, OURS | RIVALS, 10_000, 100
    beside = OURS | {"LinTS": sb.LinTS(), "SOLID": sb.Solid(), "λ = 0": PARTED["λ = 0"]}
    yield "2", "end of optimism, 0.0", beside, 100_000, 100
    yield "4", "random, jittered", OURS | {"LinTS": sb.LinTS()}, 20_000, 30
    for family in ("gaussian", "joint", "fresh", "end of optimism, 0.02"):
        yield "3, VIDS", family, {"VIDS": sb.VIDS()} | OURS | RIVALS, 1_000, 20


def main():
    lines = HERE / "runs.jsonl"
    done = set()
    if lines.exists():
        done = {tuple(json.loads(line)[key] for key in ("part", "family", "policy")) for line in lines.open()}
    for part, family, policies, horizon, runs in tasks():
        if len(sys.argv) > 1 and part not in sys.argv[1:]:
            continue
        for name, policy in policies.items():
            if (part, family, name) in done:
                continue
            make = FAMILIES[family][0]
            results = sb.simulate(make, {name: policy}, horizon=horizon, runs=runs, seed=SEED, jobs=1)
            table = results.table.sort("run", "step")
            steps = np.unique(table["step"].to_numpy())
            shape = (runs, len(steps))
            wanted = np.geomspace(10, horizon, 17).round()
            kept = np.unique([np.abs(steps - step).argmin() for step in wanted])
            regret = table["regret"].to_numpy().reshape(shape)[:, kept]
            explored = table["explored"].to_numpy().reshape(shape)[:, -1]
            row = {
                "part": part, "family": family, "policy": name, "horizon": horizon, "steps": steps[kept].tolist(),
                "regret": np.round(regret, 3).tolist(), "explored": float(explored.mean()),
            }  # fmt: skip
            with lines.open("a") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            half = 1.96 * regret[:, -1].std(ddof=1) / np.sqrt(runs)
            print(f"{part}: {family}: {name}: {regret[:, -1].mean():.1f} ± {half:.1f}", flush=True)


if __name__ == "__main__":
    main()
