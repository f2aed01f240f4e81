"""What is said where there is no GPU, and the layout of a run's state."""

import numpy as np
import pytest

import solid_bandits as sb
from solid_bandits.core.randomness import make_rng, make_rngs
from solid_bandits.gpu import device
from solid_bandits.gpu.layout import UnfitError, make_layout, shared_arrays, write_rows
from solid_bandits.policies.contract import start


def agent_of(policy, problem, rng):
    return start(policy, problem.setting(100), problem.table, rng)


def test_without_the_extra_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    with pytest.raises(
        ValueError, match=r"device 'gpu' needs numba-cuda.*pip install 'solid-bandits\[gpu\]'"
    ):
        sb.simulate(sb.problems.toy(), {"a": sb.Greedy()}, horizon=5, runs=2, device="gpu")


def test_without_a_gpu_a_line_says_so(monkeypatch):
    class NoGPU:
        @staticmethod
        def is_available():
            raise RuntimeError("no driver")

    monkeypatch.setattr(device, "find_spec", lambda name: object())
    monkeypatch.setattr(device, "import_module", lambda name: NoGPU)
    with pytest.raises(ValueError, match="device must be 'cpu' here, got 'gpu': no NVIDIA GPU"):
        sb.simulate(sb.problems.toy(), {"a": sb.Greedy()}, horizon=5, runs=2, device="gpu")


def test_every_number_of_an_agent_has_one_place():
    problem = sb.problems.random(n_contexts=2, n_arms=3, dim=4, seed=0)
    rng = make_rng(0, 0, 1)
    agent = agent_of(sb.Solid(), problem, rng)
    layout = make_layout("Solid", agent, rng)
    floats, ints = write_rows(layout, [agent])
    taken = {"float": np.zeros(layout.floats, dtype=int), "int": np.zeros(layout.ints, dtype=int)}
    for leaf in layout.leaves:
        if leaf.place >= 0:
            size = int(np.prod(leaf.shape)) if leaf.shape is not None else 1
            taken["float" if leaf.kind == "float" else "int"][leaf.place : leaf.place + size] += 1
    assert (taken["float"] == 1).all()
    assert (taken["int"] == 1).all()
    by_path = {leaf.path: leaf for leaf in layout.leaves}
    omega = by_path["state.omega"]
    np.testing.assert_array_equal(floats[0, omega.place : omega.place + 6], agent.state.omega.ravel())
    assert by_path["state.rng"].kind == "rng"
    assert not by_path["table.features"].own
    assert not by_path["params.phases.length"].own
    assert ints.shape == (1, layout.ints)
    shared = shared_arrays(layout, [agent, agent])
    assert any(array.shape == (2, 2, 3, 4) for array in shared)


def test_own_bytes_are_those_of_what_changes():
    problem = sb.problems.toy()
    rng = make_rng(0, 0, 1)
    agent = agent_of(sb.Greedy(), problem, rng)
    regression = agent.state.regression
    size = 1 + sum(array.size for array in (*regression.estimator, *regression.work[:3]))  # and its step
    assert make_layout("Greedy", agent, rng).own_bytes == 8 * size


def test_arrays_of_other_kinds_are_refused():
    problem = sb.problems.toy()
    agent = agent_of(sb.Greedy(), problem, None)

    def with_theta(theta):
        regression = agent.state.regression
        other = regression._replace(work=regression.work._replace(theta=theta))
        return agent._replace(state=agent.state._replace(regression=other))

    with pytest.raises(
        UnfitError, match=r"Greedy cannot be played on a GPU: state.*work.theta must be of float64"
    ):
        make_layout("Greedy", with_theta(np.zeros(3, dtype=np.float32)), None)
    with pytest.raises(UnfitError, match=r"work.theta is empty"):
        make_layout("Greedy", with_theta(np.zeros((3, 0))), None)
    with pytest.raises(UnfitError, match=r"work.theta must be a number, an array or a named tuple"):
        make_layout("Greedy", with_theta("words"), None)


GIB = 2**30


@pytest.mark.parametrize(
    ("sent", "own", "free", "threads", "runs"),
    [
        (3280, 1000, None, 0, 2**17),  # the simulator
        (3280, 1000, 80 * GIB, 200_000, 2**17),
        (3280, 157_000, 140 * GIB, 270_000, 2**17),
        (3280, 157_000, 24 * GIB, 120_000, (int(0.8 * 24 * GIB) - 120_000 * 157_000) // 3280),
        (3280, 157_000, 8 * GIB, 120_000, int(0.8 * 8 * GIB) // (3280 + 157_000)),
        (3280, 157_000, 100_000, 120_000, 1),
        (3280, 157_000, 0, 120_000, 1),
        (10**6, 0, 10**9, 1000, 800),
    ],
)
def test_a_wave_is_what_the_memory_holds(sent, own, free, threads, runs):
    found = device.fitting_runs(sent, own, free, threads)
    assert found == min(runs, device.LARGEST_WAVE)
    if free is not None and found > 1:
        assert found * sent + min(found, threads) * own <= device.SHARE * free
    if found < device.LARGEST_WAVE and free:
        more = found + 1
        assert more * sent + min(more, threads) * own > device.SHARE * free


ATTRIBUTES = {"MULTIPROCESSOR_COUNT": 132, "MAX_THREADS_PER_MULTIPROCESSOR": 1536}


@pytest.mark.parametrize("known", [ATTRIBUTES, {"MULTIPROCESSOR_COUNT": 132}, {}])
def test_memory_and_threads_of_the_gpu(monkeypatch, known):
    class Device(type):
        def __getattr__(cls, name):  # as numba-cuda's: the driver's bindings decide which names there are
            if name not in known:
                raise AttributeError(f"CUdevice_attribute has no attribute CU_DEVICE_ATTRIBUTE_{name}")
            return known[name]

    class GPU(metaclass=Device):
        @classmethod
        def get_current_device(cls):
            return cls

        @classmethod
        def current_context(cls):
            return cls

        @staticmethod
        def get_memory_info():
            return 5 * GIB, 8 * GIB

    monkeypatch.setattr(device, "import_module", lambda name: GPU)
    count, threads = (device.MOST | known).values()
    assert device.gpu_memory() == (5 * GIB, count * threads)


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**70 + 3, 2**130 + 9])
@pytest.mark.parametrize("first", [0, 7, 2**32 - 4])
@pytest.mark.parametrize("role", [0, 1])
def test_streams_of_many_runs_are_numpys(seed, first, role):
    many = make_rngs(seed, first, 4, role)
    assert (many == [make_rng(seed, first + run, role) for run in range(4)]).all()


def test_runs_beyond_the_numbers_that_there_are():
    with pytest.raises(ValueError, match=r"runs must be numbered below 2\*\*32, got 4294967296"):
        make_rngs(0, 2**32 - 1, 2, 0)
