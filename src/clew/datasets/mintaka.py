"""Mintaka (Sen et al. 2022): questions over Wikidata with nine types; bring the base."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field

from clew.datasets.files import find_file, read_records
from clew.datasets.questions import Dataset, Question


class _Labelled(BaseModel):
    name: str
    label: str | dict[str, str | None] | None = None


class _Gold(BaseModel):
    type: str = Field(validation_alias="answerType")
    answer: list[_Labelled | bool | int | float | str] | None = None
    mention: str = ""


class _Mentioned(BaseModel):
    name: str | int | float | None = None
    type: str = Field(validation_alias="entityType")
    label: str | None = None


class _Record(BaseModel):
    id: str
    question: str
    answer: _Gold
    type: str = Field(validation_alias="complexityType")
    category: str
    topics: list[_Mentioned] = Field(default=[], validation_alias="questionEntity")


def load_mintaka(path: Path, split: str | None = None) -> Dataset:
    """`mintaka:FILE` or `mintaka:DIR:dev`; an answer that is no entity is its value in words, as people write it."""
    file = find_file(path) if split is None else find_file(path / f"mintaka_{split}.json")
    questions = tuple(_question(record) for record in read_records(file, _Record))
    return Dataset("mintaka", questions, "graph", split or file.name.split(".json")[0])


def _question(record: _Record) -> Question:
    gold = record.answer.answer or []
    aliases = {}
    answers = []
    for answer in gold:
        if isinstance(answer, _Labelled):
            labels = [answer.label] if isinstance(answer.label, str) else list((answer.label or {}).values())
            aliases[answer.name] = tuple(dict.fromkeys(label for label in labels if label))
            answers.append(answer.name)
        else:
            answers.append(("yes" if answer else "no") if isinstance(answer, bool) else str(answer))
    if not answers:  # the answer has no identity in Wikidata: its words are all there is
        answers.append(record.answer.mention)
    return Question(
        id=record.id,
        text=record.question,
        answers=tuple(dict.fromkeys(answers)),
        type=record.type,
        topics=tuple(str(topic.name) for topic in record.topics if topic.type == "entity"),
        aliases=aliases,
        extra={"category": record.category, "answer_type": record.answer.type},
    )
