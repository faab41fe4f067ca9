"""Interpret questions: from their words to a query."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

LEARNED = (".json", ".npz", ".txt", ".onnx")


def words_file(name: str) -> str:
    """Return a file of English words. Another language is another folder of such files."""
    return files("clew.answering.reading").joinpath("en", name).read_text("utf-8")


@cache
def reader_version() -> str:
    """Return a digest of all learned files of the reader. Runs with different digests are different systems."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for file in sorted(path for path in here.rglob("*") if path.suffix in LEARNED):
        digest.update(file.relative_to(here).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:16]
