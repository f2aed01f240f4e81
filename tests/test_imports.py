"""Who may import whom: layers from bottom to top, and packages that load no compiler."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import solid_bandits

ROOT = Path(solid_bandits.__file__).parent

# From the bottom to the top: a module imports from its own layer's package and from the layers below. A name stands
# for a module or for a package with all that is in it; of two that fit, the longer one counts.
LAYERS = [
    [
        "_internal.lazy",
        "_internal.types",
        "_internal.sources",
        "_internal.numba_private",
        "_internal.signals",
        "_internal.waiting",
        "_internal.extras",
        "_internal.tables",
    ],
    ["_internal.checks", "_internal.wording"],
    ["_internal.decoding"],
    ["_internal.files", "_internal.kernel_cache", "_internal.parameters", "_internal.calls"],
    ["statistics", "_internal.compiling", "simulation.results_format", "simulation.table_format"],
    ["_internal.bar", "_internal.dispatch", "simulation.results", "simulation.summary", "simulation.workers"],
    ["core.randomness", "core.setting", "core.decision", "core.batch", "core.ids_and_times"],
    ["features"],
    ["estimation.linalg", "estimation.confidence", "logs"],
    ["planning.ball", "planning.closest", "planning.pruned", "core.problem"],
    ["planning", "estimation", "problems", "bounds"],
    ["policies"],
    ["extend", "identification"],
    [
        "core.agent_file",
        "core.export",
        "core.loop",
        "core.agent_kernels",
        "core.at_work",
        "core.held",
        "core.offer",
        "core.spread",
    ],
    ["gpu", "streams"],
    ["core.agent", "simulation"],
    ["live"],
    ["errors"],
    ["client.calls"],
    ["client"],
    ["ope"],
    ["report"],
    ["paper"],
    ["service"],
    ["cli"],
    ["__main__"],
]
LAYER_OF = {name: place for place, layer in enumerate(LAYERS) for name in layer}

# What shows results and what solves the lower bound, without what plays.
LIGHT = ["statistics", "report", "bounds", "features", "logs", "client"]
LIGHT_MODULES = ["simulation.results", "paper.names", "paper.loading", "paper.report.directory"]
COMPILED = ["bounds.theorems"]  # the radius of the theorems is


def modules():
    """Dotted name below the package -> file."""
    for path in sorted(ROOT.rglob("*.py")):
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        if parts:  # the package's own __init__ names the homes of what it loads on first use
            yield ".".join(parts), path


def imports(path):
    """Dotted names below the package that a file imports, also inside functions, but not for type checkers only."""
    found = []

    def visit(node):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for other in node.orelse:
                visit(other)
            return
        if isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            # A name may be a module of the package that it is imported from.
            found.extend(f"{node.module}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    inside = [name.removeprefix("solid_bandits.") for name in found if name.startswith("solid_bandits.")]
    return [name for name in inside if not name.startswith("__version__")]


def layer_of(name):
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        found = LAYER_OF.get(".".join(parts[:length]))
        if found is not None:
            return found
    raise AssertionError(f"{name} is in no layer; give it a place in LAYERS")


def test_every_module_has_a_layer_and_no_import_goes_up():
    upward = [
        f"{name} imports {other}"
        for name, path in modules()
        for other in imports(path)
        if layer_of(other) > layer_of(name)
    ]
    assert upward == []


def test_modules_of_a_layer_do_not_import_each_other():
    sideways = [
        f"{name} imports {other}"
        for name, path in modules()
        for other in imports(path)
        if layer_of(other) == layer_of(name) and other.split(".")[0] != name.split(".")[0]
    ]
    assert sideways == []


def light_modules():
    names = [name for name, _ in modules()]
    return [name for name in names if name.split(".")[0] in LIGHT and name not in COMPILED] + LIGHT_MODULES


def test_the_report_and_the_bound_load_no_compiler():
    """In a fresh process; the first module that loads one is named."""
    names = light_modules()
    assert len(names) > 25
    script = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module('solid_bandits.' + name)\n"
        "    for heavy in ('numba', 'llvmlite', 'joblib'):\n"
        "        assert heavy not in sys.modules, f'{name} loads {heavy}'\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, *names], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_the_lower_bound_is_solved_without_a_compiler():
    script = (
        "import sys\n"
        "import solid_bandits as sb\n"
        "for problem in (sb.problems.toy(), sb.Problem([[[1, 0], [0, 1]]], [1, 0.5], theta_bound=2)):\n"
        "    sb.bounds.lower_bound(problem)\n"
        "    sb.bounds.lower_bound_at(problem, 2 * sb.bounds.pure_exploration(problem).upper)\n"
        "assert not {'numba', 'llvmlite', 'joblib'} & set(sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


FIRST_DECISION = """
import sys
import numba
before = set(sys.modules)
import solid_bandits as sb
sb.{call}
from solid_bandits._internal.compiling import Kernel
ours = [module for name, module in sys.modules.items() if name.startswith("solid_bandits")]
values = [one for module in ours for one in vars(module).values()]
print(*(one.__name__ for one in values if isinstance(one, Kernel) and one._made))
print(*(set(sys.modules) - before))
"""


@pytest.mark.parametrize(
    ("call", "rooms"),
    [
        ("Agent(dim=2).decide([[1.0, 0.0], [0.0, 1.0]])", {"core", "estimation", "policies"}),
        (
            "Bandit(dim=2).decide([[1.0, 0.0], [0.0, 1.0]])",
            {"core", "estimation", "policies", "features", "live"},
        ),
        (
            "Bandit(arms=['tea', 'milk'], context=['age']).decide({'age': 34})",
            {"core", "estimation", "policies", "features", "live"},
        ),
    ],
)
def test_a_first_decision_loads_what_it_needs_and_nothing_else(call, rooms, tmp_path, monkeypatch):
    """Where the compiled code is on disk: no tables, stores, other policies or rules for compiling."""
    monkeypatch.setenv("SOLID_BANDITS_CACHE", str(tmp_path))
    command = [sys.executable, "-c", FIRST_DECISION.format(call=call)]
    first, second = (subprocess.run(command, capture_output=True, text=True) for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    typed, loaded = (line.split() for line in second.stdout.splitlines())
    assert typed == []
    assert len(first.stdout.splitlines()[0].split()) > 20
    others = {name.split(".")[0] for name in loaded} - sys.stdlib_module_names
    assert others <= {"solid_bandits", "numba", "numpy", "msgspec", "typing_extensions"}
    assert not {"sqlite3", "ssl", "email.parser", "unittest", "asyncio"} & {*loaded}
    private = {"numba.core.typing.bufproto", "numba.experimental.structref"}
    assert {name for name in loaded if name.startswith("numba.")} <= private
    assert {name for name in loaded if name.startswith("numpy.")} <= {
        "numpy.typing",
        "numpy._typing._add_docstring",
    }
    ours = {name.removeprefix("solid_bandits.") for name in loaded if name.startswith("solid_bandits.")}
    assert {name.split(".")[0] for name in ours} == rooms | {"_internal"}
    homes = {home.rstrip(":") for home in {**solid_bandits._HOMES, **solid_bandits.rivals._HOMES}.values()}
    other = {home for home in homes if home.startswith("policies.")} - {
        f"policies.{name}" for name in ("randucb", "linucb", "epsilon_greedy")
    }
    assert "policies.vids" in other
    assert not ours & (other | {"policies.catalogue"})


def test_the_package_alone_loads_nothing_but_itself():
    script = (
        "import sys\nbefore = set(sys.modules)\nimport solid_bandits\n"
        "print(*{name.split('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["solid_bandits"]


def test_the_root_holds_few_modules():
    assert len(list(ROOT.glob("*.py"))) <= 8


def named_in_words(path):
    """Modules of the package that a file names in text, as functions that load on demand take them."""
    texts = (
        node.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
    )
    return [text.removeprefix("solid_bandits.") for text in texts if str(text).startswith("solid_bandits.")]


def test_only_the_command_line_knows_the_paper_and_the_service():
    known = [
        f"{name} knows {other}"
        for name, path in [*modules(), ("__init__", ROOT / "__init__.py")]
        for other in [*imports(path), *named_in_words(path)]
        for room in {other.split(".")[0]} & {"paper", "service"}
        if name.split(".")[0] not in (room, "cli")
    ]
    assert known == []


def test_the_command_line_loads_the_paper_and_the_service_when_they_are_asked_for():
    script = (
        "import sys, solid_bandits.cli\n"
        "print(*[name for name in sys.modules if name.split('.')[1:2] in (['paper'], ['service']) or name == 'numba'])"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == ""


def test_the_top_has_few_names():
    assert len(solid_bandits.__all__) <= 25


def test_no_file_is_long():
    long = {
        name: count
        for name, path in modules()
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 450
    }
    assert long == {}
