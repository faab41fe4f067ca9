"""How well passages fit a question before any traversal: words, meaning, and titles that the question writes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clew.core.types import IntArray, NodeSet, Ranking
from clew.index.lexical import LexicalIndex
from clew.index.vectors import VectorIndex
from clew.kb.arrays import ArrayKnowledgeBase
from clew.steps.language.phrase_matcher import PhraseMatcher
from clew.steps.language.proper_names import title_forms
from clew.steps.passages.missing_evidence import QuestionTerms
from clew.steps.passages.passage_graph import PassageGraph, readable_nodes

LEXICAL_SHARE = 0.4
TITLE = 0.7
"""What a title in the question adds to its passage."""
AMBIGUITY = 0.2
"""How much less it adds for each further passage that the title stands for."""
MOST_TITLED = 50


@dataclass(frozen=True, eq=False)
class PassageSearch:
    """Hybrid search over passages; vectors None means words alone."""

    kb: ArrayKnowledgeBase
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
