"""The indexes of a whole knowledge base."""

from pathlib import Path

import pyarrow as pa

from clew.building import build, check, update
from clew.index.build import INDEX, build_indexes, degrees, have_all_vectors, open_lexical, open_names, open_vectors
from clew.index.vectors import VectorIndex
from clew.kb.arrays import ArrayKnowledgeBase
from clew.kb.sources.delta import Delta
from clew.kb.tables import Piece, Tables
from clew.models.embedding.opening import HashEmbedder


def test_a_base_is_searched_by_name_by_word_and_by_vector(kb: ArrayKnowledgeBase):
    build_indexes(kb, kb.generation / INDEX)
    lexical = open_lexical(kb)
    vectors = open_vectors(kb, HashEmbedder(), lexical)
    names = open_names(kb, vectors=vectors, lexical=lexical)

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
    assert degrees(kb, kb.nodes().array).tolist() == [len(kb.triples(node)) for node in kb.nodes()]


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


def test_verify_names_altered_vectors_and_a_damaged_row_file_is_not_believed(tmp_path: Path, tiny_tables: Tables):
    folder = tmp_path / "tiny.kb"
    build(tiny_tables, folder)
    kb = ArrayKnowledgeBase.open(folder)
    index = open_vectors(kb, HashEmbedder(), open_lexical(kb), spec="hash")
    index.embed_all()
    assert check(folder) == []
    (rows,) = index.store.place.glob("rows-*.npy")
    content = bytearray(rows.read_bytes())
    content[-8] ^= 1
    rows.write_bytes(content)
    assert not open_vectors(kb, HashEmbedder(), open_lexical(kb), spec="hash").is_complete
    for file in ("vectors.bin", "keys.bin"):
        whole = (index.store.place / file).read_bytes()
        (index.store.place / file).write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
        assert "altered" in check(folder)[0]
        (index.store.place / file).write_bytes(whole)
    assert check(folder) == []
