"""Candidates of every source are reranked by what connects them with the question."""

import json

import pytest

from clew.answering.methods import catalog
from clew.answering.methods.subgraph_reranking.candidates import nearby, question_entities, question_kind
from clew.core.errors import InputError, NotFoundError, SourceError
from clew.models.scripted import ScriptedModel
from clew.models.wrappers import Traced
from clew.store.building import build
from clew.store.open_base import OpenBase
from conftest import tables

QUESTION = "Which phenotype does Bardet-Biedl syndrome have?"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return build(tables(), tmp_path_factory.mktemp("base") / "tiny.kb").folder


@pytest.fixture
def tools(base):
    return OpenBase.open(base, embedder="hash")


def names(answer):
    return [candidate.node.name for candidate in answer.candidates]


def test_the_default_proposes_what_is_near_and_shows_the_path(tools):
    answer = catalog.ask(catalog.create("subgraph_reranking"), QUESTION, tools)
    assert set(names(answer)[:2]) == {"Polydactyly", "Rod-cone dystrophy"}
    path, judgement = answer.candidates[0].evidence
    assert path.in_words().startswith("Bardet-Biedl syndrome —has_phenotype→")
    assert judgement.by == "match"
    assert judgement.score == answer.candidates[0].score


@pytest.mark.parametrize("source", ["bm25", "vector_search", "hybrid"])
def test_another_methods_candidates_are_reranked_and_none_is_lost(tools, source):
    options = {"source": source, "candidates": "5"}
    before = catalog.ask(catalog.create(source, {"k": "10"}), QUESTION, tools)
    after = catalog.ask(catalog.create("subgraph_reranking", options), QUESTION, tools)
    wanted = [name for name in names(before) if name != "Bardet-Biedl syndrome"][:5]
    assert sorted(names(after)) == sorted(wanted)
    unchanged = catalog.ask(catalog.create("subgraph_reranking", {**options, "ranker": "none"}), QUESTION, tools)
    assert names(unchanged) == wanted


@pytest.mark.parametrize("source", ["four_step_focus", "think_on_graph", "tournament_on_path"])
def test_methods_that_search_the_graph_are_sources_too(tools, source):
    answer = catalog.ask(catalog.create("subgraph_reranking", {"source": source}), QUESTION, tools)
    assert "Bardet-Biedl syndrome" not in names(answer)


def test_answers_of_a_model_are_linked_by_name_and_strangers_are_noted(base):
    model = ScriptedModel.saying('{"answers": ["rod-cone dystrophy", "a fine day", "Polydactyly", "polydactyly"]}')
    tools = OpenBase.open(base, model=Traced(model), embedder="hash")
    answer = catalog.ask(catalog.create("subgraph_reranking", {"source": "model", "ranker": "none"}), QUESTION, tools)
    assert names(answer) == ["Rod-cone dystrophy", "Polydactyly"]
    assert answer.notes == ("no node is called a fine day",)
    assert answer.model == "scripted"
    with pytest.raises(InputError, match="--model"):
        catalog.ask(catalog.create("subgraph_reranking", {"source": "model"}), QUESTION, OpenBase.open(base))


@pytest.mark.parametrize(
    ("question", "said", "value"),
    [
        ("Is Marfan syndrome a ciliopathy?", ["No, it is not", "Yes"], False),
        ("How many phenotypes does Marfan syndrome have?", ["about 1,200"], 1200),
        ("How many phenotypes does Marfan syndrome have?", ["between 3 and 4", "3.5"], 3.5),
    ],
)
def test_yes_no_and_numbers_are_told_apart_and_not_ranked(base, question, said, value):
    model = ScriptedModel.saying(json.dumps({"answers": said}))
    tools = OpenBase.open(base, model=Traced(model), embedder="hash")
    answer = catalog.ask(catalog.create("subgraph_reranking", {"source": "model"}), question, tools)
    assert answer.value == value
    assert type(answer.value) is type(value)
    assert not answer.candidates
    assert "by the model alone" in answer.notes[0]


def test_the_kind_of_a_question_is_told_by_its_words():
    kinds = {"Is Paris in France?": "yes/no", "How many moons has Mars?": "count", "Who wrote Faust?": "entity"}
    assert {question: question_kind(question) for question in kinds} == kinds


def test_candidates_come_from_a_file_with_its_question_entities(base, tools, tmp_path):
    file = tmp_path / "candidates.jsonl"
    line = {"id": "1", "question": QUESTION, "question_entities": ["BBS2"], "candidates": ["P2", "Polydactyly", "P99"]}
    file.write_text(json.dumps(line) + "\n")
    method = catalog.create("subgraph_reranking", {"source": str(file), "ranker": "none"})
    answer = catalog.ask(method, QUESTION, tools)
    assert names(answer) == ["Rod-cone dystrophy", "Polydactyly"]
    assert answer.notes == ("no node is called P99",)
    assert "BBS2 —associated_with→" in answer.candidates[0].evidence[0].in_words()
    with pytest.raises(NotFoundError, match="no line"):
        method.answer("Something else?", tools)
    file.write_text('{"id": "1"}\n')
    with pytest.raises(SourceError, match="line 1"):
        catalog.ask(catalog.create("subgraph_reranking", {"source": str(file)}), QUESTION, OpenBase.open(base))
    with pytest.raises(InputError, match="no source 'elsewhere'"):
        catalog.ask(catalog.create("subgraph_reranking", {"source": "elsewhere"}), QUESTION, tools)


def test_a_question_that_names_nothing_is_told_so_and_keeps_its_candidates(tools):
    answer = catalog.ask(catalog.create("subgraph_reranking", {"source": "bm25"}), "slender digits", tools)
    assert names(answer)
    assert answer.notes == ("the question names no node: nothing connects it with the candidates",)


def test_names_in_brackets_are_the_entities_and_brackets_are_not_part_of_the_question(tools):
    assert question_entities("Which gene causes [MFS] or BBS?", tools.names) == (
        "Which gene causes MFS or BBS?",
        (tools.kb.find("MFS"),),
    )


def test_near_nodes_come_before_far_ones_and_hubs_last(kb):
    ranking = nearby(kb, [kb.find("BBS2")], 10, steps=2)
    assert [ref.key for ref in kb.refs(ranking.nodes)] == ["BBS", "P1", "P2"]
    assert ranking.scores.tolist() == [1, 1, 1]
    assert len(nearby(kb, [], 10)) == 0
    assert [ref.key for ref in kb.refs(nearby(kb, [kb.find("BBS2")], 10, among=kb.nodes("gene")).nodes)] == []
