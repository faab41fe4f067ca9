"""Relation paths are ranked by what the encoders think and by what was confirmed."""

from itertools import product

import pytest

from clew.answering.queries.relation_paths import Move
from clew.answering.reading.path_ranker import PathRanker, Taught
from clew.core.types import EMPTY, NodeSet
from clew.store.building import build
from clew.store.open_base import OpenBase
from conftest import NODES, tables

HAS, CAUSES = Move("has_phenotype", "out"), Move("associated_with", "out")


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    return OpenBase.open(build(tables(), tmp_path_factory.mktemp("ranked") / "base.kb").folder)


def node(tools, key):
    return NodeSet.of([tools.find_node(key)])


def keys(tools, nodes):
    return {ref.key for ref in tools.kb.refs(nodes.array)}


def test_every_path_leads_where_it_says_and_comes_once(tools):
    for key, *_ in NODES:
        ranked = PathRanker(tools.kb).rank("what about [] ?", node(tools, key))
        paths = [one.path for one in ranked]
        assert len(set(paths)) == len(paths)
        assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)
        for one in ranked:
            assert len(one.ends)
            assert one.ends == PathRanker(tools.kb).explorer.execute(one.path)


def test_nothing_leaves_no_topic(tools):
    assert PathRanker(tools.kb).rank("what about [] ?", EMPTY) == []


def test_a_base_without_edges_has_no_paths(tmp_path):
    bare = OpenBase.open(build(tables(NODES, []), tmp_path / "bare.kb").folder)
    assert PathRanker(bare.kb).rank("what about [] ?", node(bare, "BBS2")) == []


def test_a_path_that_is_longer_than_asked_for_is_not_looked_at(tools):
    ranked = PathRanker(tools.kb).rank("what about [] ?", node(tools, "BBS2"), depth=1)
    assert {len(one.path.moves) for one in ranked} == {1}


def test_a_confirmed_path_comes_first_for_questions_that_differ_only_in_names(tools):
    asked, topic = "which signs go with [] ?", node(tools, "BBS2")
    plain = PathRanker(tools.kb)
    masked = plain.masked(asked, topic)
    moves = {one.path.moves for one in plain.rank(asked, topic)}
    for wanted in moves:
        first = PathRanker(tools.kb, taught=[Taught(masked, wanted)]).rank(asked, topic)[0]
        assert first.path.moves == wanted


def test_what_was_confirmed_about_something_else_changes_nothing(tools):
    asked, topic = "which phenotypes do the diseases associated with [] have?", node(tools, "BBS2")
    before = PathRanker(tools.kb).rank(asked, topic)
    other = Taught("in which year was the bridge over the river built ?", (HAS,))
    after = PathRanker(tools.kb, taught=[other]).rank(asked, topic)
    assert [(one.path, one.score) for one in after] == [(one.path, one.score) for one in before]
    assert before[0].path.moves == (CAUSES, HAS)


def test_votes_of_several_confirmed_questions_add_up(tools):
    asked, topic = "which signs go with [] ?", node(tools, "BBS2")
    masked = PathRanker(tools.kb).masked(asked, topic)
    once, twice = (CAUSES,), (CAUSES, HAS)
    for first, second in product((once, twice), repeat=2):
        taught = [Taught(masked, moves) for moves in (first, second, twice)]
        best = PathRanker(tools.kb, taught=taught).rank(asked, topic)[0].path.moves
        assert best == max((once, twice), key=[one.moves for one in taught].count)
