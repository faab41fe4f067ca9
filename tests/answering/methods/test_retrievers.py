"""STaRK's retrievers: documents with relations, which are never mixed with those without."""

from pathlib import Path

import pytest

from clew.answering.methods import catalog
from clew.core.errors import FormatError
from clew.core.types import NodeSet
from clew.models.embedding.opening import HashEmbedder
from clew.store.building import build
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.index.build import INDEX, MOST_INDEXED, WITH_RELATIONS, open_lexical
from clew.store.index.tokens import terms
from clew.store.open_base import OpenBase
from conftest import EDGES, NODES, tables

RETRIEVERS = ("bm25", "vector_search", "multi_vector_search", "hybrid", "llm_reranker")


@pytest.fixture
def tools(tmp_path: Path) -> OpenBase:
    build(tables(), tmp_path / "tiny.kb")
    return OpenBase.open(tmp_path / "tiny.kb", embedder=HashEmbedder())


def keys(answer):
    return [candidate.node.key for candidate in answer.candidates]


@pytest.mark.parametrize("name", RETRIEVERS)
def test_what_a_node_is_joined_to_speaks_for_it(tools: OpenBase, name: str):
    def place(**options):
        found = keys(catalog.ask(catalog.create(name, {"k": 8, **options}), "Arachnodactyly", tools))
        return found.index("MFS") if "MFS" in found else len(NODES)

    assert place() < place(with_relations=False)


def test_without_relations_only_what_is_written_counts(tools: OpenBase):
    plain = catalog.ask(catalog.create("bm25", {"with_relations": False}), "Arachnodactyly", tools)
    assert keys(plain) == ["P3"]
    related = catalog.ask(catalog.create("bm25", {}), "Arachnodactyly", tools)
    shown = {candidate.node.key: candidate.evidence[0].text for candidate in related.candidates}
    assert shown["MFS"] == "has phenotype: {phenotype: (Arachnodactyly)}"


def test_the_words_of_a_document_with_relations_are_those_of_its_text_and_its_neighbours(tools: OpenBase):
    plain, related = tools.lexical, tools.lexical_with_relations
    for node in tools.kb.nodes():
        names = {term for ref in tools.kb.refs(tools.kb.neighbors(_one(node)).array) for term in terms(ref.name)}
        for term in {term for _, _, name, _, text in NODES for term in terms(f"{name} {text}")}:
            assert (node in related.having(term)) == (node in plain.having(term) or term in names)


def _one(node: int) -> NodeSet:
    return NodeSet.of([node])


def test_a_hub_is_not_described_by_everything_it_is_joined_to(tmp_path: Path):
    many = [(f"D{n:04}", "disease", f"Disease{n:04}x", [], "") for n in range(MOST_INDEXED + 50)]
    edges = [("FBN1", "associated_with", key, None) for key, *_ in many]
    build(tables([*NODES, *many], [*EDGES, *edges]), tmp_path / "hub.kb")
    kb = ArrayKnowledgeBase.open(tmp_path / "hub.kb")
    words = open_lexical(kb, relations=True)
    gene = kb.find("FBN1")
    having = sum(gene in words.having(f"disease{n:04}x") for n in range(MOST_INDEXED + 50))
    assert having == MOST_INDEXED


def test_vectors_of_the_two_documents_have_rows_of_their_own(tmp_path: Path):
    build(tables(), tmp_path / "kb")
    OpenBase.switch_embedder(tmp_path / "kb", "hash", relations=True)
    tools = OpenBase.open(tmp_path / "kb", embedder="hash")
    disease = tools.kb.find("MFS")
    for vectors, relations in ((tools.vectors, False), (tools.vectors_with_relations, True)):
        assert vectors.is_complete
        own = HashEmbedder().embed([tools.kb.text(disease, relations=relations)], role="document")
        assert vectors.vectors(_one(disease).array) == pytest.approx(own)


def test_where_words_choose_what_is_compared_the_answer_says_so(tools: OpenBase):
    vectors = tools.vectors_with_relations
    vectors.most = 4  # as in a base too large to be embedded while somebody waits
    answer = catalog.ask(catalog.create("vector_search", {}), "Arachnodactyly", tools)
    (fallback,) = answer.fallbacks
    assert "clew embed tiny.kb --relations" in fallback.reason
    vectors.embed_all()
    assert not catalog.ask(catalog.create("vector_search", {}), "Arachnodactyly", tools).fallbacks


def test_a_base_without_the_index_is_refused_with_what_to_do(tools: OpenBase):
    folder = tools.local.generation / INDEX / WITH_RELATIONS
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    with pytest.raises(FormatError, match="build it again"):
        catalog.ask(catalog.create("bm25", {}), "Arachnodactyly", OpenBase(tools.kb))
    assert keys(catalog.ask(catalog.create("bm25", {"with_relations": False}), "Arachnodactyly", OpenBase(tools.kb)))
