"""Load questions over passages: HotpotQA, 2Wiki, MuSiQue, IIRC and plain corpora."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, BaseModel, Field, field_validator

from clew.core.errors import InputError
from clew.core.proper_names import sentences
from clew.lab.datasets.files import find_file, read_json, read_records, refuse_split
from clew.lab.datasets.questions import Dataset, Paragraph, ParagraphPool, Question


class HotpotRecord(BaseModel):
    """A question of HotpotQA or 2Wiki, with its texts as titles and sentences."""

    id: str = Field(validation_alias="_id")
    question: str
    answer: str
    type: str | None = None
    level: str | None = None
    supporting_facts: list[tuple[str, int]]
    context: list[tuple[str, list[str]]]
    evidences: list[list[str]] = []

    @field_validator("supporting_facts", "context", mode="before")
    @classmethod
    def _as_pairs(cls, value: Any) -> Any:
        """Convert the column form {"title": […], "sent_id": […]}, or with "sentences", to pairs."""
        if not isinstance(value, dict):
            return value
        return list(zip(value["title"], value["sent_id" if "sent_id" in value else "sentences"], strict=True))


def load_hotpotqa(path: Path, split: str | None, name: str) -> Dataset:
    """Load `hotpotqa:FILE` or `2wiki:FILE`: official records, as a JSON array or JSON lines."""
    refuse_split(name, path, split)
    file = find_file(path)
    pool = ParagraphPool()
    questions, contexts = [], {}
    for record in read_records(file, HotpotRecord):
        given = {title: pool.add(title, sentences).key for title, sentences in record.context}
        contexts[record.id] = tuple(dict.fromkeys(given.values()))
        gold = dict.fromkeys(title for title, _ in record.supporting_facts)
        if absent := [title for title in gold if title not in given]:
            raise InputError(f"{file}: question {record.id}: no supporting title {absent[0]!r} in its context")
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
    return _of_file(name, file, questions, pool, contexts)


class _Paragraph(BaseModel):
    title: str
    paragraph_text: str
    is_supporting: bool = False


class MusiqueRecord(BaseModel):
    """A question of MuSiQue with its paragraphs."""

    id: str
    question: str
    answer: str
    answer_aliases: list[str] = []
    answerable: bool = True
    paragraphs: list[_Paragraph]
    question_decomposition: list[dict[str, int | str | None]] = []


def load_musique(path: Path, split: str | None = None) -> Dataset:
    """Load `musique:FILE`: official records without the unanswerable ones. The type is the number of hops."""
    refuse_split("musique", path, split)
    file = find_file(path)
    pool = ParagraphPool()
    questions, contexts = [], {}
    for record in read_records(file, MusiqueRecord):
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
    return _of_file("musique", file, questions, pool, contexts)


def _of_file(
    name: str, file: Path, questions: list[Question], pool: ParagraphPool, contexts: dict[str, tuple[str, ...]]
) -> Dataset:
    """Build a data set from one file with passages per question. The file name is the split."""
    split, paragraphs = file.name.split(".json")[0], pool.paragraphs()
    return Dataset(name, tuple(questions), "documents", split, match="key", paragraphs=paragraphs, contexts=contexts)


class _Text(BaseModel):
    title: str
    text: str | list[str]


class _CorpusRecord(BaseModel):
    model_config = {"extra": "allow"}

    id: str | int | None = Field(default=None, validation_alias=AliasChoices("id", "_id"))
    question: str
    answer: str | list[str] = []
    gold_titles: list[str] = []
    gold_structures: list[str] = []
    type: str | None = None


def load_corpus(path: Path, split: str | None = None) -> Dataset:
    """Load `corpus:DIR`: corpus.jsonl or .json (title, text) and questions.jsonl (question, gold_titles, answer)."""
    refuse_split("corpus", path, split)
    pool = ParagraphPool()
    by_title: dict[str, list[str]] = {}
    for title, text in _texts(find_file(path / "corpus.jsonl", path / "corpus.json")):
        by_title.setdefault(title, []).append(pool.add(title, text).key)
    file = find_file(path / "questions.jsonl", path / "questions.json")
    questions = []
    for place, record in enumerate(read_records(file, _CorpusRecord), 1):
        if absent := [title for title in record.gold_titles if title not in by_title]:
            raise InputError(f"{file}: question {place}: no text of the corpus has the gold title {absent[0]!r}")
        questions.append(
            Question(
                id=str(place if record.id is None else record.id),
                text=record.question,
                answers=(record.answer,) if isinstance(record.answer, str) else tuple(record.answer),
                type=record.type,
                passages=tuple(by_title[title][0] for title in dict.fromkeys(record.gold_titles)),
                aliases={by_title[title][0]: tuple(by_title[title][1:]) for title in record.gold_titles},
                structures=tuple(record.gold_structures),
                extra=record.model_extra or {},
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


class _Span(BaseModel):
    text: str


class _Answer(BaseModel):
    type: str
    answer_spans: list[_Span] = []
    answer_value: str | int | float | None = None
    answer_unit: str | None = None

    @property
    def wordings(self) -> tuple[str, ...]:
        """Accepted answer texts. Empty if the question has no answer."""
        if self.type == "span":
            return (", ".join(span.text for span in self.answer_spans),) if self.answer_spans else ()
        if self.type in ("value", "binary") and self.answer_value is not None:
            value = str(self.answer_value)
            return (f"{value} {self.answer_unit}", value) if self.answer_unit else (value,)
        return ()


class _Context(BaseModel):
    text: str
    passage: str


class _AskedQuestion(BaseModel):
    qid: str
    question: str
    answer: _Answer
    context: list[_Context] = []


class _Link(BaseModel):
    target: str


class _Article(BaseModel):
    title: str
    text: str
    links: list[_Link] = []
    questions: list[_AskedQuestion]


OWN = "main"
"""Value of `passage` in IIRC for a question's own text. Other values are titles of linked articles."""
_TAG = re.compile(r"<[^<>]+>")


def load_iirc(path: Path, split: str | None = None) -> Dataset:
    """Load the answerable questions of `iirc:DIR:dev`. DIR contains `dev.json` and `context_articles.json`.

    IIRC (Ferguson et al., EMNLP 2020) has questions about a text whose answers need the articles it links to.

    A question's context is its own text and all articles that the text links to, split into paragraphs.
    """
    if split is None:
        raise InputError(f"IIRC needs the name of a question file, such as iirc:{path}:dev")
    file = find_file(path / f"{split}.json", path / f"iirc_{split}.json")
    articles = read_json(find_file(path / "context_articles.json"))
    if not isinstance(articles, dict):
        raise InputError(f"{path}: context_articles.json must be an object, from titles to texts")
    pool, by_title = ParagraphPool(), {title.casefold(): (title, text) for title, text in articles.items()}
    cut: dict[str, list[Paragraph]] = {}
    questions, contexts = [], {}
    for record in read_records(file, _Article):
        linked = dict.fromkeys(link.target.casefold() for link in record.links)
        own = _paragraphs(pool, record.title, record.text)
        for title in linked:
            if title in by_title and title not in cut:
                cut[title] = _paragraphs(pool, *by_title[title])
        for asked in record.questions:
            if not asked.answer.wordings:
                continue
            given = [*own, *(one for title in linked for one in cut.get(title, ()))]
            contexts[asked.qid] = tuple(dict.fromkeys(one.key for one in given))
            gold = [
                _supporting(one, own if one.passage == OWN else cut.get(one.passage.casefold(), []))
                for one in asked.context
            ]
            questions.append(
                Question(
                    id=asked.qid,
                    text=asked.question,
                    answers=asked.answer.wordings,
                    type=asked.answer.type,
                    passages=tuple(dict.fromkeys(key for key, _ in filter(None, gold))),
                    extra={"supporting_facts": list(dict.fromkeys(filter(None, gold)))},
                )
            )
    return Dataset(
        "iirc", tuple(questions), "documents", split, match="key", paragraphs=pool.paragraphs(), contexts=contexts
    )


def _paragraphs(pool: ParagraphPool, title: str, text: str) -> list[Paragraph]:
    """Split an article into paragraphs and remove its tags."""
    parts = [part.strip() for part in re.split(r"\n+", html.unescape(_TAG.sub("", text))) if part.strip()]
    return [pool.add(title, sentences(part) or [part]) for part in parts]


def _supporting(context: _Context, paragraphs: Sequence[Paragraph]) -> tuple[str, int] | None:
    """Return the paragraph key and sentence number of a supporting text, or None if no sentence matches."""
    wanted = " ".join(html.unescape(_TAG.sub("", context.text)).split())
    for paragraph in paragraphs:
        for number, sentence in enumerate(paragraph.sentences):
            said = " ".join(sentence.split())
            if wanted in said or said in wanted:
                return paragraph.key, number
    return None
