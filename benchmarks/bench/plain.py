"""The compiled loop compared with plain NumPy."""

import time
from typing import NamedTuple

import numpy as np

import naive
import solid_bandits as sb
from bench.cases import SIZES, policy_of, problem_of
from solid_bandits.core.loop import _begin, _loop
from solid_bandits.policies.contract import Policy

NAIVE_SIZES = SIZES[:3]
NAIVE_STEPS = 1000


class Speedup(NamedTuple):
    """The compiled loop and plain NumPy, in seconds per step."""

    name: str
    size: tuple[int, int, int]
    compiled: float
    plain: float

    @property
    def ratio(self) -> float:
        """Speed-up factor."""
        return self.plain / self.compiled

    @property
    def key(self) -> str:
        """Name in `bench.json`."""
        return f"{self.name} {','.join(map(str, self.size))}"


def numpy_linucb(problem: sb.Problem, steps: int, rng: np.random.Generator) -> None:
    """Play LinUCB as one would write it in NumPy for speed: only the context's arms, rank-one updates."""
    dim = problem.dim
    inverse, moment, theta = np.eye(dim), np.zeros(dim), np.zeros(dim)
    contexts = rng.choice(problem.n_contexts, size=steps, p=problem.context_probs)
    noise = problem.noise_std * rng.normal(size=steps)
    log_det = 0.0
    for step in range(steps):
        context = contexts[step]
        features = problem.features[context]
        norms = np.einsum("ij,ij->i", features @ inverse, features)
        width = problem.noise_std * np.sqrt(log_det + np.log(step + 1))
        arm = np.argmax(features @ theta + width * np.sqrt(norms))
        feature = features[arm]
        direction = inverse @ feature
        growth = 1.0 + feature @ direction
        inverse -= np.outer(direction, direction / growth)
        moment += feature * (problem.means[context, arm] + noise[step])
        theta = inverse @ moment
        log_det += np.log(growth)


def measure_plain(rounds: int) -> list[Speedup]:
    """Measure five policies and the reference of the tests, and for LinUCB a faster NumPy form too."""
    found = []
    for size in NAIVE_SIZES:
        problem = problem_of(size)
        policies = {
            "SOLID exploring": policy_of("SOLID", "exploring", size[1]),
            "SOLID searching": policy_of("SOLID", "searching", size[1]),
            "LinUCB": sb.LinUCB(radius="paper"),
            "RandUCB": sb.RandUCB(),
            "LinTS": sb.LinTS(),
            "Greedy": sb.Greedy(),
        }
        times: dict[str, tuple[list[float], list[float]]] = {
            name: ([], []) for name in (*policies, "LinUCB (rank-one NumPy)")
        }
        for _ in range(rounds):
            for name, policy in policies.items():
                fast = whole_run_seconds(problem, policy)
                times[name][0].append(fast)
                start = time.thread_time()
                for _ in naive.steps(problem, policy, NAIVE_STEPS, seed=0, run=0):
                    pass
                times[name][1].append((time.thread_time() - start) / NAIVE_STEPS)
                if name == "LinUCB":
                    start = time.thread_time()
                    numpy_linucb(problem, NAIVE_STEPS, np.random.default_rng(0))
                    times["LinUCB (rank-one NumPy)"][0].append(fast)
                    times["LinUCB (rank-one NumPy)"][1].append((time.thread_time() - start) / NAIVE_STEPS)
        for name, (fast_times, slow_times) in times.items():
            ratio = float(np.median(np.array(slow_times) / np.array(fast_times)))
            fast = float(np.median(fast_times))
            found.append(Speedup(name, size, fast, ratio * fast))
    return found


def whole_run_seconds(problem: sb.Problem, policy: Policy, repetitions: int = 5) -> float:
    """Return seconds per step of the compiled loop from the first step on, everything included."""
    seconds = 0.0
    for _ in range(repetitions):
        agent, truth, trace, environment = _begin(
            problem, policy, NAIVE_STEPS, 0, 0, np.array([1, NAIVE_STEPS])
        )
        _loop(agent, truth, trace, environment, 0, 1)  # loads the compiled code
        start = time.thread_time()
        _loop(agent, truth, trace, environment, 1, 2)
        seconds += time.thread_time() - start
    return seconds / repetitions / (NAIVE_STEPS - 1)
