"""A value's line is found by its path, whatever the file's style."""

import pytest

from solid_bandits._internal import checks
from solid_bandits.paper.source import Source, TomlError

TEXT = '''# horizon = 1
horizon = 3
about = """
horizon = 7
[[policy]]
"""

[quick]
  "runs" = 2

[[policy]]
name = "a"
parameters = { z0 = 1.0, list = [
  1,
  2,
] }

[[ policy ]]
name = "horizon = 3"

[policy.parameters]
z0 = 2.0
problems = ["x",
  "y"]
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 1),
        (("horizon",), 2),
        (("about",), 3),
        (("quick",), 8),
        (("quick", "runs"), 9),
        (("policy", 0), 11),
        (("policy", 0, "parameters", "list"), 13),
        (("policy", 1), 18),
        (("policy", 1, "name"), 19),
        (("policy", 1, "parameters"), 21),
        (("policy", 1, "parameters", "z0"), 22),
        (("policy", 1, "parameters", "problems", 1), 23),
        (("policy", 1, "parameters", "nowhere"), 21),
        (("policy", 2, "name"), 11),
        (("nowhere",), 1),
    ],
)
def test_lines(path, line):
    assert Source("x.toml", TEXT).line(path) == line


def test_errors_are_located_by_the_argument_they_name():
    source = Source("x.toml", TEXT)
    with (
        pytest.raises(TomlError, match=r"^x\.toml, line 22: z0 must be > 3, got 2\.0$"),
        source.at("policy", 1),
        source.at("policy", 1, "parameters"),
    ):
        checks.number("z0", 2.0, above=3)
    with (
        pytest.raises(TomlError, match=r"^x\.toml, line 19: nothing is called z0$"),
        source.at("policy", 1, "name"),
    ):
        raise ValueError("nothing is called z0")


def test_what_is_not_toml_says_so():
    with pytest.raises(TomlError, match=r"x\.toml is not TOML: .*line 1"):
        Source("x.toml", "a = \nb = 1")
