"""Questions through rows that connect two things: their values, their extremes, and their number for each thing."""

import pytest

import clew
from clew.answering.methods.role_choice import reader_of
from clew.answering.queries.interpretations import execute
from clew.answering.reading.mentions import find_named
from clew.answering.reading.plan import Branch, Plan, Translator, Wording

FILES = {
    "athletes.csv": "athlete_id,name,country\n1,Ann Abel,Chile\n2,Bea Boll,Ghana\n3,Cid Cole,Chile\n",
    "events.csv": "event_id,event\n1,Long jump\n2,Shot put\n3,High jump\n",
    "results.csv": "athlete_id,event_id,mark\n1,1,6.1\n2,1,6.7\n3,1,5.2\n1,2,12.5\n2,2,11.0\n3,2,14.2\n1,3,1.7\n",
}


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    folder = tmp_path_factory.mktemp("games")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    clew.build([folder], folder / "games.kb")
    return clew.open(folder / "games.kb")


def names(answer):
    return [one.node.name for one in answer.matches]


def test_rows_between_are_things_with_their_attributes(games):
    assert {node_type.name: node_type.count for node_type in games.schema.node_types}["result"] == 7
    assert names(games.ask("Which athlete has the highest mark in the long jump?")) == ["Bea Boll"]


def test_a_plan_counts_only_the_rows_that_fit(games):
    reader = reader_of(games.tools)
    options, _ = reader.options(
        *find_named("Which athlete has the most results in the shot put?", reader.kb, reader.names)
    )
    known = options[0]
    code, hops = reader.schema.type_code, [(hop.start, hop.end, hop.relation) for hop in reader.vocabulary.hops]
    of_event, of_athlete = (hops.index((kind, "result", kind)) for kind in ("event", "athlete"))
    plan = Plan("most", code["athlete"], (Branch(0, (of_event,)),), hop=of_athlete, of_rows=True)
    writer = Translator(reader.vocabulary, known.named, known.senses, known.numbers)
    found = execute(reader.kb, reader.names, writer.interpretation(plan))
    assert {ref.name for ref in reader.kb.refs(found.nodes.array)} == {"Ann Abel", "Bea Boll", "Cid Cole"}
    (evidence, *_) = found.evidence(reader.kb, list(found.nodes.array))
    assert "count: 1 result" in [piece.in_words() for piece in evidence]
    assert "of each athlete : A" in Wording(reader.vocabulary).of(plan)


def test_a_sum_over_selected_rows_is_said_as_it_is_computed(games):
    text = 'sum(r.mark for (r: result) -[athlete]-> (x) and (r) -[event]-> "Shot put": event)'
    answer = games.ask(f"find x where (x: athlete) order by {text} desc first 1", method="query")
    assert names(answer) == ["Cid Cole"]
    assert answer.query["text"] == "the athlete with the highest total mark of results that have the event Shot put"


def test_a_number_of_selected_rows_is_said_as_it_is_computed(games):
    text = "count(distinct r for (r: result) -[athlete]-> (x) and r.mark > 6)"
    answer = games.ask(f"find x where (x: athlete) order by {text} desc first 1 with ties", method="query")
    assert names(answer) == ["Ann Abel", "Bea Boll"]
    assert answer.query["text"] == "the athlete with the most results whose mark is more than 6"


@pytest.fixture(scope="module")
def trapped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trapped")
    rows = ((1, "DS"), (1, "SH"), (2, "DS"), (3, "SH"), (2, "PE"), (1, "PE"), (3, "PE"), (1, "DS"))
    files = {
        "species.csv": "species_id,name\nDS,Dipodomys spectabilis\nSH,Sigmodon hispidus\nPE,Peromyscus eremicus\n",
        "plots.csv": "plot_id,plot\n1,North field\n2,South field\n3,East field\n",
        "captures.csv": "record_id,plot_id,species_id,weight\n"
        + "".join(f"{number},{plot},{kind},{30 + number}\n" for number, (plot, kind) in enumerate(rows, 1)),
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    clew.build([folder], folder / "trapped.kb")
    return clew.open(folder / "trapped.kb")


def test_two_names_that_no_row_has_together_belong_to_two_rows(trapped):
    answer = trapped.ask("In which plots were both Dipodomys spectabilis and Sigmodon hispidus caught?")
    assert names(answer) == ["North field"]
    answer = trapped.ask("How many captures of Sigmodon hispidus or Peromyscus eremicus are there?")
    assert answer.value == 5


def proposed(base, question):
    """The nodes or the number that each likely plan finds, by the plan in words."""
    reader = reader_of(base.tools)
    options, _ = reader.options(*find_named(question, reader.kb, reader.names))
    found = {}
    for one in options:
        writer = Translator(reader.vocabulary, one.named, one.senses, one.numbers)
        done = execute(reader.kb, reader.names, writer.interpretation(one.plan))
        names = {ref.name for ref in reader.kb.refs(done.nodes.array)}
        found[one.text] = names if done.value is None else done.value
    return found


def test_conditions_may_be_on_related_rows(trapped):
    found = proposed(trapped, "Which species weighed more than 36?")
    assert found["any capture → species → species ; weight > number 1"] == {
        "Dipodomys spectabilis",
        "Peromyscus eremicus",
    }


def test_what_no_related_row_fulfils_may_be_meant(trapped):
    found = proposed(trapped, "Which species never weighed more than 36?")
    assert found["not any capture → species → species ; weight > number 1"] == {"Sigmodon hispidus"}


def test_the_highest_average_over_rows_is_said_as_it_is_computed(trapped):
    found = proposed(trapped, "Which species has the highest average weight?")
    assert {"Peromyscus eremicus"} in [names for text, names in found.items() if text.startswith("most average weight")]
    text = "avg(other.weight for (other: capture) -[species]-> (x))"
    answer = trapped.ask(f"find x where (x: species) order by {text} desc first 1 with ties", method="query")
    assert answer.query["text"] == "the species with the highest average weight of captures"
    assert "average weight: 36" in [piece.in_words() for piece in answer.matches[0].evidence]


def test_things_are_counted_through_others(trapped):
    reader = reader_of(trapped.tools)
    code, hops = reader.schema.type_code, [(hop.start, hop.end, hop.relation) for hop in reader.vocabulary.hops]
    to_capture, to_plot = hops.index(("species", "capture", "species")), hops.index(("capture", "plot", "plot"))
    plan = Plan("most", code["species"], hop=to_plot, through=to_capture)
    found = execute(reader.kb, reader.names, Translator(reader.vocabulary, (), (), ()).interpretation(plan))
    assert {ref.name for ref in reader.kb.refs(found.nodes.array)} == {"Peromyscus eremicus"}
    text = str(Translator(reader.vocabulary, (), (), ()).interpretation(plan).query)
    assert trapped.ask(text, method="query").query["text"] == "the species with the most plots of captures"
