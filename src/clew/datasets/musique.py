"""MuSiQue (Trivedi et al. 2022): questions of two to four hops with their paragraphs, pooled."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from clew.core.errors import InputError
from clew.datasets.files import find_file, read_records
from clew.datasets.passages import Pool
from clew.datasets.questions import Dataset, Question


class _Paragraph(BaseModel):
    title: str
    paragraph_text: str
    is_supporting: bool = False


class _Record(BaseModel):
    id: str
    question: str
    answer: str
    answer_aliases: list[str] = []
    answerable: bool = True
    paragraphs: list[_Paragraph]
    question_decomposition: list[dict[str, int | str | None]] = []


def load_musique(path: Path, split: str | None = None) -> Dataset:
    """`musique:FILE`: official records without the unanswerable ones; the type is the number of hops."""
    if split is not None:
        raise InputError(f"musique takes a file of records and no split: musique:{path}")
    file = find_file(path)
    pool = Pool()
    questions, contexts = [], {}
    for record in read_records(file, _Record):
        given = [pool.add(paragraph.title, [paragraph.paragraph_text]).key for paragraph in record.paragraphs]
        if not record.answerable:
            continue
        contexts[record.id] = tuple(dict.fromkeys(given))
        gold = [key for key, paragraph in zip(given, record.paragraphs, strict=True) if paragraph.is_supporting]
        questions.append(
            Question(
                id=record.id,
                text=record.question,
                answers=(record.answer, *record.answer_aliases),
                type=f"{record.id[0]}-hop" if record.id[1:4] == "hop" else None,
                passages=tuple(dict.fromkeys(gold)),
                extra={"decomposition": record.question_decomposition},
            )
        )
    return Dataset(
        "musique",
        tuple(questions),
        "documents",
        file.name.split(".json")[0],
        match="key",
        paragraphs=pool.paragraphs(),
        contexts=contexts,
    )
