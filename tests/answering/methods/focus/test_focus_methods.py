"""4StepFocus and its successors on the tiny graph, from question to evidence."""

import pytest

import clew
from clew.answering.methods.answering import RetrievedNode
from clew.answering.methods.catalog import ask, create
from clew.answering.methods.focus.focus_plus import weighed
from clew.answering.queries.interpretations import execute
from clew.answering.roles.rerank import Judged, Listwise, Pairwise, Pointwise, keep_unjudged
from clew.core.errors import InputError
from clew.core.roles import Chosen, Parse
from clew.core.types import Judgement, Path
from clew.models.scripted import ScriptedModel
from clew.store.building import build
from clew.store.open_base import OpenBase
from conftest import EDGES, asked, tables

BOTH = "Which genes are associated with diseases that present with both polydactyly and rod-cone dystrophy?"


@pytest.fixture(scope="module")
def toolbox(tmp_path_factory):
    folder = tmp_path_factory.mktemp("focus") / "tiny.kb"
    build(tables(), folder)
    return OpenBase.open(folder)


def keys(answer):
    return [candidate.node.key for candidate in answer.candidates]


@pytest.mark.parametrize("method", ["four_step_focus", "focus_plus", "auto"])
def test_an_answer_comes_with_its_path_its_query_and_its_groundings(toolbox, method):
    answer = ask(create(method), BOTH, toolbox)
    first = answer.candidates[0]
    assert first.node.key == "BBS2"
    path = next(piece for piece in first.evidence if isinstance(piece, Path))
    assert [(f.head.key, f.relation, f.tail.key) for f in path.facts] == [
        ("BBS2", "associated_with", "BBS"),
        ("BBS", "has_phenotype", "P1"),
        ("BBS", "has_phenotype", "P2"),
    ]
    assert [constant["nodes"][0]["key"] for constant in answer.query["constants"]] == ["P1", "P2"]
    assert {constant["nodes"][0]["how"] for constant in answer.query["constants"]} == {"exact"}
    assert len(answer.matches) == 1
    assert "urn:clew:node:P1" in answer.query["sparql"]
    assert "MATCH" in answer.query["cypher"]


def test_candidates_that_satisfy_the_triplets_stay_above_those_that_fill_up(toolbox):
    answer = ask(create("four_step_focus"), BOTH, toolbox)
    assert keys(answer)[0] == "BBS2"
    assert len(answer.candidates) == len(toolbox.kb)
    assert all(not any(isinstance(p, Path) for p in c.evidence) for c in answer.candidates[1:])


def test_negation_takes_away_and_is_shown(toolbox):
    answer = ask(create("focus_plus"), "Which diseases do not show arachnodactyly?", toolbox)
    assert keys(answer)[0] == "BBS"
    checked = [p for p in answer.candidates[0].evidence if isinstance(p, Judgement) and p.by == "absent"]
    assert "arachnodactyly" in checked[0].reason


def test_the_evidence_leads_up_the_hierarchy_to_what_is_named(toolbox):
    answer = ask(create("focus_plus"), "Which diseases show an abnormal finger?", toolbox)
    assert set(keys(answer)[:2]) == {"BBS", "MFS"}
    path = next(piece for piece in answer.candidates[0].evidence if isinstance(piece, Path))
    assert path.facts[-1].relation == "is_a"


def test_a_question_about_text_alone_is_answered_as_words_and_meaning_answer_it(toolbox):
    question = "Which phenotype means abnormally long and slender fingers?"
    answer = ask(create("focus_plus"), question, toolbox)
    assert answer.query["triplets"] == []
    assert keys(answer)[0] == "P3"


def test_a_question_that_names_nothing_is_answered_by_its_words(toolbox):
    answer = ask(create("focus_plus"), "What is long and slender?", toolbox)
    assert keys(answer)[0] == "P3"


def test_where_a_query_explains_little_of_a_question_satisfying_it_only_adds_to_what_the_text_says():
    by_text = [RetrievedNode(1, 0.9), RetrievedNode(2, 0.5), RetrievedNode(3, 0.1)]
    satisfying = [RetrievedNode(3, 1.0, None, "satisfies"), RetrievedNode(4, 0.8, None, "satisfies")]
    assert [one.node for one in weighed(satisfying, by_text, 0.3)] == [1, 2, 3, 4]
    assert [one.node for one in weighed(satisfying, by_text, 0.85)] == [3, 1, 4, 2]


def test_a_number_is_given_where_one_is_asked_for(toolbox):
    assert ask(create("focus_plus"), "How many phenotypes has Bardet-Biedl syndrome?", toolbox).value == 2


def test_where_the_strict_query_has_no_answer_the_relation_is_given_up_and_that_is_said(toolbox, monkeypatch):
    options = {"edge_types": "prefer", "direction": "strict"}

    class Wrong:
        def parse(self, question, schema):
            return Parse(asked('find x where (x: gene) -[is_a]-> "Marfan syndrome": disease'))

    monkeypatch.setattr("clew.answering.methods.focus.four_step_focus.parser_for", lambda *_: Wrong())
    answer = ask(create("four_step_focus", options), "Which gene?", toolbox)
    assert keys(answer)[0] == "FBN1"
    assert "any relation will do" in answer.query["relaxed"][0]


def test_the_answer_is_the_same_whether_or_not_it_is_traced(toolbox):
    method = create("focus_plus")
    assert method.answer(BOTH, toolbox) == method.answer(BOTH, toolbox)
    assert ask(method, BOTH, toolbox).candidates == method.answer(BOTH, toolbox).candidates


def test_reranking_by_a_model_needs_one(toolbox):
    with pytest.raises(InputError, match="--model"):
        ask(create("focus_plus", {"reranker": "pairwise"}), BOTH, toolbox)
    with pytest.raises(InputError, match="parser=reader"):
        ask(create("focus_plus", {"parser": "model"}), BOTH, toolbox)
    by_likeness = ask(create("llm_reranker", {"reranker": "embedding"}), "Which gene encodes fibrillin?", toolbox)
    assert keys(by_likeness)[0] == "FBN1"


def test_a_model_may_rerank_by_how_likely_it_says_yes_while_the_reader_parses(toolbox):
    model = ScriptedModel(lambda request: "Yes" if "slender" in request.messages[-1].content else "No")
    options = {"parser": "reader", "reranker": "likelihood", "write": False}
    answer = ask(create("focus_plus", options), "Which phenotype is about fingers?", toolbox.with_model(model))
    assert keys(answer)[0] == "P3"
    assert {request.top_logprobs for request in model.asked} == {8}  # scores, and nothing else, were asked for


def test_a_model_reads_only_what_the_reader_is_not_sure_of_unless_it_is_told_to_read_all(toolbox):
    def times_asked(question, **options):
        model = ScriptedModel.saying("nothing of use")
        ask(
            create("focus_plus", {"reranker": "none", "write": "false", **options}), question, toolbox.with_model(model)
        )
        return len(model.asked)

    sure = "Which diseases present with polydactyly?"
    assert times_asked(sure) == 0
    assert times_asked("Which phenotype means abnormally long and slender fingers?") > 0
    assert times_asked(sure, parser="model") > 0


@pytest.mark.parametrize("method", ["bm25", "vector_search", "multi_vector_search", "hybrid"])
def test_every_baseline_finds_a_node_by_its_text(toolbox, method):
    assert keys(ask(create(method), "Abnormally long and slender fingers", toolbox))[0] == "P3"


class Scorer:
    """Scores the last candidate highest and cannot read the second."""

    def score(self, claims):
        return [None if place == 1 else place / len(claims) for place in range(len(claims))]


class Chooser:
    """Prefers the option that sorts last."""

    def choose(self, choices):
        orders = [sorted(range(len(c.options)), key=lambda place, c=c: c.options[place], reverse=True) for c in choices]
        return [Chosen(tuple(order[: c.keep]), sure=0.9) for c, order in zip(choices, orders, strict=True)]


def test_an_unreadable_candidate_keeps_its_place_when_the_others_move(toolbox):
    judged = Pointwise(toolbox.kb, Scorer()).rerank("?", [0, 1, 2, 3])
    assert [one.node for one in judged] == [3, 1, 2, 0]
    assert judged[1] == Judged(1, None)
    assert keep_unjudged([None, 0.2, None, 0.9]) == [0, 3, 2, 1]


def test_lists_and_pairs_agree_with_the_chooser(toolbox):
    nodes = list(range(len(toolbox.kb)))
    wanted = sorted(nodes, key=lambda node: toolbox.kb.text(node), reverse=True)
    listed = Listwise(toolbox.kb, Chooser(), depth=3).rerank("?", nodes)
    assert [one.node for one in listed] == [*sorted(nodes[:3], key=wanted.index), *nodes[3:]]
    duelled = Pairwise(toolbox.kb, Chooser(), depth=len(nodes)).rerank("?", nodes)
    assert [one.node for one in duelled] == wanted


def test_a_name_stands_for_what_lies_below_it_and_that_is_said(tmp_path):
    build(tables(edges=[*EDGES, ("BBS", "has_phenotype", "P4", None)]), tmp_path / "more.kb")
    toolbox = OpenBase.open(tmp_path / "more.kb")
    query = asked('find x where (x: disease) -[has_phenotype]-> "Abnormal finger": phenotype')
    found = execute(toolbox.kb, toolbox.names, query)
    assert [ref.key for ref in toolbox.kb.refs(found.nodes.array)] == ["BBS", "MFS"]
    assert [ref.key for ref in toolbox.kb.refs(found.direct.array)] == ["BBS"]
    assert execute(toolbox.kb, toolbox.names, query, kinds=False).nodes == found.direct


def test_every_view_of_an_answer_has_the_same_set_and_what_is_direct_comes_first(tmp_path):
    build(tables(edges=[*EDGES, ("BBS", "has_phenotype", "P4", None)]), tmp_path / "more.kb")
    base = clew.open(tmp_path / "more.kb")
    answer = base.ask("Which diseases have Abnormal finger?")
    assert [one.node.key for one in answer.matches] == ["BBS", "MFS"]
    told = answer.to_dict()
    assert [one["key"] for one in told["answers"] if one["group"] == "match"] == ["BBS", "MFS"]
    assert told["matches"] == 2
    assert "1 directly" in (answer.text or "")
    assert base.ask("How many diseases have Abnormal finger?").value == 2
    narrow = base.ask("Which diseases have Abnormal finger?", "focus_plus", kinds=False)
    assert [one.node.key for one in narrow.matches] == ["BBS"]


def test_what_follows_from_a_hierarchy_comes_after_its_own_edges(tmp_path):
    build(tables(edges=[*EDGES, ("P4", "is_a", "P2", None)]), tmp_path / "deep.kb")
    toolbox = OpenBase.open(tmp_path / "deep.kb")
    kinds = asked('find x where (x: phenotype) -[is_a]-> "Rod-cone dystrophy": phenotype')
    found = execute(toolbox.kb, toolbox.names, kinds)
    assert [ref.key for ref in toolbox.kb.refs(found.direct.array)] == ["P4"]
    assert len(found.nodes) > 1
