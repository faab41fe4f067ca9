"""A delta changes what it names and nothing else: against dictionaries, and from files."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.core.errors import InputError
from clew.store.graph.tables import Piece, Tables
from clew.store.sources.delta import Delta, apply_delta, read_delta
from clew.store.sources.files import SourceOptions
from repeats import repeats

KEY = st.sampled_from("abcdef")
VALUE = st.sampled_from(["", "x", "y"]) | st.none()
NODE = st.fixed_dictionaries(
    {"key": KEY},
    optional={
        "type": VALUE,
        "name": VALUE,
        "aliases": st.none() | st.lists(st.sampled_from("pq"), max_size=2),
        "size": st.none() | st.integers(0, 9),
    },
)
NODES = st.lists(NODE, max_size=5, unique_by=lambda node: node["key"])
EDGE = st.fixed_dictionaries(
    {"head": KEY, "relation": st.sampled_from("rs"), "tail": KEY}, optional={"weight": st.integers(0, 2)}
)
EDGES = st.lists(EDGE, max_size=8)


def piece(rows, required):
    names = dict.fromkeys([*required, *(name for row in rows for name in row)])
    kinds = {"aliases": pa.list_(pa.string()), "size": pa.int64(), "weight": pa.int64()}
    return Piece(
        pa.table({n: pa.array([row.get(n) for row in rows], kinds.get(n, pa.string())) for n in names}), "delta"
    )


def tables(nodes, edges):
    return Tables((piece(nodes, ["key"]),), (piece(edges, ["head", "relation", "tail"]),))


def triple(edge):
    return edge["head"], edge["relation"], edge["tail"]


def present(row):
    return {name: value for name, value in row.items() if value not in (None, "", [])}


def in_order(rows):
    return sorted(sorted(row.items()) for row in rows)


def rows_of(pieces):
    return [present(row) for part in pieces for row in part.table.to_pylist()]


@settings(max_examples=repeats(60, 200), deadline=None)
@given(NODES, EDGES, NODES, EDGES, st.sets(KEY), st.lists(EDGE, max_size=3))
def test_a_delta_does_to_tables_what_it_does_to_dictionaries(nodes, edges, new_nodes, new_edges, gone, gone_edges):
    model = {node["key"]: present(node) for node in nodes if node["key"] not in gone}
    for node in new_nodes:
        model[node["key"]] = model.get(node["key"], {}) | present(node)
    removed = {triple(edge) for edge in gone_edges + new_edges}
    links = [e for e in edges if triple(e) not in removed and not {e["head"], e["tail"]} & gone] + new_edges

    delta = Delta(
        tables(new_nodes, new_edges),
        (piece([{"key": key} for key in sorted(gone)], ["key"]),),
        (
            piece(
                [dict(zip(("head", "relation", "tail"), triple(edge), strict=True)) for edge in gone_edges],
                ["head", "relation", "tail"],
            ),
        ),
    )
    result = apply_delta(tables(nodes, edges), delta)
    assert {row["key"]: row for row in rows_of(result.nodes)} == model
    assert len(rows_of(result.nodes)) == len(model)
    assert in_order(rows_of(result.edges)) == in_order(present(edge) for edge in links)
    unknown_nodes = gone - {node["key"] for node in nodes}
    unknown_edges = {triple(edge) for edge in gone_edges} - {triple(edge) for edge in edges}
    assert len(result.skipped) == len(unknown_nodes) + len(unknown_edges)


def test_applying_a_delta_twice_equals_applying_it_once():
    old = tables(
        [{"key": "a", "type": "t", "size": 1}, {"key": "b"}], [{"head": "a", "relation": "r", "tail": "b"}] * 2
    )
    delta = Delta(tables([{"key": "a", "name": "A"}], [{"head": "a", "relation": "r", "tail": "b", "weight": 1}]))
    once = apply_delta(old, delta)
    twice = apply_delta(once, delta)
    assert rows_of(once.nodes) == [{"key": "b"}, {"key": "a", "type": "t", "name": "A", "size": 1}]
    assert rows_of(once.edges) == [{"head": "a", "relation": "r", "tail": "b", "weight": 1}]
    assert (rows_of(once.nodes), rows_of(once.edges)) == (rows_of(twice.nodes), rows_of(twice.edges))


def test_a_delta_is_read_from_files_and_keys(tmp_path, kb):
    (tmp_path / "changes.csv").write_text("id,text,weight\nMFS,Long limbs.,3\nNEW,A new one.,4\n")
    (tmp_path / "links.tsv").write_text("source\trelation\ttarget\nNEW\tis_a\tP4\n")
    (tmp_path / "gone.txt").write_text("P1\nP2\n")
    (tmp_path / "cut.csv").write_text("head,relation,tail\nP3,is_a,P4\n")
    delta = read_delta(
        [tmp_path / "changes.csv", tmp_path / "links.tsv"],
        delete_nodes=[tmp_path / "gone.txt", "BBS2"],
        delete_edges=[tmp_path / "cut.csv"],
    )
    result = apply_delta(kb.to_tables(), delta)
    nodes = {row["key"]: row for row in rows_of(result.nodes)}
    assert set(nodes) == {"FBN1", "BBS", "MFS", "P3", "P4", "NEW"}
    marfan = nodes["MFS"]
    assert (marfan["type"], marfan["name"], marfan["text"], marfan["weight"]) == (
        "disease",
        "Marfan syndrome",
        "Long limbs.",
        3,
    )
    assert {triple(edge) for edge in rows_of(result.edges)} == {
        ("FBN1", "associated_with", "MFS"),
        ("MFS", "has_phenotype", "P3"),
        ("NEW", "is_a", "P4"),
    }
    assert not result.implicit
    assert not result.skipped


def test_deleting_what_is_not_there_is_listed_with_its_place(tmp_path, kb):
    (tmp_path / "gone.csv").write_text("id\nP1\nP9\n")
    (tmp_path / "cut.txt").write_text("P3\tis_a\tP4\nP3\tis_a\tP1\n")
    delta = read_delta(delete_nodes=[tmp_path / "gone.csv"], delete_edges=[tmp_path / "cut.txt"])
    found = [(problem.message, problem.line) for problem in apply_delta(kb.to_tables(), delta).skipped]
    assert found == [("no node has the key 'P9', to be deleted", 3), ("no edge P3 —is_a→ P1, to be deleted", 2)]
    with pytest.raises(InputError, match="no changes"):
        read_delta()


def test_triples_of_a_delta_make_nodes_and_edges_alone_do_not(tmp_path, kb):
    (tmp_path / "new.txt").write_text("X\tr\tY\nX\tr\tZ\n")
    triples = read_delta([tmp_path / "new.txt"], SourceOptions(node_type="thing"))
    assert apply_delta(kb.to_tables(), triples).implicit_type == "thing"
    assert apply_delta(kb.to_tables(), triples).implicit
    (tmp_path / "edges.csv").write_text("head,relation,tail\nX,r,Y\n")
    assert not apply_delta(kb.to_tables(), read_delta([tmp_path / "edges.csv"])).implicit
