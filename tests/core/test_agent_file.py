"""Agents in files: what comes back, and what is refused."""

import contextlib
import copy
import json
import math
import os
import random
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import solid_bandits as sb
from agents import DECISION, POLICIES, TABLE, make_agent, offer, play, same
from solid_bandits.core.agent_file import OWNER, VERSION, _fingerprint
from solid_bandits.core.setting import make_setting, make_table
from solid_bandits.policies.state import fill_state, state_to_plain


def saved(name, tmp_path, steps=30, **more):
    """An agent that has played, and its file."""
    rng = np.random.default_rng(1)
    agent = make_agent(name, rng, **more)
    play(agent, name, rng, steps)
    path = tmp_path / "agent.json"
    agent.save(path)
    return agent, path


def rewritten(path, change, sign=True):
    """The file with a change made to it; signed anew, so that nothing but the change is wrong."""
    plain = json.loads(path.read_text())
    change(plain)
    if sign:
        plain["state_of"] = _fingerprint({field: plain[field] for field in OWNER})
    other = path.with_name("changed.json")
    other.write_text(json.dumps(plain))
    return other


def refused(path, message):
    with pytest.raises(ValueError, match=message) as caught:
        sb.Agent.load(path)
    assert str(caught.value).startswith(f"agent file {os.fspath(path)!r} ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", POLICIES)
def test_the_same_decisions_follow(name, tmp_path):
    """Bit for bit, for 200 decisions, with rewards that come late."""
    agent, path = saved(name, tmp_path, steps=50)
    again = sb.Agent.load(path)
    rng = np.random.default_rng(2)
    late = []
    for _ in range(200):
        asked = offer(name, rng)
        one, other = agent.decide(**asked), again.decide(**asked)
        assert same(one, other)
        late.append((one, other, rng.normal()))
        if rng.random() < 0.7:
            first, second, reward = late.pop(int(rng.integers(len(late))))
            agent.learn(first, reward)
            again.learn(second, reward)
    again.save(tmp_path / "again.json")
    agent.save(tmp_path / "agent.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "agent.json").read_bytes()


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("steps", [0, 1])
def test_young_agents(name, steps, tmp_path):
    agent, path = saved(name, tmp_path, steps=steps)
    again = sb.Agent.load(path)
    asked = offer(name, np.random.default_rng(3))
    assert same(agent.decide(**asked), again.decide(**asked))


def test_everything_that_was_chosen_comes_back(tmp_path):
    policy = sb.LinUCB(radius="theorem", scale=0.5, delta=0.1, ridge=2.0)
    agent = sb.Agent(policy, dim=2, noise_std=0.25, theta_bound=3.0, horizon=1000)
    agent.save(tmp_path / "agent.json")
    plain = json.loads((tmp_path / "agent.json").read_text())
    assert set(plain) == {"file", "version", "policy", "setting", "contexts", "floor", "state_of", "state"}
    assert plain["version"] == VERSION
    assert plain["setting"] == {
        "dim": 2,
        "noise_std": 0.25,
        "theta_bound": 3.0,
        "horizon": 1000,
        "blocks": 0,
        "grows": False,
    }
    again = sb.Agent.load(str(tmp_path / "agent.json"))
    assert again.policy == policy
    assert again._setting == agent._setting
    asked = sb.Agent(sb.LinTS(), dim=2, noise_std=1.0, probabilities=True)
    asked.save(tmp_path / "asked.json")
    assert sb.Agent.load(tmp_path / "asked.json").decide(np.eye(3)[:, :2]).probabilities is not None


def test_numbers_that_json_must_keep(tmp_path):
    """Random words beyond 2^53, and numbers near the ends of their ranges."""
    agent = sb.Agent(sb.RandUCB(), dim=2, noise_std=1e-20, seed=1)
    agent.learn(agent.decide([[1e-90, 3e-91], [1e-95, 1e-91]]), 1e29)
    agent._compiled.state.rng[:] = [2**64 - 1, 2**63, 2**53 + 1, 0]
    agent.save(tmp_path / "agent.json")
    again = sb.Agent.load(tmp_path / "agent.json")
    for one, other in zip(
        agent._compiled.state.regression.estimator, again._compiled.state.regression.estimator, strict=True
    ):
        assert one.tobytes() == other.tobytes()
    assert np.array_equal(agent._compiled.state.rng, again._compiled.state.rng)


def test_a_file_is_replaced_whole(tmp_path):
    _, path = saved("Greedy", tmp_path)
    before = path.read_bytes()
    agent = make_agent("LinUCB", None)
    agent.save(path)
    assert path.read_bytes() != before
    assert [file.name for file in tmp_path.iterdir()] == ["agent.json"]  # nothing half-written beside it


@pytest.mark.parametrize(
    ("place", "reason"),
    [("missing/agent.json", "No such file or directory"), (".", "(Is a directory|busy|not permitted|empty)")],
)
def test_where_no_file_can_be_written(place, reason, tmp_path):
    agent = make_agent("Greedy", None)
    with pytest.raises(ValueError, match=f"^agent file .* cannot be written .*{reason}"):
        agent.save(tmp_path / place)
    assert list(tmp_path.iterdir()) == []
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ValueError, match=r"cannot be written .*Not a directory"):
        agent.save(file / "agent.json")


def test_where_no_file_can_be_read(tmp_path):
    refused(tmp_path / "missing.json", r"cannot be read \(No such file or directory\)")
    refused(tmp_path, "cannot be read")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read"),
        (b"not JSON", "cannot be read"),
        (b"\xff\xfe\x00", "cannot be read"),
        (b"\x80\x04K\x01.", "cannot be read"),  # a pickle
        (b"[" * 100_000 + b"]" * 100_000, "cannot be read"),
        (b'{"file": ' * 100_000 + b"1" + b"}" * 100_000, "cannot be read"),
        (b'{"version": ' + b"9" * 5000 + b"}", "cannot be read"),
        (b"null", "must be a file that Agent.save wrote"),
        (b"[1, 2]", "must be a file that Agent.save wrote"),
        (b"{}", "must be a file that Agent.save wrote"),
        (b'{"file": "something else", "version": 1}', "must be a file that Agent.save wrote"),
        (b'{"file": "solid-bandits agent"}', "must have version 4, got None"),
        (b'{"file": "solid-bandits agent", "version": 1}', "must have version 4, got 1.*another version"),
        (b'{"file": "solid-bandits agent", "version": "4"}', "must have version 4, got '4'"),
        (b'{"file": "solid-bandits agent", "version": 4}', "policy is missing"),
    ],
)
def test_what_is_no_agent_file_is_refused(content, message, tmp_path):
    path = tmp_path / "agent.json"
    path.write_bytes(content)
    refused(path, message)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.7, 0.99, 0.9999])
def test_truncated_files_are_refused(share, tmp_path):
    _, path = saved("RandUCB", tmp_path)
    whole = path.read_bytes().rstrip()
    path.write_bytes(whole[: min(int(share * len(whole)), len(whole) - 1)])
    refused(path, "cannot be read")


def other_policy(plain):
    plain["policy"] = sb.LinUCB().describe()


def other_parameter(plain):
    plain["policy"]["ridge"] = 2.0


def other_setting(plain):
    plain["setting"]["noise_std"] = 0.7


def other_table(plain):
    plain["contexts"][0][0][0] += 1e-12


@pytest.mark.parametrize("change", [other_policy, other_parameter, other_setting, other_table])
def test_a_state_of_something_else_is_refused(change, tmp_path):
    _, path = saved("AOIDS", tmp_path)
    refused(rewritten(path, change, sign=False), "its state belongs to another policy, setting or table")


def test_a_state_moved_by_hand_is_refused(tmp_path):
    """Whoever signs anew still needs a state that fits: these have other fields or shapes."""
    _, path = saved("RandUCB", tmp_path)
    refused(
        rewritten(path, other_policy),
        "state must have the fields regression, got regression, rng",
    )
    refused(
        rewritten(path, lambda plain: plain["setting"].update(dim=4)),
        r"state.regression.estimator.triangle must have shape \(4, 4\), got \(3, 3\)",
    )
    agent, path = saved("OAM", tmp_path)
    agent.decide(context=0)  # brings its tables up to date
    agent.save(path)
    refused(rewritten(path, other_setting_dim), "contexts must have dim 4 as the setting has, got 3")
    refused(rewritten(path, lambda plain: plain["contexts"].pop()), "must have shape")
    refused(
        rewritten(path, twisted_table),
        "state.regression.tables.sq_norms must be the norms that state.regression.estimator gives",
    )
    refused(rewritten(path, negative_norm), "state.regression.tables.sq_norms must be >= 0")
    refused(rewritten(path, lambda plain: plain.update(contexts=None)), "contexts must be given: OAM plans")


def other_setting_dim(plain):
    plain["setting"]["dim"] = 4


@pytest.mark.parametrize(
    ("name", "keys", "value", "message"),
    [
        ("EndOfOptimism", ("phase",), 3, "state.phase must be at most 2"),
        ("EndOfOptimism", ("leeway",), -1e150, "state.leeway must be >= 0"),
        ("EndOfOptimism", ("allocation", "pulls", 0, 0), -1e150, "state.allocation.pulls must be >= 0"),
        (
            "EndOfOptimism",
            ("recovery", "rewards", 0),
            10**6,
            "state.recovery.rewards must be at most its pulls",
        ),
        ("E4", ("active",), [0] * 4, "state.active must be 1 for an arm"),
        ("E4", ("batch",), 10**6, "state.batch must be at most state.step"),
        ("UCB1", ("tally", "rewards", 0), 10**6, "state.tally.rewards must be at most its pulls"),
        ("UCB1", ("step",), 0, "these sum to state.step at most"),
        ("OAM", ("pulls", 0, 0), 10**6, "state.pulls must sum to state.step at most"),
        ("OAM", ("explored",), 10**6, "state.explored must be at most state.step"),
        ("OAM", ("allocation", "bracket", 0), -1.0, "state.allocation.bracket must be >= 0"),
        ("OSSB", ("explored",), 10**6, "state.explored must be at most state.step"),
        ("AOIDS", ("explored",), 10**6, "state.explored must be at most state.step"),
        ("SPL", ("explored",), 0, "state.exploring_pulls must sum to state.explored at most"),
        ("SPL", ("learners", "mixability", 0), -1.0, "state.learners.mixability must be >= 0"),
        ("SPL", ("learners", "gains", 0, 0), 1.0, "state.learners.gains must be <= 0, 0 for the leader"),
        ("SPL", ("tracked", 0), -1.0, "state.tracked must be >= 0"),
    ],
)
def test_states_of_other_policies_that_cannot_be_are_refused(name, keys, value, message, tmp_path):
    _, path = saved(name, tmp_path)
    refused(rewritten(path, put(*keys, value=value)), message)


def negative_norm(plain):
    plain["state"]["regression"]["tables"]["sq_norms"][0][0] = -1.0


def twisted_table(plain):
    plain["contexts"][1][2] = [9.0, 9.0, 9.0]


GREEDY = sb.Greedy().describe()
PARAMETERS = ", ".join(name for name in sorted(GREEDY) if name != "kind")


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (None, "policy must be a table, got"),
        ([], "policy must be a table, got"),
        ({}, "policy.kind must be one of .*EpsilonGreedy"),
        ({"kind": "RandUCBB"}, "policy.kind must be one of .* did you mean 'RandUCB'"),
        ({"kind": "os.system"}, "policy.kind must be one of"),
        ({"kind": "this.is.no.module"}, "policy.kind must be one of"),
        ({"kind": "antigravity"}, "policy.kind must be one of"),
        ({"kind": "Policy"}, "policy.kind must be one of"),
        ({"kind": ["Greedy"]}, "policy.kind must be one of"),
        ({"kind": 1}, "policy.kind must be one of"),
        ({"kind": "Greedy"}, f"policy must have the parameters {PARAMETERS}"),
        (GREEDY | {"more": 1}, f"policy must have the parameters {PARAMETERS}"),
        (GREEDY | {"ridge": -1.0}, "ridge must be > 0"),
        (GREEDY | {"ridge": float("nan")}, "cannot be read"),
        (GREEDY | {"ridge": 10**400}, "cannot be used"),
        (GREEDY | {"ridge": None}, "ridge must be a number"),
        (GREEDY | {"ridge": [1.0]}, "ridge must be a number"),
    ],
)
def test_policies_that_are_none_of_ours_are_refused(policy, message, tmp_path):
    _, path = saved("Greedy", tmp_path)
    known = set(sys.modules)
    refused(rewritten(path, lambda plain: plain.update(policy=policy)), message)
    assert not {"antigravity", "this"} & set(sys.modules)
    assert set(sys.modules) == known  # nothing was imported on behalf of the file


@dataclass(frozen=True)
class Capped(sb.Greedy):
    cap: float | None = None


def test_a_parameter_that_is_not_finite_is_no_other(tmp_path):
    path = tmp_path / "agent.json"
    values = [None, math.inf, -math.inf, math.nan]
    for value in values:
        sb.Agent(Capped(cap=value), dim=2).save(path)
        assert repr(sb.Agent.load(path, policy=Capped(cap=value)).policy.cap) == repr(value)
        for other in values:
            if other is not value:
                with pytest.raises(ValueError, match="policy must be the one that was saved"):
                    sb.Agent.load(path, policy=Capped(cap=other))


def test_parameters_that_no_agent_starts_with_are_refused(tmp_path):
    """What passes the checks of a policy and fails when it starts is refused all the same."""
    _, path = saved("AOIDS", tmp_path)
    refused(rewritten(path, lambda plain: plain["policy"].update(ridge="1")), "cannot be used|ridge must be")
    _, path = saved("Solid", tmp_path)
    refused(rewritten(path, lambda plain: plain["setting"].update(noise_std=1e-200)), "cannot be used")


def test_the_state_of_the_theorems_form():
    """It has a part that the experiments' form has not: it is kept, and it is not optional."""
    setting, table = (
        make_setting(2, 0.5, 2.0, 1000),
        make_table(np.random.default_rng(0).normal(size=(2, 3, 2))),
    )
    words = np.zeros(4, dtype=np.uint64)
    theorem, other, plain = (
        policy.start(setting, table, words.copy()).state
        for policy in (sb.Solid.theory(100.0), sb.Solid.theory(100.0), sb.Solid())
    )
    theorem.projected.theta[:] = [0.1, 0.2]
    theorem.projected.means[1, 2] = 1 / 3
    content = json.loads(json.dumps(state_to_plain(theorem)))
    fill_state(other, content)
    assert state_to_plain(other) == state_to_plain(theorem)
    with pytest.raises(ValueError, match="state must have the fields"):
        fill_state(plain, content)
    with pytest.raises(ValueError, match=r"state must have the fields .*projected"):
        fill_state(theorem, state_to_plain(plain))


JOINT = {"blocks": 0, "grows": False}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (None, "setting must be a table, got None"),
        ({"dim": 3}, "setting.noise_std is missing"),
        (
            {"dim": 0, "noise_std": 1.0, "theta_bound": 0.0, "horizon": 0, **JOINT},
            "dim must be an integer >= 1",
        ),
        (
            {"dim": "3", "noise_std": 1.0, "theta_bound": 0.0, "horizon": 0, **JOINT},
            "setting.dim must be an integer, got '3'",
        ),
        ({"dim": 3, "noise_std": -1.0, "theta_bound": 0.0, "horizon": 0, **JOINT}, "noise_std must be > 0"),
        ({"dim": 3, "noise_std": 1.0, "theta_bound": -1.0, "horizon": 0, **JOINT}, "theta_bound must be > 0"),
        (
            {"dim": 3, "noise_std": 1.0, "theta_bound": 0.0, "horizon": -1, **JOINT},
            "setting.horizon must be an integer >= 0, got -1",
        ),
        ({"dim": 3, "noise_std": float("inf"), "theta_bound": 0.0, "horizon": 0, **JOINT}, "cannot be read"),
        ({"dim": 3, "noise_std": 1.0, "theta_bound": 0.0, "horizon": 10**30, **JOINT}, "cannot be used"),
        ({"dim": 10**12, "noise_std": 1.0, "theta_bound": 0.0, "horizon": 0, **JOINT}, "cannot be used"),
        (
            {"dim": 3, "noise_std": 1.0, "theta_bound": 0.0, "horizon": 0, "blocks": -1, "grows": False},
            "blocks must be an integer >= 0",
        ),
        (
            {"dim": 3, "noise_std": 1.0, "theta_bound": 0.0, "horizon": 0, "blocks": 0, "grows": 1},
            "setting.grows must be",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(setting, message, tmp_path):
    _, path = saved("Greedy", tmp_path)
    refused(rewritten(path, lambda plain: plain.update(setting=setting)), message)


def put(*keys, value):
    """A change of the state: the value at these keys."""

    def change(plain):
        place = plain["state"]
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value

    return change


def drop(*keys):
    def change(plain):
        place = plain["state"]
        for key in keys[:-1]:
            place = place[key]
        del place[keys[-1]]

    return change


STATES_THAT_CANNOT_BE = {
    "no state": (
        lambda plain: plain.update(state=None),
        "state must have the fields regression, rng",
    ),
    "a list": (lambda plain: plain.update(state=[1]), "state must have the fields"),
    "a field less": (drop("rng"), "state must have the fields"),
    "a field more": (put("extra", value=1), "state must have the fields"),
    "a part less": (
        drop("regression", "estimator", "targets"),
        "state.regression.estimator must have the fields",
    ),
    "a part that is a number": (
        put("regression", "estimator", value=3),
        "state.regression.estimator must have the fields",
    ),
    "negative step": (
        put("regression", "step", value=-1),
        "state.regression.step must be whole numbers >= 0",
    ),
    "negative rewards": (
        put("regression", "estimator", "rewards", value=-1),
        "rewards must be whole numbers >= 0",
    ),
    "broken count": (put("regression", "step", value=1.5), "state.regression.step must be whole numbers"),
    "true count": (put("regression", "step", value=True), "state.regression.step must be whole numbers"),
    "huge count": (
        put("regression", "step", value=2**62),
        "state.regression.step must be whole numbers >= 0, at most",
    ),
    "count beyond int64": (
        put("regression", "step", value=10**30),
        "state.regression.step must be whole numbers >= 0 that fit int64",
    ),
    "text": (put("regression", "step", value="1"), "state.regression.step must be whole numbers"),
    "nothing": (put("regression", "step", value=None), "state.regression.step must be whole numbers"),
    "a list for a number": (
        put("regression", "step", value=[1]),
        r"state.regression.step must have shape \(\), got \(1,\)",
    ),
    "word beyond 64 bits": (put("rng", value=[2**64, 0, 0, 0]), "state.rng must be whole numbers"),
    "negative word": (put("rng", value=[-1, 0, 0, 0]), "state.rng must be whole numbers >= 0"),
    "three words": (put("rng", value=[1, 2, 3]), r"state.rng must have shape \(4,\), got \(3,\)"),
    "ragged": (
        put("regression", "estimator", "triangle", value=[[1], [1, 2], 3]),
        "triangle must have shape",
    ),
    "nan": (put("regression", "estimator", "targets", value=[float("nan"), 0, 0]), "cannot be read"),
    "infinity": (put("regression", "estimator", "targets", value=[float("inf"), 0, 0]), "cannot be read"),
    "huge whole number": (
        put("regression", "estimator", "targets", value=[10**400, 0, 0]),
        "must be finite numbers that fit",
    ),
    "text for a float": (
        put("regression", "estimator", "targets", value=["1", 0, 0]),
        "targets must be finite numbers",
    ),
    "an estimate too large": (
        put("regression", "estimator", "targets", value=[1e300, 0, 0]),
        "targets must give an estimate",
    ),
    "weight 0": (
        put("regression", "estimator", "weights", value=[1.0, 0.0, 1.0]),
        "weights must be > 0.*not positive definite",
    ),
    "all weights 0": (
        put("regression", "estimator", "weights", value=[0.0] * 3),
        "weights must be > 0.*not positive definite",
    ),
    "weight < 0": (
        put("regression", "estimator", "weights", value=[1.0, -1.0, 1.0]),
        "weights must be > 0.*positive definite",
    ),
    "not unit": (
        put("regression", "estimator", "triangle", value=[[2, 0, 0], [0, 1, 0], [0, 0, 1]]),
        "triangle must be unit upper triangular",
    ),
    "not upper": (
        put("regression", "estimator", "triangle", value=[[1, 0, 0], [0.5, 1, 0], [0, 0, 1]]),
        "triangle must be unit upper triangular",
    ),
    "V singular": (
        put("regression", "estimator", "triangle", value=[[1, 1e200, 0], [0, 1, 0], [0, 0, 1]]),
        "triangle must give V >= ridge.*not positive definite",
    ),
    "negative residual": (
        put("regression", "estimator", "residual", value=-1.0),
        "residual, log_det_ratio, reward_scatter and mass must be >= 0",
    ),
    "shrunk V": (
        put("regression", "estimator", "log_det_ratio", value=-1.0),
        "residual, log_det_ratio, reward_scatter and mass must be >= 0",
    ),
    "targets of no rewards": (
        put("regression", "estimator", "rewards", value=0),
        "targets must be 0 before the first reward",
    ),
}


@pytest.mark.parametrize("case", STATES_THAT_CANNOT_BE)
def test_states_that_cannot_be_are_refused(case, tmp_path):
    _, path = saved("RandUCB", tmp_path)
    change, message = STATES_THAT_CANNOT_BE[case]
    refused(rewritten(path, change), message)


def test_weights_below_the_ridge_are_refused(tmp_path):
    """V starts from the ridge and only grows; RandUCB's alone may wait for its first arms."""
    for name in ("Greedy", "LinTS", "LinUCB"):
        _, path = saved(name, tmp_path, steps=0)
        for weights in ([0.0] * 3, [1.0, 1.0, 0.5], [1e-300] * 3):
            refused(
                rewritten(path, put("regression", "estimator", "weights", value=weights)),
                "weights must be > 0 and at least",
            )
    _, path = saved("RandUCB", tmp_path, steps=0)
    assert json.loads(path.read_text())["state"]["regression"]["estimator"]["weights"] == [0.0] * 3
    sb.Agent.load(path)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("omega", 0, 0), -0.5, "state.omega must hold one distribution per context"),
        (("omega", 0), [0.5, 0.5, 0.5, 0.5], "state.omega must hold one distribution per context"),
        (("omega", 0, 0), float("nan"), "cannot be read"),
        (("omega", 0), [1.0], "state.omega must have shape"),
        (("logits", 0, 0), 1.0, "state.logits must be <= 0"),
        (("multiplier",), -1.0, "state.multiplier must be between 0 and max_multiplier"),
        (("multiplier",), 1e6, "state.multiplier must be between 0 and max_multiplier"),
        (("explored",), 10**6, "state.explored must be at most state.step"),
        (("phase_start",), 10**6, "state.phase_start must be at most state.explored"),
        (("logits", 0, 0), -9.0, "state.omega must be in proportion to the exponentials of state.logits"),
        (("omega_sum", 0, 0), -1.0, "state.omega_sum must be >= 0"),
        (("context_counts", 0), 10**6, "context_counts must sum to step"),
        (("phase",), 10**6, "state.phase must be one that the horizon can reach"),
        (("pulls", 0, 0), -1, "state.pulls must be whole numbers >= 0"),
        (("regression", "tables", "sq_norms", 0, 0), -1.0, "sq_norms must be >= 0"),
        (("regression", "tables", "sq_norms", 0, 0), 1e300, "sq_norms must be the norms"),
        (("regression", "tables", "waiting"), -1, "waiting must be whole numbers >= 0"),
    ],
)
def test_states_of_solid_that_cannot_be_are_refused(keys, value, message, tmp_path):
    _, path = saved("Solid", tmp_path)
    refused(rewritten(path, put(*keys, value=value)), message)


def test_means_that_are_not_the_estimators_are_refused(tmp_path):
    rng = np.random.default_rng(1)
    agent = make_agent("OAM", rng)
    play(agent, "OAM", rng, 10)
    agent.decide(context=0)  # brings the tables up to date
    agent.save(tmp_path / "agent.json")
    change = put("regression", "tables", "means", 0, 0, value=5.0)
    refused(rewritten(tmp_path / "agent.json", change), "state.regression.tables.means must be the means")


def leaves(plain, keys=()):
    items = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    found = [keys]
    for key, value in items:
        found += leaves(value, (*keys, key))
    return found


STRANGE = [
    0, 1, -1, 2, 3.5, -0.0, 1e-300, -1e-300, 1e300, -1e300, 1e308, 1e150, 2**31, 2**53, 2**63 - 1, 2**64 - 1, 2**64,
    10**400, float("nan"), float("inf"), -float("inf"), None, True, False, "", "1", "text", [], {}, [[]], [1], [[1.0]],
    {"kind": "Greedy"},
]  # fmt: skip


def mutated(plain, chance):
    """The file with one to three places changed: replaced, removed, doubled, moved."""
    plain = copy.deepcopy(plain)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        top = chance.choice([*plain, "policy", "setting", "state", "state", "state"])
        if top not in plain:
            continue
        inside = [(top, *keys) for keys in leaves(plain[top])]
        keys = chance.choice(inside)
        place = plain
        for key in keys[:-1]:
            place = place[key]
        old = place[keys[-1]]
        kind = chance.randrange(5)
        if kind == 0 and not isinstance(old, (dict, list)):
            numeric = type(old) in (int, float) and abs(old) < 1e300
            place[keys[-1]] = chance.choice([-old, old / 2, 2 * old, 1e10 * old] if numeric else STRANGE)
        elif kind == 1 and len(keys) > 1:
            del place[keys[-1]]
        elif kind == 2 and isinstance(place, list):
            place.append(old)
        elif kind == 3 and isinstance(place, dict):
            place["more"] = old
        else:
            place[keys[-1]] = copy.deepcopy(chance.choice(STRANGE))
    return plain


@pytest.mark.filterwarnings("ignore:features are of very different spread")  # where a table was damaged
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(
    "name", ["RandUCB", "LinTS with votes", "EpsilonGreedy", "LinUCB", "AOIDS", "Solid", "UCB1"]
)
def test_damaged_files_are_refused_or_of_use(name, signed, tmp_path):
    """300 random mutations: each is refused with a ValueError, or loads and then decides with sound numbers."""
    _, path = saved(name, tmp_path)
    plain = json.loads(path.read_text())
    chance = random.Random(f"{name} {signed}")
    loaded = 0
    for _ in range(300):
        damaged = mutated(plain, chance)
        if signed and {"policy", "setting", "contexts"} <= set(damaged):
            damaged["state_of"] = _fingerprint({field: damaged[field] for field in OWNER})
        if isinstance(damaged.get("policy"), dict) and damaged["policy"].get("votes", 0) not in range(100):
            continue  # would take its time, as it says
        path.write_text(json.dumps(damaged))
        found = None
        with contextlib.suppress(ValueError):
            found = sb.Agent.load(path)
        if found is not None:
            loaded += 1
            check_decisions(found, name)
    print(f"{name}: {loaded} of 300 loaded")
    assert loaded < 200


def check_decisions(agent, name):
    rng = np.random.default_rng(4)
    for _ in range(10):
        asked = offer(name, rng, dim=agent._setting.dim)
        if agent._table is not None:
            asked = {"context": int(rng.integers(len(agent._table.features)))}
        decision = agent.decide(**asked)
        if decision.probabilities is not None:
            assert np.isfinite(decision.probabilities).all()
            assert (decision.probabilities >= 0).all()
            assert decision.probabilities.sum() == pytest.approx(1, abs=1e-9)
            assert decision.probability > 0
        assert asked.get("available", np.ones(99, dtype=bool))[decision.arm]
        agent.learn(decision, rng.normal())
    if name != "UCB1":
        assert np.isfinite(agent.theta).all()


@pytest.mark.parametrize("name", [*DECISION, *TABLE])
def test_files_are_plain_numbers(name, tmp_path):
    _, path = saved(name, tmp_path)
    plain = json.loads(path.read_text(), parse_constant=lambda text: pytest.fail(f"{text} is no number"))
    for keys in leaves(plain["state"]):
        value = plain["state"]
        for key in keys:
            value = value[key]
        assert isinstance(value, (dict, list)) or type(value) in (int, float)


def test_files_are_not_read_without_end(tmp_path):
    sparse = tmp_path / "large.json"
    with sparse.open("wb") as file:
        file.truncate(1 << 40)
    for path, reason in (
        (sparse, "more than the limit of 256 MiB"),
        (tmp_path, "not a plain file"),
        ("/dev/zero", "not a plain file"),
    ):
        with pytest.raises(ValueError, match=reason):
            sb.Agent.load(path)


def test_what_could_not_be_read_again_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr("solid_bandits.core.agent_file.LARGEST", 100)
    agent = sb.Agent(sb.Greedy(), dim=2, noise_std=1.0)
    with pytest.raises(ValueError, match="more than 100 bytes; pickle the agent instead"):
        agent.save(tmp_path / "agent.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", [None, 3, b"agent.json", ["agent.json"], 1.5])
def test_a_path_is_a_path(wrong):
    agent = sb.Agent(sb.Greedy(), dim=2, noise_std=1.0)
    for call in (agent.save, sb.Agent.load, sb.Problem.load, sb.problems.toy().save, sb.Results.load):
        with pytest.raises(ValueError, match="path must be a path"):
            call(wrong)
