"""Answer questions that name a part of a document: locate it, then read, summarize, count or compare.

1  find the documents and parts that the question names. If the base has no such part, return None. The trace lists
   the existing parts
2  return a fact of the structure, a summary or a comparison, or
3  rank the passages of the part by the rest of the question, then ordinary search results, and read them
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from clew.answering.methods.knowledge_graph_prompting.answer import NOT_FOUND, READ, cite, read_passages
from clew.answering.methods.knowledge_graph_prompting.structure_facts import StructureFact, fact, heading_quote
from clew.answering.reading.documents import summaries
from clew.answering.reading.documents.close_reading import fitting_row, telling_sentences, told
from clew.answering.reading.documents.locating import Library, Located, Locator, top_level
from clew.answering.reading.documents.outline import Part
from clew.answering.reading.documents.references import Reference, Wanted, asks_for_all
from clew.answering.reading.documents.search import PassageSearch
from clew.answering.reading.documents.tables import TableReader
from clew.answering.roles.read import BestSpan
from clew.core.roles import Reader
from clew.core.types import Answer, Candidate, Passage, Ranking
from clew.models.passages import PassageNetwork
from clew.store.graph.protocol import StoredKnowledgeBase

SHORT = 700
"""Maximum characters of a part that is shown whole instead of summarized."""
LONGEST = 1500
"""Maximum characters shown of a table or figure."""
SHOWN = 30
"""Number of passages to rank."""
CORE, INSIDE = 1.0, 0.6
"""Bonus for passages of the named part itself, and for passages around it. The best passage has a fit of 1."""
NUMBER, NUMBER_ALONE, WORDS, AMBIGUOUS = 0.95, 0.85, 0.7, 0.5
"""Share of right parts: by number in a named document, by number without a document, by words, one of several."""
NARROW = {"page": 0, "section": 0, "table": 1, "figure": 1, "item": 2}
"""Depth of the kinds of parts. Of nested parts the innermost is read."""
SUMMARY = 6
"""Number of sentences of a summary."""
COMPARED = 4
"""Number of sentences that distinguish a part from the other parts."""
QUOTED = 3
"""Number of passages to quote if there is no model to read them."""
READ_INSIDE = 6
"""Number of passages of a part that the network reads to select the quotations."""
MOST_DOCUMENTS = 40
"""Maximum number of documents in the summary of a folder."""
MAIN_SECTIONS = 6
"""Maximum number of top-level headings in the summary of a document."""


@dataclass(frozen=True, eq=False)
class StructureAnswers:
    """Answers questions about parts of the documents of a base, and summarizes them."""

    kb: StoredKnowledgeBase
    search: PassageSearch
    tables: TableReader
    network: PassageNetwork

    @cached_property
    def library(self) -> Library:
        """The documents and their parts."""
        return Library(self.kb, self.search)

    def answer(self, question: str, found: Sequence[Reference], wants: Wanted, reader: Reader) -> Answer | None:
        """Return the answer, or None if the base has no part of that name. Then ordinary search answers."""
        if wants.what == "folder":
            return self._folder(question)
        if wants.what == "documents":
            return self._discussing(question, wants.about)
        locator = Locator(self.library, question, found)
        located = locator.locate()
        if locator.missing and not located:
            return self._not_there(locator) if locator.lacks_it else None
        if wants.what in ("count", "page", "section", "next", "previous", "parts"):
            told = fact(locator, wants, located)
            if told is not None:
                return self._told(locator, located, told)
        if wants.what == "comparison" and (compared := self._compared(locator, located)) is not None:
            return compared
        if wants.what == "summary" and (summary := self._summary(locator, located)) is not None:
            return summary
        return self._read(locator, located, reader) if located else None

    def _not_there(self, locator: Locator) -> Answer:
        """Return a not-found answer for a part that the document does not have, with close matches as candidates."""
        said = locator.said_missing()
        near = self._candidates(self._ranking(locator, []))
        return Answer(locator.question, near, text=f"{NOT_FOUND} {said[0].upper()}{said[1:]}.", answer_count=0)

    # Facts, summaries and comparisons

    def _told(self, locator: Locator, located: Sequence[Located], told: StructureFact) -> Answer:
        answer = self._ranked(locator, located)
        first = [Candidate(quote.node, 1.0, (quote,)) for quote in told.quotes]
        candidates = _distinct([*first, *answer.candidates])
        return replace(answer, candidates=candidates, text=told.text, value=told.value, evidence=told.quotes)

    def _summary(self, locator: Locator, located: Sequence[Located]) -> Answer | None:
        """Return the most central sentences of the named part or document."""
        inner = sorted(located, key=lambda one: -NARROW[one.reference.kind])
        if inner and inner[0].part.kind == "item":
            return None
        if inner and inner[0].part.kind in ("table", "figure"):
            return self._captioned(locator, inner)
        if inner:
            part = inner[0].part
        elif locator.documents.named and asks_for_all(locator.rest, of_a_document=True):
            part = self._whole(locator.documents.named[0])
        else:
            return None
        own = self.library.outline.map(part.document)
        quoted = [self._whole_quote(node) for node in part.nodes]
        if located and sum(len(quote.text) for quote in quoted) <= SHORT:
            text = "\n".join([part.name, *(quote.text for quote in quoted)])
            return replace(self._ranked(locator, located), text=text, evidence=tuple(quoted))
        opening = summaries.OPENING if located else 0.0  # documents start with titles, dates and licences
        chosen = summaries.central(self._sentences(part), self._embed, SUMMARY, opening)
        if len(chosen) < 2:  # a table, a figure or a listing: show its own text
            return None
        headings = [one for one in own.headings if one.start == part.start]
        lines = [part.name]
        if not located and (headings := [one for one in top_level(own.headings) if one.title != own.title]):
            headings = headings[:MAIN_SECTIONS]
            lines.append(f"Sections: {'; '.join(heading.title for heading in headings)}")
        lines += [f"– {sentence.text}" for sentence in chosen]
        quotes = tuple(heading_quote(own, heading) for heading in headings)
        quotes += tuple(sentence.quote() for sentence in chosen)
        said = [Candidate(ref, 1.0, (self._whole_quote(ref.id),)) for ref in self.kb.refs([s.node.id for s in chosen])]
        answer = self._ranked(locator, located)
        candidates = _distinct([*said, *answer.candidates])
        return replace(answer, candidates=candidates, text="\n".join(lines), evidence=quotes)

    def _captioned(self, locator: Locator, located: Sequence[Located]) -> Answer:
        """Return a table or figure, and the sentences of its page that mention it."""
        part, named = located[0].part, located[0].reference
        mentions = re.compile(rf"\b{named.word[:3]}\w*\.?\s*{re.escape(named.label or '')}(?!\.?\d)", re.IGNORECASE)
        lines = [
            line for node in dict.fromkeys((*part.core, *part.nodes)) for line in summaries.lines_of(self.kb.node(node))
        ]
        said = [line.quote() for line in lines if mentions.search(line.text)][:QUOTED] if named.label else []
        tables = [node for node in part.core if self.kb.type_of(node) == "table"]
        quotes = (*(self._whole_quote(node) for node in tables), *said) or (self._whole_quote(part.core[0]),)
        text = "\n".join(" ".join(quote.text.split()) if quote in said else quote.text for quote in quotes)
        return replace(self._ranked(locator, located), text=text[:LONGEST], evidence=quotes)

    def _compared(self, locator: Locator, located: Sequence[Located]) -> Answer | None:
        """Return the sentences that distinguish two parts or two documents."""
        best: dict[object, Part] = {}
        for one in sorted(located, key=lambda one: one.reference.start):
            best.setdefault(one.reference, one.part)
        parts = list(best.values())
        if not located:
            named = dict.fromkeys(self.library.mentions(locator.question).values())
            parts = list(map(self._whole, named))
        if len(parts) < 2 or not asks_for_all(locator.rest):
            return None
        chosen = summaries.own_to_each(list(map(self._sentences, parts)), self._embed, COMPARED)
        lines = [
            f"{part.name} ({self._file(part)}): " + " ".join(sentence.text for sentence in own)
            for part, own in zip(parts, chosen, strict=True)
        ]
        quotes = tuple(sentence.quote() for own in chosen for sentence in own)
        candidates = _distinct([Candidate(quote.node, 1.0, (quote,)) for quote in quotes])
        query = self._query(located)
        return Answer(locator.question, candidates, text="\n".join(lines), evidence=quotes, query=query)

    def _folder(self, question: str) -> Answer:
        """Return one line per document: its title, topic, pages and main sections."""
        outline = self.library.outline
        documents = outline.documents[:MOST_DOCUMENTS]
        each = max(1, summaries.MOST // max(len(outline.documents), 1))
        lines, quotes = [], []
        for document in documents:
            own = outline.map(document)
            first = [(self.kb.node(node), own.title) for node in own.readable[:20].tolist()]
            about = summaries.central(summaries.sentences_of(first, min(each, 8)), self._embed, 1)
            sections = [heading.title for heading in top_level(own.headings)][:MAIN_SECTIONS]
            facts = [f"{len(own.page_nodes)} pages"] if own.page_nodes else []
            facts += [f"sections: {'; '.join(sections)}"] if sections else []
            said = f" {about[0].text}" if about else ""
            lines.append(f"{own.title} ({own.file}):{said}" + (f" [{'; '.join(facts)}]" if facts else ""))
            quotes += [sentence.quote() for sentence in about] or [
                self._whole_quote(node) for node in own.readable[:1].tolist()
            ]
        rest = len(outline.documents) - len(documents)
        notes = (f"{rest} more documents are not listed",) if rest else ()
        candidates = tuple(Candidate(quote.node, 1.0, (quote,)) for quote in quotes)
        return Answer(
            question,
            candidates,
            text="\n".join(lines),
            evidence=tuple(quotes),
            notes=notes,
            value=len(outline.documents),
        )

    def _discussing(self, question: str, about: str) -> Answer | None:
        """Return the documents with most passages about a subject, relative to their length, with the best passage."""
        asked = self.search.about(about)
        found = []
        for document, share in self.library.discussing(about).items():
            nodes = self.library.outline.map(document).readable
            best = nodes[asked.words(nodes).argmax()]
            found.append(Candidate(self.kb.refs([document])[0], share, (self._whole_quote(int(best)),)))
        text = "\n".join(f"{one.node.name} ({one.node.key})" for one in found)
        quotes = tuple(quote for one in found for quote in one.evidence)
        return Answer(question, tuple(found), text=text, evidence=quotes, certainty=WORDS) if found else None

    def _whole(self, document: int) -> Part:
        own = self.library.outline.map(document)
        nodes = tuple(own.readable.tolist())
        return Part("document", own.title, own.node, 0, own.end, None, nodes, nodes, own.node)

    def _sentences(self, part: Part) -> list[summaries.Sentence]:
        """Return the sentences of a part, each with its heading."""
        own = self.library.outline.map(part.document)
        starts = [heading.start for heading in own.headings]
        places = dict(zip(own.readable.tolist(), own.starts.tolist(), strict=True))
        headed = []
        for node in part.core or part.nodes:
            place = bisect_right(starts, places.get(node, 0)) - 1
            headed.append((self.kb.node(node), own.headings[place].title if place >= 0 else own.title))
        return summaries.sentences_of(headed)

    @property
    def _embed(self) -> summaries.Embed:
        return partial(self.search.vectors.embedder.embed, role="document")

    # Reading

    def _read(self, locator: Locator, located: Sequence[Located], reader: Reader) -> Answer:
        """Rank the passages of the parts and read them."""
        answer = self._ranked(locator, located)
        looked_up = self.tables.answer(locator.rest, [node for one in located for node in one.part.core])
        if looked_up is not None:
            return replace(answer, text=looked_up.text, evidence=self.tables.quotes(looked_up))
        nodes = [candidate.node.id for candidate in answer.candidates[:READ]]
        items = [one for one in located if one.part.kind == "item"]
        if items and (len(items) == 1 or items[0].reference.label is not None):
            spans = self.library.outline.map(items[0].part.document).item(items[0].part)
            quotes = tuple(Passage.of(self.kb.node(node), start, end) for node, start, end in spans)
            return replace(answer, text=" ".join(w for quote in quotes for w in quote.text.split()), evidence=quotes)
        if isinstance(reader, BestSpan):
            return self._quoted(answer, locator, located, nodes)
        said = read_passages(self.kb, locator.question, [(node,) for node in nodes], reader)
        if said.problem is not None:
            answer = replace(answer, notes=(*answer.notes, *said.notes))
            return self._quoted(answer, locator, located, nodes)
        if said.text is None:
            return answer
        quotes, supported = cite(self.kb, locator.rest, said.text, [nodes[place] for place in said.citations])
        notes = () if supported else (f"unsupported: no cited passage writes “{said.text}”",)
        return replace(answer, text=said.text, evidence=quotes, notes=(*answer.notes, *notes))

    def _ranked(self, locator: Locator, located: Sequence[Located]) -> Answer:
        """Return the passages as candidates, with the located parts as the query."""
        return Answer(
            locator.question,
            self._candidates(self._ranking(locator, located)),
            query=self._query(located),
            notes=self._ambiguous(located),
            certainty=self._certainty(locator, located),
        )

    def _quoted(self, answer: Answer, locator: Locator, located: Sequence[Located], nodes: Sequence[int]) -> Answer:
        """Quote the sentences and lines of the best passages that fit the rest of the question."""
        narrow = max(NARROW[one.reference.kind] for one in located)
        parts = [one.part for one in located if NARROW[one.reference.kind] == narrow]
        inside = {node for part in parts for node in (*part.core, *part.nodes)}
        best = [self.kb.node(node) for node in ([node for node in nodes if node in inside][:READ_INSIDE] or nodes[:2])]
        seen = self.network.read(locator.question, [(node.name, node.text) for node in best])
        order = sorted(range(len(best)), key=lambda place: -seen[place].relevance)[:QUOTED]
        quotes = []
        for place in order:
            node, mark = best[place], telling_sentences(best[place], seen[place])
            if any(part.kind == "table" and node.id in part.core for part in parts):
                mark = fitting_row(node, locator.rest) or (0, min(len(node.text), LONGEST))
            quotes.append((node, mark))
        text = "\n".join(told(node, mark) for node, mark in quotes)
        return replace(answer, text=text, evidence=tuple(Passage.of(node, *mark) for node, mark in quotes))

    def _ranking(self, locator: Locator, located: Sequence[Located]) -> Ranking:
        """Rank passages inside the parts by their fit, then ordinary search results."""
        gains: dict[int, float] = {}
        sure = 1.0 if any(one.reference.is_certain for one in located) else 0.5
        for one in located:
            best = max(other.fit for other in located if other.reference is one.reference)
            weight = sure * (1.0 if one.fit > best - 1e-9 else 0.7)
            own = CORE if one.reference.kind in ("table", "figure", "item") else INSIDE
            for inside, gain in ((one.part.nodes, INSIDE), (one.part.core, own)):
                for node in inside:
                    gains[node] = max(gains.get(node, 0.0), weight * gain)
        parts = np.fromiter(gains, dtype=np.int32, count=len(gains))
        nodes = np.union1d(parts, locator.asked.pool.nodes[:SHOWN]).astype(np.int32)
        scores = locator.fits(nodes) + np.array([gains.get(node, 0.0) for node in nodes.tolist()])
        return Ranking.of(nodes, scores, SHOWN)

    def _candidates(self, ranking: Ranking) -> tuple[Candidate, ...]:
        return tuple(
            Candidate(ref, score, (self._whole_quote(ref.id),))
            for ref, (_, score) in zip(self.kb.refs(ranking.nodes), ranking, strict=True)
        )

    def _whole_quote(self, node: int) -> Passage:
        return Passage.of(self.kb.node(node))

    def _query(self, located: Sequence[Located]) -> dict[str, object]:
        found = []
        for one in located:
            key = None if one.part.node is None else self.kb.refs([one.part.node])[0].key
            found.append({"part": one.part.name, "file": self._file(one.part), "page": one.part.page, "node": key})
        return {"structure": found}

    def _file(self, part: Part) -> str:
        return self.library.outline.map(part.document).file

    def _certainty(self, locator: Locator, located: Sequence[Located]) -> float:
        """Return the certainty that these parts are meant: highest by number in a named document, lowest by words."""
        if not located:
            return WORDS if locator.documents.is_certain else AMBIGUOUS
        if not located[0].reference.is_certain:
            return WORDS
        if self._ambiguous(located):
            return AMBIGUOUS
        return NUMBER if locator.documents.is_certain else NUMBER_ALONE

    def _ambiguous(self, located: Sequence[Located]) -> tuple[str, ...]:
        if not located or not located[0].reference.is_certain:
            return ()
        named = located[0].reference
        files = dict.fromkeys(self._file(one.part) for one in located if one.reference is named)
        return (f"{named.in_words()} exists in {len(files)} documents: name one of them",) if len(files) > 1 else ()


def _distinct(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Merge the candidates of the same node with their evidence."""
    found: dict[int, Candidate] = {}
    for one in candidates:
        before = found.get(one.node.id)
        if before is None:
            found[one.node.id] = one
        elif before.score == one.score:
            found[one.node.id] = replace(before, evidence=tuple(dict.fromkeys((*before.evidence, *one.evidence))))
    return tuple(found.values())
