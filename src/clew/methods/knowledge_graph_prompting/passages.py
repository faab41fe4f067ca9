"""Passages as a walk sees them: their graph, and how well each fits a question.

PassageGraph   the neighbours of a passage, and how strongly each is tied
PassageSearch  search over passages by words, meaning and titles
AskedPassages  the passages for one question: the best of them, and the scores of any
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from clew.core.types import IntArray, NodeSet, Ranking
from clew.index.lexical import LexicalIndex
from clew.index.vectors import VectorIndex
from clew.kb.protocol import StoredKnowledgeBase
from clew.methods.answering import READABLE
from clew.reading.language.phrase_matcher import PhraseMatcher
from clew.reading.language.proper_names import title_forms

CONTENTS = ("has_passage", "has_table")
STRENGTH = {"mentions": 1.0, "entity": 0.6, "tfidf": 0.3, "knn": 0.3, "mdr": 0.3, "next": 0.2}
"""How much a tie of each kind is worth; found on development data, flat around these values."""
MENTIONED_BY = 0.5
"""The same for the other direction of a mention."""
FULL_WEIGHT = {"entity": 1.0, "tfidf": 20.0}
"""The weight of an edge from which on a tie counts fully."""
MOST_MENTIONS = 200
"""Of passages that mention one thing, so many are looked at."""
KINDS = tuple(STRENGTH)


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """The neighbours of a passage, each once, and the strength of the strongest tie to each."""

    nodes: IntArray
    strengths: NDArray[np.float64]


def readable_nodes(kb: StoredKnowledgeBase) -> NodeSet:
    """Passages and tables; in a base that has neither, every node that may be an answer."""
    types = [name for name in READABLE if name in kb.schema.type_names] or kb.schema.answer_types
    return NodeSet.of(np.concatenate([kb.nodes(name).array for name in types]))


LEXICAL_POOL = 300
"""Passages that share most words with a question, whose TF-IDF vectors are compared with it."""


def text_of(kb: StoredKnowledgeBase, node: int) -> str:
    """A passage with its title."""
    content = kb.node(node)
    return f"{content.name}. {content.text}"


def tf_idf_ranking(kb: StoredKnowledgeBase, lexical: LexicalIndex, question: str, k: int) -> Ranking:
    """By cosine of TF-IDF vectors, among those that share most words with the question."""
    pool = lexical.search(question, LEXICAL_POOL, among=readable_nodes(kb)).nodes
    asked = {term: count * lexical.idf(term) for term, count in Counter(lexical.terms(question)).items()}
    scores = []
    for node in pool.tolist():
        own = {term: count * lexical.idf(term) for term, count in Counter(lexical.terms(text_of(kb, node))).items()}
        length = sqrt(sum(weight**2 for weight in own.values())) or 1.0
        scores.append(sum(weight * own.get(term, 0.0) for term, weight in asked.items()) / length)
    return Ranking.of(pool, scores, k)


class PassageGraph:
    """Neighbours by the kinds of edges asked for; `nearest` finds those by vector where no knn edges are stored."""

    def __init__(
        self,
        kb: StoredKnowledgeBase,
        kinds: Sequence[str] = KINDS,
        nearest: Callable[[int], Ranking] | None = None,
    ) -> None:
        stored = kb.schema.relation_names
        is_documents = any(name in kb.schema.type_names for name in READABLE)
        self.kb = kb
        self.kinds = tuple(kind for kind in kinds if kind in stored) if is_documents else stored
        self.nearest = nearest if "knn" in kinds and "knn" not in stored else None
        self.is_readable = np.zeros(len(kb), dtype=np.bool_)
        self.is_readable[readable_nodes(kb).array] = True
        self.ties = lru_cache(maxsize=10_000)(self._ties)
        self._by_kind = lru_cache(maxsize=1_000)(self._found_by_kind)
        self._contents = tuple(relation for relation in CONTENTS if relation in stored)

    def contents(self, node: int) -> IntArray:
        """The passages and tables of a document, a page or a section."""
        parts = [self.kb.neighbors(_one(node), relation, "out").array for relation in self._contents]
        inside = np.concatenate([np.empty(0, dtype=np.int32), *parts])
        return NodeSet.of(inside[self.is_readable[inside]]).array

    def kind(self, node: int, other: int) -> str:
        """The kind of the strongest tie between two neighbours."""
        tied = [
            (float(strengths[nodes == other].max()), kind)
            for kind, (nodes, strengths) in self._by_kind(node)
            if (nodes == other).any()
        ]
        return max(tied)[1]

    def _found_by_kind(self, node: int) -> list[tuple[str, tuple[IntArray, NDArray[np.float64]]]]:
        found = [
            (kind, part)
            for kind in self.kinds
            for part in (self._mentions(node) if kind == "mentions" else self._stored(node, kind))
        ]
        if self.nearest is not None:
            near = self.nearest(node)
            found.append(("knn", (near.nodes, STRENGTH["knn"] * np.maximum(near.scores, 0))))
        return found

    def _ties(self, node: int) -> Ties:
        found = [part for _, part in self._by_kind(node)]
        nodes = np.concatenate([np.empty(0, dtype=np.int32), *(nodes for nodes, _ in found)])
        strengths = np.concatenate([np.empty(0), *(strengths for _, strengths in found)])
        kept = self.is_readable[nodes] & (nodes != node)
        nodes, strengths = nodes[kept], strengths[kept]
        order = np.lexsort((-strengths, nodes))  # of several ties the strongest counts
        first = np.append(True, nodes[order][1:] != nodes[order][:-1])[: len(order)]
        return Ties(nodes[order][first], strengths[order][first])

    def _stored(self, node: int, kind: str) -> list[tuple[IntArray, NDArray[np.float64]]]:
        edges = self.kb.edges(_one(node), kind)
        weights = np.nan_to_num(self.kb.edge_numbers(edges, "weight"), nan=1.0) / FULL_WEIGHT.get(kind, 1.0)
        others = np.where(edges.heads == node, edges.tails, edges.heads)
        return [(others, STRENGTH.get(kind, 0.6) * np.minimum(weights, 1.0))]

    def _mentions(self, node: int) -> list[tuple[IntArray, NDArray[np.float64]]]:
        """What a passage names, the contents of what it names, and what names it or its document."""
        found = []
        for target in self.kb.neighbors(_one(node), "mentions", "out"):
            if self.is_readable[target]:
                found.append(_tied([target], STRENGTH["mentions"]))
            elif len(contents := self.contents(target)):
                found.append(_tied(contents, STRENGTH["mentions"]))
            else:  # an entity of another base: its other mentions are neighbours
                others = self._mentioning(target)
                found.append(_tied(others, STRENGTH["entity"] / float(np.log1p(1 + len(others)))))
        found.append(_tied(self._mentioning(node), MENTIONED_BY))
        for relation in self._contents:
            for owner in self.kb.neighbors(_one(node), relation, "in"):
                if self.kb.type_of(owner) == "document":
                    found.append(_tied(self._mentioning(owner), MENTIONED_BY))
        return found

    def _mentioning(self, target: int) -> IntArray:
        return self.kb.neighbors(_one(target), "mentions", "in").array[:MOST_MENTIONS]


def _tied(nodes: Sequence[int] | IntArray, strength: float) -> tuple[IntArray, NDArray[np.float64]]:
    return np.asarray(nodes, dtype=np.int32), np.full(len(nodes), strength)


def _one(node: int) -> NodeSet:
    return NodeSet(np.array([node], dtype=np.int32))


class QuestionTerms:
    """The terms of a question that the base knows, how telling each is, and which passages have them."""

    def __init__(self, question: str, lexical: LexicalIndex) -> None:
        known = [term for term in dict.fromkeys(lexical.terms(question)) if lexical.frequency(term)]
        self.weights = np.array([lexical.idf(term) for term in known], dtype=np.float64)
        self._having = [lexical.having(term).array for term in known]

    def presence(self, nodes: IntArray) -> NDArray[np.bool_]:
        """One row per node, one column per term: whether the node's document has it."""
        present = np.zeros((len(nodes), len(self._having)), dtype=np.bool_)
        for column, having in enumerate(self._having):
            places = np.searchsorted(having, nodes)
            places[places == len(having)] = 0
            present[:, column] = having[places] == nodes
        return present


def added_share(
    covered: NDArray[np.bool_], present: NDArray[np.bool_], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """For each passage the share of the question's weight that it has and its path (the same row) has not."""
    whole = weights.sum()
    if not whole:
        return np.zeros(len(present))
    share: NDArray[np.float64] = (present & ~covered) @ weights / whole
    return share


LEXICAL_SHARE = 0.3
"""What words count beside meaning; chosen on five folders that the embedder of passages was not trained on, flat from
0.2 to 0.5."""
TITLE = 0.7
"""What a title in the question adds to its passage."""
AMBIGUITY = 0.2
"""How much less it adds for each further passage that the title stands for."""
MOST_TITLED = 50


@dataclass(frozen=True, eq=False)
class PassageSearch:
    """Hybrid search over passages; vectors None means words alone."""

    kb: StoredKnowledgeBase
    lexical: LexicalIndex
    vectors: VectorIndex | None
    pool: int = 100
    """Passages taken from each index before they are compared."""
    lazy_pool: int = 40
    """The same while not all passages have vectors: so many may be computed for a question."""

    @cached_property
    def passages(self) -> NodeSet:
        """What may be found."""
        return readable_nodes(self.kb)

    @cached_property
    def titles(self) -> PhraseMatcher[int]:
        """The forms of all titles: of passages, of documents, and the other names of both."""
        found: PhraseMatcher[int] = PhraseMatcher()
        columns = self.kb.columns()
        named = self.passages
        if "document" in self.kb.schema.type_names:
            named = named | self.kb.nodes("document")
        names, aliases = columns["name"], columns["aliases"]
        for node in named:
            for form in (*title_forms(names[node].as_py()), *(aliases[node].as_py() or ())):
                found.add(form, node)
        return found

    @cached_property
    def graph(self) -> PassageGraph:
        """Used for the contents of documents."""
        return PassageGraph(self.kb, ())

    def about(self, question: str) -> AskedPassages:
        """The passages as this question sees them."""
        return AskedPassages(self, question)

    def titled(self, question: str) -> dict[int, float]:
        """What each passage gains from titles in the question."""
        gains: dict[int, float] = {}
        shouting = not any(letter.isupper() for letter in question[1:])  # no capitals to go by
        for match in self.titles.find(question):
            written = question[match.start : match.end]
            if not shouting and " " not in written and written[0].islower():
                continue
            meant = [
                node
                for meaning in match.meanings[:MOST_TITLED]
                for node in ([meaning] if meaning in self.passages else self.graph.contents(meaning).tolist())
            ]
            for node in meant:
                gains[node] = max(gains.get(node, 0.0), TITLE / (1 + AMBIGUITY * (len(meant) - 1)))
        return gains


class AskedPassages:
    """Scores of passages for one question; every score is relative to the best passage."""

    def __init__(self, search: PassageSearch, question: str) -> None:
        self.search, self.question = search, question
        self.terms = QuestionTerms(question, search.lexical)
        self.titled = search.titled(question)
        self._words = search.lexical.search(question, search.pool, among=search.passages)
        self._best_words = max(float(self._words.scores[0]), 1e-9) if len(self._words) else 1.0
        self._meaning = self._nearest()
        self._best_meaning = max(float(self._meaning.scores[0]), 1e-9) if len(self._meaning) else 1.0

    def _nearest(self) -> Ranking:
        """The nearest passages; where not all have vectors, the best by words in order of meaning."""
        if self.search.vectors is None:
            return Ranking.of([], [])
        if self.has_all_vectors:
            return self.search.vectors.search(self.question, self.search.pool, among=self.search.passages)
        nodes = np.sort(self._words.nodes[: self.search.lazy_pool])
        return Ranking.of(nodes, self.search.vectors.similarities(self.question, NodeSet(nodes)))

    @cached_property
    def pool(self) -> Ranking:
        """The best passages by words, meaning and titles."""
        titled = np.fromiter(self.titled, dtype=np.int32, count=len(self.titled))
        words = self._words if self.has_all_vectors or self.search.vectors is None else self._meaning
        nodes = np.unique(np.concatenate((words.nodes, self._meaning.nodes, titled)))
        return Ranking.of(nodes, self.prior(nodes))

    def prior(self, nodes: IntArray) -> NDArray[np.float64]:
        """How well each passage fits by itself; missing vectors are computed."""
        words = self.words(nodes) / self._best_words
        share = 1.0 if self.search.vectors is None else LEXICAL_SHARE
        prior = share * words + np.array([self.titled.get(node, 0.0) for node in nodes.tolist()])
        if self.search.vectors is not None:
            prior += (1 - share) * np.maximum(self.cosines(nodes), 0) / self._best_meaning
        return np.asarray(prior)

    def cosines(self, nodes: IntArray) -> NDArray[np.float64]:
        """The similarity of each passage with the question; missing vectors are computed."""
        if self.search.vectors is None:
            return np.zeros(len(nodes))
        order = np.argsort(nodes)
        cosines = np.empty(len(nodes))
        cosines[order] = self.search.vectors.similarities(self.question, NodeSet(nodes[order]))
        return cosines

    @property
    def has_all_vectors(self) -> bool:
        """Whether similarities cost nothing."""
        return self.search.vectors is not None and self.search.vectors.is_complete

    def words(self, nodes: IntArray) -> NDArray[np.float64]:
        """BM25 of each passage."""
        order = np.argsort(nodes)
        scores = np.empty(len(nodes))
        scores[order] = self.search.lexical.scores(self.question, NodeSet(nodes[order]))
        return scores
