"""The best passages read closely by a trained network: ranked anew, the telling sentences marked, certainty said.

The constants were fitted on passages of folders that the network of each fold had not seen (docs/documents.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.core import trace
from clew.core.types import IntArray, Node, Ranking
from clew.kb.protocol import KnowledgeBase
from clew.models.passages import PassageNetwork, Seen
from clew.reading.language.proper_names import sentence_spans

Fits = Callable[[IntArray], NDArray[np.float64]]
"""Passages → how well each fits the question by itself."""
CLOSELY = 8
"""Passages that are read closely: more are no better since the embedder was trained for passages, and cost time."""
LEADING, NEXT = 2, 2
"""Passages that lead on to others, and to how many."""
DOUBT = 2.0
"""What is taken, in log-odds, from a reading that knows what led there: then much seems to fit."""
READ_AGAIN = 4
"""Passages that are read knowing what led to them."""
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
    fits: Fits | None = None,
    further: Callable[[str], Sequence[int]] | None = None,
) -> CloseReading:
    """Read the best passages beside the question; what is not read keeps its place behind them.

    `fits` says how well passages fit by themselves; by default their score in the ranking.

    The best two then lead on: to what `further` finds that goes with what they say, and to where the walk went from
    them (`led` names for a passage the one before). Those are read knowing what led there, and count by the better
    reading.
    """
    nodes = {node: kb.node(node) for node, _ in ranking.top(closely)}
    if not nodes:
        return CloseReading(ranking, {}, 0.0)
    with trace.span("read closely", passages=len(nodes)) as span:
        seen = dict(zip(nodes, network.read(question, list(map(_titled, nodes.values()))), strict=True))
        relevance = {node: one.relevance for node, one in seen.items()}
        best = sorted(nodes, key=lambda node: -_scores(relevance, ranking, fits)[node])[:LEADING]
        known = {node: nodes[node].text[slice(*telling_sentences(nodes[node], seen[node]))] for node in best}
        steps = _steps(known, led or {}, further)
        nodes |= {node: kb.node(node) for node, _ in steps if node not in nodes}
        twice = [_titled(nodes[node]) for node, _ in steps]
        again = network.read(question, twice, [known[before] for _, before in steps]) if steps else []
        for (node, _), reading in zip(steps, again, strict=True):
            seen.setdefault(node, reading)
            found = reading.relevance - DOUBT
            relevance[node] = max(relevance.get(node, found), found)
        scores = _scores(relevance, ranking, fits)
        rest = [(node, score) for node, score in ranking if node not in scores]
        behind = min(scores.values()) - 1
        for place, (node, _) in enumerate(rest):
            scores[node] = behind - place / len(rest)
        ordered = Ranking.of(list(scores), list(scores.values()))
        certainty = certainty_of([seen[node] for node, _ in ordered.top(min(2, len(nodes)))])
        span.note(certainty=round(certainty, 3), again=len(steps))
    return CloseReading(ordered, seen, certainty)


def _titled(node: Node) -> tuple[str, str]:
    return node.name, node.text


def _scores(relevance: Mapping[int, float], ranking: Ranking, fits: Fits | None) -> dict[int, float]:
    """Relevance, and how well each passage fits by itself."""
    own = dict(ranking)
    nodes = np.fromiter(relevance, dtype=np.int32)
    fit = np.array([own.get(node, 0.0) for node in relevance]) if fits is None else fits(nodes)
    gains = PRIOR * fit / max(float(fit.max()), 1e-9)
    return {node: found + float(gain) for (node, found), gain in zip(relevance.items(), gains, strict=True)}


def _steps(
    known: Mapping[int, str], led: Mapping[int, int], further: Callable[[str], Sequence[int]] | None
) -> list[tuple[int, int]]:
    """What to read a second time, and the passage that led there; the nearest of each leading passage first."""
    found = []
    for before, text in known.items():
        walked = [node for node, last in led.items() if last == before][:NEXT]
        near = [node for node in (further(text) if further is not None else ()) if node != before][:NEXT]
        found += [(node, before) for node in dict.fromkeys((*near, *walked))]
    return found[:READ_AGAIN]


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
