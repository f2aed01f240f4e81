"""The documentation's examples run, and what it names exists."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import solid_bandits as sb
from solid_bandits.experiments.reader import load
from solid_bandits.policies.contract import start
from solid_bandits.setting import make_setting, make_table
from solid_bandits.stream import POLICY, make_stream

DOCS = Path(__file__).parent.parent / "docs"
ROOT = DOCS.parent
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
MODULES = [info.name for info in pkgutil.walk_packages(sb.__path__, "solid_bandits.")]


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_on_a_page_exists(page):
    packages = "|".join(
        sorted(place.name for place in (ROOT / "src" / "solid_bandits").iterdir() if place.is_dir())
    )
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"(?<![\w/.-])(?:src|tests|studies|benchmarks)/[\w./-]*\w", text):
        assert (ROOT / path).exists(), path
    for path in re.findall(rf"`((?:{packages})/(?:[\w/]*/)?(?:\w+\.(?:py|toml))?)[`:]", text):
        assert (ROOT / "src" / "solid_bandits" / path).exists(), path


def test_the_reference_has_every_public_name():
    named = set(
        re.findall(r"auto\w+:: solid_bandits\.([\w.]+)", (DOCS / "api.md").read_text(encoding="utf-8"))
    )
    packages = {"bounds", "policies", "problems"}
    assert set(sb.__all__) - packages <= named
    kernels = {name for name in vars(sb.kernels) if not name.startswith("_")}
    assert {f"kernels.{name}" for name in kernels} <= named


def test_every_page_is_in_the_table_of_contents():
    blocks = re.findall(
        r"```{toctree}\n(.*?)```", (DOCS / "index.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    assert all(":caption:" in block for block in blocks)
    listed = [line for block in blocks for line in block.splitlines() if line and not line.startswith(":")]
    assert sorted([*listed, "index"]) == sorted(page.stem for page in DOCS.glob("*.md"))


def test_decisions_one_at_a_time_as_the_page_has_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    section = (DOCS / "start.md").read_text(encoding="utf-8").split("## One decision at a time")[1]
    blocks = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert len(blocks) == 4
    names = {
        "sb": sb,
        "features": np.eye(8)[:3],
        "mask": np.array([True, True, False]),
        "table": np.ones((4, 2, 3)),
    }
    for block in blocks[:3]:
        exec(compile(block, "start.md", "exec"), names)
    assert (
        names["agent"]._compiled.state.estimator.rewards == 3
    )  # the decision, once more pickled, once more rebuilt
    exec(compile(blocks[3], "start.md", "exec"), names)


def test_rewards_learnt_twice_count_twice():
    once, twice = (sb.Agent(sb.Greedy(), dim=1, noise_std=1.0) for _ in range(2))
    decision = once.decide([[1.0]])
    once.learn(decision, 1.0)
    twice.learn_many([decision, decision], [1.0, 1.0])
    assert (once.theta[0], twice.theta[0]) == pytest.approx((1 / 2, 2 / 3))


def start_without_bound(policy):
    start(policy, make_setting(1, noise_std=1.0), make_table([[[1.0], [2.0]]]), make_stream(0, 0, POLICY))


@pytest.mark.parametrize(
    "policy", [sb.Solid(), sb.Solid.theory(100.0), sb.LinUCB(radius="theorem"), sb.SPL()]
)
def test_policies_that_need_a_bound(policy):
    with pytest.raises(ValueError, match="theta_bound"):
        start_without_bound(policy)


OTHERS = [
    sb.RandUCB(),
    sb.LinTS(),
    sb.LinUCB(),
    sb.EpsilonGreedy(),
    sb.Greedy(),
    sb.SPL(gap_clip=0.1),
    sb.OAM(),
]
OTHERS += [sb.AOIDS(), sb.OSSB(), sb.EndOfOptimism(), sb.UCB1()]
OTHERS += [sb.Solid(bonus=bonus) for bonus in ("plain", "local", "none")]


@pytest.mark.parametrize("policy", OTHERS, ids=repr)
def test_all_other_policies_need_none(policy):
    start_without_bound(policy)


def test_the_table_of_rules_is_the_codes():
    from solid_bandits.experiments.rules import RULES

    rows = [f"| {name} | {rule.words} |" for name, rule in RULES.items()]
    expected = "\n".join(["| rule | says, and how it is judged |", "|---|---|", *rows]) + "\n"
    assert (DOCS / "_tables" / "rules.md").read_text(encoding="utf-8") == expected


def test_the_tables_of_what_is_open_are_the_codes():
    from solid_bandits.report.left_open import LEFT_OPEN, NOT_JUDGED

    for name, heads, rows in (
        ("left-open", "| open | here |", LEFT_OPEN),
        ("not-judged", "| sentence | why |", NOT_JUDGED),
    ):
        lines = [
            f"| {key} | {value} |".replace("|A|", r"\|A\|").replace("*", r"\*") for key, value in rows.items()
        ]
        expected = "\n".join([heads, "|---|---|", *lines]) + "\n"
        assert (DOCS / "_tables" / f"{name}.md").read_text(encoding="utf-8") == expected


def test_the_example_of_an_experiment_is_one(tmp_path):
    text = (DOCS / "experiments.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    (tmp_path / "mine.toml").write_text(example, encoding="utf-8")
    sb.problems.random(seed=1).save(tmp_path / "mine.npz")
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
