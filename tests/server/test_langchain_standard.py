"""LangChain's own tests for retrievers, on a base as a retriever: `pip install --group adapters`."""

import pytest

pytest.importorskip("langchain_core", reason="needs the extra langchain")
pytest.importorskip("langchain_tests", reason="needs the group adapters: LangChain's own tests")

from langchain_tests.integration_tests.retrievers import RetrieversIntegrationTests

import clew
from clew.server.adapters.langchain import ClewRetriever
from clew.store.building import build
from conftest import tables


@pytest.mark.anyio
class TestClewRetriever(RetrieversIntegrationTests):
    @pytest.fixture
    def anyio_backend(self):
        return "asyncio"

    @pytest.fixture(autouse=True)
    def _base(self, tmp_path):
        build(tables(), tmp_path / "tiny.kb")
        self.base = clew.open(tmp_path / "tiny.kb")

    @property
    def retriever_constructor(self):
        return ClewRetriever

    @property
    def retriever_constructor_params(self):
        return {"base": self.base, "method": "bm25"}

    @property
    def retriever_query_example(self):
        return "a disorder with abnormal fingers, a syndrome with many signs"
