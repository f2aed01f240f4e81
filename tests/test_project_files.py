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
    every, ends = re.findall(r"python-version: \[(.*)\]", read(".github/workflows/ci.yml"))
    tested = re.findall(
        r"3\.\d+", every
    )  # perhaps with the next version, which is declared once it has passed
    assert tested[: len(declared)] == declared
    assert re.findall(r"3\.\d+", ends) == [tested[0], tested[-1]]  # on other systems
    assert f">={declared[0]}" == PROJECT["requires-python"]


@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/ci.yml",
        ".github/workflows/pages.yml",
        ".github/pull_request_template.md",
        "README.md",
        ".pre-commit-config.yaml",
    ],
)
def test_every_target_of_make_that_is_named_exists(path):
    named = re.findall(r"(?:run: |`|\$ )make ([a-z-]+)", read(path))
    assert named
    assert set(named) <= TARGETS


def pinned():
    """Packages of `make lint`, each with a version for every Python that has one."""
    lines = [line for line in read(".ci/lint.txt").splitlines() if line and not line.startswith("#")]
    for line in lines:
        assert re.fullmatch(r'[a-z0-9-]+==[0-9.]+(; python_version (<|>=) "3\.\d+")?', line), line
    return [re.match(r"[a-z0-9-]+", line)[0] for line in lines]


def test_the_hooks_run_what_lint_installs():
    tools = re.findall(r"entry: \.venv-lint/bin/(\w+)", read(".pre-commit-config.yaml"))
    assert tools
    assert {*tools, "pre-commit"} <= set(pinned())


def test_lint_reads_the_types_of_the_same_versions_next_year():
    """All that mypy looks into, which pip must not choose; numba's types are part of it."""
    names = pinned()
    assert {
        "mypy",
        "ruff",
        "numpy",
        "scipy-stubs",
        "optype",
        "polars",
        "pydantic",
        "fastapi",
        "numba",
    } <= set(names)
    twice = sorted(name for name in set(names) if names.count(name) > 1)
    assert twice == ["numpy", "numpy-typing-compat", "optype", "scipy-stubs"]
    makefile = read("Makefile")
    assert "--no-deps -r .ci/lint.txt" in makefile
    assert "lint" not in PROJECT["optional-dependencies"]
