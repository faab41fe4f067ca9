"""A file is held against others on every system, and nothing else relies on one kind of system."""

import ast
import importlib.util
import os
import sys
import types

import pytest

from clew.core import disk
from conftest import ROOT

POSIX_ONLY = {"fcntl", "resource", "pwd", "grp", "termios", "pty"}
ALLOWED = {"core/disk.py"}


@pytest.fixture
def file(tmp_path):
    (tmp_path / "held").write_bytes(b"abc")
    return tmp_path / "held"


def opened(file):
    return os.open(file, os.O_RDWR)


def test_what_is_held_cannot_be_held_again_until_it_is_closed(file):
    first, second = opened(file), opened(file)
    disk.hold(first, wait=False)
    with pytest.raises(BlockingIOError):
        disk.hold(second, wait=False)
    os.close(first)
    disk.hold(second, wait=True)
    os.close(second)


def test_a_file_is_the_old_one_or_the_new_one_and_no_link_is_followed(file, tmp_path):
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / ".held").symlink_to(tmp_path / "victim")
    disk.write_whole(file, b"new", safely=True)
    assert (file.read_bytes(), (tmp_path / "victim").read_bytes()) == (b"new", b"mine")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["held", "victim"]


def test_lines_are_in_their_place_when_all_are_written(file, tmp_path):
    with disk.written_whole(file) as lines:
        lines.write("new\n")
        assert file.read_bytes() == b"abc"
    assert file.read_bytes() == b"new\n"

    def stop() -> None:
        with disk.written_whole(file) as lines:
            lines.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert file.read_bytes() == b"new\n"
    assert [path.name for path in tmp_path.iterdir()] == ["held"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes among files")
def test_a_pipe_is_written_as_it_is_and_stays(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with disk.written_whole(tmp_path / "pipe") as lines:
        lines.write("line\n")
    assert os.read(reading, 100) == b"line\n"
    os.close(reading)
    assert (tmp_path / "pipe").is_fifo()


@pytest.fixture
def on_windows(monkeypatch):
    """The module as Windows would load it, with a lock that is free at the third try."""
    calls = []

    def locking(descriptor, mode, count):
        calls.append((os.lseek(descriptor, 0, os.SEEK_CUR), mode, count))
        if len(calls) < 3:
            raise OSError("locked")

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "msvcrt", types.SimpleNamespace(locking=locking, LK_NBLCK=2))
    spec = importlib.util.spec_from_file_location("clew_disk_on_windows", disk.__file__)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "_PAUSE", 0)
    return module, calls


def test_on_windows_a_byte_far_behind_the_end_is_held(on_windows, file):
    module, calls = on_windows
    descriptor = opened(file)
    os.lseek(descriptor, 2, os.SEEK_SET)
    with pytest.raises(OSError, match="locked"):
        module.hold(descriptor, wait=False)
    module.hold(descriptor, wait=True)
    assert calls == [((1 << 31) - 2, 2, 1)] * 3
    assert os.lseek(descriptor, 0, os.SEEK_CUR) == 2
    os.close(descriptor)
    module.sync(file)
    module.sync(file.parent)


def imports(tree):
    """Modules that are imported whenever a file is."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def test_no_other_module_needs_what_only_posix_has():
    source = ROOT / "src" / "clew"
    found = {
        file.relative_to(source).as_posix()
        for file in source.rglob("*.py")
        if POSIX_ONLY & set(imports(ast.parse(file.read_text("utf-8"))))
    }
    assert found <= ALLOWED
