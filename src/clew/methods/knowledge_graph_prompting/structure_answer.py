"""Answers from pages, tables and sections that the question names: looked up, read, compared or shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from clew.core.roles import Reader
from clew.core.types import Answer, Candidate, Node, Passage
from clew.index.tokens import terms
from clew.kb.arrays import ArrayKnowledgeBase
from clew.methods.knowledge_graph_prompting.answer import cite, quotation, read_passages
from clew.methods.knowledge_graph_prompting.passages import PassageGraph
from clew.methods.knowledge_graph_prompting.structure_questions import Reference, Structure, without_references
from clew.methods.knowledge_graph_prompting.tables import TableReader, rows_of

SHOWN = 1500
"""Characters of a page or table that are shown as the answer."""
COMPARING = re.compile(r"\b(differences?|differ|compare|comparison|versus|vs)\b", re.IGNORECASE)
ABOUT_THE_WHOLE = frozenset(
    terms("say says show shown stand written contain contents content summary summarise describe give tell page table")
)
"""Words of a question that asks for a whole page or table and for nothing in it."""


@dataclass(frozen=True, eq=False)
class Part:
    """A located node with what it holds: itself for a table, its passages and tables for a page or section."""

    node: Node
    contents: tuple[Node, ...]

    @property
    def text(self) -> str:
        """Everything it holds."""
        return "\n\n".join(content.text for content in self.contents)


def part_of(kb: ArrayKnowledgeBase, graph: PassageGraph, node: int) -> Part:
    """A node with its contents in reading order."""
    own = kb.node(node)
    if own.type == "table":
        return Part(own, (own, *(kb.node(rows) for rows in rows_of(kb, node))))
    inside = [kb.node(content) for content in graph.contents(node).tolist()]
    return Part(own, tuple(sorted(inside, key=lambda content: content.attributes.get("start", 0))))


@dataclass(frozen=True, eq=False)
class StructureAnswers:
    """Answers questions that name pages, tables or sections of the documents of a base."""

    kb: ArrayKnowledgeBase

    @cached_property
    def structure(self) -> Structure:
        """Where everything is."""
        return Structure(self.kb)

    @cached_property
    def graph(self) -> PassageGraph:
        """What is inside what."""
        return PassageGraph(self.kb, ())

    @cached_property
    def tables(self) -> TableReader:
        """Answers from tables."""
        return TableReader(self.kb)

    def answer(self, question: str, named: Sequence[Reference], reader: Reader) -> Answer:
        """Looked up, compared, shown or read; without a text where what is named does not exist."""
        located = self.structure.locate(question, named)
        parts = [part_of(self.kb, self.graph, node) for node in located.nodes]
        query = {"structure": [part.node.key for part in parts]}
        candidates = _candidates(self.kb, parts)
        answer = Answer(question, candidates, evidence=_whole(parts), query=query, notes=located.notes)
        if not parts:
            return answer
        rest = without_references(question, named)
        tables = [content.id for part in parts for content in (part.node, *part.contents) if content.type == "table"]
        looked_up = self.tables.answer(rest, tables)
        if looked_up is not None:
            return replace(answer, text=looked_up.text, evidence=self.tables.quotes(looked_up))
        if COMPARING.search(question) and len(parts) > 1:
            return replace(answer, text=_compared(parts))
        if set(terms(rest)) <= ABOUT_THE_WHOLE:
            return replace(answer, text="\n\n".join(part.text for part in parts)[:SHOWN])
        return self._read(answer, rest, parts, reader)

    def _read(self, answer: Answer, rest: str, parts: Sequence[Part], reader: Reader) -> Answer:
        nodes = [content.id for part in parts for content in part.contents]
        read = read_passages(self.kb, rest, nodes, reader)
        if read.text is None:
            return answer
        quotes, supported = cite(self.kb, rest, read.text, [nodes[place] for place in read.citations])
        said = () if supported else (f"unsupported: no cited passage writes “{read.text}”",)
        return replace(answer, text=read.text, evidence=quotes, notes=(*answer.notes, *said))


def _candidates(kb: ArrayKnowledgeBase, parts: Sequence[Part]) -> tuple[Candidate, ...]:
    """The located nodes, then what they hold."""
    order = dict.fromkeys(part.node.id for part in parts)
    order |= dict.fromkeys(content.id for part in parts for content in part.contents)
    texts = {content.id: content for part in parts for content in (*part.contents, part.node)}
    return tuple(
        Candidate(ref, 1.0 if place < len(parts) else 0.5, _quoted(texts[ref.id]))
        for place, ref in enumerate(kb.refs(list(order)))
    )


def _quoted(node: Node) -> tuple[Passage, ...]:
    return (quotation(node, 0, len(node.text)),) if node.text else ()


def _whole(parts: Sequence[Part]) -> tuple[Passage, ...]:
    return tuple(quotation(content, 0, len(content.text)) for part in parts for content in part.contents)


def _compared(parts: Sequence[Part]) -> str:
    """What each part holds that no other does, in its own words."""
    shown = []
    for part in parts:
        others = {term for other in parts if other is not part for term in terms(other.text)}
        own = [line for line in re.split(r"(?<=[.!?])\s+|\n+", part.text) if line.strip() and set(terms(line)) - others]
        shown.append(f"only {part.node.name}: " + " ".join(own)[: SHOWN // len(parts)])
    return "\n".join(shown)
