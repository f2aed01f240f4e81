"""What each extra installs: python tests/machines/extras.py WHEEL [EXTRA...], with `uv` on the path.

Each extra alone goes into an empty environment; printed are its size, without compiled Python, and whether the first
lines of README, as far as the extra takes them, run there. Ends with 1 where one does not.
"""

import argparse
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
DECIDES = """
import solid_bandits as sb
bandit = sb.Bandit(arms=["climate", "football", "science"], context=["age", "device"], floor=0.1, store="shop.db")
choice = bandit.decide({"age": 34, "device": "ios"}, event_id="visit-1")
bandit.learn("visit-1", 1.0)
bandit.add_arm("travel", like="science")
print(choice.why)
problem = sb.problems.toy()
assert sb.bounds.lower_bound(problem).value > 0
summary = sb.summarise(problem, [sb.RandUCB()], horizon=100, runs=4, jobs=1)
agent = sb.Agent(dim=2)
agent.learn(agent.decide([[1.0, 0.0], [0.0, 1.0]]), 1.0)
agent.save("agent.json")
"""
SIMULATES = """
results = sb.simulate(problem, [sb.RandUCB(), sb.LinTS()], horizon=200, runs=4, seed=0, jobs=1)
results.compare("RandUCB", "LinTS")
bandit.log()
"""
MORE = {
    "plot": 'results.plot("regret.png", log=True, bound=sb.bounds.lower_bound(problem).value)',
    "report": 'results.report("page.html")',
    "pandas": "results.to_pandas()",
    "cli": "import subprocess, sys; subprocess.run([sys.executable, '-m', 'solid_bandits', 'policies'], check=True)",
    "client": 'sb.client.Client("http://127.0.0.1:1", "key").close()',
    "service": "import solid_bandits.service.app",
    "service-postgres": "import solid_bandits.service.app, psycopg",
    "dask": "import distributed",
    "jester": "import sklearn, pooch, xlrd",
    "gpu": "import numba_cuda",
}
WITHOUT_TABLES = {"", "client", "gpu"}


def size_of(folder):
    """Megabytes of the files that an installation brings."""
    files = (
        one for one in folder.rglob("*") if one.is_file() and not one.is_symlink() and one.suffix != ".pyc"
    )
    return sum(one.stat().st_size for one in files) / 1e6


def tried(wheel, extra, python):
    """The size in MB, and what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "venv"
        subprocess.run(["uv", "venv", "-q", "--python", python, str(venv)], check=True)
        bin_ = venv / ("Scripts" if sys.platform == "win32" else "bin")
        asked = f"{wheel}[{extra}]" if extra else wheel
        subprocess.run(["uv", "pip", "install", "-q", "--python", str(bin_ / "python"), asked], check=True)
        size = size_of(venv)
        script = DECIDES + (SIMULATES if extra not in WITHOUT_TABLES else "") + MORE.get(extra, "") + "\n"
        ended = subprocess.run(
            [str(bin_ / "python"), "-I", "-c", script], cwd=folder, capture_output=True, text=True
        )
        wrong = ended.stderr.strip().splitlines()[-1] if ended.returncode else ""
    return size, wrong


def main():
    """Print a line for each extra."""
    parser = argparse.ArgumentParser()
    parser.add_argument("wheel")
    parser.add_argument(
        "extras", nargs="*", default=["", *(one for one in EXTRAS if one not in ("test", "docs"))]
    )
    parser.add_argument("--python", default=sys.executable)
    arguments = parser.parse_args()
    print("| extra | MB | README's lines |\n|---|---|---|")
    failed = 0
    for extra in arguments.extras:
        size, wrong = tried(arguments.wheel, extra, arguments.python)
        failed += bool(wrong)
        print(f"| {extra or 'none'} | {size:.0f} | {wrong or 'passed'} |", flush=True)
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
