"""What the reader learned for one base: how far the vectors of its relations and attributes were moved.

Kept under a seal in a file beside the base, outside its generations; without the file everything is as shipped.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clew.answering.reading.scores import Floats
from clew.core.disk import refuse_link
from clew.core.errors import CorruptError, ModelError
from clew.models.embedding.words import DIMENSION
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.manifest import FITTED, sealed_text, unsealed_text
from clew.store.graph.protocol import Explorable
from clew.store.graph.storage import change_file


@dataclass(frozen=True, eq=False)
class Fitted:
    """The moves by the text of what was moved, and the version of the encoders that they belong to."""

    encoders: str
    moves: Mapping[str, Floats]

    def of(self, texts: Sequence[str]) -> Floats:
        """A row for each text; what was not there in training stays where it is."""
        unmoved = np.zeros(DIMENSION, dtype=np.float32)
        return np.array([self.moves.get(text, unmoved) for text in texts], dtype=np.float32).reshape(-1, DIMENSION)

    def keep(self, folder: Path) -> None:
        """From now on questions over the base in this folder are read with it."""
        moves = {text: base64.b64encode(move.astype("<f2").tobytes()).decode() for text, move in self.moves.items()}
        content = json.dumps({"encoders": self.encoders, "moves": moves}).encode() + b"\n"
        change_file(folder, FITTED, lambda _: sealed_text(content))

    @classmethod
    def beside(cls, kb: Explorable, encoders: str) -> Fitted | None:
        """What was learned for a base; None where nothing was."""
        file = kb.folder / FITTED if isinstance(kb, ArrayKnowledgeBase) else None
        if file is None or not file.exists():
            return None
        undo = f"`clew train reader {file.parent} --undo` removes it"
        refuse_link(file)
        try:
            raw = json.loads(unsealed_text(file.read_bytes()) or b"")
            moves = {str(text): _move(move) for text, move in raw["moves"].items()}
            found = cls(str(raw["encoders"]), moves)
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise CorruptError(f"{file} was altered or cut: {undo}") from error
        if found.encoders != encoders:
            raise ModelError(f"{file} was fitted to other weights of the reader: fit it again, or {undo}")
        return found


def forget(folder: Path) -> bool:
    """Read questions as shipped again; whether there was anything to forget."""
    was_there = (folder / FITTED).exists()
    (folder / FITTED).unlink(missing_ok=True)
    return was_there


def _move(text: str) -> Floats:
    move = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f2")
    if move.shape != (DIMENSION,) or not np.isfinite(move).all():
        raise ValueError(f"{len(move)} numbers")
    return move.astype(np.float32)
