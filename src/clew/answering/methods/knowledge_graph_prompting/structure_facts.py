"""Facts of the structure of a document: counts, pages, sections, neighbours and contents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.answering.reading.documents.close_reading import most_telling
from clew.answering.reading.documents.locating import Located, Locator, figures, top_level
from clew.answering.reading.documents.outline import DocumentMap, Heading
from clew.answering.reading.documents.references import Kind, Wanted, general_terms
from clew.core.types import Passage
from clew.store.index.tokens import terms

MOST_LISTED = 30
"""Maximum number of headings to list."""
HEADING = 1.5
"""Score of a heading that has all words of the question. The best passage has a fit of 1."""
EXTRA = 0.02
"""Penalty for each word of a heading that is not in the question."""
MOST_SHARE = 0.8
"""Maximum share of its document that a heading may cover. Larger sections do not locate anything."""
LEAST = 0.5
"""Minimum score of a section to be named."""


@dataclass(frozen=True, slots=True)
class StructureFact:
    """A fact as a text and as a value, with its quotations."""

    text: str
    quotes: tuple[Passage, ...]
    value: int | str | None = None


def fact(locator: Locator, wants: Wanted, located: Sequence[Located]) -> StructureFact | None:
    """Return the requested fact, or None if the base does not contain it."""
    if wants.what == "count":
        return _count(locator, wants)
    if wants.what == "page":
        return _page(locator, located)
    if wants.what == "section":
        return _section(locator, wants)
    if wants.what in ("next", "previous"):
        return _beside(locator, wants, located)
    return _parts(locator, located)


def heading_quote(own: DocumentMap, heading: Heading) -> Passage:
    """Return a heading as a quotation."""
    node = own.node if heading.node is None else heading.node
    [ref] = own.kb.refs([node])
    return Passage(ref, heading.title, own.file, heading.page, heading.start, heading.start + len(heading.title))


def _named(locator: Locator) -> DocumentMap | None:
    """Return the only or the first named document."""
    library = locator.library
    if locator.documents.named:
        return library.outline.map(locator.documents.named[0])
    return library.outline.map(library.outline.documents[0]) if len(library.outline.documents) == 1 else None


def _count(locator: Locator, wants: Wanted) -> StructureFact | None:
    """Count the pages, sections, tables or figures of a document. The question may name only the document."""
    own = _named(locator)
    if own is None:
        return None
    if not set(terms(wants.about)) <= locator.library.outline.names[own.node] | general_terms():
        return None
    counted, quotes = _counted(own, wants.kind)
    if not counted:
        return None
    return StructureFact(f"{own.title} has {counted} {wants.kind}{'s' if counted != 1 else ''}.", quotes, counted)


def _counted(own: DocumentMap, kind: Kind) -> tuple[int, tuple[Passage, ...]]:
    if kind == "page":
        return len(own.page_nodes), tuple(most_telling(own.kb.node(node), "") for node in own.readable[-1:].tolist())
    if kind == "section":
        top = top_level(own.headings)
        return len(top), tuple(heading_quote(own, heading) for heading in top[:MOST_LISTED])
    nodes = own.tables if kind == "table" else tuple(part.core[0] for part in figures(own))
    return len(nodes), tuple(most_telling(own.kb.node(node), kind) for node in nodes[:MOST_LISTED])


def _page(locator: Locator, located: Sequence[Located]) -> StructureFact | None:
    """Return the page of a named part, of the best section, or of the best passage."""
    section = None if located else _section(locator, Wanted("section", about=locator.rest), by_heading=True)
    if located and located[0].part.nodes:
        quote = most_telling(locator.kb.node(located[0].part.nodes[0]), locator.rest)
        quote = replace(quote, page=located[0].part.page or quote.page)
    elif section is not None:
        quote = section.quotes[0]
    elif (best := _best(locator)) is not None:
        quote = most_telling(locator.kb.node(best), locator.rest)
    else:
        return None
    if quote.page is None:
        return section
    own = locator.library.outline.map(locator.library.outline.document_of(quote.node.id))
    label = own.page_labels[own.page_numbers.index(quote.page)] if quote.page in own.page_numbers else ""
    printed = f" (printed as {label})" if label and label != str(quote.page) else ""
    where = f"{located[0].part.name}: " if located else f"{quote.text}: " if section is not None else ""
    return StructureFact(f"{where}page {quote.page}{printed} of {own.title}", (quote,), quote.page)


def _best(locator: Locator) -> int | None:
    """Return the best passage of the named document, among those with the rarest word of the question."""
    if not locator.documents.named:
        return None
    own, lexical = locator.library.outline.map(locator.documents.named[0]), locator.library.search.lexical
    rarest = sorted(terms(locator.rest), key=lexical.idf, reverse=True)
    having = (own.readable[np.isin(own.readable, lexical.having(term).array)] for term in rarest)
    nodes = next(filter(len, having), own.readable)
    return int(nodes[locator.fits(nodes).argmax()]) if len(nodes) else None


def _section(locator: Locator, wants: Wanted, *, by_heading: bool = False) -> StructureFact | None:
    """Return the section of a named document that fits best by its heading and its passages."""
    own = _named(locator)
    if own is None or not own.headings:
        return None
    about = set(terms(wants.about)) - locator.library.outline.names[own.node] - general_terms()
    if not about:
        return None
    headings = top_level(own.headings) if "chapter" in locator.question.casefold() else own.headings
    headings = [one for one in headings if one.end - one.start < MOST_SHARE * own.end]
    if not headings:
        return None
    fits = locator.fits(own.readable)
    weights = {term: locator.library.search.lexical.idf(term) for term in about}
    whole = sum(weights.values()) or 1.0

    def shared(heading: Heading) -> float:
        own_terms = {term for term in terms(heading.title) if not term.isdigit()}
        written = len(about & own_terms) / len(own_terms) if len(own_terms) > 1 else 0.0
        share = sum(weights[term] for term in about & own_terms) / whole
        return max(share - EXTRA * len(own_terms - about), written)

    def value(heading: Heading) -> float:
        first, last = np.searchsorted(own.starts, [heading.start, max(heading.end, heading.start + 1)])
        inside = np.sort(fits[first:last])[::-1][:3]
        return HEADING * shared(heading) + (float(inside.mean()) if len(inside) else 0.0)

    best = max(headings, key=lambda heading: (value(heading), heading.level))
    if value(best) < LEAST or (by_heading and shared(best) < 0.5):
        return None
    where = "" if best.page is None else f", page {best.page}"
    quotes = [heading_quote(own, best)]
    nodes = own.part(best).nodes
    if nodes:
        quotes.append(most_telling(own.kb.node(nodes[0]), locator.rest))
    return StructureFact(f"{best.title}{where}", tuple(quotes))


def _beside(locator: Locator, wants: Wanted, located: Sequence[Located]) -> StructureFact | None:
    """Return the section or page directly after or before a named one."""
    if not located:
        return None
    part = located[0].part
    own = locator.library.outline.map(part.document)
    step = 1 if wants.what == "next" else -1
    if part.kind == "page":
        place = own.page_nodes.index(part.node) + step if part.node in own.page_nodes else -1
        if not 0 <= place < len(own.page_nodes):
            return None
        beside = own.page(place)
        quotes = tuple(most_telling(own.kb.node(node), "") for node in beside.nodes[:5])
        return StructureFact("\n".join(quote.text for quote in quotes), quotes, beside.page)
    here = next((one for one in own.headings if one.start == part.start), None)
    if here is None:
        return None
    peers = [one for one in own.headings if one.level <= here.level or one is here]
    place = peers.index(here) + step
    if not 0 <= place < len(peers):
        return None
    return StructureFact(peers[place].title, (heading_quote(own, peers[place]),))


def _parts(locator: Locator, located: Sequence[Located]) -> StructureFact | None:
    """Return the headings one level below a named section, or the top headings of a document."""
    own = locator.library.outline.map(located[0].part.document) if located else _named(locator)
    if own is None:
        return None
    if located:
        span = located[0].part
        under = [one for one in own.headings if span.start < one.start < span.end]
        depth = min((one.level for one in under), default=0)
        listed = [one for one in under if one.level == depth]
    else:
        listed = top_level(own.headings)
    if not listed:
        return None
    quotes = tuple(heading_quote(own, one) for one in listed[:MOST_LISTED])
    return StructureFact("\n".join(one.title for one in listed[:MOST_LISTED]), quotes, len(listed))
