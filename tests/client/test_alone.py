"""The client as a distribution of its own: its files alone, without NumPy, decide and learn."""

import ast
import json
import shutil
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "client/pyproject.toml").read_text(encoding="utf-8"))
INCLUDED = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]

SCRIPT = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numpy", "numba", "scipy", "polars", "msgspec"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
import solid_bandits as sb
assert sb.__file__.startswith(sys.argv[2]), sb.__file__
with sb.client.Client(sys.argv[1], "key") as client:
    decision = client.decide("news", [[1, 0.5], (0.0, 1)], arms=("tea", "milk"), event_id="a")
    print(decision.arm, decision.probability, decision.probabilities)
    print(client.learn("news", "a", True).status)
    for bad in ([], [[]], [[1.0], [1.0, 2.0]], [["x"]], [[float("nan")]], "ab", 3):
        try:
            client.decide("news", bad)
        except ValueError as error:
            assert str(error).startswith("features must be"), error
        else:
            raise AssertionError(bad)
    for ask in (lambda: sb.Agent, lambda: client.log("news")):
        try:
            ask()
        except ImportError as error:
            print(error)
"""


@pytest.fixture
def service():
    """Answers like the service's; `.bodies` has what was asked."""
    bodies = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            if self.path.endswith("decisions"):
                content = {
                    "event_id": "a", "arm": "milk", "arms": ["tea", "milk"], "probabilities": [0.25, 0.75],
                    "explored": False, "again": False,
                }  # fmt: skip
            else:
                content = {"rewards": [{"event_id": "a", "status": "learned", "reward": 1.0, "message": ""}]}
            self.answer(json.dumps(content).encode())

        def do_GET(self):
            self.answer(b"not read")

        def answer(self, content):
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.bodies = bodies
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_its_files_alone_decide_and_learn_without_numpy(tmp_path, service):
    for source, target in INCLUDED.items():
        found = ROOT / "client" / source
        place = tmp_path / target
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(found, place) if found.is_dir() else shutil.copy(found, place)
    url = f"http://127.0.0.1:{service.server_port}"
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, url, str(tmp_path)],
        capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path), "PATH": ""}, timeout=120,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == [
        "milk 0.75 (0.25, 0.75)",
        "learned",
        "Agent is not in the client alone; run: pip install solid-bandits",
        "the log of a model needs polars, which is not installed; run: pip install 'solid-bandits[tables]'",
    ]
    asked = service.bodies[0]
    assert (asked["features"], asked["arms"]) == ([[1.0, 0.5], [0.0, 1.0]], ["tea", "milk"])


def test_it_has_all_that_its_modules_import_and_nothing_else():
    """What is imported for type checkers alone is not needed."""
    files = {target for target in INCLUDED.values() if target.endswith(".py")}
    files |= {
        f"solid_bandits/client/{path.name}" for path in (ROOT / "src/solid_bandits/client").glob("*.py")
    }
    wanted = {"solid_bandits/__init__.py", "solid_bandits/client/__init__.py", "solid_bandits/client/http.py"}
    waiting = sorted(wanted)
    while waiting:
        tree = ast.parse((ROOT / "src" / waiting.pop()).read_text(encoding="utf-8"))
        guarded = {
            id(one) for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for one in ast.walk(node)
        }  # fmt: skip
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.ImportFrom)
                and id(node) not in guarded
                and node.module.startswith("solid_bandits")
            ):
                for name in (
                    node.module.rpartition(".")[0],
                    node.module,
                    *(f"{node.module}.{alias.name}" for alias in node.names),
                ):
                    path = ROOT / "src" / name.replace(".", "/")
                    for found in (path.with_suffix(".py"), path / "__init__.py"):
                        file = found.relative_to(ROOT / "src").as_posix()
                        if found.exists() and file not in wanted:
                            wanted.add(file)
                            waiting.append(file)
    assert wanted == files


def test_it_asks_for_what_the_extra_asks_for():
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = whole["optional-dependencies"]
    assert PROJECT["project"]["dependencies"] == extras["client"]
    assert PROJECT["project"]["optional-dependencies"]["tables"] == extras["tables"]
    assert PROJECT["project"]["requires-python"] == whole["requires-python"]
