"""Sources of the candidates to rerank, and the entities of a question.

near_entities    short random walks from the question's entities: near nodes with few edges first, hubs last
of_method        the ranking of another method
written_answers  many different answers of a model, linked to nodes by name
of_file          candidates from a file
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from clew.answering.methods.answering import answer_nodes
from clew.answering.reading.extraction.asked import Asked
from clew.answering.reading.mentions import MARKED
from clew.answering.roles.write import ModelWriter
from clew.core.errors import NotFoundError
from clew.core.texts import read_json_lines
from clew.core.types import Answer, NodeSet, Ranking
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.protocol import Link, Names

FloatArray = NDArray[np.float64]
WIDEST = 500
"""Maximum number of nodes from which a walk continues at each step, likeliest first."""


def nearby(kb: KnowledgeBase, start: Sequence[int], k: int, *, steps: int = 3, among: NodeSet | None = None) -> Ranking:
    """Return the k likeliest nodes of random walks from `start` in either direction, with up to `steps` steps.

    The score of a node is its best probability over the numbers of steps, each divided by the highest probability at
    that number. Otherwise near nodes would always come before distant nodes.
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
    """Follow one random edge."""
    edges = kb.edges(at)
    sources, targets = np.append(edges.heads, edges.tails), np.append(edges.tails, edges.heads)
    leaving = np.isin(sources, at.array)
    owners = at.array.searchsorted(sources[leaving])
    degrees = np.bincount(owners, minlength=len(at))
    reached, places = np.unique(targets[leaving], return_inverse=True)
    flows = np.bincount(places, weights=chances[owners] / degrees[owners], minlength=len(reached))
    return NodeSet(reached.astype(np.int32)), flows.astype(np.float64)


MOST_LINKS = 3
"""Maximum number of nodes per mention if several share the name."""


def question_entities(question: str, names: Names) -> tuple[str, tuple[int, ...]]:
    """Return the question without brackets, and its nodes: the bracketed names, or else all names that occur."""
    marked = [names.link(match[1]) for match in MARKED.finditer(question)]
    if any(marked):
        plain = question.replace("[", "").replace("]", "")
        return plain, _nodes([links for links in marked if links])
    return question, _nodes([mention.links for mention in names.mentions(question)])


def _nodes(found: list[tuple[Link, ...]]) -> tuple[int, ...]:
    best = [[link for link in links if link.score == links[0].score][:MOST_LINKS] for links in found if links]
    return tuple(dict.fromkeys(link.node for links in best for link in links))


QuestionKind = Literal["entity", "yes/no", "count"]
"""Subgraphs rank entities. The paper reports yes/no questions and counts separately."""


def question_kind(question: str) -> QuestionKind:
    """Classify a question by its words."""
    kind = Asked(question).kind
    return "yes/no" if kind == "yes or no" else "count" if kind == "number" else "entity"


@dataclass(frozen=True, slots=True)
class ProposedCandidates:
    """Distinct candidates, best first, with the entities of the question and the question without brackets."""

    question: str
    entities: tuple[int, ...]
    candidates: tuple[int, ...]
    notes: tuple[str, ...] = ()
    value: bool | int | float | None = None
    """A generator's answer to a question for yes, no or a number."""


CandidateSource = Callable[[str, int], ProposedCandidates]
"""A question and a number of candidates → at most that many candidates to rerank."""


def of_method(question: str, k: int, *, answer: Callable[[str], Answer], names: Names) -> ProposedCandidates:
    """Return the first k candidates of another method, without the entities of the question."""
    plain, entities = question_entities(question, names)
    nodes = dict.fromkeys(c.node.id for c in answer(question).candidates if c.node.id not in entities)
    return ProposedCandidates(plain, entities, tuple(nodes)[:k])


def near_entities(question: str, k: int, *, kb: KnowledgeBase, names: Names) -> ProposedCandidates:
    """Return the k likeliest answer nodes by random walks from the question's entities. Needs no model and no texts."""
    plain, entities = question_entities(question, names)
    return ProposedCandidates(plain, entities, tuple(nearby(kb, entities, k, among=answer_nodes(kb)).nodes.tolist()))


def first_value(kind: QuestionKind, texts: Sequence[str]) -> bool | int | float | None:
    """Return the first written answer that is yes or no, or a number, if the question asks for that."""
    for text in texts:
        said = re.match(r"\W*(yes|no)\b", text, re.IGNORECASE) if kind == "yes/no" else None
        if said is not None:
            return said[1].lower() == "yes"
        number = re.fullmatch(r"\D*?(-?\d[\d,]*(?:\.\d+)?)\D*", text) if kind == "count" else None
        if number is not None:
            plain = number[1].replace(",", "")
            return float(plain) if "." in plain else int(plain)
    return None


def written_answers(question: str, k: int, *, writer: ModelWriter, names: Names) -> ProposedCandidates:
    """Return a model's different answers as nodes, in its order. Note answers that match no node."""
    plain, entities = question_entities(question, names)
    [written] = writer.answers([plain], k)
    value = first_value(question_kind(plain), written.texts)
    if value is not None:
        return ProposedCandidates(plain, entities, (), value=value)
    nodes: dict[int, None] = {}
    unknown = []
    for text in written.texts:
        links = [link for link in names.link(text, k=1) if link.how != "vector"]
        if not links:
            unknown.append(text)
        elif links[0].node not in entities:
            nodes[links[0].node] = None
    notes = [f"no node is called {', '.join(unknown)}"] if unknown else []
    notes += [written.problem] if written.problem else []
    return ProposedCandidates(plain, entities, tuple(nodes)[:k], tuple(notes))


class Given(BaseModel):
    """Candidates for a question from a file. Entities and candidates are keys or names of nodes."""

    model_config = ConfigDict(extra="ignore")
    id: str
    question: str
    question_entities: list[str] = []
    candidates: list[str]


def read_candidates(file: Path) -> dict[str, Given]:
    """Read JSON lines with id, question, question_entities and candidates. Return them by question."""
    expected = '{"id": …, "question": …, "question_entities": […], "candidates": […]}'
    return {line.question: line for line in read_json_lines(file, Given, expected)}


def of_file(
    question: str, k: int, *, lines: Mapping[str, Given], kb: KnowledgeBase, names: Names
) -> ProposedCandidates:
    """Return the candidates of the line with this question."""
    if question not in lines:
        raise NotFoundError(f"the file of candidates has no line with the question {question!r}")
    plain, entities = question_entities(question, names)
    given, unknown_entities = _named(lines[question].question_entities, kb, names)
    candidates, unknown = _named(lines[question].candidates, kb, names)
    lost = [*unknown_entities, *unknown]
    notes = (f"no node is called {', '.join(lost)}",) if lost else ()
    return ProposedCandidates(plain, given or entities, candidates[:k], notes)


def _named(texts: Sequence[str], kb: KnowledgeBase, names: Names) -> tuple[tuple[int, ...], list[str]]:
    """Return the nodes of keys or names, and the texts that match no node."""
    nodes: dict[int, None] = {}
    unknown = []
    for text in texts:
        found = kb.ids([text]) or [link.node for link in names.link(text, k=1) if link.how == "exact"]
        nodes |= dict.fromkeys(found)
        unknown += [] if found else [text]
    return tuple(nodes), unknown
