"""Search over passages by words, meaning and titles.

PassageSearch  the passages of a base
AskedPassages  the same for one question: the best of them, and the scores of any
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, reduce
from math import sqrt
from operator import or_

import numpy as np
from numpy.typing import NDArray

from clew.core.phrase_matcher import PhraseMatcher
from clew.core.proper_names import title_forms
from clew.core.schema import READABLE
from clew.core.types import EMPTY, IntArray, NodeSet, Ranking
from clew.store.graph.protocol import StoredKnowledgeBase
from clew.store.index.lexical import LexicalIndex
from clew.store.index.vectors import VectorIndex

CONTENTS = ("has_passage", "has_table")
"""Relations from a document, a page or a section to what can be read in it."""


def readable_nodes(kb: StoredKnowledgeBase) -> NodeSet:
    """Passages and tables; in a base that has neither, every node that may be an answer."""
    types = [name for name in READABLE if name in kb.schema.type_names] or kb.schema.answer_types
    return NodeSet.of(np.concatenate([kb.nodes(name).array for name in types]))


def contents(kb: StoredKnowledgeBase, node: int) -> NodeSet:
    """The passages and tables of a document, a page or a section."""
    stored = [relation for relation in CONTENTS if relation in kb.schema.relation_names]
    return reduce(or_, (kb.neighbors(NodeSet.of([node]), relation, "out") for relation in stored), EMPTY)


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


LEXICAL_SHARE = 0.3
"""What words count beside meaning; chosen on five folders that the embedder of passages was not trained on, flat from
0.2 to 0.5."""
TITLE = 0.7
"""What a title in the question adds to its passage."""
AMBIGUITY = 0.2
"""How much less it adds for each further passage that the title stands for."""
MOST_TITLED = 50
POOL = 100
"""Passages taken from each index before they are compared."""
LAZY_POOL = 40
"""The same while not all passages have vectors: so many may be computed for a question."""


@dataclass(frozen=True, eq=False)
class PassageSearch:
    """Hybrid search over passages."""

    kb: StoredKnowledgeBase
    lexical: LexicalIndex
    vectors: VectorIndex

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
                for node in ([meaning] if meaning in self.passages else contents(self.kb, meaning) & self.passages)
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
        self._words = search.lexical.search(question, POOL, among=search.passages)
        self._best_words = max(float(self._words.scores[0]), 1e-9) if len(self._words) else 1.0
        self._meaning = self._nearest()
        self._best_meaning = max(float(self._meaning.scores[0]), 1e-9) if len(self._meaning) else 1.0

    def _nearest(self) -> Ranking:
        """The nearest passages; where not all have vectors, the best by words in order of meaning."""
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
        """How well each passage fits by itself; missing vectors are computed."""
        words = self.words(nodes) / self._best_words
        meaning = (1 - LEXICAL_SHARE) * np.maximum(self.cosines(nodes), 0) / self._best_meaning
        titled = np.array([self.titled.get(node, 0.0) for node in nodes.tolist()])
        return np.asarray(LEXICAL_SHARE * words + titled + meaning)

    def cosines(self, nodes: IntArray) -> NDArray[np.float64]:
        """The similarity of each passage with the question; missing vectors are computed."""
        order = np.argsort(nodes)
        cosines = np.empty(len(nodes))
        cosines[order] = self.search.vectors.similarities(self.question, NodeSet(nodes[order]))
        return cosines

    @property
    def has_all_vectors(self) -> bool:
        """Whether similarities cost nothing."""
        return self.search.vectors.is_complete

    def words(self, nodes: IntArray) -> NDArray[np.float64]:
        """BM25 of each passage."""
        order = np.argsort(nodes)
        scores = np.empty(len(nodes))
        scores[order] = self.search.lexical.scores(self.question, NodeSet(nodes[order]))
        return scores
