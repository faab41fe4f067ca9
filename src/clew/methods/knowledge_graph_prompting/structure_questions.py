"""Questions about where something stands: pages, tables, sections and documents named in words, found by structure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from clew.core.types import IntArray, NodeSet
from clew.kb.arrays import ArrayKnowledgeBase
from clew.reading.language.phrase_matcher import PhraseMatcher
from clew.reading.language.proper_names import title_forms

KINDS = {"page": "page", "pages": "page", "sheet": "page", "slide": "page", "table": "table", "tables": "table"}
KINDS |= {"section": "section", "sections": "section", "chapter": "section", "document": "document", "file": "document"}
ORDINALS = {
    word: number
    for number, words in enumerate(
        (("last", "final"), ("first", "1st"), ("second", "2nd"), ("third", "3rd"), ("fourth", "4th"), ("fifth", "5th"))
    )
    for word in words
}
NUMBER_WORDS = {word: str(n) for n, word in enumerate("zero one two three four five six seven eight nine ten".split())}  # noqa: SIM905
_KIND = r"(pages?|sheet|slide|tables?|sections?|chapter)"
_NUMBER = (
    r"(?:no\.?\s*|number\s+|#)?([A-Z]?\d+(?:\.\d+)*|[IVX]+\b|(?:one|two|three|four|five|six|seven|eight|nine|ten)\b)"
)
NUMBERED = re.compile(rf"\b{_KIND}\s+{_NUMBER}((?:\s*(?:,|and|&|or|to)\s*{_NUMBER}(?![\w%]))*)", re.IGNORECASE)
ORDINAL = re.compile(rf"\b(?:the\s+)?({'|'.join(ORDINALS)})\s+{_KIND}\b", re.IGNORECASE)
HEADED = re.compile(r"""\b(?:section|chapter)\s+(?:called\s+|titled\s+|on\s+)?["“']([^"”']+)["”']""", re.IGNORECASE)
ENDINGS = "pdf|docx|pptx|xlsx|od[tsp]|epub|x?html?|md|markdown|txt|text|rst|csv|tsv|json|eml|mbox"
FILE = re.compile(rf"[\w./-]+\.(?:{ENDINGS})\b", re.IGNORECASE)
CONNECTING = re.compile(r"\b(?:in|on|of|from|at|within|to|according to)\s*(?:the\s*)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reference:
    """A page, table or section that a question names: its number as written, or its place in order (0 is the last)."""

    kind: str
    number: str | None = None
    ordinal: int | None = None
    heading: str | None = None
    start: int = 0
    end: int = 0


def references(question: str) -> list[Reference]:
    """Every page, table and section that a question names, in reading order."""
    found = []
    for match in NUMBERED.finditer(question):
        kind = KINDS[match.group(1).lower()]
        numbers = [match.group(2), *re.findall(_NUMBER, match.group(3) or "", re.IGNORECASE)]
        if re.fullmatch(r"[ivx]+", match.group(2)):  # "section i" is written in capitals
            continue
        found += [
            Reference(kind, NUMBER_WORDS.get(n.lower(), n), start=match.start(), end=match.end()) for n in numbers
        ]
    for match in ORDINAL.finditer(question):
        kind = KINDS[match.group(2).lower()]
        found.append(Reference(kind, ordinal=ORDINALS[match.group(1).lower()], start=match.start(), end=match.end()))
    for match in HEADED.finditer(question):
        found.append(Reference("section", heading=match.group(1), start=match.start(), end=match.end()))
    return sorted(found, key=lambda reference: reference.start)


def without_references(question: str, found: Sequence[Reference]) -> str:
    """The question without the words that only say where to look."""
    spans = [(reference.start, reference.end) for reference in found]
    spans += [match.span() for match in FILE.finditer(question)]
    for start, end in sorted(spans, reverse=True):
        before = CONNECTING.sub("", question[:start].rstrip())
        question = f"{before.rstrip()} {question[end:].lstrip()}"
    return " ".join(question.split()).strip(" ,")


@dataclass(frozen=True, eq=False)
class Located:
    """The nodes that the references of a question stand for, and what is not clear about them."""

    nodes: tuple[int, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Structure:
    """Finds pages, tables, sections and documents of a base by number, order, heading and name."""

    kb: ArrayKnowledgeBase

    @cached_property
    def documents(self) -> PhraseMatcher[int]:
        """Documents by title, by file name and by the name without its ending."""
        names: PhraseMatcher[int] = PhraseMatcher()
        if "document" not in self.kb.schema.type_names:
            return names
        for node in self.kb.nodes("document"):
            content = self.kb.node(node)
            stem = content.key.rsplit("/", 1)[-1].rsplit(".", 1)[0]
            for form in (*title_forms(content.name), *content.aliases, content.key, stem):
                names.add(form, node)
        return names

    def named_documents(self, question: str) -> list[int]:
        """The documents that a question names; a file name with its ending beats everything else."""
        files = {match.group().lower() for match in FILE.finditer(question)}
        found = dict.fromkeys(node for match in self.documents.find(question) for node in match.meanings)
        exact = [n for n in found if any(self.kb.refs([n])[0].key.lower().endswith(file) for file in files)]
        return exact or list(found)

    def locate(self, question: str, found: Sequence[Reference]) -> Located:
        """The nodes of every reference, a table on a page as one; several where documents are not told apart."""
        documents = self.named_documents(question)
        pages = [reference for reference in found if reference.kind == "page"]
        tables = [reference for reference in found if reference.kind == "table"]
        if len(pages) == 1 and len(tables) == 1 and _on_page(question, tables[0], pages[0]):
            nodes, notes = self._table_on_page(tables[0], pages[0], documents)
            return Located(tuple(nodes), tuple(notes))
        nodes, notes = [], []
        for reference in found:
            own = self._find(reference, documents)
            if not own:
                notes.append(f"there is no {_shown(reference)}{_where(self.kb, documents)}")
            elif len(own) > 1:
                notes.append(f"{_shown(reference)} exists in {len(own)} documents: name one of them")
            nodes += own
        return Located(tuple(dict.fromkeys(nodes)), tuple(notes))

    def _find(self, reference: Reference, documents: Sequence[int]) -> list[int]:
        if reference.kind not in self.kb.schema.type_names:
            return []
        own = self._of_kind(reference.kind, documents)
        if reference.ordinal is not None:
            return [group[reference.ordinal - 1] for group in self._by_file(own) if len(group) >= reference.ordinal]
        if reference.heading is not None:
            wanted = reference.heading.casefold()
            return [node for node in own.tolist() if wanted in self.kb.refs([node])[0].name.casefold()]
        wanted = (reference.number or "").casefold()
        numbers = zip(own.tolist(), self._attribute(own, "number"), strict=True)
        exact = [node for node, number in numbers if number.casefold() == wanted]
        if reference.kind == "section":  # "section 3.2" is written in the heading
            headed = re.compile(rf"(?:chapter |section )?{re.escape(wanted)}(?:\.?\s|$)")
            exact = [n for n in own.tolist() if headed.match(self.kb.refs([n])[0].name.casefold())] or exact
        return exact

    def _table_on_page(
        self, table: Reference, page: Reference, documents: Sequence[int]
    ) -> tuple[list[int], list[str]]:
        pages = self._find(page, documents)
        if not pages:
            return [], [f"there is no {_shown(page)}{_where(self.kb, documents)}"]
        there = self.kb.neighbors(NodeSet.of(pages), "has_table", "out").array.tolist()
        numbers = self._attribute(np.array(there, dtype=np.int32), "number")
        numbered = [node for node, number in zip(there, numbers, strict=True) if number == table.number]
        if not numbered and table.number is not None and table.number.isdigit():
            numbered = there[int(table.number) - 1 : int(table.number)]
        if table.ordinal is not None:
            numbered = there[table.ordinal - 1 :][:1] if table.ordinal else there[-1:]
        return numbered, [] if numbered else [f"there is no {_shown(table)} on {_shown(page)}"]

    def _of_kind(self, kind: str, documents: Sequence[int]) -> IntArray:
        nodes = self.kb.nodes(kind).array
        if not documents:
            return nodes
        files = {self.kb.refs([document])[0].key for document in documents}
        return nodes[np.array([file in files for file in self._attribute(nodes, "file")], dtype=np.bool_)]

    def _by_file(self, nodes: IntArray) -> list[list[int]]:
        groups: dict[str, list[int]] = {}
        for node, file in zip(nodes.tolist(), self._attribute(nodes, "file"), strict=True):
            groups.setdefault(file, []).append(node)
        return list(groups.values())

    def _attribute(self, nodes: IntArray, name: str) -> list[str]:
        """An attribute of many nodes as text, without rendering each of them."""
        column = self.kb.columns()[name].take(pa.array(nodes))
        return [str(value or "") for value in column.to_pylist()]


def _on_page(question: str, table: Reference, page: Reference) -> bool:
    between = question[table.end : page.start] if table.start < page.start else question[page.end : table.start]
    return re.fullmatch(r"[\s,]*(?:on|of|from|at|in)?(?:\s+the)?\s*", between, re.IGNORECASE) is not None


def _shown(reference: Reference) -> str:
    if reference.heading is not None:
        return f"section “{reference.heading}”"
    order = {number: word for word, number in reversed(ORDINALS.items())}
    if reference.ordinal is not None:
        return f"{order[reference.ordinal]} {reference.kind}"
    return f"{reference.kind} {reference.number}"


def _where(kb: ArrayKnowledgeBase, documents: Sequence[int]) -> str:
    return f" in {', '.join(ref.key for ref in kb.refs(documents))}" if documents else ""
