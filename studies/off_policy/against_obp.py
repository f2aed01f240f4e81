"""Our estimates beside those of obp 0.5.7, which needs an older Python, on the same log.

    python studies/off_policy/against_obp.py log.json                    # here: writes the log
    python3.10 studies/off_policy/against_obp.py log.json --obp ref.json # there: obp, pandas, scikit-learn, seaborn
    python studies/off_policy/against_obp.py log.json --compare ref.json

obp's policies import torch, its estimators do not: where torch is missing, empty modules stand in for it.
"""

import argparse
import json
import sys
import types

import numpy as np

ROWS, ARMS, THRESHOLD, STRENGTH = 5000, 5, 2.0, 3.0


def make():
    """A log of a logger with random probabilities, a random target and a random model."""
    rng = np.random.default_rng(9)
    logger = rng.dirichlet(np.ones(ARMS), size=ROWS) * 0.9 + 0.1 / ARMS
    arm = np.array([rng.choice(ARMS, p=one / one.sum()) for one in logger])
    reward = rng.normal(size=ROWS) + 0.3 * arm
    target, model = rng.dirichlet(np.full(ARMS, 0.5), size=ROWS), rng.normal(size=(ROWS, ARMS))
    arrays = {"arm": arm, "reward": reward, "logger": logger, "target": target, "model": model}
    return {name: values.tolist() for name, values in arrays.items()}


def theirs(log):
    """The estimates of obp."""
    names = ("torch", "torch.nn", "torch.nn.functional", "torch.optim", "torch.utils", "torch.utils.data")
    for name in names:
        module = types.ModuleType(name)
        module.__getattr__ = lambda inner: type(inner, (), {})
        sys.modules.setdefault(name, module)
        above, _, last = name.rpartition(".")
        if above:
            setattr(sys.modules[above], last, sys.modules[name])
    from obp import ope

    arrays = {name: np.array(values) for name, values in log.items()}
    every, position = np.arange(ROWS), np.zeros(ROWS, dtype=int)
    given = {
        "reward": arrays["reward"],
        "action": arrays["arm"],
        "pscore": arrays["logger"][every, arrays["arm"]],
        "action_dist": arrays["target"][:, :, None],
        "estimated_rewards_by_reg_model": arrays["model"][:, :, None],
        "position": position,
    }
    estimators = {
        "ips": ope.InverseProbabilityWeighting(),
        "snips": ope.SelfNormalizedInverseProbabilityWeighting(),
        "dm": ope.DirectMethod(),
        "dr": ope.DoublyRobust(),
        "switch-dr": ope.SwitchDoublyRobust(lambda_=THRESHOLD),
        "dros": ope.DoublyRobustWithShrinkage(lambda_=STRENGTH),
    }
    found = {name: float(one.estimate_policy_value(**given)) for name, one in estimators.items()}
    best = np.eye(ARMS)[arrays["target"].argmax(axis=1)]
    found["replay"] = float(
        ope.ReplayMethod().estimate_policy_value(
            reward=arrays["reward"], action=arrays["arm"], action_dist=best[:, :, None], position=position
        )
    )
    return found


def ours(log):
    """The same of this package; replay on the log as if its logger had been uniform, which obp takes for granted."""
    from solid_bandits import logs, ope

    plain = {"arm": log["arm"], "reward": log["reward"]}
    table = logs.from_table({**plain, "probabilities": log["logger"]})
    names = ["ips", "snips", "dm", "dr", "switch-dr", "dros"]
    found = ope.evaluate(
        table, log["target"], names, model=log["model"], threshold=THRESHOLD, strength=STRENGTH
    )
    values = {name: found.value(name) for name in names}
    uniform = logs.from_table({**plain, "probabilities": [[1 / ARMS] * ARMS] * ROWS})
    best = np.eye(ARMS)[np.array(log["target"]).argmax(axis=1)]
    return values | {"replay": ope.evaluate(uniform, best, ["replay"]).value("replay")}


def main():
    """One of the three steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log")
    parser.add_argument("--obp")
    parser.add_argument("--compare")
    given = parser.parse_args()
    if given.obp is None and given.compare is None:
        with open(given.log, "w", encoding="utf-8") as file:
            json.dump(make(), file)
        return
    with open(given.log, encoding="utf-8") as file:
        log = json.load(file)
    if given.obp is not None:
        with open(given.obp, "w", encoding="utf-8") as file:
            json.dump(theirs(log), file)
        return
    with open(given.compare, encoding="utf-8") as file:
        expected = json.load(file)
    for name, value in ours(log).items():
        print(f"{name:10} {value:+.15f} {expected[name]:+.15f} {abs(value - expected[name]):.1e}")


if __name__ == "__main__":
    main()
