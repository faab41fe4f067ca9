"""Which nodes a question names, and how sure that is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.core.types import NodeSet
from clew.index.protocol import Link, Mention, Names
from clew.index.tokens import tokenise
from clew.kb.protocol import KnowledgeBase
from clew.reading.language.phrases import PhraseMatcher
from clew.reading.triplets.reading import NUMBERS, STOP_WORDS

MARKED = re.compile(r"\[([^\[\]]+)\]")
"""A name in square brackets is a mention for certain."""
LINKS = 20
ALIKE = 0.86
"""Less like a name than this, a word of a question is not one misspelt: "feature" is no "abnormal language feature"."""
FEWEST_DIGITS = 3
"""A shorter number is hardly ever a name."""
SCHEMA_WORD = 0.9
"""From this score on a single word is taken for the name of a type or a relation."""


@dataclass(frozen=True)
class Named:
    """A mention as words [first, last), the nodes it may stand for by type, and what it costs to leave it out."""

    span: tuple[int, int]
    text: str
    links: tuple[Link, ...]
    nodes: dict[str, NodeSet]
    weight: float
    is_written_as_name: bool = True
    """With a capital or a figure; in small letters it may as well describe something."""


def find_mentions(question: str, names: Names, schema_words: Sequence[PhraseMatcher]) -> tuple[str, list[Mention]]:
    """The question without brackets, and its mentions: those in brackets, or else whatever the base has a name for."""
    marked = list(MARKED.finditer(question))
    if marked:
        found = [Mention(m.start(1), m.end(1), m[1], names.link(m[1], k=LINKS)) for m in marked]
        found = [mention for mention in found if mention.links]
        if found:
            return question.replace("[", " ").replace("]", " "), found
    return question, [mention for mention in names.mentions(question) if _is_name(mention, schema_words)]


def _is_name(mention: Mention, schema_words: Sequence[PhraseMatcher]) -> bool:
    """Stop words and the words of the schema are words of the question, even where a node happens to be called so."""
    texts = [token.text for token in tokenise(mention.text)]
    if all(text in STOP_WORDS or text in NUMBERS for text in texts):
        return False
    if max(link.score for link in mention.links) < ALIKE:
        return False
    if mention.text.islower() and all(link.alias.isupper() for link in mention.links):
        return False  # "face" in a running text is no symbol such as FACE
    return len(texts) > 1 or all(words.by_letters(texts).max(initial=0.0) < SCHEMA_WORD for words in schema_words)


def has_schema_word(mention: Mention, relations: PhraseMatcher) -> bool:
    """Whether a word of a mention also names a relation."""
    texts = [token.text for token in tokenise(mention.text) if token.text not in STOP_WORDS]
    return mention.text.islower() and relations.by_letters(texts).max(initial=0.0) >= SCHEMA_WORD


def named(
    kb: KnowledgeBase, spans: Sequence[tuple[int, int]], mentions: Sequence[Mention], marked: bool
) -> list[Named]:
    """Mentions with their nodes by type; long and exact ones are the hardest to leave out."""
    found = []
    for span, mention in zip(spans, mentions, strict=True):
        exact = [link for link in mention.links if link.how == "exact"]
        links = tuple(exact or mention.links)
        by_type: dict[str, list[int]] = {}
        for link, ref in zip(links, kb.refs([link.node for link in links]), strict=True):
            by_type.setdefault(ref.type, []).append(link.node)
        words = min(span[1] - span[0], 4)
        is_written_as_name = not mention.text.islower()
        weight = 0.3 + 0.3 * (words - 1) + (0.4 if exact else 0.0) + (3.0 if marked else 0.0)
        if mention.text.isdigit() and len(mention.text) < FEWEST_DIGITS and not marked:
            weight = 0.1
        nodes = {kind: NodeSet.of(ids) for kind, ids in by_type.items()}
        found.append(Named(span, mention.text, links, nodes, weight, is_written_as_name))
    return found
