"""A state as plain numbers and back; what cannot be is refused, and nothing is changed then."""

import json
import math

import numpy as np
import pytest

import drive
import solid_bandits as sb
from solid_bandits.policies.state import check_evidence, fill_state, state_to_plain


def played(policy=None, problem=None, steps=40):
    problem = problem or sb.problems.toy()
    agent = drive.begin(policy or sb.Solid(), problem, 400)
    for _ in drive.decisions(agent, problem, steps):
        pass
    return agent


def test_json_keeps_every_bit():
    agent, other = played(), drive.begin(sb.Solid(), sb.problems.toy(), 400, seed=9)
    plain = json.loads(json.dumps(state_to_plain(agent.state), allow_nan=False))
    fill_state(other.state, plain)
    assert state_to_plain(other.state) == plain == state_to_plain(agent.state)
    assert other.state.rng.dtype == np.uint64
    assert (other.state.rng == agent.state.rng).all()


def put(plain, path, value):
    *parents, last = path.split(".")
    for name in parents:
        plain = plain[name]
    plain[last] = value


def changed(path, change):
    return lambda plain: put(plain, path, change(get(plain, path)))


def get(plain, path):
    for name in path.split("."):
        plain = plain[name]
    return plain


def entry(*place, value):
    def change(numbers):
        target = numbers
        for index in place[:-1]:
            target = target[index]
        target[place[-1]] = value
        return numbers

    return change


BAD = {
    "another shape": (
        changed("omega", lambda w: w[:1]),
        r"state\.omega must have shape \(2, 3\), got \(1, 3\)",
    ),
    "ragged": (changed("omega", lambda w: [w[0], w[1][:2]]), r"state\.omega must have shape"),
    "not a number": (
        changed("regression.estimator.targets", entry(1, value=math.nan)),
        r"estimator\.targets must be finite",
    ),
    "infinite": (changed("multiplier", lambda _: math.inf), r"state\.multiplier must be finite numbers"),
    "words": (changed("multiplier", lambda _: "1"), r"state\.multiplier must be finite numbers"),
    "a truth value": (changed("step", lambda _: True), r"state\.step must be whole numbers >= 0"),
    "a part of a count": (changed("step", lambda _: 1.5), r"state\.step must be whole numbers >= 0"),
    "a negative count": (changed("explored", lambda _: -1), r"state\.explored must be whole numbers >= 0"),
    "too large a count": (
        changed("step", lambda _: 2**70),
        r"state\.step must be whole numbers >= 0 that fit",
    ),
    "a field too many": (lambda plain: put(plain, "extra", 1), r"state must have the fields .*, got .*extra"),
    "a field too few": (lambda plain: plain.pop("omega"), r"state must have the fields .*omega"),
    "no fields": (
        lambda plain: put(plain["regression"], "estimator", 3),
        r"state\.regression\.estimator must have the fields .*, got 3",
    ),
    "no triangle": (
        changed("regression.estimator.triangle", entry(1, 0, value=0.1)),
        r"estimator\.triangle must be unit upper triangular",
    ),
    "no unit diagonal": (
        changed("regression.estimator.triangle", entry(1, 1, value=2.0)),
        r"estimator\.triangle must be unit upper triangular",
    ),
    "not positive definite": (
        changed("regression.estimator.weights", entry(0, value=-1.0)),
        r"estimator\.weights must be > 0",
    ),
    "a negative residual": (changed("regression.estimator.residual", lambda _: -1.0), r"estimator\.residual"),
    "learnt from nothing": (
        changed("regression.estimator.rewards", lambda _: 0),
        r"estimator\.targets must be 0 before",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_is_refused_by_name_and_nothing_changes(name):
    change, message = BAD[name]
    plain = json.loads(json.dumps(state_to_plain(played().state)))
    change(plain)
    agent = drive.begin(sb.Solid(), sb.problems.toy(), 400)
    before = state_to_plain(agent.state)
    with pytest.raises(ValueError, match=message):
        fill_state(agent.state, plain)
    assert state_to_plain(agent.state) == before


def test_a_state_of_another_problem_is_refused():
    plain = state_to_plain(played(problem=sb.problems.random(seed=0)).state)
    with pytest.raises(
        ValueError, match=r"state\.regression\.estimator\.triangle must have shape \(3, 3\), got \(8, 8\)"
    ):
        fill_state(played().state, plain)


UNREACHABLE = {
    "omega": (changed("omega", entry(0, 0, value=0.9)), "state.omega must hold one distribution"),
    "logits": (changed("logits", entry(0, 0, value=0.5)), "state.logits must be <= 0"),
    "multiplier": (changed("multiplier", lambda _: 1e9), "state.multiplier must be between"),
    "phase_start": (changed("phase_start", lambda _: 10**6), "state.phase_start must be at most"),
    "contexts": (changed("context_counts", entry(0, value=10**6)), "state.context_counts must sum to step"),
    "phase": (changed("phase", lambda _: 10**6), "state.phase must be one that the horizon can reach"),
}


@pytest.mark.parametrize("name", UNREACHABLE)
def test_solid_refuses_what_no_run_could_have_reached(name):
    change, message = UNREACHABLE[name]
    agent = played()
    sb.Solid().check_state(agent)  # a run has reached this one
    plain = state_to_plain(agent.state)
    change(plain)
    fill_state(agent.state, plain)
    with pytest.raises(ValueError, match=message):
        sb.Solid().check_state(agent)


def test_parts_that_a_form_does_not_have_are_not_there():
    assert "projected" not in state_to_plain(played().state)
    assert "projected" in state_to_plain(played(sb.Solid.theory(max_multiplier=100)).state)


def test_a_ridge_that_is_not_set_yet_is_a_state_like_any_other():
    agent = drive.begin(sb.RandUCB(), sb.problems.toy())
    plain = state_to_plain(agent.state)
    assert not np.any(plain["regression"]["estimator"]["weights"])
    fill_state(agent.state, plain)


EVIDENCE = {
    "a negative weight": (
        changed("regression.evidence.weights", entry(0, value=-1.0)),
        r"state\.regression\.evidence\.triangle",
    ),
    "no triangle": (
        changed("regression.evidence.triangle", entry(1, 0, value=0.5)),
        r"state\.regression\.evidence\.triangle",
    ),
    "no ridge": (changed("regression.evidence.ridge", lambda _: 0.0), r"state\.regression\.evidence\.ridge"),
    "a ridge above its start": (
        changed("regression.evidence.ridge", lambda _: 1e9),
        r"state\.regression\.evidence\.ridge",
    ),
    "a negative residual": (
        changed("regression.evidence.residual", lambda _: -1.0),
        r"state\.regression\.evidence\.ridge",
    ),
    "other rewards": (
        changed("regression.evidence.weights", lambda weights: [1e6 * weight for weight in weights]),
        r"state\.regression\.estimator must be that of state\.regression\.evidence",
    ),
    "another ridge": (
        lambda plain: (
            put(plain, "regression.evidence.ridge", 1e-9),
            put(plain, "regression.evidence.weights", [0.0] * 3),
        ),
        r"state\.regression\.estimator must be that of state\.regression\.evidence",
    ),
}


@pytest.mark.parametrize("case", EVIDENCE)
def test_evidence_that_the_estimator_does_not_follow_from_is_refused(case):
    change, message = EVIDENCE[case]
    agent, problem = played(sb.RandUCB()), sb.problems.toy()
    plain = json.loads(json.dumps(state_to_plain(agent.state)))
    other = drive.begin(sb.RandUCB(), problem, 400)
    fill_state(other.state, plain)
    check_evidence(other)  # as it was
    change(plain)
    fill_state(other.state, plain)
    with pytest.raises(ValueError, match=message):
        check_evidence(other)


def test_evidence_before_the_first_reward():
    agent = drive.begin(sb.RandUCB(), sb.problems.toy(), 400)
    check_evidence(agent)
    agent.state.regression.evidence.weights[0] = 1.0
    with pytest.raises(ValueError, match="before the first reward"):
        check_evidence(agent)


def test_evidence_with_offsets_passes():
    """What rounding does to a triangle at a condition of 1e17 is no reason to refuse it."""
    rng = np.random.default_rng(0)
    agent = sb.Agent(sb.RandUCB(), dim=3)
    for step in range(300):
        arms = np.column_stack([np.full(4, 1.7e9 + step), rng.normal(size=(4, 2)) + 1e4])
        decision = agent.decide(arms)
        agent.learn(decision, rng.normal())
    check_evidence(agent._compiled)
