"""Policies of a user's own, plain and compiled, wherever they are written: modules, scripts, notebook cells."""

import copy
import json
import os
import subprocess
import sys
from textwrap import dedent

import numpy as np
import pytest
from polars.testing import assert_frame_equal

import solid_bandits as sb

# Number a of the arms costs a at each step.
STAIRS = sb.Problem([[[1, 0, 0], [0, 1, 0], [0, 0, 1]]], [2, 1, 0])


class Fixed:
    """The least a policy can be."""

    def __init__(self, arm=0):
        self.arm = arm

    def act(self, arms, available):
        return self.arm

    def update(self, features, reward):
        pass


class Drawing(Fixed):
    """Learns, draws, and says what it was told."""

    def start(self, setting, rng):
        self.setting, self.rng, self.seen = setting, rng, []

    def act(self, arms, available):
        return int(self.rng.integers(len(arms)))

    def update(self, features, reward):
        assert features.shape == (self.setting.dim,)
        self.seen.append(reward)


class Fair(Fixed):
    def probabilities(self, arms, available):
        return available / available.sum()


def simulate(policy, problem=STAIRS, horizon=10, runs=3, **options):
    return sb.simulate(problem, {"p": policy}, horizon, runs=runs, **{"jobs": 1, **options})


@pytest.mark.parametrize("arm", [0, 2, np.int64(1), np.uint8(1)])
def test_a_plain_object_plays(arm):
    assert simulate(Fixed(arm)).final()["mean"].item() == 10 * arm


def test_a_fresh_copy_plays_each_run():
    given = Drawing()
    three = simulate(given, runs=3).table
    assert vars(given) == {"arm": 0}
    assert_frame_equal(simulate(given, runs=2).table, three.filter(three["run"] < 2), check_exact=True)
    assert len({*three.filter(three["step"] == 10)["regret"]}) > 1
    assert not simulate(given, seed=1).table.equals(three)


def test_contexts_and_noise_are_those_of_compiled_policies():
    """Greedy, in Python and compiled, takes the same steps for the same reasons."""

    class PlainGreedy:
        def start(self, setting, rng):
            self.gram, self.targets = np.eye(setting.dim), np.zeros(setting.dim)

        def act(self, arms, available):
            return (arms @ np.linalg.solve(self.gram, self.targets)).argmax()

        def update(self, features, reward):
            self.gram += np.outer(features, features)
            self.targets += reward * features

    problem = sb.problems.random(3, 4, 3, seed=2)
    tables = [simulate(policy, problem, 200).table for policy in (PlainGreedy(), sb.Greedy())]
    assert_frame_equal(*tables)
    assert tables[0]["regret"][-1] > 0


def test_a_policy_is_told_what_it_may_know():
    told = []

    class Curious(Fixed):
        def start(self, setting, rng):
            told.append((setting.dim, setting.noise_std, setting.theta_bound, setting.horizon))

    simulate(Curious(), horizon=7, runs=1)
    assert told[-1] == (3, STAIRS.noise_std, STAIRS.setting(7).theta_bound, 7)
    sb.Agent(Curious(), dim=2, noise_std=0.5)
    assert told[-1] == (2, 0.5, None, None)


def test_plain_and_compiled_policies_play_together_and_are_described():
    results = sb.simulate(STAIRS, {"mine": Fixed(1), "Greedy": sb.Greedy()}, 10, runs=2, jobs=1)
    assert set(results.table["policy"]) == {"mine", "Greedy"}
    policies = results.manifest["configuration"]["policies"]
    assert policies["mine"] == {"kind": "Fixed", "plain": True, "attributes": {"arm": 1}}
    json.dumps(policies, allow_nan=False)


@pytest.mark.parametrize("arm", [-1, 3, 1.0, True, None, "0", np.array([0])])
def test_an_arm_that_is_none_is_refused(arm):
    with pytest.raises(ValueError, match=r"Fixed.act must return an arm from 0 to 2, got "):
        simulate(Fixed(arm))


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Fixed, r"must be an object, got the class Fixed; give Fixed\(\)"),
        (object(), r"must be a policy such as Solid\(\), or an object with act and update, got <object"),
        (7, "must be a policy"),
    ],
)
def test_what_is_no_policy_is_refused(policy, message):
    with pytest.raises(ValueError, match=r"policies\['p'\] " + message):
        simulate(policy)
    with pytest.raises(ValueError, match="policy " + message):
        sb.Agent(policy, dim=2, noise_std=1.0)


def test_an_agent_of_a_plain_policy_decides_and_learns():
    agent = sb.Agent(Drawing(), dim=3, noise_std=1.0, seed=4)
    again = sb.Agent(Drawing(), dim=3, noise_std=1.0, seed=4)
    decisions = [agent.decide(np.eye(3)) for _ in range(20)]
    assert [decision.arm for decision in decisions] == [again.decide(np.eye(3)).arm for _ in range(20)]
    assert {decision.arm for decision in decisions} == {0, 1, 2}
    assert decisions[0].probability is decisions[0].probabilities is None
    agent.learn_many(decisions[:2], [1.0, 2.0])
    assert agent._compiled.player.seen == [1.0, 2.0]


def test_an_agent_of_a_plain_policy_minds_what_is_available():
    agent = sb.Agent(Fair(1), dim=3, noise_std=1.0)
    decision = agent.decide(np.eye(3), available=[True, True, False])
    assert (decision.arm, decision.probability) == (1, 0.5)
    assert decision.probabilities.tolist() == [0.5, 0.5, 0.0]
    with pytest.raises(ValueError, match=r"Fair.act must return an available arm, got 1"):
        agent.decide(np.eye(3), available=[True, False, True])


@pytest.mark.parametrize(
    "values",
    [
        [0.5, 0.5],
        [0.5, 0.6, -0.1],
        [0.5, 0.5, 0.5],
        [np.nan] * 3,
    ],
)
def test_probabilities_that_cannot_be_are_refused(values):
    class Wrong(Fixed):
        def probabilities(self, arms, available):
            return values

    with pytest.raises(ValueError, match=r"Wrong.probabilities must return 3 numbers >= 0 that sum to 1"):
        sb.Agent(Wrong(), dim=3, noise_std=1.0).decide(np.eye(3))


def test_an_agent_of_a_plain_policy_is_copied():
    agent = sb.Agent(Drawing(), dim=3, noise_std=1.0)
    agent.learn(agent.decide(np.eye(3)), 1.0)
    other = copy.deepcopy(agent)
    assert [one.decide(np.eye(3)).arm for one in (agent, agent)] == [
        one.decide(np.eye(3)).arm for one in (other, other)
    ]
    assert other._compiled.player.seen == [1.0]


def test_an_agent_of_a_plain_policy_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="Fixed"):
        sb.Agent(Fixed(), dim=3, noise_std=1.0).save(tmp_path / "agent.json")
    assert list(tmp_path.iterdir()) == []


def test_a_policy_that_writes_into_what_it_is_asked_about_spoils_nothing():
    """Or is told that it may not."""

    class Writing(Fixed):
        def act(self, arms, available):
            available[0] = False
            return 1

    try:
        table = sb.simulate(STAIRS, {"writes": Writing(), "after": Fixed(0)}, 10, runs=1, jobs=1).final()
    except ValueError as error:
        assert "read-only" in str(error)  # noqa: PT017
    else:
        assert table["mean"].to_list() == [10.0, 0.0]

    class Late(Writing):
        def act(self, arms, available):
            if not available.all():
                pytest.fail("an arm that it took out itself is missing at the next step")
            return super().act(arms, available)

    try:
        simulate(Late(), runs=1)
    except ValueError as error:
        assert "read-only" in str(error)  # noqa: PT017


def test_a_policy_with_slots_plays():
    class Slotted:
        __slots__ = ("arm",)

        def __init__(self):
            self.arm = 1

        act = Fixed.act
        update = Fixed.update

    assert simulate(Slotted()).final()["mean"].item() == 10


def test_a_policy_is_described_alike_in_every_process():
    class Odd(Fixed):
        def __init__(self):
            self.arm = 1
            self.kind = "other"
            self.generator = np.random.default_rng(0)

    first, second = (simulate(Odd()).manifest["configuration"]["policies"]["p"] for _ in range(2))
    assert first["kind"].endswith("Odd")
    assert first == second


# Scripts and notebooks

PLAIN = """
import numpy as np
import solid_bandits as sb

FACTOR = 3

def limit(arms):
    return len(arms) - FACTOR + 1

class Plain:
    def __init__(self, arm):
        self.arm = arm

    def start(self, setting, rng):
        self.rng = rng

    def act(self, arms, available):
        return self.arm if self.rng.random() < 0.9 else limit(arms)

    def update(self, features, reward):
        pass
"""

COMPILED = """
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import solid_bandits as sb

class Params(NamedTuple):
    arm: int

class State(NamedTuple):
    regression: sb.extend.Regression
    rng: np.ndarray

class OwnAgent(NamedTuple):
    params: Params
    setting: tuple
    state: State

@sb.extend.jit
def shifted(arm):
    return (arm + SHIFT) % 3

@sb.extend.jit
def act(agent, arms, available, out):
    if sb.extend.uniform(agent.state.rng) < 0.9:
        return shifted(agent.params.arm), False
    return sb.extend.best_estimated(agent.state.regression, arms, available), True

@sb.extend.jit
def update(agent, features, reward):
    sb.extend.observe_reward(agent.state.regression, features, reward)

@dataclass(frozen=True)
class Own(sb.extend.DecisionPolicy):
    arm: int = 0
    kernels = sb.extend.Kernels(act, update)

    def start(self, setting, rng):
        state = State(sb.extend.make_regression(setting), rng)
        return OwnAgent(Params(self.arm), setting, state)
"""
COMPILED = COMPILED.replace("class Params", "SHIFT = 0\n\nclass Params", 1)

PLAY = """
def final(jobs, **policies):
    problem = sb.Problem([[[1, 0, 0], [0, 1, 0], [0, 0, 1]]], [2, 1, 0])
    return sb.simulate(problem, policies, 20, runs=6, jobs=jobs).table

def show(**policies):
    one, two = final(1, **policies), final(2, **policies)
    assert one.equals(two)
    for label in policies:
        print(label, round(one.filter(policy=label, step=20)["regret"].mean() / 20))
"""


def python(folder, *arguments, text=None, **more):
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        input=text,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "SOLID_BANDITS_CACHE": str(folder / "cache"), **more},
    )
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("compil")] == []
    return done.stdout.split()


def kept(folder):
    return [path.name for path in (folder / "cache").iterdir()] if (folder / "cache").exists() else []


def test_policies_of_a_script_play_on_two_cores_and_are_not_kept(tmp_path):
    main = """
        if __name__ == "__main__":
            show(plain=Plain(2), own=Own(arm=2))
    """
    (tmp_path / "script.py").write_text(PLAIN + COMPILED + PLAY + dedent(main))
    assert python(tmp_path, "script.py") == ["plain", "2", "own", "2"]
    assert kept(tmp_path) == []  # the next script's classes may have the same names


# Cells as a notebook runs them: in `__main__`, which has no file.
NOTEBOOK = """
import __main__, json, sys
del __main__.__file__
for number, cell in enumerate(json.load(sys.stdin)):
    exec(compile(cell, f"<ipython-input-{number}>", "exec"), __main__.__dict__)
"""


def notebook(folder, *cells):
    (folder / "kernel.py").write_text(NOTEBOOK)
    return python(folder, "kernel.py", text=json.dumps(cells))


def test_policies_of_a_notebook_play_on_two_cores_and_are_not_kept(tmp_path):
    words = notebook(tmp_path, PLAIN, COMPILED, PLAY, "show(plain=Plain(2), own=Own(arm=2))")
    assert words == ["plain", "2", "own", "2"]
    assert kept(tmp_path) == []


def test_a_plain_policys_cell_that_is_run_again_is_seen(tmp_path):
    show = "show(plain=Plain(2))"
    changed = PLAIN.replace("return self.arm if", "return 1 if")
    assert notebook(tmp_path, PLAIN, PLAY, show, changed, show) == ["plain", "2", "plain", "1"]


def test_a_compiled_policys_cell_that_is_run_again_is_seen(tmp_path):
    decide = "print(sb.Agent(Own(1), dim=3, noise_std=1.0, seed=1).decide(np.eye(3)).arm)"
    play = "print(round(final(1, own=Own(1))['regret'].max() / 20))"
    changed = COMPILED.replace("SHIFT = 0", "SHIFT = 1")
    words = notebook(tmp_path, COMPILED, PLAY, play, decide, changed, play, decide)
    assert words == ["1", "1", "2", "2"]


def test_kernels_that_are_new_are_seen_or_refused_where_the_agent_is_not(tmp_path):
    """A cell with the kernels is run again, and the one with the policy, but not the one with the agent's class."""
    head, kernels = COMPILED.split("@sb.extend.jit", 1)
    kernels = "@sb.extend.jit" + kernels
    play = dedent("""
        try:
            print(round(final(1, own=Own(1))["regret"].max() / 20))
        except ValueError as error:
            print("refused")
    """)
    words = notebook(tmp_path, head, kernels, PLAY, play, "SHIFT = 1", kernels, play)
    assert words in (["1", "2"], ["1", "refused"])


def test_two_modules_may_have_classes_of_the_same_names(tmp_path):
    """As two policies have that were begun as copies of one."""
    (tmp_path / "first.py").write_text(COMPILED)
    (tmp_path / "second.py").write_text(COMPILED.replace("SHIFT = 0", "SHIFT = 1"))
    main = """
        import numpy as np
        import first, second
        for module in (first, second):
            print(round(final(1, own=module.Own(1))["regret"].max() / 20))
            print(sb.Agent(module.Own(1), dim=3, noise_std=1.0, seed=1).decide(np.eye(3)).arm)
    """
    text = "import solid_bandits as sb\n" + PLAY + dedent(main)
    assert python(tmp_path, "-c", text) == ["1", "1", "2", "2"]


def test_compiled_policies_of_a_module_play_on_two_cores_and_are_kept(tmp_path):
    (tmp_path / "module.py").write_text(PLAIN + COMPILED)
    text = (
        PLAY
        + "import solid_bandits as sb\nimport module\n"
        + "show(plain=module.Plain(1), own=module.Own(1))\n"
    )
    for _ in range(2):
        assert python(tmp_path, "-c", text) == ["plain", "1", "own", "1"]
        assert len(kept(tmp_path)) == 1


def test_a_compiled_policy_says_what_is_missing():
    class WithoutKernels(sb.extend.DecisionPolicy):
        def start(self, setting, rng):
            return (1.0,)

    with pytest.raises(
        ValueError, match=r"WithoutKernels.kernels must be sb.extend.Kernels\(act, update\), got None"
    ):
        simulate(WithoutKernels())

    class NotATuple(WithoutKernels):
        kernels = sb.extend.Kernels(Fixed.act, Fixed.update)

    with pytest.raises(ValueError, match=r"NotATuple.start must return a named tuple of numbers and arrays"):
        simulate(NotATuple())


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("act", r"Wrong.act must take \(arms, available\), got \(\)"),
        ("update", r"Wrong.update must take \(features, reward\), got \(\)"),
        ("start", r"Wrong.start must take \(setting, rng\), got \(\)"),
    ],
)
def test_a_method_that_takes_other_arguments_is_refused_at_once(method, message):
    Wrong = type("Wrong", (Fixed,), {method: lambda self: None})
    with pytest.raises(ValueError, match=message):
        sb.Agent(Wrong(), dim=2, noise_std=1.0)


def test_a_method_that_is_missing_is_named():
    Half = type("Half", (), {"act": Fixed.act})
    with pytest.raises(ValueError, match="which has no update"):
        sb.Agent(Half(), dim=2, noise_std=1.0)


def test_the_callers_arrays_are_not_written_to():
    class Writing(Fixed):
        def act(self, arms, available):
            arms[0, 0] = 7.0
            return 1

    with pytest.raises(ValueError, match="read-only"):
        sb.Agent(Writing(), dim=3, noise_std=1.0).decide(np.eye(3))


def test_probabilities_are_refused_where_there_are_none():
    with pytest.raises(ValueError, match=r"Fixed must have a method probabilities\(arms, available\)"):
        sb.Agent(Fixed(), dim=3, noise_std=1.0, probabilities=True)

    class Odd(Fair):
        def probabilities(self, arms, available):
            return [1.0, 0.0, 0.0]

    with pytest.raises(ValueError, match=r"> 0 for the arm that it returns, got \[1.0, 0.0, 0.0\] for arm 1"):
        sb.Agent(Odd(1), dim=3, noise_std=1.0).decide(np.eye(3))
