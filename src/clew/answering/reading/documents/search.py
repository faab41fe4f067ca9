"""Search over passages by words, meaning and titles.

PassageSearch  the passages of a base
AskedPassages  the passages for one question: the best of them, and scores of any passage
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from math import sqrt
from operator import or_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core.proper_names import PhraseMatcher, title_forms
from clew.core.schema import READABLE
from clew.core.types import EMPTY, IntArray, NodeSet, Ranking
from clew.store.graph.protocol import KnowledgeBase, StoredKnowledgeBase
from clew.store.index.lexical import LexicalIndex
from clew.store.index.vectors import VectorIndex

CONTENTS = ("has_passage", "has_table")
"""Relations from a document, a page or a section to its readable nodes."""


def readable_nodes(kb: StoredKnowledgeBase) -> NodeSet:
    """Return passages and tables. In a base without them, return every node that may be an answer."""
    types = [name for name in READABLE if name in kb.schema.type_names] or kb.schema.answer_types
    return NodeSet.of(np.concatenate([kb.nodes(name).array for name in types]))


def contents(kb: KnowledgeBase, node: int) -> NodeSet:
    """Return the passages and tables of a document, a page or a section."""
    stored = [relation for relation in CONTENTS if relation in kb.schema.relation_names]
    return reduce(or_, (kb.neighbors(NodeSet.of([node]), relation, "out") for relation in stored), EMPTY)


LEXICAL_POOL = 300
"""Number of passages by shared words whose TF-IDF vectors are compared with the question."""


def text_of(kb: StoredKnowledgeBase, node: int) -> str:
    """Return a passage with its title."""
    content = kb.node(node)
    return f"{content.name}. {content.text}"


def tf_idf_ranking(kb: StoredKnowledgeBase, lexical: LexicalIndex, question: str, k: int) -> Ranking:
    """Rank by cosine of TF-IDF vectors, among the passages that share most words with the question."""
    pool = lexical.search(question, LEXICAL_POOL, among=readable_nodes(kb)).nodes
    asked = {term: count * lexical.idf(term) for term, count in Counter(lexical.terms(question)).items()}
    scores = []
    for node in pool.tolist():
        own = {term: count * lexical.idf(term) for term, count in Counter(lexical.terms(text_of(kb, node))).items()}
        length = sqrt(sum(weight**2 for weight in own.values())) or 1.0
        scores.append(sum(weight * own.get(term, 0.0) for term, weight in asked.items()) / length)
    return Ranking.of(pool, scores, k)


class QuestionTerms:
    """Terms of a question that the base contains, their weights, and the passages that contain them."""

    def __init__(self, question: str, lexical: LexicalIndex) -> None:
        known = [term for term in dict.fromkeys(lexical.terms(question)) if lexical.frequency(term)]
        self.weights = np.array([lexical.idf(term) for term in known], dtype=np.float64)
        self._having = list(map(lexical.having, known))

    def presence(self, nodes: IntArray) -> NDArray[np.bool_]:
        """Return one row per node and one column per term: whether the node contains the term."""
        present = np.zeros((len(nodes), len(self._having)), dtype=np.bool_)
        for column, having in enumerate(self._having):
            present[:, column] = having.holds(nodes)
        return present


LEXICAL_SHARE = 0.3
"""Weight of words relative to meaning. Tuned on five folders that the passage embedder was not trained on. Results are
flat from 0.2 to 0.5."""
TITLE = 0.7
"""Score added to a passage whose title is in the question."""
AMBIGUITY = 0.2
"""Factor by which each further passage of the same title reduces this score."""
MOST_TITLED = 50
"""Maximum number of nodes with the same title to look at. The rest is ignored."""
POOL = 100
"""Number of passages to take from each index before they are compared."""
LAZY_POOL = 40
"""Number of passages to compare while vectors are missing. Vectors of these passages are computed for a question."""


@dataclass(frozen=True, eq=False)
class PassageSearch:
    """Hybrid search over passages."""

    kb: StoredKnowledgeBase
    lexical: LexicalIndex
    vectors: VectorIndex

    @cached_property
    def passages(self) -> NodeSet:
        """Nodes that the search may return."""
        return readable_nodes(self.kb)

    @cached_property
    def titles(self) -> PhraseMatcher[int]:
        """Forms of all titles of passages and documents, and their aliases."""
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

    def about(self, question: str) -> AskedPassages:
        """Return the passages scored for a question."""
        return AskedPassages(self, question)

    def titled(self, question: str) -> dict[int, float]:
        """Return the score that each passage gains from titles in the question."""
        gains: dict[int, float] = {}
        shouting = not any(letter.isupper() for letter in question[1:])  # no capitals to use
        for match in self.titles.find(question):
            written = question[match.start : match.end]
            if not shouting and " " not in written and written[0].islower():
                continue
            meant = [
                node
                for meaning in match.meanings[:MOST_TITLED]
                for node in ([meaning] if meaning in self.passages else contents(self.kb, meaning) & self.passages)
            ]
            for node in meant:
                gains[node] = max(gains.get(node, 0.0), TITLE / (1 + AMBIGUITY * (len(meant) - 1)))
        return gains


class AskedPassages:
    """Scores of passages for one question. Every score is relative to the best passage."""

    def __init__(self, search: PassageSearch, question: str) -> None:
        self.search, self.question = search, question
        self.terms = QuestionTerms(question, search.lexical)
        self.titled = search.titled(question)
        self._words = search.lexical.search(question, POOL, among=search.passages)
        self._best_words = max(float(self._words.scores[0]), 1e-9) if len(self._words) else 1.0
        self._meaning = self._nearest()
        self._best_meaning = max(float(self._meaning.scores[0]), 1e-9) if len(self._meaning) else 1.0

    def _nearest(self) -> Ranking:
        """Return the nearest passages. If vectors are missing, rank the best passages by words by their meaning."""
        if self.has_all_vectors:
            return self.search.vectors.search(self.question, POOL, among=self.search.passages)
        nodes = np.sort(self._words.nodes[:LAZY_POOL])
        return Ranking.of(nodes, self.search.vectors.similarities(self.question, NodeSet(nodes)))

    @cached_property
    def pool(self) -> Ranking:
        """The best passages by words, meaning and titles."""
        titled = np.fromiter(self.titled, dtype=np.int32, count=len(self.titled))
        words = self._words if self.has_all_vectors else self._meaning
        nodes = np.unique(np.concatenate((words.nodes, self._meaning.nodes, titled)))
        return Ranking.of(nodes, self.prior(nodes))

    def prior(self, nodes: IntArray) -> NDArray[np.float64]:
        """Return the score of each passage on its own. Compute missing vectors."""
        words = self.words(nodes) / self._best_words
        meaning = (1 - LEXICAL_SHARE) * np.maximum(self.cosines(nodes), 0) / self._best_meaning
        titled = np.array([self.titled.get(node, 0.0) for node in nodes.tolist()])
        return np.asarray(LEXICAL_SHARE * words + titled + meaning)

    def cosines(self, nodes: IntArray) -> NDArray[np.float64]:
        """Return the similarity of each passage with the question. Compute missing vectors."""
        return self._scored(self.search.vectors.similarities, nodes)

    @property
    def has_all_vectors(self) -> bool:
        """Whether all vectors are stored, so that similarities are cheap."""
        return self.search.vectors.is_complete

    def words(self, nodes: IntArray) -> NDArray[np.float64]:
        """Return the BM25 score of each passage."""
        return self._scored(self.search.lexical.scores, nodes)

    def _scored(self, scores: Callable[[str, NodeSet], NDArray[Any]], nodes: IntArray) -> NDArray[np.float64]:
        """Return the scores of an index for nodes in any order."""
        order = np.argsort(nodes)
        found = np.empty(len(nodes))
        found[order] = scores(self.question, NodeSet(nodes[order]))
        return found
