"""Shortest paths are those that a textbook search finds, and never more than was asked for."""

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.core.types import NodeSet
from clew.store.graph import paths as paths_module
from clew.store.graph.adjacency import Adjacency
from clew.store.graph.build import sorted_edges
from clew.store.graph.paths import ArrayGraph, Ball, PathLimits, UndirectedGraph, shortest_paths
from clew.store.graph.protocol import Edges

EVERYTHING = PathLimits(most_hops=20, most_paths=10_000)
triples = st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ab"), st.integers(0, 9)), max_size=30)


@pytest.fixture(autouse=True, params=["gathered", "as slices"])
def _edges_are_read(request, monkeypatch):
    if request.param == "as slices":  # every node is a hub, and no more than three edges fit in memory
        monkeypatch.setattr(paths_module, "HUB", 0)
        monkeypatch.setattr(paths_module, "MOST_AT_ONCE", 3)


@settings(max_examples=80, deadline=None)
@given(triples, st.integers(0, 9), st.integers(0, 9))
def test_all_shortest_paths_are_found_whatever_the_direction_of_edges(edges, source, target):
    reference = nx.Graph([(head, tail) for head, _, tail in edges])
    reference.add_nodes_from(range(10))
    wanted = set()
    if nx.has_path(reference, source, target):
        wanted = {tuple(path) for path in nx.all_shortest_paths(reference, source, target)}
    for graph in graphs(edges):
        found = shortest_paths(Ball(graph, source), Ball(graph, target), EVERYTHING)
        assert set(found.paths) == wanted
        assert found.count == len(found.paths) == len(wanted)
        assert found.complete
        assert found.distance == (len(next(iter(wanted))) - 1 if wanted else None)


@settings(max_examples=60, deadline=None)
@given(triples, st.integers(0, 9), st.integers(0, 9), st.integers(1, 4))
def test_the_kept_paths_are_those_through_the_least_connected_nodes(edges, source, target, most):
    graph = array_graph(edges)
    all_of_them = shortest_paths(Ball(graph, source), Ball(graph, target), EVERYTHING).paths

    def weight(path):
        degrees = graph.degrees(NodeSet.of(path[1:-1])) if len(path) > 2 else np.zeros(0)
        return int(np.rint(np.log1p(degrees) * (1 << 20)).sum())

    found = shortest_paths(Ball(graph, source), Ball(graph, target), PathLimits(20, most))
    assert list(found.paths) == sorted(all_of_them, key=lambda path: (weight(path), path))[:most]
    assert found.count == len(all_of_them)


@settings(max_examples=60, deadline=None)
@given(triples, st.integers(0, 9), st.lists(st.integers(0, 9), min_size=2, max_size=5))
def test_a_ball_used_for_many_targets_gives_what_fresh_ones_give(edges, source, targets):
    graph = array_graph(edges)
    shared = Ball(graph, source)
    shared.level(2)
    for target in targets:
        fresh = shortest_paths(Ball(graph, source), Ball(graph, target), EVERYTHING)
        assert shortest_paths(shared, Ball(graph, target), EVERYTHING) == fresh


@settings(max_examples=40, deadline=None)
@given(triples, st.sets(st.integers(0, 9)))
def test_the_induced_subgraph_keeps_directions_and_parallel_edges(edges, chosen):
    wanted = sorted((h, "ab".index(r), t) for h, r, t in edges if h in chosen and t in chosen)
    for graph in graphs(edges):
        found = graph.induced(NodeSet.of(chosen))
        rows = zip(found.heads.tolist(), found.relations.tolist(), found.tails.tolist(), strict=True)
        assert list(rows) == wanted


def test_a_path_longer_than_allowed_is_not_a_path():
    chain = [(node, "a", node + 1) for node in range(6)]
    graph = array_graph(chain)
    assert shortest_paths(Ball(graph, 0), Ball(graph, 4), PathLimits(most_hops=4)).paths == ((0, 1, 2, 3, 4),)
    beyond = shortest_paths(Ball(graph, 0), Ball(graph, 5), PathLimits(most_hops=4))
    assert (beyond.distance, beyond.paths, beyond.gave_up) == (None, (), False)


def test_a_search_that_would_read_too_many_edges_gives_up_and_says_so():
    star = [(0, "a", leaf) for leaf in range(1, 9)] + [(9, "a", leaf) for leaf in range(1, 9)]
    graph = array_graph(star)
    found = shortest_paths(Ball(graph, 0), Ball(graph, 9), PathLimits(most_edges=5))
    assert found.gave_up
    assert not found.complete


def test_a_wide_layer_is_narrowed_and_the_count_is_known_to_be_too_small():
    star = [(0, "a", leaf) for leaf in range(1, 9)] + [(9, "a", leaf) for leaf in range(1, 9)]
    graph = array_graph(star)
    found = shortest_paths(Ball(graph, 0), Ball(graph, 9), PathLimits(widest_layer=3))
    assert [path[1] for path in found.paths] == [1, 2, 3]
    assert found.count > 3
    assert not found.complete


EDGE = ("heads", "relations", "tails")


class TripleList:
    """What a remote base is asked, answered by scanning a list of triples."""

    stored = None

    def __init__(self, edges):
        self.rows = [(head, "ab".index(relation), tail) for head, relation, tail in edges]

    def neighbors(self, nodes):
        near = [tail for head, _, tail in self.rows if head in nodes]
        return NodeSet.of(near + [head for head, _, tail in self.rows if tail in nodes])

    def edges(self, nodes, relation=None, direction="any"):
        rows = [row for row in self.rows if row[0] in nodes or (direction == "any" and row[2] in nodes)]
        return Edges(*np.array(rows, dtype=np.int32).reshape(-1, 3).T)

    def edges_to(self, nodes, others, relation, direction):
        rows = zip(*(getattr(self.edges(nodes, relation, direction), part) for part in EDGE), strict=True)
        near = [row for row in rows if row[0] in others or row[2] in others]
        return Edges(*np.array(near, dtype=np.int32).reshape(-1, 3).T)

    def degrees(self, nodes):
        return np.array([sum((row[0] == node) + (row[2] == node) for row in self.rows) for node in nodes])


def graphs(edges):
    """The same ten nodes as arrays and as a remote base."""
    heads, relations, tails = np.array(TripleList(edges).rows, dtype=np.int32).reshape(-1, 3).T
    outward = Adjacency.build(*sorted_edges(heads, relations, tails, 10, 2), 10, 2)
    inward = Adjacency.build(*sorted_edges(tails, relations, heads, 10, 2), 10, 2)
    return ArrayGraph(SimpleNamespace(outward=outward, inward=inward, count=10)), UndirectedGraph(TripleList(edges))


def array_graph(edges):
    return graphs(edges)[0]
