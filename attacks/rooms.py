"""Public calls of streams, live decisions, logs, evaluation, summaries and theorems, for the attack on arguments."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import solid_bandits as sb


class Call(NamedTuple):
    """A public call with good arguments, and the kind of each: number, array, word, or other."""

    function: Callable[..., Any]
    good: dict[str, Any]
    kinds: dict[str, str]


TWO = np.array([[1.0, 0.0], [0.0, 1.0]])
OPTIONAL = "number or none"


def kinds(numbers: str = "", **others: str) -> dict[str, str]:
    """Return kinds by name; `numbers` lists the numeric arguments."""
    return {**dict.fromkeys(numbers.split(), "number"), **others}


def some_log(rows: int = 12) -> pl.DataFrame:
    """Return a bandit's own log."""
    bandit = sb.Bandit(sb.LinUCB(), dim=2, noise_std=0.5, floor=0.3)
    for place in range(rows):
        bandit.decide(TWO, event_id=f"e{place}", time=float(place))
        bandit.learn(f"e{place}", place % 3 / 2, time=float(place))
    return bandit.log()


def room_calls(folder: Path) -> Iterator[tuple[str, Call]]:
    """Yield every public call of these rooms."""
    yield from live(folder)
    yield from evaluation(folder)
    yield from streams(folder)
    yield from theory()


def live(folder: Path) -> Iterator[tuple[str, Call]]:
    """Yield the calls of `Bandit`, and the later calls of `Agent`."""

    def begun() -> sb.Bandit:
        bandit = sb.Bandit(sb.LinUCB(), dim=2, noise_std=0.5)
        bandit.decide(TWO, event_id="a", time=1.0)
        return bandit

    def agent() -> sb.Agent:
        return sb.Agent(sb.LinUCB(), dim=2, noise_std=0.5, probabilities=True)

    settings = {"policy": sb.LinUCB(), "dim": 2, "noise_std": 0.5, "floor": 0.1, "theta_bound": 1.0}
    settings |= {"half_life": 10.0, "seed": 0, "window": 5}
    yield (
        "Bandit",
        Call(
            sb.Bandit,
            settings,
            kinds("dim floor seed window", noise_std=OPTIONAL, theta_bound=OPTIONAL, half_life=OPTIONAL),
        ),
    )
    asked = {"context": TWO, "arms": ["x", "y"], "event_id": "b", "time": 2.0, "available": [True, True]}
    asked |= {"subject": "anna"}
    yield (
        "Bandit.decide",
        Call(
            lambda **given: begun().decide(**given),
            asked,
            kinds(context="array", available="mask", time=OPTIONAL),
        ),
    )
    yield (
        "Bandit.decide_many",
        Call(lambda **given: begun().decide_many(**given), {"offers": [{"features": TWO}], "time": 2.0}, {}),
    )
    yield (
        "Bandit.learn",
        Call(
            lambda **given: begun().learn(**given),
            {"event_id": "a", "reward": 1.0, "time": 2.0},
            kinds(reward="reward", time=OPTIONAL),
        ),
    )
    yield (
        "Bandit.learn_many",
        Call(lambda **given: begun().learn_many(**given), {"rewards": {"a": 1.0}, "time": 2.0}, {}),
    )
    yield (
        "Bandit.expire",
        Call(
            lambda **given: begun().expire(**given),
            {"before": 5.0, "reward": 0.0, "time": 6.0, "event_ids": ["a"]},
            {},
        ),
    )
    yield "Bandit.recall", Call(lambda event_id: begun().recall(event_id), {"event_id": "a"}, {})
    yield "Bandit.delete", Call(lambda **given: begun().delete(**given), {"event_id": "a"}, {})
    yield "Bandit.warm_start", Call(lambda log: begun().warm_start(log), {"log": some_log()}, {})
    yield (
        "Bandit.from_log",
        Call(
            sb.Bandit.from_log,
            {"log": some_log(), "policy": sb.LinUCB(), "noise_std": 0.5, "seed": 0},
            kinds("seed", noise_std=OPTIONAL),
        ),
    )
    yield "Bandit.save", Call(lambda path: begun().save(path), {"path": folder / "b.json"}, {})
    begun().save(folder / "kept.json")
    yield (
        "Bandit.load",
        Call(sb.Bandit.load, {"path": folder / "kept.json", "policy": None}, {}),
    )
    yield (
        "Agent.probabilities",
        Call(
            lambda **given: agent().probabilities(**given),
            {"features": TWO, "available": [True, True]},
            {"features": "array", "available": "mask"},
        ),
    )
    yield (
        "Agent.probabilities_many",
        Call(
            lambda **given: agent().probabilities_many(**given),
            {"features": np.ones((3, 2, 2)), "counts": [2, 1, 2], "available": np.ones((3, 2), dtype=bool)},
            {"features": "array"},
        ),
    )


def evaluation(folder: Path) -> Iterator[tuple[str, Call]]:
    """Yield the calls of `sb.logs` and `sb.ope`."""
    log = some_log()
    plain = pl.DataFrame({"arm": ["x", "y", "x"], "reward": [1.0, 0.0, 1.0], "probability": [0.5, 0.5, 0.5]})
    yield (
        "logs.from_table",
        Call(sb.logs.from_table, {"table": plain, "columns": {}, "context": (), "arms": ["x", "y"]}, {}),
    )
    for name, write, read, file in (
        ("logs.write", sb.logs.write, sb.logs.read, "log.parquet"),
        ("logs.write_dsjson", sb.logs.write_dsjson, sb.logs.read_dsjson, "log.dsjson"),
    ):
        yield name, Call(write, {"table": log, "path": folder / file}, {})
        write(log, folder / file)
        yield name.replace("write", "read"), Call(read, {"path": folder / file}, {})
    yield "logs.delete", Call(sb.logs.delete, {"table": log, "event_id": "e1"}, {})
    good = {"log": log, "policy": sb.ope.uniform, "estimators": ["ips", "snips", "dr"], "logger": "learning"}
    good |= {"model": "linear", "reward_range": (0.0, 1.0), "missing_reward": 0.0, "confidence": 0.9}
    good |= {"bootstrap": 10, "threshold": 10.0, "strength": 1.0, "seed": 0}
    yield (
        "ope.evaluate",
        Call(
            sb.ope.evaluate,
            good,
            kinds(
                "confidence bootstrap seed", missing_reward=OPTIONAL, threshold=OPTIONAL, strength=OPTIONAL
            ),
        ),
    )
    yield (
        "ope.fitted",
        Call(
            sb.ope.fitted,
            {"log": log, "policy": sb.LinUCB(), "share": 0.5, "seed": 0, "noise_std": 0.5},
            kinds("share seed", noise_std=OPTIONAL),
        ),
    )
    yield (
        "ope.replay",
        Call(
            lambda **given: sb.ope.replay(**given),
            {"log": log, "agent": sb.Agent(sb.LinUCB(), dim=2, noise_std=0.5), "seed": 0, "confidence": 0.9},
            kinds("seed confidence"),
        ),
    )
    yield "ope.always", Call(sb.ope.always, {"arm": "0"}, {})


def streams(folder: Path) -> Iterator[tuple[str, Call]]:
    """Yield the calls of `sb.streams`, of `simulate` with a user's stream, and of summaries."""
    sizes = {"n_arms": 3, "noise_std": 1.0, "fresh": 0.5, "n_contexts": 4, "drift": 0.1, "availability": 0.9}
    sizes |= {"seed": 0}
    for name, more in (
        ("gaussian", {"dim": 2}),
        ("sparse", {"dim": 4, "density": 0.5}),
        ("joint", {"context_dim": 2}),
    ):
        good = {**sizes, **more}
        yield f"streams.{name}", Call(getattr(sb.streams, name), good, dict.fromkeys(good, "number"))
    frame = pl.DataFrame(
        {"r": [1.0, 0.0, 1.0, 0.0], "n": [0, 0, 1, 1], "a": ["x", "y"] * 2, "f": [1.0, 2.0] * 2}
    )
    named = {"reward": "r", "round": "n", "arm": "a", "features": ["f"]}
    told = {"intercept": True, "noise_std": 0.5, "ridge": 1.0}
    what = kinds("ridge", intercept="switch", shuffle="switch", noise_std=OPTIONAL)
    yield (
        "streams.from_frame",
        Call(sb.streams.from_frame, {"frame": frame, **named, **told, "shuffle": True}, what),
    )
    frame.write_csv(folder / "frame.csv")
    yield (
        "streams.from_file",
        Call(
            lambda **given: next(sb.streams.from_file(**given).blocks(0, 0)),
            {"path": folder / "frame.csv", **named, **told},
            what,
        ),
    )
    yield (
        "streams.classification",
        Call(
            sb.streams.classification,
            {"X": np.eye(3), "y": [0, 1, 0], **told, "shuffle": True},
            {**what, "X": "array"},
        ),
    )
    yield "streams.of_problem", Call(sb.streams.of_problem, {"problem": sb.problems.toy()}, {})

    def own(features: Any, means: Any, available: Any) -> sb.Results:
        class Own(sb.streams.Stream):
            dim, n_arms, noise_std = 2, 2, 0.5

            def blocks(self, seed: int, run: int) -> Iterator[Any]:
                yield sb.streams.Rounds(features, means, available)

        return sb.simulate(Own(), {"LinUCB": sb.LinUCB()}, horizon=3, runs=1, jobs=1)

    rounds = {
        "features": np.ones((3, 2, 2)),
        "means": np.ones((3, 2)),
        "available": np.ones((3, 2), dtype=bool),
    }
    yield "a stream of one's own", Call(own, rounds, {})
    stream = sb.streams.gaussian(3, 2)
    played = {
        "problem": stream,
        "policies": {"LinUCB": sb.LinUCB()},
        "horizon": 5,
        "runs": 1,
        "seed": 0,
        "jobs": 1,
    }
    yield "simulate a stream", Call(sb.simulate, played, kinds("horizon runs seed"))
    summed = {"problem": sb.problems.toy(), "policies": {"LinUCB": sb.LinUCB()}, "horizon": 5, "runs": 2}
    summed |= {"seed": 0, "worst": 2, "tell_noise": True, "device": "cpu", "jobs": 1}
    yield (
        "summarise",
        Call(
            sb.summarise,
            summed,
            kinds("horizon runs seed worst", tell_noise="switch", device="word"),
        ),
    )
    summary = sb.summarise(**summed)
    yield "Summary.survival", Call(summary.survival, {"policy": "LinUCB"}, {})
    yield (
        "Summary.share_above",
        Call(summary.share_above, {"policy": "LinUCB", "regret": 1.0}, kinds("regret")),
    )


def theory() -> Iterator[tuple[str, Call]]:
    """Yield the calls of Appendix C, of the theorems, and of later policies."""
    toy = sb.problems.toy()
    allocation = sb.bounds.lower_bound(toy).allocation
    yield "execute", Call(sb.bounds.execute, {"problem": toy, "allocation": allocation}, {})
    yield (
        "best_execution",
        Call(sb.bounds.best_execution, {"problem": toy, "allocation": allocation, "tol": 1e-4}, kinds("tol")),
    )
    yield (
        "lower_bound_in_total",
        Call(sb.bounds.lower_bound_in_total, {"problem": toy, "z": 1e4, "tol": 1e-4}, kinds("z tol")),
    )
    yield (
        "regret_bound",
        Call(
            sb.bounds.regret_bound,
            {"problem": toy, "n": 1e4, "max_multiplier": 100.0, "z0": 1.0},
            kinds("n z0", max_multiplier=OPTIONAL),
        ),
    )
    yield (
        "worst_case_bound",
        Call(
            sb.bounds.worst_case_bound,
            {"problem": toy, "n": 1e4, "max_multiplier": 100.0, "rate": 1.0},
            kinds("n max_multiplier rate"),
        ),
    )
