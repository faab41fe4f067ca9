"""HotpotQA (Yang et al. 2018) and 2WikiMultiHopQA (Ho et al. 2020): records of one form, their paragraphs pooled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, field_validator

from clew.core.errors import InputError
from clew.datasets.files import find_file, read_records
from clew.datasets.passages import Pool
from clew.datasets.questions import Dataset, Question


class _Record(BaseModel):
    id: str = Field(validation_alias="_id")
    question: str
    answer: str
    type: str | None = None
    level: str | None = None
    supporting_facts: list[tuple[str, int]]
    context: list[tuple[str, list[str]]]
    evidences: list[list[str]] = []

    @field_validator("supporting_facts", mode="before")
    @classmethod
    def _facts_as_pairs(cls, value: Any) -> Any:
        """The column form of the same records: {"title": […], "sent_id": […]}."""
        return list(zip(value["title"], value["sent_id"], strict=True)) if isinstance(value, dict) else value

    @field_validator("context", mode="before")
    @classmethod
    def _context_as_pairs(cls, value: Any) -> Any:
        """The column form of the same records: {"title": […], "sentences": […]}."""
        return list(zip(value["title"], value["sentences"], strict=True)) if isinstance(value, dict) else value


def load_hotpotqa(path: Path, split: str | None = None) -> Dataset:
    """`hotpotqa:FILE`: official records, a JSON array or JSON lines."""
    return _load("hotpotqa", path, split)


def load_2wiki(path: Path, split: str | None = None) -> Dataset:
    """`2wiki:FILE`: official records, a JSON array or JSON lines."""
    return _load("2wiki", path, split)


def _load(name: str, path: Path, split: str | None) -> Dataset:
    if split is not None:
        raise InputError(f"{name} takes a file of records and no split: {name}:{path}")
    file = find_file(path)
    pool = Pool()
    questions, contexts = [], {}
    for record in read_records(file, _Record):
        given = {title: pool.add(title, sentences).key for title, sentences in record.context}
        contexts[record.id] = tuple(dict.fromkeys(given.values()))
        gold = dict.fromkeys(title for title, _ in record.supporting_facts)
        if absent := [title for title in gold if title not in given]:
            raise InputError(f"{file}: question {record.id}: its context lacks the supporting title {absent[0]!r}")
        questions.append(
            Question(
                id=record.id,
                text=record.question,
                answers=(record.answer,),
                type=record.type,
                passages=tuple(given[title] for title in gold),
                extra={
                    "supporting_facts": [(given[title], sentence) for title, sentence in record.supporting_facts],
                    "evidences": record.evidences,
                    "level": record.level,
                },
            )
        )
    return Dataset(
        name,
        tuple(questions),
        "documents",
        file.name.split(".json")[0],
        match="key",
        paragraphs=pool.paragraphs(),
        contexts=contexts,
    )
