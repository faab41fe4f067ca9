"""Step 2: a textual requirement from the text of the gold node.

Without a model it is a distinctive phrase: words that occur in the gold node's text, in few or none of the other
candidates' texts, and rarely in the base. With a model, properties are extracted by role
(`clew.lab.synthesis.extraction`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from clew.core.types import NodeSet
from clew.store.graph.protocol import KnowledgeBase
from clew.store.graph.render import MOST_LISTED
from clew.store.index.lexical import LexicalIndex
from clew.store.index.tokens import Token, normalise, stop_words, terms, tokenise

LONGEST, SHORTEST = 6, 2
"""Maximum and minimum number of words of a phrase."""
AMONG = 3
"""Number of top phrases to choose from at random, for variety."""
RAREST = 7.0
"""Maximum IDF of a word. The rarest words are misprints."""
BESIDE_THE_TEXT = 0.5
"""Weight of attributes, such as a curator's comment, relative to the text."""
_BREAK = re.compile(r"[.;:,()\[\]\"“”\n!?/]")


_NEGATIVE = re.compile(r"overall: [12](?:\.\d+)?(?:;|$)")
"""Start of a review with one or two of five stars. Nobody searches for its content."""
Strength = Literal["hard", "soft"]


@dataclass(frozen=True, slots=True)
class Property:
    """A statement in the answer's text: its words, its field, and its span if quoted."""

    text: str
    source: str
    start: int | None = None
    end: int | None = None
    strength: Strength = "hard"
    """Whether an answer must have it ("hard") or it is only desirable ("soft")."""


@dataclass(frozen=True, slots=True)
class TextualRequirement:
    """Statements that the text of an answer must contain, and how they were found."""

    properties: tuple[Property, ...]
    how: Literal["distinctive phrase", "model"]
    item: str = ""
    """Kind of item, in general words, if known."""
    negative: tuple[str, ...] = ()
    """Negative points about the gold node. A question must not ask for the opposite."""

    @property
    def deciding(self) -> tuple[bool, ...]:
        """Which properties an answer must have: the hard ones, or all if there are only soft ones."""
        hard = tuple(one.strength == "hard" for one in self.properties)
        return hard if any(hard) else tuple(True for _ in hard)

    def using(self, places: Collection[int]) -> TextualRequirement:
        """Return the requirement with only the given properties."""
        return replace(self, properties=tuple(one for index, one in enumerate(self.properties) if index in places))


def fields(kb: KnowledgeBase, node: int) -> list[tuple[str, str]]:
    """Return a node's text and textual attributes without its names. Lists give one field per entry."""
    content = kb.node(node)
    found = [("text", content.text)]
    for name in kb.schema.node_type(content.type).attributes:
        value = content.attributes.get(name)
        if isinstance(value, str):
            found.append((name, value))
        elif isinstance(value, list):
            found += [(f"{name}-#{number}", str(entry)) for number, entry in enumerate(value[:MOST_LISTED], 1)]
    return [(name, text) for name, text in found if text.strip()]


def written(kb: KnowledgeBase, node: int) -> str:
    """Join all fields of a node as normalised words, with a space at both ends."""
    return f" {normalise(' | '.join(text for _, text in fields(kb, node)))} "


def distinctive_phrase(
    kb: KnowledgeBase, lexical: LexicalIndex, gold: int, others: NodeSet, rng: random.Random
) -> TextualRequirement | None:
    """Find a phrase that distinguishes the gold node from other candidates, or return None."""
    names = {normalise(name) for name in (kb.node(gold).name, *kb.node(gold).aliases)}
    name_words = {word for name in names for word in name.split()}
    documents = [written(kb, node) for node in others]
    scored: list[tuple[float, str, Property]] = []
    for field, text in fields(kb, gold):
        if _NEGATIVE.match(text):
            continue
        for phrase, tokens in phrases(text):
            said = " ".join(token.text for token in tokens)
            if any(f" {name} " in f" {said} " for name in names if name):
                continue
            having = sum(f" {said} " in document for document in documents)
            contrast = 1 - having / len(documents) if documents else 1.0
            weight = 1.0 if field == "text" else BESIDE_THE_TEXT
            score = weight * contrast * _telling(phrase, tokens, name_words, lexical)
            scored.append((score, said, Property(phrase, field, tokens[0].start, tokens[-1].end)))
    best = sorted((row for row in scored if row[0] > 0), key=lambda row: (-row[0], row[1]))[:AMONG]
    return TextualRequirement((rng.choice(best)[2],), "distinctive phrase") if best else None


def _telling(phrase: str, tokens: Sequence[Token], name_words: set[str], lexical: LexicalIndex) -> float:
    """Score a phrase by the mean rarity of its terms. Penalise words of the name, and lengths outside 3 to 5."""
    found = terms(phrase)
    if not found:
        return 0.0
    borrowed = sum(token.text in name_words for token in tokens) / len(tokens)
    length = 1.0 if 3 <= len(tokens) <= 5 else 0.7
    return sum(min(lexical.idf(term), RAREST) for term in found) / len(found) * (1 - 0.8 * borrowed) * length


def phrases(text: str) -> Iterator[tuple[str, list[Token]]]:
    """Yield word sequences without punctuation that start and end with a content word."""
    borders = [0, *(place.end() for place in _BREAK.finditer(text)), len(text)]
    for begin, end in pairwise(borders):
        tokens = [Token(t.text, t.start + begin, t.end + begin) for t in tokenise(text[begin:end])]
        for first in range(len(tokens)):
            for last in range(first + SHORTEST - 1, min(first + LONGEST, len(tokens))):
                edge = (tokens[first].text, tokens[last].text)
                if not any(word in stop_words() or word.isdigit() for word in edge):
                    yield text[tokens[first].start : tokens[last].end], tokens[first : last + 1]
