"""What is played on a GPU, in numba's CUDA simulator: one process for all, since numba reads its settings once.

`test_simulated` runs this file; by itself it needs NUMBA_ENABLE_CUDASIM=1 and NUMBA_DISABLE_JIT=1.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from msgspec.structs import replace

import solid_bandits as sb
import variants
from solid_bandits import extend
from solid_bandits._internal.decoding import encode
from solid_bandits.gpu import device, wave
from solid_bandits.gpu.layout import UnfitError
from solid_bandits.simulation.summary import Summary

pytestmark = pytest.mark.filterwarnings("ignore")  # of grids that are too small for a GPU
HORIZON, RUNS = 25, 3


def both(problem, policy, **options):
    arguments = {"horizon": HORIZON, "runs": RUNS, "seed": 4, **options}
    on_gpu = sb.simulate(problem, {"one": policy}, device="gpu", **arguments)
    return on_gpu, sb.simulate(problem, {"one": policy}, jobs=1, **arguments)


UNFIT = {
    name
    for name, policy in variants.POLICIES.items()
    if isinstance(
        policy,
        sb.rivals.OAM
        | sb.rivals.OSSB
        | sb.rivals.EndOfOptimism
        | sb.rivals.E4
        | sb.rivals.LinMED
        | sb.rivals.FeelGoodTS,
    )
}
UNFIT |= {
    "solid theory"
}  # these make arrays on the way, which compiling for a GPU finds out and the simulator does not


@pytest.mark.parametrize("name", sorted(variants.POLICIES.keys() - UNFIT))
def test_runs_are_those_of_the_cpu(name):
    policy = variants.POLICIES[name]
    n_contexts = 1 if variants.takes_one_context(policy) else 2
    problem = sb.problems.random(n_contexts=n_contexts, n_arms=3, dim=3, seed=1)
    on_gpu, on_cpu = both(problem, policy)
    assert on_gpu.table.equals(on_cpu.table)
    assert on_gpu.manifest["device"] != on_cpu.manifest["device"] == "cpu"


def test_a_problem_for_each_run():
    def problem_of(run):
        return sb.problems.random(n_contexts=2, n_arms=3, dim=3, seed=run)

    for policy in (sb.RandUCB(), sb.Solid(bonus="local")):
        on_gpu, on_cpu = both(problem_of, policy)
        assert on_gpu.table.equals(on_cpu.table)


def test_problems_of_several_shapes_are_refused():
    def problem_of(run):
        return sb.problems.random(n_contexts=2, n_arms=3 + run % 2, dim=3, seed=run)

    with pytest.raises(ValueError, match="problem must give problems of one shape"):
        both(problem_of, sb.Greedy())


def test_waves_and_numbers_of_runs(monkeypatch):
    monkeypatch.setattr(device, "LARGEST_WAVE", 2)
    on_gpu, on_cpu = both(sb.problems.toy(), sb.LinTS(), runs=5, first_run=7)
    assert on_gpu.table.equals(on_cpu.table)
    assert on_gpu.table["run"].unique().to_list() == [7, 8, 9, 10, 11]


def test_a_summary_is_that_of_the_cpu(monkeypatch, tmp_path):
    monkeypatch.setattr(device, "LARGEST_WAVE", 2)
    arguments = {"horizon": HORIZON, "runs": 6, "worst": 3}
    policies = {"a": sb.LinTS(), "b": sb.RandUCB()}
    on_gpu = sb.summarise(sb.problems.toy(), policies, device="gpu", **arguments)
    on_cpu = sb.summarise(sb.problems.toy(), policies, jobs=1, **arguments)
    for label in policies:
        one, other = on_gpu.policies[label], on_cpu.policies[label]
        assert encode(one.sketches) == encode(other.sketches)
        assert (one.runs, one.worst) == (other.runs, other.worst)
        np.testing.assert_allclose(one.regret.mean, other.regret.mean, rtol=1e-13)  # blocks of other sizes


def test_an_interrupted_summary_keeps_finished_waves(monkeypatch, tmp_path):
    monkeypatch.setattr(device, "LARGEST_WAVE", 2)
    arguments = {"horizon": HORIZON, "runs": 6, "device": "gpu"}
    policies = {"a": sb.LinTS(), "b": sb.Greedy()}
    whole = sb.summarise(sb.problems.toy(), policies, **arguments)
    played = []
    play = wave.play_wave

    def interrupted(*given):
        if given[2] > 1:  # not while it compiles
            played.append(given[-2])
            if len(played) == 3:
                raise KeyboardInterrupt
        return play(*given)

    path = tmp_path / "summary.json"
    monkeypatch.setattr(wave, "play_wave", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sb.summarise(sb.problems.toy(), policies, path=path, **arguments)
    assert Summary.load(path).policies["a"].runs == 4
    resumed = sb.summarise(sb.problems.toy(), policies, path=path, **arguments)
    assert len(played) == 3 + 4  # the two that were finished are not played again
    for label in policies:
        one, other = (replace(each.policies[label], seconds=0.0) for each in (resumed, whole))
        assert encode(one) == encode(other)


def test_a_task_is_played_in_as_many_waves_as_the_memory_asks_for(monkeypatch):
    sizes = []
    play = wave.play_wave
    monkeypatch.setattr(wave, "play_wave", lambda *given: sizes.append(given[6]) or play(*given))
    monkeypatch.setattr(wave, "gpu_memory", lambda: (10**6, 10**6))

    def problem_of(run):
        return sb.problems.random(n_contexts=2, n_arms=3, dim=3, seed=run)

    for problem in (sb.problems.toy(), problem_of):
        for policy in (sb.LinTS(), OwnCopy()):
            sizes.clear()
            monkeypatch.setattr(wave, "fitting_runs", lambda sent, own, *memory: 2 if sent > 0 < own else 0)
            on_gpu, on_cpu = both(problem, policy, runs=5, first_run=7)
            assert sizes == [1, 2, 2, 1]  # the first compiles
            assert on_gpu.table.equals(on_cpu.table)


def test_what_a_run_sends_is_counted():
    toy = sb.problems.toy()
    agent, rng = wave.start_run(toy, sb.LinTS(), HORIZON, 0, 0, True)
    layout = wave.make_layout("LinTS", agent, rng)
    alike = wave._bytes_sent(layout, agent, toy, 25, shared=True)
    assert alike == 25 * 16 + 16 + 64
    ready = wave._make_ready(lambda run: toy, sb.LinTS(), HORIZON, 0, 0, 2, True)
    arrays = (ready.floats, ready.ints, *ready.reads, *ready.truths)
    assert (
        wave._bytes_sent(layout, agent, toy, 25, shared=False)
        == alike + sum(one.nbytes for one in arrays) / 2
    )


@pytest.mark.parametrize("code", ["CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"])
def test_too_little_memory_is_said_in_one_line(monkeypatch, code):
    def fails(*given, **named):
        raise RuntimeError(f"[2] Call to cuMemAlloc results in {code}\nand more")

    monkeypatch.setattr(wave.cuda, "device_array", fails)
    with pytest.raises(
        UnfitError, match=r"LinTS cannot be played on this GPU now: .* 1 runs? .* kB a thread"
    ) as caught:
        sb.simulate(sb.problems.toy(), {"one": sb.LinTS()}, horizon=5, runs=3, device="gpu")
    assert "\n" not in str(caught.value)


def test_other_errors_of_the_driver_are_left_as_they_are(monkeypatch):
    def fails(*given, **named):
        raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")

    monkeypatch.setattr(wave.cuda, "device_array", fails)
    with pytest.raises(RuntimeError, match="ILLEGAL_ADDRESS"):
        sb.simulate(sb.problems.toy(), {"one": sb.LinTS()}, horizon=5, runs=3, device="gpu")


class CountingState(NamedTuple):
    step: np.ndarray
    seen: np.ndarray


class CountingAgent(NamedTuple):
    state: CountingState
    scratch: np.ndarray


@sb.extend.jit
def count_act(agent, arms, available, out):
    # Were the scratch shared among threads, a sum of another run would be here.
    agent.scratch[0] += 1.0
    return int(agent.state.seen[0]) % arms.shape[0], False


@sb.extend.jit
def count_update(agent, features, reward):
    agent.state.step[()] += 1
    agent.state.seen[0] = agent.scratch[0] + extend.dot(features, features)


@dataclass(frozen=True)
class Counting(sb.extend.DecisionPolicy):
    kernels = sb.extend.Kernels(count_act, count_update, certain=True)

    def start(self, setting, rng):
        return CountingAgent(CountingState(np.array(0), np.zeros(1)), np.zeros(1))


def test_a_compiled_policy_of_ones_own():
    on_gpu, on_cpu = both(sb.problems.toy(), Counting())
    assert on_gpu.table.equals(on_cpu.table)


class DrawingParams(NamedTuple):
    rng: np.ndarray


class DrawingAgent(NamedTuple):
    params: DrawingParams
    state: CountingState
    scratch: np.ndarray


@sb.extend.jit
def draw_act(agent, arms, available, out):
    return int(arms.shape[0] * extend.uniform(agent.params.rng)), True


@dataclass(frozen=True)
class OwnCopy(sb.extend.DecisionPolicy):
    """Keeps a copy of its random numbers, so that more differs between runs than these."""

    kernels = sb.extend.Kernels(count_act, count_update, certain=True)

    def start(self, setting, rng):
        return CountingAgent(CountingState(np.array(0), np.array([float(rng[0] % 3)])), np.zeros(1))


@dataclass(frozen=True)
class DrawsAtTheStart(sb.extend.DecisionPolicy):
    """Draws before it plays, and keeps its random numbers with its parameters, where it writes to it."""

    kernels = sb.extend.Kernels(draw_act, count_update)

    def start(self, setting, rng):
        state = CountingState(np.array(0), np.array([extend.uniform(rng)]))
        return DrawingAgent(DrawingParams(rng), state, np.zeros(1))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", [OwnCopy(), DrawsAtTheStart()], ids=["own copy", "draws at the start"])
def test_agents_that_differ_by_more_than_their_random_numbers(policy, seed):
    on_gpu, on_cpu = both(sb.problems.toy(), policy, runs=6, seed=seed)
    assert on_gpu.table.equals(on_cpu.table)


def test_arrays_that_lie_in_each_other_are_refused():
    whole = np.zeros(4)
    agent = CountingAgent(CountingState(np.array(0), whole[:2]), whole[1:])
    with pytest.raises(UnfitError, match="share their memory"):
        device.check_fits("Overlapping", agent)


@sb.extend.jit
def no_arm(agent, arms, available, out):
    return 99, False


@dataclass(frozen=True)
class Astray(sb.extend.DecisionPolicy):
    kernels = sb.extend.Kernels(no_arm, count_update, certain=True)

    def start(self, setting, rng):
        return CountingAgent(CountingState(np.array(0), np.zeros(1)), np.zeros(1))


def test_an_arm_that_is_none_is_refused():
    with pytest.raises(ValueError, match="must return an arm from 0 to 2, got 99 at step 1"):
        sb.simulate(sb.problems.toy(), {"one": Astray()}, horizon=5, runs=2, device="gpu")


class Plain:
    def act(self, arms, available):
        return 0

    def update(self, features, reward):
        pass


def test_what_does_not_fit_is_refused_by_name():
    toy = sb.problems.toy()
    with pytest.raises(UnfitError, match="Plain cannot be played on a GPU: it is in plain Python"):
        sb.simulate(toy, {"one": Plain()}, horizon=5, runs=2, device="gpu")
    rng = np.random.default_rng(0)
    large = sb.Problem(rng.standard_normal((191, 40, 65)), rng.standard_normal(65), noise_std=1.0)
    with pytest.raises(
        UnfitError, match=r"Solid cannot be played on a GPU here: a run needs [\d,]+ kB, at most 512 kB"
    ):
        sb.simulate(large, {"one": sb.Solid()}, horizon=5, runs=2, device="gpu")
    with pytest.raises(ValueError, match="diagnostics must be False with device='gpu'"):
        sb.simulate(toy, {"one": sb.Solid()}, horizon=5, runs=2, device="gpu", diagnostics=True)


def test_a_summary_of_another_plan_is_not_touched(tmp_path):
    path = tmp_path / "summary.json"
    sb.summarise(sb.problems.toy(), {"a": sb.Greedy()}, horizon=5, runs=4, jobs=1, path=path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="holds another summary"):
        sb.summarise(sb.problems.toy(), {"a": sb.Greedy()}, horizon=6, runs=4, jobs=1, path=path)
    assert path.read_bytes() == before
