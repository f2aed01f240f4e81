"""The Jester ratings on disk: finding the file, reading it, and checking that it is the published one."""

import hashlib
import importlib
import io
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal import extras
from solid_bandits._internal.files import ArchiveError, path_of, read_bytes, read_member
from solid_bandits._internal.types import Floats, Ints

DATA_VARIABLE = "SOLID_BANDITS_DATA"
CACHE_VARIABLE = "SOLID_BANDITS_CACHE"

FILE_NAMES = ("jester-data-1.zip", "jester-data-1.csv", "jester_dataset_1_1.zip", "jester-data-1.xls")

ADDRESSES = (
    "https://goldberg.berkeley.edu/jester-data/jester-data-1.zip",
    "https://eigentaste.berkeley.edu/dataset/archive/jester_dataset_1_1.zip",
)

LARGEST = 100 * 2**20
"""Largest accepted size of a ratings file in bytes, packed or not; the published ones have a quarter of that."""

_JOKES = 100
_NOT_RATED = 9900  # 99.00 in the file


class Published(NamedTuple):
    """Properties that identify the published ratings, whatever the format of the file."""

    users: int
    digest: str
    """SHA-256 of the ratings in hundredths as little-endian int16, user by user, 9900 for "not rated"."""


PUBLISHED = Published(24_983, "9e1208c052987ba526014f6ec55f9c758d30611604f23d3dcacac50b144fbe9b")


class Location(NamedTuple):
    """A file of ratings, and whether it is temporary and to be deleted after reading."""

    path: Path
    downloaded: bool


def extra(module: str) -> Any:
    """Import a module of the `jester` extra."""
    return extras.load(module, "the Jester problem")


def cache_folder() -> Path:
    """Return the folder of downloads and fits: the one the environment names, or the platform's cache folder."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else Path(extra("pooch").os_cache("solid-bandits"))


def locate(source: str | os.PathLike[str] | None) -> Location:
    """Return the file of ratings: `source`, one in the folder that SOLID_BANDITS_DATA names, or a download."""
    if source is not None:
        return Location(_inside("source", path_of("source", source)), downloaded=False)
    named = os.environ.get(DATA_VARIABLE)
    if named:
        return Location(_inside(DATA_VARIABLE, Path(named)), downloaded=False)
    return Location(_download(), downloaded=True)


def _inside(name: str, path: Path) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise ValueError(
            f"{name} is {os.fspath(path)!r}, which is not there; give the Jester file or the folder it is in"
        )
    for candidate in FILE_NAMES:
        if (path / candidate).is_file():
            return path / candidate
    raise ValueError(
        f"{name} is the folder {os.fspath(path)!r}, which holds no Jester ratings; put {FILE_NAMES[0]} "
        f"there (also read: {', '.join(FILE_NAMES[1:])})"
    )


def _download() -> Path:
    folder = cache_folder()
    target = folder / FILE_NAMES[0]
    if target.is_file():
        return target
    pooch = extra("pooch")
    # Pooch would record the hash of whatever it received. Our hash is of the ratings and is checked when they are read:
    # the publisher's archives hold Excel files, others hold the same ratings as CSV, and each was packed more than
    # once.
    pooch.get_logger().setLevel("WARNING")
    failures = []
    for address in ADDRESSES:
        try:
            path = Path(pooch.retrieve(address, known_hash=None, fname=target.name, path=folder))
            read(read_bytes(path, LARGEST), address)
            return path
        except OSError as error:  # the errors of `requests` are OSErrors too
            failures.append(f"{address} ({type(error).__name__})")
        except ValueError as error:  # for instance, a page that says the file has moved
            target.unlink(missing_ok=True)
            failures.append(f"{address} ({error})")
    raise ValueError(
        f"source is None, {DATA_VARIABLE} is not set, and the Jester ratings could not be downloaded from "
        f"{' or '.join(failures)}; get {FILE_NAMES[0]} elsewhere, then give its path as source, or put it in a "
        f"folder and name the folder in {DATA_VARIABLE}"
    )


def read(content: bytes, name: str) -> Ints:
    """Return the published ratings in hundredths, shape (24983, 100), from the bytes of a CSV, Excel or zip file.

    Anything else is a ValueError: a table of another shape, values that are not ratings, counts of rated jokes that
    contradict the rows, fewer users than were published, or numbers that differ from the published ones.
    """
    table = _table(content, name)
    if table.shape[1] != 1 + _JOKES:
        raise _misshapen(name, table.shape[1])
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(
            f"source {name!r} has no number in row {row + 1}, column {column + 1}: the file is truncated or not "
            "the Jester ratings; get it again"
        )
    ratings = np.rint(100 * table[:, 1:])
    rated = ratings != _NOT_RATED
    wrong = rated & (np.abs(ratings) > 1000)
    if wrong.any():
        row, joke = np.argwhere(wrong)[0]
        raise ValueError(
            f"source {name!r} has {table[row, 1 + joke]:g} in row {row + 1}, column {joke + 2}; a rating is from "
            "-10 to 10, or 99 for a joke not rated"
        )
    miscounted = np.flatnonzero(rated.sum(axis=1) != table[:, 0])
    if miscounted.size:
        row = miscounted[0]
        raise ValueError(
            f"source {name!r} says {table[row, 0]:g} jokes rated in row {row + 1}, which has "
            f"{rated[row].sum()} ratings: the file is corrupt; get it again"
        )
    if len(table) != PUBLISHED.users:
        raise ValueError(
            f"source {name!r} has {len(table):,} users; the first part of the Jester ratings has "
            f"{PUBLISHED.users:,}: the file is truncated, or another part; give {FILE_NAMES[0]}"
        )
    hundredths = ratings.astype("<i2")
    if hashlib.sha256(hundredths.tobytes()).hexdigest() != PUBLISHED.digest:
        raise ValueError(
            f"source {name!r} looks like the Jester ratings, but its numbers are not those published (their hash "
            "differs): the file is corrupt or was edited; get it again"
        )
    return hundredths.astype(np.int64)


def _misshapen(name: str, columns: int) -> ValueError:
    return ValueError(
        f"source {name!r} has {columns} columns; the Jester ratings have {1 + _JOKES}: the number of "
        "jokes rated, then one rating for each joke"
    )


def _table(content: bytes, name: str) -> Floats:
    """Return all numbers of the file, with NaN where there is none."""
    if content.startswith(b"PK"):
        content = _unzipped(content, name)
    if content.startswith(b"\xd0\xcf\x11\xe0"):
        return _excel(content, name)
    columns = content[: content.find(b"\n") + 1 or None].count(b",") + 1
    if columns > 10 * _JOKES:  # before a reader allocates memory for each of them
        raise _misshapen(name, columns)
    polars = importlib.import_module("polars")  # imported here to keep the import of the package fast
    try:
        frame = polars.read_csv(
            io.BytesIO(content), has_header=False, infer_schema_length=None, truncate_ragged_lines=False
        )
        return frame.cast(polars.Float64).to_numpy()
    except polars.exceptions.PolarsError:
        raise ValueError(
            f"source {name!r} is not a table of numbers; give the Jester ratings as {', '.join(FILE_NAMES)}"
        ) from None


def _unzipped(content: bytes, name: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            tables = [member for member in archive.namelist() if member.lower().endswith((".csv", ".xls"))]
            if len(tables) == 1:
                return read_member(archive, archive.getinfo(tables[0]), LARGEST)
            held = ", ".join(archive.namelist()[:10]) or "nothing"
    except ArchiveError as error:
        raise ValueError(f"source {name!r} {error}; get the Jester ratings again") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError):
        raise ValueError(f"source {name!r} is a truncated or corrupt zip file; get it again") from None
    raise ValueError(
        f"source {name!r} is a zip file that holds {held}; the Jester archive holds one .csv or .xls"
    )


def _excel(content: bytes, name: str) -> Floats:
    xlrd = extra("xlrd")
    try:
        sheet = xlrd.open_workbook(file_contents=content, logfile=io.StringIO()).sheet_by_index(0)
        return np.array([sheet.row_values(row) for row in range(sheet.nrows)], dtype=np.float64)
    except Exception:  # the reader fails on broken files in many ways: struct.error, AssertionError, ...
        raise ValueError(
            f"source {name!r} is not a whole Excel sheet of numbers; get the Jester ratings again"
        ) from None
