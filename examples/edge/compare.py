"""Compare scorer.mjs with Python: python examples/edge/compare.py [--decisions 100000] [--world matrices].

For each of Greedy, LinUCB and RandUCB, and for matrices, named features and arms with features of their own, a bandit
learns, is exported, and decides offers that come afterwards, all under the exported model. Their log, with the random
numbers that Python drew, goes through check.mjs. A tenth of the offers have arms that tie: copies of a row, or of an
arm's features.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import solid_bandits as sb
from solid_bandits.core.randomness import uniform

HERE = Path(__file__).parent
POLICIES = {"Greedy": sb.Greedy, "LinUCB": sb.LinUCB, "RandUCB": sb.RandUCB}
WORLDS = ("matrices", "named", "arm features")
LEARNT = 600
ARMS = ("climate", "football", "science", "travel", "chess")


def row(rng):
    """Values of a context by name: missing ones, words never seen, dates."""
    found = {
        "age": float(rng.integers(18, 80)),
        "device": str(rng.choice(["ios", "web", "tv", f"x{rng.integers(9)}"])),
    }
    if rng.random() < 0.2:
        del found["age"]
    if rng.random() < 0.9:
        found["member"] = bool(rng.random() < 0.5)
        found["tags"] = [str(one) for one in rng.choice(["a", "b", "c"], size=rng.integers(0, 3))]
    if rng.random() < 0.9:
        day, hour = rng.integers(1, 29), 6 * rng.integers(0, 4)
        found["seen"] = found["day"] = found["hour"] = (
            f"2026-{rng.integers(1, 13):02}-{day:02}T{hour:02}:05:00+02:00"
        )
    return found


CONTEXT = {
    "age": "number", "device": None, "member": "boolean", "tags": "tags", "seen": "date", "day": "weekday",
    "hour": "hour",
}  # fmt: skip


def offers(world, rng):
    """Endless offers as the scorer takes them."""
    while True:
        tie = rng.random() < 0.1
        if world == "matrices":
            features = rng.normal(size=(rng.integers(2, 9), 6)).round(3)
            if tie:
                features[-1] = features[0]
            available = rng.random(len(features)) < 0.8
            available[[0, -1]] = True
            yield {"features": features.tolist(), "available": available.tolist()}
        elif world == "named":
            yield {
                "context": row(rng),
                "arms": [str(one) for one in rng.permutation(ARMS)[: rng.integers(2, 6)]],
            }
        else:
            own = [
                {"price": float(rng.integers(1, 9)), "kind": str(rng.choice(["tea", "milk"]))}
                for _ in range(6)
            ]
            if tie:
                own[4] = own[1]
            names = rng.permutation([f"offer {number}" for number in range(6)])[: rng.integers(2, 7)]
            yield {"context": row(rng), "arms": {str(name): own[int(name[-1])] for name in names}}


def make(world, policy, floor):
    """A bandit of this world before its first decision."""
    settings = {"policy": policy, "floor": floor, "seed": 3, "log": False}
    if world == "matrices":
        return sb.Bandit(dim=6, **settings)
    if world == "named":
        return sb.Bandit(context=CONTEXT, arms=ARMS, **settings)
    return sb.Bandit(context=CONTEXT, arm_features=["price", "kind"], **settings)


def ask(bandit, offer):
    """One decision of the bandit."""
    if "features" in offer:
        return bandit.decide(offer["features"], available=offer["available"])
    return bandit.decide(offer["context"], offer["arms"])


def reward_of(decision, rng):
    """Rewards that depend on which arm was chosen, and on its features where it has some."""
    name = decision.arms[decision.place]
    base = sum(map(ord, str(name))) % 7 / 7
    return base + float(np.asarray(decision.features).sum()) / 20 + 0.3 * rng.normal()


def numbers(agent, count):
    """The random numbers of the next decisions, three for each; those that Python does not draw are 0."""
    state = agent._compiled.state
    own, floor_rng = getattr(state, "rng", None), agent._floor_rng.copy()
    own = None if own is None else own.copy()
    found = np.zeros((count, 3))
    for drawn in found:
        drawn[0] = 0.0 if own is None else uniform(own)
        if agent.floor > 0:
            drawn[1] = uniform(floor_rng)
            if drawn[1] < agent.floor:
                drawn[2] = uniform(floor_rng)
    return found.tolist()


def write(world, name, count, folder):
    """Write model.json, and log.jsonl of so many decisions."""
    rng = np.random.default_rng([WORLDS.index(world), list(POLICIES).index(name)])
    bandit = make(world, POLICIES[name](), 0.05)
    stream = offers(world, rng)
    for _ in range(LEARNT):
        decision = ask(bandit, next(stream))
        bandit.learn(decision.event_id, reward_of(decision, rng))
    bandit.export(folder / "model.json")
    agent, design = bandit.agent, bandit.design
    made = [next(stream) for _ in range(count)]
    if design is None:
        rows, masks = [one["features"] for one in made], [one["available"] for one in made]
        names = [list(range(len(one))) for one in rows]
    else:
        told = [design.check(one["context"], one["arms"]) for one in made]
        rows, masks, names = [design.encode(one) for one in told], None, [one.arms for one in told]
    random = numbers(agent, count)
    batch = agent.decide_many(rows, masks)
    with open(folder / "log.jsonl", "w", encoding="utf-8") as log:
        for offer, drawn, own, decision in zip(made, random, names, batch, strict=True):
            line = {
                "offer": offer, "random": drawn, "arm": own[decision.place],
                "probabilities": decision.probabilities.tolist(),
            }  # fmt: skip
            log.write(json.dumps(line) + "\n")


def compare(world, name, count, folder):
    """What check.mjs says of so many decisions."""
    write(world, name, count, folder)
    command = ["node", str(HERE / "check.mjs"), str(folder / "model.json"), str(folder / "log.jsonl")]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)


def main():
    """Print a line for each policy and world."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--decisions", type=int, default=100_000, help="of each policy in each world")
    parser.add_argument("--world", choices=WORLDS, action="append", help="those alone; may be repeated")
    arguments = parser.parse_args()
    print("| policy | world | decisions | arms that differ | ties | largest difference of a probability |")
    print("|---|---|---|---|---|---|")
    failed = 0
    for name in POLICIES:
        for world in arguments.world or WORLDS:
            with tempfile.TemporaryDirectory() as folder:
                found = compare(world, name, arguments.decisions, Path(folder))
            failed += found["arms_that_differ"] + (found["largest_difference"] > 1e-9)
            print(
                f"| {name} | {world} | {found['decisions']:,} | {found['arms_that_differ']} | {found['ties']:,} "
                f"| {found['largest_difference']:.1e} |",
                flush=True,
            )
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
