"""LangChain retriever: `ClewRetriever(base=clew.open("medicine.kb"))`."""

from __future__ import annotations

from typing import Any

from pydantic import SkipValidation

from clew.answering.methods.catalog import DEFAULT_METHOD
from clew.api import Base
from clew.core.errors import needing
from clew.server.adapters import retrieve

with needing("langchain", "langchain-core"):
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever


class ClewRetriever(BaseRetriever):
    """Returns answers as documents with evidence in their metadata."""

    base: SkipValidation[Base]
    method: str = DEFAULT_METHOD
    k: int = 5

    def _get_relevant_documents(self, query: str, *, k: int | None = None, **_: Any) -> list[Document]:
        found = retrieve(self.base, query, self.method, self.k if k is None else k)
        return [Document(page_content=one.text, id=one.metadata["key"], metadata=dict(one.metadata)) for one in found]
