"""The bake-off, as far as it runs without the other libraries: rows, the game, and what its tables say."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata

FOLDER = Path(__file__).parent.parent / "benchmarks" / "bakeoff"
NAMES = ("game", "sets", "table")


@pytest.fixture
def bakeoff():
    with pytest.MonkeyPatch.context() as patch:
        for name in NAMES:  # others have files of these names
            patch.delitem(sys.modules, name, raising=False)
        patch.syspath_prepend(FOLDER)
        yield {name: importlib.import_module(name) for name in NAMES}
        for name in NAMES:
            del sys.modules[name]


def write_set(folder, name, lines):
    path = folder / "data" / "balanced" / "raw"
    path.mkdir(parents=True)
    (path / f"{name}.dat").write_text("\n".join(lines) + "\n")


def test_rows_are_complete_standardised_and_have_a_column_for_each_word(bakeoff, tmp_path, monkeypatch):
    sets = bakeoff["sets"]
    write_set(
        tmp_path, "titanic", ["1.0, red, 7, yes", "2.0, blue, 7, no", "?, red, 7, no", "6.0, green, 7, yes"]
    )
    monkeypatch.setattr(sets, "_inside", lambda package: tmp_path)
    sets.rows_of.cache_clear()
    rows = sets.rows_of("titanic")
    numbers = np.array([1.0, 2.0, 6.0])  # a row is missing, and 7 is constant
    colours = [np.array(place) for place in ([0, 1, 0], [0, 0, 1], [1, 0, 0])]  # blue, green, red
    expected = [np.ones(3), *((one - one.mean()) / one.std() for one in (numbers, *colours))]
    np.testing.assert_allclose(rows.X, np.column_stack(expected))
    assert rows.right.tolist() == [1, 0, 1]
    assert rows.n_arms == 2
    X, right = rows.shuffled(3)
    order = np.random.default_rng([2024, 3]).permutation(3)
    np.testing.assert_array_equal(X, rows.X[order])
    np.testing.assert_array_equal(right, rows.right[order])
    sets.rows_of.cache_clear()


def test_every_set_is_in_one_group_and_a_third_of_the_others_is_reserved(bakeoff):
    sets = bakeoff["sets"]
    assert len(set(sets.NAMES)) == len(sets.NAMES) == 40
    plan = (FOLDER / "plan.md").read_text()
    reserved = plan.split("never to be used for it**: ")[1].split(".\n")[0].split(", ")
    others = set(sets.NAMES) - set(sets.BALANCED)
    assert set(reserved) <= others
    assert len(reserved) >= round(len(others) / 3)


def test_errors_are_counted_and_rewards_are_told(bakeoff):
    class Turns:
        """Chooses 0, 1, 0, 1, ...; keeps what it is told."""

        def __init__(self):
            self.told = []

        def act(self, x):
            return len(self.told) % 2

        def learn(self, x, arm, reward):
            self.told.append((x[0], arm, reward))

    player, X = Turns(), np.arange(1200.0)[:, None]
    right = np.random.default_rng(0).integers(2, size=1200)
    line = bakeoff["game"].play(player, X, right)
    hits = np.arange(1200) % 2 == right
    assert line["loss"] == pytest.approx(1 - hits.mean())
    assert line["errors"] == {str(mark): int((~hits[:mark]).sum()) for mark in (500, 1000)}
    assert player.told == [(float(t), t % 2, float(hits[t])) for t in range(1200)]


def line_of(player, name, shuffle, loss):
    return {
        "player": player, "set": name, "shuffle": shuffle, "rounds": 4000, "loss": loss,
        "errors": {"2000": round(4000 * loss)}, "seconds": 1e-6,
    }  # fmt: skip


def test_a_table_has_what_everybody_played(bakeoff):
    table = bakeoff["table"]
    lines = [line_of(p, n, s, 0.1) for p in "ab" for n in ("ring", "letter") for s in (0, 1)]
    cells = table.cells_of(
        [one for one in lines if (one["player"], one["set"], one["shuffle"]) != ("b", "ring", 1)]
    )
    assert table.complete(cells, ["a", "b"]) == ["letter", "ring"]
    assert table.complete(cells, ["b"], least=1) == ["letter"]
    assert table.shuffles_of(cells, ["a", "b"], ["letter"]) == [0, 1]
    assert table.shuffles_of(cells, ["a", "b"], ["letter", "ring"]) == [0]
    assert table.loss_of(lines[0], None) == 0.1
    assert table.loss_of(lines[0], 2000) == 0.2


def test_ranks_and_normalised_losses(bakeoff, monkeypatch):
    table, sets = bakeoff["table"], bakeoff["sets"]
    losses = np.random.default_rng(1).integers(1, 5, size=(6, 7, 3)) / 10
    np.testing.assert_array_equal(table.ranks_of(losses), rankdata(losses, axis=0))
    monkeypatch.setattr(sets, "rows_of", lambda name: sets.Rows(np.zeros((1, 1)), np.zeros(1), int(name)))
    losses = np.array(
        [[[0.2, 0.4], [0.1, 0.1]], [[0.5, 0.5], [0.75, 0.75]]]
    )  # two players, sets of 2 and 4 classes
    np.testing.assert_allclose(table.normalised(losses, ["2", "4"]), [[0, 0], [1, 1]])
    np.testing.assert_allclose(table.normalised((losses + losses[0]) / 2, ["2", "4"]), [[0, 0], [0.5, 0.5]])
    assert table.interval(np.full(9, 0.3)) == pytest.approx([0.3, 0.3])
