"""The subgraph between entities: what is in it, its numbers, its words and its picture."""

import json
import xml.etree.ElementTree as ET

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from clew import cli
from clew.answering.methods.subgraph_reranking.drawing import draw_subgraph, layered_layout
from clew.answering.methods.subgraph_reranking.features import GRAPH_FEATURES, graph_features
from clew.answering.methods.subgraph_reranking.graph_to_text import highlight, linearize
from clew.answering.methods.subgraph_reranking.subgraph import Subgraph, SubgraphExtractor, path_evidence
from clew.store.building import build
from clew.store.graph.paths import PathLimits, ShortestPaths
from clew.store.graph.protocol import Edges
from conftest import build_graph, tables

SVG = "{http://www.w3.org/2000/svg}"


def subgraph_of(edges, count, distances=(2,)):
    """A subgraph of nodes 0..count-1 whose last node is the candidate."""
    heads, relations, tails = np.array(edges, dtype=np.int32).reshape(-1, 3).T
    paths = tuple(ShortestPaths(entity, count - 1, distance) for entity, distance in enumerate(distances))
    entities = tuple(range(len(distances)))
    return Subgraph(entities, count - 1, np.arange(count, dtype=np.int32), Edges(heads, relations, tails), paths)


def features_of(subgraph):
    return dict(zip(GRAPH_FEATURES, graph_features(subgraph).tolist(), strict=True))


def test_the_features_of_a_small_graph_are_those_computed_by_hand():
    #     1 ── 3        0→1, 1→3, 0→2, 2→3 form one cycle; 0→1 twice is a second one; 3→4 is the only bridge
    #   0       3→4
    #     2 ── 3
    edges = [(0, 0, 1), (0, 1, 1), (1, 0, 3), (0, 0, 2), (2, 0, 3), (3, 0, 4)]
    found = features_of(subgraph_of(edges, 5, (3,)))
    assert found["nodes"] == 5
    assert found["edges"] == 6
    assert found["cycles"] == 6 - 5 + 1
    assert found["bridges"] == 1
    assert found["average_shortest_path"] == 3
    assert found["density"] == 6 / 20
    # α = 0.1: x1 = 1 + 0.1·2, x2 = 1 + 0.1, x3 = 1 + 0.1·(1.2 + 1.1), x4 = 1 + 0.1·1.23
    assert found["katz"] == pytest.approx(1.123)
    # r = 0.15/5 + 0.85·(in-flow + r4/5), solved for the chain 0 → {1 (2/3), 2 (1/3)} → 3 → 4
    total = np.linalg.solve(
        np.array(
            [
                [1, 0, 0, 0, -0.17],
                [-0.85 * 2 / 3, 1, 0, 0, -0.17],
                [-0.85 / 3, 0, 1, 0, -0.17],
                [0, -0.85, -0.85, 1, -0.17],
                [0, 0, 0, -0.85, 1 - 0.17],
            ]
        ),
        np.full(5, 0.03),
    )
    assert found["pagerank"] == pytest.approx(total[-1])
    assert found["disconnected"] == 0


def test_entities_without_a_path_count_one_more_than_the_limit_and_are_told():
    lone = features_of(subgraph_of([], 3, (None, 2)))
    assert lone["average_shortest_path"] == (5 + 2) / 2
    assert lone["disconnected"] == 0.5
    assert (lone["nodes"], lone["edges"], lone["cycles"], lone["bridges"], lone["density"]) == (3, 0, 0, 0, 0)
    assert (lone["katz"], lone["pagerank"]) == (1, pytest.approx(1 / 3))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2), st.integers(0, 7)), max_size=25))
def test_the_features_equal_those_of_networkx(edges):
    found = features_of(subgraph_of(edges, 8))
    directed = nx.MultiDiGraph()
    directed.add_nodes_from(range(8))
    directed.add_edges_from((head, tail) for head, _, tail in edges)
    plain = nx.MultiGraph(list(directed.edges()))
    plain.add_nodes_from(range(8))
    rank = len(edges) - 8 + nx.number_connected_components(plain)
    assert found["cycles"] == rank
    assert found["bridges"] == sum(1 for one, other in _bridges(plain) if one != other)
    weighted = nx.DiGraph()
    weighted.add_nodes_from(range(8))
    for head, _, tail in edges:
        before = weighted.get_edge_data(head, tail, {"weight": 0})["weight"]
        weighted.add_edge(head, tail, weight=before + 1)
    assert found["pagerank"] == pytest.approx(nx.pagerank(weighted, tol=1e-12, max_iter=1000)[7], abs=1e-8)
    matrix = nx.to_numpy_array(weighted, nodelist=range(8))
    bound = min(matrix.sum(axis=0).max(), matrix.sum(axis=1).max())
    alpha = min(0.1, 0.9 / bound) if bound else 0.1
    assert alpha * max(abs(np.linalg.eigvals(matrix))) < 1
    reference = nx.katz_centrality_numpy(weighted, alpha=alpha, normalized=False, weight="weight")
    assert found["katz"] == pytest.approx(reference[7])


def _bridges(graph):
    """Edges of a multigraph whose removal raises the number of components."""
    before = nx.number_connected_components(graph)
    for one, other, key in list(graph.edges(keys=True)):
        graph.remove_edge(one, other, key)
        if nx.number_connected_components(graph) > before:
            yield one, other
        graph.add_edge(one, other, key)


def test_a_subgraph_holds_all_shortest_paths_and_the_edges_among_their_nodes(kb):
    p4, bbs2, mfs = kb.find("P4"), kb.find("BBS2"), kb.find("MFS")
    [found] = SubgraphExtractor(kb).extract([bbs2, mfs], [p4])
    names = [ref.key for ref in kb.refs(found.nodes)]
    assert names == ["BBS2", "MFS", "BBS", "P1", "P3", "P4"]
    assert [paths.distance for paths in found.paths] == [3, 2]
    assert len(found.edges) == 5
    assert found.complete
    assert not found.disconnected
    evidence = path_evidence(kb, found, most=1)
    assert evidence[0].in_words() == (
        "BBS2 —associated_with→ Bardet-Biedl syndrome; Bardet-Biedl syndrome —has_phenotype→ Polydactyly; "
        "Polydactyly —is_a→ Abnormal finger"
    )


def test_a_candidate_that_nothing_reaches_is_kept_and_flagged(kb):
    near = SubgraphExtractor(kb, PathLimits(most_hops=1))
    [found] = near.extract([kb.find("BBS2")], [kb.find("P4")])
    assert found.disconnected
    assert found.unreached == (kb.find("BBS2"),)
    assert [ref.key for ref in kb.refs(found.nodes)] == ["BBS2", "P4"]
    assert linearize(kb, found) == "BBS2; Abnormal finger"
    [itself] = near.extract([kb.find("P4")], [kb.find("P4")])
    assert (itself.nodes.tolist(), itself.disconnected) == ([kb.find("P4")], False)


def test_the_text_goes_row_by_row_from_the_question_entities_to_the_candidate(kb):
    [found] = SubgraphExtractor(kb).extract([kb.find("BBS2")], [kb.find("P4")])
    assert linearize(kb, found) == (
        "BBS2, associated with, Bardet-Biedl syndrome; Bardet-Biedl syndrome, has phenotype, Polydactyly; "
        "Polydactyly, is a, Abnormal finger"
    )


def test_highlight_marks_whole_names_only_and_never_leaves_the_candidate_out():
    assert highlight("Ann, knows, Anna", "Ann") == "[unused1]Ann[unused2], knows, Anna"
    assert highlight("nobody", "C++") == "[unused1]C++[unused2]; nobody"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=120), st.data())
def test_no_two_nodes_are_drawn_at_one_place_and_layers_go_from_left_to_right(layers, data):
    ends = st.integers(0, len(layers) - 1)
    places = layered_layout(layers, data.draw(st.lists(st.tuples(ends, ends), max_size=60)))
    assert len({(place.column, place.row) for place in places}) == len(layers)
    for one, left in enumerate(places):
        for other, right in enumerate(places):
            if layers[one] < layers[other]:
                assert left.column < right.column
            if left.column == right.column and one != other:
                assert abs(left.row - right.row) >= 1


def test_the_picture_tells_roles_apart_labels_relations_and_escapes_names(tmp_path):
    nodes = [("a", "x", "A <b>&", [], ""), ("b", "x", "B", [], ""), ("c", "x", "C", [], "")]
    edges = [("a", "likes", "b", None), ("b", "likes", "a", None), ("b", "made_by", "c", None)]
    kb = build_graph(tables(nodes, edges), tmp_path / "kb")
    [found] = SubgraphExtractor(kb).extract([0], [2])
    picture = draw_subgraph(kb, found)
    root = ET.fromstring(picture)
    roles = [group.get("class") for group in root.iter(f"{SVG}g") if group.find(f"{SVG}text") is not None]
    assert sorted(roles) == ["node candidate", "node entity", "node inner"]
    written = [text.text for text in root.iter(f"{SVG}text") if "relation" in (text.get("class") or "")]
    assert sorted(written) == ["likes", "made by"]
    assert any(text.text == "A <b>&" for text in root.iter(f"{SVG}text"))
    assert "prefers-color-scheme:dark" in picture
    two_way = [path for path in root.iter(f"{SVG}path") if path.get("marker-start") and path.get("marker-end")]
    assert len(two_way) == 1


def test_two_hundred_nodes_are_drawn_without_overlap(tmp_path):
    nodes = [("a", "x", "from", [], ""), ("z", "x", "to", [], "")]
    nodes += [(f"m{i}", "x", f"a node between, number {i}", [], "") for i in range(198)]
    edges = [("a", "leads_to", f"m{i}", None) for i in range(198)] + [
        (f"m{i}", "ends_at", "z", None) for i in range(198)
    ]
    kb = build_graph(tables(nodes, edges), tmp_path / "kb")
    limits = PathLimits(most_paths=500)
    [found] = SubgraphExtractor(kb, limits).extract([kb.find("a")], [kb.find("z")])
    boxes = [
        tuple(float(rect.get(side)) for side in ("x", "y", "width", "height"))
        for group in ET.fromstring(draw_subgraph(kb, found)).iter(f"{SVG}g")
        if group.find(f"{SVG}text") is not None
        for rect in group.iter(f"{SVG}rect")
    ]
    assert len(boxes) == 200
    for place, (x, y, width, height) in enumerate(boxes):
        for left, top, across, down in boxes[place + 1 :]:
            assert x + width <= left or left + across <= x or y + height <= top or top + down <= y


def test_the_command_prints_text_json_and_a_picture(tmp_path):
    base = build(tables(), tmp_path / "base.kb").folder
    cli._register()
    run = CliRunner().invoke
    shown = run(cli.app, ["subgraph", str(base), "BBS2", "P4", "--text", "--svg", str(tmp_path / "out.svg")])
    assert shown.exit_code == 0, shown.output
    assert "BBS2 to Abnormal finger: 1 shortest path of length 3" in shown.stdout
    assert "Polydactyly, is a, Abnormal finger" in shown.stdout
    ET.parse(tmp_path / "out.svg")
    script = tmp_path / "replies.jsonl"
    script.write_text('{"reply": "BBS2 and Polydactyly made Bob Dylan famous."}\n')
    wrong = run(cli.app, ["subgraph", str(base), "BBS2", "P4", "--model", f"scripted:{script}"])
    assert "leaves out Abnormal finger, Bardet-Biedl syndrome and invents Bob Dylan" in wrong.stdout, wrong.output
    told = json.loads(run(cli.app, ["subgraph", str(base), "BBS2", "MFS", "P4", "--json"]).stdout)
    assert [node["role"] for node in told["nodes"]] == ["question entity"] * 2 + ["between"] * 3 + ["candidate"]
    assert told["features"]["average_shortest_path"] == 2.5
    assert [path["distance"] for path in told["paths"]] == [3, 2]
