"""Files that appear whole or not at all, what they are called and what they may hold. Nothing is computed here."""

import io
import json
import math
import os
import re
import signal
import stat
import threading
import uuid
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from solid_bandits._check import short
from solid_bandits._types import Plain

FORMAT = 2
"""Of the files below; a manifest of another format is not read."""

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

LARGEST_INTEGER = 2**53

_DEEPEST = 50
"""Tables within tables: ours have a handful."""

_LONGEST_NAME = 200
"""Bytes of a name: file systems take 255, and names get endings."""

TAKEN = (FIGURES, "report.html", "report.md", INVOCATIONS_FILE, MANIFEST_FILE, "all")
"""Names that no experiment may have: of other files beside its directory, or of all experiments."""

_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""What Windows takes for a device."""


class StoreError(ValueError):
    """A directory cannot be used: it is in use, may not be written to, or holds something else."""


def path_of(name: str, value: object) -> Path:
    """An argument that names a file or a directory."""
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
        complaint = 'must be a plain name, without / \\ : * ? " < > | and signs that do not print'
    elif len(name.encode("utf-8", "replace")) > _LONGEST_NAME:
        complaint = f"must be a name of at most {_LONGEST_NAME} bytes"
    elif name.casefold() in taken or _DEVICES.fullmatch(name):
        complaint = "must be a name that is not taken"
    if complaint:
        raise ValueError(f"{what} {complaint}, got {short(name)}")
    assert isinstance(name, str)
    return name


@contextmanager
def undisturbed() -> Iterator[None]:
    """Within, Ctrl-C and SIGTERM wait: for what takes moments and must not be left half-done."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is interrupted
        return
    waiting: list[int] = []
    before = {
        number: handler
        for number in (signal.SIGINT, signal.SIGTERM)
        if (handler := signal.getsignal(number)) not in (None, signal.SIG_IGN)
    }
    try:
        for number in before:
            signal.signal(number, lambda number, _: waiting.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for come in waiting[:1]:
            signal.raise_signal(come)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold `directory`, made if missing, for this process; a StoreError if another does.

    The lock ends with the process, however that ends. A directory that was made here and stayed empty goes with it.
    """
    from filelock import Timeout

    made = [one for one in (directory, *directory.parents) if not one.exists()]
    lock = None
    try:
        with undisturbed():
            try:
                lock = _acquired(directory)
            except Timeout:
                raise StoreError(
                    f"{os.fspath(directory)!r} is in use by another process; wait for it to end, or give another "
                    "directory"
                ) from None
            except OSError as error:
                raise StoreError(
                    f"{os.fspath(directory)!r} cannot be written to ({error.strerror or error}); give another "
                    "directory"
                ) from None
        yield
    finally:
        with undisturbed():
            if lock is not None:
                with suppress(OSError):
                    (directory / LOCK_FILE).unlink()  # while it is held: see `_acquired`
                lock.release()
                if (
                    os.name == "nt"
                ):  # where a file that is held cannot be removed, and one that another holds stays
                    with suppress(OSError):
                        (directory / LOCK_FILE).unlink()
            with suppress(OSError):
                for one in made:
                    one.rmdir()


def _acquired(directory: Path) -> Any:
    from filelock import FileLock, Timeout

    path = directory / LOCK_FILE
    for _ in range(100):
        directory.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except FileNotFoundError:
            continue  # whoever made the directory removed it in between
        except Timeout:
            if path.exists():
                raise
            continue  # whoever held it is gone
        # A holder removes the file before it lets go: what was locked may be a file without a name by now.
        held = lock._context.lock_file_fd
        with suppress(FileNotFoundError):
            if held is not None and os.path.samestat(os.fstat(held), path.stat()):
                return lock
        lock.release()
    raise Timeout(str(path))


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it, so that `path` is never half-written."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{path.suffix}")
    with undisturbed():
        try:
            write(temporary)
            # On the disk before it has its name: not even a power cut leaves half a file under it.
            with temporary.open("r+b") as file:  # Windows flushes only what may be written to
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes, whole or not at all."""
    write_whole(path, lambda file: file.write_bytes(content))


def write_text(path: Path, text: str) -> None:
    """Write a text, whole or not at all; the same bytes on every system."""
    write_whole(path, lambda file: file.write_text(text, encoding="utf-8", newline="\n"))


def write_json(path: Path, content: Plain, indent: int | None = 2) -> None:
    """Write plain data, whole or not at all; numbers come back exactly as they were."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(content, ensure_ascii=False, indent=indent) + "\n")


def read_bytes(path: Path, limit: int = LARGEST_FILE) -> bytes:
    """What a file holds; an OSError if it is not a plain file or larger than `limit`, before memory is taken."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise OSError("it is not a plain file")
    if about.st_size > limit:
        raise OSError(f"it has {size(about.st_size)}, more than {size(limit)}, the most that is read")
    return path.read_bytes()


def size(count: int) -> str:
    """A number of bytes in words: 100 MiB."""
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    place = min(int(math.log2(max(count, 1)) // 10), len(units) - 1)
    return f"{count / 1024**place:.3g} {units[place]}"


def read_json(path: Path, *keys: str) -> Plain:
    """Read what `write_json` wrote; a StoreError unless it is a table with these keys and what its name promises."""
    try:
        content = json.loads(read_bytes(path).decode("utf-8"))
        if not isinstance(content, dict) or not set(keys) <= set(content):
            raise ValueError(f"it lacks {', '.join(keys) or 'its fields'}")
        if path.name in _FIELDS:
            check_fields(content, _FIELDS[path.name])
        if path.name == EXPERIMENT_FILE:
            check_name("name", content["name"], TAKEN)
            for slug in content["parts"].values():
                check_name("parts", slug)
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(
            f"{os.fspath(path)!r} cannot be read ({first_line(error)}); remove it and rerun"
        ) from None
    return content


Kind = Any
"""What a value of JSON may be: a type, where float is any number; [kind], a list; {"*": kind}, a table; {"a": kind,
"b?": kind}, a table with a field and perhaps another; a tuple of kinds, any one of them."""

_FIELDS: dict[str, Kind] = {
    EXPERIMENT_FILE: {
        "name": str,
        "title": str,
        "about": str,
        "scale": str,
        "parts": {"*": str},
        "claims": [
            {
                "text": str,
                "source": str,
                "rule": str,
                "metric?": str,
                "policies?": [str],
                "against?": [str],
                "beside?": [str],
                "parts?": [str],
                "at?": float,
                "margin?": float,
                "arm?": ([int], None),
            }
        ],
    },
    INVOCATIONS_FILE: {"invocations": [{"wall_seconds": float, "tasks?": int, "machine?": str}]},
}

_WORDS = {
    str: "text",
    int: f"an integer from 0 to {LARGEST_INTEGER}",
    float: "a number",
    bool: "true or false",
    dict: "a table",
    None: "null",
}


def check_fields(content: object, kind: Kind, path: str = "") -> None:
    """Raise a ValueError that names the field unless `content` is of this kind, and not nested without end."""
    if not path:
        _check_plain(content)
    if isinstance(kind, tuple):
        for one in kind:
            with suppress(ValueError):
                return check_fields(content, one, path or "it")
        raise _misfit(path, " or ".join(map(_kind_words, kind)), content)
    if isinstance(kind, list):
        if not isinstance(content, list):
            raise _misfit(path, "a list", content)
        for place, value in enumerate(content):
            check_fields(value, kind[0], f"{path}[{place}]")
    elif isinstance(kind, dict):
        if not isinstance(content, dict):
            raise _misfit(path, "a table", content)
        for field, of_field in kind.items():
            name = field.removesuffix("?")
            below = f"{path}.{name}" if path else name
            if field == "*":
                for key, value in content.items():
                    check_fields(value, of_field, f"{path}[{short(key)}]")
            elif name in content:
                check_fields(content[name], of_field, below)
            elif name == field:
                raise ValueError(f"{below} is missing")
    elif not _fits(content, kind):
        raise _misfit(path, _kind_words(kind), content)
    return None


def _fits(value: object, kind: Kind) -> bool:
    if kind is None or value is None:
        return kind is value
    if isinstance(value, bool):
        return kind is bool
    if kind is int:
        return isinstance(value, int) and 0 <= value <= LARGEST_INTEGER
    if kind is float:
        return isinstance(value, float) or (isinstance(value, int) and abs(value) <= LARGEST_INTEGER)
    return isinstance(value, kind)


def _kind_words(kind: Kind) -> str:
    if isinstance(kind, list | dict):
        return "a list" if isinstance(kind, list) else "a table"
    return _WORDS[kind]


def _misfit(path: str, wanted: str, value: object) -> ValueError:
    return ValueError(f"{path or 'it'} must be {wanted}, got {short(value)}")


def _check_plain(content: object) -> None:
    """Raise a ValueError for tables in tables without end, and for text that no file can hold."""
    below: list[object] = [content]
    for _ in range(_DEEPEST):
        inner: list[object] = []
        for one in below:
            if isinstance(one, dict):
                inner += [*one, *one.values()]
            elif isinstance(one, list):
                inner += one
            elif isinstance(one, str) and not one.isascii() and re.search(r"[\ud800-\udfff]", one):
                raise ValueError(f"it has half a sign in {short(one)}")
        if not inner:
            return
        below = inner
    raise ValueError(f"it is nested more than {_DEEPEST} deep")


def read_archive(
    content: bytes, names: Mapping[str, str], limit: int = LARGEST_FILE
) -> dict[str, np.ndarray]:
    """The arrays of an .npz file's bytes: those in `names`, each with the kinds of dtype that it may have.

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
    file = io.BytesIO(read_member(archive, member, limit))
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
    rest = file.getbuffer()[file.tell() :]
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
    """An error in one line."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
