"""Where the candidates that are reranked come from, and which entities a question is about.

Nearby          short random walks from the question's entities: near and little connected nodes first, hubs last
OfMethod        the ranking of another method
WrittenAnswers  what a model answers when asked for many different answers, linked to nodes by name
FromFile        candidates that somebody else found
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from clew.core.errors import NotFoundError, SourceError
from clew.core.roles import Writer
from clew.core.types import Answer, NodeSet, Ranking
from clew.index.protocol import Link, Names
from clew.kb.protocol import KnowledgeBase
from clew.methods.answering import answer_nodes
from clew.reading.extraction.asked import Asked
from clew.reading.mentions import MARKED

FloatArray = NDArray[np.float64]
WIDEST = 500
"""Nodes from which a walk goes on at each step, the most likely ones."""


def nearby(kb: KnowledgeBase, start: Sequence[int], k: int, *, steps: int = 3, among: NodeSet | None = None) -> Ranking:
    """The k nodes most likely to be reached from `start` in 1, 2 or more steps along edges of either direction.

    Of a node the best of its chances for the different numbers of steps counts, each relative to the most likely node
    at that number: otherwise nearer nodes would always come before farther ones.
    """
    at = NodeSet.of(list(start))
    chances: FloatArray = np.full(len(at), 1.0 / max(len(at), 1))
    own = at
    best: dict[int, float] = {}
    for _ in range(steps):
        if not len(at):
            break
        at, chances = _step(kb, at, chances)
        allowed = np.ones(len(at), dtype=np.bool_) if among is None else np.isin(at.array, among.array)
        counted = allowed & ~np.isin(at.array, own.array)
        highest = float(chances[counted].max(initial=0.0))
        for node, chance in zip(at.array[counted].tolist(), chances[counted].tolist(), strict=True):
            best[node] = max(best.get(node, 0.0), chance / highest)
        widest = np.argsort(-chances, kind="stable")[:WIDEST]
        order = np.sort(widest)
        at, chances = NodeSet(at.array[order]), chances[order]
    return Ranking.of(list(best), list(best.values()), k)


def _step(kb: KnowledgeBase, at: NodeSet, chances: FloatArray) -> tuple[NodeSet, FloatArray]:
    """Go along one edge chosen at random."""
    edges = kb.edges(at)
    sources, targets = np.append(edges.heads, edges.tails), np.append(edges.tails, edges.heads)
    leaving = np.isin(sources, at.array)
    owners = at.array.searchsorted(sources[leaving])
    degrees = np.bincount(owners, minlength=len(at))
    reached, places = np.unique(targets[leaving], return_inverse=True)
    flows = np.bincount(places, weights=chances[owners] / degrees[owners], minlength=len(reached))
    return NodeSet(reached.astype(np.int32)), flows.astype(np.float64)


MOST_LINKS = 3
"""Nodes taken for one mention where several bear the name."""


def question_entities(question: str, names: Names) -> tuple[str, tuple[int, ...]]:
    """The question without brackets, and the nodes it names: those in brackets, or else every name that occurs."""
    marked = [names.link(match[1]) for match in MARKED.finditer(question)]
    if any(marked):
        plain = question.replace("[", "").replace("]", "")
        return plain, _nodes([links for links in marked if links])
    return question, _nodes([mention.links for mention in names.mentions(question)])


def _nodes(found: list[tuple[Link, ...]]) -> tuple[int, ...]:
    best = [[link for link in links if link.score == links[0].score][:MOST_LINKS] for links in found if links]
    return tuple(dict.fromkeys(link.node for links in best for link in links))


QuestionKind = Literal["entity", "yes/no", "count"]
"""Subgraphs rank entities; whether something holds and how many there are, the paper reports apart."""


def question_kind(question: str) -> QuestionKind:
    """What a question asks for, by its words."""
    kind = Asked(question).kind
    return "yes/no" if kind == "yes or no" else "count" if kind == "number" else "entity"


@dataclass(frozen=True, slots=True)
class Proposal:
    """Candidates best first without repetition, the entities the question is about, and the question in plain words."""

    question: str
    entities: tuple[int, ...]
    candidates: tuple[int, ...]
    notes: tuple[str, ...] = ()
    value: bool | int | float | None = None
    """What a generator answers where the question asks for yes, no or a number."""


class CandidateSource(Protocol):
    """Proposes answers to be reranked."""

    def propose(self, question: str, k: int) -> Proposal:
        """Up to k candidates."""
        ...


@dataclass(frozen=True)
class OfMethod:
    """The ranking of another method; entities of the question itself are no answers."""

    answer: Callable[[str], Answer]
    names: Names

    def propose(self, question: str, k: int) -> Proposal:
        """Its first k candidates."""
        plain, entities = question_entities(question, self.names)
        ranked = self.answer(question).candidates
        nodes = dict.fromkeys(candidate.node.id for candidate in ranked if candidate.node.id not in entities)
        return Proposal(plain, entities, tuple(nodes)[:k])


@dataclass(frozen=True)
class Nearby:
    """The nodes that short random walks from the question's entities reach: no model, no text."""

    kb: KnowledgeBase
    names: Names
    steps: int = 3

    def propose(self, question: str, k: int) -> Proposal:
        """The k most likely nodes of the answer types."""
        plain, entities = question_entities(question, self.names)
        ranking = nearby(self.kb, entities, k, steps=self.steps, among=answer_nodes(self.kb))
        return Proposal(plain, entities, tuple(ranking.nodes.tolist()))


def first_value(kind: QuestionKind, texts: Sequence[str]) -> bool | int | float | None:
    """The first written answer that says yes or no, or a number, where that is asked for."""
    for text in texts:
        said = re.match(r"\W*(yes|no)\b", text, re.IGNORECASE) if kind == "yes/no" else None
        if said is not None:
            return said[1].lower() == "yes"
        number = re.fullmatch(r"\D*?(-?\d[\d,]*(?:\.\d+)?)\D*", text) if kind == "count" else None
        if number is not None:
            plain = number[1].replace(",", "")
            return float(plain) if "." in plain else int(plain)
    return None


@dataclass(frozen=True)
class WrittenAnswers:
    """What a model answers when it is asked for many different answers, linked to nodes by name."""

    writer: Writer
    names: Names

    def propose(self, question: str, k: int) -> Proposal:
        """The answers that name a node, in the model's order; those that name none are noted."""
        plain, entities = question_entities(question, self.names)
        [written] = self.writer.answers([plain], k)
        value = first_value(question_kind(plain), written.texts)
        if value is not None:
            return Proposal(plain, entities, (), value=value)
        found: dict[int, None] = {}
        unknown = []
        for text in written.texts:
            links = [link for link in self.names.link(text, k=1) if link.how != "vector"]
            if not links:
                unknown.append(text)
            elif links[0].node not in entities:
                found[links[0].node] = None
        notes = [f"no node is called {', '.join(unknown)}"] if unknown else []
        notes += [written.problem] if written.problem else []
        return Proposal(plain, entities, tuple(found)[:k], tuple(notes))


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore")
    id: str
    question: str
    question_entities: list[str] = []
    candidates: list[str]


@dataclass(frozen=True)
class FromFile:
    """Candidates that somebody else found: JSON lines with id, question, question_entities and candidates."""

    kb: KnowledgeBase
    names: Names
    lines: Mapping[str, _Line]

    @classmethod
    def read(cls, file: Path, kb: KnowledgeBase, names: Names) -> FromFile:
        """Read a file; entities and candidates are keys or names of nodes."""
        lines = {}
        for number, text in enumerate(file.read_text("utf-8").splitlines(), start=1):
            if text.strip():
                try:
                    line = _Line.model_validate_json(text)
                except ValidationError as error:
                    expected = '{"id": …, "question": …, "question_entities": […], "candidates": […]}'
                    raise SourceError(f"expected {expected}: {error}", file=file, line=number) from error
                lines[line.question] = line
        return cls(kb, names, lines)

    def propose(self, question: str, k: int) -> Proposal:
        """The candidates of the line with this question."""
        line = self.lines.get(question)
        if line is None:
            raise NotFoundError(f"the file of candidates has no line with the question {question!r}")
        plain, entities = question_entities(question, self.names)
        given, unknown_entities = self._nodes(line.question_entities)
        found, unknown = self._nodes(line.candidates)
        lost = [*unknown_entities, *unknown]
        notes = (f"no node is called {', '.join(lost)}",) if lost else ()
        return Proposal(plain, given or entities, found[:k], notes)

    def _nodes(self, texts: Sequence[str]) -> tuple[tuple[int, ...], list[str]]:
        nodes: dict[int, None] = {}
        unknown = []
        for text in texts:
            try:
                nodes[self.kb.find(text)] = None
            except NotFoundError:
                links = [link for link in self.names.link(text, k=1) if link.how == "exact"]
                if links:
                    nodes[links[0].node] = None
                else:
                    unknown.append(text)
        return tuple(nodes), unknown
