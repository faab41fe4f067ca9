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
EMPTY = {
    "answerable": True,
    "asks": "list",
    "answer": "?x",
    "variables": [],
    "triplets": [],
    "absent": [],
    "any_of": [],
}
EMPTY |= {"conditions": [], "among": [], "attribute": "", "best": None, "text": ""}
BRIDGE = [{"name": "?x", "type": "bridge"}]
OVER_THAMES = [{"head": "?x", "relation": "crosses", "tail": "Thames"}]
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
    query = EMPTY | {"variables": BRIDGE, "triplets": OVER_THAMES}
    answer, _ = asked(folder, ODD, query, SAYS)
    assert names(answer) == {"Tower Bridge", "London Bridge"}
    assert answer.text == "Tower Bridge and London Bridge cross the Thames. [1]"
    assert "2 in number" in answer.evidence[0].in_words()


def test_no_more_than_four_calls_are_made(folder):
    query = EMPTY | {"variables": BRIDGE, "triplets": OVER_THAMES}
    _, model = asked(folder, ODD, query, SAYS)
    assert len(model.asked) <= 4


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ({"asks": "count", "variables": BRIDGE, "triplets": OVER_THAMES}, 2),
        ({"asks": "yes_no", "variables": BRIDGE, "triplets": OVER_THAMES, "among": ["Chain Bridge"]}, False),
        ({"asks": "value", "variables": BRIDGE, "among": ["Chain Bridge"], "attribute": "length_m"}, 375),
        (
            {
                "asks": "yes_no",
                "variables": BRIDGE,
                "among": ["Tower Bridge", "London Bridge"],
                "best": {"most": True, "attribute": "length_m", "relation": ""},
            },
            False,
        ),
    ],
)
def test_queries_for_values_of_every_form_are_carried_out(folder, change, value):
    answer, _ = asked(folder, ODD, EMPTY | change)
    assert answer.value == value


def test_a_superlative_and_either_or_are_carried_out(folder):
    best = {"most": False, "attribute": "length_m", "relation": ""}
    either = [OVER_THAMES, [{"head": "?x", "relation": "crosses", "tail": "Danube"}]]
    shortest = SAYS | {"sentences": [{"text": "Tower Bridge is the shortest.", "passages": [2]}]}
    answer, _ = asked(folder, ODD, EMPTY | {"variables": BRIDGE, "best": best}, shortest)
    assert names(answer) == {"Tower Bridge"}
    answer, _ = asked(folder, ODD, EMPTY | {"variables": BRIDGE, "any_of": either}, SAYS)
    assert names(answer) == {"Tower Bridge", "London Bridge", "Chain Bridge"}


def test_what_the_model_says_cannot_be_answered_is_refused_where_the_reader_is_not_sure(folder):
    answer, _ = asked(folder, "Who paid for it all, in gold or in silver?", EMPTY | {"answerable": False})
    assert not answer.found


def test_what_the_model_does_not_find_in_the_evidence_is_only_near(folder):
    query = EMPTY | {"variables": BRIDGE, "triplets": OVER_THAMES}
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
