"""Names that the base does not have are reported and nothing is answered; misspelled and short ones are linked."""

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

import clew
from clew.answering.queries.linking import ground, unknown_names, with_known_names
from clew.answering.reading.encoders import Encoders, ReadQuestion
from clew.answering.reading.meaning import (
    NameWords,
    SchemaTerms,
    Understanding,
    Word,
    are_like,
    unknown_spans,
    windows,
)
from clew.answering.reading.mentions import find_named
from clew.answering.reading.reader import assignments
from clew.core.query import Named
from clew.core.roles import Parse
from conftest import asked

NODES = [
    {"id": "m1", "name": "re", "type": "Module", "lines": 900},
    {"id": "m2", "name": "textwrap", "type": "Module", "lines": 500},
    {"id": "m3", "name": "tokenize", "type": "Module", "lines": 700},
    {"id": "m4", "name": "asyncio", "type": "Module", "lines": 9000},
    {"id": "p1", "name": "Konstanze Meyerhoff", "type": "Person"},
    {"id": "p2", "name": "Ørjan Lindqvist", "type": "Person"},
    {"id": "d1", "name": "Aurora", "type": "Project"},
    {"id": "c1", "name": "Aurora", "type": "City"},
    {"id": "c2", "name": "Aurora", "type": "City"},
]
EDGES = [
    ("m2", "imports", "m1"),
    ("m3", "imports", "m1"),
    ("m3", "imports", "m4"),
    ("m1", "maintained_by", "p1"),
    ("m4", "maintained_by", "p2"),
    ("p1", "lives_in", "c1"),
    ("p2", "lives_in", "c2"),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    (folder / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in NODES))
    (folder / "edges.tsv").write_text("source\trelation\ttarget\n" + "".join("\t".join(edge) + "\n" for edge in EDGES))
    clew.build([folder / "nodes.jsonl", folder / "edges.tsv"], folder / "modules.kb")
    return clew.open(folder / "modules.kb")


def test_a_name_that_the_base_has_is_not_called_unknown(data, tmp_path):
    with tarfile.open(data / "wikitablequestions" / "tables.tar.xz") as archive:
        archive.extract("203-548.csv", tmp_path, filter="data")
    clew.build([tmp_path / "203-548.csv"], tmp_path / "medals.kb")
    answer = clew.open(tmp_path / "medals.kb").ask(
        "what was the total number of gold awards won between spain and egypt?"
    )
    assert not answer.unknown


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("Who lives in the city Aurora?", ["City", "Project"]),
        ("Who lives in Aurora city?", ["City", "Project"]),
        ("Who works on the project Aurora?", ["Project", "City"]),
        ("Who lives in Aurora?", ["City", "Project"]),
    ],
)
def test_the_type_beside_a_name_tells_which_is_meant(base, question, kinds):
    _, (named,) = find_named(question, base.tools.kb, base.tools.names)
    assert [sense.type for sense in named.senses] == kinds


def test_the_type_before_of_adds_a_name_in_other_capitals(tmp_path):
    (tmp_path / "provinces.csv").write_text("code,name\n51,BALI\n52,LOMBOK\n")
    (tmp_path / "villages.csv").write_text("code,province_code,name\n1,51,Ubud\n2,52,Bali\n3,52,Mas\n")
    clew.build(tmp_path, tmp_path / "places.kb")
    base = clew.open(tmp_path / "places.kb")
    for question, kinds in {"the province of Bali": ["village", "province"], "Bali": ["village"]}.items():
        _, (named,) = find_named(f"Which people live in {question}?", base.tools.kb, base.tools.names)
        assert [sense.type for sense in named.senses] == kinds


def test_a_name_may_also_be_a_value_of_an_attribute(base):
    _, named = find_named("Who works on Aurora?", base.tools.kb, base.tools.names)
    assert all(taken for taken, _ in assignments(named))
    assert [] in [taken for taken, _ in assignments(named, {"aurora"})]
    number = replace(named[0], text="366")
    assert [] in [taken for taken, _ in assignments([number])]


def test_words_of_the_schema_in_another_number_and_words_for_amounts_are_no_names():
    assert are_like("regencies", ["regency"])
    assert not are_like("agencies", ["regency"])
    words = tuple(Word(start, start + len(one), one, 1.0) for one, start in (("much", 4), ("oboe", 18)))
    known = Understanding("How much does the oboe cost?", (), words=words)
    assert unknown_spans(known, ()) == [(18, 22)]


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Which modules import florbatosis?", "florbatosis"),
        ("Who maintains Quorvex?", "Quorvex"),
        ("Which modules are maintained by Brunhilde Ostrander?", "Brunhilde Ostrander"),
        ("How many modules import [florbatosis]?", "florbatosis"),
    ],
)
def test_a_name_that_the_base_does_not_have_is_reported(base, question, name):
    answer = base.ask(question)
    assert [one.text for one in answer.unknown] == [name]
    assert not answer.found
    assert not answer.matches
    assert name in answer.text
    assert [one["text"] for one in answer.to_dict()["unknown"]] == [name]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who maintains asyncoi?", {"Ørjan Lindqvist"}),
        ("Which modules are maintained by Meyerhof Konstanze?", {"re"}),
        ("Which modules are maintained by Orjan Lindqvist?", {"asyncio"}),
        ("which modules are maintained by lindqvist", {"asyncio"}),
    ],
)
def test_misspelled_and_shortened_names_are_answered(base, question, names):
    answer = base.ask(question)
    assert not answer.unknown
    assert {one.node.name for one in answer.matches} == names


def test_a_short_name_that_a_node_bears_is_linked(base):
    answer = base.ask("How many modules import re?")
    assert not answer.unknown
    assert answer.value == 2


def living_in(name, kind=None):
    return asked(f'find x where (x: Person) -[lives_in]-> "{name}"{f": {kind}" if kind else ""}')


def test_constants_of_a_query_that_stand_for_nothing_are_unknown(base):
    names = base.tools.names
    assert [one.text for one in unknown_names(ground([Named("Florbatosis", "City")], names))] == ["Florbatosis"]
    assert not unknown_names(ground([Named("Aurorra", "City")], names))
    parse = with_known_names(Parse(living_in("Aurora", "City"), (living_in("Florbatosis"),)), names)
    assert not parse.unknown
    assert not parse.alternatives


def test_a_stated_type_is_respected_and_all_nodes_of_a_name_are_tried(base):
    kb, names = base.tools.kb, base.tools.names
    for text in ("Aurora", "Aurorra"):
        (city,) = ground([Named(text, "City")], names).values()
        assert {ref.key for ref in kb.refs(city.nodes.array)} == {"c1", "c2"}
    (project,) = ground([Named("Aurora", "Project")], names).values()
    assert {ref.key for ref in kb.refs(project.nodes.array)} == {"d1"}
    (other,) = ground([Named("Aurora", "Module")], names).values()
    assert len(other.nodes) == 3


def test_only_the_method_of_the_paper_takes_the_nearest_vector(base):
    names = base.tools.names
    (default,) = ground([Named("Florbatosis")], names).values()
    (paper,) = ground([Named("Florbatosis")], names, unmatched="vector").values()
    assert not default.links
    assert [link.how for link in paper.links] == ["vector"]


def read(text, *likely):
    found, start = [], 0
    for word, value in zip(text.split(), likely, strict=True):
        found.append(Word(start, start + len(word), word.lower(), value))
        start += len(word) + 1
    return Understanding(text, words=tuple(found))


def test_neighbouring_words_form_one_name_and_joined_ones_two():
    text = "who met Guild of Eloy and Xerxis"
    spans = unknown_spans(read(text, 0, 0, 0.9, 0, 0.3, 0, 0.8), ())
    assert [text[start:end] for start, end in spans] == ["Guild of Eloy", "Xerxis"]


def test_misspelled_words_of_the_schema_are_no_names():
    text = "most strikouts"
    assert unknown_spans(read(text, 0, 0.9), ("strikeouts",)) == []


def test_a_word_is_less_likely_a_name_if_a_certain_reading_leaves_it_out():
    encoders = Encoders()
    _, (asked,) = encoders.read_options(["owners of trombones"], ["person"], [-1.0], [(0.0, 0.0)], 200)
    layer, terms = NameWords.open(encoders.folder), SchemaTerms(frozenset({"person", "owner"}), encoders)
    sure, unsure = (layer.words(asked.text, (), asked, "person", terms, certainty) for certainty in (0.9, 0.1))
    assert [word.text for word in sure] == ["owners", "of", "trombones"]
    assert all(one.likely < other.likely for one, other in zip(sure, unsure, strict=True))
    assert unsure[2].likely > unsure[0].likely


def test_a_name_is_looked_for_around_its_likeliest_word(base):
    text = "Who maintains asyncio pro today?"
    known = read(text.strip("?"), 0, 0, 0, 0.9, 0)
    spans = windows(text, 22, 25, base.tools.names.mentions(text), known.words)
    assert [text[a:b] for a, b in spans[:2]] == ["pro", "pro today"]
    assert (14, 25) in spans
    assert all(a <= 22 and b >= 25 for a, b in spans)


def test_a_question_is_read_token_by_token():
    told, read = Encoders().read_options(["who made A ( thing )"], ["A ← made ← person"], [-1.0], [(0.0, 0.0)], 200)
    assert len(told) == 2
    assert isinstance(read[0], ReadQuestion)
    assert len(read[0].offsets) == len(read[0].states)


def test_the_command_line_names_what_it_does_not_know(run, tmp_path):
    table = Path(__file__).parents[3] / "benchmarks" / "data" / "tables" / "msleep.csv"
    assert run("build", table, "-o", tmp_path / "sleep.kb")[0] == 0
    _, shown, _ = run("ask", tmp_path / "sleep.kb", "What is the order of the Florbadeer?", "--json")
    answer = json.loads(shown)
    assert [one["text"] for one in answer["unknown"]] == ["Florbadeer"]
    assert not answer["found"]
    _, shown, _ = run("ask", tmp_path / "sleep.kb", "What is the order of the Chetah?", "--json")
    answer = json.loads(shown)
    assert not answer["unknown"]
    assert "Carnivora" in json.dumps(answer)
    _, shown, _ = run("ask", tmp_path / "sleep.kb", "What is the order of the Florbadeer?")
    assert "Florbadeer" in shown
