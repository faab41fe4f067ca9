"""What a passage adds to a path: the rare words of the question that the path lacks and the passage has.

The model-free counterpart of the paper's generated next evidence.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clew.core.types import IntArray
from clew.index.lexical import LexicalIndex
from clew.index.tokens import terms


class QuestionTerms:
    """The terms of a question that the base knows, how telling each is, and which passages have them."""

    def __init__(self, question: str, lexical: LexicalIndex) -> None:
        known = [term for term in dict.fromkeys(terms(question)) if lexical.frequency(term)]
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
