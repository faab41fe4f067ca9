"""Vectors in Qdrant (its embedded engine): the same rankings as on disk, by content, never of two embedders mixed."""

import numpy as np
import pytest

import clew
from clew.core.errors import EmbedderMismatch, InputError, StorageError
from clew.core.types import NodeSet
from clew.models.embedding.opening import HashEmbedder
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.tables import Tables
from clew.store.index import vectors
from clew.store.index.build import open_lexical, open_vectors
from clew.store.index.qdrant import QdrantStore, QdrantVectors, connect
from conftest import tables

pytest.importorskip("qdrant_client")
WORDS = ("river", "stone", "cloud", "iron", "amber", "willow", "harbour", "lantern", "meadow", "thistle", "copper")


def many(count: int) -> Tables:
    rng = np.random.default_rng(7)
    texts = [" ".join(rng.choice(WORDS, 6)) for _ in range(count)]
    nodes = [(f"N{n}", "thing", f"thing {n % 90}", [], text) for n, text in enumerate(texts)]
    return tables(nodes, [("N0", "near", "N1", None)])


@pytest.fixture
def address(tmp_path, monkeypatch):
    """An engine of its own in a folder."""
    url = f"qdrant+file://{tmp_path / 'engine'}"
    monkeypatch.setenv("CLEW_VECTORS", url)
    yield url
    connect(url).close()
    connect.cache_clear()


def both(folder, monkeypatch, embedder):
    kb = ArrayKnowledgeBase.open(folder)
    here = open_vectors(kb, embedder, open_lexical(kb), spec=embedder.name)
    with monkeypatch.context() as without:
        without.delenv("CLEW_VECTORS")
        disk = open_vectors(kb, embedder, open_lexical(kb), spec=embedder.name)
    return here, disk


def same(mine, theirs):
    assert mine.nodes.tolist() == theirs.nodes.tolist()
    np.testing.assert_allclose(mine.scores, theirs.scores, rtol=1e-6)


def test_rankings_are_those_of_the_index_on_disk(tmp_path, address, monkeypatch):
    monkeypatch.setattr(vectors, "FEW", 50)
    clew.build(many(400), tmp_path / "many.kb")
    here, disk = both(tmp_path / "many.kb", monkeypatch, HashEmbedder())
    assert isinstance(here, QdrantVectors)
    half = NodeSet(np.arange(0, 400, 2, dtype=np.int32))
    few = NodeSet(np.arange(0, 40, dtype=np.int32))
    for _ in range(2):
        for query in ("amber falcon", "river stone in the harbour", "nothing of the kind"):
            for among in (None, half, few, NodeSet.of([])):
                same(here.search(query, 10, among=among), disk.search(query, 10, among=among))
        same(here.nearest(3, 8, half), disk.nearest(3, 8, half))
        assert here.is_complete == disk.is_complete
        assert here.embed_all() == disk.embed_all()  # the second round searches all vectors
    again, _ = both(tmp_path / "many.kb", monkeypatch, HashEmbedder())
    assert again.is_complete
    assert again.embed_all() == 0


def test_vectors_outlive_an_update_and_only_new_texts_are_computed(tmp_path, address, monkeypatch):
    clew.build(many(60), tmp_path / "many.kb")
    here, _ = both(tmp_path / "many.kb", monkeypatch, HashEmbedder())
    here.embed_all()
    (tmp_path / "more.csv").write_text("id,type,name\nN99,thing,something else\n")
    clew.open(tmp_path / "many.kb", embedder="hash").update([tmp_path / "more.csv"])
    after, disk = both(tmp_path / "many.kb", monkeypatch, HashEmbedder())
    assert not after.is_complete
    assert after.embed_all() == 1
    disk.embed_all()
    same(after.search("something else", 5), disk.search("something else", 5))


def test_vectors_of_another_embedder_are_never_mixed(tmp_path, address):
    one, other = HashEmbedder(), HashEmbedder(32)
    first, second = QdrantStore(address, "base", one, "a"), QdrantStore(address, "base", other, "b")
    assert first.collection != second.collection

    with pytest.raises(EmbedderMismatch, match="holds vectors of length 64, hash-64 makes 32"):
        QdrantStore(address, "base", HashEmbedder(32, name=one.name), "c")


def test_questions_are_answered_alike(tmp_path, address, monkeypatch, tiny_tables):
    clew.build(tiny_tables, tmp_path / "tiny.kb")
    question = "a disorder of connective tissue"
    mine = clew.open(tmp_path / "tiny.kb", embedder="hash").ask(question, method="hybrid", with_relations=False)
    monkeypatch.delenv("CLEW_VECTORS")
    theirs = clew.open(tmp_path / "tiny.kb", embedder="hash").ask(question, method="hybrid", with_relations=False)
    assert [(one.node.key, one.score) for one in mine.candidates] == [(o.node.key, o.score) for o in theirs.candidates]


def test_what_cannot_be_is_said_plainly(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"expected qdrant\+http"):
        connect("redis://127.0.0.1")
    with pytest.raises(StorageError, match="Qdrant"):
        QdrantStore("qdrant+http://127.0.0.1:9", "base", HashEmbedder(), "hash")
    connect.cache_clear()
