"""The catalogue says of every policy what is so."""

import dataclasses
import tomllib
from pathlib import Path

import pytest

import drive
import solid_bandits as sb
from solid_bandits import paper
from solid_bandits.core.loop import checkpoints, play
from solid_bandits.paper.names import NAMES
from solid_bandits.policies.catalogue import CATALOGUE, CLASSES, DECIDING, policy_lines, policy_table
from solid_bandits.policies.naming import by_name


def test_every_class_has_a_name_on_the_command_line():
    assert {type(entry.make("random", 3)) for entry in CATALOGUE.values()} == set(CLASSES.values())
    assert all(
        name == kind.__name__ and (getattr(sb, name, None) or getattr(sb.rivals, name)) is kind
        for name, kind in CLASSES.items()
    )
    assert list(sb.policies) == list(CATALOGUE)
    for name, line in policy_lines().items():
        assert f"{name} " in repr(sb.policies)
        assert line in repr(sb.policies)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_catalogue_lists_every_policy_with_its_facts(name):
    entry = CATALOGUE[name]
    policy = entry.make("random", 3)
    row = {row["name"]: row for row in policy_table()}[name]
    first = entry.parameters[0].name
    assert row["parameters"].startswith(f"{first}={getattr(entry.make('toy', 3), first)!r}")
    assert row["class"] == type(policy).__name__
    assert row["contexts"] == ("one" if entry.facts.one_context else "several")
    assert "\n" not in entry.facts.line
    play(sb.problems.random(1, 3, 3, seed=0), policy, 5, seed=0, run=0, steps=checkpoints(5))
    several = sb.problems.random(2, 3, 3, seed=0)
    if not entry.facts.one_context:
        play(several, policy, 5, seed=0, run=0, steps=checkpoints(5))
    else:
        with pytest.raises(ValueError, match="takes one context, got 2; AOIDS, OAM, Solid and all policies"):
            drive.begin(policy, several)


def test_the_name_of_a_class_alone_is_its_default():
    assert CATALOGUE["lints"].make("toy", 3) == sb.LinTS()
    assert CATALOGUE["lints-paper"].make("toy", 3) == sb.LinTS(scale="paper")


def test_near_names_are_suggested():
    with pytest.raises(ValueError, match="did you mean 'lints-paper'"):
        by_name(["lints-papper"], "toy", 3)
    with pytest.raises(ValueError, match="named once"):
        by_name(["solid", "solid"], "toy", 3)
    assert list(by_name(list(CATALOGUE), "toy", 3)) == [entry.facts.label for entry in CATALOGUE.values()]


def test_solid_has_the_papers_parameters_for_each_kind_of_problem():
    toy, other = CATALOGUE["solid"].make("toy", 3), CATALOGUE["solid"].make("random", 16)
    assert toy == sb.Solid()
    assert (
        other
        == sb.Solid.paper_random(16)
        == dataclasses.replace(sb.Solid(), z0=16.0, initial_multiplier=50.0)
    )
    with pytest.raises(ValueError, match=r"^n_arms must be"):
        sb.Solid.paper_random(0)


def test_every_public_policy_is_found_those_that_decide_from_features_first():
    names = list(CLASSES)
    assert {"RandUCB", "VIDS", "StreamingSolid"} <= set(DECIDING) == set(names[: len(DECIDING)])
    assert {"Solid", "UCB1"} <= set(names[len(DECIDING) :])
    for group in (names[: len(DECIDING)], names[len(DECIDING) :]):
        assert group == sorted(group, key=str.casefold)
    assert [name for name in CATALOGUE if name.startswith("lin")] == [
        "linimed-3",
        "linimed-1",
        "linimed-2",
        "linmed",
        "linmed-theorem",
        "lints",
        "lints-paper",
        "linucb",
        "linucb-paper",
        "linucb-theorem",
    ]


def test_what_a_step_costs_follows_from_the_parameters():
    """An estimate of the time of a plan needs no more than what the classes declare."""
    assert all(entry.make("toy", 3).microseconds(pairs=6, dim=3) > 0 for entry in CATALOGUE.values())
    assert sb.VIDS(samples=1000).microseconds(6, 3) == pytest.approx(2 * sb.VIDS().microseconds(6, 3))
    often, seldom = sb.rivals.OAM(), sb.rivals.OAM(resolve_every=5)
    assert often.microseconds(6, 3) == pytest.approx(5 * seldom.microseconds(6, 3))
    once, per_pair, per_entry = sb.RandUCB.facts.cost
    assert sb.RandUCB().microseconds(6, 3) == once + 6 * per_pair + 18 * per_entry


def test_linucb_in_the_shipped_experiments_is_the_papers():
    played = [
        (table.get("label"), table["name"])
        for name in NAMES
        for table in tomllib.loads(Path(paper.__file__).with_name(f"{name}.toml").read_text("utf-8"))[
            "policy"
        ]
        if table["name"].startswith("linucb")
    ]
    assert set(played) == {("LinUCB", "linucb-paper"), (None, "linucb-theorem")}
    assert len(played) == 8
    assert CATALOGUE["linucb-paper"].make("toy", 3) == sb.LinUCB(radius="paper")


@pytest.mark.parametrize(
    ("policy", "scale", "ridge"),
    [
        (sb.LinUCB(), 0.35, "evidence"),
        (CATALOGUE["linucb-paper"].make("toy", 3), 1.0, 1.0),
        (CATALOGUE["linucb-theorem"].make("toy", 3), 1.0, 1.0),
        (sb.rivals.LinMED(), 0.25, "evidence"),
        (sb.rivals.LinIMED(radius="theorem"), 1.0, 1.0),
    ],
    ids=repr,
)
def test_scale_and_ridge_that_are_not_given_follow_the_radius(policy, scale, ridge):
    given = dataclasses.replace(policy, scale=scale, ridge=ridge)
    problem = sb.problems.random(2, 3, 3, seed=0)
    usual, explicit = (drive.begin(one, problem) for one in (policy, given))
    assert usual.params == explicit.params
    assert usual.state.regression.params == explicit.state.regression.params
    assert explicit.state.regression.params.search.rounds == (3 if ridge == "evidence" else 0)
    other = drive.begin(dataclasses.replace(policy, scale=0.7, ridge=2.0), problem)
    assert other.params != usual.params
    assert other.state.regression.params.ridge == 2.0
