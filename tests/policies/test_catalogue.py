"""The catalogue says of every policy what is so."""

import dataclasses

import pytest

import drive
import solid_bandits as sb
from solid_bandits.loop import checkpoints, play
from solid_bandits.policies.catalogue import CATALOGUE, CLASSES, policy_lines, policy_table
from solid_bandits.policies.naming import by_name


def test_every_class_has_a_name_on_the_command_line():
    assert {type(entry.make("random", 3)) for entry in CATALOGUE.values()} == set(CLASSES.values())
    assert all(name == kind.__name__ and getattr(sb, name) is kind for name, kind in CLASSES.items())
    assert list(sb.policies) == list(CATALOGUE)
    for name, line in policy_lines().items():
        assert f"{name} " in repr(sb.policies)
        assert line in repr(sb.policies)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_catalogue_lists_every_policy_with_its_facts(name):
    entry = CATALOGUE[name]
    policy = entry.make("random", 3)
    row = {row["name"]: row for row in policy_table()}[name]
    parameters = {field.name for field in dataclasses.fields(policy)}
    assert set(row["parameters"].split(", ")) <= parameters | {"none"}
    assert row["class"] == type(policy).__name__
    assert row["contexts"] == ("several" if entry.contextual else "one")
    assert "\n" not in entry.line
    play(sb.problems.random(1, 3, 3, seed=0), policy, 5, seed=0, run=0, steps=checkpoints(5))
    several = sb.problems.random(2, 3, 3, seed=0)
    if entry.contextual:
        play(several, policy, 5, seed=0, run=0, steps=checkpoints(5))
    else:
        with pytest.raises(ValueError, match="takes one context, got 2"):
            drive.begin(policy, several)


def test_the_name_of_a_class_alone_is_its_default():
    assert CATALOGUE["lints"].make("toy", 3) == sb.LinTS()
    assert CATALOGUE["lints-paper"].make("toy", 3) == sb.LinTS(scale="paper")


def test_near_names_are_suggested():
    with pytest.raises(ValueError, match="did you mean 'lints-paper'"):
        by_name(["lints-papper"], "toy", 3)
    with pytest.raises(ValueError, match="named once"):
        by_name(["solid", "solid"], "toy", 3)
    assert list(by_name(list(CATALOGUE), "toy", 3)) == [entry.label for entry in CATALOGUE.values()]


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
