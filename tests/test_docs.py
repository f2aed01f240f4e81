"""The documentation's examples run, and what it names exists."""

import doctest
import importlib
import inspect
import pkgutil
import re
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest

import solid_bandits as sb
import solid_bandits.identification
from page_code import read_page
from public_names import PUBLIC
from solid_bandits.cli import app
from solid_bandits.paper.reader import load

DOCS = Path(__file__).parent.parent / "docs"
ROOT = DOCS.parent
PAGES = [
    ROOT / "README.md",
    *sorted(path for path in DOCS.rglob("*.md") if not path.is_relative_to(DOCS / "_build")),
]
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


def test_the_reference_has_every_public_name(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_extensions")
    expand = importlib.import_module("policy_lists").expand
    pages = (expand(path.read_text(encoding="utf-8")) for path in (DOCS / "api").glob("*.md"))
    named = {name for text in pages for name in re.findall(r"auto\w+:: solid_bandits\.([\w.]+)", text)}
    rooms = {name for name in sb.__all__ if inspect.ismodule(getattr(sb, name))}
    public = {*sb.__all__} - rooms
    for room in [*rooms, "identification"]:
        public |= {f"{room}.{name}" for name in getattr(getattr(sb, room), "__all__", ())}
    assert public - {"extend.OF_A_TRIANGLE", "logs.COLUMNS", "ope.ESTIMATORS"} <= named


def listed(index):
    """The pages that the tables of contents of a page name."""
    blocks = re.findall(r"```{toctree}\n(.*?)```", index.read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = (line for block in blocks for line in block.splitlines() if line and not line.startswith(":"))
    return [(re.search(r"<(.*)>", line) or re.match(r"(.*)", line))[1] for line in lines]


@pytest.mark.parametrize(
    ("index", "pages"),
    [
        ("index", "*.md"),
        ("api", "api/*.md"),
        ("tutorials/index", "tutorials/*.md"),
        ("decisions/index", "decisions/*.md"),
    ],
)
def test_every_page_is_in_a_table_of_contents(index, pages):
    home = DOCS / f"{index}.md"
    named = [(home.parent / name).with_suffix(".md") for name in listed(home)]
    assert len(named) == len(set(named))
    assert all(path.exists() for path in named)
    assert set(DOCS.glob(pages)) - {home} <= set(named)


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "index.md"], ids=lambda page: page.name)
def test_the_first_code_that_a_reader_sees_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    names = {"features": np.eye(8)[:3], "mask": [True, True, False], "reward": 1.0}
    for block in blocks:
        short = block.replace("horizon=50_000, runs=100", "horizon=500, runs=4")
        exec(compile(short, page.name, "exec"), names)
    assert (tmp_path / "regret.png").exists()
    assert names["results"].runs == 4


def test_getting_started_as_the_page_has_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = read_page("start.md")
    names = {}
    exec(compile(page.script, "start.md", "exec"), names)
    assert names["results"].compare("RandUCB", "LinUCB").better == "RandUCB"
    assert names["decision"].arm in (0, 1)
    assert {path.name for path in tmp_path.iterdir()} == {
        "regret.png",
        "toy-results",
        "mine.npz",
        "agent.json",
    }
    commands = [line for line in page.commands if line.startswith("solid-bandits")]
    assert len(commands) == 6
    for line in commands:
        app(shlex.split(line, comments=True)[1:], standalone_mode=False)
    assert (tmp_path / "mine" / "report.html").exists()
    assert (tmp_path / "bound" / "bound.png").exists()


def test_the_extras_on_the_page_are_those_of_the_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    for_users = set(extras) - {"test", "lint", "docs"}
    table = (DOCS / "start.md").read_text(encoding="utf-8").split("| extra | for |")[1].split("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {name for cell in cells for name in re.findall(r"`([\w-]+)`", cell)} == for_users


def test_decisions_one_at_a_time_as_the_page_has_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"```python\n(.*?)```", (DOCS / "agent.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    assert len(blocks) == 5
    names = {
        "sb": sb,
        "features": np.eye(8)[:3],
        "mask": np.array([True, True, False]),
        "table": np.ones((4, 2, 3)),
        "offers": np.ones((4, 2, 8)),
        "rewards": np.arange(4.0),
    }
    for block in blocks[:4]:
        exec(compile(block, "agent.md", "exec"), names)
    # The decision, a batch of four, the decision once more pickled, once more rebuilt.
    assert names["agent"]._compiled.state.regression.estimator.rewards == 7
    exec(compile(blocks[4], "agent.md", "exec"), names)


def test_rewards_learnt_twice_count_twice():
    once, twice = (sb.Agent(sb.Greedy(), dim=1, noise_std=1.0) for _ in range(2))
    decision = once.decide([[1.0]])
    once.learn(decision, 1.0)
    twice.learn_many([decision, decision], [1.0, 1.0])
    assert (once.theta[0], twice.theta[0]) == pytest.approx((1 / 2, 2 / 3))


def test_the_table_of_rules_is_the_codes():
    from solid_bandits.paper.rules import RULES

    rows = [f"| {name} | {rule.words} |" for name, rule in RULES.items()]
    expected = "\n".join(["| rule | says, and how it is judged |", "|---|---|", *rows]) + "\n"
    assert (DOCS / "_tables" / "rules.md").read_text(encoding="utf-8") == expected


def test_the_tables_of_what_is_open_are_the_codes():
    from solid_bandits.paper.report.left_open import LEFT_OPEN, NOT_JUDGED

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


# Modules that load a GPU's compiler have no examples, and need it.
COMPILING_FOR_A_GPU = {f"solid_bandits.gpu.{name}" for name in ("_shapes", "kernel", "wave")}


def has_examples(name):
    path = ROOT / "src" / Path(*name.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ">>>" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", [name for name in MODULES if name not in COMPILING_FOR_A_GPU and has_examples(name)]
)
def test_examples_in_docstrings_run(name):
    """Those of public names themselves are for `test_examples.py`, which runs them in an empty session."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    public = {inspect.getdoc(one) for one in PUBLIC.values()}
    for one in doctest.DocTestFinder().find(importlib.import_module(name)):
        if inspect.cleandoc(one.docstring or "") not in public:
            runner.run(one)
    assert runner.failures == 0
