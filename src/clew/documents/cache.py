"""The texts of files read before, kept by content."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clew.core.disk import refuse_link, write_whole
from clew.documents.extracted import Block, Cells, Extracted, TextLine
from clew.kb.manifest import KEPT_TEXT, sealed_text, unsealed_text

VERSION = 5
"""Raised whenever a reader extracts something else than before."""


def content_digest(file: Path) -> str:
    """What tells the bytes of a file apart."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()[:32]


def content_key(file: Path) -> str:
    """What identifies a file's text: its bytes, its format and the version of the readers."""
    return f"{content_digest(file)}{file.suffix.lower()}-{VERSION}"


def digest_of(key: str) -> str:
    """The digest of the bytes in what identifies a file's text."""
    return key[:32]


class ExtractedCache:
    """One JSON file per content, under its digest; what was not used by a build is dropped at its end."""

    def __init__(self, folder: Path) -> None:
        refuse_link(folder)
        self.folder = folder
        self._used: set[str] = set()

    def has(self, key: str) -> bool:
        """Whether a content was read before."""
        self._used.add(self._name(key))
        return (self.folder / self._name(key)).exists()

    def get(self, key: str) -> Extracted | None:
        """The text of a content read before; None where there is none, or none that can be read."""
        self._used.add(self._name(key))
        try:
            content = unsealed_text((self.folder / self._name(key)).read_bytes())
            return None if content is None else from_json(content)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, content: bytes) -> None:
        """Keep a text as JSON; written beside and renamed, so that a kill leaves no half file."""
        self._used.add(self._name(key))
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / self._name(key), sealed_text(content))

    def drop_unused(self) -> None:
        """Forget contents that no file has any more; files of other names are not ours."""
        for file in self.folder.glob("*.json"):
            if KEPT_TEXT.fullmatch(file.name) and file.name not in self._used:
                file.unlink(missing_ok=True)

    def _name(self, key: str) -> str:
        return f"{key}.json"


def to_json(extracted: Extracted) -> bytes:
    """The one form in which texts are kept and handed from one process to another."""
    return json.dumps(asdict(extracted)).encode("ascii")  # text may hold halves of pairs, which UTF-8 cannot write


def from_json(content: bytes) -> Extracted:
    """What `to_json` wrote."""
    raw = json.loads(content)
    blocks = tuple(_block(block) for block in raw["blocks"])
    lines, labels = tuple(TextLine(**line) for line in raw["lines"]), tuple(raw["labels"])
    return Extracted(raw["title"], raw["text"], blocks, raw["pages"], tuple(raw["notes"]), lines, labels)


def _block(raw: dict[str, Any]) -> Block:
    return Block(**{**raw, "cells": _cells(raw["cells"])})


def _cells(raw: dict[str, Any] | None) -> Cells | None:
    if raw is None:
        return None
    return Cells(tuple(raw["header"]), tuple(map(tuple, raw["rows"])), raw["caption"])
