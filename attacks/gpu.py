"""Attack the public path of a GPU: every way in which a user's call reaches one, and every way in which it may fail.

Run, on a machine with an NVIDIA GPU and the extra `gpu`: python attacks/gpu.py [--wave 131072]

Numba's simulator passes where a device does not (attributes, memory, occupancy), so only a device counts. Prints the
versions, then a line for each check, "pass" or "FAIL" with the reason; exit status 1 if any fails.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from counted import show

import solid_bandits as sb
from solid_bandits import extend
from solid_bandits.gpu.device import MOST, fitting_runs, gpu_memory, gpu_name
from solid_bandits.gpu.layout import UnfitError

HORIZON, RUNS = 400, 512
PROBLEM = sb.problems.random(n_contexts=4, n_arms=8, dim=8, seed=0)
ONE_CONTEXT = sb.problems.end_of_optimism(xi=0.1)
"""Problem for the policies that take one context."""
FIT = [
    sb.Greedy(),
    sb.EpsilonGreedy(epsilon=0.2),
    sb.LinUCB(),
    sb.LinTS(),
    sb.LinTS(ridge="evidence"),
    sb.RandUCB(),
    sb.VIDS(),
    sb.rivals.StreamingSolid(),
    sb.Solid(),
    sb.Solid(bonus="theorem"),
    sb.rivals.AOIDS(),
    sb.rivals.UCB1(),
]
ROUNDING = 8
"""Number of `RUNS` runs that may end with another regret than on the CPU: a run diverges after one rounding
difference."""


class OwnState(NamedTuple):
    """State of Greedy."""

    regression: extend.Regression


class OwnAgent(NamedTuple):
    """Greedy, as a user would write it."""

    state: OwnState


@sb.extend.jit
def own_act(agent, arms, available, out):
    """Choose the greedy arm."""
    extend.observe_offer(agent.state.regression, arms, available)
    return extend.best_estimated(agent.state.regression, arms, available), False


@dataclass(frozen=True)
class OwnGreedy(sb.extend.DecisionPolicy):
    """A user's compiled policy."""

    kernels = sb.extend.Kernels(own_act, certain=True)

    def start(self, setting, rng):
        """Make an agent."""
        return OwnAgent(OwnState(extend.make_regression(setting)))


class PlainGreedy:
    """A policy in plain Python."""

    def act(self, arms, available):
        """Choose the first arm."""
        return 0

    def update(self, features, reward):
        """Learn nothing."""


def ends(problem, policies, horizon, runs, device, seed=0) -> np.ndarray:
    """Return the regret at the last step of every run of every policy."""
    table = sb.simulate(problem, policies, horizon, runs, seed=seed, device=device).table
    return table.filter(table["step"] == horizon).sort("policy", "run")["regret"].to_numpy()


def driver_attributes() -> str:
    """Check that the driver's bindings know every attribute that the sizing of waves asks for."""
    from numba import cuda

    gpu = cuda.get_current_device()
    told = {name: int(getattr(gpu, name)) for name in MOST}
    assert all(told[name] <= most for name, most in MOST.items()), told
    free, threads = gpu_memory()
    assert threads == int(np.prod(list(told.values())))
    return f"{told}, {free / 2**30:.1f} GiB free"


def as_on_the_cpu(policy: sb.extend.DecisionPolicy | sb.extend.TablePolicy) -> Callable[[], str]:
    """Return a check that `simulate` gives the runs of the CPU."""

    def check() -> str:
        problem = ONE_CONTEXT if isinstance(policy, sb.rivals.UCB1) else PROBLEM
        found = [ends(problem, {"policy": policy}, HORIZON, RUNS, device) for device in ("gpu", "cpu")]
        close = np.isclose(found[0], found[1], rtol=1e-9)
        assert close.sum() >= RUNS - ROUNDING, f"{close.sum()} of {RUNS} runs agree"
        return f"{close.sum()} of {RUNS} runs as on the CPU"

    return check


def a_problem_for_each_run() -> str:
    """Check `simulate` with a new problem in each run."""

    def problem(run):
        return sb.problems.random(n_contexts=2, n_arms=3, dim=4, seed=run)

    found = [ends(problem, {"policy": sb.RandUCB()}, HORIZON, RUNS, device) for device in ("gpu", "cpu")]
    close = np.isclose(found[0], found[1], rtol=1e-9)
    assert close.sum() >= RUNS - ROUNDING, f"{close.sum()} of {RUNS} runs agree"
    return f"{close.sum()} of {RUNS} runs as on the CPU"


def summary_of(runs: int, path: Path, progress=None) -> dict:
    """Return the summary of RandUCB on the toy problem, as written to its file, without its seconds."""
    sb.summarise(
        sb.problems.toy(),
        {"RandUCB": sb.RandUCB()},
        horizon=100,
        runs=runs,
        device="gpu",
        path=path,
        progress=progress,
    )
    content = json.loads(path.read_text(encoding="utf-8"))
    for one in content["policies"].values():
        one.pop("seconds")
    return content


def resumed(wave: int) -> Callable[[], str]:
    """Return a check that `summarise`, interrupted after a wave and called again, gives what one call gives."""

    def check() -> str:
        runs = 3 * wave + 17

        def interrupt(share: float) -> None:
            if share > 0.3:
                raise KeyboardInterrupt

        with tempfile.TemporaryDirectory() as folder:
            whole = summary_of(runs, Path(folder, "whole.json"))
            path = Path(folder, "parts.json")
            try:
                summary_of(runs, path, interrupt)
            except KeyboardInterrupt:
                played = json.loads(path.read_text(encoding="utf-8"))["policies"]["RandUCB"]["runs"]
            else:
                raise AssertionError("it was not interrupted")
            assert 0 < played < runs, played
            assert summary_of(runs, path) == whole, "the parts differ from the whole"
        return f"interrupted after {played:,} of {runs:,} runs, the same in the end"

    return check


def compared() -> str:
    """Check that `solid-bandits compare --device gpu` writes its table and its page."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "compare",
            "toy",
            "--device",
            "gpu",
            "--horizon",
            "1000",
            "--runs",
            "1000",
            "--out",
            folder,
        ]
        ended = subprocess.run(
            [sys.executable, "-m", "solid_bandits", *command, "--policy", "randucb", "--policy", "solid"],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert ended.returncode == 0, ended.stdout[-300:] + ended.stderr[-600:]
        manifest = json.loads(Path(folder, "manifest.json").read_text(encoding="utf-8"))
        assert manifest["device"] == gpu_name(), manifest["device"]
        written = sorted(path.name for path in Path(folder).iterdir() if not path.name.startswith("."))
        assert {"results.parquet", "report.html", "regret.png"} <= set(written), written
    return f"{', '.join(written)}"


def own_policy() -> str:
    """Check that a user's compiled policy gives the runs of ours."""
    own, ours = ends(PROBLEM, {"own": OwnGreedy(), "ours": sb.Greedy()}, HORIZON, RUNS, "gpu").reshape(
        2, RUNS
    )[::-1]
    assert (own == ours).all(), f"{(own == ours).sum()} of {RUNS} runs agree"
    return f"{RUNS} of {RUNS} runs are those of Greedy"


def refused(policy: sb.extend.DecisionPolicy | sb.extend.TablePolicy) -> Callable[[], str]:
    """Return a check that an unsupported policy is refused in one line that names it."""

    def check() -> str:
        try:
            sb.simulate(PROBLEM, {"policy": policy}, 5, 2, device="gpu")
        except (UnfitError, ValueError) as error:
            said = str(error)
        else:
            raise AssertionError("it was not refused")
        assert "cannot be played on a GPU" in said, said
        assert "\n" not in said, said
        return said

    return check


def little_memory() -> str:
    """Check that waves get smaller with little free memory, and that with none the error is one line."""
    from numba import cuda

    rng = np.random.default_rng(0)
    problem = sb.Problem(rng.standard_normal((50, 20, 16)), rng.standard_normal(16) / 4, noise_std=1.0)
    many = {"SOLID": sb.Solid()}
    whole = ends(problem, many, 20, 4_000, "gpu")
    free = gpu_memory()[0]
    taken = [cuda.device_array(int(free - 1.5 * 2**30), dtype=np.uint8)]
    size = fitting_runs(3280, 157_000, *gpu_memory())
    assert size < 131_072, size
    assert (ends(problem, many, 20, 4_000, "gpu") == whole).all()
    left = gpu_memory()[0]
    while left > 64 * 2**20:  # down to the last megabytes, in ever smaller pieces
        try:
            taken.append(cuda.device_array(int(left - 32 * 2**20), dtype=np.uint8))
        except Exception:
            break
        left = gpu_memory()[0]
    try:
        sb.simulate(problem, many, 20, 131_072, seed=1, device="gpu")
        said = "131,072 runs were played all the same"
    except UnfitError as error:
        said = str(error)
        assert "its memory does not hold" in said, said
        assert "\n" not in said, said
    del taken
    cuda.current_context().deallocations.clear()
    again = ends(problem, many, 20, 4_000, "gpu")
    assert (again == whole).all(), "the device gives other runs afterwards"
    return f"waves of {size:,} runs in 1.5 GiB; {left / 2**20:.0f} MiB: {said}"


def interrupted() -> str:
    """Check that an interrupt during a wave takes effect at once, and that the device works on."""
    problem, policies = sb.problems.toy(), {"LinTS": sb.LinTS()}
    sb.simulate(problem, policies, 10, 64, device="gpu")  # compiled
    heard: list[float] = []

    def press() -> None:
        time.sleep(3.0)
        heard.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    pressed = threading.Thread(target=press)
    pressed.start()
    try:
        sb.simulate(problem, policies, 2_000_000, 2_000, device="gpu")
    except KeyboardInterrupt:
        took = time.monotonic() - heard[0]
    else:
        raise AssertionError("the wave ended before the interrupt")
    finally:
        pressed.join()
    assert took < 5.0, f"it took {took:.1f} s"
    found = [ends(problem, policies, 100, 64, device) for device in ("gpu", "cpu")]
    assert np.isclose(found[0], found[1]).sum() >= 63
    return f"heard after {took:.2f} s"


def main() -> int:
    """Run every check and count failures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wave", type=int, default=131_072, help="runs of a wave of `summarise`")
    wave = parser.parse_args().wave
    from numba import cuda

    names = ("numpy", "numba", "numba-cuda")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    cuda_version = ".".join(map(str, cuda.runtime.get_version()))
    driver = Path("/proc/driver/nvidia/version")
    driver_line = driver.read_text(encoding="utf-8").splitlines()[0] if driver.is_file() else "driver unknown"
    print(f"{gpu_name()}, CUDA {cuda_version}, Python {platform.python_version()}, {versions}; {driver_line}")
    checks: dict[str, Callable[[], str]] = {"attributes": driver_attributes}
    checks |= {f"simulate {policy!r}": as_on_the_cpu(policy) for policy in FIT}
    checks |= {
        "a problem for each run": a_problem_for_each_run,
        "summarise, resumed": resumed(wave),
        "compare --device gpu": compared,
        "own compiled policy": own_policy,
        "own plain policy": refused(PlainGreedy()),
        "refused: OAM": refused(sb.rivals.OAM()),
        "refused: Solid.theory": refused(sb.Solid.theory(max_multiplier=1000.0)),
        "little memory": little_memory,
        "interrupt": interrupted,
    }
    began, failed = time.monotonic(), 0
    for name, check in checks.items():
        start = time.monotonic()
        try:
            said = f"pass  {name}: {check()}"
        except Exception as error:
            failed += 1
            said = f"FAIL  {name}: {type(error).__name__}: {error}"
        print(f"{said} ({time.monotonic() - start:.1f} s)", flush=True)
    show("the public path on a GPU", len(checks), failed, 0, began)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
