"""What was understood and what is answered read as people would say it, over a base with units, dates and places."""

import json

import pytest

import clew
from clew.answering.queries.schema_words import attribute_words, conditions_in_words, of_many, without_kind
from clew.answering.queries.words import asked_of, hierarchy_in_words
from clew.core.query import Attribute, Compare, Value
from clew.core.schema import NodeType, Relation, Schema

HUTS = (
    ("Konkordia Hut", 146, "1877-07-01", 2850, "Valais"),
    ("Forno Hut", 97, "1889-08-15", 2574, "Grisons"),
    ("Corno Hut", 80, "1934-06-01", 2338, "Ticino"),
    ("Cristallina Hut", 120, "2003-07-01", 2575, "Ticino"),
)
REGIONS = ("Valais", "Grisons", "Ticino")


@pytest.fixture(scope="module")
def huts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("huts")
    nodes = [{"key": name, "type": "region", "name": name} for name in REGIONS]
    nodes.append({"key": "Switzerland", "type": "country", "name": "Switzerland"})
    nodes += [
        {"key": name, "type": "hut", "name": name, "beds": beds, "opened": opened, "height_m": height}
        for name, beds, opened, height, _ in HUTS
    ]
    edges = [(name, "located_in", region) for name, *_, region in HUTS]
    edges += [(region, "located_in", "Switzerland") for region in REGIONS]
    (folder / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in nodes))
    (folder / "edges.tsv").write_text("head\trelation\ttail\n" + "".join("\t".join(edge) + "\n" for edge in edges))
    clew.build([folder / "nodes.jsonl", folder / "edges.tsv"], folder / "huts.kb")
    return clew.open(folder / "huts.kb")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Which hut has the most beds?", "Konkordia Hut has the most beds (146)."),
        ("Which huts were opened before 1920?", "2 huts opened before 1920: "),
        ("Which huts have more than 100 beds?", "2 huts with more than 100 beds: "),
        ("What is the height of Konkordia Hut?", "The height of Konkordia Hut is 2,850 m."),
        ("Is Corno Hut in Ticino?", "Yes. Corno Hut is located in Ticino."),
        ("Is Forno Hut in Ticino?", "No. Forno Hut is located in Grisons, not in Ticino."),
        ("Which hut was opened first?", "Konkordia Hut was opened first ("),
    ],
)
def test_an_answer_is_said_as_people_would(huts, question, said):
    answer = huts.ask(question)
    assert answer.text.startswith(said)
    assert answer.found


def test_a_hierarchy_is_said_and_can_be_turned_off(huts):
    answer = huts.ask("Which huts are located in Switzerland?")
    assert len(answer.matches) == len(HUTS)
    assert answer.text.startswith(f"{len(HUTS)} huts ")
    alone = huts.ask("Which huts are in Ticino?", kinds=False)
    assert "a place in it" not in alone.query["text"]


@pytest.mark.parametrize(
    ("relation", "below"),
    [
        ("is_a", "a kind of it"),
        ("subclass_of", "a kind of it"),
        ("part_of", "a part of it"),
        ("located_in", "a place in it"),
        ("parent", "anything below it"),
    ],
)
def test_a_hierarchy_has_the_words_of_its_relation(relation, below):
    row = Relation(relation, "thing", "thing", 1, transitive=True)
    assert hierarchy_in_words([(row, False)]) == below
    assert hierarchy_in_words([(row, True)]) != below


@pytest.mark.parametrize(
    ("label", "many", "one", "negated"),
    [
        ("treats", "treat", "treats", "do not treat"),
        ("associated_with", "are associated with", "is associated with", "are not associated with"),
        ("happened_on", "happened on", "happened on", "did not happen on"),
        ("belong_to", "belong to", "belongs to", "do not belong to"),
        ("capital_of", "are capital of", "is capital of", "are not capital of"),
        ("in", "are in", "is in", "are not in"),
    ],
)
def test_relations_are_verbs(label, many, one, negated):
    assert (of_many(label), of_many(label, one=True), of_many(label, negated=True)) == (many, one, negated)


def test_a_type_is_not_said_twice():
    assert without_kind("associated_with_disease", "disease") == "associated with"
    assert without_kind("has_phenotype", "phenotype") == "has"
    assert without_kind("side_effect", "effect") == "side effect"
    assert without_kind("genres", "genre") == "genre"


def test_example_questions_are_sentences():
    schema = Schema((NodeType("film", 1), NodeType("person", 1)), ())
    rows = {name: Relation(name, "film", "person", 1) for name in ("director", "happened_on", "starring_person")}
    assert asked_of(schema, rows["director"], "Ann Lee") == "have Ann Lee as director"
    assert asked_of(schema, rows["happened_on"], "Monday") == "happened on Monday"


@pytest.mark.parametrize(
    ("condition", "kind", "said"),
    [
        (("opened", "<", "1920-01-01"), "date", "opened before 1920"),
        (("opened", ">", "1920-12-31"), "date", "opened after 1920"),
        (("opened", ">=", "1920-05-01"), "date", "opened on 1920-05-01 or later"),
        (("founded", ">=", 1920), "integer", "founded in 1920 or later"),
        (("founding_date", "<", "1920-01-01"), "date", "whose founding date is before 1920"),
        (("beds", ">", 80), "integer", "with more than 80 beds"),
        (("height_m", ">=", 2500), "integer", "whose height is at least 2,500 m"),
        (("population", ">", 5_000_000), "integer", "whose population is more than 5,000,000"),
        (("language", "=", "French"), "text", "whose language is French"),
        (("is_open", "=", False), "boolean", "that are not open"),
        (("staffed", "=", True), "boolean", "that are staffed"),
        (("motto", "contains", "sun"), "text", "whose motto contains sun"),
    ],
)
def test_conditions_are_said_by_what_they_limit(condition, kind, said):
    schema = Schema((), (), {condition[0]: kind})
    assert conditions_in_words([compared(*condition)], schema) == [said]


def compared(name, comparison, value):
    return Compare(Attribute("x", name), comparison, Value(value))


def test_a_year_from_its_first_to_its_last_day_is_that_year():
    schema = Schema((), (), {"opened": "date"})
    limits = [compared("opened", ">=", "1920-01-01"), compared("opened", "<=", "1920-12-31")]
    assert conditions_in_words(limits, schema) == ["opened in 1920"]


def test_a_unit_is_read_off_the_name_of_an_attribute():
    assert attribute_words("height_m") == ("height", "m")
    assert attribute_words("m") == ("m", "")
    assert attribute_words("vitamin_c") == ("vitamin c", "")
