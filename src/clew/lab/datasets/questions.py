"""Questions with their gold answers, and data sets of them."""

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
"""Which metrics apply: ranked nodes, answer sets over a graph, or passages and a written answer."""

Match = Literal["key", "strict", "lenient"]
"""How a candidate is compared with gold: by key, by normalised name, or by Think-on-Graph's substring rule."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question and what is known about its answer; nothing here but `text` reaches a method."""

    id: str
    text: str
    answers: tuple[str, ...]
    """Gold keys or names; the accepted wordings of the one answer where the data set is about documents.

    None at all, and no value, mean that the base has no answer: right is to say so."""
    type: str | None = None
    topics: tuple[str, ...] = ()
    """The entities the question is about, by name or key."""
    passages: tuple[str, ...] = ()
    """Keys of the passages that support the answer."""
    structures: tuple[str, ...] = ()
    """Keys of the pages and tables the question names."""
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Further accepted names of an answer, or keys of a passage that serves as well as a gold one."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What else the data set says: gold paths, supporting sentences, decompositions."""
    value: bool | int | float | str | None = None
    """A number, true or false, or a text, where that is asked for instead of nodes."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a document data set; `sentences` are its text, cut as the data set cuts it."""

    key: str
    title: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentences as one text."""
        return " ".join(sentence.strip() for sentence in self.sentences)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Questions of one split, with the knowledge base the data set brings, where it brings one."""

    name: str
    questions: tuple[Question, ...]
    kind: Kind
    split: str | None = None
    match: Match | Literal["auto"] = "strict"
    """`auto` means by key where every gold answer is a key of the base, else by name."""
    base: Tables | None = None
    paragraphs: tuple[Paragraph, ...] = ()
    """The pooled corpus of a document data set."""
    contexts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Question id → keys of the paragraphs given with it, for the setting with one small corpus per question."""
    portion: str = "full"
    """Which part of the split this is, so that full, sampled and human sets are never mixed."""

    def __post_init__(self) -> None:
        """Refuse two questions with one id: a run could not tell their answers apart."""
        seen: set[str] = set()
        for question in self.questions:
            if question.id in seen:
                raise InputError(f"{self.name}: two questions have the id {question.id!r}; ids must be unique")
            seen.add(question.id)

    def with_topics(self) -> Dataset:
        """The same questions with their topic entities marked, as data sets that give them away have it."""
        marked = tuple(replace(question, text=mark_topics(question)) for question in self.questions)
        return replace(self, questions=marked, portion=f"{self.portion}, topics given")

    def without_titles(self) -> Dataset:
        """The same corpus under numbers instead of titles, as when documents have no usable ones."""
        number = {paragraph.key: f"passage {place}" for place, paragraph in enumerate(self.paragraphs, 1)}
        return replace(
            self,
            questions=tuple(_renamed(question, number) for question in self.questions),
            paragraphs=tuple(Paragraph(number[p.key], "", p.sentences) for p in self.paragraphs),
            contexts={id: tuple(number[key] for key in keys) for id, keys in self.contexts.items()},
            portion=f"{self.portion}, without titles",
        )

    def in_sentences(self) -> Dataset:
        """The same corpus with every sentence a passage, as Knowledge Graph Prompting cuts it.

        Gold are the supporting sentences where the data set names them; where it names paragraphs, any of its
        sentences counts for one.
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
        """Each question with `count` documents: those that support it, and others of the corpus drawn at random."""
        everything = [paragraph.key for paragraph in self.paragraphs]
        contexts = {}
        for question in self.questions:
            gold = dict.fromkeys(question.passages)
            others = [key for key in everything if key not in gold]
            drawn = random.Random(f"{seed} {question.id}").sample(others, max(0, min(count - len(gold), len(others))))
            contexts[question.id] = (*gold, *drawn)
        return replace(self, contexts=contexts, portion=f"{self.portion}, {count} documents each")

    def sample(self, limit: int | None, seed: int = 0) -> Dataset:
        """A random part of the questions, in their original order; the whole where `limit` reaches it."""
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
        extra={},  # speaks of titles
    )


def _sentences(paragraph: Paragraph) -> list[Paragraph]:
    """One passage per sentence, under the title of its paragraph; a data set that gives no sentences is cut by rule."""
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
    """The question with its topics in brackets: where they occur, else at the end; an official mark is kept."""
    text = question.text
    for topic in question.topics:
        if f"[{topic}]" in text:
            continue
        found = re.search(rf"(?<![\w\[]){re.escape(topic)}(?![\w\]])", text, re.IGNORECASE)
        text = f"{text} [{topic}]" if found is None else f"{text[: found.start()]}[{topic}]{text[found.end() :]}"
    return text


class Pool:
    """Collects paragraphs; the same title with the same text is one paragraph, another text gets another key."""

    def __init__(self) -> None:
        self._by_content: dict[tuple[str, tuple[str, ...]], Paragraph] = {}
        self._keys: set[str] = set()

    def add(self, title: str, sentences: Iterable[str]) -> Paragraph:
        """The paragraph with this title and text, new or known; its key is the title, numbered where that is taken."""
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
        """All paragraphs in the order they came."""
        return tuple(self._by_content.values())


def triple_tables(file: Path, separator: str = "\t", subject_class: str = "entity") -> Tables:
    """Head, relation and tail per line; `subject_class` is the label a user would give with `--class`."""
    rows = list(read_rows(file, separator, 3))
    columns = {
        name: pa.array([cells[place] for _, cells in rows], pa.string()) for place, name in enumerate(EDGE_COLUMNS)
    }
    lines = pa.array([number for number, _ in rows], pa.int64())
    piece = Piece(pa.table(columns), str(file), lines=lines)
    return Tables((), (piece,), implicit=True, implicit_type=subject_class)
