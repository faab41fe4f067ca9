"""A graph in Wikidata's shape behind a real SPARQL server: P-ids with labels, nothing that asks for the whole graph."""

import json

import pytest

import clew
from clew.core.errors import InputError
from clew.models.scripted import ScriptedModel
from clew.store.open_base import OpenBase
from clew.store.remote.sparql import SparqlKnowledgeBase
from clew.store.remote.sparql_schema import WIKIDATA
from sparql_server import Listening, serving

ENTITIES = {
    "Q1": "Casablanca", "Q2": "Michael Curtiz", "Q3": "Humphrey Bogart", "Q4": "Ingrid Bergman", "Q5": "human",
    "Q6": "film", "Q7": "Notorious", "Q8": "Alfred Hitchcock", "Q9": "Budapest", "Q10": "Stockholm",
}  # fmt: skip
PROPERTIES = {
    "P31": "instance of", "P57": "director", "P161": "cast member", "P19": "place of birth", "P345": "IMDb ID",
}  # fmt: skip
FACTS = [
    ("Q1", "P31", "Q6"), ("Q7", "P31", "Q6"), ("Q2", "P31", "Q5"), ("Q3", "P31", "Q5"), ("Q4", "P31", "Q5"),
    ("Q8", "P31", "Q5"), ("Q1", "P57", "Q2"), ("Q1", "P161", "Q3"), ("Q1", "P161", "Q4"), ("Q7", "P57", "Q8"),
    ("Q7", "P161", "Q4"), ("Q2", "P19", "Q9"), ("Q4", "P19", "Q10"),
]  # fmt: skip
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
WD, WDT, WIKIBASE = (
    "http://www.wikidata.org/entity/",
    "http://www.wikidata.org/prop/direct/",
    "http://wikiba.se/ontology#",
)


def triples():
    for key, name in {**ENTITIES, **PROPERTIES}.items():
        yield f'<{WD}{key}> {LABEL} "{name}"@en .'
        yield f'<{WD}{key}> {LABEL} "{name} auf Deutsch"@de .'
    for key in PROPERTIES:
        yield f"<{WD}{key}> <{WIKIBASE}directClaim> <{WDT}{key}> ."
        kind = "ExternalId" if key == "P345" else "WikibaseItem"
        yield f"<{WD}{key}> <{WIKIBASE}propertyType> <{WIKIBASE}{kind}> ."
    for head, relation, tail in FACTS:
        yield f"<{WD}{head}> <{WDT}{relation}> <{WD}{tail}> ."
        yield f"<{WD}{head}> <http://www.wikidata.org/prop/{relation}> <{WD}statement/{head}-{tail}> ."
    yield f'<{WD}Q1> <{WDT}P345> "tt0034583" .'
    yield f'<{WD}Q1> <http://schema.org/description> "1942 film"@en .'


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    file = tmp_path_factory.mktemp("wikidata") / "wikidata.nt"
    file.write_text("\n".join(triples()) + "\n")
    with serving(file) as url:
        yield url


def test_relations_are_called_by_their_labels_and_identifiers_are_left_out(address):
    endpoint = Listening(address)
    kb = SparqlKnowledgeBase(endpoint, WIKIDATA)
    assert set(kb.schema.relation_names) == {"instance of", "director", "cast member", "place of birth"}
    film = kb.find("Q1")
    named = sorted((triple.relation, kb.refs([triple.tail])[0].name) for triple in kb.triples(film))
    assert named == [
        ("cast member", "Humphrey Bogart"), ("cast member", "Ingrid Bergman"), ("director", "Michael Curtiz"),
        ("instance of", "film"),
    ]  # fmt: skip
    assert kb.refs([film])[0].key == "Q1"
    assert kb.node(film).text == "1942 film"
    assert not any("?s ?p ?o }" in query and "VALUES" not in query for query in endpoint.asked)


def test_labels_of_another_language_are_taken_where_it_is_asked_for(address, tmp_path, monkeypatch):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path))
    tools = OpenBase.open(f"sparql+{address}#shape=wikidata&language=de")
    assert "director auf Deutsch" in tools.kb.schema.relation_names
    with pytest.raises(InputError, match="shape 'dbpedia': use wikidata"):
        OpenBase.open(f"sparql+{address}#shape=dbpedia")


def test_questions_of_mintaka_run_over_an_endpoint_of_its_shape(address, tmp_path, monkeypatch):
    """Generated candidates are linked, reranked by their subgraphs, and judged by labels; yes, no and counts apart."""
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path))

    def record(number, question, kind, topic, answer):
        return {
            "id": str(number), "question": question, "complexityType": kind, "category": "movies", "lang": "en",
            "questionEntity": [{"name": topic, "entityType": "entity", "label": ENTITIES[topic]}],
            "answer": answer,
        }  # fmt: skip

    curtiz = {"answerType": "entity", "answer": [{"name": "Q2", "label": {"en": "Michael Curtiz"}}],
              "mention": "Michael Curtiz"}  # fmt: skip
    questions = [
        record(1, "Who was the director of Casablanca?", "generic", "Q1", curtiz),
        record(
            2, "Is Casablanca a film?", "yesno", "Q1", {"answerType": "boolean", "answer": [True], "mention": "Yes"}
        ),
    ]
    file = tmp_path / "mintaka_dev.json"
    file.write_text(json.dumps(questions))

    def reply(request):
        asked = request.messages[-1].content
        return json.dumps({"answers": ["Yes"] if "a film?" in asked else ["Alfred Hitchcock", "Michael Curtiz"]})

    base = clew.open(f"sparql+{address}#shape=wikidata", model=ScriptedModel(reply))
    method = clew.methods.SubgraphReranking(source="model", ranker="match")
    page = clew.evaluate(base, f"mintaka:{file}", methods=[method])
    (row,) = page.to_dict()["runs"]
    assert (row["n"], row["metrics"]["hit@1"]) == (2, 1.0)
    answer = base.ask("Who was the director of [Q1]?", method=method)
    assert [candidate.node.key for candidate in answer.candidates] == ["Q2", "Q8"]
    assert answer.candidates[0].evidence[0].in_words() == "Casablanca —director→ Michael Curtiz"
    assert base.ask("Is [Casablanca] a film?", method=method).value is True
