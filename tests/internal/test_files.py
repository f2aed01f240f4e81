"""Names, locks and small forms of the attacks on files, by pairs of writers and with kills."""

import importlib.util
import os
import signal
import stat
import sys
import threading
from pathlib import Path

import pytest

from solid_bandits._internal import files

ATTACKS = Path(__file__).parents[2] / "attacks"
sys.path.append(str(ATTACKS))


def attack(name):
    """A module of the folder of attacks, importable by the processes that it starts."""
    spec = importlib.util.spec_from_file_location(f"attack_{name}", ATTACKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../x",
        "/x",
        "a/b",
        "a\\b",
        "a:b",
        "a\0b",
        "a\nb",
        ".lock",
        "nul",
        "COM1.txt",
        "a.",
        " a",
        "x" * 201,
        "\ud800",
        "taken",
        "TAKEN",
        None,
        3,
    ],
)
def test_names_that_are_not_plain(name):
    with pytest.raises(ValueError, match="it must") as caught:
        files.check_name("it", name, ("taken",))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a", "mine-2", "ξ and more", "a.b", "x" * 200, "console"])
def test_plain_names(name):
    assert files.check_name("it", name, ("taken",)) == name


def test_sizes_in_words():
    assert [files.size(count) for count in (0, 100, 2**20, 3 * 2**29)] == [
        "0 bytes",
        "100 bytes",
        "1 MiB",
        "1.5 GiB",
    ]


def test_a_file_is_read_up_to_a_size(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert files.read_bytes(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="it has 5 bytes, more than the limit of 4 bytes"):
        files.read_bytes(tmp_path / "file", 4)


def test_only_what_was_left_unfinished_is_removed(tmp_path):
    for name in (".a.json.0123abcd.json", ".manifest.json.new", ".mine.notes.txt", "a.json"):
        (tmp_path / name).touch()
    files.remove_unfinished(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".manifest.json.new", ".mine.notes.txt", "a.json"]


def test_a_lock_is_of_one(tmp_path):
    out = tmp_path / "a" / "b"
    with files.locked(out):
        with pytest.raises(files.StoreError, match="is in use"), files.locked(out):
            pass
        (out / "file").touch()
    with files.locked(out):  # the file of a lock that nobody holds is in nobody's way
        assert sorted(os.listdir(out)) == [".lock", "file"]


def test_interrupts_wait_for_what_must_not_be_left_half_done(tmp_path):
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("only the main thread is interrupted")

    def write(path):
        path.write_text("half")
        signal.raise_signal(signal.SIGINT)
        path.write_text("whole")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            files.write_whole(tmp_path / "file", write)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "whole"


def test_hostile_files():
    tried, failed = attack("files").attack(count=40, seed=0, quick=True)
    assert tried >= 200
    assert failed == 0


@pytest.mark.long
def test_pairs_of_writers(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ATTACKS), *sys.path]))
    monkeypatch.syspath_prepend(ATTACKS)
    import races

    assert races.attack(count=21, seed=0) == (21, 0)


@pytest.mark.long
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at processes through /proc")
def test_kills():
    rows = attack("kills").attack(compare=2, reproduce=0, saves=40, seed=0)
    assert [failed for _, _, failed in rows] == [0, 0]


@pytest.mark.skipif(sys.platform == "win32", reason="asks for the flags of a file as POSIX has them")
def test_only_files_that_may_be_written_to_are_flushed(tmp_path, monkeypatch):
    """Windows refuses to flush what was opened for reading; the directory is flushed after its file has its name."""
    import fcntl

    modes = []

    def flushed(handle):
        there = (tmp_path / "a.txt").exists()
        modes.append(
            (stat.S_ISDIR(os.fstat(handle).st_mode), fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE, there)
        )

    monkeypatch.setattr(os, "fsync", flushed)
    files.write_text(tmp_path / "a.txt", "text")
    assert modes == [(False, os.O_RDWR, False), (True, os.O_RDONLY, True)]
