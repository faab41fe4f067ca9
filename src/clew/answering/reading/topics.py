"""Topic entities: the start nodes of a question, marked as [Name], passed separately, or linked by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clew.answering.reading.mentions import MARKED
from clew.core.types import NodeSet
from clew.store.index.protocol import Link, Names

SURE = 0.9
"""Minimum score of a link as a share of the best link's score."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A name in the question and all nodes it may refer to."""

    text: str
    nodes: NodeSet
    how: str
    """Kind of match: "exact", "fuzzy" or "vector"."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The question without its marks, and its topics in reading order."""

    question: str
    topics: tuple[Topic, ...]


def find_topics(question: str, names: Names, given: Sequence[str] = ()) -> Topics:
    """Return the given topics, or else the marked topics, or else all names that occur in the question."""
    plain = MARKED.sub(r"\1", question)
    marked = [*given] or MARKED.findall(question)
    if marked:
        linked = [(text, names.link(text, k=50)) for text in dict.fromkeys(marked)]
    else:
        linked = [(mention.text, mention.links) for mention in names.mentions(plain)]
    return Topics(plain, tuple(_topic(text, links) for text, links in linked if links))


def _topic(text: str, links: Sequence[Link]) -> Topic:
    """Link a name to its best node, or to all nodes with equally good exact links."""
    best = max(links, key=lambda link: link.score)
    alike = [link.node for link in links if link.how == best.how and link.score >= best.score * SURE]
    return Topic(text, NodeSet.of(alike if best.how == "exact" else alike[:1]), best.how)
