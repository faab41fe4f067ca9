"""From the words of a question to what it asks for."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

LEARNED = (".json", ".npz", ".txt", ".onnx")


@cache
def reader_version() -> str:
    """A digest of everything the reader has learned: two runs with different ones are not the same system."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for file in sorted(path for path in here.rglob("*") if path.suffix in LEARNED):
        digest.update(file.relative_to(here).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:16]
