"""Constructors, agents and agent files under attack: wrong values, extreme ones, and hostile files.

Usage: python attacks/agents.py [--constructors N] [--agents N] [--files N] [--seed S]

- constructors: policies and agents made with random wrong values must raise a ValueError or work;
- agents: every policy in random settings at the ends of the stated ranges, with features and rewards at theirs:
  no exception, no NaN, no infinity, no negative norm, no arm that is not available, probabilities that sum to 1;
- files: saved agents with random changes must raise a ValueError, or give an agent that works without NaN.

With NUMBA_DISABLE_JIT=1 the same kernels are run by Python, slowly, with every index checked. Prints how many attacks
were tried and how many failed, with the cause of each failure; the exit status is 1 if there was one.
"""

import argparse
import copy
import json
import math
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
from counted import HEAD, show
from numba.core.config import DISABLE_JIT

import solid_bandits as sb

DECISION = [sb.LinUCB, sb.LinTS, sb.Greedy, sb.EpsilonGreedy, sb.RandUCB, sb.VIDS]
ONE_CONTEXT = [sb.rivals.OSSB, sb.rivals.SPL, sb.rivals.EndOfOptimism, sb.rivals.UCB1]
SEVERAL = [sb.Solid, sb.rivals.OAM, sb.rivals.AOIDS]
KINDS = [*DECISION, *ONE_CONTEXT, *SEVERAL]
WRONG = [
    None, True, False, "1.0", "", b"1", [1.0], (), {}, {1}, object(), 1j, math.nan, math.inf, -math.inf, -1, -1e-9, 0,
    0.0, -0.0, 1e-320, 1e-200, 1e-21, 1e21, 1e200, 1.7e308, 10**400, -(10**400), Decimal("0.5"), Fraction(1, 3), np.nan,
    np.float32(0.5), np.int64(2), np.array(1.0), np.array([1.0]), np.datetime64("2026-01-01"), sb.LinUCB,
    sb.LinUCB(), print,
]  # fmt: skip
EXTREMES = [1e-20, 1e-12, 1e-6, 0.1, 1.0, 3.0, 1e6, 1e12, 1e20]


def fuzz_constructor(rng):
    """Construct an object with one or two wrong values."""
    kind = KINDS[rng.integers(len(KINDS))]
    names = [field.name for field in fields(kind)]
    chosen = {
        names[rng.integers(len(names))]: WRONG[rng.integers(len(WRONG))] for _ in range(rng.integers(0, 3))
    }
    what = f"{kind.__name__}({chosen})"
    try:
        policy = kind(**chosen)
    except ValueError:
        return None
    except Exception as error:
        return f"{what}: {type(error).__name__}: {error}"
    arguments = {"dim": 2, "noise_std": 1.0, "theta_bound": 1.0}
    if kind not in DECISION:
        arguments = {"contexts": np.eye(2)[None], "noise_std": 1.0, "theta_bound": 1.0}
    name = ["dim", "contexts", "noise_std", "theta_bound", "horizon", "seed", "probabilities"][
        rng.integers(7)
    ]
    arguments[name] = WRONG[rng.integers(len(WRONG))]
    if rng.random() < 0.1:
        policy = WRONG[rng.integers(len(WRONG))]
    try:
        sb.Agent(policy, **arguments)
    except ValueError:
        return None
    except Exception as error:
        return f"Agent({what}, {name}={arguments[name]!r}): {type(error).__name__}: {error}"
    return None


def random_policy(rng):
    """Return a random policy whose numbers are sometimes at the ends of their ranges."""
    kind = KINDS[rng.integers(len(KINDS))]
    if kind is sb.Solid and rng.random() < 0.3:
        policy = sb.Solid.theory(max_multiplier=float(EXTREMES[rng.integers(len(EXTREMES))]))
    else:
        policy = kind()
    changes = {}
    for field in fields(kind):
        name = field.name
        if field.type in ("float", float, "float | None", "float | str", float | str) and rng.random() < 0.25:
            changes[name] = float(EXTREMES[rng.integers(len(EXTREMES))])
    if "half_life" in changes:
        changes["half_life"] = min(max(changes["half_life"], 1.0), 1e12)
    if kind in DECISION and rng.random() < 0.4:
        changes["ridge"] = "evidence"
    if kind is sb.VIDS:
        changes |= {"samples": int(rng.integers(2, 9)), "memory": int(rng.integers(0, 9))}
    if kind is sb.Solid and policy.form == "experiments":
        changes["bonus"] = ["theorem", "plain", "local", "none"][rng.integers(4)]
        changes["drawing"] = ["sampling", "direct", "cumulative"][rng.integers(3)]
    try:
        return type(policy)(**{one.name: getattr(policy, one.name) for one in fields(kind)} | changes)
    except ValueError:
        return policy  # two changes that are incompatible


def random_features(rng, *shape):
    """Return random features of any size up to the largest, some of them 0 or equal."""
    size = 10.0 ** rng.uniform(-40, 30) if rng.random() < 0.5 else 1.0
    features = rng.normal(size=shape) * size
    if rng.random() < 0.3:
        features *= 10.0 ** rng.uniform(-20, 0, size=shape[-1])
    if rng.random() < 0.2:
        features[..., rng.integers(shape[-1])] += 1e30 if rng.random() < 0.2 else 1e9
    if rng.random() < 0.1:
        features[:] = 0.0
    if rng.random() < 0.2:
        features[..., -1, :] = features[..., 0, :]
    return np.clip(features, -1e30, 1e30)


def fuzz_agent(rng):
    """Play a few decisions of an agent in an extreme setting."""
    policy = random_policy(rng)
    kind = type(policy)
    dim, n_arms = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    arguments = {
        "noise_std": float(EXTREMES[rng.integers(len(EXTREMES))]),
        "theta_bound": float(EXTREMES[rng.integers(len(EXTREMES))]),
        "seed": int(rng.integers(1000)),
        "horizon": [None, 1, 10, 10**6, 2**53][rng.integers(5)],
    }
    if kind in DECISION and getattr(policy, "radius", "paper") == "paper" and rng.random() < 0.4:
        arguments["noise_std"] = None
    what = f"{policy!r} with {arguments}, dim {dim}, {n_arms} arms"
    try:
        if kind in DECISION:
            agent = sb.Agent(policy, dim=dim, probabilities=bool(rng.random() < 0.5), **arguments)
        else:
            contexts = random_features(
                rng, 1 if kind in ONE_CONTEXT else int(rng.integers(1, 4)), n_arms, dim
            )
            agent = sb.Agent(policy, contexts=contexts, **arguments)
        for step in range(12):
            problem = one_step(agent, kind, rng, dim, n_arms)
            if problem:
                return f"{what}, step {step}: {problem}"
    except Exception as error:
        return f"{what}: {type(error).__name__}: {error}"
    return None


def one_step(agent, kind, rng, dim, n_arms):
    """Make a decision and learn its reward; return what is wrong, or None."""
    mask = np.ones(n_arms, dtype=bool)
    if kind in DECISION:
        mask = rng.random(n_arms) < 0.7
        mask[rng.integers(n_arms)] = True
        decision = agent.decide(random_features(rng, n_arms, dim), available=mask)
    else:
        decision = agent.decide(context=int(rng.integers(agent._table.features.shape[0])))
    if not mask[decision.arm]:
        return f"arm {decision.arm} is not available"
    if decision.probabilities is not None:
        shares = decision.probabilities
        if not (np.isfinite(shares).all() and (shares >= 0).all() and abs(shares.sum() - 1) < 1e-9):
            return f"probabilities {shares}"
        if not decision.probability > 0 or shares[~mask].any():
            return f"probability {decision.probability} of arm {decision.arm}, {shares}"
    if rng.random() < 0.85:
        reward = float(np.clip(rng.normal() * 10.0 ** rng.uniform(-40, 30), -1e30, 1e30))
        agent.learn(decision, reward if rng.random() < 0.9 else [1e30, -1e30, 0.0][rng.integers(3)])
    return not_finite(agent._compiled.state, "state")


def not_finite(state, path):
    """Return the path of the first field that is not finite, or of a negative squared norm."""
    for name, value in state._asdict().items():
        if isinstance(value, tuple):
            found = None if name == "work" else not_finite(value, f"{path}.{name}")
            if found:
                return found
        elif (value is not None and not np.isfinite(value).all()) or (
            name == "sq_norms" and (value < 0).any()
        ):
            return f"{path}.{name} is {value}"
    return None


def fuzz_file(rng, folder, saved):
    """Change a saved agent at random, load it, and continue with it."""
    kind = KINDS[rng.integers(len(KINDS))]
    plain = copy.deepcopy(saved[kind.__name__])
    for _ in range(rng.integers(1, 4)):
        change_somewhere(rng, plain)
    if rng.random() < 0.7:  # signed again, so that the change itself is reached
        from solid_bandits.core.agent_file import OWNER, _fingerprint

        with suppress(KeyError, TypeError, ValueError):
            plain["state_of"] = _fingerprint({key: plain[key] for key in OWNER})
    path = folder / "agent.json"
    text = json.dumps(plain)
    if rng.random() < 0.05:
        text = text[: rng.integers(len(text))]
    path.write_text(text)
    try:
        agent = sb.Agent.load(path)
    except ValueError as error:
        return None if "\n" not in str(error) else f"{kind.__name__}: a message of several lines: {error}"
    except Exception as error:
        return f"{kind.__name__}: {type(error).__name__}: {error}"
    try:
        for _ in range(3):
            dim = agent._setting.dim
            n_arms = 3 if agent._table is None else agent._table.features.shape[1]
            problem = one_step(agent, kind if agent._table is not None else sb.Greedy, rng, dim, n_arms)
            if problem:
                return f"{kind.__name__}: {problem}"
    except Exception as error:
        return f"{kind.__name__}, going on: {type(error).__name__}: {error}"
    return None


def change_somewhere(rng, plain):
    """Change one value somewhere in nested tables and lists."""
    place, key = None, None
    value = plain
    while isinstance(value, dict | list) and len(value) and (place is None or rng.random() < 0.85):
        place = value
        key = (
            list(value)[rng.integers(len(value))]
            if isinstance(value, dict)
            else int(rng.integers(len(value)))
        )
        value = value[key]
    choices = [
        None,
        True,
        "x",
        -1,
        0,
        1,
        2**60,
        10**30,
        -1e300,
        1e300,
        1e-300,
        0.5,
        [],
        {},
        [1, 2],
        math.nan,
        "NaN",
    ]
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.4:
        place[key] = value * [-1, 2, 0.5, 1e10, 1 + 1e-3][rng.integers(5)]
    else:
        place[key] = choices[rng.integers(len(choices))]


def saved_agents(folder):
    """Return the file content of a played agent of every policy."""
    rng = np.random.default_rng(0)
    found = {}
    for kind in [*DECISION, *ONE_CONTEXT, *SEVERAL]:
        if kind in DECISION:
            agent = sb.Agent(kind(), dim=3, noise_std=0.5, theta_bound=2.0)
        else:
            contexts = rng.normal(size=(1 if kind in ONE_CONTEXT else 2, 3, 3))
            agent = sb.Agent(kind(), contexts=contexts, noise_std=0.5, theta_bound=2.0)
        for _ in range(25):
            asked = {"features": rng.normal(size=(4, 3))} if kind in DECISION else {"context": 0}
            agent.learn(agent.decide(**asked), rng.normal())
        agent.save(folder / "saved.json")
        found[kind.__name__] = json.loads((folder / "saved.json").read_text())
    return found


def attack(name, count, seed, one):
    """Count attempts and failures; print failures as they occur."""
    failed = 0
    began = time.monotonic()
    for number in range(count):
        failure = one(np.random.default_rng([seed, number]))
        if failure:
            failed += 1
            print(f"{name} {number}: {failure}"[:600], file=sys.stderr, flush=True)
    if count:
        show(name, count, failed, seed, began)
    return failed


def main(arguments=None):
    """Run the attacks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--constructors", type=int, default=20_000)
    parser.add_argument("--agents", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    print(HEAD)
    how = "interpreted" if DISABLE_JIT else "compiled"
    with tempfile.TemporaryDirectory() as name, np.errstate(all="ignore"):
        folder = Path(name)
        failed = attack("constructors", chosen.constructors, chosen.seed, fuzz_constructor)
        failed += attack(f"agents in extreme settings, {how}", chosen.agents, chosen.seed, fuzz_agent)
        if chosen.files:
            saved = saved_agents(folder)
            failed += attack(
                "hostile agent files", chosen.files, chosen.seed, lambda rng: fuzz_file(rng, folder, saved)
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
