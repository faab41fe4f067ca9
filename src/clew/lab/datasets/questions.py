"""Questions with gold answers, and data sets."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from clew.core.errors import InputError
from clew.core.proper_names import sentences
from clew.lab.datasets.files import read_rows
from clew.store.graph.tables import EDGE_COLUMNS, Piece, Tables

Kind = Literal["retrieval", "graph", "documents"]
"""Selects the metrics: ranked nodes, answer sets over a graph, or passages and a written answer."""

Match = Literal["key", "strict", "lenient"]
"""How to compare a candidate with gold: by key, by normalised name, or by Think-on-Graph's substring rule."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its gold answer. Methods see only `text`."""

    id: str
    text: str
    answers: tuple[str, ...]
    """Gold keys or names. For documents: accepted texts of the single answer.

    If both this and `value` are empty, the base has no answer, and the right reply is to say so.
    """
    type: str | None = None
    topics: tuple[str, ...] = ()
    """The entities the question is about, by name or key."""
    passages: tuple[str, ...] = ()
    """Keys of the passages that support the answer."""
    structures: tuple[str, ...] = ()
    """Keys of the pages and tables mentioned in the question."""
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Additional accepted names of an answer, or keys of passages that can replace a gold passage."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Other data from the data set: gold paths, supporting sentences, decompositions."""
    value: bool | int | float | str | None = None
    """Expected number, boolean or text, if the answer is not a set of nodes."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a document data set, with the data set's sentence boundaries."""

    key: str
    title: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentences joined into one text."""
        return " ".join(sentence.strip() for sentence in self.sentences)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Questions of one split, with the data set's knowledge base if it has one."""

    name: str
    questions: tuple[Question, ...]
    kind: Kind
    split: str | None = None
    match: Match | Literal["auto"] = "strict"
    """`auto` matches by key if every gold answer is a key of the base, otherwise by name."""
    base: Tables | None = None
    paragraphs: tuple[Paragraph, ...] = ()
    """All paragraphs of a document data set."""
    contexts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Maps a question id to the keys of its paragraphs, for evaluation with one small corpus per question."""
    portion: str = "full"
    """Part of the split, to keep full, sampled and human sets apart."""

    def __post_init__(self) -> None:
        """Raise InputError if two questions have the same id."""
        seen: set[str] = set()
        for question in self.questions:
            if question.id in seen:
                raise InputError(f"{self.name}: two questions have the id {question.id!r}; ids must be unique")
            seen.add(question.id)

    def with_topics(self) -> Dataset:
        """Return the questions with their topic entities marked, like in data sets that provide them."""
        marked = tuple(replace(question, text=mark_topics(question)) for question in self.questions)
        return replace(self, questions=marked, portion=f"{self.portion}, topics given")

    def without_titles(self) -> Dataset:
        """Return the corpus with numbers instead of titles, to simulate documents without usable titles."""
        number = {paragraph.key: f"passage {place}" for place, paragraph in enumerate(self.paragraphs, 1)}
        return replace(
            self,
            questions=tuple(_renamed(question, number) for question in self.questions),
            paragraphs=tuple(Paragraph(number[p.key], "", p.sentences) for p in self.paragraphs),
            contexts={id: tuple(number[key] for key in keys) for id, keys in self.contexts.items()},
            portion=f"{self.portion}, without titles",
        )

    def in_sentences(self) -> Dataset:
        """Return the corpus with one passage per sentence, like Knowledge Graph Prompting.

        Gold passages are the supporting sentences if the data set has them. Otherwise any sentence of a gold paragraph
        counts.
        """
        cut = {paragraph.key: _sentences(paragraph) for paragraph in self.paragraphs}
        keys = {key: tuple(one.key for one in own) for key, own in cut.items()}
        return replace(
            self,
            questions=tuple(_about_sentences(question, keys) for question in self.questions),
            paragraphs=tuple(one for own in cut.values() for one in own),
            contexts={id: tuple(one for key in given for one in keys[key]) for id, given in self.contexts.items()},
            portion=f"{self.portion}, sentences",
        )

    def with_documents(self, count: int, seed: int = 0) -> Dataset:
        """Give each question `count` documents: its gold passages and random other passages."""
        everything = [paragraph.key for paragraph in self.paragraphs]
        contexts = {}
        for question in self.questions:
            gold = dict.fromkeys(question.passages)
            others = [key for key in everything if key not in gold]
            drawn = random.Random(f"{seed} {question.id}").sample(others, max(0, min(count - len(gold), len(others))))
            contexts[question.id] = (*gold, *drawn)
        return replace(self, contexts=contexts, portion=f"{self.portion}, {count} documents each")

    def sample(self, limit: int | None, seed: int = 0) -> Dataset:
        """Return a random sample of the questions in original order. Return all if `limit` is not smaller."""
        if limit is None or limit >= len(self.questions):
            return self
        if limit < 1:
            raise InputError(f"the limit must be at least 1, not {limit}")
        chosen = sorted(random.Random(seed).sample(range(len(self.questions)), limit))
        portion = f"{limit} of {len(self.questions)}, seed {seed}"
        return replace(
            self,
            questions=tuple(self.questions[place] for place in chosen),
            portion=portion if self.portion == "full" else f"{self.portion}: {portion}",
        )


def _renamed(question: Question, names: Mapping[str, str]) -> Question:
    return replace(
        question,
        passages=tuple(names[key] for key in question.passages),
        aliases={names[key]: tuple(names[other] for other in others) for key, others in question.aliases.items()},
        extra={},  # contains titles
    )


def _sentences(paragraph: Paragraph) -> list[Paragraph]:
    """Split a paragraph into one passage per sentence. Use a sentence splitter if the data set has no sentences."""
    given = [sentence for sentence in paragraph.sentences if sentence.strip()]
    texts = given if len(given) > 1 else sentences(paragraph.text) or [paragraph.text]
    return [
        Paragraph(f"{paragraph.key} ({number})", paragraph.title, (text.strip(),))
        for number, text in enumerate(texts, 1)
    ]


def _about_sentences(question: Question, keys: Mapping[str, tuple[str, ...]]) -> Question:
    named = [(key, number) for key, number in question.extra.get("supporting_facts", ()) if number < len(keys[key])]
    if named:
        gold = tuple(dict.fromkeys(keys[key][number] for key, number in named))
        return replace(question, passages=gold, aliases={})
    gold = tuple(keys[key][0] for key in question.passages)
    others = {keys[key][0]: keys[key][1:] for key in question.passages}
    return replace(question, passages=gold, aliases=others)


def mark_topics(question: Question) -> str:
    """Mark the topics with brackets where they occur, otherwise append them. Keep existing marks."""
    text = question.text
    for topic in question.topics:
        if f"[{topic}]" in text:
            continue
        found = re.search(rf"(?<![\w\[]){re.escape(topic)}(?![\w\]])", text, re.IGNORECASE)
        text = f"{text} [{topic}]" if found is None else f"{text[: found.start()]}[{topic}]{text[found.end() :]}"
    return text


class ParagraphPool:
    """Collects paragraphs. Equal title and text give one paragraph. A different text gets a new key."""

    def __init__(self) -> None:
        self._by_content: dict[tuple[str, tuple[str, ...]], Paragraph] = {}
        self._keys: set[str] = set()

    def add(self, title: str, sentences: Iterable[str]) -> Paragraph:
        """Return the paragraph with this title and text. Its key is the title, numbered if the title is taken."""
        content = (title, tuple(sentences))
        if content not in self._by_content:
            key, number = title, 1
            while key in self._keys:
                number += 1
                key = f"{title} #{number}"
            self._keys.add(key)
            self._by_content[content] = Paragraph(key, title, content[1])
        return self._by_content[content]

    def paragraphs(self) -> tuple[Paragraph, ...]:
        """Return all paragraphs in insertion order."""
        return tuple(self._by_content.values())


def triple_tables(file: Path, separator: str = "\t", subject_class: str = "entity") -> Tables:
    """Read head, relation and tail per line. `subject_class` corresponds to `--class`."""
    rows = list(read_rows(file, separator, 3))
    columns = {
        name: pa.array([cells[index] for _, cells in rows], pa.string()) for index, name in enumerate(EDGE_COLUMNS)
    }
    lines = pa.array([number for number, _ in rows], pa.int64())
    piece = Piece(pa.table(columns), str(file), lines=lines)
    return Tables((), (piece,), implicit=True, implicit_type=subject_class)
