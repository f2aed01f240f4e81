"""What only a GPU can show: kernels compile for it, and its runs are the CPU's. Skipped where there is none.

Without pytest: `python tests/gpu/test_on_a_gpu.py`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import solid_bandits as sb
from solid_bandits import extend
from solid_bandits.core.loop import checkpoints, play
from solid_bandits.gpu.device import require_gpu
from solid_bandits.gpu.layout import UnfitError

try:
    require_gpu()
    REASON = ""
except ValueError as error:
    REASON = str(error)

try:
    import pytest

    pytestmark = [pytest.mark.skipif(bool(REASON), reason=REASON), pytest.mark.filterwarnings("ignore")]
except ImportError:  # on a machine that has a GPU and little else
    assert __name__ == "__main__"

HORIZON, RUNS = 400, 64


def play_wave(*arguments):
    from solid_bandits.gpu import wave  # which loads a GPU's compiler

    return wave.play_wave(*arguments)


FIT = [
    sb.Greedy(),
    sb.EpsilonGreedy(epsilon=0.2),
    sb.LinUCB(),
    sb.LinUCB(radius="theorem"),
    sb.LinTS(),
    sb.LinTS(scale="paper", votes=4),
    sb.RandUCB(),
    sb.Solid(),
    sb.Solid(bonus="local", initial_multiplier=20.0, drawing="cumulative"),
    sb.rivals.AOIDS(),
]
UNFIT = [
    sb.rivals.OAM(),
    sb.Solid.theory(max_multiplier=1000.0),
    sb.rivals.LinMED(),
    sb.rivals.FeelGoodTS(),
]


def close(problem, policy):
    """How many runs end with the CPU's regret. One part by rounding, and then end anywhere."""
    steps = checkpoints(HORIZON, 10)
    wave = play_wave(problem, policy, HORIZON, 0, steps, 0, RUNS)
    problem_of = problem if callable(problem) else lambda run: problem
    traces = [play(problem_of(run), policy, HORIZON, 0, run, steps) for run in range(RUNS)]
    same = np.isclose(wave.regret[:, -1], [trace.regret[-1] for trace in traces], rtol=1e-9)
    explored = wave.explored[:, -1] == [trace.explored[-1] for trace in traces]
    return int((same & explored).sum())


def test_runs_are_those_of_the_cpu():
    problem = sb.problems.random(n_contexts=4, n_arms=8, dim=8, seed=0)
    for policy in FIT:
        assert close(problem, policy) >= RUNS - 2, policy


def test_a_problem_for_each_run():
    def problem_of(run):
        return sb.problems.random(n_contexts=2, n_arms=3, dim=4, seed=run)

    for policy in (sb.LinTS(), sb.Solid(bonus="none")):
        assert close(problem_of, policy) >= RUNS - 2, policy


class OwnState(NamedTuple):
    regression: extend.Regression


class OwnAgent(NamedTuple):
    state: OwnState


@sb.extend.jit
def own_act(agent, arms, available, out):
    extend.observe_offer(agent.state.regression, arms, available)
    return extend.best_estimated(agent.state.regression, arms, available), False


@dataclass(frozen=True)
class OwnGreedy(sb.extend.DecisionPolicy):
    kernels = sb.extend.Kernels(own_act, certain=True)

    def start(self, setting, rng):
        return OwnAgent(OwnState(extend.make_regression(setting)))


def test_a_compiled_policy_of_ones_own():
    problem = sb.problems.random(n_contexts=4, n_arms=8, dim=8, seed=0)
    steps = checkpoints(HORIZON, 10)
    own = play_wave(problem, OwnGreedy(), HORIZON, 0, steps, 0, RUNS)
    ours = play_wave(problem, sb.Greedy(), HORIZON, 0, steps, 0, RUNS)
    assert (own.regret == ours.regret).all()


def test_what_makes_arrays_is_refused_by_name():
    problem = sb.problems.random(n_contexts=1, n_arms=3, dim=3, seed=1)
    for policy in UNFIT:
        message = ""
        try:
            play_wave(problem, policy, 5, 0, checkpoints(5), 0, 2)
        except UnfitError as error:
            message = str(error)
        assert message.startswith(f"{policy.name} cannot be played on a GPU"), policy


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(name, "passed", flush=True)
