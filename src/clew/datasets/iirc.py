"""IIRC (Ferguson et al., EMNLP 2020): questions about a text whose answers need the articles it links to."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel

from clew.core.errors import InputError
from clew.datasets.files import find_file, read_json, read_records
from clew.datasets.questions import Dataset, Paragraph, Pool, Question
from clew.reading.language.proper_names import sentences


class _Span(BaseModel):
    text: str


class _Answer(BaseModel):
    type: str
    answer_spans: list[_Span] = []
    answer_value: str | int | float | None = None
    answer_unit: str | None = None

    @property
    def wordings(self) -> tuple[str, ...]:
        """The accepted wordings; none where the question has no answer."""
        if self.type == "span":
            return (", ".join(span.text for span in self.answer_spans),) if self.answer_spans else ()
        if self.type in ("value", "binary") and self.answer_value is not None:
            value = str(self.answer_value)
            return (f"{value} {self.answer_unit}", value) if self.answer_unit else (value,)
        return ()


class _Context(BaseModel):
    text: str
    passage: str


class _Question(BaseModel):
    qid: str
    question: str
    answer: _Answer
    context: list[_Context] = []


class _Link(BaseModel):
    target: str


class _Text(BaseModel):
    pid: str
    title: str
    text: str
    links: list[_Link] = []
    questions: list[_Question]


OWN = "main"
"""How IIRC calls the text that a question belongs to, as opposed to the articles it links to."""
_TAG = re.compile(r"<[^<>]+>")


def load_iirc(path: Path, split: str | None = None) -> Dataset:
    """`iirc:DIR:dev`, with DIR holding `dev.json` and `context_articles.json`: questions that have an answer.

    A question's documents are its own text and the articles that the text links to, each cut into its paragraphs.
    """
    if split is None:
        raise InputError(f"IIRC needs the name of a question file, such as iirc:{path}:dev")
    file = find_file(path / f"{split}.json", path / f"iirc_{split}.json")
    articles = read_json(find_file(path / "context_articles.json"))
    if not isinstance(articles, dict):
        raise InputError(f"{path}: context_articles.json must be an object, from titles to texts")
    pool, by_title = Pool(), {title.casefold(): (title, text) for title, text in articles.items()}
    cut: dict[str, list[Paragraph]] = {}
    questions, contexts = [], {}
    for record in read_records(file, _Text):
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


def _paragraphs(pool: Pool, title: str, text: str) -> list[Paragraph]:
    """The paragraphs of an article, without its tags."""
    plain = html.unescape(_TAG.sub("", text))
    parts = [part.strip() for part in re.split(r"\n+", plain) if part.strip()]
    return [pool.add(title, sentences(part) or [part]) for part in parts]


def _supporting(context: _Context, paragraphs: Sequence[Paragraph]) -> tuple[str, int] | None:
    """The paragraph and the number of the sentence that hold a supporting text; None where none does."""
    wanted = " ".join(html.unescape(_TAG.sub("", context.text)).split())
    for paragraph in paragraphs:
        for number, sentence in enumerate(paragraph.sentences):
            said = " ".join(sentence.split())
            if wanted in said or said in wanted:
                return paragraph.key, number
    return None
