"""A real SPARQL server on loopback answers like the embedded base."""

import pytest

from clew.answering.methods.catalog import ask, create
from clew.answering.queries.execution import execute
from clew.answering.queries.parsing import parse
from clew.core.errors import NotFoundError, SchemaError, StorageError
from clew.core.types import NodeSet
from clew.store.graph.rdf_export import write_ntriples
from clew.store.index.remote_names import RemoteNames
from clew.store.open_base import OpenBase
from clew.store.remote.sparql import SparqlKnowledgeBase
from clew.store.remote.sparql_endpoint import Politeness, SparqlEndpoint, content, literal
from conftest import build_graph, tables
from sparql_server import serving


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The tiny base and the address of a server that holds it."""
    folder = tmp_path_factory.mktemp("sparql")
    kb = build_graph(tables(), folder / "kb")
    write_ntriples(kb, folder / "kb.nt")
    with serving(folder / "kb.nt") as address:
        yield kb, address


@pytest.fixture
def remote(served):
    return SparqlKnowledgeBase(SparqlEndpoint(served[1], politeness=Politeness(per_second=1000, page=3)))


def test_schema_neighbours_edges_and_relations_are_those_of_the_embedded_base(served, remote):
    kb, _ = served
    rows = [(r.name, r.head, r.tail, r.count) for r in kb.schema.relations]
    assert [(r.name, r.head, r.tail, r.count) for r in remote.schema.relations] == rows
    ids = {key: remote.find(f"urn:clew:node:{key}") for key in ("BBS", "MFS", "P1", "FBN1")}
    for key, node in ids.items():
        here, there = NodeSet.of([kb.find(key)]), NodeSet.of([node])
        assert _names(remote, remote.neighbors(there)) == _names(kb, kb.neighbors(here))
        assert _uses(remote.relations(there)) == _uses(kb.relations(here))
        assert _triples(remote, remote.triples(node)) == _triples(kb, kb.triples(kb.find(key)))
    everyone = NodeSet.of(ids.values())
    found = remote.neighbors(everyone, "has_phenotype", "out")
    assert _names(remote, found) == {"Polydactyly", "Rod-cone dystrophy", "Arachnodactyly"}
    assert _names(remote, remote.nodes("gene")) == {"BBS2", "FBN1"}
    assert len(remote.edges(everyone, None, "any")) == 6


def test_a_node_has_its_label_type_and_text(remote):
    node = remote.node(remote.find("urn:clew:node:MFS"))
    assert (node.name, node.type, node.text) == ("Marfan syndrome", "disease", "A disorder of connective tissue.")
    assert "has_phenotype: {phenotype: (Arachnodactyly)}" in remote.text(node.id, relations=True)


@pytest.mark.parametrize(
    "query",
    [
        "find d.name, count(p) as n where (d: disease) -[has_phenotype]-> (p) group by d order by d.name",
        'find d.name where (d: disease) and d.name starts with "Marfan"',
        "find d.type, p.name where (d) -[has_phenotype]-> (p) order by p.name, d.type",
        "find max(g.name) where (g: gene)",
    ],
)
def test_queries_show_the_same_values(served, remote, query):
    assert execute(remote, parse(query)).rows == execute(served[0], parse(query)).rows


def test_names_are_linked_and_found_inside_a_question(remote):
    names = RemoteNames(remote)
    assert names.link("marfan SYNDROME") == ()
    assert names.link("Marfan syndrome")[0].how == "exact"
    found = names.mentions("Does Marfan syndrome go with Arachnodactyly?")
    assert [mention.text for mention in found] == ["Marfan syndrome", "Arachnodactyly"]


def test_what_is_not_there_is_said_plainly(remote):
    with pytest.raises(NotFoundError, match="does not contain"):
        remote.find("urn:clew:node:Nobody")
    with pytest.raises(SchemaError, match="no relation 'near'"):
        remote.neighbors(NodeSet.of([remote.find("urn:clew:node:MFS")]), "near")


def test_a_dead_endpoint_is_named_after_a_few_attempts():
    endpoint = SparqlEndpoint("http://127.0.0.1:9/query", politeness=Politeness(attempts=1))
    with pytest.raises(StorageError, match=r"127\.0\.0\.1:9/query did not answer after 1 attempts"):
        endpoint.page("SELECT * WHERE { ?s ?p ?o }")


def test_answers_are_kept_in_a_file_and_not_asked_for_again(served, tmp_path):
    query = "SELECT ?s WHERE { ?s ?p ?o }"
    first = SparqlEndpoint(served[1], tmp_path / "kept.sqlite").page(query)
    dead = SparqlEndpoint(served[1], tmp_path / "kept.sqlite", Politeness(attempts=0))
    assert dead.page(query) == first


@pytest.mark.parametrize("text", ['a "quoted" \\ name', "two\nlines\tand a tab", "Ünïcödé ☃", ""])
def test_literals_survive_being_written_and_read(text):
    assert content(literal(text)) == text
    assert content(literal(text, "en")) == text


def _names(kb, nodes):
    return {ref.name for ref in kb.refs(list(nodes))}


def _uses(uses):
    return [(use.relation, use.direction, use.count) for use in uses]


def _triples(kb, triples):
    return sorted((kb.refs([t.head])[0].name, t.relation, kb.refs([t.tail])[0].name) for t in triples)


def test_an_endpoint_can_be_asked_where_a_base_can(served, tmp_path, monkeypatch):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path))
    tools = OpenBase.open(f"sparql+{served[1]}")
    answer = ask(create("auto"), "Which phenotype does [Marfan syndrome] have?", tools)
    assert answer.notes[0] == "picked focus_plus: the base is a graph"
    assert answer.candidates[0].node.name == "Arachnodactyly"
    rows = tools.kb.endpoint.page(answer.query["sparql"])
    assert [content(term) for row in rows for term in row.values()] == [answer.candidates[0].node.key]
