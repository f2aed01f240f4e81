"""One policy, a list of them, or labels with policies: all three are labels with policies."""

import pytest

import solid_bandits as sb
from solid_bandits.simulation.labels import labelled


class Always:
    def __init__(self, arm=0):
        self.arm = arm

    def act(self, arms, available):
        return self.arm

    def update(self, features, reward):
        pass


def test_one_policy_has_the_name_of_its_class():
    assert labelled(sb.LinUCB()) == {"LinUCB": sb.LinUCB()}
    assert list(labelled(Always())) == ["Always"]


def test_labels_stay_as_they_were_given():
    given = {"a": sb.LinUCB(), "b": sb.LinUCB()}
    assert labelled(given) == given


def test_a_list_keeps_its_order_and_shows_only_what_differs():
    given = [sb.LinUCB(scale=0.5), sb.Greedy(), sb.LinUCB(scale=2.0), sb.LinUCB(scale=0.5, radius="theorem")]
    found = labelled(given)
    assert list(found.values()) == given
    assert list(found) == [
        "LinUCB (radius='tuned', scale=0.5)",
        "Greedy",
        "LinUCB (radius='tuned', scale=2.0)",
        "LinUCB (radius='theorem', scale=0.5)",
    ]


def test_own_policies_are_told_apart_by_their_attributes():
    assert list(labelled([Always(1), Always(2)])) == ["Always (arm=1)", "Always (arm=2)"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "policies must not be empty; give one such as"),
        ({}, "policies must not be empty; give one such as"),
        (None, "policies must be a policy such as Solid"),
        ("linucb", "policies must be a policy such as Solid"),
        (sb.LinUCB, r"policies must be an object, got the class LinUCB; give LinUCB\(\)"),
        ([sb.Greedy(), 3], r"policies\[1\] must be a policy such as Solid"),
        (
            [sb.LinUCB(), sb.LinUCB()],
            "policies must differ in their parameters, got LinUCB more than once; give labels",
        ),
        ({1: sb.LinUCB()}, "policies must have text labels, got 1"),
    ],
)
def test_what_has_no_labels_says_so(given, message):
    with pytest.raises(ValueError, match=message):
        labelled(given)


@pytest.mark.parametrize("play", [sb.simulate, sb.summarise])
def test_the_form_does_not_show_in_the_results(play):
    forms = [{"LinUCB": sb.LinUCB()}, [sb.LinUCB()], sb.LinUCB()]
    problem = sb.problems.toy()
    one, two, three = (play(problem, form, horizon=20, runs=3, jobs=1).final() for form in forms)
    assert one.equals(two)
    assert one.equals(three)
