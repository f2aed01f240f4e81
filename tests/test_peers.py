"""The comparison with other libraries, as far as it runs without them."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np

PEERS = Path(__file__).parent.parent / "benchmarks" / "peers"


def test_one_problem_has_both_forms(monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))
    game = importlib.import_module("game").make_game(n_contexts=20, n_arms=3, dim=4, steps=10)
    # Linear in x for each arm: twenty contexts are fitted by four coefficients.
    coefficients = np.linalg.lstsq(game.vectors, game.problem.means, rcond=None)[0]
    np.testing.assert_allclose(game.vectors @ coefficients, game.problem.means, atol=1e-12)
    assert np.allclose(np.linalg.norm(game.problem.features, axis=2), 1)


def test_measures_what_is_there_and_says_what_is_not(tmp_path):
    table, figure = tmp_path / "peers.md", tmp_path / "peers.png"
    command = [sys.executable, PEERS, "--rounds", "1", "--steps", "300", "--seconds", "0"]
    command += ["--only", "solid-bandits", "numpy", "river", "--table", table, "--figure", figure]
    subprocess.run(command, check=True, capture_output=True, text=True)
    text = table.read_text()
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.startswith("| ")]
    if importlib.util.find_spec("river") is None:
        assert [row[2] for row in rows if row[1] == "river"] == ["not measured: No module named 'river'"] * 2
    regrets = {row[2]: float(row[8]) for row in rows if row[1].startswith(("solid-bandits", "numpy"))}
    assert set(regrets) >= {
        "LinUCB, from Python",
        "LinTS, in the loop",
        "SOLID, from Python",
        "LinTS in 30 lines",
    }
    assert max(regrets.values()) < 79  # of uniform arms, at the size where that is less
    assert figure.stat().st_size > 0
