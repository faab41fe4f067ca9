"""Summaries without a language model: the most central sentences of a part, in reading order, as quotations.

Centrality is LexRank (Erkan & Radev, "LexRank: Graph-based Lexical Centrality as Salience in Text Summarization", JAIR
2004) over the vectors of the sentences. Sentences at the start of a section that share words with its heading count
more.

1  collect  at most 200 sentences, starting with the first sentences of every section
2  weigh    by LexRank, position, and words of the heading
3  choose   the best sentences that do not repeat each other (maximal marginal relevance), in reading order
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from clew.core.proper_names import sentence_spans
from clew.core.scores import cosines, round_scores
from clew.core.types import Node, Passage
from clew.store.index.tokens import terms

MOST = 200
"""Maximum number of sentences to weigh for one summary."""
EMBEDDED = 64
"""Maximum number of sentences to embed for one summary."""
SHORTEST, LONGEST = 30, 500
"""Minimum and maximum length of a sentence in a summary, in characters."""
OPENING, LEAD, HEADING = 0.6, 0.3, 0.3
"""Score added for opening the part, for opening a section, and for words of the heading. Centrality is at most 1."""
NUMBER, NAME = 15, 2
"""Minimum length of a sentence that is not just a number, in characters. Maximum words of a name that the next line
explains."""
REPEATING = 0.6
"""Weight of the similarity to sentences already chosen."""
DAMPING = 0.85
"""Usual damping of PageRank, here over similar sentences."""
Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, eq=False)
class Sentence:
    """A sentence of a passage: its span, its heading, and its index in the section."""

    node: Node
    start: int
    end: int
    heading: str
    place: int

    @property
    def text(self) -> str:
        """Text of the sentence on one line."""
        return " ".join(self.node.text[self.start : self.end].split())

    def quote(self) -> Passage:
        """Return the sentence as evidence."""
        return Passage.of(self.node, self.start, self.end)


def sentences_of(passages: Sequence[tuple[Node, str]], most: int = MOST) -> list[Sentence]:
    """Return up to `most` sentences of passages, openings of sections first.

    `passages` are in reading order, with their headings.
    """
    found: list[Sentence] = []
    place, before = 0, None
    for node, heading in passages:
        place = place if heading == before else 0
        before = heading
        if node.type == "table" or node.text.lstrip().startswith("|"):
            continue
        for start, end in sentence_spans(node.text):
            if is_sentence(node.text[start:end]):
                found.append(Sentence(node, start, end, heading, place))
                place += 1
    kept = sorted(range(len(found)), key=lambda one: (found[one].place, one))[:most]
    return [found[one] for one in sorted(kept)]


def lines_of(node: Node) -> list[Sentence]:
    """Return the sentences of a passage, and the lines of its tables, lists and code."""
    found: list[tuple[int, int]] = []
    for start, end in sentence_spans(node.text):
        if found and found[-1][1] - found[-1][0] < NUMBER and node.text[found[-1][1] - 1] in ".:)":
            start = found.pop()[0]  # a number or a caption's “Figure 3.” is not a separate sentence
        if "\n" not in node.text[start:end] or is_sentence(node.text[start:end]):
            found.append((start, end))
            continue
        for line in re.finditer(r"[^\n]+", node.text[start:end]):
            if line.group().strip(" |-:\t"):
                found.append((start + line.start(), start + line.end()))
    found = [
        (a, _with_next(found, place) if len(re.findall(r"\w+", node.text[a:b])) <= NAME else b)
        for place, (a, b) in enumerate(found)
    ]
    return [Sentence(node, start, end, node.name, place) for place, (start, end) in enumerate(found)]


def _with_next(spans: Sequence[tuple[int, int]], place: int) -> int:
    """Return the end of a name in a list of definitions: the end of its explanation if that follows directly."""
    (_, end), after = spans[place], spans[place + 1 : place + 2]
    return after[0][1] if after and after[0][0] - end <= 3 else end


def is_sentence(text: str) -> bool:
    """Return whether a span reads as a sentence: words, not code, numbers or a heading."""
    words = text.split()
    if not SHORTEST <= len(text) <= LONGEST or len(words) < 5 or re.search(r"\n\s*\n|\S {3,}\S", text):
        return False
    plain = sum(word.strip(".,;:()“”\"'’").isalpha() for word in words)
    return plain >= 0.7 * len(words) and text.rstrip()[-1:] in '.!?:”")'


def central(sentences: Sequence[Sentence], embed: Embed | None, count: int, opening: float = OPENING) -> list[Sentence]:
    """Return the `count` most central sentences that do not repeat each other, in reading order."""
    if len(sentences) <= count:
        return list(sentences)
    if embed is not None and len(sentences) > EMBEDDED:  # a first choice by words is cheap
        sentences = central(sentences, None, EMBEDDED, opening)
    vectors = vectors_of([sentence.text for sentence in sentences], embed)
    weights = lexrank(vectors) + _openings(sentences, opening)
    return [sentences[place] for place in sorted(diverse(weights, vectors, count))]


def own_to_each(parts: Sequence[Sequence[Sentence]], embed: Embed | None, count: int) -> list[list[Sentence]]:
    """Return for each part the sentences that are central to it and differ from the other parts."""
    if embed is not None:
        parts = [central(part, None, EMBEDDED // len(parts), 0.0) for part in parts]
    texts = [sentence.text for part in parts for sentence in part]
    if not texts:
        return [[] for _ in parts]
    vectors = vectors_of(texts, embed)
    bounds = np.cumsum([0, *map(len, parts)])
    groups = [vectors[first:last] for first, last in pairwise(bounds.tolist())]
    chosen: list[list[Sentence]] = []
    for own, group in enumerate(groups):
        others = [other.mean(axis=0) for place, other in enumerate(groups) if place != own and len(other)]
        if not len(group):
            chosen.append([])
            continue
        apart = np.max([cosines(group, other) for other in others], axis=0) if others else np.zeros(len(group))
        weights = cosines(group, group.mean(axis=0)) - apart + _openings(parts[own], 0.0) / 2
        chosen.append([parts[own][place] for place in sorted(diverse(weights, group, count))])
    return chosen


def lexrank(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the stationary weights of a random walk between sentences by similarity. The largest is 1."""
    likeness = np.maximum(vectors @ vectors.T, 0).astype(np.float64)
    np.fill_diagonal(likeness, 0.0)
    sums = likeness.sum(axis=1, keepdims=True)
    size = len(likeness)
    steps = np.divide(likeness, sums, out=np.full_like(likeness, 1 / max(size, 1)), where=sums > 0)
    weights = np.full(size, 1 / max(size, 1))
    for _ in range(30):
        weights = (1 - DAMPING) / size + DAMPING * (weights @ steps)
    return round_scores(weights / weights.max()).astype(np.float64)


def diverse(weights: NDArray[np.float64], vectors: NDArray[np.float32], count: int) -> list[int]:
    """Return the indexes of the `count` best by weight minus similarity to earlier choices, best first."""
    chosen: list[int] = []
    closest = np.zeros(len(weights))
    while len(chosen) < min(count, len(weights)):
        values = weights - REPEATING * closest
        values[chosen] = -np.inf
        best = int(values.argmax())
        chosen.append(best)
        closest = np.maximum(closest, cosines(vectors, vectors[best]))
    return chosen


def vectors_of(texts: Sequence[str], embed: Embed | None) -> NDArray[np.float32]:
    """Return a unit vector per text: from an embedder, or else from its terms, weighted by rarity."""
    if embed is not None:
        return embed(texts)
    found = [terms(text) for text in texts]
    known = {term: place for place, term in enumerate(dict.fromkeys(term for own in found for term in own))}
    matrix = np.zeros((len(texts), max(len(known), 1)), dtype=np.float32)
    for row, own in enumerate(found):
        for term in own:
            matrix[row, known[term]] += 1
    matrix *= np.log1p(len(texts) / np.maximum((matrix > 0).sum(axis=0), 1))
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.asarray(matrix / np.maximum(lengths, 1e-9), dtype=np.float32)


def _openings(sentences: Sequence[Sentence], opening: float) -> NDArray[np.float64]:
    weights = np.zeros(len(sentences))
    for place, sentence in enumerate(sentences):
        heading = set(terms(sentence.heading))
        shared = len(heading & set(terms(sentence.text))) / max(len(heading), 1)
        weights[place] = LEAD / (1 + sentence.place) + HEADING * shared + opening / (1 + place)
    return weights
