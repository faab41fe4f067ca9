"""RDF becomes nodes with names, texts and typed attributes, and edges."""

import datetime
import sys

import pytest

from clew.core.errors import InputError, MissingExtraError, SourceError
from clew.store.sources.files import SourceOptions
from clew.store.sources.read import read_sources

pytest.importorskip("pyoxigraph")
TURTLE = """
@prefix ex: <http://ex.org/> .
@prefix other: <http://other.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .

ex:ann a owl:NamedIndividual, ex:Person ;
    rdfs:label "Ann"@en, "Anna"@de ; skos:altLabel "Annie"@en, "Ännchen"@de ;
    rdfs:comment "A painter."@en, "Eine Malerin."@de ;
    ex:age 41 ; ex:height "1.7"^^xsd:double ; ex:born "1980-02-29"^^xsd:date ; ex:alive true ;
    ex:nick "A", "Nan" ; ex:knows ex:bob, [ rdfs:label "someone" ] ; other:knows ex:Barack_Obama .
ex:bob a ex:Person ; ex:nick "Bobby" ; skos:prefLabel "Bob" ; rdfs:label "Robert" ; ex:age "unknown"^^xsd:integer .
ex:Person a owl:Class ; rdfs:label "person"@en ; rdfs:subClassOf ex:Agent .
ex:knows rdfs:label "is acquainted with"@en .
"""


@pytest.fixture
def turtle(tmp_path):
    path = tmp_path / "people.ttl"
    path.write_text(TURTLE, "utf-8")
    return path


def test_labels_comments_types_and_literals_become_what_they_mean(turtle):
    tables = read_sources([turtle])
    nodes = {row.pop("key"): row for row in tables.nodes[0].table.to_pylist()}
    ann = nodes["http://ex.org/ann"]
    assert (ann["name"], ann["type"], ann["aliases"], ann["text"]) == ("Ann", "person", ["Annie"], "A painter.")
    assert (ann["height"], ann["born"], ann["alive"]) == (1.7, datetime.date(1980, 2, 29), True)
    assert (ann["age"], nodes["http://ex.org/bob"]["age"]) == ("41", "unknown"), "one value breaks its promise"
    assert (ann["nick"], nodes["http://ex.org/bob"]["nick"]) == (["A", "Nan"], ["Bobby"])
    bob = nodes["http://ex.org/bob"]
    assert (bob["name"], bob["aliases"]) == ("Bob", ["Robert"])
    assert nodes["http://ex.org/Barack_Obama"]["name"] == "Barack Obama"
    assert nodes["_:b0"]["name"] == "someone"


def test_rdf_in_a_file_called_xml_is_read(tmp_path):
    (tmp_path / "export.xml").write_text(
        '<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="http://ex.org/">'
        '<ex:Line rdf:ID="a"><ex:name>North line</ex:name></ex:Line></rdf:RDF>'
    )
    (tmp_path / "other.xml").write_text("<page/>")
    assert read_sources([tmp_path]).nodes[0].table["name"].to_pylist() == ["North line"]
    with pytest.raises(SourceError, match="unknown format"):
        read_sources([tmp_path / "other.xml"])


def test_a_name_may_be_of_any_vocabulary(tmp_path):
    (tmp_path / "grid.ttl").write_text(
        '@prefix ex: <http://ex.org/> . ex:a1 a ex:Line ; ex:Thing.name "North line" ; ex:Line.length 5 .'
        ' ex:a2 a ex:Pump ; ex:name "P 2" ; <http://www.w3.org/2000/01/rdf-schema#label> "Second pump" .'
    )
    nodes = {row["key"]: row for row in read_sources([tmp_path / "grid.ttl"]).nodes[0].table.to_pylist()}
    assert (nodes["http://ex.org/a1"]["name"], nodes["http://ex.org/a1"]["Line.length"]) == ("North line", 5)
    assert (nodes["http://ex.org/a2"]["name"], nodes["http://ex.org/a2"]["aliases"]) == ("Second pump", ["P 2"])


def test_edges_keep_relations_of_the_same_last_name_apart(turtle):
    edges = {tuple(row.values()) for row in read_sources([turtle]).edges[0].table.to_pylist()}
    assert edges == {
        ("http://ex.org/ann", "is acquainted with", "http://ex.org/bob"),
        ("http://ex.org/ann", "is acquainted with", "_:b0"),
        ("http://ex.org/ann", "knows", "http://ex.org/Barack_Obama"),
        ("http://ex.org/ann", "type", "http://ex.org/Person"),
        ("http://ex.org/bob", "type", "http://ex.org/Person"),
        ("http://ex.org/Person", "subClassOf", "http://ex.org/Agent"),
    }


def test_another_language_can_be_asked_for(turtle):
    nodes = read_sources([turtle], SourceOptions(language="de")).nodes[0].table.to_pylist()
    assert (nodes[0]["name"], nodes[0]["aliases"], nodes[0]["text"]) == ("Anna", ["Ännchen"], "Eine Malerin.")


def test_blank_nodes_get_the_same_keys_each_time(turtle):
    assert read_sources([turtle]).edges[0].table == read_sources([turtle]).edges[0].table


def test_n_triples_say_the_same_as_turtle(turtle, tmp_path):
    import pyoxigraph as ox

    lines = ox.serialize(ox.parse(TURTLE, format=ox.RdfFormat.TURTLE), format=ox.RdfFormat.N_TRIPLES)
    path = tmp_path / "people.nt"
    path.write_bytes(lines)
    ours = read_sources([path])
    assert sorted(map(str, ours.edges[0].table.to_pylist())) == sorted(
        map(str, read_sources([turtle]).edges[0].table.to_pylist())
    )


def test_without_the_package_the_error_names_the_extra(turtle, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'clew-kb\[sparql\]'"):
        read_sources([turtle])


VOCABULARY = """
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix : <http://example.org/> .
:Sensor a owl:Class, sh:NodeShape ; rdfs:label "Sensor" ; sh:property [ sh:path :unit ; sh:in ("C" "K") ] .
:Thermometer a rdfs:Class ; rdfs:subClassOf :Sensor, [ owl:unionOf (:Sensor :Meter) ] .
:Meter a owl:Class . :unit a owl:ObjectProperty ; rdfs:label "unit" . :t1 a :Thermometer ; :unit :kelvin .
:rule a sh:TripleRule ; sh:subject :t1 .
"""


def test_what_describes_the_vocabulary_is_kept_apart(tmp_path):
    (tmp_path / "plant.ttl").write_text(VOCABULARY)
    tables = read_sources([tmp_path / "plant.ttl"])
    nodes = {row["name"]: row["type"] for piece in tables.nodes for row in piece.table.to_pylist()}
    assert nodes == {"Sensor": "Class", "Thermometer": "Class", "Meter": "Class", "t1": "Thermometer", "kelvin": None}
    assert "left out" in tables.notes[0]
    with_rules = read_sources([tmp_path / "plant.ttl"], SourceOptions(include=("TripleRule", "Thermometer")))
    assert {row["name"] for piece in with_rules.nodes for row in piece.table.to_pylist()} == {"rule", "t1"}
    without = read_sources([tmp_path / "plant.ttl"], SourceOptions(exclude=("Class",)))
    assert [piece.table["name"].to_pylist() for piece in without.nodes] == [["t1", "kelvin"]]
    with pytest.raises(InputError, match=r"'Sensors': no node has this type.*Thermometer"):
        read_sources([tmp_path / "plant.ttl"], SourceOptions(include=("Sensors",)))
    with pytest.raises(InputError, match="leave no node"):
        read_sources([tmp_path / "plant.ttl"], SourceOptions(include=("Thermometer",), exclude=("*",)))


def test_classes_do_not_refer_to_the_class_of_classes(tmp_path):
    (tmp_path / "plant.ttl").write_text(VOCABULARY + 'owl:Class rdfs:label "Class" .\n')
    edges = [row for piece in read_sources([tmp_path / "plant.ttl"]).edges for row in piece.table.to_pylist()]
    assert [edge["head"] for edge in edges if edge["relation"] == "type"] == ["http://example.org/t1"]
