"""Hostile files: TOML, JSON, npz, zip and Parquet files that are damaged, forged, enormous or maliciously named.

Each must be refused in one line, or read correctly: no traceback, no file outside the directory, no gigabytes.

    python attacks/files.py --count 2000 --seed 0
"""

import argparse
import contextlib
import copy
import hashlib
import io
import json
import os
import pickle
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from counted import show

import solid_bandits as sb
from solid_bandits import cli
from solid_bandits.paper import jester
from solid_bandits.paper.jester import data

MOST_SECONDS = 60
MOST_MEMORY = 1_000_000
"""Largest growth of memory, in kB, that a case may cause."""

TOML = """title = "Small"
horizon = 20
runs = 4

[[problem]]
label = "even"
kind = "toy"

[[policy]]
name = "linucb"

[[policy]]
name = "greedy"

[[claim]]
text = "LinUCB beats Greedy."
source = "ours"
rule = "less"
policies = ["LinUCB"]
against = ["Greedy"]
"""

WRONG: list[Any] = [
    *(None, True, 0, -1, 1.5, 10**40, 2**53 + 1, float("nan"), "", "x", "../../x", [], [1], [[]], ["x"], {}),
    *({"x": 1}, {"x": {"x": []}}, [None], "\ud800", "a\0b", "1", [[1.0]], {"even": "../.."}),
]


class Case(NamedTuple):
    """An attack, and whether it must be refused or may also be accepted."""

    name: str
    attack: Callable[[], object]
    refused: bool = True


class Place:
    """A folder to attack in, with small results of `compare` and `reproduce` to be copied and corrupted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self.toml = folder / "small.toml"
        self.toml.write_text(TOML, encoding="utf-8")
        command("reproduce", self.toml, "--out", folder / "reproduced", "--jobs", 1)
        command(
            *("compare", "toy", "--policy", "solid", "--policy", "linucb", "--horizon", 20, "--runs", 2),
            *("--jobs", 1, "--diagnostics", "--out", folder / "compared"),
        )

    def new(self, ending: str = "") -> Path:
        """Return an unused name."""
        self.count += 1
        home = self.folder / f"case{self.count}" / "deep" / "er"
        home.mkdir(parents=True)
        return home / f"it{ending}"

    def copied(self, what: str) -> Path:
        """Return a copy of one of the results."""
        path = self.new()
        shutil.copytree(self.folder / what, path)
        return path


def command(*arguments: object) -> None:
    """Run a command in this process; if it fails with status 2, raise a ValueError with its one line."""
    before, sys.argv = sys.argv, ["solid-bandits", *map(str, arguments)]
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            cli.main()
    except SystemExit as ended:
        lines = [line for line in errors.getvalue().splitlines() if line.startswith("solid-bandits: error: ")]
        if ended.code == 2 and len(lines) == 1 and errors.getvalue().rstrip().endswith(lines[0]):
            raise ValueError(lines[0]) from None
        if ended.code not in (0, None):
            raise RuntimeError(f"status {ended.code}: {errors.getvalue()}") from None
    finally:
        sys.argv = before


# TOML


def toml_cases(place: Place) -> Iterator[Case]:
    """Yield a user's experiment files."""

    def read(text: str | bytes, name: str = "mine.toml") -> Callable[[], None]:
        def attack() -> None:
            path = place.new().parent / name
            path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
            before = tree(path.parent)
            try:
                command("reproduce", path, "--out", path.parent / "out", "--jobs", 1)
            except ValueError as error:
                if "Traceback" in str(error) or tree(path.parent) != before:
                    raise RuntimeError(f"{error}; files {tree(path.parent) ^ before}") from None
                raise

        return attack

    def changed(old: str, new: str) -> Callable[[], None]:
        assert old in TOML
        return read(TOML.replace(old, new, 1))

    texts = {
        "problem is a list of numbers": changed("[[problem]]", "problem = [1, 2]\n[[other]]"),
        "problem = [1, 2] at the top": read("problem = [1, 2]\npolicy = [3]\nhorizon = 5\nruns = 1\n"),
        "horizon 10^29": changed("horizon = 20", f"horizon = {10**29}"),
        "horizon 10^5000": changed("horizon = 20", f"horizon = {'1' + '0' * 5000}"),
        "horizon -1": changed("horizon = 20", "horizon = -1"),
        "horizon 1.5": changed("horizon = 20", "horizon = 1.5"),
        "horizon true": changed("horizon = 20", "horizon = true"),
        "horizon nan": changed("horizon = 20", "horizon = nan"),
        "runs 10^29": changed("runs = 4", f"runs = {10**29}"),
        "runs text": changed("runs = 4", 'runs = "4"'),
        "seed negative": changed("runs = 4", "runs = 4\nseed = -4"),
        "seed 10^29": changed("runs = 4", f"runs = 4\nseed = {10**29}"),
        "ridge is text": changed('name = "linucb"', 'name = "linucb"\nparameters = { ridge = "1.0" }'),
        "ridge is a list": changed('name = "linucb"', 'name = "linucb"\nparameters = { ridge = [1.0] }'),
        "ridge is a date": changed('name = "linucb"', 'name = "linucb"\nparameters = { ridge = 1979-05-27 }'),
        "ridge is inf": changed('name = "linucb"', 'name = "linucb"\nparameters = { ridge = inf }'),
        "ridge is 10^400": changed(
            'name = "linucb"', f'name = "linucb"\nparameters = {{ ridge = {10**400} }}'
        ),
        "unknown parameter": changed('name = "linucb"', 'name = "linucb"\nparameters = { self = 1 }'),
        "unknown policy": changed('name = "linucb"', 'name = "os.system"'),
        "policy by a path": changed('name = "linucb"', 'name = "../linucb"'),
        "policy by a call": changed('name = "linucb"', "name = \"linucb(ridge=__import__('os'))\""),
        "10^9 arms": changed('kind = "toy"', 'kind = "random"\nparameters = { n_arms = 1_000_000_000 }'),
        "10^30 arms": changed('kind = "toy"', f'kind = "random"\nparameters = {{ n_arms = {10**30} }}'),
        "10^5 everything": changed(
            'kind = "toy"', 'kind = "random"\nparameters = { n_arms = 100_000, dim = 100_000 }'
        ),
        "arms text": changed('kind = "toy"', 'kind = "random"\nparameters = { n_arms = "8" }'),
        "unknown problem parameter": changed('kind = "toy"', 'kind = "toy"\nparameters = { nonsense = 1 }'),
        "toy with a list": changed('kind = "toy"', 'kind = "toy"\nparameters = { xi = [0.1] }'),
        "kind and file": changed('kind = "toy"', 'kind = "toy"\nfile = "x.npz"'),
        "a file that is not there": changed('kind = "toy"', 'file = "../../../../etc/passwd"'),
        "a file that has no end": changed('kind = "toy"', 'file = "/dev/zero"'),
        "a file with a zero byte": changed('kind = "toy"', 'file = "a\\u0000b.npz"'),
        "jester from a folder": changed('kind = "toy"', 'kind = "jester"\nparameters = { source = "/proc" }'),
        "jester from a device": changed(
            'kind = "toy"', 'kind = "jester"\nparameters = { source = "/dev/zero" }'
        ),
        "label is a number": changed('label = "even"', "label = 3"),
        "label of 10,000 letters": changed('label = "even"', f'label = "{"a" * 10_000}"'),
        "label is a device": changed('label = "even"', 'label = "nul"'),
        "5,000 brackets": read("x = " + "[" * 5000 + "]" * 5000),
        "5,000 brackets, never closed": read("horizon = 3\nx = " + "[" * 5000),
        "5,000 tables in tables": read("x = " + "{a=" * 5000 + "1" + "}" * 5000),
        "a key of 5,000 dots": read("title." + ".".join("a" * 5000) + " = 1\n" + TOML.split("\n", 1)[1]),
        "a table of 5,000 dots": read(TOML + "[quick." + ".".join("a" * 5000) + "]\n"),
        "a megabyte": read("# " + "x" * 10**6),
        "nothing": read(""),
        "zero bytes": read(b"\0" * 100),
        "not UTF-8": read(b'title = "\xff\xfe"'),
        "UTF-16": read(TOML.encode("utf-16")),
        "binary": read(bytes(range(256)) * 10),
        "twice the same key": changed("horizon = 20", "horizon = 20\nhorizon = 21"),
        "claim of nobody": changed('policies = ["LinUCB"]', 'policies = ["LinUCBB"]'),
        "claim with numbers": changed('policies = ["LinUCB"]', "policies = [1]"),
        "claim with tables": changed('policies = ["LinUCB"]', "policies = [{a = 1}]"),
        "claim with a rule of its own": changed('rule = "less"', 'rule = "__class__"'),
        "claim with at = nan": changed('rule = "less"', 'rule = "less"\nat = nan'),
        "claim with at = -1": changed('rule = "less"', 'rule = "less"\nat = -1'),
        "claim with a metric of its own": changed('rule = "less"', 'rule = "less"\nmetric = "__init__"'),
        "unknown key": changed("horizon = 20", "horizn = 20"),
        "no policy": read(TOML.split("[[policy]]")[0]),
        "problems is a list of numbers": changed('name = "greedy"', 'name = "greedy"\nproblems = [1]'),
        "quick is a number": changed("runs = 4", "runs = 4\nquick = 3"),
        "quick with text": changed("runs = 4", 'runs = 4\nquick = { runs = "x" }'),
    }
    yield from (Case(f"toml: {name}", attack) for name, attack in texts.items())
    for name in (
        *(
            "report.html",
            "report.md",
            "figures",
            "all",
            "toy",
            "invocations.json",
            "manifest.json",
            ".lock",
            "...",
        ),
        *(
            "REPORT.HTML",
            "Figures",
            "nul",
            "con.x",
            "a\\b",
            "a:b",
            "a\nb",
            " a",
            "a ",
            "a.",
            ".hidden",
            "x" * 230,
        ),
    ):
        yield Case(f"toml: called {name[:20]!r}", read(TOML, f"{name}.toml"))
    for name, text in {
        "brackets in labels": TOML.replace('label = "even"', 'label = "[/x] [bold]"').replace(
            "LinUCB", "[/x]"
        ),
        "a path as a label": TOML.replace('label = "even"', 'label = "../../x"'),
        "labels that come to the same": TOML.replace(
            'kind = "toy"', 'kind = "toy"\n[[problem]]\nlabel = "even!"\nkind = "toy"'
        ),
    }.items():
        text = text.replace('name = "linucb"', 'name = "linucb"\nlabel = "[/x]"') if "[/x]" in text else text
        yield Case(f"toml: {name}", read(text), refused=False)


def tree(folder: Path) -> set[str]:
    """Return the names of all files below."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


# JSON


def paths_in(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value."""
    yield path
    below = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else ()
    )
    for key, value in below:
        yield from paths_in(value, (*path, key))


def replaced(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return the content with one value replaced, or removed if the value is `...`."""
    if not path:
        return value
    result = copy.deepcopy(content)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return result


def outside(place: Place, home: Path) -> set[str]:
    """Return the names of the files around a case's directory."""
    return {str(path) for path in home.parents[2].rglob("*") if home not in (path, *path.parents)}


def reported(place: Place, file: str, content: str | bytes) -> Callable[[], None]:
    """Return an attack that runs `report` on a directory with this file, outside of which nothing may appear."""

    def attack() -> None:
        home = place.copied("reproduced")
        (home / file).write_bytes(content if isinstance(content, bytes) else content.encode())
        before = outside(place, home)
        try:
            command("report", home)
        finally:
            if outside(place, home) != before:
                raise RuntimeError(f"wrote {outside(place, home) - before}")

    return attack


JSON_FILES = ("small/experiment.json", "invocations.json", "small/even/manifest.json")


def json_cases(place: Place) -> Iterator[Case]:
    """Yield corrupted files of `reproduce` and `compare`."""
    described = json.loads((place.folder / "reproduced" / JSON_FILES[0]).read_text())
    for name in (
        "../../x",
        "/x",
        "a/b",
        "a\\b",
        "",
        ".",
        "..",
        "a\0b",
        ".lock",
        "report.html",
        "nul",
        "x" * 300,
        3,
        None,
    ):
        spoilt = json.dumps({**described, "name": name})
        yield Case(f"json: experiment called {str(name)[:20]!r}", reported(place, JSON_FILES[0], spoilt))
        spoilt = json.dumps({**described, "parts": {"even": name}})
        refused = name != "report.html"
        yield Case(f"json: part called {str(name)[:20]!r}", reported(place, JSON_FILES[0], spoilt), refused)
    for file in JSON_FILES:
        for name, text in {
            "nothing": "",
            "a list": "[]",
            "an empty table": "{}",
            "half": "{",
            "null": "null",
            "10,000 brackets": "[" * 10_000,
            "900 tables": '{"a":' * 900 + "1" + "}" * 900,
            "zero bytes": "\0" * 50,
            "a number of 10,000 digits": '{"format":' + "9" * 10_000 + "}",
        }.items():
            yield Case(f"json: {Path(file).name} is {name}", reported(place, file, text))
        yield Case(f"json: {Path(file).name} is not UTF-8", reported(place, file, b'{"a": "\xff"}'))

    def loaded(change: Callable[[Path], object]) -> Callable[[], None]:
        def attack() -> None:
            home = place.copied("compared")
            change(home)
            sb.Results.load(home)

        return attack

    def tampered(rewrite: Callable[[pl.DataFrame], pl.DataFrame], forged: bool = False) -> Callable[[], None]:
        def change(home: Path) -> None:
            path = home / "results.parquet"
            table = rewrite(pl.read_parquet(path))
            table.write_parquet(path)
            if forged:  # with a matching manifest
                manifest = json.loads((home / "manifest.json").read_text())
                manifest["tables"]["results.parquet"] = {
                    "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                    "rows": table.height,
                }
                (home / "manifest.json").write_text(json.dumps(manifest))

        return loaded(change)

    rewrites: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
        "a policy deleted": lambda table: table.filter(pl.col("policy") != "SOLID"),
        "a run deleted": lambda table: table.filter(pl.col("run") != 1),
        "the end deleted": lambda table: table.filter(pl.col("step") < 20),
        "a row deleted": lambda table: table.head(table.height - 1),
        "a row twice": lambda table: pl.concat([table, table.head(1)]),
        "a row for another": lambda table: pl.concat([table.head(table.height - 1), table.head(1)]),
        "a new policy": lambda table: pl.concat([table, table.with_columns(policy=pl.lit("new"))]),
        "steps beyond the horizon": lambda table: table.with_columns(step=pl.col("step") + 1),
        "nothing": lambda table: table.clear(),
        "other columns": lambda table: table.rename({"regret": "regrets"}),
        "text for numbers": lambda table: table.with_columns(pl.col("regret").cast(pl.String)),
        "nulls": lambda table: table.with_columns(run=pl.lit(None, dtype=pl.Int64)),
    }
    yield Case("parquet: regrets * 0.1", tampered(lambda table: table.with_columns(pl.col("regret") * 0.1)))
    for name, rewrite in rewrites.items():
        yield Case(f"parquet: {name}", tampered(rewrite))
        yield Case(f"parquet: {name}, and the manifest to fit", tampered(rewrite, forged=True))
    yield Case("parquet: empty", loaded(lambda home: (home / "results.parquet").write_bytes(b"")))
    yield Case("parquet: gone", loaded(lambda home: (home / "results.parquet").unlink()))
    yield Case("parquet: diagnostics gone", loaded(lambda home: (home / "diagnostics.parquet").unlink()))
    yield Case(
        "parquet: the diagnostics of nobody",
        loaded(lambda home: (home / "results.parquet").replace(home / "diagnostics.parquet")),
    )


# npz and zip


def npy(header: str, content: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    """Return a .npy file with a given header."""
    length = struct.pack("<H" if version[0] == 1 else "<I", len(header) + 1)
    return b"\x93NUMPY" + version + length + header.encode("latin-1") + b"\n" + content


def numbers(shape: str, dtype: str = "<f8", order: str = "False") -> str:
    """Return a header."""
    return f"{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {shape}, }}"


def zipped(members: dict[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip file."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", kind) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return content.getvalue()


def bomb(name: str, size: int, head: bytes = b"") -> bytes:
    """Return a zip file with one member that is mostly zeros, written piece by piece."""
    content = io.BytesIO()
    with (
        zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(name, "w", force_zip64=True) as member,
    ):
        member.write(head)
        for _ in range(size >> 24):
            member.write(bytes(1 << 24))
    return content.getvalue()


def lying(content: bytes, declared: int) -> bytes:
    """Return a zip file of one member that declares a wrong size."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        (member,) = archive.infolist()
        start = archive.start_dir
    result = bytearray(content)
    for place in (start + 24, member.header_offset + 22):
        struct.pack_into("<I", result, place, declared)
    return bytes(result)


def npz_cases(place: Place, quick: bool) -> Iterator[Case]:
    """Yield files of problems."""

    def loaded(content: bytes) -> Callable[[], None]:
        def attack() -> None:
            path = place.new(".npz")
            path.write_bytes(content)
            command("bound", path)

        return attack

    theta = npy(numbers("(2,)"), np.ones(2).tobytes())
    features = npy(numbers("(1, 2, 2)"), np.eye(2).tobytes())
    good = {"features.npy": features, "theta.npy": theta}
    forged: dict[str, dict[str, bytes]] = {
        "a header of 7 TiB": {**good, "features.npy": npy(numbers("(1000000, 1000000, 1)"))},
        "a header of 10^40 numbers": {**good, "features.npy": npy(numbers(f"({10**20}, {10**20}, 1)"))},
        "a negative shape": {**good, "features.npy": npy(numbers("(-1, 2, 2)"), bytes(32))},
        "a shape of text": {**good, "features.npy": npy(numbers("('a',)"), bytes(32))},
        "a shape of truths": {**good, "features.npy": npy(numbers("(True, True, True)"), bytes(8))},
        "no numbers, 10^18 times": {**good, "features.npy": npy(numbers(f"({10**18},)", "|S0"))},
        "objects": {**good, "features.npy": npy(numbers("(1,)", "|O"), pickle.dumps([print]))},
        "a record": {
            **good,
            "features.npy": npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", bytes(8)),
        },
        "a dtype that is a path": {**good, "features.npy": npy(numbers("(1,)", "../x"), bytes(8))},
        "dates": {**good, "theta.npy": npy(numbers("(2,)", "<M8[s]"), bytes(16))},
        "text": {**good, "theta.npy": npy(numbers("(2,)", "<U1"), bytes(8))},
        "complex numbers": {**good, "theta.npy": npy(numbers("(2,)", "<c16"), np.ones(4).tobytes())},
        "too few numbers": {**good, "theta.npy": npy(numbers("(2,)"), bytes(8))},
        "too many numbers": {**good, "theta.npy": npy(numbers("(2,)"), bytes(80))},
        "a header that is code": {**good, "theta.npy": npy("__import__('os').getcwd()")},
        "a header of 60,000 brackets": {**good, "theta.npy": npy("(" * 60_000)},
        "a header of 4 GB": {**good, "theta.npy": b"\x93NUMPY\x02\x00\xff\xff\xff\xff"},
        "a version of its own": {**good, "theta.npy": npy(numbers("(2,)"), bytes(16), version=b"\x09\x00")},
        "no header": {**good, "theta.npy": b""},
        "half a header": {**good, "theta.npy": b"\x93NUMPY\x01\x00\xff"},
        "an unknown field": {**good, "x.npy": theta},
        "a field that is a path": {**good, "../../x.npy": theta},
        "no fields": {},
        "no theta": {"features.npy": features},
        "infinite": {**good, "theta.npy": npy(numbers("(2,)"), np.array([np.inf, 1]).tobytes())},
        "a bound for each arm": {**good, "theta_bound.npy": theta},
    }
    for name, members in forged.items():
        yield Case(f"npz: {name}", loaded(zipped(members)))
    whole = zipped(good)
    yield Case("npz: as it should be", loaded(whole), refused=False)
    yield Case("npz: cut off", loaded(whole[:-10]))
    yield Case("npz: nothing", loaded(b""))
    yield Case("npz: not a zip", loaded(theta))
    yield Case("npz: bzip2", loaded(zipped(good, zipfile.ZIP_BZIP2)), refused=False)
    twice = io.BytesIO()
    with zipfile.ZipFile(twice, "w") as archive:
        archive.writestr("features.npy", features)
        archive.writestr("theta.npy", theta)
        archive.writestr("theta", theta)
    yield Case("npz: a field twice", loaded(twice.getvalue()))
    for name in ("/dev/zero", "/dev/null", "/proc/self/mem", place.folder):
        yield Case(f"npz: {name} for a file", lambda name=name: sb.Problem.load(name))
    large = 1 << (26 if quick else 31)
    with_large = bomb("x.npy", large)
    yield Case(f"npz: an unknown field of {large >> 20} MiB", loaded(with_large))
    head = npy(numbers("(1, 134217728, 2)"))
    if not quick:
        yield Case("npz: a known field of 2 GiB", loaded(bomb("features.npy", 1 << 31, head)))
    small = bomb("features.npy", 1 << 26, npy(numbers("(1, 4194304, 2)")))
    yield Case("npz: a member larger than it says", loaded(lying(small, 100)))
    yield Case("npz: a member that says 4 GB", loaded(lying(small, 0xFFFFFFFE)))

    def pipe() -> None:
        path = place.new(".npz")
        os.mkfifo(path)
        sb.Problem.load(path)

    yield Case("npz: a pipe that nobody writes to", pipe)


def jester_cases(place: Place, quick: bool) -> Iterator[Case]:
    """Yield files of ratings."""

    def read(content: bytes) -> Callable[[], object]:
        return lambda: data.read(content, "hostile")

    row = b"100," + b",".join([b"1.5"] * 100) + b"\n"
    huge = (200 << 20) if quick else (4 << 30)
    for name, content in {
        "nothing": b"",
        "text": b"hello",
        "zero bytes": bytes(1000),
        "one row": row,
        "a million columns": b"," * 1_000_000,
        "ten million columns": b"," * 10_000_000 + b"\n1",
        "rows of different length": row + b"1,2\n",
        "no numbers": b",".join([b"a"] * 101),
        "quotes without end": b'"' + row,
        "infinite ratings": row.replace(b"1.5", b"inf"),
        "ratings of 1e300": row.replace(b"1.5", b"1e300"),
        "not an Excel file": b"\xd0\xcf\x11\xe0" + bytes(5000),
        "a zip of nothing": zipped({}),
        "a zip of others": zipped({f"{number}.txt": b"" for number in range(1000)}),
        "a zip of two": zipped({"a.csv": row, "b.csv": row}),
        "a zip of a path": zipped({"../../../x.csv": row}),
        "a zip in a zip": zipped({"a.csv": zipped({"a.csv": row})}),
        "half a zip": zipped({"a.csv": row * 100})[:-30],
        "a zip bomb": bomb("a.csv", huge),
        "a zip bomb that says it is small": lying(bomb("a.csv", 1 << 28), 1000),
        "a bzip2 bomb": zipped({"a.csv": bytes(1 << 27)}, zipfile.ZIP_BZIP2),
        "an lzma bomb": zipped({"a.csv": bytes(1 << 27)}, zipfile.ZIP_LZMA),
    }.items():
        yield Case(f"jester: {name}", read(content))

    def sparse() -> None:
        path = place.new(".csv")
        with path.open("wb") as file:
            file.truncate(1 << 40)
        jester.jester(path)

    yield Case("jester: a file of 1 TiB", sparse)
    yield Case("jester: a device", lambda: jester.jester("/dev/zero"))


# Random changes of valid files


def random_cases(place: Place, count: int, seed: int) -> Iterator[Case]:
    """Yield files of ours with a value replaced, or with bytes flipped, cut or doubled."""
    chance = random.Random(seed)
    kept = {file: (place.folder / "reproduced" / file).read_bytes() for file in JSON_FILES}
    manifest = (place.folder / "compared" / "manifest.json").read_bytes()
    sb.problems.random(2, 3, 3, seed=0).save(place.folder / "good.npz")
    problem = (place.folder / "good.npz").read_bytes()

    def spoilt(content: bytes) -> bytes:
        result = bytearray(content)
        for _ in range(chance.choice([1, 1, 2, 8])):
            start = chance.randrange(len(result))
            kind = chance.randrange(4)
            if kind == 0:
                result[start] ^= 1 << chance.randrange(8)
            elif kind == 1:
                del result[start : start + chance.choice([1, 10, 1000])]
            elif kind == 2:
                result[start:start] = chance.randbytes(chance.choice([1, 4, 100]))
            else:
                result[start:start] = result[start : start + chance.choice([1, 10, 1000])]
            if not result:
                break
        return bytes(result)

    def problem_file(content: bytes) -> None:
        path = place.new(".npz")
        path.write_bytes(content)
        sb.Problem.load(path)

    def saved(content: bytes) -> None:
        home = place.copied("compared")
        (home / "manifest.json").write_bytes(content)
        results = sb.Results.load(home)
        from solid_bandits.report.page import write_page

        write_page(results, home / "report.html", bound=results.bound)

    def toml_file(content: bytes) -> None:
        from solid_bandits.paper.reader import load

        path = place.new(".toml")
        path.write_bytes(content)
        load(path)

    for number in range(count):
        what = chance.randrange(6)
        if what == 0:
            content = spoilt(problem)
            yield Case(f"random {number}: npz", lambda content=content: problem_file(content), refused=False)
        elif what == 1:
            content = spoilt(TOML.encode())
            yield Case(f"random {number}: toml", lambda content=content: toml_file(content), refused=False)
        elif what == 2:
            file = chance.choice(JSON_FILES)
            content = spoilt(kept[file])
            yield Case(f"random {number}: {file}", reported(place, file, content), refused=False)
        else:
            file = chance.choice([*JSON_FILES, "compared"])
            plain = json.loads(manifest if file == "compared" else kept[file])
            path = chance.choice(list(paths_in(plain)))
            value = chance.choice([*WRONG, ...] if path else WRONG)
            content = json.dumps(replaced(plain, path, value)).encode()
            name = f"random {number}: {file}, {path} = {value!r}"
            if file == "compared":
                yield Case(name, lambda content=content: saved(content), refused=False)
            else:
                yield Case(name, reported(place, file, content), refused=False)


def complaint(case: Case) -> str:
    """Return what went wrong, or empty text."""

    def late(*_: object) -> None:
        raise RuntimeError(f"took more than {MOST_SECONDS} s")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.signal(signal.SIGALRM, late)
    signal.alarm(MOST_SECONDS)
    try:
        case.attack()
        told = "was not refused" if case.refused else ""
    except ValueError as error:
        told = "told in several lines" if "\n" in str(error) else ""
        if isinstance(error, UnicodeError) or not str(error):
            told = f"{type(error).__name__}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {str(error)[:300]} ({Path(where.filename).name}:{where.lineno})"
    finally:
        signal.alarm(0)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return told or (f"took {grown >> 10} MB" if grown > MOST_MEMORY else "")


def attack(count: int, seed: int, quick: bool = False, verbose: bool = True) -> tuple[int, int]:
    """Try all attacks; return the number tried and the number failed."""
    tried = failed = 0
    with tempfile.TemporaryDirectory(prefix="attack-files-") as folder:
        place = Place(Path(folder))
        generators = [
            toml_cases(place), json_cases(place), npz_cases(place, quick), jester_cases(place, quick),
            random_cases(place, count, seed),
        ]  # fmt: skip
        for generator in generators:
            for case in generator:
                tried += 1
                wrong = complaint(case)
                failed += bool(wrong)
                if wrong and verbose:
                    print(f"  {case.name}: {wrong}", file=sys.stderr)
                for home in Path(folder).glob("case*"):
                    shutil.rmtree(home)
    return tried, failed


def main() -> None:
    """Attack from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--count", type=int, default=1000, help="number of random files besides the listed ones"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="smaller bombs")
    given = parser.parse_args()
    began = time.monotonic()
    tried, failed = attack(given.count, given.seed, given.quick)
    show("hostile TOML, JSON, Parquet, npz and zip files", tried, failed, given.seed, began)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
