"""Anyone's own questions: JSON lines with `question` and `answers`, each line optionally with more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import AliasChoices, BaseModel, Field

from clew.core.errors import InputError
from clew.datasets.files import find_file, read_records
from clew.datasets.questions import Dataset, Question


class _Record(BaseModel):
    model_config = {"extra": "allow"}

    id: str | int | None = None
    question: str = Field(validation_alias=AliasChoices("question", "query"))
    answers: list[str | int] | str | int = Field(validation_alias=AliasChoices("answers", "answer_ids", "answer"))
    type: str | None = None
    topics: list[str | int] = []
    split: str | None = None


def load_plain(path: Path, split: str | None = None) -> Dataset:
    """Questions from JSON lines; with a split, those whose `split` says so; without an id, the line's place is it."""
    file = find_file(path)
    records = [
        (place, record)
        for place, record in enumerate(read_records(file, _Record), 1)
        if split is None or record.split == split
    ]
    if not records:
        raise InputError(f"{file}: no question" + ("" if split is None else f" of the split {split!r}"))
    name = file.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")
    if name in ("questions", "queries"):  # the folder says more
        name = file.absolute().parent.name
    questions = tuple(_question(place, record) for place, record in records)
    return Dataset(name, questions, "graph", split, match="auto")


def _question(place: int, record: _Record) -> Question:
    answers = record.answers if isinstance(record.answers, list) else [record.answers]
    extra: dict[str, Any] = record.model_extra or {}
    return Question(
        id=str(place if record.id is None else record.id),
        text=record.question,
        answers=tuple(str(answer) for answer in answers),
        type=record.type,
        topics=tuple(str(topic) for topic in record.topics),
        extra=extra,
    )
