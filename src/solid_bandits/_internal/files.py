"""Files that appear completely or not at all, their names, and limits on their contents. Nothing is computed here."""

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
"""Format number of the files below; a manifest of another format is not read."""

# Files of one simulation:
TABLE_FILE = "results.parquet"
DIAGNOSTICS_FILE = "diagnostics.parquet"
ARMS_FILE = "arms.parquet"
CALIBRATION_FILE = "calibration.parquet"
DECISIONS_FILE = "decisions.parquet"
MANIFEST_FILE = "manifest.json"

# Files of a directory of experiments:
EXPERIMENT_FILE = "experiment.json"
INVOCATIONS_FILE = "invocations.json"
FIGURES = "figures"

LOCK_FILE = ".lock"
"""Lock file in every directory that a process is writing to."""

LARGEST_FILE = 2**30
"""Largest number of bytes of a file, or of an archive's content, that is read into memory."""

_LONGEST_NAME = 200
"""Largest number of bytes in a name: file systems allow 255, and names get endings."""

TAKEN = (FIGURES, "report.html", "report.md", INVOCATIONS_FILE, MANIFEST_FILE, "all")
"""Names that no experiment may have: names of other files next to its directory, or of all experiments."""

_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names that Windows reserves for devices."""


class StoreError(ValueError):
    """Raised for a directory that cannot be used: it is in use, may not be written to, or holds something else."""


def path_of(name: str, value: object) -> Path:
    """Return an argument as a path; raise a ValueError if it is not one."""
    if not isinstance(value, str | os.PathLike):
        raise ValueError(f"{name} must be a path, got {' '.join(short(value).split())}")
    try:
        return Path(value)
    except TypeError as error:  # a path given as bytes
        raise ValueError(f"{name} must be a path given as text ({error})") from None


def check_name(what: str, name: object, taken: Collection[str] = ()) -> str:
    """Return `name` if it is valid as a single file or directory name on every system and not one of `taken`."""
    complaint = ""
    if not isinstance(name, str) or not name:
        complaint = "must be non-empty text"
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
    """Lock `directory`, created if missing, for this process; raise a StoreError if another process holds it.

    The lock ends with the process, however that ends. The lock file itself means nothing and may stay: whether filelock
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
    """Let `write` fill a temporary file next to `path`, then rename it, so that `path` is never half-written.

    When this returns, the file and its name are on the disk.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{path.suffix}")
    with deferred():
        try:
            write(temporary)
            # Flush the content before renaming, so that even a power cut leaves no half-written file under the name.
            with temporary.open("r+b") as file:  # Windows flushes only files opened for writing
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _flush_names(path.parent)


def _flush_names(directory: Path) -> None:
    """Flush the names in a directory to the disk, on systems that can."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes, completely or not at all."""
    write_whole(path, lambda file: file.write_bytes(content))


def write_text(path: Path, text: str) -> None:
    """Write text, completely or not at all, with the same bytes on every system."""
    write_whole(path, lambda file: file.write_text(text, encoding="utf-8", newline="\n"))


def write_json(path: Path, content: object, indent: int = 2) -> None:
    """Write plain data or a declared class, completely or not at all; numbers come back exactly."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, encode(content, indent) + b"\n")


def read_bytes(path: Path, limit: int = LARGEST_FILE) -> bytes:
    """Read a file; before allocating memory, raise an OSError unless it is a plain file of at most `limit` bytes."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise OSError("it is not a plain file")
    if about.st_size > limit:
        raise OSError(f"it has {size(about.st_size)}, more than the limit of {size(limit)}")
    return path.read_bytes()


def size(count: int) -> str:
    """Format a number of bytes, such as 100 MiB."""
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    place = min(int(math.log2(max(count, 1)) // 10), len(units) - 1)
    return f"{count / 1024**place:.3g} {units[place]}"


def read_json(path: Path, kind: type[T]) -> T:
    """Read what `write_json` wrote; raise a StoreError that names the field unless it is of this class."""
    try:
        return convert(decode(read_bytes(path)), kind)
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{os.fspath(path)!r} cannot be read ({first_line(error)}); remove it and rerun"
        ) from None


def read_archive(
    content: bytes, names: Mapping[str, str], limit: int = LARGEST_FILE
) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file given as bytes, for the fields in `names` with their allowed kinds of dtype.

    Names, sizes and headers are checked before memory is allocated for them. An ArchiveError describes wrong names or
    sizes; any other ValueError means a damaged file.
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
                raise ArchiveError(f"holds more than the limit of {size(limit)}")
            return {name: _member(archive, member, names[name], limit) for name, member in members.items()}
    except (
        zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError, OverflowError,
        TypeError, OSError, SyntaxError, MemoryError,
    ) as error:  # fmt: skip
        raise ValueError(first_line(error)) from None


class ArchiveError(ValueError):
    """Raised for an archive with wrong field names or too much data."""


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> bytes:
    """Read one member of an archive, never more than `limit` bytes, whatever its header says."""
    if member.file_size > limit:
        raise ArchiveError(f"holds {size(member.file_size)}, more than the limit of {size(limit)}")
    with archive.open(member) as file:
        content = file.read(limit + 1)  # checks the member's CRC at its end
    if len(content) > limit:
        raise ArchiveError(f"holds more than the limit of {size(limit)}")
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
        raise ValueError("a field is not a plain array")
    shape, by_columns, dtype = readers[version](file)
    if dtype.hasobject or dtype.fields is not None or dtype.subdtype is not None or dtype.kind not in kinds:
        raise ValueError(f"a field has numbers of type {short(dtype.str)}")
    # A writable copy: an error would leave a view of the file's own bytes behind.
    rest = bytearray(memoryview(content)[file.tell() :])
    # The declared data must be present: nothing is allocated on the strength of a header.
    if not dtype.itemsize or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(rest):
        raise ValueError("a field is not as large as its header says")
    array = np.frombuffer(rest, dtype=dtype) if len(rest) else np.empty(0, dtype)
    return array.reshape(shape, order="F" if by_columns else "C")


_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}(\..*)?")


def remove_unfinished(folder: Path) -> None:
    """Remove half-written files that a killed process left; their names begin with a dot."""
    for unfinished in folder.glob(".*"):
        if _UNFINISHED.fullmatch(unfinished.name) and unfinished.is_file():
            unfinished.unlink(missing_ok=True)


def first_line(error: BaseException) -> str:
    """Return an error in one line."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
