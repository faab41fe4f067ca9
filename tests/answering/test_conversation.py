"""Questions that lean on those before them, over a small world; read by the learned reader, without a model."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew
from clew.answering.queries.corrections import Corrections
from clew.answering.reading.follow_ups import asks_for_reasons, pointing, switched, untied
from clew.models.scripted import ScriptedModel

COUNTRIES = {
    "Peru": (33, ["Brazil", "Chile", "Bolivia", "Ecuador"], ["Spanish", "Quechua"], "Lima"),
    "Brazil": (216, ["Peru", "Bolivia", "Argentina"], ["Portuguese"], "Brasília"),
    "Chile": (19, ["Peru", "Bolivia", "Argentina"], ["Spanish"], "Santiago"),
    "Bolivia": (12, ["Peru", "Brazil", "Chile", "Argentina"], ["Spanish", "Quechua"], "Sucre"),
    "Ecuador": (18, ["Peru"], ["Spanish"], "Quito"),
    "Argentina": (46, ["Brazil", "Chile", "Bolivia"], ["Spanish"], "Buenos Aires"),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    nodes = [
        {"id": f"c:{name}", "type": "country", "name": name, "population_millions": people}
        for name, (people, *_) in COUNTRIES.items()
    ]
    languages = sorted({language for row in COUNTRIES.values() for language in row[2]})
    nodes += [{"id": f"l:{name}", "type": "language", "name": name} for name in languages]
    nodes += [{"id": f"t:{row[3]}", "type": "city", "name": row[3]} for row in COUNTRIES.values()]
    edges = []
    for name, (_, neighbours, spoken, capital) in COUNTRIES.items():
        edges += [f"c:{name}\tborders\tc:{other}" for other in neighbours]
        edges += [f"c:{name}\tofficial_language\tl:{one}" for one in spoken]
        edges += [f"t:{capital}\tcapital_of\tc:{name}"]
    (folder / "nodes.jsonl").write_text("\n".join(map(json.dumps, nodes)), "utf-8")
    (folder / "edges.tsv").write_text("head\trelation\ttail\n" + "\n".join(edges), "utf-8")
    clew.build([folder / "nodes.jsonl", folder / "edges.tsv"], folder / "world.kb")
    return folder / "world.kb"


@pytest.fixture(scope="module")
def base(world) -> clew.Base:
    return clew.open(world)


def names(answer) -> set[str]:
    return {candidate.node.name for candidate in answer.matches}


def test_a_part_of_what_was_found_is_asked_for(base):
    conversation = base.conversation()
    assert names(conversation.ask("Which countries border Peru?")) == {"Brazil", "Chile", "Bolivia", "Ecuador"}
    assert names(conversation.ask("Which of them have Quechua as official language?")) == {"Bolivia"}
    answer = conversation.ask("which of those have a population over 18 million?")
    assert names(answer) == {"Brazil", "Chile"}  # "those" are several: what matched before the one
    assert "among" in answer.query["text"]


@pytest.mark.parametrize(
    "said", ["\udcff\udcfe", "\ud800 what about Chile?", "and \udc80?", "which of them\x00?", "\u202ewhy?"]
)
def test_what_is_no_text_is_made_text_in_every_turn(base, said):
    conversation = base.conversation()
    conversation.ask("Which countries border Peru?")
    answer = conversation.ask(said)
    assert answer.to_dict()["question"].encode()


def test_what_was_found_is_sorted_and_counted(base):
    conversation = base.conversation()
    conversation.ask("Which countries border Peru?")
    answer = conversation.ask("sorted by population")
    assert [(node.name, people) for node, people in answer.rows] == [
        ("Bolivia", 12), ("Ecuador", 18), ("Chile", 19), ("Brazil", 216)
    ]  # fmt: skip
    answer = conversation.ask("and order them by population, largest first")
    assert [node.name for node, _ in answer.rows] == ["Brazil", "Chile", "Ecuador", "Bolivia"]
    assert conversation.ask("how many of these?").value == 4
    assert conversation.turns[-1].answer.query["text"] in (
        "the number of countries that border Peru",
        "the number of countries that Peru borders",
    )


def test_what_queries_found_is_sorted_and_asked_about(base):
    conversation = base.conversation("query")
    bordering = 'find x where (x: country) -[borders]-> "Peru": country'
    conversation.ask(f'({bordering}) union (find x where (x: country) and x.name = "Argentina")')
    answer = conversation.ask("sort them by name in descending order")
    assert [one.node.name for one in answer.matches] == ["Ecuador", "Chile", "Brazil", "Bolivia", "Argentina"]
    capitals = {"Quito", "Santiago", "Brasília", "Sucre", "Buenos Aires"}
    assert names(conversation.ask("and their capitals?")) == capitals


def test_the_first_of_an_order_stay_the_same_when_they_are_sorted_otherwise(base):
    conversation = base.conversation()
    answer = conversation.ask("the three largest countries")
    assert [one.node.name for one in answer.matches] == ["Brazil", "Argentina", "Peru"]
    answer = conversation.ask("sorted by name")
    assert [one.node.name for one in answer.matches] == ["Argentina", "Brazil", "Peru"]
    assert conversation.ask("the average population of these").value == pytest.approx((216 + 46 + 33) / 3)


def test_how_many_of_them_is_counted_among_what_was_found(base):
    conversation = base.conversation()
    conversation.ask("Which countries border Peru?")
    assert conversation.ask("how many of these have more than 18 million people?").value == 2


def test_the_same_is_asked_about_something_else(base):
    conversation = base.conversation()
    conversation.ask("Which countries border Peru?")
    assert names(conversation.ask("what about Ecuador?")) == {"Peru"}
    assert names(conversation.ask("ok, and Argentina?")) == {"Brazil", "Chile", "Bolivia"}


def test_words_that_point_back_are_names(base):
    conversation = base.conversation()
    assert names(conversation.ask("What is the capital of Chile?")) == {"Santiago"}
    assert names(conversation.ask("Which countries does that country border?")) == {"Peru", "Bolivia", "Argentina"}


def test_names_and_types_of_a_follow_up_can_be_corrected(base):
    conversation = base.conversation()
    conversation.ask("Which countries border Peru?")
    languages = conversation.corrected({}, Corrections(type="language")).ask("What about Chile?")
    assert {candidate.node.type for candidate in languages.matches} == {"language"}
    conversation.ask("Which countries border Peru?")
    corrected = conversation.corrected({"Quechua": ["l:Spanish"]}, Corrections())
    answer = corrected.ask("Which of them have Quechua as official language?")
    assert names(answer) == {"Chile", "Bolivia", "Ecuador"}
    assert names(conversation.ask("Which of those have Quechua as official language?")) == {"Bolivia"}


def test_reasons_are_those_of_the_last_answer(base):
    conversation = base.conversation()
    first = conversation.ask("Which countries border Ecuador?")
    why = conversation.ask("how do you know?")
    assert why.candidates == first.candidates
    assert "borders" in (why.text or "")


def test_a_complete_question_stands_alone(base):
    conversation = base.conversation()
    conversation.ask("Which countries border Peru?")
    answer = conversation.ask("What is the capital of Argentina?")
    assert names(answer) == {"Buenos Aires"}
    assert names(answer) == names(base.ask("What is the capital of Argentina?"))


def test_what_cannot_be_told_is_refused(base):
    conversation = base.conversation()
    conversation.ask("Which countries border Peru?")
    answer = conversation.ask("which of them taste best with garlic?")
    assert not answer.found
    assert (answer.text or "").startswith("I did not find this")


def test_a_model_rewrites_what_cannot_be_read(world):
    model = ScriptedModel.saying(json.dumps({"question": "Which countries border Argentina?"}))
    conversation = clew.open(world, model=model).conversation("focus_plus", parser="reader", reranker="none")
    conversation.ask("Which countries border Peru?")
    answer = conversation.ask("now what of the place where tango comes from, are they next to it?")
    assert names(answer) == {"Brazil", "Chile", "Bolivia"}
    assert "asked as: Which countries border Argentina?" in answer.notes


def test_a_reply_that_is_no_question_is_said_and_the_question_is_asked_as_it_stands(world):
    model = ScriptedModel.saying("I cannot do that", "no", "no")
    conversation = clew.open(world, model=model).conversation("focus_plus", parser="reader", reranker="none")
    conversation.ask("Which countries border Peru?")
    answer = conversation.ask("which of them taste best with garlic?")
    assert any(fallback.step == "rewrite" for fallback in answer.fallbacks)


def test_the_command_reads_questions_line_by_line_and_forgets_on_request(world):
    lines = [
        "Which countries border Peru?",
        "which of them have Quechua as official language?",
        "/new",
        "who are they?",
    ]
    command = [sys.executable, "-m", "clew", "chat", str(world), "--json"]
    done = subprocess.run(command, input="\n".join([*lines, "/quit", "x"]), capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["matches"] for answer in answers[:2]] == [4, 1]
    assert len(answers) == 3
    assert not answers[2]["found"]


@pytest.mark.parametrize(
    "question", ["why?", "Why is that?", "how do you know that", "are you sure?", "where do you get that from?"]
)
def test_questions_for_reasons_are_known(question):
    assert asks_for_reasons(question)


@pytest.mark.parametrize("question", ["Why did Rome fall?", "Where is it from Peru?", "How do you know Peter?"])
def test_other_questions_are_no_questions_for_reasons(question):
    assert not asks_for_reasons(question)


@pytest.mark.parametrize(
    ("question", "text", "is_part"),
    [
        ("which of them are islands", "of them", True),
        ("only the ones with a coast", "the ones", True),
        ("the longest one?", "one", True),
        ("where was she born?", "she", False),
        ("who directed that film?", "that film", False),
        ("who else lives there?", "there", False),
    ],
)
def test_words_that_point_back_are_found(question, text, is_part):
    found = pointing(question, ["film", "country"])
    assert found is not None
    assert (found.text, found.is_part) == (text, is_part)


@pytest.mark.parametrize(
    "question",
    [
        "Are there countries with more than one language?",
        "countries that border Peru",
        "Is there a film that lasts longer?",
    ],
)
def test_a_complete_question_points_nowhere(question):
    assert pointing(question, ["film", "country"]) is None


def test_openings_are_taken_off():
    assert switched("what about Peru?") == "Peru"
    assert switched("the same for Chile, please") == "Chile, please"
    assert switched("what about?") is None
    assert untied("ok, and in Denmark?") == "in Denmark?"
    assert untied("and?") == "and?"


@given(st.text(max_size=80))
def test_any_text_can_be_looked_at(text):
    asks_for_reasons(text)
    switched(text)
    assert untied(text).strip() or not text.strip()
    found = pointing(text, ["film"])
    assert found is None or text[found.start : found.end] == found.text


@pytest.fixture(scope="module")
def sites(tmp_path_factory) -> clew.Base:
    folder = tmp_path_factory.mktemp("sites")
    table = (
        "| Site | Employees | Energy use (MWh) |\n| --- | --- | --- |\n| Bergen | 210 | 340 |\n| Lyon | 95 | 120 |\n"
    )
    (folder / "staff.md").write_text(f"# Staff\n\nThe sites of the company.\n\n{table}", "utf-8")
    clew.build([folder], folder / "sites.kb")
    return clew.open(folder / "sites.kb")


@pytest.mark.parametrize("question", ["and Lyon?", "and of the second one?", "what about Lyon?"])
def test_a_question_about_a_table_moves_to_another_row(sites, question):
    conversation = sites.conversation()
    assert conversation.ask("How many employees does Bergen have?").value == 210
    assert conversation.ask(question).value == 95


def test_a_value_of_a_table_has_the_unit_of_its_header(sites):
    answer = sites.ask("What is the energy use of Lyon?")
    assert (answer.value, answer.text) == (120, "120 MWh")


def test_earlier_questions_over_documents_do_not_nest(sites):
    conversation = sites.conversation()
    for question in ("Which company owns the sites?", "and where is it?", "and who leads it?"):
        conversation.ask(question)
    assert conversation.turns[-1].asked.count("(") <= 1
