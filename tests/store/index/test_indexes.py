"""The indexes of a whole knowledge base."""

from pathlib import Path

import pyarrow as pa
import pytest

from clew.answering.methods.retrievers import VectorSearch
from clew.api import Base
from clew.core.errors import CorruptError
from clew.models.budget import Budget, Ledger
from clew.models.embedding.opening import HashEmbedder
from clew.store.building import build, check, update
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.tables import Piece, Tables
from clew.store.index.build import (
    INDEX,
    build_indexes,
    have_all_vectors,
    name_tables,
    open_lexical,
    open_names,
    open_vectors,
)
from clew.store.index.vectors import VectorIndex, rows_files
from clew.store.open_base import OpenBase
from clew.store.sources.delta import Delta
from conftest import NODES, tables


def test_a_base_is_searched_by_name_by_word_and_by_vector(kb: ArrayKnowledgeBase):
    build_indexes(kb, kb.generation / INDEX)
    lexical = open_lexical(kb)
    vectors = open_vectors(kb, HashEmbedder(), lexical)
    names = open_names(kb, name_tables(kb), lexical, lambda: vectors)

    def key(node: int) -> str:
        return kb.refs([node])[0].key

    assert isinstance(vectors, VectorIndex)
    assert [key(node) for node, _ in lexical.search("slender finger", 2)] == ["P3", "P4"]
    assert key(lexical.search("extra fingers", 1).nodes[0]) == "P1"
    assert key(vectors.search("Progressive loss of photoreceptors.", 1).nodes[0]) == "P2"
    assert [key(link.node) for link in names.link("BBS") if link.how == "exact"] == ["BBS"]
    assert key(names.link("MFS")[0].node) == "MFS"
    assert key(names.link("arachnodactily", type="phenotype")[0].node) == "P3"
    question = "Which gene is behind Bardet-Biedl syndrome with extra fingers?"
    assert [(mention.text, key(mention.links[0].node)) for mention in names.mentions(question)] == [
        ("Bardet-Biedl syndrome", "BBS"),
        ("extra fingers", "P1"),
    ]
    assert kb.degrees(kb.nodes().array).tolist() == [len(kb.triples(node)) for node in kb.nodes()]


def test_an_update_embeds_new_texts_alone_and_keeps_a_base_complete(tmp_path: Path, tiny_tables: Tables):
    folder = tmp_path / "tiny.kb"
    build(tiny_tables, folder)
    kb = ArrayKnowledgeBase.open(folder)
    assert not have_all_vectors(kb)
    assert open_vectors(kb, HashEmbedder(), open_lexical(kb), spec="hash").embed_all() == len(kb)
    assert have_all_vectors(kb)
    added = pa.table({"key": ["P9"], "type": ["phenotype"], "name": ["Ectopia lentis"], "text": ["Dislocated lens."]})
    update(folder, Delta(upserts=Tables((Piece(added, "more.csv"),), ())))
    kb = ArrayKnowledgeBase.open(folder)
    assert have_all_vectors(kb)
    index = open_vectors(kb, HashEmbedder(), open_lexical(kb), spec="hash")
    assert index.is_complete
    assert len(index.store) == len(kb) == 9
    assert kb.refs(index.search("Dislocated lens.", 1).nodes)[0].key == "P9"


def test_verify_names_altered_vectors_and_rows_and_nothing_is_found_by_them(tmp_path: Path, tiny_tables: Tables):
    folder = tmp_path / "tiny.kb"
    build(tiny_tables, folder)
    kb = ArrayKnowledgeBase.open(folder)
    index = open_vectors(kb, HashEmbedder(), open_lexical(kb), spec="hash")
    index.embed_all()
    assert check(folder) == []
    (rows,) = index.store.place.glob("rows-*.npy")
    card = folder / "vectors" / "embedder.json"
    for file in (rows, card, index.store.place / "vectors.bin", index.store.place / "keys.bin"):
        whole = file.read_bytes()
        for place in (0, len(whole) // 2, len(whole) - 8):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            (problem,) = check(folder)
            assert "clew repair" in problem
            with pytest.raises(CorruptError, match="clew repair"):
                open_vectors(kb, HashEmbedder(), open_lexical(kb), spec="hash").search("fingers", 3)
            file.write_bytes(whole)
    assert check(folder) == []


def test_an_update_that_is_stopped_at_its_vectors_leaves_the_old_base_with_its_vectors(tmp_path: Path, monkeypatch):
    folder = tmp_path / "kb"
    build(tables(), folder)
    OpenBase.switch_embedder(folder, "hash", relations=True)
    more = Delta(tables([("MFS2", "disease", "Marfan syndrome type 2", [], "A ciliopathy.")], []))

    class Killed(BaseException):
        pass

    def kill(_report):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("clew.store.building.renew_vectors", kill)
        with pytest.raises(Killed):
            update(folder, more)
    assert check(folder) == []
    for with_relations in (False, True):
        asked = VectorSearch(with_relations=with_relations)
        stopped = Base(OpenBase.open(folder), Ledger(Budget())).ask("ciliopathy", asked)
        assert not stopped.fallbacks
        assert "MFS2" not in {candidate.node.key for candidate in stopped.candidates}
    update(folder, more)
    tools = OpenBase.open(folder)
    assert tools.vectors.is_complete
    assert tools.vectors_with_relations.is_complete
    rows = [f"rows-{tools.identity}-relations.npy", f"rows-{tools.identity}.npy"]
    assert [file.name for file in rows_files(tools.vectors.store.place)] == rows
    tools.local.release()
    build(tables(NODES[:2], []), folder)
    assert rows_files(tools.vectors.store.place) == []
    assert not OpenBase.open(folder).vectors.is_complete
