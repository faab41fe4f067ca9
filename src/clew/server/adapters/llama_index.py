"""LlamaIndex retriever: `ClewRetriever(clew.open("medicine.kb"))`."""

from __future__ import annotations

from clew.answering.methods.catalog import DEFAULT_METHOD
from clew.api import Base
from clew.core.errors import needing
from clew.server.adapters import retrieve

with needing("llama-index", "llama-index-core"):
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode


class ClewRetriever(BaseRetriever):
    """Returns answers as nodes with scores and evidence in their metadata."""

    def __init__(self, base: Base, method: str = DEFAULT_METHOD, k: int = 5) -> None:
        self.base, self.method, self.k = base, method, k
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = retrieve(self.base, query_bundle.query_str, self.method, self.k)
        return [
            NodeWithScore(
                node=TextNode(id_=one.metadata["key"], text=one.text, metadata=dict(one.metadata)), score=one.score
            )
            for one in found
        ]
