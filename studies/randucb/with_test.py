"""Does the exploitation test add anything to RandUCB? The control of docs/randucb.md, on the tuning families.

Usage: python studies/randucb/with_test.py FOLDER   (some minutes on two cores)

Plays RandUCB, the same with SOLID's exploitation test in front of it, and LinTS; writes FOLDER/with_test.jsonl, a line
of final regrets for each policy, family and horizon, and prints what the rule of the plan says.
"""

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from families import FIRST, RUNS, TUNING
from measure import LINTS, cells_of, geometric_mean, objective, play_all

import solid_bandits as sb
from solid_bandits._compile import jit
from solid_bandits.estimation.arms import ArmsWork, best_available
from solid_bandits.estimation.estimator import observe, write_theta
from solid_bandits.policies.contract import register
from solid_bandits.policies.identification import alternative_distance
from solid_bandits.policies.linucb import upper_arm
from solid_bandits.policies.randucb import RandUCBParams, RandUCBState, set_scale
from solid_bandits.setting import Setting
from solid_bandits.stream import uniform

SEED = 11
"""Of contexts, noise and policies; not used before."""
HORIZONS = (1_000, 10_000)
FAMILIES = TUNING | {name: family for name, family in FIRST.items() if not name.startswith("jester")}
TESTED = "RandUCB with the test"
PLAIN = "RandUCB"
RESAMPLES = 2000


class TestedAgent(NamedTuple):
    """RandUCB behind the test."""

    params: RandUCBParams
    setting: Setting
    state: RandUCBState
    work: ArmsWork


@jit
def act(agent, arms, available):
    """The greedy arm where no model with another best arm is within σ² E, else RandUCB's arm with the same draw E."""
    params, state, noise_std = agent.params, agent.state, agent.setting.noise_std
    set_scale(agent, arms)
    state.step[()] += 1
    drawn = -2.0 * params.temperature * math.log(1.0 - uniform(state.stream))
    theta = agent.work.vector
    write_theta(state.estimator, theta)
    limit = noise_std**2 * drawn
    if alternative_distance(state.estimator, arms, theta, agent.work, limit) > limit:
        return best_available(arms, available, theta), False
    width = noise_std * math.sqrt(params.growth * math.log(state.step.item()) + drawn)
    return upper_arm(state.estimator, arms, available, width, agent.work)


@jit
def update(agent, features, reward):
    """Take in a reward."""
    set_scale(agent, features.reshape((1, features.shape[0])))
    observe(agent.state.estimator, features, reward, agent.work.vector, agent.work.gains)


register(TestedAgent, act, update, probabilities=None)


@dataclass(frozen=True)
class Tested(sb.RandUCB):
    """RandUCB with SOLID's exploitation test in front of it, the draw of the width being its threshold."""

    def start(self, setting, stream):
        """A new agent."""
        return TestedAgent(*super().start(setting, stream))


def difference(regrets, lints):
    """log of the geometric mean of R with the test minus without, and its standard error over resampled runs."""
    rng = np.random.default_rng(0)
    draws = []
    for resample in range(RESAMPLES + 1):
        runs = rng.integers(0, RUNS, RUNS) if resample else np.arange(RUNS)
        logs = [
            np.log(regrets[TESTED, name, n][runs].mean()) - np.log(regrets[PLAIN, name, n][runs].mean())
            for name in FAMILIES
            for n in HORIZONS
        ]
        draws.append(np.mean(logs))
    return draws[0], float(np.std(draws[1:], ddof=1))


def main(folder):
    """Play, write, judge."""
    policies = {PLAIN: sb.RandUCB(), TESTED: Tested(), LINTS: sb.LinTS()}
    regrets = play_all(policies, FAMILIES, HORIZONS, RUNS, SEED)
    with (folder / "with_test.jsonl").open("w", encoding="utf-8") as file:
        for (label, family, horizon), values in sorted(regrets.items()):
            line = {"policy": label, "family": family, "horizon": horizon}
            file.write(json.dumps(line | {"regret": [float(f"{value:.6g}") for value in values]}) + "\n")
    for label in (PLAIN, TESTED):
        cells = cells_of(regrets, regrets, label)
        print(
            f"{label}: geometric mean of R {geometric_mean(cells):.3f}, objective {objective(cells):.3f}, "
            f"largest R {max(cell.ratio for cell in cells.values()):.2f}, "
            f"largest Q {max(cell.tail for cell in cells.values()):.2f}, "
            f"stuck {sum(cell.stuck for cell in cells.values()) * RUNS:.0f}"
        )
    mean, error = difference(regrets, regrets)
    print(f"log ratio, with the test minus without: {mean:.3f} ± {error:.3f} (standard error)")
    print("the test becomes an option" if mean < -2 * error else "the test is left out")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
