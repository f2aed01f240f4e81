"""The documentation's examples run, and what it names exists."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import solid_bandits
from solid_bandits.experiments.reader import load

DOCS = Path(__file__).parent.parent / "docs"
MODULES = [info.name for info in pkgutil.walk_packages(solid_bandits.__path__, "solid_bandits.")]


def resolve(dotted):
    """The object that `module.name.attribute`, below solid_bandits, stands for."""
    parts = dotted.split(".")
    for split in range(len(parts), 0, -1):
        try:
            value = importlib.import_module("solid_bandits." + ".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for name in parts[split:]:
            value = getattr(value, name)
        return value
    raise AssertionError(f"{dotted} is nowhere")


def test_every_name_on_the_map_from_paper_to_code_exists():
    text = (DOCS / "algorithm.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    names = {name for row in rows for name in re.findall(r"`([a-z_]+(?:\.[\w]+)+)`", row)}
    assert len(names) > 20
    for name in names:
        resolve(name)


def test_every_line_of_algorithm_1_is_quoted_in_the_code():
    source = Path(resolve("policies.solid.algorithm").__file__).read_text(encoding="utf-8")
    for words in (
        "Receive context",
        "Exploitation Step",
        "Exploration Step: Sample arm",
        "Set S_t",
        "Compute q_t",
        "Update policy",
        "Update multiplier",
        "Change phase",
        "Reset solution",
        "Update V_t, U_t",
    ):
        assert re.search(rf"# Alg\. 1: .*{re.escape(words)}", source), words


def test_the_table_of_rules_is_the_codes():
    from solid_bandits.experiments.rules import RULES

    rows = [f"| {name} | {rule.words} |" for name, rule in RULES.items()]
    expected = "\n".join(["| rule | says, and how it is judged |", "|---|---|", *rows]) + "\n"
    assert (DOCS / "_tables" / "rules.md").read_text(encoding="utf-8") == expected


def test_the_example_of_an_experiment_is_one(tmp_path):
    text = (DOCS / "experiments.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    (tmp_path / "mine.toml").write_text(example, encoding="utf-8")
    solid_bandits.problems.random(seed=1).save(tmp_path / "mine.npz")
    paper, quick = (load(tmp_path / "mine.toml", scale) for scale in ("paper", "quick"))
    assert [part.plan.horizon for part in paper.parts] == [20_000, 10_000]
    assert [part.plan.horizon for part in quick.parts] == [2_000]
    assert list(paper.parts[0].plan.policies) == ["SOLID, z₀ = 10", "SOLID, z₀ = 100", "LinTS (posterior)"]
    assert len(paper.claims) == 1


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_examples_in_docstrings_run(name):
    result = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert result.failed == 0
