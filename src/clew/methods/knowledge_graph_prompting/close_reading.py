"""The best passages read closely by a trained network: ranked anew, the telling sentences marked, certainty said.

The constants were fitted on passages of folders that the network of each fold had not seen (docs/documents.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.core import trace
from clew.core.types import Node, Ranking
from clew.kb.protocol import KnowledgeBase
from clew.models.passages import PassageNetwork, Seen
from clew.reading.language.proper_names import sentence_spans

CLOSELY = 30
"""Passages that are read closely."""
READ_AGAIN = 15
"""Passages that are read a second time, knowing what led to them."""
PRIOR = 8.0
"""What the passage that fits best gains over one that does not fit, in log-odds; flat between 6 and 16."""
TELLING = 0.5
"""A sentence beside the best one is marked with it where it is at least so telling."""
MOST_MARKED = 3
"""Sentences that are marked together."""
BEST, SECOND, TOLD, OFFSET = 0.342, -0.208, 1.729, -1.27
"""Log-odds that the first passage says it: by its relevance, by the second's, by how telling its words are."""
TOLD_BY = 20
"""Words that tell how telling a passage is."""
FOUND = 0.2
"""What is less certain is not put forward; below are 5 % of the answerable questions of the left-out folders, 9 % of
those that they do not answer, and 48 % of those asked of another folder."""
SURE = 0.6
"""From here on the first passage is the answer; below, the first three may be."""


@dataclass(frozen=True, eq=False)
class CloseReading:
    """Passages in their new order, what the network saw in those it read, and how sure the first is."""

    ranking: Ranking
    seen: dict[int, Seen]
    certainty: float

    @property
    def found(self) -> bool:
        """Whether the first passage is put forward as saying it."""
        return self.certainty >= FOUND

    @property
    def is_sure(self) -> bool:
        """Whether the first passage is likely the one."""
        return self.certainty >= SURE

    def mark(self, node: Node) -> tuple[int, int] | None:
        """The characters of a passage that say it; None where it was not read closely."""
        seen = self.seen.get(node.id)
        return None if seen is None else telling_sentences(node, seen)


def read_closely(
    kb: KnowledgeBase,
    network: PassageNetwork,
    question: str,
    ranking: Ranking,
    closely: int = CLOSELY,
    led: Mapping[int, int] | None = None,
    fits: NDArray[np.float64] | None = None,
) -> CloseReading:
    """Read the best passages beside the question; what is not read keeps its place behind them.

    `fits` says how well each of the ranking fits by itself; by default its score there.

    `led` names for passages that a walk came to the one before: such a passage is read a second time, knowing what that
    one says, and counts by the better of the two.
    """
    nodes = {node: kb.node(node) for node, _ in ranking.top(closely)}
    if not nodes:
        return CloseReading(ranking, {}, 0.0)
    with trace.span("read closely", passages=len(nodes)) as span:
        read = network.read(question, [(node.name, node.text) for node in nodes.values()])
        seen = dict(zip(nodes, read, strict=True))
        relevance = {node: one.relevance for node, one in seen.items()}
        steps = [(node, before) for node, before in (led or {}).items() if node in seen and before in seen]
        steps = steps[:READ_AGAIN]
        known = [nodes[before].text[slice(*telling_sentences(nodes[before], seen[before]))] for _, before in steps]
        twice = [(nodes[node].name, nodes[node].text) for node, _ in steps]
        again = network.read(question, twice, known) if steps else []
        for (node, _), reading in zip(steps, again, strict=True):
            relevance[node] = max(relevance[node], reading.relevance)
        priors = np.asarray(ranking.scores if fits is None else fits, dtype=np.float64)[: len(nodes)]
        scores = np.array(list(relevance.values())) + PRIOR * priors / max(float(priors.max()), 1e-9)
        rest = np.asarray(ranking.scores[len(nodes) :], dtype=np.float64)
        behind = float(scores.min()) - 1 - (rest[:1].sum() - rest)
        ordered = Ranking.of(ranking.nodes, np.concatenate((scores, behind)))
        certainty = certainty_of([seen[node] for node, _ in ordered.top(min(2, len(nodes)))])
        span.note(certainty=round(certainty, 3), again=len(steps))
    return CloseReading(ordered, seen, certainty)


def certainty_of(best: Sequence[Seen]) -> float:
    """How likely the first passage says what is asked, by what the network saw in the first two."""
    first, second = best[0], best[-1]
    told = np.sort(_probability(first.telling))[-TOLD_BY:]
    odds = OFFSET + BEST * first.relevance + SECOND * second.relevance + TOLD * float(told.mean() if len(told) else 0)
    return 1 / (1 + math.exp(-odds))


def telling_sentences(node: Node, seen: Seen) -> tuple[int, int]:
    """The most telling sentence and its neighbours that are nearly as telling; of a table, its line."""
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


def _probability(odds: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-odds.astype(np.float64))))


def is_table(node: Node) -> bool:
    """Whether a node is a table or some rows of one."""
    return node.type == "table" or "\n|" in node.text


def table_lines(text: str) -> list[tuple[int, int]]:
    """The spans of the lines of a table, without the rule below its header."""
    spans, start = [], 0
    for line in text.split("\n"):
        if line.strip() and not set(line) <= set("|-: "):
            spans.append((start, start + len(line)))
        start += len(line) + 1
    return spans or [(0, len(text))]
