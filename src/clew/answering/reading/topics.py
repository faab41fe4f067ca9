"""Topic entities: the nodes a question starts from, marked as [Name], given beside it, or linked by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clew.answering.reading.mentions import MARKED
from clew.core.types import NodeSet
from clew.store.index.protocol import Link, Names

SURE = 0.9
"""Links to a marked name that score less than this share of its best link stand for something else."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A name of the question and every node it may stand for."""

    text: str
    nodes: NodeSet
    how: str
    """"exact", "fuzzy" or "vector": how the name was found."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The question without its marks, and its topics in reading order."""

    question: str
    topics: tuple[Topic, ...]


def find_topics(question: str, names: Names, given: Sequence[str] = ()) -> Topics:
    """The topics given beside the question, or else marked in it, or else all names that occur in it."""
    plain = MARKED.sub(r"\1", question)
    marked = [*given] or MARKED.findall(question)
    if marked:
        linked = [(text, names.link(text, k=50)) for text in dict.fromkeys(marked)]
    else:
        linked = [(mention.text, mention.links) for mention in names.mentions(plain)]
    return Topics(plain, tuple(_topic(text, links) for text, links in linked if links))


def _topic(text: str, links: Sequence[Link]) -> Topic:
    """All nodes whose link is as good as the best one: a name may belong to many."""
    best = max(links, key=lambda link: link.score)
    alike = [link.node for link in links if link.how == best.how and link.score >= best.score * SURE]
    return Topic(text, NodeSet.of(alike if best.how == "exact" else alike[:1]), best.how)
