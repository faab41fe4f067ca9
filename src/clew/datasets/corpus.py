"""A corpus of titled texts with questions about it: the plain form for anyone's own multi-document benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import AliasChoices, BaseModel, Field

from clew.core.errors import InputError
from clew.datasets.files import find_file, read_json, read_records
from clew.datasets.passages import Pool
from clew.datasets.questions import Dataset, Question


class _Text(BaseModel):
    title: str
    text: str | list[str]


class _Record(BaseModel):
    model_config = {"extra": "allow"}

    id: str | int | None = Field(default=None, validation_alias=AliasChoices("id", "_id"))
    question: str
    answer: str | list[str] = []
    gold_titles: list[str] = []
    gold_structures: list[str] = []
    type: str | None = None


def load_corpus(path: Path, split: str | None = None) -> Dataset:
    """`corpus:DIR`: corpus.jsonl or .json (title, text) and questions.jsonl (question, gold_titles, answer)."""
    if split is not None:
        raise InputError(f"corpus takes a folder and no split: corpus:{path}")
    pool = Pool()
    by_title: dict[str, list[str]] = {}
    for title, sentences in _texts(find_file(path / "corpus.jsonl", path / "corpus.json")):
        by_title.setdefault(title, []).append(pool.add(title, sentences).key)
    file = find_file(path / "questions.jsonl", path / "questions.json")
    questions = []
    for place, record in enumerate(read_records(file, _Record), 1):
        if absent := [title for title in record.gold_titles if title not in by_title]:
            raise InputError(f"{file}: question {place}: no text of the corpus has the gold title {absent[0]!r}")
        extra: dict[str, Any] = record.model_extra or {}
        questions.append(
            Question(
                id=str(place if record.id is None else record.id),
                text=record.question,
                answers=(record.answer,) if isinstance(record.answer, str) else tuple(record.answer),
                type=record.type,
                passages=tuple(by_title[title][0] for title in dict.fromkeys(record.gold_titles)),
                aliases={by_title[title][0]: tuple(by_title[title][1:]) for title in record.gold_titles},
                structures=tuple(record.gold_structures),
                extra=extra,
            )
        )
    return Dataset(path.name, tuple(questions), "documents", match="key", paragraphs=pool.paragraphs())


def _texts(file: Path) -> list[tuple[str, list[str]]]:
    if ".jsonl" not in file.name and isinstance(value := read_json(file), dict):
        pairs = value.items()  # the other common form: title → sentences
        return [(title, [text] if isinstance(text, str) else list(text)) for title, text in pairs]
    return [
        (text.title, [text.text] if isinstance(text.text, str) else text.text) for text in read_records(file, _Text)
    ]
