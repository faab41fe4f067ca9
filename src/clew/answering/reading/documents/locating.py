"""Locate documents of a question by name or description, and parts of documents by number, order or heading.

The question may describe a document by words of its title, of its file name or of its text. If several documents have
such a part, the document and the remaining question decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from clew.answering.reading.documents.outline import (
    BULLET,
    LONGEST_ITEM,
    BaseOutline,
    DocumentMap,
    Heading,
    Part,
    label_of,
    same_label,
)
from clew.answering.reading.documents.references import (
    CONNECTING,
    Reference,
    asks_for_all,
    document_phrases,
    general_terms,
    kind_of,
    without_references,
)
from clew.answering.reading.documents.search import LAZY_POOL, AskedPassages, PassageSearch
from clew.answering.reading.documents.tables import rows_of
from clew.core import trace
from clew.core.proper_names import PhraseMatcher, title_forms
from clew.core.types import IntArray
from clew.store.graph.protocol import StoredKnowledgeBase
from clew.store.index.tokens import terms

T = TypeVar("T")
NAMED = 0.8
"""Minimum score of a description that names a document. Its best word is in the title or all over the document."""
DISCUSSED, LEAST_SHARE = 0.6, 0.2
"""Minimum share of the subject's weight in a passage about it. Minimum share of passages relative to the best document.
"""
MOST_MAPPED = 40
"""Maximum number of documents to search for a part if the question names no document. The best matches are searched."""


@dataclass(frozen=True, eq=False)
class Documents:
    """Scores of all documents for the question's description, and the documents it names, best first."""

    scores: dict[int, float]
    named: tuple[int, ...]
    is_certain: bool = False
    """Whether the question contains a file name, a title, or a description with words of the document's name."""


@dataclass(frozen=True, eq=False)
class Located:
    """A part, its reference, and its score for the remaining question and its document."""

    part: Part
    reference: Reference
    fit: float


@dataclass(frozen=True, eq=False)
class Library:
    """The documents of a base, and their scores for a question's description."""

    kb: StoredKnowledgeBase
    search: PassageSearch

    @cached_property
    def outline(self) -> BaseOutline:
        """The structure of all documents."""
        return BaseOutline(self.kb)

    @cached_property
    def _titles(self) -> PhraseMatcher[int]:
        names: PhraseMatcher[int] = PhraseMatcher()
        for document in self.outline.documents:
            content = self.kb.node(document)
            file = content.key.rsplit("/", 1)[-1]
            stem = file.rsplit(".", 1)[0]
            for form in (*title_forms(content.name), content.key, file, stem, re.sub(r"[\W_]+", " ", stem)):
                names.add(form, document)
        return names

    def mentions(self, question: str) -> dict[tuple[int, int], int]:
        """Return the spans that name documents by title, file name or description, each with its best document."""
        spans = {(match.start, match.end): match.meanings[0] for match in self._titles.find(question)}
        for start, end in document_phrases(question):
            named = self.documents(question[start:end]).named
            if named and not any(start < last and first < end for first, last in spans):
                spans[start, end] = named[0]
        return dict(sorted(spans.items()))

    @cached_property
    def document_places(self) -> NDArray[np.int32]:
        """Index of each node's document, or -1 for nodes outside documents."""
        places = np.full(len(self.kb), -1, dtype=np.int32)
        for place, document in enumerate(self.outline.documents):
            places[self.outline.map(document).readable] = place
        return places

    @cached_property
    def _sizes(self) -> NDArray[np.float64]:
        counted = np.bincount(self.document_places + 1, minlength=len(self.outline.documents) + 1)
        return np.maximum(counted[1:].astype(np.float64), 1.0)

    def documents(self, question: str) -> Documents:
        """Return the documents that a question names or describes, by title, file name, and words of their text."""
        scores = dict.fromkeys(self.outline.documents, 0.0)
        phrases = [question[start:end] for start, end in document_phrases(question)]
        described = {term for phrase in phrases for form in (phrase, phrase.replace("-", "")) for term in terms(form)}
        for term in {term for term in terms(question) if not term.isdigit()} | described:
            having = [node for node, names in self.outline.names.items() if term in names]
            if having and len(having) < max(2, len(scores)):
                rare = float(np.log1p(len(scores) / len(having)))
                for node in having:
                    scores[node] += rare * (1.0 if term in described else 0.6)
        for term in described:
            nodes = self.search.lexical.having(term).array
            for node, share in zip(self.outline.documents, self._shares(nodes), strict=True):
                scores[node] += share
        titled = False
        for match in self._titles.find(question):
            titled = True
            for node in match.meanings:
                scores[node] += 1.0 + 0.5 * len(re.findall(r"[\W_]+", question[match.start : match.end]))
        best = max(scores.values(), default=0.0)
        named = tuple(
            sorted((n for n, s in scores.items() if s >= NAMED and s > 0.75 * best), key=lambda n: -scores[n])
        )
        certain = titled or any((described - general_terms()) & self.outline.names[node] for node in named[:1])
        return Documents(scores, named, certain)

    def discussing(self, subject: str) -> dict[int, float]:
        """Return documents with passages about a subject, each with its share of them relative to its length."""
        lexical, cover = self.search.lexical, np.zeros(len(self.kb))
        weights = {term: lexical.idf(term) for term in set(terms(subject)) - general_terms()}
        for term, weight in weights.items():
            cover[lexical.having(term).array] += weight
        shares = self._shares(np.flatnonzero(cover > DISCUSSED * sum(weights.values())))
        found = dict(zip(self.outline.documents, shares.tolist(), strict=True))
        least = LEAST_SHARE * max(found.values(), default=0.0)
        return {node: found[node] for node in sorted(found, key=lambda node: -found[node]) if found[node] > least}

    def _shares(self, nodes: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the share of some nodes in each document, relative to the document's length."""
        places = self.document_places[nodes]
        counted = np.bincount(places[places >= 0], minlength=len(self.outline.documents)) / self._sizes
        whole = counted.sum()
        return counted / whole if whole else counted


class Locator:
    """The documents and parts that one question names."""

    def __init__(self, library: Library, question: str, found: Sequence[Reference]) -> None:
        self.library, self.kb, self.question = library, library.kb, question
        self.documents = library.documents(question)
        self.missing: list[Reference] = []
        """References by number that `locate` did not find."""
        phrases = document_phrases(question) if self.documents.named else []
        names = library.mentions(question) if self.documents.named else {}
        found = [one for one in found if not any(start <= one.start and one.end <= end for start, end in names)]
        self.found = found
        self.rest = without_references(question, found, [*phrases, *names])
        if found or not asks_for_all(self.rest, of_a_document=True):  # a title may also be a word of the question
            placed = [span for span in names if CONNECTING.search(question[: span[0]])]
            self.rest = without_references(question, found, [*phrases, *placed])

    @cached_property
    def asked(self) -> AskedPassages:
        """Passages scored for the remaining question."""
        return self.library.search.about(self.rest or self.question)

    def maps(self, *, every: bool = False) -> list[DocumentMap]:
        """Return the documents to search: the named documents, or else the best matches."""
        chosen: Iterable[int] = self.documents.named
        if every or not self.documents.named:
            documents = self.library.outline.documents
            if len(documents) > MOST_MAPPED:
                places = self.library.document_places[self.asked.pool.nodes]
                chosen = list(dict.fromkeys(documents[place] for place in places.tolist() if place >= 0))[:MOST_MAPPED]
            else:
                chosen = documents
        return [self.library.outline.map(document) for document in chosen]

    def locate(self) -> list[Located]:
        """Return the named parts, best first.

        If the question names a page or section and a table or an item, look for the table or item inside it.
        """
        found = [ref for ref in self.found if not self._is_a_compound(ref)]
        located: list[Located] = []
        if any(one.ordinal for one in found) and not any(one.kind in ("page", "section") for one in found):
            located += self._written_headings()  # the third of the rules of thumb
        for kinds in (("page", "section"), ("table", "figure"), ("item",)):  # inside the kinds before
            scopes = list(located)
            for reference in (one for one in found if one.kind in kinds):
                parts = [part for scope in scopes for part in self.find_inside(reference, scope.part)]
                if not parts and (not scopes or (reference.label is not None and reference.kind != "item")):
                    parts = self.find_anywhere(reference)
                valued = self._valued(reference, parts)
                if not valued and reference.label is not None and not located:
                    self.missing.append(reference)
                located += valued
        certain = [one for one in located if one.reference.is_certain]
        if not certain and self.missing:
            if self.missing[0].kind != "item":  # item numbers vary too much
                trace.fallback("structure", self.said_missing(), "ordinary search")
            return []
        if not certain and not self._trusts(located):
            return []
        return sorted(located, key=lambda one: -one.fit)

    def _written_headings(self) -> list[Located]:
        """Return sections of a named document whose heading occurs in the question."""
        written = f" {' '.join(terms(self.question))} "
        found = []
        for own in self.maps() if self.documents.named and self.documents.is_certain else ():
            for heading in own.headings:
                title = [term for term in terms(heading.title) if not term.isdigit()]
                if (
                    title
                    and not set(title) <= self.library.outline.names[own.node]
                    and f" {' '.join(title)} " in written
                ):
                    found.append(own.part(heading))
        return self._valued(Reference("section", "heading"), found[:3])

    def _trusts(self, located: Sequence[Located]) -> bool:
        """Return whether to accept parts found only by words: at most three sections of a named document."""
        return 0 < len(located) <= 3 and bool(self.documents.named) and located[0].reference.kind == "section"

    def find_anywhere(self, reference: Reference) -> list[Part]:
        """Return matching parts in the named documents. Search all documents if the number is specific enough."""
        one = len(self.library.outline.documents) == 1 or (self.documents.named and self.documents.is_certain)
        if reference.label is None and reference.kind != "section" and (not one or reference.about):
            return []
        if not (reference.label or reference.quoted or one or self.documents.named):
            return []
        found = [part for own in self.maps() for part in self.find(reference, own)]
        if not found and reference.label is not None and self.documents.named and not self.documents.is_certain:
            found = [part for own in self.maps(every=True) for part in self.find(reference, own)]
        return found

    def _is_a_compound(self, reference: Reference) -> bool:
        """Return whether the documents contain the reference and the next word as a phrase: “section 8 companies”."""
        if reference.label is None or not terms(reference.following):
            return False
        phrase = f"{reference.word} {reference.label} {reference.following}".casefold()
        having = reduce(and_, map(self.library.search.lexical.having, terms(phrase)))
        return any(phrase in self.kb.text(node).casefold() for node in list(having)[:50])

    def _valued(self, reference: Reference, parts: Sequence[Part]) -> list[Located]:
        """Return the parts with the best scores by document and content, without much worse parts."""
        most = max(self.documents.scores.values(), default=0.0) or 1.0
        valued = []
        for part in parts:
            nodes = np.array(sorted(set(part.core or part.nodes)), dtype=np.int32)
            fit = float(self.fits(nodes).max()) if len(nodes) else -0.5
            exact = 0.2 if reference.word == part.kind else 0.0
            valued.append(Located(part, reference, self.documents.scores[part.document] / most + fit + exact))
        valued.sort(key=lambda one: -one.fit)
        if reference.is_certain and valued:
            best = valued[0]
            return [one for one in valued[:3] if one.fit > best.fit - (0.5 if reference.kind == "item" else 0.25)]
        return valued[:3]

    def fits(self, nodes: IntArray) -> NDArray[np.float64]:
        """Return the scores of nodes for the remaining question. Do not embed nodes without words of it."""
        if not terms(self.rest):
            return np.zeros(len(nodes))
        if self.asked.has_all_vectors or len(nodes) <= LAZY_POOL:
            return self.asked.prior(nodes)
        fits = np.zeros(len(nodes))
        best = np.argsort(-self.asked.words(nodes), kind="stable")[:LAZY_POOL]
        fits[best] = self.asked.prior(nodes[best])
        return fits

    def find(self, reference: Reference, own: DocumentMap) -> list[Part]:
        """Return the parts of a document that match a reference."""
        if reference.kind == "page":
            return _pages(reference, own)
        if reference.kind == "section":
            return [own.part(heading) for heading in self._headings(reference, own)]
        if reference.kind == "item" and reference.ordinal is not None:
            return _ordered_items(reference, own, own.readable.tolist())
        found = self._things(reference, own)
        if reference.kind == "item":
            found += [own.part(h) for h in own.headings if h.label and same_label(h.label, reference.label or "")]
        return found

    def _headings(self, reference: Reference, own: DocumentMap) -> list[Heading]:
        if reference.label is not None:
            same = [heading for heading in own.headings if same_label(heading.label, reference.label)]
            filled = [heading for heading in same if own.part(heading).nodes] or same
            return [heading for heading in filled if heading.word == reference.word] or filled
        if reference.ordinal is not None and not reference.about:
            return nth(top_level(own.headings), reference.ordinal)
        if reference.about == reference.word:  # the appendix, regardless of its title
            return [one for one in own.headings if one.word == reference.word or one.label == "A"][:1]
        names = self.library.outline.names[own.node]
        described = set(terms(reference.about or ""))
        wants = described - names or described
        if not wants:
            return []
        scored = [(len(wants & set(terms(h.title))) / len(wants), -len(terms(h.title)), h) for h in own.headings]
        full = [(share, extra, heading) for share, extra, heading in scored if share == 1.0]
        if reference.word == "heading":  # “under load” is seldom a heading
            full = [one for one in full if -one[1] * 0.6 <= len(wants)]
        return [heading for _, _, heading in sorted(full, key=lambda one: (-one[0], -one[1]))[:2]]

    def _things(self, reference: Reference, own: DocumentMap) -> list[Part]:
        """Return tables, figures and items by their number, in a caption or at the start of a line."""
        if reference.kind == "table" and (tables := self._tables(reference, own)):
            return [self._table(own, node) for node in tables]
        if reference.label is None:
            return nth(figures(own), reference.ordinal or 0) if reference.kind == "figure" else []
        spots = own.spots.get(reference.label.casefold(), [])
        fitting = [spot for spot in spots if spot[0] and kind_of(spot[0]) == reference.kind]
        if reference.kind == "item":
            fitting = [spot for spot in fitting if spot[0].startswith(reference.word)]
            fitting = fitting or [spot for spot in spots if not spot[0]]
        fitting = [spot for spot in fitting if spot[3]] or fitting
        return [
            own.captioned(reference.kind, reference.word, reference.label, node, start) for _, node, start, _ in fitting
        ]

    def _tables(self, reference: Reference, own: DocumentMap) -> list[int]:
        if reference.ordinal is not None:
            return nth(own.tables, reference.ordinal)
        names = {ref.id: ref.name for ref in self.kb.refs(own.tables)}
        if reference.label is None:
            wants = set(terms(reference.about or ""))
            return [node for node, name in names.items() if wants and wants <= set(terms(name))]
        labels = {node: label_of(name) for node, name in names.items()}
        captioned = {node: label for node, (word, label) in labels.items() if kind_of(word) == "table"}
        if not captioned and reference.label.isdigit() and f"table {reference.label}" not in own.spots:
            return nth(own.tables, int(reference.label))
        return [node for node, label in captioned.items() if same_label(label, reference.label)]

    def _table(self, own: DocumentMap, node: int) -> Part:
        rows = rows_of(self.kb, node)
        content = self.kb.node(node)
        page, start = content.attributes.get("page"), content.attributes.get("start", 0)
        near = own.readable[own.pages == page].tolist() if page else own.around(start)
        end = content.attributes.get("end", start)
        return Part("table", content.name, own.node, start, end, page, (*near, *rows), (node, *rows), node)

    def find_inside(self, reference: Reference, scope: Part) -> list[Part]:
        """Return tables, figures or items within a page or section."""
        own = self.library.outline.map(scope.document)
        inside = set(scope.nodes)
        if reference.kind == "item" and reference.ordinal is not None:
            return _ordered_items(reference, own, [n for n in own.readable.tolist() if n in inside])
        if reference.ordinal is not None and reference.kind == "table":
            tables = [node for node in own.tables if node in inside]
            return [self._table(own, node) for node in nth(tables, reference.ordinal)]
        return [part for part in self.find(reference, own) if inside & set(part.core)]

    @property
    def lacks_it(self) -> bool:
        """Whether a document that the question certainly means has no part with the given number."""
        sure = bool(self.documents.named) and self.documents.is_certain
        return sure and bool(self.missing) and self.missing[0].kind != "item"

    def said_missing(self) -> str:
        """Return a message about the missing part, and the parts that exist instead."""
        reference = self.missing[0]
        where = [own.file for own in self.maps()] if self.documents.named else []
        said = f"there is no {reference.in_words()}" + (f" in {', '.join(where)}" if where else "")
        if len(where) == 1 and (there := self._inventory(reference, self.maps()[0])):
            said += f"; it has {there}"
        return said

    def _inventory(self, reference: Reference, own: DocumentMap) -> str:
        """Describe the parts of this kind in a document."""
        if reference.kind == "page":
            return f"{len(own.page_nodes)} pages" if own.page_nodes else "no pages"
        if reference.kind == "section":
            labels = [heading.label for heading in own.headings if heading.label and "." not in heading.label]
        elif reference.kind == "figure":
            labels = [part.name.split()[-1] for part in figures(own)]
        else:
            labels = [label_of(ref.name)[1] for ref in self.kb.refs(own.tables)]
        labels = [label for label in dict.fromkeys(labels) if label]
        if not labels:
            return f"no numbered {reference.kind}s"
        return f"{reference.kind}s {labels[0]} to {labels[-1]}" if len(labels) > 1 else f"{reference.kind} {labels[0]}"


def nth(things: Sequence[T], ordinal: int) -> list[T]:
    """Return the n-th item in a list, -1 for the last. Empty if there are fewer items."""
    place = ordinal - 1 if ordinal > 0 else len(things) + ordinal
    return [things[place]] if 0 <= place < len(things) else []


def _pages(reference: Reference, own: DocumentMap) -> list[Part]:
    if reference.ordinal is not None:
        return [own.page(place) for place in nth(range(len(own.page_nodes)), reference.ordinal)]
    label = (reference.label or "").casefold()
    numbered = [place for place, number in enumerate(own.page_numbers) if str(number) == label]
    named = [place for place, shown in enumerate(own.page_labels) if shown and same_label(shown, label)]
    return [own.page(place) for place in dict.fromkeys((*numbered, *named))]


def top_level(headings: Sequence[Heading]) -> list[Heading]:
    """Return the main headings: headings with top-level numbers, or of the highest level with several."""
    numbered = [heading for heading in headings if heading.label and "." not in heading.label]
    if len(numbered) > 1:
        return numbered
    for level in sorted({heading.level for heading in headings}):
        own = [heading for heading in headings if heading.level == level]
        if len(own) > 1:
            return own
    return list(headings)


def figures(own: DocumentMap) -> list[Part]:
    """Return the figures of a document at the positions of their captions."""
    found: dict[str, Part] = {}
    for label, spots in own.spots.items():
        for word, node, start, mark in spots:
            if kind_of(word) == "figure" and (mark or label not in found):
                found[label] = own.captioned("figure", "figure", label, node, start)
    return sorted(found.values(), key=lambda part: part.start)


def _ordered_items(reference: Reference, own: DocumentMap, nodes: Sequence[int]) -> list[Part]:
    """Return the n-th items of the lists in some nodes, by their number if they have one.

    For a whole document also return its n-th heading, since lists of questions are written this way. Rows and columns
    are not list items.
    """
    place = reference.ordinal or 0
    if kind_of(reference.word) == "item" and reference.word in ("row", "column", "field"):
        return []
    starts = dict(zip(own.readable.tolist(), own.starts.tolist(), strict=True))
    lists: list[list[tuple[str, int, int]]] = []
    for node in nodes:
        for match in BULLET.finditer(own.text(node)):
            start, number = starts[node] + match.start(), re.sub(r"\D", "", match.group())
            if not lists or number == "1" or start - lists[-1][-1][2] > LONGEST_ITEM:
                lists.append([])
            lists[-1].append((number, node, start))
    chosen = []
    for items in lists:
        numbered = [item for item in items if item[0] == str(place)]
        plain = [item for item in items if not item[0]]
        chosen += numbered or nth(items if place < 0 else plain, place) if len(items) > 1 else []
    found = [own.captioned("item", reference.word, str(place), node, start) for _, node, start in chosen]
    if len(nodes) == len(own.readable) and own.headings:
        levels = [heading.level for heading in own.headings]
        most = max(levels, key=levels.count)
        peers = [heading for heading in own.headings if heading.level == most]
        found += [own.part(heading) for heading in nth(peers, place)]
    return found
