"""Confirmed answers, stored outside the generations of a knowledge base, so that a rebuild keeps them."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ValidationError

from clew.core.errors import CorruptError
from clew.store.graph.manifest import CONFIRMED, sealed_text, unsealed_or_older
from clew.store.graph.storage import change_file


class Confirmed(BaseModel):
    """A question and the keys of its answer nodes. An empty list withdraws an earlier confirmation."""

    question: str
    answers: list[str]


def keep_confirmed(folder: Path, confirmed: Confirmed) -> int:
    """Add a confirmed answer. Return the number of confirmed answers."""
    line = confirmed.model_dump_json().encode() + b"\n"
    change_file(folder, CONFIRMED, lambda old: sealed_text((b"" if old is None else _lines(folder, old)) + line))
    return len(read_confirmed(folder))


def read_confirmed(folder: Path) -> list[Confirmed]:
    """Return all confirmed answers. The last confirmation of a question counts."""
    file = folder / CONFIRMED
    if not file.exists():
        return []
    confirmed: dict[str, Confirmed] = {}
    for number, line in enumerate(_lines(folder, file.read_bytes()).splitlines(), 1):
        try:
            entry = Confirmed.model_validate_json(line)
        except ValidationError as error:
            raise CorruptError(f"{file}, line {number} is not a confirmed answer: correct or remove it") from error
        confirmed[entry.question] = entry
    return [entry for entry in confirmed.values() if entry.answers]


def _lines(folder: Path, content: bytes) -> bytes:
    """Return the confirmed answers without their digest."""
    lines = unsealed_or_older(content)
    if lines is None:
        raise CorruptError(f"{folder / CONFIRMED} was altered: run `clew repair {folder}`, which keeps readable lines")
    return lines


def repair_confirmed(folder: Path) -> tuple[int, int]:
    """Keep the readable lines of an altered file. Return the number of kept and lost lines."""
    lines = (folder / CONFIRMED).read_bytes().partition(b"\n")[2].splitlines(keepends=True)
    kept = [line for line in lines if _is_confirmed(line)]
    change_file(folder, CONFIRMED, lambda _: sealed_text(b"".join(kept)))
    return len(kept), len(lines) - len(kept)


def _is_confirmed(line: bytes) -> bool:
    try:
        Confirmed.model_validate_json(line)
    except ValidationError:
        return False
    return line.endswith(b"\n")
