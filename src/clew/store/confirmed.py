"""Confirmed answers, stored beside a knowledge base: outside its generations, so that a rebuild keeps them."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ValidationError

from clew.core.errors import CorruptError
from clew.store.graph.manifest import CONFIRMED, sealed_text, unsealed_or_older
from clew.store.graph.storage import change_file


class Confirmed(BaseModel):
    """A question and the keys of the nodes that answer it; without any, what was confirmed before is withdrawn."""

    question: str
    answers: list[str]


def keep_confirmed(folder: Path, confirmed: Confirmed) -> int:
    """Add one; returns how many there are."""
    line = confirmed.model_dump_json().encode() + b"\n"
    change_file(folder, CONFIRMED, lambda old: sealed_text((b"" if old is None else _lines(folder, old)) + line))
    return len(read_confirmed(folder))


def read_confirmed(folder: Path) -> list[Confirmed]:
    """All of them; a question that was confirmed again counts as it was confirmed last."""
    file = folder / CONFIRMED
    if not file.exists():
        return []
    found: dict[str, Confirmed] = {}
    for number, line in enumerate(_lines(folder, file.read_bytes()).splitlines(), 1):
        try:
            one = Confirmed.model_validate_json(line)
        except ValidationError as error:
            raise CorruptError(f"{file}, line {number} is no confirmed answer: correct or remove it") from error
        found[one.question] = one
    return [one for one in found.values() if one.answers]


def _lines(folder: Path, content: bytes) -> bytes:
    """The confirmed answers without their digest."""
    lines = unsealed_or_older(content)
    if lines is None:
        raise CorruptError(f"{folder / CONFIRMED} was altered: `clew repair {folder}` keeps the lines that can be read")
    return lines


def repair_confirmed(folder: Path) -> tuple[int, int]:
    """Keep the lines of an altered file that can be read. Return how many are kept, and how many were lost."""
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
