"""Reader fit for one base: offsets added to the vectors of its relations and attributes.

A sealed file next to the base stores the fit, outside the generations. Without the file the reader works as shipped.
The same file contains the paths learned together with the fit, so that both change in one step.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clew.answering.reading.encoders import Floats
from clew.core.disk import refuse_link
from clew.core.errors import CorruptError, ModelError
from clew.models.embedding.onnx import DIMENSION
from clew.store.graph.manifest import FITTED, LEARNED, sealed_text, unsealed_text
from clew.store.graph.protocol import Explorable
from clew.store.graph.storage import change_file


@dataclass(frozen=True, eq=False)
class Fitted:
    """Vector offsets by the text of the relation or attribute, and the version of the encoders they belong to."""

    encoders: str
    moves: Mapping[str, Floats]

    def of(self, texts: Sequence[str]) -> Floats:
        """Return an offset for each text. Texts that were not in the training get a zero offset."""
        unmoved = np.zeros(DIMENSION, dtype=np.float32)
        return np.array([self.moves.get(text, unmoved) for text in texts], dtype=np.float32).reshape(-1, DIMENSION)

    def keep(self, folder: Path) -> None:
        """Store the fit. The reader uses it for questions over the base in this folder."""
        change_fit(folder, self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Return plain values for the file."""
        moves = {text: base64.b64encode(move.astype("<f2").tobytes()).decode() for text, move in self.moves.items()}
        return {"encoders": self.encoders, "moves": moves}

    @classmethod
    def beside(cls, kb: Explorable, encoders: str) -> Fitted | None:
        """Return the fit of a base, or None if it has no fit."""
        file = None if kb.folder is None else kb.folder / FITTED
        if file is None or not file.exists():
            return None
        refuse_link(file)
        try:
            raw = _fields(file.read_bytes())
            moves = {str(text): _move(move) for text, move in raw["moves"].items()}
            found = cls(str(raw["encoders"]), moves)
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise _altered(file) from error
        if found.encoders != encoders:
            undo = f"`clew train reader {file.parent} --undo` removes it"
            raise ModelError(f"{file} was fitted to other weights of the reader: fit it again, or {undo}")
        return found


def change_fit(folder: Path, changes: dict[str, Any]) -> None:
    """Replace some fields of the stored fit in one step. The other fields stay, unless the file was altered."""

    def changed(old: bytes | None) -> bytes:
        fields = {}
        with suppress(ValueError):
            fields = _fields(old) if old else {}
        return sealed_text(json.dumps(fields | changes).encode() + b"\n")

    change_file(folder, FITTED, changed)


def paths_with_fit(folder: Path) -> list[Any] | None:
    """Return the learned paths that are stored with the fit, or None if the file has none."""
    file = folder / FITTED
    refuse_link(file)
    try:
        return _fields(file.read_bytes()).get("paths") if file.exists() else None
    except ValueError as error:
        raise _altered(file) from error


def _fields(sealed: bytes) -> dict[str, Any]:
    return dict(json.loads(unsealed_text(sealed) or b""))


def _altered(file: Path) -> CorruptError:
    return CorruptError(f"{file} was altered or cut: `clew train reader {file.parent} --undo` removes it")


def forget(folder: Path) -> bool:
    """Remove the fit but keep the learned paths. Return whether there was a fit."""
    was_there = (folder / FITTED).exists()
    with suppress(CorruptError):
        if (paths := paths_with_fit(folder)) is not None:
            keep_paths(folder, paths)
    (folder / FITTED).unlink(missing_ok=True)
    return was_there


def keep_paths(folder: Path, paths: list[Any]) -> None:
    """Store learned paths in a separate file."""
    change_file(
        folder, LEARNED, lambda _: sealed_text(json.dumps(paths, indent=1, ensure_ascii=False).encode() + b"\n")
    )


def _move(text: str) -> Floats:
    move = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f2")
    if move.shape != (DIMENSION,) or not np.isfinite(move).all():
        raise ValueError(f"{len(move)} numbers")
    return move.astype(np.float32)
