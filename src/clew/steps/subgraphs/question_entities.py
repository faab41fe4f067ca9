"""The entities a question is about."""

from __future__ import annotations

from clew.index.protocol import Link, Names
from clew.steps.triplets.mentions import MARKED

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
