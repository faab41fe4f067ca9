"""Tables and graphs of other libraries come in as files do, and go out again."""

import datetime

import networkx as nx
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from clew.core.errors import InputError
from clew.store.sources.objects import from_networkx, from_tables, to_networkx, write_graphml
from clew.store.sources.read import read_sources

NODES = {"id": ["a", "b"], "type": ["t", "u"], "name": ["Ann", "Łukasz"], "size": [1, None], "aliases": [["x"], []]}
EDGES = {
    "source": ["a", "a"],
    "relation": ["knows", "knows"],
    "target": ["b", "b"],
    "since": [datetime.date(2020, 1, 2), None],
}


@pytest.mark.parametrize("library", [pa.table, pd.DataFrame, pl.DataFrame], ids=["pyarrow", "pandas", "polars"])
def test_tables_of_any_library_are_the_same(library):
    tables = from_tables(library(NODES), library(EDGES))
    assert tables.nodes[0].table.to_pylist() == [
        {"key": "a", "type": "t", "name": "Ann", "aliases": ["x"], "size": 1},
        {"key": "b", "type": "u", "name": "Łukasz", "aliases": [], "size": None},
    ]
    assert tables.edges[0].table.to_pylist() == [
        {"head": "a", "relation": "knows", "tail": "b", "since": datetime.date(2020, 1, 2)},
        {"head": "a", "relation": "knows", "tail": "b", "since": None},
    ]
    assert not tables.implicit


def test_keys_that_a_data_frame_made_floats_of_are_integers_again():
    edges = pd.DataFrame({"head": [1.0, 2.0], "relation": "r", "tail": [2, 3]})
    tables = from_tables(edges=[edges, edges])
    assert len(tables.edges) == 2
    assert tables.edges[0].table["head"].to_pylist() == [1, 2]
    assert tables.implicit
    with pytest.raises(InputError, match="expected a pyarrow, pandas or polars table"):
        from_tables(3)


def graph_of(edges):
    graph = nx.MultiDiGraph()
    graph.add_node("a", type="t", name="Ann", aliases=["x", "y"], size=3)
    graph.add_node("b", type="u", name="Bob", text="tall & <thin>\x01")
    graph.add_edges_from(edges)
    return graph


def test_a_networkx_graph_comes_back_as_it_went_in():
    graph = graph_of(
        [("a", "b", {"relation": "knows", "since": 1999}), ("a", "b", {"relation": "knows", "since": 2001})]
    )
    back = to_networkx(from_networkx(graph))
    assert dict(back.nodes(data=True)) == dict(graph.nodes(data=True))
    assert list(back.edges(data=True)) == list(graph.edges(data=True))


def test_relations_of_networkx_edges_come_from_their_data_or_their_keys():
    multi = graph_of([])
    multi.add_edge("a", "b", key="likes")
    multi.add_edge("a", "b")
    simple = nx.Graph()
    simple.add_edge(1, 2, label="knows")
    relations = [
        row["relation"] for graph in (multi, simple) for row in from_networkx(graph).edges[0].table.to_pylist()
    ]
    assert relations == ["likes", "related_to", "knows"]
    assert from_networkx(simple).nodes[0].table["key"].to_pylist() == [1, 2]


def test_graphml_is_read_by_networkx(tmp_path):
    graph = graph_of(
        [("a", "b", {"relation": "knows", "weight": 0.5, "sure": True}), ("a", "b", {"relation": "\u2264"})]
    )
    write_graphml(from_networkx(graph), tmp_path / "graph.graphml")
    back = nx.read_graphml(tmp_path / "graph.graphml", force_multigraph=True)
    assert back.nodes["a"] == {"type": "t", "name": "Ann", "aliases": "x | y", "size": 3}
    assert back.nodes["b"]["text"] == "tall & <thin>\ufffd"
    assert [data for _, _, data in back.edges(data=True)] == [
        {"relation": "knows", "weight": 0.5, "sure": True},
        {"relation": "\u2264"},
    ]


def test_tables_that_are_no_graph_are_read_as_files_are(tmp_path):
    orders = [{"order_no": "A1", "customer": "Ann"}, {"order_no": "A2", "customer": "Bob"}, {"order_no": "A3"}]
    customers = [{"name": "Ann", "age": 31}, {"name": "Bob", "age": 27}]
    made = from_tables(tables={"orders": pa.Table.from_pylist(orders), "customers": customers})
    (tmp_path / "orders.csv").write_text("order_no,customer\nA1,Ann\nA2,Bob\nA3,\n")
    (tmp_path / "customers.csv").write_text("name,age\nAnn,31\nBob,27\n")
    files = read_sources([tmp_path / "orders.csv", tmp_path / "customers.csv"])
    assert made.notes == files.notes
    assert [piece.table.to_pylist() for piece in made.nodes] == [piece.table.to_pylist() for piece in files.nodes]
    with pytest.raises(InputError, match="expected either tables"):
        from_tables(customers, tables={"orders": orders})
