"""Every public argument, one at a time, given impossible values: masked, complex and object arrays, text, liars.

An argument that takes an array or a number must refuse all of these with a one-line ValueError; any other argument
may accept a value that happens to fit. Nothing is random: every public call is tried with every argument and value.

    python attacks/arguments.py [--every N]
"""

import argparse
import contextlib
import io
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from counted import HEAD, show
from rooms import OPTIONAL, Call, room_calls

import solid_bandits as sb
from solid_bandits import extend
from solid_bandits.paper import jester
from solid_bandits.policies.solid.policy import theory_multiplier


class Liar(int):
    """A number whose comparisons all return a favourable answer."""

    def __lt__(self, other: object) -> bool:
        return not (isinstance(other, int) and other <= 1)

    def __le__(self, other: object) -> bool:
        return True

    def __gt__(self, other: object) -> bool:
        return False

    def __ge__(self, other: object) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class LyingText(str):
    """Text that claims to equal every other."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


WRONG_NUMBERS: list[Any] = [
    "1.0", b"1", "", 1j, 1 + 0j, np.complex128(1), Decimal("0.5"), Decimal("NaN"), Fraction(1, 3), 10**400, -(10**400),
    math.nan, math.inf, -math.inf, np.float64("nan"), np.array([1.0]), np.array(1.0), np.ma.masked, np.ma.array(1.0),
    np.datetime64("2026-01-01"), np.timedelta64(1), np.str_("1"), [1.0], (1,), {}, {1.0}, {"a": 1}, object(), print,
    sb.LinUCB, sb.LinUCB(), True, np.True_, range(1), pl.Series([1.0]),
]  # fmt: skip

LIARS: list[Any] = [Liar(-(10**9)), Liar(2**60)]
"""An integer beyond the limit of every argument."""
COUNTS = (
    "horizon", "seed", "dim", "context", "arm", "runs", "jobs", "points", "n_contexts", "n_arms", "fit_seed", "votes",
)  # fmt: skip


def wrong_arrays(good: Any) -> list[Any]:
    """Return values that look like a good array but are not, and values of another type."""
    whole = np.asarray(good)
    bare = np.arange(whole.size, dtype=np.float64).reshape(whole.shape)
    record = np.zeros(whole.shape, dtype=[("a", "<f8")])
    return [
        np.ma.array(bare, mask=False), np.ma.array(bare, mask=True), np.ma.array(bare, mask=bare > 0),
        bare.astype(complex), bare + 1j, bare.astype(object), np.full(whole.shape, Decimal(1)),
        np.full(whole.shape, 10**400, dtype=object), bare.astype(str), bare.astype("S"), bare.astype("M8[s]"),
        bare.astype("m8[s]"), record, np.full(whole.shape, None), np.full(whole.shape, np.nan),
        np.full(whole.shape, np.inf), np.full(whole.shape, -np.inf), np.full(whole.shape, 1.7e308), bare[..., None],
        bare.reshape(-1)[:0], np.empty((0,) * max(whole.ndim, 1)), np.array(1.0),
        1.0, "1.0", b"1",
        [[1.0], [1.0, 2.0]], [], {}, {1.0}, object(), print, 10**400, Decimal(1), pl.Series(["a", "b"]), [1.0, "2"],
        [Decimal(1)], [10**400], [1j], [object()], lambda: 1,
    ]  # fmt: skip


WRONG_WORDS: list[Any] = [
    None, 1, 1.0, True, b"paper", "", "papr", "x" * 10_000, ["paper"], np.array(["paper"]), {}, LyingText("x"), print,
    np.array([1.0, 2.0]), object(),
]  # fmt: skip
WRONG_KINDS: list[Any] = [
    None, True, 3, -1.5, math.nan, 10**400, Decimal(1), "text", "\0", b"bytes", [], [1], (), {}, {"a": 1}, {1},
    object(),
    print, int, sb.LinUCB, sb.Problem, sb.LinUCB(), np.zeros(3), np.ma.array([1.0]), np.array(["a"], dtype=object), 1j,
    iter([]), pl.DataFrame({"a": [1]}), Liar(7), range(3), lambda: None,
]  # fmt: skip


def labelled(label: Any) -> dict[Any, Any]:
    """Return a policy under a label, if the label can be a key of a dict."""
    try:
        return {label: sb.LinUCB()}
    except TypeError:
        raise ValueError("not even a key") from None


def calls(folder: Path) -> Iterator[tuple[str, Call]]:
    """Yield every public call with a name."""
    toy = sb.problems.toy()
    features, theta = toy.features, toy.theta

    def agent(**more: Any) -> sb.Agent:
        return sb.Agent(sb.LinUCB(), dim=2, noise_std=1.0, **more)

    def planner() -> sb.Agent:
        return sb.Agent(sb.rivals.OAM(), contexts=features, noise_std=1.0, theta_bound=2.0)

    def learn(reward: Any = 1.0, **changes: Any) -> None:
        made = agent()
        made.learn(made.decide(np.eye(2)).replace(**changes), reward)

    def learn_pair(**changes: Any) -> None:
        made = planner()
        made.learn(made.decide(context=0).replace(**changes), 1.0)

    def learn_many(decisions: Any, rewards: Any) -> None:
        agent().learn_many(decisions, rewards)

    numbers = dict.fromkeys(
        ("noise_std", "theta_bound", "horizon", "seed", "xi", "first_context_prob", "tol", "z"), "number"
    )
    bare = np.eye(2)
    yield (
        "Problem",
        Call(
            sb.Problem,
            {
                "features": features,
                "theta": theta,
                "context_probs": [0.5, 0.5],
                "noise_std": 1.0,
                "theta_bound": 2.0,
            },
            {**numbers, "features": "array", "theta": "array", "context_probs": "array"},
        ),
    )
    yield (
        "Agent",
        Call(
            sb.Agent,
            {
                "policy": sb.LinUCB(),
                "dim": 2,
                "noise_std": 1.0,
                "theta_bound": 1.0,
                "horizon": 5,
                "seed": 0,
                "probabilities": True,
            },
            {**numbers, "dim": "number", "probabilities": "switch"},
        ),
    )
    yield (
        "Agent with contexts",
        Call(
            sb.Agent,
            {"policy": sb.rivals.OAM(), "contexts": features, "noise_std": 1.0, "theta_bound": 1.0},
            {**numbers, "contexts": "array"},
        ),
    )
    yield (
        "decide",
        Call(
            lambda **given: agent().decide(**given),
            {"features": bare, "available": [True, True]},
            {"features": "array", "available": "mask"},
        ),
    )
    yield (
        "decide in a context",
        Call(lambda context: planner().decide(context=context), {"context": 1}, {"context": "number"}),
    )
    yield (
        "learn",
        Call(learn, {"reward": 1.0, "features": np.ones(2)}, {"reward": "reward", "features": "array"}),
    )
    yield (
        "learn of a pair",
        Call(learn_pair, {"context": 0, "place": 0}, {"context": "number", "place": "number"}),
    )
    yield "learn of anything", Call(lambda decision: agent().learn(decision, 1.0), {"decision": None}, {})
    yield "learn_many", Call(learn_many, {"decisions": [], "rewards": []}, {})
    yield (
        "predict",
        Call(lambda features: agent().predict(features), {"features": bare}, {"features": "array"}),
    )
    yield "save", Call(lambda path: agent().save(path), {"path": folder / "a.json"}, {})
    yield "Agent.load", Call(sb.Agent.load, {"path": folder / "a.json", "policy": None}, {})
    yield "Problem.save", Call(toy.save, {"path": folder / "p.npz"}, {})
    yield "Problem.load", Call(sb.Problem.load, {"path": folder / "p.npz"}, {})
    yield "Problem.setting", Call(toy.setting, {"horizon": 5}, {"horizon": "number"})
    small = sb.simulate(toy, {"LinUCB": sb.LinUCB()}, 5, runs=2, jobs=1)
    yield (
        "simulate",
        Call(
            sb.simulate,
            {
                "problem": toy,
                "policies": {"LinUCB": sb.LinUCB()},
                "horizon": 3,
                "runs": 1,
                "seed": 0,
                "jobs": 1,
                "diagnostics": False,
            },
            {**numbers, "runs": "number", "jobs": "number", "diagnostics": "switch"},
        ),
    )
    yield (
        "simulate, a policy",
        Call(lambda policy: sb.simulate(toy, {"x": policy}, 3, runs=1, jobs=1), {"policy": sb.LinUCB()}, {}),
    )
    yield (
        "simulate, a label",
        Call(lambda label: sb.simulate(toy, labelled(label), 3, runs=1, jobs=1), {"label": "x"}, {}),
    )
    yield (
        "simulate, a problem per run",
        Call(
            lambda problem: sb.simulate(
                lambda run: problem if run else toy, {"x": sb.LinUCB()}, 3, runs=2, jobs=1
            ),
            {"problem": toy},
            {},
        ),
    )
    yield "Results.final", Call(small.final, {"confidence": 0.9}, {"confidence": "number"})
    yield "Results.summary", Call(small.summary, {"confidence": 0.9}, {"confidence": "number"})
    two = sb.simulate(toy, [sb.LinUCB(), sb.Greedy()], 5, runs=2, jobs=1)
    yield (
        "Results.compare",
        Call(
            two.compare,
            {"first": "LinUCB", "second": "Greedy", "measure": "regret", "confidence": 0.9},
            {"confidence": "number"},
        ),
    )
    yield (
        "Results.plot",
        Call(
            small.plot,
            {"path": folder / "r.svg", "axes": None, "log": False, "bands": True, "bound": 1.0, "title": ""},
            {"log": "switch", "bands": "switch", "bound": "number"},
        ),
    )
    yield "Results.to_pandas", Call(small.to_pandas, {"what": "final"}, {})
    yield "Results.save", Call(small.save, {"path": folder / "results"}, {})
    yield "Results.load", Call(sb.Results.load, {"path": folder / "results"}, {})
    yield (
        "Results",
        Call(sb.Results, {"table": small.table, "manifest": small.manifest, "diagnostics": None}, {}),
    )
    bound, pure = sb.bounds.lower_bound(toy), sb.bounds.pure_exploration(toy)
    at = sb.bounds.lower_bound_at(toy, 2 * pure.upper)
    yield (
        "lower_bound",
        Call(sb.bounds.lower_bound, {"problem": toy, "tol": 1e-3, "warm_start": None}, numbers),
    )
    yield (
        "pure_exploration",
        Call(sb.bounds.pure_exploration, {"problem": toy, "tol": 1e-3, "warm_start": None}, numbers),
    )
    yield (
        "lower_bound_at",
        Call(
            sb.bounds.lower_bound_at,
            {"problem": toy, "z": 2 * pure.upper, "tol": 1e-3, "warm_start": None, "exploration": None},
            numbers,
        ),
    )
    yield (
        "curve",
        Call(sb.bounds.curve, {"problem": toy, "points": 2, "tol": 1e-2}, {**numbers, "points": "number"}),
    )
    yield (
        "curve at z",
        Call(
            sb.bounds.curve,
            {"problem": toy, "z": [2 * pure.upper], "tol": 1e-2},
            {"z": "array of any size", "tol": "number"},
        ),
    )
    yield "verify", Call(sb.bounds.verify, {"problem": toy, "answer": bound}, {})
    for name, answer in (("bound", bound), ("bound at z", at), ("pure exploration", pure)):
        names = [field for field in vars(answer) if field not in ("restart", "exploration", "alternatives")]
        yield (
            f"verify a {name}",
            Call(
                lambda answer=answer, **changes: sb.bounds.verify(toy, replace(answer, **changes)),
                {field: getattr(answer, field) for field in names},
                {},
            ),
        )
        yield (
            f"verify a {name}'s alternatives",
            Call(
                lambda answer=answer, **changes: sb.bounds.verify(
                    toy, replace(answer, alternatives=replace(answer.alternatives, **changes))
                ),
                dict(vars(answer.alternatives)),
                {},
            ),
        )
    radius = {
        "n": 100,
        "delta": 0.1,
        "dim": 2,
        "noise_std": 1.0,
        "theta_bound": 1.0,
        "feature_bound": 1.0,
        "ridge": 1.0,
    }
    yield "confidence_radius", Call(sb.bounds.confidence_radius, radius, dict.fromkeys(radius, "number"))
    multiplier = {"setting": toy.setting(), "table": toy.table, "least_gap": 0.1, "least_context_prob": 0.5}
    yield (
        "theory_multiplier",
        Call(theory_multiplier, multiplier, {"least_gap": "number", "least_context_prob": "number"}),
    )
    yield (
        "problems.toy",
        Call(sb.problems.toy, {"xi": 0.1, "first_context_prob": 0.5, "noise_std": 1.0}, numbers),
    )
    sizes = {"n_contexts": 2, "n_arms": 3, "dim": 3, "density": 0.5, "noise_std": 1.0, "seed": 0}
    yield "problems.random", Call(sb.problems.random, sizes, dict.fromkeys(sizes, "number"))
    yield (
        "problems.end_of_optimism",
        Call(sb.problems.end_of_optimism, {"xi": 0.1, "noise_std": 1.0}, numbers),
    )
    nowhere = folder / "no-ratings.zip"
    yield (
        "jester.jester",
        Call(
            jester.jester,
            {"source": nowhere, "users_fraction": 0.1, "seed": 0, "fit_seed": 0},
            {"users_fraction": "number", "seed": "number", "fit_seed": "number"},
        ),
    )
    yield (
        "jester.jester_model",
        Call(jester.jester_model, {"source": nowhere, "fit_seed": 0}, {"fit_seed": "number"}),
    )
    yield (
        "Solid.theory",
        Call(
            sb.Solid.theory,
            {"max_multiplier": 10.0, "z0": 1.0},
            dict.fromkeys(("max_multiplier", "z0"), "number"),
        ),
    )
    yield "Solid.paper_random", Call(sb.Solid.paper_random, {"n_arms": 4}, {"n_arms": "number"})
    yield (
        "make_regression",
        Call(
            lambda **given: extend.make_regression(extend.Setting(2, 0.5, 0.0, 0), **given),
            {"ridge": 1.0, "half_life": 5.0},
            dict.fromkeys(("ridge", "half_life"), "number"),
        ),
    )
    for kind in (
        sb.LinUCB,
        sb.LinTS,
        sb.Greedy,
        sb.EpsilonGreedy,
        sb.RandUCB,
        sb.rivals.OSSB,
        sb.rivals.SPL,
        sb.rivals.EndOfOptimism,
        sb.rivals.UCB1,
        sb.Solid,
        sb.rivals.OAM,
        sb.rivals.AOIDS,
        sb.VIDS,
        sb.rivals.StreamingSolid,
    ):
        made = kind()
        good = {field.name: getattr(made, field.name) for field in fields(kind)}
        kinds = {
            name: "switch" if isinstance(value, bool) else "word" if isinstance(value, str) else "number"
            for name, value in good.items()
        }
        if kinds.get("ridge") == "word":  # or a number
            kinds["ridge"] = "any"
        yield kind.__name__, Call(kind, good, kinds)
    yield from room_calls(folder)


def wrong_values(kind: str, good: Any) -> list[tuple[Any, bool]]:
    """Return wrong values for an argument of a kind, and whether each must be refused."""
    if kind == "number":
        return [(value, not (good is None and value is None)) for value in WRONG_NUMBERS]
    if kind == OPTIONAL:
        return [(value, value is not None) for value in [*WRONG_NUMBERS, None]]
    if kind == "reward":  # a click is a reward
        return [(value, not isinstance(value, bool | np.bool_)) for value in WRONG_NUMBERS]
    if kind == "array":
        return [(value, True) for value in wrong_arrays(good)]
    if kind == "array of any size":
        return [(value, "1.7e+308" not in repr(value)) for value in wrong_arrays(good)]
    if kind == "mask":
        return [(value, not isinstance(value, list) or len(value) != 2) for value in wrong_arrays(good)]
    if kind == "word":
        return [(value, True) for value in WRONG_WORDS]
    if kind == "switch":
        return [(value, not isinstance(value, bool | np.bool_)) for value in WRONG_NUMBERS]
    return [
        (value, False)
        for value in [*WRONG_KINDS, *wrong_arrays(good if isinstance(good, np.ndarray) else [1.0])]
    ]


def complaint(call: Call, arguments: dict[str, Any], refused: bool) -> str:
    """Return what went wrong, or empty text."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            call.function(**arguments)
    except ValueError as error:
        said = str(error)
        return "" if said and "\n" not in said else f"said in several lines: {said!r}"[:300]
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {error}"[:300]
    return "was not refused" if refused else ""


def attack(every: int = 1, only: str = "", verbose: bool = True) -> tuple[int, int]:
    """Try all attacks, or one in `every`; return the number tried and the number failed."""
    tried = failed = number = 0
    with (
        tempfile.TemporaryDirectory(prefix="attack-arguments-") as name,
        contextlib.chdir(name),  # "text" is also a path
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        for label, call in calls(Path(name)):
            if not label.startswith(only):
                continue
            for argument, good in call.good.items():
                kind = call.kinds.get(argument, "any")
                lies = [(liar, True) for liar in LIARS if kind == "number" and argument in COUNTS]
                for value, refused in [*wrong_values(kind, good), *lies]:
                    number += 1
                    if number % every:
                        continue
                    tried += 1
                    wrong = complaint(call, {**call.good, argument: value}, refused)
                    if wrong:
                        failed += 1
                        if verbose:
                            shown = repr(value)[:60].replace("\n", " ")
                            print(f"  {label}({argument}={shown}): {wrong}", file=sys.stderr, flush=True)
    return tried, failed


def main() -> None:
    """Attack from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--every", type=int, default=1, help="try only one in EVERY")
    parser.add_argument("--only", default="", help="only calls whose names begin with this")
    given = parser.parse_args()
    began = time.monotonic()
    print(HEAD)
    tried, failed = attack(given.every, given.only)
    show("wrong values of every public argument", tried, failed, 0, began)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
