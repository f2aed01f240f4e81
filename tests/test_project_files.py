"""Files around the package agree with it: how to cite it, continuous integration, hooks, templates."""

import re
import tomllib
from pathlib import Path

import pytest

import solid_bandits as sb

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def test_the_citation_is_of_this_version():
    text = read("CITATION.cff")
    assert f"\nversion: {sb.__version__}\n" in text
    assert f"\nlicense: {PROJECT['license']}\n" in text
    assert all(name in text for name in ("Tirinzoni", "Pirotta", "Restelli", "Lazaric"))


def test_continuous_integration_tests_every_version_of_python_that_is_declared():
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    (matrix,) = re.findall(r"python-version: \[(.*)\]", read(".github/workflows/ci.yml"))
    assert re.findall(r"3\.\d+", matrix) == declared
    assert f">={declared[0]}" == PROJECT["requires-python"]


@pytest.mark.parametrize(
    "path",
    [".github/workflows/ci.yml", ".github/pull_request_template.md", "README.md", ".pre-commit-config.yaml"],
)
def test_every_target_of_make_that_is_named_exists(path):
    named = re.findall(r"(?:run: |`|\$ )make ([a-z-]+)", read(path))
    assert named
    assert set(named) <= TARGETS


def test_the_hooks_run_what_lint_installs():
    tools = re.findall(r"entry: \.venv/bin/(\w+)", read(".pre-commit-config.yaml"))
    installed = {
        re.match(r"[\w-]+", requirement)[0] for requirement in PROJECT["optional-dependencies"]["lint"]
    }
    assert set(tools) <= installed
    assert "pre-commit" in installed
