"""Who may import whom: layers from bottom to top, and packages that load no compiler."""

import ast
import subprocess
import sys
from pathlib import Path

import solid_bandits

ROOT = Path(solid_bandits.__file__).parent

# From the bottom to the top: a module imports from its own layer's package and from the layers below. A name stands
# for a module or for a package with all that is in it; of two that fit, the longer one counts.
LAYERS = [
    ["_types", "_sources", "_inlined", "_waiting", "_extras"],
    ["_check", "_words"],
    ["_files", "_cache"],
    ["statistics", "_compile", "results_format"],
    ["_bar", "_dispatch", "results", "summary", "stream", "workers", "setting", "decision"],
    ["linalg", "confidence", "logs"],
    ["alternatives", "problem"],
    ["allocation", "estimation", "problems", "bounds"],
    ["kernels", "theorems"],
    ["policies"],
    ["agent_file", "loop", "agent_kernels", "offer"],
    ["gpu", "streams"],
    ["agent", "simulation"],
    ["live"],
    ["client_calls"],
    ["client"],
    ["ope"],
    ["experiments"],
    ["report"],
    ["service"],
    ["cli"],
    ["__main__"],
]
LAYER_OF = {name: place for place, layer in enumerate(LAYERS) for name in layer}

# What shows results and what solves the lower bound, without what plays.
LIGHT = ["statistics", "report", "bounds", "logs"]
LIGHT_MODULES = ["client", "results", "experiments.names", "experiments.outcomes"]


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
    return [name for name in names if name.split(".")[0] in LIGHT] + LIGHT_MODULES


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
        "    sb.lower_bound(problem)\n"
        "    sb.lower_bound_at(problem, 2 * sb.pure_exploration(problem).upper)\n"
        "assert not {'numba', 'llvmlite', 'joblib'} & set(sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_no_file_is_long():
    long = {
        name: count
        for name, path in modules()
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 450
    }
    assert long == {}
