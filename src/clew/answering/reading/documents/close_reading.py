"""Read the best passages closely with a trained network: rerank them, mark the best sentences, compute the certainty.

For a passage that the network has not read, the best sentence is the sentence that shares most words with the question.
The constants were fitted on passages of folders that the network of each fold had not seen (docs/guides/documents.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clew.core import trace
from clew.core.proper_names import sentence_spans
from clew.core.types import Node, Passage, Ranking
from clew.models.passages import PassageNetwork, Seen
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.tokens import terms

PRIOR = 8.0
"""Weight of the search score, in log-odds of the best match over no match. Results are flat from 4 to 12."""
TELLING = 0.5
"""Minimum score of a sentence next to the best sentence to be marked with it, as a share of the best score."""
MOST_MARKED = 3
"""Maximum number of sentences to mark together."""
BEST, SECOND, OFFSET = 0.508, -0.254, -0.639
"""Weights for the log-odds that the first passage answers: its relevance, and the relevance of the second passage."""
FOUND = 0.15
"""Minimum certainty of a passage to be presented as the answer. Below it are 5 % of the answerable questions of the
held-out folders, and 24 % of the questions that these folders do not answer."""
SURE = 0.6
"""Minimum certainty to take the first passage as the answer. Below it, any of the first three may be the answer."""
LONGEST_QUOTE = 400
"""Maximum length of a quoted sentence, in characters."""


@dataclass(frozen=True, eq=False)
class CloseReading:
    """Reranked passages, network outputs for the passages it read, and the certainty of the first."""

    ranking: Ranking
    seen: dict[int, Seen]
    certainty: float

    @property
    def found(self) -> bool:
        """Whether the first passage is presented as the answer."""
        return self.certainty >= FOUND

    @property
    def is_sure(self) -> bool:
        """Whether the first passage is likely the answer."""
        return self.certainty >= SURE

    def mark(self, node: Node) -> tuple[int, int] | None:
        """Return the span of a passage that answers the question, or None if the network did not read the passage."""
        seen = self.seen.get(node.id)
        return None if seen is None else telling_sentences(node, seen)

    def told(self, node: Node) -> str:
        """Return the answering sentences of a passage, or its whole text if the network did not read it."""
        return told(node, self.mark(node) or (0, len(node.text)))


def read_closely(
    kb: KnowledgeBase, network: PassageNetwork, question: str, ranking: Ranking, read: Sequence[int]
) -> CloseReading:
    """Read some passages together with the question, and rerank all passages.

    The scores of the ranking rate each passage on its own. A passage that is not read gets the lowest relevance of the
    passages read. So reading a passage does not move it before a passage with a better score.
    """
    nodes = {node: kb.node(node) for node in read}
    if not nodes:
        return CloseReading(ranking, {}, 0.0)
    with trace.span("read closely", passages=len(nodes)) as span:
        titled = [(node.name, node.text) for node in nodes.values()]
        seen = dict(zip(nodes, network.read(question, titled), strict=True))
        least = min(one.relevance for one in seen.values())
        relevance = np.array([seen[node].relevance if node in seen else least for node, _ in ranking])
        fit = ranking.scores / max(float(ranking.scores.max()), 1e-9)
        ordered = Ranking.of(ranking.nodes, relevance + PRIOR * fit)
        certainty = certainty_of([seen[node] for node, _ in ordered if node in seen][:2])
        span.note(certainty=round(certainty, 3))
    return CloseReading(ordered, seen, certainty)


def certainty_of(best: Sequence[Seen]) -> float:
    """Return the probability that the first passage answers, from the network outputs for the first two."""
    return 1 / (1 + math.exp(-(OFFSET + BEST * best[0].relevance + SECOND * best[-1].relevance)))


def telling_sentences(node: Node, seen: Seen) -> tuple[int, int]:
    """Return the best sentence with neighbours that score nearly as high. For a table, return its line."""
    spans = (table_lines if is_table(node) else sentence_spans)(node.text)
    if not spans:
        return (0, len(node.text))
    probability = _probability(seen.telling)
    places = np.searchsorted([start for start, _ in spans], seen.spans[:, 0], side="right") - 1
    sums = np.bincount(np.maximum(places, 0), probability, len(spans))
    counts = np.bincount(np.maximum(places, 0), minlength=len(spans))
    telling = sums / np.maximum(counts, 1)
    first = last = int(np.argmax(telling))
    least = TELLING * telling[first]
    while last - first + 1 < MOST_MARKED:
        before = telling[first - 1] if first else -1.0
        after = telling[last + 1] if last + 1 < len(spans) else -1.0
        if max(before, after) < least:
            break
        first, last = (first - 1, last) if before >= after else (first, last + 1)
    return (spans[first][0], spans[last][1])


def told(node: Node, mark: tuple[int, int]) -> str:
    """Return the marked text on one line. For a table, return the marked line below its header."""
    text = node.text[slice(*mark)]
    if not is_table(node):
        return " ".join(text.split())
    start, end = next((span for span in table_lines(node.text) if node.text[span[0]] == "|"), mark)
    return text if mark[0] <= start else f"{node.text[start:end]}\n{text}"


def fitting_row(node: Node, question: str) -> tuple[int, int] | None:
    """Return the row of a table that shares most words with a question, or None if no row shares any."""
    asked = set(terms(question))
    rows = [span for span in table_lines(node.text) if node.text[span[0]] == "|"][1:]
    shared = [len(asked & set(terms(node.text[start:end]))) for start, end in rows]
    return rows[int(np.argmax(shared))] if any(shared) else None


def most_telling(node: Node, question: str, answer: str | None = None) -> Passage:
    """Return the sentence that contains the answer, or else shares most words with the question."""
    asked = set(terms(question))
    spans = sentence_spans(node.text) or [(0, len(node.text))]
    if is_table(node):
        spans = table_lines(node.text)

    def value(span: tuple[int, int]) -> tuple[bool, int]:
        sentence = node.text[span[0] : span[1]]
        return (writes(sentence, answer), len(asked & set(terms(sentence))))

    start, end = max(spans, key=value)
    if end - start > LONGEST_QUOTE:
        place = node.text.lower().find((answer or "\0").lower(), start, end)
        start = max(start, (place if place >= 0 else start) - LONGEST_QUOTE // 2)
        end = min(end, start + LONGEST_QUOTE)
    return Passage.of(node, start, end)


def writes(text: str, claim: str | None) -> bool:
    """Return whether a text contains all the words of a claim in sequence."""
    if not claim:
        return False
    wanted = _words(claim)
    return bool(wanted) and f" {' '.join(wanted)} " in f" {' '.join(_words(text))} "


def _words(text: str) -> list[str]:
    return "".join(letter.lower() if letter.isalnum() else " " for letter in text).split()


def _probability(odds: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-odds.astype(np.float64))))


def is_table(node: Node) -> bool:
    """Return whether a node is a table or some rows of a table."""
    return node.type == "table" or "\n|" in node.text


def table_lines(text: str) -> list[tuple[int, int]]:
    """Return the spans of the lines of a table, without the rule below its header."""
    spans, start = [], 0
    for line in text.split("\n"):
        if line.strip() and not set(line) <= set("|-: "):
            spans.append((start, start + len(line)))
        start += len(line) + 1
    return spans or [(0, len(text))]
