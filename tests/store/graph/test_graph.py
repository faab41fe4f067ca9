"""The arrays answer like a plain list of triples."""

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.core.errors import NotFoundError, SchemaError, SourceError
from clew.core.types import NodeSet
from clew.store.graph.tables import Piece, Tables
from conftest import build_graph, tables
from repeats import repeats

triples = st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc"), st.integers(0, 9)), max_size=40)


@settings(max_examples=repeats(25, 60), deadline=None)
@given(triples, st.sets(st.integers(0, 9)), st.sampled_from([None, "a", "b"]), st.sampled_from(["out", "in", "any"]))
def test_neighbours_relations_and_edges_equal_a_scan_of_the_triples(edges, chosen, relation, direction):
    with tempfile.TemporaryDirectory() as folder:
        kb = build_graph(_tables(edges), Path(folder) / "kb")
        nodes = NodeSet.of(chosen)
        if relation is not None and relation not in {r for _, r, _ in edges}:
            with pytest.raises(SchemaError):
                kb.neighbors(nodes, relation, direction)
            return
        leaving = [(h, r, t) for h, r, t in edges if h in chosen and relation in (None, r)]
        entering = [(h, r, t) for h, r, t in edges if t in chosen and relation in (None, r)]
        wanted = {"out": {t for _, _, t in leaving}, "in": {h for h, _, _ in entering}}
        wanted["any"] = wanted["out"] | wanted["in"]
        assert set(kb.neighbors(nodes, relation, direction)) == wanted[direction]
        touching = leaving + [edge for edge in entering if edge[0] not in chosen]
        listed = {"out": leaving, "in": entering, "any": touching}[direction]
        found = kb.edges(nodes, relation, direction)
        names = kb.schema.relation_names
        assert sorted((h, names[r], t) for h, r, t in _rows(found)) == sorted(listed)
        counts = {(use.relation, use.direction): use.count for use in kb.relations(nodes)}
        for name, (side, rows) in itertools.product("abc", (("out", edges), ("in", edges))):
            end = 0 if side == "out" else 2
            assert counts.get((name, side), 0) == sum(1 for row in rows if row[1] == name and row[end] in chosen)


@settings(max_examples=repeats(25, 60), deadline=None)
@given(triples, st.integers(0, 9))
def test_triples_of_a_node_are_each_of_its_edges_once_with_their_attributes(edges, node):
    with tempfile.TemporaryDirectory() as folder:
        weights = [f"w{i}" for i in range(len(edges))]
        kb = build_graph(_tables(edges, weights), Path(folder) / "kb")
        wanted = [(h, r, t, w) for (h, r, t), w in zip(edges, weights, strict=True) if node in (h, t)]
        found = [(x.head, x.relation, x.tail, x.attributes["weight"]) for x in kb.triples(node)]
        assert sorted(found) == sorted(wanted)


@given(st.sets(st.integers(0, 300)), st.sets(st.integers(0, 300)))
def test_node_sets_are_sets(left, right):
    a, b = NodeSet.of(left), NodeSet.of(right)
    assert set(a & b) == left & right
    assert set(a | b) == left | right
    assert set(a - b) == left - right
    assert (a == b) == (left == right)
    assert all((node in a) == (node in left) for node in range(301))
    for result in (a & b, a | b, a - b):
        assert np.all(np.diff(result.array) > 0)


def test_nodes_keep_their_key_names_texts_and_attributes(kb):
    node = kb.node(kb.find("P1"))
    assert (node.key, node.type, node.name, node.aliases) == ("P1", "phenotype", "Polydactyly", ("extra fingers",))
    assert [kb.node(n).name for n in kb.nodes("gene")] == ["BBS2", "FBN1"]
    with pytest.raises(NotFoundError, match="P9"):
        kb.find("P9")


def test_a_document_shows_name_type_aliases_text_and_relations(kb):
    text = kb.text(kb.find("BBS"), relations=True)
    assert text.startswith("Bardet-Biedl syndrome (disease)\nalso called: BBS\nA ciliopathy")
    assert "has phenotype: {phenotype: (Polydactyly, Rod-cone dystrophy)}" in text
    assert "has phenotype" not in kb.text(kb.find("BBS"))


def test_an_edge_to_an_unknown_node_is_named_with_file_and_line(tmp_path, tiny_tables):
    stray = pa.table({"head": ["BBS", "BBS"], "relation": ["has_phenotype"] * 2, "tail": ["P1", "P77"]})
    source = Tables(tiny_tables.nodes, (Piece(stray, "more.tsv", 2),))
    with pytest.raises(SourceError, match=r"more\.tsv, line 3: no node has the key 'P77'"):
        build_graph(source, tmp_path / "kb")
    assert build_graph(source, tmp_path / "kb2", skip=True).edge_count == 1


def test_a_repeated_key_is_named_with_file_and_line(tmp_path, tiny_tables):
    again = Piece(pa.table({"key": ["X", "MFS"]}), "again.csv", 2)
    with pytest.raises(SourceError, match=r"again\.csv, line 3: the key 'MFS'"):
        build_graph(Tables((*tiny_tables.nodes, again), ()), tmp_path / "kb")


def _tables(edges, weights=None):
    nodes = pa.table({"key": [str(i) for i in range(10)]})
    heads, relations, tails = zip(*edges, strict=True) if edges else ((), (), ())
    columns = {
        "head": pa.array([str(h) for h in heads], pa.string()),
        "relation": pa.array(relations, pa.string()),
        "tail": pa.array([str(t) for t in tails], pa.string()),
    }
    if weights is not None:
        columns["weight"] = pa.array(weights, pa.string())
    return Tables((Piece(nodes, "nodes"),), (Piece(pa.table(columns), "edges"),))


def _rows(edges):
    return zip(edges.heads.tolist(), edges.relations.tolist(), edges.tails.tolist(), strict=True)


def test_a_relation_whose_every_edge_is_skipped_leaves_the_others_their_names(tmp_path):
    edges = [("BBS2", "begins", "nobody", None), ("BBS2", "knows", "FBN1", None), ("FBN1", "zooms", "BBS2", None)]
    kb = build_graph(tables(edges=edges), tmp_path / "graph", skip=True)
    assert kb.schema.relation_names == ("knows", "zooms")
    assert [use.relation for use in kb.relations(kb.nodes())] == ["knows", "knows", "zooms", "zooms"]
    assert kb.neighbors(NodeSet.of([kb.find("BBS2")]), "knows", "out").array.tolist() == [kb.find("FBN1")]
