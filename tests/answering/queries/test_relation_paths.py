"""Relation paths against walks listed one by one."""

import pyarrow as pa
import pytest

from clew.answering.queries.relation_paths import (
    Explorer,
    KnownNameless,
    Move,
    Nameless,
    RelationPath,
    are_values,
    is_return,
)
from clew.core.types import NodeSet
from clew.store.building import build
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.tables import Piece, Tables


def test_paths_from_different_topics_are_never_equivalent():
    hop = (Move("is_a", "out"),)
    one, other = RelationPath(NodeSet.of([1]), (hop,)), RelationPath(NodeSet.of([2]), (hop,))
    assert one != other
    assert one == RelationPath(NodeSet.of([1]), (hop,))


@pytest.mark.parametrize(
    ("topic", "moves", "expected"),
    [
        ("BBS2", ["associated_with"], ["BBS"]),
        ("BBS2", ["associated_with", "has_phenotype"], ["P1", "P2"]),
        ("P4", ["^is_a"], ["P1", "P3"]),
        ("P1", ["is_a", "^is_a"], ["P3"]),  # the topic is left out where the relation is taken back
        ("P1", ["^has_phenotype", "^associated_with"], ["BBS2"]),
    ],
)
def test_a_path_is_executed_from_its_topic(kb, topic, moves, expected):
    hops = tuple((Move(m.lstrip("^"), "in" if m.startswith("^") else "out"),) for m in moves)
    reached = Explorer(kb).execute(RelationPath(NodeSet.of([kb.find(topic)]), hops))
    assert sorted(ref.key for ref in kb.refs(reached.array)) == expected


def test_leads_name_every_relation_of_a_node(kb):
    found = {lead.hop for lead in Explorer(kb).leads(NodeSet.of([kb.find("BBS")]))}
    assert found == {(Move("associated_with", "in"),), (Move("has_phenotype", "out"),)}


def test_nameless_nodes_are_walked_through_and_never_an_answer(tmp_path):
    facts = [("ann", "dated", "m.01abc"), ("m.01abc", "dated", "bob"), ("ann", "dated", "carl")]
    columns = dict(zip(("head", "relation", "tail"), zip(*facts, strict=True), strict=True))
    kb = ArrayKnowledgeBase.open(
        build(Tables((), (Piece(pa.table(columns), "facts"),), implicit=True), tmp_path / "kb").folder
    )
    dated = Move("dated", "out")
    for nameless in (KnownNameless(kb), Nameless(kb)):
        explorer = Explorer(kb)
        explorer._nameless = nameless
        ends = {lead.hop: kb.refs(lead.ends.array)[0].key for lead in explorer.leads(NodeSet.of([kb.find("ann")]))}
        assert ends == {(dated,): "carl", (dated, dated): "bob"}
        for hop, key in ends.items():
            assert list(explorer.execute(RelationPath(NodeSet.of([kb.find("ann")]), (hop,)))) == [kb.find(key)]


def test_a_path_that_takes_its_relation_back_is_recognised():
    assert are_values(["1999", "2004-05-01"])
    assert not are_values(["Madonna", "1984"])
    assert is_return((Move("r", "out"),), (Move("r", "in"),))
    assert not is_return(None, (Move("r", "in"),))
