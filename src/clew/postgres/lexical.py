"""BM25 over the documents of a base in PostgreSQL: the postings of the embedded index, one row a term.

PostgreSQL's own full text search has no BM25 and other stems. The weights worked out at build are kept instead, so that
scores are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from clew.core.types import NodeSet
from clew.index.lexical import K1, LexicalIndex, PostingList, idf
from clew.postgres.knowledge_base import PostgresKnowledgeBase

MOST_KEPT = 64_000_000
"""Bytes of postings that a process keeps."""
MOST_COUNTED = 100_000


class PostgresLexical(LexicalIndex):
    """The same ranking as the index on disk gives; the postings of all terms of a question come by one query."""

    def __init__(self, kb: PostgresKnowledgeBase) -> None:
        self.database, self.language, self._size = kb.database, kb.language, int(kb.array("documents", "<i8")[0])
        self._lists: dict[str, PostingList | None] = {}
        self._bytes = 0
        self._counts: dict[str, int] = {}

    def __len__(self) -> int:
        return self._size

    def frequency(self, term: str) -> int:
        """How many documents have a term."""
        known = self._counts.get(term)
        if known is None:
            row = None if "\0" in term else self.database.one("SELECT count FROM postings WHERE term = %s", term)
            known = int(row[0]) if row else 0
            if len(self._counts) >= MOST_COUNTED:
                self._counts = {}
            self._counts[term] = known
        return known

    def having(self, term: str) -> NodeSet:
        """The nodes whose document has a term."""
        found = self._read([term])[term]
        return NodeSet(np.empty(0, dtype=np.int32) if found is None else found.documents)

    def _found(self, weights: Mapping[str, float]) -> list[PostingList]:
        lists = self._read(weights)
        found = []
        for term, factor in weights.items():
            list_ = lists[term]
            if list_ is not None:
                most = (K1 + 1) * idf(len(self), len(list_.documents)) * factor
                found.append(PostingList(list_.documents, list_.weights, factor, most))
        return found

    def _read(self, terms: Iterable[str]) -> dict[str, PostingList | None]:
        kept = self._lists
        told = {term: kept.get(term) for term in terms}
        missing = [term for term in told if term not in kept and "\0" not in term]
        if missing:
            query = "SELECT term, documents, weights FROM postings WHERE term = ANY(%s)"
            size = 0
            for term, documents, weights in self.database.rows(query, missing):
                told[term] = PostingList(np.frombuffer(documents, "<i4"), np.frombuffer(weights, "<f4"), 1.0, 0.0)
                size += len(documents) + len(weights)
            if self._bytes + size > MOST_KEPT:
                self._lists, self._bytes = {}, 0
            self._lists.update({term: told[term] for term in missing})
            self._bytes += size
        return told
