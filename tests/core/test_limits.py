"""A process bounds itself where the system can."""

import subprocess
import sys

import pytest

from clew.core import limits


def test_what_needs_too_much_memory_fails_in_its_own_process():
    pytest.importorskip("resource")
    code = "from clew.core.limits import limit_memory; limit_memory(1 << 30); bytearray(2 << 30)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MemoryError" in ended.stderr


def test_a_system_without_such_bounds_goes_on(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.delattr(limits.signal, "alarm", raising=False)
    limits.limit_memory(1)
    limits.limit_seconds(1)
