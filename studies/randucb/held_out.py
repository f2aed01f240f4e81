"""The families held out of the second round (docs/randucb.md), with the control that was added afterwards.

Usage: SOLID_BANDITS_DATA=folder python studies/randucb/held_out.py FOLDER   (about half an hour on two cores)

Writes FOLDER/held_out.jsonl, a line of final regrets for each policy, family and horizon, and FOLDER/long.jsonl for
horizon 10⁶. What is there already is not played again. `tables.py` makes tables and the
figure of them.
"""

import json
import sys
from pathlib import Path

import numpy as np
from families import HORIZONS, RUNS, SECOND, SECOND_SEED
from measure import LINTS, play_all

import solid_bandits as sb
from solid_bandits.policies.catalogue import CATALOGUE

LONG = 1_000_000
LONG_FAMILIES = ("toy-A", "random-A")
SLOPE_FROM = 100_000


def paper(family):
    """SOLID as the paper plays problems of this kind."""
    kind = "toy" if family.kind == "toy" else "random"
    return CATALOGUE["solid"].make(kind, family.problem_of(0).n_arms)


THEN = "Solid() of then"
"""What was tuned and judged: RandUCB behind an exploitation test. Its runs are a record; no code plays it now."""
RANDUCB = "RandUCB"

POLICIES = {
    RANDUCB: lambda family: sb.RandUCB(temperature=0.5, growth=0.2, ridge=0.2),
    LINTS: lambda family: sb.LinTS(),
    "LinTS (tuned)": lambda family: sb.LinTS(multiple=0.8),
    "LinUCB (tuned)": lambda family: sb.LinUCB(radius="paper", scale=0.5),
    "AO-IDS": lambda family: sb.rivals.AOIDS(),
    "SOLID (paper)": paper,
}


def lines_of(path):
    """What was written before."""
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    )


def play_held_out(path):
    """Every policy on every family at every horizon."""
    done = {(line["policy"], line["family"], line["horizon"]) for line in lines_of(path)}
    with path.open("a", encoding="utf-8") as file:
        for name, family in SECOND.items():
            policies = {label: make(family) for label, make in POLICIES.items()}
            for horizon in HORIZONS:
                left = {
                    label: policy for label, policy in policies.items() if (label, name, horizon) not in done
                }
                regrets = play_all(left, {name: family}, (horizon,), RUNS, SECOND_SEED)
                for label, policy in left.items():
                    line = {
                        "policy": label,
                        "parameters": policy.describe(),
                        "family": name,
                        "horizon": horizon,
                        "regret": [float(f"{value:.6g}") for value in regrets[label, name, horizon]],
                    }
                    file.write(json.dumps(line) + "\n")
                file.flush()
            print(name, flush=True)


def play_long(path):
    """Horizon 10⁶: the last regret, and the slope of the last decade per unit of log n."""
    done = {(line["policy"], line["family"]) for line in lines_of(path)}
    with path.open("a", encoding="utf-8") as file:
        for name in LONG_FAMILIES:
            family = SECOND[name]
            policies = {
                label: POLICIES[label](family)
                for label in (RANDUCB, LINTS, "LinTS (tuned)", "LinUCB (tuned)")
                if (label, name) not in done
            }
            if not policies:
                continue
            table = sb.simulate(family.problem_of, policies, LONG, RUNS, SECOND_SEED).table
            steps = table["step"].unique().to_numpy()
            start = int(steps[steps >= SLOPE_FROM].min())
            for label in policies:
                one = table.filter(policy=label).sort("run")
                last = one.filter(step=LONG)["regret"].to_numpy()
                first = one.filter(step=start)["regret"].to_numpy()
                slope = (last - first) / np.log(LONG / start)
                line = {
                    "policy": label,
                    "family": name,
                    "from": start,
                    "regret": last.tolist(),
                    "slope": slope.tolist(),
                }
                file.write(json.dumps(line) + "\n")
            file.flush()
            print(name, LONG, flush=True)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    play_held_out(folder / "held_out.jsonl")
    play_long(folder / "long.jsonl")
