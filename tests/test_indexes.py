"""The indexes of a whole knowledge base."""

from clew.index.build import INDEX, build_indexes, degrees, open_lexical, open_names, open_vectors
from clew.index.vectors import VectorIndex
from clew.kb.arrays import ArrayKnowledgeBase
from clew.models.embedding.hashed import HashEmbedder


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
