"""Paths learned from confirmed answers, stored beside a knowledge base."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from clew.answering.queries.relation_paths import Move
from clew.answering.reading.path_ranker import Taught
from clew.core.errors import CorruptError
from clew.core.texts import parse_json
from clew.store.graph.manifest import LEARNED, sealed_text, unsealed_or_older
from clew.store.graph.storage import change_file


def keep_taught(folder: Path, taught: Sequence[Taught]) -> None:
    """What was learned from the confirmed answers of this base."""
    lines = [
        {"question": one.question, "moves": [[move.relation, move.direction] for move in one.moves]} for one in taught
    ]
    content = sealed_text(json.dumps(lines, indent=1, ensure_ascii=False).encode() + b"\n")
    change_file(folder, LEARNED, lambda _: content)


def read_taught(folder: Path) -> tuple[Taught, ...]:
    """What was learned for this base; empty where nothing was."""
    file = folder / LEARNED
    if not file.exists():
        return ()
    try:
        lines = parse_json(unsealed_or_older(file.read_bytes()) or b"")
        return tuple(Taught(str(line["question"]), tuple(_move(*move) for move in line["moves"])) for line in lines)
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise CorruptError(
            f"{file} does not hold learned paths: remove it, or learn again with `clew feedback --learn`"
        ) from error


def _move(relation: str, direction: str) -> Move:
    if direction not in ("out", "in"):
        raise ValueError(direction)
    return Move(str(relation), "out" if direction == "out" else "in")


def rightness(ends: Sequence[str], answers: Sequence[str]) -> float:
    """F1 of the keys a path leads to against those that were confirmed."""
    shared = len(set(ends) & set(answers))
    return 2 * shared / (len(set(ends)) + len(set(answers))) if shared else 0.0
