"""Files that appear whole or not at all, what they are called and what they may hold. Nothing is computed here."""

import io
import math
import os
import re
import stat
import uuid
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import numpy as np

from solid_bandits._internal.checks import short
from solid_bandits._internal.decoding import convert, decode, encode
from solid_bandits._internal.signals import deferred

T = TypeVar("T")

FORMAT = 2
"""The format of the files below; a manifest of another format is not read."""

# Of one simulation:
TABLE_FILE = "results.parquet"
DIAGNOSTICS_FILE = "diagnostics.parquet"
ARMS_FILE = "arms.parquet"
CALIBRATION_FILE = "calibration.parquet"
DECISIONS_FILE = "decisions.parquet"
MANIFEST_FILE = "manifest.json"

# Of a directory of experiments:
EXPERIMENT_FILE = "experiment.json"
INVOCATIONS_FILE = "invocations.json"
FIGURES = "figures"

LOCK_FILE = ".lock"
"""In every directory that a process writes to, while it does."""

LARGEST_FILE = 2**30
"""Bytes of a file, or of what an archive holds, that are taken into memory."""

_LONGEST_NAME = 200
"""Bytes of a name: file systems take 255, and names get endings."""

TAKEN = (FIGURES, "report.html", "report.md", INVOCATIONS_FILE, MANIFEST_FILE, "all")
"""Names that no experiment may have: of other files beside its directory, or of all experiments."""

_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names that Windows reserves for devices."""


class StoreError(ValueError):
    """A directory cannot be used: it is in use, may not be written to, or holds something else."""


def path_of(name: str, value: object) -> Path:
    """Return an argument that names a file or a directory."""
    if not isinstance(value, str | os.PathLike):
        raise ValueError(f"{name} must be a path, got {' '.join(short(value).split())}")
    try:
        return Path(value)
    except TypeError as error:  # a path of bytes
        raise ValueError(f"{name} must be a path of text ({error})") from None


def check_name(what: str, name: object, taken: Collection[str] = ()) -> str:
    """Return `name` if it can be that of one file or directory, on every system: never a path, nor one of `taken`."""
    complaint = ""
    if not isinstance(name, str) or not name:
        complaint = "must be text that is not empty"
    elif name.startswith((".", " ")) or name.endswith((".", " ")):
        complaint = "must neither begin nor end with a dot or a space"
    elif any(not sign.isprintable() or sign in '/\\:*?"<>|' for sign in name):
        complaint = 'must be a plain name, without / \\ : * ? " < > | and non-printable characters'
    elif len(name.encode("utf-8", "replace")) > _LONGEST_NAME:
        complaint = f"must be a name of at most {_LONGEST_NAME} bytes"
    elif name.casefold() in taken or _DEVICES.fullmatch(name):
        complaint = "must be a name that is not taken"
    if complaint:
        raise ValueError(f"{what} {complaint}, got {short(name)}")
    assert isinstance(name, str)
    return name


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold `directory`, made if missing, for this process; a StoreError if another does.

    The lock ends with the process, however that ends. Its file means nothing, and may stay: whether filelock
    removes it depends on its version.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(directory / LOCK_FILE)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise StoreError(
            f"{os.fspath(directory)!r} is in use by another process; wait for it to end, or give another directory"
        ) from None
    except OSError as error:
        raise StoreError(
            f"{os.fspath(directory)!r} cannot be written to ({error.strerror or error}); give another directory"
        ) from None
    try:
        yield
    finally:
        lock.release()


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it, so that `path` is never half-written.

    File and name are on the disk when this returns.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{path.suffix}")
    with deferred():
        try:
            write(temporary)
            # On the disk before it has its name: not even a power cut leaves half a file under it.
            with temporary.open("r+b") as file:  # Windows flushes only what may be written to
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _flush_names(path.parent)


def _flush_names(directory: Path) -> None:
    """Have the names in a directory written to the disk, on systems that can."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes, whole or not at all."""
    write_whole(path, lambda file: file.write_bytes(content))


def write_text(path: Path, text: str) -> None:
    """Write a text, whole or not at all; the same bytes on every system."""
    write_whole(path, lambda file: file.write_text(text, encoding="utf-8", newline="\n"))


def write_json(path: Path, content: object, indent: int = 2) -> None:
    """Write plain data or a declared class, whole or not at all; numbers come back exactly as they were."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, encode(content, indent) + b"\n")


def read_bytes(path: Path, limit: int = LARGEST_FILE) -> bytes:
    """Read a file; raise an OSError, before memory is taken, unless it is a plain file of at most `limit` bytes."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise OSError("it is not a plain file")
    if about.st_size > limit:
        raise OSError(f"it has {size(about.st_size)}, more than {size(limit)}, the most that is read")
    return path.read_bytes()


def size(count: int) -> str:
    """Return a number of bytes in words: 100 MiB."""
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    place = min(int(math.log2(max(count, 1)) // 10), len(units) - 1)
    return f"{count / 1024**place:.3g} {units[place]}"


def read_json(path: Path, kind: type[T]) -> T:
    """Read what `write_json` wrote; a StoreError that names the field unless it is of this kind."""
    try:
        return convert(decode(read_bytes(path)), kind)
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{os.fspath(path)!r} cannot be read ({first_line(error)}); remove it and rerun"
        ) from None


def read_archive(
    content: bytes, names: Mapping[str, str], limit: int = LARGEST_FILE
) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file's bytes: those in `names`, each with the kinds of dtype that it may have.

    Names, sizes and headers are checked before memory is taken for what they promise. An ArchiveError says what is
    wrong with names or sizes; any other ValueError is of a damaged file.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            unknown = [name for name in members if name not in names]
            if unknown:
                listed = ", ".join(name if name.isprintable() else ascii(name) for name in unknown[:5])
                raise ArchiveError(f"has unknown fields {listed}{', ...' if len(unknown) > 5 else ''}")
            if len(members) != len(archive.infolist()):
                raise ArchiveError("has a field twice")
            if sum(member.file_size for member in members.values()) > limit:
                raise ArchiveError(f"holds more than {size(limit)}, the most that is read")
            return {name: _member(archive, member, names[name], limit) for name, member in members.items()}
    except (
        zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError, OverflowError,
        TypeError, OSError, SyntaxError, MemoryError,
    ) as error:  # fmt: skip
        raise ValueError(first_line(error)) from None


class ArchiveError(ValueError):
    """An archive with fields of other names, or too large."""


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> bytes:
    """One member of an archive, never more than `limit` bytes of it, whatever its header says."""
    if member.file_size > limit:
        raise ArchiveError(f"holds {size(member.file_size)}, more than {size(limit)}, the most that is read")
    with archive.open(member) as file:
        content = file.read(limit + 1)  # checks the member's CRC at its end
    if len(content) > limit:
        raise ArchiveError(f"holds more than {size(limit)}, the most that is read")
    return content


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, kinds: str, limit: int) -> np.ndarray:
    content = read_member(archive, member, limit)
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError("a field is no plain array")
    shape, by_columns, dtype = readers[version](file)
    if dtype.hasobject or dtype.fields is not None or dtype.subdtype is not None or dtype.kind not in kinds:
        raise ValueError(f"a field has numbers of type {short(dtype.str)}")
    # A copy that may be written to: a view of the file's own bytes would be left behind by an error.
    rest = bytearray(memoryview(content)[file.tell() :])
    # What the header declares must be there: nothing is allocated for a promise.
    if not dtype.itemsize or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(rest):
        raise ValueError("a field is not as large as its header says")
    array = np.frombuffer(rest, dtype=dtype) if len(rest) else np.empty(0, dtype)
    return array.reshape(shape, order="F" if by_columns else "C")


_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}(\..*)?")


def remove_unfinished(folder: Path) -> None:
    """Remove what a killed process left half-written; its names begin with a dot."""
    for unfinished in folder.glob(".*"):
        if _UNFINISHED.fullmatch(unfinished.name) and unfinished.is_file():
            unfinished.unlink(missing_ok=True)


def first_line(error: BaseException) -> str:
    """Return an error in one line."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
