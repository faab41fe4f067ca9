"""A question read by the learned reader and by a model: what each finds decides; the model writes from the evidence."""

import json

import pytest

import clew
from clew.models.scripted import ScriptedModel

NODES = [
    {"id": "b1", "name": "Tower Bridge", "type": "bridge", "length_m": 244, "text": "A bascule bridge in London."},
    {"id": "b2", "name": "London Bridge", "type": "bridge", "length_m": 269, "text": "A plain bridge of concrete."},
    {"id": "b3", "name": "Chain Bridge", "type": "bridge", "length_m": 375, "text": "Two stone lions guard each end."},
    {"id": "r1", "name": "Thames", "type": "river"},
    {"id": "r2", "name": "Danube", "type": "river"},
]
EDGES = [("b1", "crosses", "r1"), ("b2", "crosses", "r1"), ("b3", "crosses", "r2")]
EMPTY = {"thinking": "", "answerable": True, "query": "", "yes_no": False, "text": ""}
OVER_THAMES = EMPTY | {"query": 'find x where (x: bridge) -[crosses]-> "Thames": river'}
ODD = "What goes from bank to bank where London has its water?"
"""Nothing that the reader is certain of."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("bridges")
    (place / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in NODES))
    (place / "edges.tsv").write_text("source\trelation\ttarget\n" + "".join("\t".join(edge) + "\n" for edge in EDGES))
    clew.build([place / "nodes.jsonl", place / "edges.tsv"], place / "bridges.kb")
    return place / "bridges.kb"


def asked(folder, question, query, written=None):
    """The answer of a model that replies with a query, then with sentences."""
    model = ScriptedModel(
        lambda request: json.dumps(
            query
            if "translate questions" in request.messages[0].content
            else written or {"sentences": [], "found": False}
        )
    )
    answer = clew.open(folder, model=model).ask(question, "focus_plus")
    return answer, model


def names(answer):
    return {candidate.node.name for candidate in answer.matches}


SAYS = {"thinking": "", "sentences": [{"text": "Tower Bridge and London Bridge cross the Thames.", "passages": [1]}]}
SAYS |= {"found": True, "missing": ""}


def test_the_models_query_stands_where_the_reader_is_not_certain(folder):
    query = OVER_THAMES
    answer, _ = asked(folder, ODD, query, SAYS)
    assert names(answer) == {"Tower Bridge", "London Bridge"}
    assert answer.text == "Tower Bridge and London Bridge cross the Thames. [1]"
    assert "2 in number" in answer.evidence[0].in_words()


def test_no_more_than_four_calls_are_made(folder):
    query = OVER_THAMES
    _, model = asked(folder, ODD, query, SAYS)
    assert len(model.asked) <= 4


IS_CHAIN = 'x is "Chain Bridge": bridge'


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ({"query": 'find count(distinct x) where (x: bridge) -[crosses]-> "Thames": river'}, 2),
        ({"query": OVER_THAMES["query"] + f" and {IS_CHAIN}", "yes_no": True}, False),
        ({"query": f"find x.length_m where (x: bridge) and {IS_CHAIN}"}, 375),
        ({"query": "find avg(x.length_m) where (x: bridge) and x.length_m < 300"}, 256.5),
    ],
)
def test_queries_for_values_of_every_form_are_carried_out(folder, change, value):
    answer, _ = asked(folder, ODD, EMPTY | change)
    assert answer.value == value


def test_a_superlative_and_either_or_are_carried_out(folder):
    shortest = SAYS | {"sentences": [{"text": "Tower Bridge is the shortest.", "passages": [2]}]}
    query = "find x where (x: bridge) order by x.length_m first 1 with ties"
    answer, _ = asked(folder, ODD, EMPTY | {"query": query}, shortest)
    assert names(answer) == {"Tower Bridge"}
    either = " or ".join(f'exists {{(x) -[crosses]-> "{river}": river}}' for river in ("Thames", "Danube"))
    answer, _ = asked(folder, ODD, EMPTY | {"query": f"find x where (x: bridge) and ({either})"}, SAYS)
    assert names(answer) == {"Tower Bridge", "London Bridge", "Chain Bridge"}


def test_rows_of_several_columns_are_the_answer(folder):
    query = "find r, count(distinct b) as bridges where (b: bridge) -[crosses]-> (r: river) group by r order by r.name"
    answer, _ = asked(folder, ODD, EMPTY | {"query": query})
    assert answer.state == "found"
    assert answer.columns == ("r", "bridges")
    assert [(row[0].name, row[1]) for row in answer.rows] == [("Danube", 1), ("Thames", 2)]
    assert answer.to_dict()["rows"][0][1] == 1
    assert answer.matches[0].evidence


def test_a_query_that_finds_nothing_is_written_once_more(folder):
    replies = iter(['find x where (x: bridge) -[crosses]-> "Tamise": river', OVER_THAMES["query"]])

    def reply(request):
        if "translate questions" not in request.messages[0].content:
            return json.dumps(SAYS)
        return json.dumps(EMPTY | {"query": next(replies)})

    model = ScriptedModel(reply)
    answer = clew.open(folder, model=model).ask(ODD, "focus_plus")
    assert names(answer) == {"Tower Bridge", "London Bridge"}
    assert "Tamise" in model.asked[1].messages[-1].content


def test_a_model_sees_what_a_doubtful_name_was_taken_for_and_may_change_its_query(folder):
    replies = iter(['find x where (x: bridge) -[crosses]-> "Tames": river', ""])

    def reply(request):
        if "translate questions" not in request.messages[0].content:
            return json.dumps(SAYS)
        query = next(replies)
        return json.dumps(EMPTY | {"query": query, "answerable": bool(query)})

    model = ScriptedModel(reply)
    answer = clew.open(folder, model=model).ask(ODD, "focus_plus")
    shown = model.asked[1].messages[-1].content
    assert "“Tames” stands for Thames" in shown
    assert "2 results: Tower Bridge, London Bridge" in shown
    assert answer.state != "found"


def test_a_result_without_doubt_is_not_shown_again(folder):
    _, model = asked(folder, "Of which would a Londoner say that they go over his stream?", OVER_THAMES, SAYS)
    assert len([one for one in model.asked if "translate questions" in one.messages[0].content]) == 1


def test_what_the_model_says_cannot_be_answered_is_refused_where_the_reader_is_not_sure(folder):
    answer, _ = asked(folder, "Who paid for it all, in gold or in silver?", EMPTY | {"answerable": False})
    assert not answer.found


def test_texts_that_have_to_decide_are_read_and_quoted(folder):
    query = OVER_THAMES | {"text": "bascule"}
    says = {"thinking": "", "sentences": [{"text": "Tower Bridge is a bascule bridge.", "passages": [2]}]}
    answer, model = asked(folder, ODD, query, says | {"found": True, "missing": ""})
    [prompt] = [request.messages[-1].content for request in model.asked if "[2] " in request.messages[-1].content]
    assert "A bascule bridge in London." in prompt
    assert "A plain bridge of concrete." in prompt
    assert names(answer) == {"Tower Bridge"}
    assert answer.evidence[0].text == "A bascule bridge in London."


def test_the_match_whose_text_decides_has_its_evidence_however_many_match(tmp_path):
    bridges = [{"id": f"b{n}", "name": f"Bridge {n}", "type": "bridge", "text": "A plain bridge."} for n in range(60)]
    bridges[-1]["text"] = "A bascule bridge."
    rows = [*bridges, {"id": "r1", "name": "Thames", "type": "river"}]
    (tmp_path / "nodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    edges = [f"b{n}\tcrosses\tr1\n" for n in range(60)]
    (tmp_path / "edges.tsv").write_text("source\trelation\ttarget\n" + "".join(edges))
    base = tmp_path / "many.kb"
    clew.build([tmp_path / "nodes.jsonl", tmp_path / "edges.tsv"], base)
    says = {"thinking": "", "sentences": [{"text": "Bridge 59 is a bascule bridge.", "passages": [2]}]}
    answer, _ = asked(base, ODD, OVER_THAMES | {"text": "bascule"}, says | {"found": True, "missing": ""})
    assert names(answer) == {"Bridge 59"}
    assert answer.matches[0].evidence


def test_what_the_model_does_not_find_in_the_evidence_is_only_near(folder):
    query = OVER_THAMES
    answer, _ = asked(folder, ODD, query, {"thinking": "", "sentences": [], "found": False, "missing": "banks"})
    assert not answer.found
    assert answer.near
    assert "banks" in answer.notes[0] or any("banks" in note for note in answer.notes)


def test_a_reply_that_is_of_no_use_leaves_the_question_to_the_reader(folder):
    model = ScriptedModel.saying("no JSON at all")
    answer = clew.open(folder, model=model).ask("Which bridges cross the Thames?", "focus_plus")
    assert names(answer) == {"Tower Bridge", "London Bridge"}


def test_a_small_model_is_not_asked(folder):
    model = ScriptedModel(lambda _: "nothing", name="tiny-1.5b")
    clew.open(folder, model=model).ask(ODD, "focus_plus")
    assert model.asked == []


def test_the_value_that_decides_is_evidence(folder):
    query = EMPTY | {"query": "find x where (x: bridge) order by x.length_m desc first 1"}
    answer, _ = asked(folder, ODD, query, SAYS)
    assert [piece.in_words() for piece in answer.matches[0].evidence] == ["length_m: 375"]
