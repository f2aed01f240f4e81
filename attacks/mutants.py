"""Faults put into the package one by one, and whether the tests notice: nothing should lose its only test.

A mutant is a function whose text is changed in one place. Its code is exchanged in a child process that has loaded the
package, so that every caller has it, and the tests that are named beside it run there, without the compiler.

    NUMBA_DISABLE_JIT=1 python attacks/mutants.py                    # the tests beside this file
    NUMBA_DISABLE_JIT=1 python attacks/mutants.py --tests OTHER      # those of another tree, such as before a change
"""

import argparse
import ast
import importlib
import inspect
import os
import sys
import textwrap
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
CONTRACT, REFERENCES = "policies/test_contract.py", "policies/test_references.py"


class Mutant(NamedTuple):
    """One fault."""

    place: str
    """Module and function, below solid_bandits."""
    before: str
    after: str
    tests: tuple[str, ...]
    """Files below the folder of tests."""
    chosen: str
    """Of their tests, as pytest's -k has it."""


def mutants() -> list[Mutant]:
    """All of them."""
    found = []

    def add(place: str, before: str, after: str, chosen: str, *tests: str) -> None:
        found.append(Mutant(place, before, after, tests or (REFERENCES, CONTRACT), chosen))

    add("policies.randucb:draw_width", "-2.0 *", "-1.0 *", "randucb and not thrifty")
    add("policies.randucb:exceeds", "2.0 * width", "3.0 * width", "randucb and not thrifty")
    add("policies.randucb:is_crossed_first", "here < crossing", "here > crossing", "randucb and not thrifty")
    add("policies.randucb:share_envelope", "out[top] += mass - left", "out[top] = mass - left", "randucb")
    add("policies.linucb:radius", "math.log(step)", "math.log(step + 1)", "linucb")
    add("policies.linucb:radius", "2.0 * log_inverse_delta", "log_inverse_delta", "linucb")
    add("policies.linucb:radius", "params.root_ridge * setting", "setting", "linucb")
    add("policies.linucb:upper_arm", "best != greedy", "best == greedy", "linucb")
    add("policies.lints:choose_of_two", "(drawn >= 0.0) != (gap >= 0.0)", "drawn >= 0.0", "lints")
    add("policies.lints:choose_of_two", "1.0 - out[first]", "out[first]", "lints")
    add("policies.lints:act", "out[arm] += 1.0 / votes", "out[arm] = 1.0 / votes", "lints")
    add("policies.lints:act", "int(uniform(rng) * votes)", "0", "lints")
    add("policies.epsilon_greedy:any_available", "left == 0", "left <= 1", "epsilon")
    add("policies.epsilon_greedy:act", "** -params.decay", "** params.decay", "epsilon")
    add("policies.epsilon_greedy:act", "out[arm] += 1.0 - share", "out[arm] += share", "epsilon")
    add("policies.vids:information_of", "max(total, 0.0)", "total + 1.0", "vids")
    add("policies.vids:remember", "place + count > room", "place > room", "vids")
    add("policies.vids:act", "arm != best", "arm == best", "vids")
    add("policies.rivals.linmed:write_likelihoods", "-gap * gap", "gap * gap", "linmed")
    add("policies.rivals.linmed:uncertain_arm", "> 1.0", "> 4.0", "linmed")
    add("policies.rivals.linmed:share_out", "1.0 - params.empirical", "1.0", "linmed")
    add("policies.rivals.linimed:cap_of", "params.form == 2", "params.form == 3", "linimed")
    add("policies.rivals.linimed:cap_of", "2.0 * math.log", "math.log", "linimed")
    add("policies.rivals.linimed:act", "gap * gap / square", "gap / square", "linimed")
    add("policies.rivals.squarecb:act", "agent.params.scale *", "2.0 *", "squarecb")
    add("policies.rivals.falcon:begin_epoch", "2 * before", "before + 1", "falcon")
    add("policies.rivals.falcon:act", ">", "<", "falcon")
    add("policies.rivals.feel_good:write_components", "0.5 * tilt", "tilt", "feel-good")
    add("policies.rivals.feel_good:is_kept", "< 1.0", "< 2.0", "feel-good")
    add("policies.rivals.feel_good:choose_by_models", "1.0 / votes", "0.5 / votes", "feel-good")
    add("policies.rivals.ucb1:upper_arm", "width / math.sqrt(count)", "width / count", "ucb1")
    add("policies.rivals.ucb1:upper_arm", "bound > largest", "bound >= largest", "ucb1")
    add("policies.rivals.ucb1:act", "2.0 * math.log", "math.log", "ucb1")
    add("policies.rivals.spl:learn", "max(mix - expected, 0.0)", "0.0", "spl")
    add("policies.rivals.spl:explore", "lag > largest", "lag < largest", "spl")
    add("policies.rivals.spl:best_response", "+ interval", "- interval", "spl")
    loop = ("core/test_loop.py",)
    add("core.loop:checkpoints", "np.linspace(1", "np.linspace(2", "checkpoints", *loop)
    limits = ("service/test_service_limits.py", "service/test_service_budgets.py")
    add(
        "service.limits:Rate.take",
        "min(self._rate, level",
        "max(self._rate, level",
        "bucket or so_many_requests",
        *limits,
    )
    add("service.limits:Rate.take", "(needed - level)", "needed", "bucket or so_many_requests", *limits)
    add(
        "service.turns:Turns._taken",
        "keys[key] = calls",
        "self._waiting[model] = {key: calls}",
        "turns",
        *limits,
    )
    client = ("client/test_client.py",)
    add(
        "client.calls:Patience.wait",
        "drawn > self._left",
        "drawn > 2 * self._left",
        "patience_ends or waits_double",
        *client,
    )
    add("client.calls:Patience.wait", "self._left -= spent", "pass", "patience or waits", *client)
    add("client.calls:Patience.wait", "2 * self._next", "3 * self._next", "patience or waits", *client)
    add("_internal.waiting:said_if_long", "timer.cancel()", "pass", "takes_long", "internal/test_waiting.py")
    add("_internal.waiting:said_if_long", "timer.start()", "pass", "takes_long", "internal/test_waiting.py")
    held = ("service/test_service_connections.py",)
    add("service.connections:Connection.look", "self._body_bytes / BODY_RATE", "0", "more_seconds", *held)
    add("service.connections:Connection._is_stuck", "unsent < self._unsent", "False", "taken_slowly", *held)
    add(
        "service.connections:Connection.connection_made",
        "oldest._drop()",
        "pass",
        "half_sent_requests",
        *held,
    )
    return found


def function_of(place: str) -> tuple[Any, dict[str, object]]:
    """A function by its module and name, and the names that its text sees."""
    module_name, _, path = place.partition(":")
    module = importlib.import_module(f"solid_bandits.{module_name}")
    found: Any = module
    for name in path.split("."):
        found = inspect.getattr_static(found, name)
    while not hasattr(found, "__code__"):
        found = found.py_func if hasattr(found, "py_func") else found.__wrapped__
    return inspect.unwrap(found), vars(module)


def mutate(mutant: Mutant) -> None:
    """Exchange the code of its function."""
    function, names = function_of(mutant.place)
    lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    while lines[0].startswith("@"):
        del lines[0]
    documented = ast.get_docstring(ast.parse("\n".join(lines)).body[0]) is not None
    first = ast.parse("\n".join(lines)).body[0].body[documented].lineno - 1  # the fault is in what runs
    head, body = "\n".join(lines[:first]), "\n".join(lines[first:])
    if mutant.before not in body:
        raise ValueError(f"{mutant.place} must have {mutant.before!r}")
    made: dict[str, object] = {}
    text = f"{head}\n{body.replace(mutant.before, mutant.after, 1)}"
    exec(compile(text, mutant.place, "exec"), dict(names), made)
    (new,) = made.values()
    if new.__code__.co_freevars != function.__code__.co_freevars:
        raise ValueError(f"{mutant.place} must have no names of a function around it")
    function.__code__ = new.__code__


def run(mutant: Mutant | None, tests: Path, chosen: str, files: tuple[str, ...]) -> int:
    """Pytest's exit status in a child, and 100: 101 is a test that failed, less is that it could not be run."""
    child = os.fork()
    if child == 0:
        import pytest

        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if mutant is not None:
            mutate(mutant)
        os.chdir(tests.parent)
        there = [str(tests / one) for one in files]
        switches = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", chosen]
        switches += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # the package is loaded already
        os._exit(100 + pytest.main([*switches, *there]))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    """Run all, and say which survive."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", type=Path, default=ROOT / "tests")
    parser.add_argument("--only", default="", help="mutants whose place has this word")
    parser.add_argument("--minutes", type=float, default=60.0, help="after which no more are begun")
    arguments = parser.parse_args()
    if os.environ.get("NUMBA_DISABLE_JIT") != "1":
        sys.exit("NUMBA_DISABLE_JIT must be 1: a compiled function does not change")
    ours = ("policies.catalogue", "core.loop", "simulation.simulate", "service.app", "client.http")
    for name in (*(f"solid_bandits.{one}" for one in ours), "pytest", "hypothesis", "polars", "scipy.stats"):
        importlib.import_module(name)  # once, for all children
    began, survived, tried = time.monotonic(), [], 0
    for mutant in (one for one in mutants() if arguments.only in one.place):
        if time.monotonic() - began > 60 * arguments.minutes:
            break
        status = run(mutant, arguments.tests.resolve(), mutant.chosen, mutant.tests)
        tried += 1
        words = {100: "survived", 101: "killed"}.get(status, f"broken ({status})")
        survived += [] if status == 101 else [mutant.place]
        print(f"{words:10} {mutant.place} {mutant.before!r} -> {mutant.after!r}", flush=True)
    print(
        f"| mutants | {tried} | {tried - len(survived)} killed | {', '.join(survived) or 'none survived'} |"
    )


if __name__ == "__main__":
    main()
