"""What a question names: spans with the nodes they may stand for, sorted by type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.core.types import NodeSet
from clew.index.protocol import Link, Mention, Names
from clew.kb.protocol import KnowledgeBase

MARKED = re.compile(r"\[([^\[\]]+)\]")
"""A name in square brackets is meant for certain."""
LINKS = 20
ALIKE = 0.86
"""A span less like a name than this is not that name misspelt."""
MOST_NAMED = 5


@dataclass(frozen=True)
class Sense:
    """The nodes of one type that a span may stand for."""

    type: str
    links: tuple[Link, ...]

    @property
    def nodes(self) -> NodeSet:
        """The nodes as a set."""
        return NodeSet.of([link.node for link in self.links])


@dataclass(frozen=True)
class Named:
    """A span of the question and its senses, the likeliest first."""

    start: int
    end: int
    text: str
    senses: tuple[Sense, ...]

    @property
    def is_exact(self) -> bool:
        """Whether something is called just so."""
        return self.senses[0].links[0].how == "exact"

    @property
    def is_doubtful(self) -> bool:
        """Whether it may be no name at all: misspelt, or a word in small letters where the name has capitals."""
        link = self.senses[0].links[0]
        return link.how != "exact" or (self.text.islower() and " " not in self.text and not link.alias.islower())


def find_named(question: str, kb: KnowledgeBase, names: Names) -> tuple[str, list[Named]]:
    """The question without brackets, and what it names: what stands in brackets, or else whatever has a name."""
    marked = list(MARKED.finditer(question))
    if marked:
        plain, moved = question, []
        for count, match in enumerate(marked):
            moved.append(Mention(match.start() - 2 * count, match.end() - 2 * count - 2, match[1], ()))
        plain = MARKED.sub(r"\1", question)
        found = [Mention(one.start, one.end, one.text, tuple(names.link(one.text, k=LINKS))) for one in moved]
        return plain, [_named(mention, kb) for mention in found if mention.links]
    mentions = [one for one in names.mentions(question) if _is_name(one)]
    return question, [_named(mention, kb) for mention in mentions[:MOST_NAMED]]


def _is_name(mention: Mention) -> bool:
    if not mention.links or (max(link.score for link in mention.links) < ALIKE and not mention.text[:1].isupper()):
        return False
    # "face" in a running text is no symbol such as FACE
    return not (mention.text.islower() and all(link.alias.isupper() for link in mention.links))


def _named(mention: Mention, kb: KnowledgeBase) -> Named:
    links = _as_good(mention.links)
    by_type: dict[str, list[Link]] = {}
    for link, ref in zip(links, kb.refs([link.node for link in links]), strict=True):
        by_type.setdefault(ref.type, []).append(link)
    senses = tuple(Sense(kind, tuple(_as_meant(some))) for kind, some in by_type.items())
    return Named(mention.start, mention.end, mention.text, senses)


def _as_good(links: Sequence[Link]) -> Sequence[Link]:
    """Exact links where there are any, those spelled just so before the others."""
    exact = [link for link in links if link.how == "exact"]
    spelled = [link for link in exact if link.score == 1.0]
    return spelled or exact or links


def _as_meant(links: Sequence[Link]) -> Sequence[Link]:
    """All that bear a name that is spelled just so; of near names only the nearest, and what bears that too."""
    if links[0].how == "exact":
        return links
    best = max(link.score for link in links)
    return [link for link in links if link.score >= best - 1e-6][:1]
