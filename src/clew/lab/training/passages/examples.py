"""Convert folders of documents with questions to examples: passages, retrieved candidates and gold spans.

A source is a folder with `docs/` and `questions.jsonl` (plain or gzipped, see benchmarks/data/documents), or a file
in the format of HotpotQA, 2WikiMultihopQA or MuSiQue, which has paragraphs per question.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from pydantic import BaseModel, RootModel

from clew.answering.reading.documents.search import PassageSearch
from clew.core.errors import NotFoundError
from clew.core.proper_names import sentence_spans
from clew.core.types import Node
from clew.documents.building import build_documents
from clew.documents.passage_graph import EdgeOptions
from clew.documents.rows import DocumentOptions
from clew.lab.datasets.files import find_file, read_records
from clew.lab.datasets.passages import HotpotRecord, MusiqueRecord
from clew.store.open_base import OpenBase

Span = tuple[int, int]
CANDIDATES = 40
"""Number of passages to retrieve per question."""
CLOZES = 150
"""Number of attempts per folder to generate a question from a sentence."""
NUMBERS, THINGS = ("how many", "how much", "when", "what"), ("who", "what", "which", "where", "how")
"""Question words of generated questions, for numbers and for other answers."""
_ANSWER = re.compile(r"(?<=\s)(?:[A-Z]\w+(?: [A-Z]\w+)*|\d[\d.,]*\d|\d|[a-z]{4,}(?: [a-z]{3,}){0,2})\b")
LAST_ACCENTED = "\u024f"
"""Last accented Latin letter. Accented letters are often damaged in texts, so comparisons ignore them."""


class _GoldQuote(BaseModel):
    file: str
    page: int | None = None
    quote: str


class _DocumentQuestion(BaseModel):
    question: str
    kind: str = "single"
    short: str = ""
    gold: list[_GoldQuote] = []


class _HotpotQA(HotpotRecord):
    id: str = ""

    def is_right(self, paragraph: int, sentence: int) -> bool:
        """Return whether the answer depends on a sentence."""
        return (self.context[paragraph][0], sentence) in self.supporting_facts


class _MuSiQue(MusiqueRecord):
    id: str = ""

    @property
    def context(self) -> list[tuple[str, list[str]]]:
        """Titles with sentences, like HotpotQA."""
        return [(one.title, _sentences(one.paragraph_text)) for one in self.paragraphs]

    def is_right(self, paragraph: int, sentence: int) -> bool:
        """Return whether a sentence contains the answer of a step, or is the first one if no sentence does."""
        steps = self.question_decomposition
        answers = [str(one["answer"]).lower() for one in steps if one.get("paragraph_support_idx") == paragraph]
        sentences = _sentences(self.paragraphs[paragraph].paragraph_text) if answers else []
        holding = [at for at, text in enumerate(sentences) if any(one in text.lower() for one in answers)]
        return sentence in (holding or [0]) if answers else False


class _Encyclopedic(RootModel[_HotpotQA | _MuSiQue]):
    """A question with paragraphs of an encyclopedia."""


@dataclass(frozen=True, slots=True)
class Gold:
    """Gold content of a passage: the part of the answer, its characters, and the short answer within."""

    part: int
    span: Span
    short: Span | None = None


@dataclass(frozen=True, eq=False)
class PassageQuestion:
    """A question with indices of retrieved passages, best first, and of gold passages."""

    kind: str
    text: str
    candidates: tuple[int, ...]
    gold: dict[int, Gold]
    quotes: tuple[str, ...]
    """The parts of the answer. Empty if the documents do not contain it."""

    def is_answered(self, passages: Sequence[int]) -> bool:
        """Return whether these passages contain every part."""
        found = {self.gold[place].part for place in passages if place in self.gold}
        return len(found) == len(self.quotes)


@dataclass(frozen=True, eq=False)
class PassageSource:
    """Passages with titles, and the questions over them."""

    name: str
    passages: tuple[tuple[str, str], ...]
    questions: tuple[PassageQuestion, ...]
    clozes: tuple[PassageQuestion, ...] = ()
    """Generated questions: the words of a sentence without a name, a number or a phrase, which is the answer."""


def read_source(source: Path, work: Path, seed: int = 0) -> PassageSource:
    """Read the examples of a source. `work` caches the bases of folders."""
    if source.is_dir():
        return _read_folder(source, work / f"{source.name}.kb", random.Random(f"{seed} {source.name}"))
    if not source.is_file():
        raise NotFoundError(f"{source} does not exist")
    return _read_encyclopedic(source)


def _read_folder(folder: Path, base: Path, rng: random.Random) -> PassageSource:
    records = read_records(find_file(folder / "questions.jsonl"), _DocumentQuestion)
    base.parent.mkdir(parents=True, exist_ok=True)
    build_documents([folder / "docs"], base, DocumentOptions(edges=EdgeOptions(kinds=())))
    tools = OpenBase.open(base)
    tools.vectors.embed_all()
    search = PassageSearch(tools.local, tools.lexical, tools.vectors)
    nodes = [tools.kb.node(node) for node in search.passages]
    places = {node.id: place for place, node in enumerate(nodes)}
    files = {name: str(node.attributes.get("file")) for name, node in enumerate(nodes)}
    questions = []
    for record in records:
        found = search.about(record.question).pool.top(CANDIDATES)
        gold: dict[int, Gold] = {}
        for part, one in enumerate(record.gold):
            near = [place for place, node in enumerate(nodes) if files[place] == one.file and _near(node, one.page)]
            for place, span in quoted(one.quote, {place: nodes[place].text for place in near}).items():
                gold.setdefault(place, Gold(part, span, _short(record.short, nodes[place].text, span)))
        quotes = tuple(one.quote for one in record.gold)
        candidates = tuple(places[node] for node, _ in found)
        questions.append(PassageQuestion(record.kind, record.question, candidates, gold, quotes))
    passages = tuple((node.name, node.text) for node in nodes)
    return PassageSource(folder.name, passages, tuple(questions), tuple(_clozes([node.text for node in nodes], rng)))


def _near(node: Node, page: int | None) -> bool:
    """Return whether a passage is on a page or an adjacent one, because a quote may continue."""
    own = node.attributes.get("page")
    return page is None or own is None or abs(int(own) - page) <= 1


def quoted(quote: str, texts: dict[int, str]) -> dict[int, Span]:
    """Locate a quote in texts that contain all of it or, if none does, a large part of it."""
    asked, _ = _compared(quote)
    compared = {place: _compared(text) for place, text in texts.items()}
    found = {}
    for place, (letters, where) in compared.items():
        at = letters.find(asked) if asked else -1
        if at >= 0:
            found[place] = (where[at], where[at + len(asked) - 1] + 1)
    if found or not asked:
        return found
    for place, (letters, where) in compared.items():
        match = SequenceMatcher(None, letters, asked, autojunk=False).find_longest_match()
        if match.size >= min(40, max(12, 0.4 * len(asked))):
            found[place] = (where[match.a], where[match.a + match.size - 1] + 1)
    return found


def _compared(text: str) -> tuple[str, list[int]]:
    """Return the letters and digits of a text, and the offset of each."""
    kept = [at for at, sign in enumerate(text) if sign.isalnum() and (sign.isascii() or sign > LAST_ACCENTED)]
    return "".join(text[at].lower()[0] for at in kept), kept


def _short(short: str, text: str, span: Span) -> Span | None:
    """Locate the short answer in the quote, otherwise anywhere in the passage."""
    pattern = re.compile(r"\s+".join(map(re.escape, short.split())))
    found = (pattern.search(text, *span) or pattern.search(text)) if short.strip() else None
    return found.span() if found else None


def _clozes(texts: Sequence[str], rng: random.Random) -> Iterator[PassageQuestion]:
    """Yield generated questions. Their wrong passages are near the right one in the document."""
    for place in rng.choices(range(len(texts)), k=CLOZES):
        text = texts[place]
        whole = [span for span in sentence_spans(text) if 40 < span[1] - span[0] < 320 and "\n|" not in text]
        start, end = rng.choice(whole or [(0, 0)])
        answers = list(_ANSWER.finditer(text, start, end))
        if not answers:
            continue
        answer = rng.choice(answers)
        rest = f"{text[start : answer.start()]} {text[answer.end() : end]}".split()
        asked = [rng.choice(NUMBERS if answer[0][0].isdigit() else THINGS), *[w for w in rest if rng.random() < 0.72]]
        near = [at for at in range(place - 3, place + 4) if 0 <= at < len(texts) and answer[0] not in texts[at]]
        gold = {place: Gold(0, (start, end), answer.span())}
        yield PassageQuestion("cloze", " ".join(asked), tuple(near), gold, (text[start:end],))


def _sentences(text: str) -> list[str]:
    return [text[slice(*span)] for span in sentence_spans(text)]


def _read_encyclopedic(file: Path) -> PassageSource:
    records = [record.root for record in read_records(file, _Encyclopedic)]
    passages: list[tuple[str, str]] = []
    questions = []
    for one in records:
        first, gold, quotes = len(passages), dict[int, Gold](), list[str]()
        for paragraph, (title, sentences) in enumerate(one.context):
            text, spans = "", []
            for sentence in map(str.strip, sentences):
                text += " " if text else ""
                spans.append((len(text), len(text) + len(sentence)))
                text += sentence
            right = [span for at, span in enumerate(spans) if one.is_right(paragraph, at)]
            if right:
                span = (min(right)[0], max(right)[1])
                at = -1 if one.answer.lower() in ("yes", "no") else text.lower().find(one.answer.lower(), span[0])
                short = (at, at + len(one.answer)) if at >= 0 else None
                gold[len(passages)] = Gold(len(quotes), span, short)
                quotes.append(text[slice(*span)])
            passages.append((title, text))
        candidates = tuple(range(first, len(passages)))
        questions.append(PassageQuestion("multi", one.question, candidates, gold, tuple(quotes)))
    return PassageSource(file.name, tuple(passages), tuple(questions))
