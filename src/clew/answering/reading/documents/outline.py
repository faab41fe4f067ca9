"""Positions of the parts of each document: pages, headings with their contents, tables, figures, numbered items.

A part is a span of a file's text. Its contents are the passages and tables that start in the span. Numbers are read
from the start of headings, captions and lines, since not every format marks them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import numpy as np
import pyarrow as pa

from clew.answering.reading.documents.references import LABEL, Kind, kind_of
from clew.core.types import IntArray, NodeSet
from clew.store.graph.protocol import StoredKnowledgeBase
from clew.store.index.tokens import terms

LABELLED = re.compile(
    rf"[^\w\n]*(?:(?P<word>[A-Z][a-z]+)\.?[ \-]?)?(?P<label>{LABEL})[\])]?[.:)–—]?(?:\s+|$|(?<=[–—]))(?P<rest>.*)", re.S
)
"""A heading, caption or item: an optional word for its kind, its number, and its text."""
SPOT = re.compile(
    rf"(?m)^[^\w\n]*(?:(?P<word>[A-Za-z]{{3,12}})(?:\.?[ \-]{{1,2}}|(?=\d)))?"
    rf"(?:(?P<label>{LABEL})(?P<mark>[\])]?[.:)\-–—]*)(?=\s|$|(?<=[–—]))|(?P<footnote>\d{{1,2}})(?=[A-Z]))"
)
TEXT_HEADING = re.compile(r"(?m)^[ \t]*(?P<label>\d+(?:\.\d+)*)\.?[ \t]+(?P<rest>[A-Z][^\n]{1,80}?)[ \t]*$")
BULLET = re.compile(r"(?m)^[ \t]*(?:[•◦▪‣*\-–·+]|\(?[ivx\d]{1,4}[.)]|\[\d{1,3}\])[ \t]+(?=\S)")
GAP = 4
"""Maximum number of characters between a heading and the next if there is no text between them."""
SHORTEST_ITEM, LONGEST_ITEM = 40, 600
"""Minimum and maximum length of a quoted item, in characters. A shorter item is a name, and its description follows."""
AROUND = 1500
"""Number of characters around a caption to take as its table or figure if there are no pages."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading with its number, and the span of its contents."""

    title: str
    word: str
    """Chapter, appendix …, if the heading contains such a word."""
    label: str
    level: int
    start: int
    end: int
    page: int | None
    node: int | None


@dataclass(frozen=True, slots=True)
class Part:
    """A located part of a document: its span, and the nodes to read. `core` are the nodes of the part itself."""

    kind: str
    name: str
    document: int
    start: int
    end: int
    page: int | None
    nodes: tuple[int, ...]
    core: tuple[int, ...] = ()
    node: int | None = None
    """The node of the part, if the base has one."""


@dataclass(frozen=True, eq=False)
class DocumentMap:
    """One document: its readable nodes in reading order, its headings and its pages."""

    kb: StoredKnowledgeBase = field(repr=False)
    node: int
    file: str
    title: str
    readable: IntArray
    starts: IntArray
    ends: IntArray
    pages: IntArray
    """Page of each readable node, or 0 if it has none."""
    page_nodes: tuple[int, ...]
    page_numbers: tuple[int, ...]
    page_labels: tuple[str, ...]
    sections: tuple[int, ...]
    tables: tuple[int, ...]

    @property
    def end(self) -> int:
        """End of its text, in characters."""
        return int(self.ends.max()) + 1 if len(self.ends) else 0

    def text(self, node: int) -> str:
        """Return the text of a node."""
        return str(self.kb.columns()["text"][node].as_py() or "")

    def between(self, start: int, end: int) -> tuple[int, ...]:
        """Return the readable nodes that start in a span."""
        first, last = np.searchsorted(self.starts, [start, end])
        return tuple(self.readable[first:last].tolist())

    @cached_property
    def headings(self) -> tuple[Heading, ...]:
        """Headings in reading order, including lines that only their number marks as a heading."""
        names, starts, pages = (self.kb.columns()[name] for name in ("name", "start", "page"))
        levels = self._levels()
        found = []
        for section in self.sections:
            title = names[section].as_py() or ""
            word, label = label_of(title)
            start = starts[section].as_py() or 0
            found.append(Heading(title, word, label, levels[section], start, start, pages[section].as_py(), section))
        level = {heading.label: heading.level for heading in found if heading.label}
        for heading in self._text_headings():
            above = heading.label.rpartition(".")[0]
            if not self.sections:
                found.append(replace(heading, level=heading.label.count(".") + 1))
            elif above in level and heading.label not in level:
                found.append(replace(heading, level=level[above] + 1))
        return _spans(sorted(found, key=lambda heading: heading.start), self.end)

    def _levels(self) -> dict[int, int]:
        if not self.sections:
            return {}
        edges = self.kb.edges(NodeSet.of(self.sections), "has_section")
        above = {tail: head for head, tail in zip(edges.heads.tolist(), edges.tails.tolist(), strict=True)}
        levels = {self.node: 0}
        for section in sorted(self.sections):  # a parent comes before its children
            levels[section] = levels.get(above.get(section, self.node), 0) + 1
        return levels

    def _text_headings(self) -> Iterator[Heading]:
        for node, start, page in zip(self.readable.tolist(), self.starts.tolist(), self.pages.tolist(), strict=True):
            for match in TEXT_HEADING.finditer(self.text(node)):
                place = start + match.start("label")
                title = " ".join(match.group().split())
                yield Heading(title, "", match.group("label"), 1, place, place, page or None, None)

    @cached_property
    def spots(self) -> dict[str, list[tuple[str, int, int, str]]]:
        """Label → the word before it, the node, the offset and the mark after it, for lines that start with a label."""
        found: dict[str, list[tuple[str, int, int, str]]] = {}
        for node, start in zip(self.readable.tolist(), self.starts.tolist(), strict=True):
            for match in SPOT.finditer(self.text(node)):
                word = (match.group("word") or "").casefold()
                label, mark = match.group("label") or match.group("footnote"), match.group("mark") or ""
                if kind_of(word) is None if word else label.isalpha():
                    continue
                found.setdefault(label.casefold(), []).append((word, node, start + match.start(), mark))
        return found

    def part(self, heading: Heading) -> Part:
        """Return the part below a heading."""
        nodes = self.between(heading.start, max(heading.end, heading.start + 1))
        if heading.node is None and not nodes:
            nodes = self.around(heading.start)
        kind = heading.word or "section"
        title = heading.title
        if title.casefold() == f"{heading.word} {heading.label}".casefold():  # its name is a separate heading
            place = self.headings.index(heading) + 1
            title = " ".join(
                one.title for one in self.headings[place - 1 : place + 1] if one.label in ("", heading.label)
            )
        return Part(kind, title, self.node, heading.start, heading.end, heading.page, nodes, nodes, heading.node)

    def page(self, place: int) -> Part:
        """Return a page by its index."""
        number = self.page_numbers[place]
        nodes = tuple(self.readable[self.pages == number].tolist())
        label = self.page_labels[place]
        shown = f"page {label}" if label else f"page {number}"
        return Part("page", shown, self.node, 0, 0, number, nodes, nodes, self.page_nodes[place])

    def around(self, start: int) -> tuple[int, ...]:
        """Return the node that contains an offset, and its neighbours."""
        place = max(int(np.searchsorted(self.starts, start, side="right")) - 1, 0)
        return tuple(self.readable[max(place - 1, 0) : place + 2].tolist())

    def item(self, part: Part) -> list[tuple[int, int, int]]:
        """Return the nodes and text spans of a numbered or bulleted item. An item may continue in the next node."""
        place = int(np.flatnonzero(self.readable == part.core[0])[0])
        text = self.text(part.core[0])
        begin = max(part.start - int(self.starts[place]), 0)
        begin += len(text[begin:]) - len(text[begin:].lstrip())
        later = [match.start() for pattern in (BULLET, SPOT) for match in pattern.finditer(text, begin + 2)]
        blank = re.compile(r"\n\s*\n").search(text, min(begin + SHORTEST_ITEM, len(text)))
        end = min([*later, blank.start() if blank else len(text), begin + LONGEST_ITEM])
        spans = [(part.core[0], begin, end if end > begin else len(text))]
        if spans[0][2] == len(text) and len(text) - begin < SHORTEST_ITEM and place + 1 < len(self.readable):
            following = int(self.readable[place + 1])
            rest = self.text(following)
            stops = [match.start() for match in BULLET.finditer(rest) if match.start()]
            spans.append((following, 0, min([*stops, len(rest), LONGEST_ITEM])))
        return spans

    def captioned(self, kind: Kind, word: str, label: str, holder: int, start: int) -> Part:
        """Return the table, figure or item whose caption or number is at an offset, with its surroundings."""
        index = int(np.flatnonzero(self.readable == holder)[0])
        page = int(self.pages[index])
        if kind == "item":
            nodes = tuple(self.readable[index : index + 2].tolist())
        elif page:
            nodes = tuple(self.readable[self.pages == page].tolist())
        else:
            nodes = self.between(start - AROUND, start + AROUND)
        return Part(kind, f"{word} {label}", self.node, start, start + AROUND, page or None, nodes, (holder,), None)


def label_of(title: str) -> tuple[str, str]:
    """Return the word and the number at the start of a heading. Both are empty if there is no number."""
    match = LABELLED.match(title)
    if match is None:
        return "", ""
    word, label = (match.group("word") or "").casefold(), match.group("label")
    if word and kind_of(word) is None:
        return "", ""
    if re.fullmatch(r"[A-Z]", label) and not word and not re.match(r"[A-Z]", match.group("rest")):
        return "", ""  # “A note on …”
    return word, label


def same_label(one: str, other: str) -> bool:
    """Return whether two numbers are the same: 3 and 3., A-1 and A.1, XII and 12."""
    return _plain(one) == _plain(other)


def _plain(label: str) -> str:
    low = label.casefold().strip(".").replace("-", ".")
    low = re.sub(r"^([a-z]{1,3})\.(?=\d)", r"\1", low)
    return str(_roman(low)) if re.fullmatch(r"[ivxlc]{2,}|[ivx]", low) else low


def _roman(text: str) -> int:
    values = [{"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}[letter] for letter in text]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))


def _spans(headings: Sequence[Heading], end: int) -> tuple[Heading, ...]:
    """Set the end of each heading's contents."""
    return tuple(
        replace(heading, end=next((one.start for one in headings[place + 1 :] if _ends(heading, one)), end))
        for place, heading in enumerate(headings)
    )


def _ends(heading: Heading, later: Heading) -> bool:
    """Return whether a later heading ends this heading's contents: by its number or by its level."""
    own, other = _numbers(heading.label), _numbers(later.label)
    if not own:
        return later.level <= heading.level
    if not other:  # “Chapter 3”, then its title as a separate heading, often in larger letters
        return later.level < heading.level and later.start > heading.start + len(heading.title) + GAP
    if other[: len(own)] == own:
        return False
    return later.level <= heading.level or _is_next(own, other)


def _numbers(label: str) -> tuple[str, ...]:
    return tuple(_plain(label).split(".")) if label else ()


def _is_next(own: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether a number is the next at its own depth or above: 3.3 and 4 follow 3.2."""
    depth = len(other)
    if depth > len(own) or other[: depth - 1] != own[: depth - 1]:
        return False
    before, after = own[depth - 1], other[depth - 1]
    return before.isdigit() and after.isdigit() and int(after) == int(before) + 1


@dataclass(frozen=True, eq=False)
class BaseOutline:
    """All documents of a base, each mapped at first use."""

    kb: StoredKnowledgeBase

    @cached_property
    def documents(self) -> tuple[int, ...]:
        """The nodes of the documents."""
        return tuple(self.kb.nodes("document"))

    @cached_property
    def names(self) -> dict[int, frozenset[str]]:
        """Terms of each document's title and file name."""
        found = {}
        for ref in self.kb.refs(self.documents):
            stem = re.sub(r"[\W_]+", " ", ref.key)
            found[ref.id] = frozenset(terms(f"{ref.name} {stem}"))
        return found

    @cached_property
    def _by_file(self) -> dict[str, dict[str, IntArray]]:
        """File → type → its nodes, ascending."""
        files = self.kb.columns()["file"]
        grouped: dict[str, dict[str, IntArray]] = {}
        for kind in ("page", "section", "passage", "table"):
            if kind not in self.kb.schema.type_names:
                continue
            nodes = self.kb.nodes(kind).array
            encoded = files.take(pa.array(nodes)).dictionary_encode()
            encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
            codes = encoded.indices.to_numpy(zero_copy_only=False)
            for code, file in enumerate(encoded.dictionary.to_pylist()):
                grouped.setdefault(file, {})[kind] = nodes[codes == code]
        return grouped

    def document_of(self, node: int) -> int:
        """Return the document of a node."""
        return self._document_by_file[self.kb.columns()["file"][node].as_py()]

    @cached_property
    def _document_by_file(self) -> dict[str, int]:
        return {ref.key: ref.id for ref in self.kb.refs(self.documents)}

    @cached_property
    def map(self) -> Callable[[int], DocumentMap]:
        """Function that returns the map of a document."""
        return cache(self._map)

    def _map(self, document: int) -> DocumentMap:
        [ref] = self.kb.refs([document])
        own = self._by_file.get(ref.key, {})
        none = np.empty(0, dtype=np.int32)
        readable = np.concatenate([own.get("passage", none), own.get("table", none)])
        columns = self.kb.columns()

        def numbers(name: str, nodes: IntArray) -> IntArray:
            taken = columns[name].take(pa.array(nodes)).to_pylist()
            return np.array([value or 0 for value in taken], dtype=np.int32)

        order = np.lexsort((readable, numbers("start", readable)))
        readable = readable[order]
        pages = own.get("page", none)
        labels = columns["label"].take(pa.array(pages)).to_pylist() if "label" in columns else [""] * len(pages)
        return DocumentMap(
            self.kb,
            document,
            ref.key,
            ref.name,
            readable,
            numbers("start", readable),
            numbers("end", readable),
            numbers("page", readable),
            tuple(pages.tolist()),
            tuple(numbers("page", pages).tolist()),
            tuple(label or "" for label in labels),
            tuple(own.get("section", none).tolist()),
            tuple(own.get("table", none).tolist()),
        )
