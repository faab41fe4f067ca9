"""Step 2: a textual requirement, taken from what is written about the gold node.

Without a model it is a distinctive phrase: words that stand in the gold node's text, in few or none of the other
candidates' texts, and seldom in the base; it is marked as such. A model extracts properties by role instead
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
AMONG = 3
"""One of so many best phrases is taken, so that phrases vary."""
RAREST = 7.0
"""Rarer words count no more: the rarest are misprints."""
BESIDE_THE_TEXT = 0.5
"""What attributes say, such as a curator's comment, counts for less than the text."""
_BREAK = re.compile(r"[.;:,()\[\]\"“”\n!?/]")


_NEGATIVE = re.compile(r"overall: [12](?:\.\d+)?(?:;|$)")
"""How a review begins that gives one or two stars of five: nobody looks for what it says."""
Strength = Literal["hard", "soft"]


@dataclass(frozen=True, slots=True)
class Property:
    """Something the answer's text says: the words, the field they come from, and their span where they are quoted."""

    text: str
    source: str
    start: int | None = None
    end: int | None = None
    strength: Strength = "hard"
    """Whether an answer must have it, or it is only desirable."""


@dataclass(frozen=True, slots=True)
class TextualRequirement:
    """What the text of an answer must say, and how that was found."""

    properties: tuple[Property, ...]
    how: Literal["distinctive phrase", "model"]
    item: str = ""
    """What kind of thing is sought, in general words, where that was found out."""
    negative: tuple[str, ...] = ()
    """What is said against the gold node: a question must not ask for the contrary."""

    @property
    def deciding(self) -> tuple[bool, ...]:
        """Which properties an answer must have: the hard ones, or all where there are only soft ones."""
        hard = tuple(one.strength == "hard" for one in self.properties)
        return hard if any(hard) else tuple(True for _ in hard)

    def using(self, places: Collection[int]) -> TextualRequirement:
        """The requirement with those properties only that a question asks for."""
        return replace(self, properties=tuple(one for place, one in enumerate(self.properties) if place in places))


def fields(kb: KnowledgeBase, node: int) -> list[tuple[str, str]]:
    """What is written about a node, without its names: the text, then its textual attributes, lists entry by entry."""
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
    """All fields of a node as normalised words, with a space at either end."""
    return f" {normalise(' | '.join(text for _, text in fields(kb, node)))} "


def distinctive_phrase(
    kb: KnowledgeBase, lexical: LexicalIndex, gold: int, others: NodeSet, rng: random.Random
) -> TextualRequirement | None:
    """A phrase that tells the gold node from the other candidates; None where no phrase tells it from any."""
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
    """The mean rarity of its terms; words of the name count for little, and three to five words read best."""
    found = terms(phrase)
    if not found:
        return 0.0
    borrowed = sum(token.text in name_words for token in tokens) / len(tokens)
    length = 1.0 if 3 <= len(tokens) <= 5 else 0.7
    return sum(min(lexical.idf(term), RAREST) for term in found) / len(found) * (1 - 0.8 * borrowed) * length


def phrases(text: str) -> Iterator[tuple[str, list[Token]]]:
    """Runs of words without punctuation inside that begin and end with a word that says something."""
    borders = [0, *(place.end() for place in _BREAK.finditer(text)), len(text)]
    for begin, end in pairwise(borders):
        piece = text[begin:end]
        tokens = [Token(t.text, t.start + begin, t.end + begin) for t in tokenise(piece)]
        for first in range(len(tokens)):
            for last in range(first + SHORTEST - 1, min(first + LONGEST, len(tokens))):
                edge = (tokens[first].text, tokens[last].text)
                if not any(word in stop_words() or word.isdigit() for word in edge):
                    yield text[tokens[first].start : tokens[last].end], tokens[first : last + 1]
