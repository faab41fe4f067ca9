"""Passages that stand side by side in a document share a place among the answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew
from clew.answering.methods.knowledge_graph_prompting.answer import SIDE_BY_SIDE, gone_on, sharing_places
from clew.answering.reading.documents.close_reading import LONGEST_QUOTE
from clew.cli.ask import show_answer
from clew.core.states import WORDINGS
from clew.documents.building import build_documents
from clew.documents.rows import DocumentOptions
from clew.store.open_base import OpenBase

SENTENCES = [f"Sentence number {number} tells of pump {number} and of nothing else at all." for number in range(12)]


@pytest.fixture(scope="module")
def passages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("side")
    (folder / "docs").mkdir()
    (folder / "docs" / "pumps.txt").write_text("\n\n".join(SENTENCES), "utf-8")
    (folder / "docs" / "other.txt").write_text("A word about valves.", "utf-8")
    build_documents([folder / "docs"], folder / "docs.kb", DocumentOptions(passage_length=80))
    kb = OpenBase.open(folder / "docs.kb").local
    own = [node for node in kb.nodes("passage") if kb.node(node).attributes["file"] == "pumps.txt"]
    [other] = set(kb.nodes("passage")) - set(own)
    assert len(own) >= len(SENTENCES) - 1
    return kb, own, other


def test_neighbours_share_the_place_of_the_better(passages):
    kb, own, other = passages
    ranked = [own[4], other, own[5], own[9], own[3]]
    assert sharing_places(kb, ranked) == [[own[4], own[5], own[3]], [other], [own[9]]]


def test_a_place_holds_no_more_than_a_few(passages):
    kb, own, _ = passages
    places = sharing_places(kb, own)
    assert max(map(len, places)) == SIDE_BY_SIDE
    assert [node for place in places for node in place] == own


@given(st.data())
def test_nothing_is_lost_and_the_best_come_first(passages, data):
    kb, own, other = passages
    ranked = data.draw(st.permutations([*own, other]).map(lambda order: order[:8]))
    places = sharing_places(kb, ranked)
    assert sorted(node for place in places for node in place) == sorted(ranked)
    firsts = [ranked.index(place[0]) for place in places]
    assert firsts == sorted(firsts)
    assert all(ranked.index(place[0]) == min(map(ranked.index, place)) for place in places)


def test_a_short_place_goes_on_with_what_follows_it(passages):
    kb, own, other = passages
    told = gone_on(kb, [own[4], own[3]])
    assert told[:2] == [own[4], own[3]]
    assert told[2:] == own[5 : 5 + len(told) - 2]
    assert sum(len(kb.node(node).text) for node in told) >= LONGEST_QUOTE > sum(len(kb.node(n).text) for n in told[:-1])
    assert gone_on(kb, [own[-1]]) == [own[-1]]
    assert gone_on(kb, [other]) == [other]


def test_an_answer_is_not_sure_where_the_question_names_what_no_passage_mentions(tmp_path, capsys):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/bakery.md").write_text(
        "# Bakery\n\nThe Acme bakery was founded by Greta Holm in 1931. It bakes rye bread every morning before six.\n"
    )
    clew.build([tmp_path / "docs"], tmp_path / "bakery.kb")
    base = clew.open(tmp_path / "bakery.kb")
    sure = base.ask("Who founded the Acme bakery?")
    doubtful = base.ask("Who founded the Acme bakery of Toronto?")
    assert sure.certainty > 0.6 > doubtful.certainty
    assert "not sure" not in sure.text
    assert doubtful.state == "maybe"
    assert doubtful.text.startswith(WORDINGS["maybe"].headline)
    assert doubtful.text.endswith("None of them mentions Toronto.")
    show_answer(doubtful, 1)
    assert "59% sure" in capsys.readouterr().out
