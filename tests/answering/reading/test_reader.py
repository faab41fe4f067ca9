"""The learned reader, as it ships, over a small base with a schema it never saw: from plain questions to answers."""

import json

import pytest

import clew
from clew.answering.methods.focus.focus_plus import FocusPlus
from clew.answering.methods.role_choice import reader_of
from clew.answering.reading.attribute_values import SaidValues, is_denied
from clew.answering.reading.encoders import Encoders
from clew.answering.reading.mentions import find_named
from clew.answering.reading.parsing import asks_whether
from clew.answering.reading.plan import Plan, Requirement
from clew.answering.reading.quantities import quantities
from clew.answering.reading.vocabulary import Vocabulary
from clew.core.query import Attribute
from clew.core.roles import Parse
from clew.core.schema import NodeType, Schema
from clew.store.index.tokens import tokenise
from conftest import asked

NODES = [
    {"id": "m1", "name": "Glenfoyle", "type": "Distillery", "founded": 1815, "stills": 4, "open_to_visitors": True},
    {"id": "m2", "name": "Ardmorran", "type": "Distillery", "founded": 1898, "stills": 12, "open_to_visitors": False},
    {"id": "m3", "name": "Kilbrae", "type": "Distillery", "founded": 2004, "stills": 2, "open_to_visitors": True},
    {"id": "r1", "name": "Islay", "type": "Region"},
    {"id": "r2", "name": "Speyside", "type": "Region"},
    {"id": "p1", "name": "Morag Sinclair", "type": "Person"},
    {"id": "p2", "name": "Ewan Baird", "type": "Person"},
    {"id": "w1", "name": "Foyle Ten", "type": "Whisky", "strength": 43.0, "cask": "sherry"},
    {"id": "w2", "name": "Storm Cask", "type": "Whisky", "strength": 58.2, "cask": "bourbon"},
    {"id": "w3", "name": "Harbour Dram", "type": "Whisky", "cask": "new oak"},
]
EDGES = [
    ("m1", "located_in", "r1"),
    ("m2", "located_in", "r2"),
    ("m3", "located_in", "r1"),
    ("m1", "founded_by", "p1"),
    ("m2", "founded_by", "p2"),
    ("w1", "distilled_at", "m1"),
    ("w2", "distilled_at", "m2"),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reader")
    (folder / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in NODES))
    (folder / "edges.tsv").write_text("source\trelation\ttarget\n" + "".join("\t".join(edge) + "\n" for edge in EDGES))
    clew.build([folder / "nodes.jsonl", folder / "edges.tsv"], folder / "whisky.kb")
    return clew.open(folder / "whisky.kb")


def put_forward(answer):
    return {candidate.node.name for candidate in answer.answer_set} if answer.found else set()


def test_nothing_is_the_highest_or_lowest_by_what_is_true_or_false(base):
    readings = reader_of(base.tools).read("Which distillery is the most open to visitors?").meanings
    keys = {key.expression for one in readings for key in one.asked.query.order}
    assert keys
    assert "open_to_visitors" not in {key.name for key in keys if isinstance(key, Attribute)}


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Which distilleries are located in Islay?", {"Glenfoyle", "Kilbrae"}),
        ("Who founded Glenfoyle?", {"Morag Sinclair"}),
        ("Where is Ardmorran?", {"Speyside"}),
        ("Which distillery has the most stills?", {"Ardmorran"}),
        ("Which is older, Glenfoyle or Kilbrae?", {"Glenfoyle"}),
        ("distilleries founded after 1850", {"Ardmorran", "Kilbrae"}),
        ("Are there more distilleries in Islay or in Speyside?", {"Islay"}),
        ("Which distilleries were founded neither by Morag Sinclair nor by Ewan Baird?", {"Kilbrae"}),
    ],
)
def test_nodes_are_found_whatever_is_asked(base, question, names):
    answer = base.ask(question)
    assert put_forward(answer) == names
    assert 0 < answer.certainty <= 1


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("When was Glenfoyle founded?", 1815),
        ("How many distilleries are in Islay?", 2),
        ("Is Glenfoyle located in Islay?", True),
        ("Is Glenfoyle located in Speyside?", False),
        ("What is the strength of Storm Cask?", 58.2),
    ],
)
def test_a_value_is_given_where_one_is_asked_for(base, question, value):
    answer = base.ask(question)
    assert answer.value == value
    assert answer.text
    assert answer.to_dict()["value"] == value


def test_the_most_of_something_comes_with_its_number(base):
    answer = base.ask("Are there more distilleries in Islay or in Speyside?")
    assert "Islay" in answer.text
    assert "(2)" in answer.text


def test_the_value_an_answer_rests_on_is_its_evidence(base):
    answer = base.ask("When was Glenfoyle founded?")
    assert any(piece.in_words() == "founded: 1815" for piece in answer.candidates[0].evidence)


def test_what_is_not_read_for_sure_is_not_put_forward(base):
    answer = base.ask("zxcv qwer tyui?")
    assert not answer.found
    assert answer.to_dict()["found"] is False


def test_whatever_is_typed_is_read_as_something_or_nothing(base):
    for question in ("?", "a", "Glenfoyle", "Glenfoyle " * 60, "1815 1898 2004", "[Islay] distilleries", "ÄÖÜ ß 東京"):
        assert base.ask(question).question == question.strip()


def test_a_question_with_its_verb_first_and_no_choice_is_answered_by_yes_or_no():
    assert asks_whether("Is Glenfoyle older than Kilbrae?")
    assert not asks_whether("Is Glenfoyle or Kilbrae older?")
    assert not asks_whether("Which is older?")


def test_a_text_has_one_vector_whatever_it_is_read_with():
    encoders = Encoders()
    alone = encoders.meaning(["who founded § distillery §"])[0]
    assert (encoders.meaning(["another text", "who founded § distillery §"])[1] == alone).all()
    told = encoders.choose(
        ["Who founded A ( distillery ) ?"] * 2,
        ["A → founded by → person", "A → located in → region"],
        [-1.0, -1.0],
        [(0.5, 0.0), (0.0, 0.0)],
        200,
    )
    assert told[1] > told[2]


def test_a_value_that_the_base_does_not_have_is_not_found(base):
    answer = base.ask("What is the strength of Harbour Dram?")
    assert answer.value is None
    assert not answer.found


def test_a_value_is_no_answer_to_a_question_for_yes_or_no(base):
    answer = base.ask("Is Ardmorran founded far from the sea?")
    assert answer.value is None or isinstance(answer.value, bool)


def test_a_number_that_is_no_year_does_not_say_when(base):
    assert base.ask("When was Kilbrae founded?").value == 2004
    assert base.ask("What strength is Storm Cask?").value == 58.2
    assert not base.ask("When was Storm Cask bottled?").found
    assert not base.ask("When can I visit Ardmorran?").found  # that it is not open to visitors, says no time


def test_what_is_denied_of_an_attribute_must_be_false(base):
    assert put_forward(base.ask("Which distilleries are not open to visitors?")) == {"Ardmorran"}
    assert put_forward(base.ask("Which distilleries are open to visitors?")) == {"Glenfoyle", "Kilbrae"}


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Which whiskies have a sherry cask?", {"Foyle Ten"}),
        ("Which whiskies do not have a sherry cask?", {"Storm Cask", "Harbour Dram"}),
        ("Which whiskies have a cask other than sherry?", {"Storm Cask", "Harbour Dram"}),
        ("Which whiskies distilled at Glenfoyle do not have a bourbon cask?", {"Foyle Ten"}),
        ("Which whiskies are not from a bourbon cask?", {"Foyle Ten", "Harbour Dram"}),
    ],
)
def test_a_value_that_is_denied_is_not_what_is_asked_for(base, question, names):
    assert put_forward(base.ask(question)) == names


@pytest.mark.parametrize(
    ("before", "denied"),
    [
        ("which are not", True),
        ("which are not from a", True),
        ("a kind other than", True),
        ("which are", False),
        ("which do not affect children and are", False),
        ("no matter whether they are", False),
        ("", False),
    ],
)
def test_what_a_denial_reaches(before, denied):
    assert is_denied(before.split()) == denied


def test_what_another_reading_finds_is_as_sure_as_that_reading(base):
    first = asked('find x where (x: Whisky) -[located_in]-> "Islay": Region')
    other = asked('find x where (x: Distillery) -[located_in]-> "Islay": Region', score=0.1)
    given = Parse(first, (other,), certainty=0.9)
    parser = type("Given", (), {"parse": lambda *_: given})()
    answer = FocusPlus().answer("?", base.tools.with_parser(parser))
    assert answer.certainty == 0.1
    assert not answer.found


@pytest.mark.parametrize(("women", "men"), [("female", "male"), ("F", "M")])
def test_words_for_people_stand_for_their_values(tmp_path, women, men):
    rows = [("Ada", women, "Leith"), ("Bea", women, "Oban"), ("Cal", men, "Leith"), ("Dan", men, "Oban")]
    nodes = [{"id": name, "name": name, "type": "Person", "gender": gender} for name, gender, _ in rows]
    nodes += [{"id": town, "name": town, "type": "Town"} for town in ("Leith", "Oban")]
    (tmp_path / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in nodes))
    lines = "".join(f"{name}\tborn_in\t{town}\n" for name, _, town in rows)
    (tmp_path / "edges.tsv").write_text(f"source\trelation\ttarget\n{lines}")
    clew.build([tmp_path / "nodes.jsonl", tmp_path / "edges.tsv"], tmp_path / "people.kb")
    base = clew.open(tmp_path / "people.kb")
    assert put_forward(base.ask("Which women were born in Leith?")) == {"Ada"}
    assert put_forward(base.ask("Which men were born in Leith?")) == {"Cal"}


def test_words_for_people_stand_for_nodes_and_codes_in_brackets_say_what_words_mean(tmp_path):
    sports, sexes, countries = ("golf", "judo"), ("female", "male"), ("JAM", "GER")
    rows = "".join(
        f"Player {letter},{sexes[place % 2]},{sports[place % 3 == 0]},{countries[place % 5 == 0]}\n"
        for place, letter in enumerate("ABCDEFGHIJKLMNOPQRST")
    )
    (tmp_path / "players.csv").write_text(f"name,sex,sport,country\n{rows}")
    clew.build([tmp_path / "players.csv"], tmp_path / "players.kb")
    base = clew.open(tmp_path / "players.kb")
    assert base.ask("How many women took part in golf?").value == 6
    answer = base.ask("Which Jamaican (JAM) players have the sport judo?")
    assert not answer.unknown
    assert {one.node.name for one in answer.matches} == {f"Player {letter}" for letter in "DGJMS"}


def test_the_numbers_of_a_value_tell_it_from_others(tmp_path):
    rows = [(f"Release {n}", f"{10 + 2 * n}.04 LTS") for n in range(6)]
    nodes = [{"id": name, "name": name, "type": "Release", "version": version} for name, version in rows]
    (tmp_path / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in nodes))
    clew.build([tmp_path / "nodes.jsonl"], tmp_path / "releases.kb")
    base = clew.open(tmp_path / "releases.kb")
    assert put_forward(base.ask("Which release is 14.04 LTS?")) == {"Release 2"}


def test_all_that_bear_a_name_are_meant(tmp_path):
    copies = range(40)
    nodes = [{"id": f"h{n}", "name": "Kent Goldings", "type": "Hop"} for n in copies]
    nodes += [{"id": f"b{n}", "name": f"Ale {n}", "type": "Beer"} for n in copies]
    (tmp_path / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in nodes))
    lines = "".join(f"b{n}\tbrewed_with\th{n}\n" for n in copies)
    (tmp_path / "edges.tsv").write_text(f"source\trelation\ttarget\n{lines}")
    clew.build([tmp_path / "nodes.jsonl", tmp_path / "edges.tsv"], tmp_path / "beer.kb")
    assert clew.open(tmp_path / "beer.kb").ask("How many beers are brewed with Kent Goldings?").value == 40


@pytest.fixture(scope="module")
def harbours(tmp_path_factory):
    folder = tmp_path_factory.mktemp("harbours")
    rows = [("h1", "Oudeschild", 800_000, 4, "c1"), ("h2", "Lauwersoog", 90_000_000, 11, "c1")]
    rows += [("h3", "Altona", 400_000_000, 16, "c2"), ("h4", "Ystad", 2_000_000, 7, "c3")]
    nodes = [
        {"id": key, "name": name, "type": "Port", "cargo": cargo, "depth_m": deep} for key, name, cargo, deep, _ in rows
    ]
    countries = [("c1", "Netherlands"), ("c2", "Germany"), ("c3", "Sweden")]
    nodes += [{"id": key, "name": name, "type": "Country"} for key, name in countries]
    nodes.append({"id": "l1", "name": "German", "type": "Language"})
    (folder / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in nodes))
    edges = [(row[0], "in_country", row[4]) for row in rows] + [("c2", "official_language", "l1")]
    (folder / "edges.tsv").write_text("source\trelation\ttarget\n" + "".join("\t".join(edge) + "\n" for edge in edges))
    clew.build([folder / "nodes.jsonl", folder / "edges.tsv"], folder / "ports.kb")
    return clew.open(folder / "ports.kb")


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Dutch ports", {"Oudeschild", "Lauwersoog"}),
        ("Which German ports are there?", {"Altona"}),
        ("swedish ports", {"Ystad"}),
        ("ports deeper than 1000 cm", {"Lauwersoog", "Altona"}),
    ],
)
def test_peoples_stand_for_their_places_and_units_are_converted(harbours, question, names):
    assert put_forward(harbours.ask(question)) == names


def test_a_comparison_that_everything_satisfies_is_hardly_meant(harbours):
    extents = reader_of(harbours.tools).extents
    place = [one.name for one in extents.vocabulary.attributes].index("depth_m")
    plan = Plan("list", 0, requirements=(Requirement(place, ">", 0),))
    costs = {text: extents.fitted(plan, quantities(text))[1] for text in ("over 5 m", "over 2 m", "over 30 m")}
    assert costs["over 5 m"] == 0 > costs["over 30 m"] > costs["over 2 m"]


def test_both_ends_of_a_range_are_in_one_unit(tmp_path):
    heights = [100, 900, 2800, 3100, 8500, 9400, 9900, 9999, 10500, 12000]
    rows = "".join(f"S{place},strip,Strip {place},{height}\n" for place, height in enumerate(heights))
    (tmp_path / "nodes.csv").write_text("id,type,name,elevation\n" + rows)
    clew.build([tmp_path / "nodes.csv"], tmp_path / "strips.kb")
    strips = clew.open(tmp_path / "strips.kb")
    answer = strips.ask("strips with an elevation between 8000 and 10000 feet", method="focus_plus")
    assert put_forward(answer) == {"Strip 4", "Strip 5", "Strip 6", "Strip 7"}


def test_a_number_or_a_truth_over_bare_facts_is_read_as_such(tmp_path):
    (tmp_path / "edges.csv").write_text(
        "head,relation,tail\nIt,directed_by,Ann\nUp,directed_by,Ann\nOh,directed_by,Bo\n"
    )
    clew.build([tmp_path / "edges.csv"], tmp_path / "facts.kb")
    facts = clew.open(tmp_path / "facts.kb")
    assert facts.ask("How many are made by Ann?").value == 2


def test_numbers_in_texts_are_values_after_the_name_of_their_attribute(tmp_path):
    places = ["1", "1", "2", "Z", "2", "1", "Z", "4"]
    rows = "".join(f"G{number},gene,Gene {number},{place}\n" for number, place in enumerate(places))
    (tmp_path / "genes.csv").write_text("id,type,name,chromosome\n" + rows)
    clew.build([tmp_path / "genes.csv"], tmp_path / "genes.kb")
    assert clew.open(tmp_path / "genes.kb").ask("How many genes are on chromosome 1?").value == 3


def test_of_several_values_of_an_attribute_each_is_enough(tmp_path):
    places = ["Leith", "Oban", "Wick", "Thurso", "Nairn", "Ayr"]
    nodes = [
        {"id": name, "name": name, "type": "Boat", "harbour": where}
        for name, where in zip("ABCDEF", places, strict=True)
    ]
    (tmp_path / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in nodes))
    clew.build([tmp_path / "nodes.jsonl"], tmp_path / "boats.kb")
    base = clew.open(tmp_path / "boats.kb")
    assert base.ask("How many boats have the harbour Leith or Wick?").value == 2


def test_a_value_is_required_of_one_of_the_columns_that_have_it(tmp_path):
    teams = ["Leith", "Oban", "Wick", "Leith", "Oban", "Wick"]
    pairs = zip(teams, teams[1:] + teams[:1], strict=True)
    nodes = [
        {"id": f"m{at}", "type": "Match", "home_team": one, "away_team": two} for at, (one, two) in enumerate(pairs)
    ]
    (tmp_path / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in nodes))
    (tmp_path / "edges.csv").write_text("head,relation,tail\nm1,follows,m0\n")
    clew.build([tmp_path / "nodes.jsonl", tmp_path / "edges.csv"], tmp_path / "matches.kb")
    answer = clew.open(tmp_path / "matches.kb").ask("Which matches had the home team Leith and the away team Oban?")
    assert " or " not in answer.query["text"]
    assert {one.node.key for one in answer.matches} == {"m0", "m3"}


def test_a_unit_does_not_stand_for_the_numbers_that_have_it():
    schema = Schema((NodeType("Pole", 9, attributes=("height", "colour")),), (), {"height": "text", "colour": "text"})
    values = {"height": ("2 cubits", "3 cubits", "9 cubits (tall)"), "colour": ("dark crimson", "teal", "beige")}
    said = SaidValues(Vocabulary(schema, frozenset(values), {"height": "number"}), values)
    for question, heights in (("more than 5 cubits", {}), ("a height of 3 cubits", {(0, "3 cubits"): False})):
        tokens = tokenise(f"Which crimson or teal poles have {question}?")
        assert said.of(tokens, range(len(tokens))) == {(1, "teal"): False, **heights}


def test_neighbouring_parts_of_a_name_are_one_mention(tmp_path):
    (tmp_path / "routes.csv").write_text(
        "route_id,route_short_name,route_long_name\nA,Ada,Ada Lovelace Bus Line\nB,Babbage,Charles Babbage Tram Line\n"
    )
    clew.build([tmp_path / "routes.csv"], tmp_path / "routes.kb")
    tools = clew.open(tmp_path / "routes.kb").tools
    for name in ("Ada Lovelace bus", "Charles Babbage tram"):
        _, (named,) = find_named(f"Who runs the {name}?", tools.kb, tools.names)
        assert name.startswith(named.text)
        assert len(named.text.split()) > 1


@pytest.fixture(scope="module")
def realms(tmp_path_factory):
    folder = tmp_path_factory.mktemp("realms")
    people = ["Richard III of England", "Henry VII of England", "Louis XIV of France", "Anne of Austria"]
    rows = "".join(f"P{number},person,{name}\n" for number, name in enumerate(people))
    (folder / "nodes.csv").write_text("id,type,name\n" + rows + 'T1,town,"Paradise, California"\nT2,town,Ward 4B\n')
    (folder / "edges.csv").write_text(
        "head,relation,tail\nP1,followed,P0\nP3,is_mother_of,P2\nP0,born_in,T1\nP2,born_in,T2\n"
    )
    clew.build([folder / "nodes.csv", folder / "edges.csv"], folder / "realms.kb")
    return clew.open(folder / "realms.kb")


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("who is the mother of louis xiv", {"Anne of Austria"}),
        ("who was born in paradise", {"Richard III of England"}),
        ("who was born in 4B", {"Louis XIV of France"}),
    ],
)
def test_names_are_cut_short_and_in_small_letters_as_people_type_them(realms, question, names):
    assert put_forward(realms.ask(question)) == names


def test_a_number_that_nothing_was_made_of_makes_the_answer_unsure(base):
    assert base.ask("Which distilleries are in Islay?").state == "found"
    assert base.ask("Which distilleries are in Islay, page 3?").state != "found"


def test_a_number_limits_the_answers(base):
    answer = base.ask("Which 3 distilleries are in Islay?")
    assert "first 3" in str(answer.query["query"])


def test_numbers_and_dates_in_texts_are_compared(tmp_path):
    spans = ["464 feet", "1,090 feet (332 m)", "180 feet", "619 feet (188.6 m)", "unknown"]
    days = ["March 4, 1915", "January 3, 1977", "1891", "May 1921", "January 3, 1903"]
    rows = [f'Bridge {name},"{span}","{day}"\n' for name, span, day in zip("ABCDE", spans, days, strict=True)]
    (tmp_path / "bridges.csv").write_text("Bridge,Span,Opened\n" + "".join(rows))
    clew.build([tmp_path / "bridges.csv"], tmp_path / "bridges.kb")
    base = clew.open(tmp_path / "bridges.kb")
    assert put_forward(base.ask("Which bridge has the highest span?")) == {"Bridge B"}
    assert put_forward(base.ask("Which bridge was opened first?")) == {"Bridge C"}
    assert base.ask("How many bridges have a span of more than 400 feet?").value == 3
    answer = base.ask("What is the difference in span between Bridge A and Bridge B?")
    assert answer.value == 626
    assert answer.query["text"] == "the highest span minus the lowest span of bridges among Bridge A and Bridge B"
    assert base.query(answer.query["query"]).value == 626
