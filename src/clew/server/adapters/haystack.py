"""Haystack component: `pipeline.add_component("clew", ClewRetriever(clew.open("medicine.kb")))`."""

from __future__ import annotations

from clew.answering.methods.catalog import DEFAULT_METHOD
from clew.api import Base
from clew.core.errors import needing
from clew.server.adapters import retrieve

with needing("haystack", "haystack-ai"):
    from haystack import Document, component


@component
class ClewRetriever:
    """Returns answers as documents with evidence in their meta."""

    def __init__(self, base: Base, method: str = DEFAULT_METHOD, k: int = 5) -> None:
        self.base, self.method, self.k = base, method, k

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, list[Document]]:
        """Return the k best answers to a question."""
        found = retrieve(self.base, query, self.method, self.k)
        return {"documents": [Document(content=one.text, score=one.score, meta=dict(one.metadata)) for one in found]}
