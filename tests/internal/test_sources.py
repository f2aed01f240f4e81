"""What a module reaches: every file, constant and library that compiled code may have been made of."""

import ast
import importlib
import os
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from textwrap import dedent

import pytest

import solid_bandits
import solid_bandits.core.agent
import solid_bandits.policies.catalogue  # noqa: F401  # every kernel is there to be looked at
from solid_bandits._internal import sources
from solid_bandits._internal.sources import package_hash, stamp

_numbers = count()


class Project:
    """Modules in a folder, imported and stamped as a new process would."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.name = f"project{next(_numbers)}"
        self.monkeypatch = monkeypatch
        monkeypatch.syspath_prepend(folder)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(self, path, text=""):
        file = self.folder / self.name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text), encoding="utf-8")

    def stamp(self, module="mine"):
        self.monkeypatch.setattr(sources, "STARTED", time.time() + 60)
        for name in [name for name in sys.modules if name.split(".")[0] == self.name]:
            del sys.modules[name]
        importlib.invalidate_caches()
        importlib.import_module(f"{self.name}.{module}")
        return stamp(f"{self.name}.{module}")


@pytest.fixture
def project(tmp_path, monkeypatch):
    made = Project(tmp_path, monkeypatch)
    made.write("__init__.py")
    yield made
    for name in [name for name in sys.modules if name.split(".")[0] == made.name]:
        del sys.modules[name]


WAYS = {
    "relative": "from . import helper",
    "its names": "from .helper import value",
    "all its names": "from .helper import *",
    "absolute": "import NAME.helper",
    "renamed": "import NAME.helper as other",
    "one of two": "import sys, NAME.helper",
    "after a semicolon": "import sys; import NAME.helper",
    "in brackets": "from . import (\n    helper,\n)",
    "with a comment": "from . import (  # one, two\n    helper, # three, four\n)",
    "on two lines": "from . \\\n    import helper",
    "where it may fail": "try: from . import helper\nexcept ImportError: pass",
    "in a function": "def load():\n    from . import helper\n    return helper\nkept = [load()]",
    "by a call": "import importlib\nother = importlib.import_module('NAME.helper')",
    "by a call, its function": "import importlib\nf = importlib.import_module('NAME.helper').f",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_helper_is_reached_however_it_is_imported(project, way):
    project.write("mine.py", WAYS[way].replace("NAME", project.name))
    project.write("helper.py", "from .below import deeper\nvalue = 1\ndef f(): return 1\n")
    project.write("below/__init__.py")
    project.write("below/deeper.py", "from .. import last\n")
    project.write("last.py", "# 1")
    seen = [project.stamp(), project.stamp()]
    assert seen[0] == seen[1] is not None
    for path, text in (
        ("helper.py", "from .below import deeper\nvalue = 1\ndef f(): return 2\n"),
        ("last.py", "# 2"),
        ("below/__init__.py", "# changed"),
        ("__init__.py", "# changed"),
    ):
        project.write(path, text)
        seen.append(project.stamp())
    assert len({*seen}) == 5


def test_what_is_not_reached_does_not_count(project):
    project.write("mine.py", "from . import helper")
    project.write("helper.py")
    project.write("other.py", "1")
    before = project.stamp()
    importlib.import_module(f"{project.name}.other")
    project.write("other.py", "2")
    assert project.stamp() == before


@pytest.mark.parametrize(
    "value",
    [
        "number",
        "1.5 * number",
        "(1, (number, 2))",
        "str(number)",
        "np.array([1.0, number])",
        "np.float32(number)",
        "make(number)",
        "make(make(number))",
    ],
)
def test_a_constant_counts_that_the_text_does_not_show(project, monkeypatch, value):
    text = """
        import os
        import numpy as np
        def make(one):
            def inner():
                return one
            return inner
        kept = (lambda number: VALUE)(int(os.environ["NUMBER"]))
    """
    project.write("mine.py", "from . import helper")
    project.write("helper.py", dedent(text).replace("VALUE", value))
    seen = []
    for number in "112":
        monkeypatch.setenv("NUMBER", number)
        seen.append(project.stamp())
    assert seen[0] == seen[1] != seen[2]


def test_a_library_counts_by_the_time_of_its_files(project, tmp_path, monkeypatch):
    """As after an upgrade; its own helpers are not looked at."""
    place = tmp_path / "site-packages"
    place.mkdir()
    library = place / f"library_of_{project.name}.py"
    library.write_text("one = 1")
    monkeypatch.syspath_prepend(place)
    project.write("mine.py", f"import {library.stem}")
    before = project.stamp()
    assert project.stamp() == before is not None
    os.utime(library, (1e9, 1e9))
    assert project.stamp() != before
    del sys.modules[library.stem]


def test_a_users_module_goes_stale_with_this_package(project, monkeypatch, tmp_path):
    project.write("mine.py", "import solid_bandits as sb\nfrom solid_bandits.extend import dot")
    before = project.stamp()
    assert before is not None
    root = tmp_path / "package"
    (root / "linalg").mkdir(parents=True)
    (root / "linalg" / "vectors.py").write_text("")
    monkeypatch.setattr(sources, "ROOT", root)
    assert project.stamp() != before


def test_what_changed_after_the_process_began_has_no_stamp(project):
    project.write("mine.py", "from . import helper")
    project.write("helper.py")
    assert project.stamp() is not None
    for attribute, begun in (("st_mtime", time.time() - 60), ("st_ctime", time.time() - 60)):
        project.monkeypatch.setattr(sources, "STARTED", begun)
        assert stamp(f"{project.name}.mine") is None, attribute
        # A copy of an older file: the time it was put there is not that of its text.
        for path in (project.folder / project.name).iterdir():
            if path.is_file():
                os.utime(path, (1e9, 1e9))


def test_there_is_no_stamp_without_a_file(project, monkeypatch):
    assert stamp("__main__") is None
    project.write(
        "mine.py", "import sys\nother = type(sys)('made_of_nothing')\nsys.modules['made_of_nothing'] = other"
    )
    monkeypatch.setitem(sys.modules, "made_of_nothing", None)
    assert project.stamp() is None


def test_a_file_that_is_no_longer_python_has_no_stamp(project):
    project.write("mine.py", "one = 1")
    assert project.stamp() is not None
    project.write("mine.py", "one =")
    assert stamp(f"{project.name}.mine") is None


def test_the_package_is_reached_by_what_its_files_say_and_not_by_what_is_loaded():
    script = (
        "from solid_bandits._internal.sources import stamp\nprint(stamp('solid_bandits.policies.greedy'))"
    )
    alone = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert alone.stdout.split() == [stamp("solid_bandits.policies.greedy")]


def reached(module):
    return {line.split()[0] for line in sources._package_lines(module)}


def test_imports_of_the_package_are_read_as_python_reads_them():
    """Those at the top level; what is read by a pattern may name more, but no other modules."""
    seen = 0
    for _, path in sources._package_files():
        found = [
            name
            for node in ast.parse(Path(path).read_bytes()).body
            if isinstance(node, ast.Import | ast.ImportFrom)
            for home in (
                [node.module] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
            )
            for name in (home, *(f"{home}.{one.name}" for one in node.names))
        ]
        modules, expected = (
            {
                name
                for name in names
                if sources._package_file(str(sources.ROOT), name) and sources._is_ours(name)
            }
            for names in (sources._package_imports(path, ()), found)
        )
        assert modules == expected, path
        seen += len(modules)
    assert seen > 1_000


def test_every_compiled_function_of_the_package_that_a_module_uses_is_reached():
    seen = 0
    for name, module in list(sys.modules.items()):
        if name.startswith("solid_bandits."):
            found = reached(name)
            for value in vars(module).values():
                if hasattr(value, "py_func"):
                    assert value.__module__ in found, f"{name} uses {value}"
                    seen += value.__module__ != name
    assert seen > 100


def test_a_change_counts_where_it_may_matter_and_nowhere_else():
    """So that work on the report does not mean compiling again."""
    found = reached("solid_bandits.policies.solid.algorithm")
    for needed in (
        "_internal.compiling",
        "_internal.numba_private",
        "estimation.linalg.triangular",
        "estimation.estimator",
        "policies.solid.state",
    ):
        assert f"solid_bandits.{needed}" in found
    for name in found | reached("solid_bandits.core.loop") | reached("solid_bandits.core.agent"):
        assert name.split(".")[1] not in ("report", "cli", "paper", "simulation", "bounds")


def test_the_hash_of_the_package_is_of_all_its_files(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    (tmp_path / "below").mkdir()
    seen = set()
    for text in ("", "1"):
        (tmp_path / "below" / "one.py").write_text(text)
        seen.add(package_hash.__wrapped__())
    (tmp_path / "below" / "one.py").rename(tmp_path / "one.py")
    seen.add(package_hash.__wrapped__())
    assert len(seen) == 3


def test_a_process_knows_when_it_began():
    script = (
        "import time\ntime.sleep(0.3)\nnow = time.time()\n"
        "from solid_bandits._internal import sources\nprint(sources.STARTED < now - 0.25)"
    )
    before = time.time()
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    if os.path.exists("/proc/self/stat"):
        assert told.stdout.split() == ["True"]
    assert before > sources.STARTED
