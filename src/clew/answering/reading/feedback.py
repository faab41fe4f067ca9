"""Paths learned from confirmed answers, stored next to a knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clew.answering.queries.relation_paths import Move
from clew.answering.reading.fitted import Fitted, change_fit, keep_paths, paths_with_fit
from clew.answering.reading.path_ranker import Taught
from clew.core.errors import CorruptError
from clew.core.texts import parse_json
from clew.store.graph.manifest import LEARNED, unsealed_or_older


def keep_taught(folder: Path, taught: Sequence[Taught], fitted: Fitted | None = None) -> None:
    """Store the paths learned from confirmed answers of this base, and `fitted` in the same step."""
    paths = [
        {"question": one.question, "moves": [[move.relation, move.direction] for move in one.moves]} for one in taught
    ]
    if fitted is None and paths_with_fit(folder) is None:
        keep_paths(folder, paths)
        return
    change_fit(folder, {**(fitted.to_json() if fitted else {}), "paths": paths})
    (folder / LEARNED).unlink(missing_ok=True)  # the paths stored with the fit replace this file


def read_taught(folder: Path) -> tuple[Taught, ...]:
    """Return the paths learned for this base. Empty if it has no paths."""
    file, lines = folder / LEARNED, paths_with_fit(folder)
    if lines is None and not file.exists():
        return ()
    try:
        if lines is None:
            lines = parse_json(unsealed_or_older(file.read_bytes()) or b"")
        return tuple(Taught(str(line["question"]), tuple(_move(*move) for move in line["moves"])) for line in lines)
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise CorruptError(
            f"{file} does not contain learned paths: remove it, or learn again with `clew feedback --learn`"
        ) from error


def _move(relation: str, direction: str) -> Move:
    if direction not in ("out", "in"):
        raise ValueError(direction)
    return Move(str(relation), "out" if direction == "out" else "in")


def rightness(ends: Sequence[str], answers: Sequence[str]) -> float:
    """Return the F1 of the keys at the end of a path against the confirmed keys."""
    shared = len(set(ends) & set(answers))
    return 2 * shared / (len(set(ends)) + len(set(answers))) if shared else 0.0
