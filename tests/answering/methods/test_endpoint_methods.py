"""Graph methods over a real SPARQL server: the answers of a base built from the same RDF, in few bounded queries."""

import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import httpx
import pytest

import clew
from clew.answering.methods.catalog import create
from clew.core.errors import InputError, StorageError
from clew.core.trace import recording
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.rdf_export import write_ntriples
from clew.store.open_base import OpenBase, OpenRemoteBase
from clew.store.remote import sparql_schema
from clew.store.remote.sparql import SparqlKnowledgeBase
from clew.store.remote.sparql_endpoint import Politeness, SparqlEndpoint
from clew.store.remote.sparql_schema import EndpointVocabulary
from clew.store.remote_bases import described_nodes
from films import FILMS, QUESTIONS, told
from sparql_server import FAST, Listening, serving

pytest.importorskip("pyoxigraph")
METHODS = {"focus_plus": 8, "four_step_focus": 4, "subgraph_reranking": 4, "aligned_paths": 4}
"""So many of the questions are put to each."""


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """The same statements as a base in a folder, and behind a server."""
    folder = tmp_path_factory.mktemp("films")
    (folder / "films.ttl").write_text(FILMS, "utf-8")
    clew.build([folder / "films.ttl"], folder / "films.kb")
    with serving(folder / "films.ttl") as address:
        yield OpenBase.open(folder / "films.kb"), address


def opened(address: str, folder, politeness: Politeness = FAST) -> OpenRemoteBase:
    endpoint = Listening(address, politeness)
    return OpenRemoteBase(
        SparqlKnowledgeBase(endpoint, describe=lambda: described_nodes(endpoint, EndpointVocabulary(), folder))
    )


@pytest.mark.parametrize("method", METHODS)
def test_answers_over_an_endpoint_are_those_of_a_base_built_from_it(films, tmp_path, method):
    here, address = films
    there = opened(address, tmp_path)
    assert there.kb.schema.relation_names == ("directed by", "genre", "starring", "subclass of")
    assert there.kb.schema.attribute_types == {"year": "integer"}
    for question in QUESTIONS[: METHODS[method]]:
        mine, theirs = (create(method).answer(question, tools) for tools in (here, there))
        assert told(theirs) == told(mine), question
        if theirs.query and "sparql" in theirs.query and theirs.matches and theirs.value is None:
            rows = there.kb.endpoint.page(theirs.query["sparql"])
            assert len(rows) == len(theirs.matches), "its certificate gives its answers"


def test_questions_have_answers_at_all(films, tmp_path):
    there = opened(films[1], tmp_path)
    found = {question: create("focus_plus").answer(question, there) for question in QUESTIONS}
    names = {question: {one.node.name for one in answer.matches} for question, answer in found.items()}
    assert names[QUESTIONS[0]] == {"Michael Curtiz"}
    assert names[QUESTIONS[1]] == {"Notorious", "Suspicion"}
    assert names[QUESTIONS[2]] == {"Casablanca"}
    assert found[QUESTIONS[4]].value == 2


class Overloaded(Listening):
    """Counts no two relations at once."""

    def page(self, query):
        if "GROUP BY ?p" in query:
            raise StorageError("took too long")
        return super().page(query)


def test_relations_keep_their_types_where_an_endpoint_cannot_count_them_together(films, tmp_path):
    there, known = Overloaded(films[1]), opened(films[1], tmp_path)
    kb = SparqlKnowledgeBase(there, describe=lambda: known.kb.described)
    with recording() as recorder:
        assert kb.schema == known.kb.schema
    assert [one.instead for one in recorder.fallbacks] == ["each is counted by itself"]
    assert {row.head for row in SparqlKnowledgeBase(there).schema.relations} == {"entity"}


def test_a_join_is_made_by_the_endpoint(films, tmp_path):
    there = opened(films[1], tmp_path)
    create("focus_plus").answer(QUESTIONS[1], there)
    asked = there.kb.endpoint.asked
    joins = [query for query in asked if query.count("http://ex.org/p161") and query.count("http://ex.org/p57")]
    joined = next(place for place, query in enumerate(asked) if query in joins and "SELECT DISTINCT ?x" in query)
    assert len(asked) < 80
    assert not any("?s ?p ?o }" in query for query in asked[joined:]), "nothing asks for the whole graph"
    before = len(asked)
    create("focus_plus").answer(QUESTIONS[1], there)
    assert len(set(asked[before:]) - set(asked[:before])) == 0


def test_small_endpoints_are_read_once_for_many_processes(films, tmp_path):
    first, again = opened(films[1], tmp_path), opened(films[1], tmp_path)
    assert first.kb.described is not None
    assert first.kb.endpoint.asked
    assert again.kb.described is not None
    assert again.kb.endpoint.asked == []


def test_a_large_endpoint_is_not_read_and_focus_plus_works_by_its_graph(films, tmp_path, monkeypatch):
    monkeypatch.setattr(sparql_schema, "MOST_NAMED", 3)
    there = opened(films[1], tmp_path)
    assert there.kb.described is None
    answer = create("focus_plus").answer("Which films starring [Cary Grant] are directed by [Alfred Hitchcock]?", there)
    assert {one.node.name for one in answer.matches} == {"Notorious", "Suspicion"}
    answer = create("auto").answer("Who directed [Casablanca]?", there)
    assert answer.notes[0] == "picked aligned_paths: the base is behind an endpoint that is too large to read its names"
    with pytest.raises(InputError, match="too large to read its texts"):
        create("bm25").answer("Who directed Casablanca?", there)


def test_more_rows_than_are_allowed_are_an_error_that_says_so(films, tmp_path):
    there = opened(films[1], tmp_path)
    there.kb.endpoint.politeness = Politeness(per_second=1000, page=1, most_rows=1)
    with pytest.raises(StorageError, match="more than 1 rows for one query"):
        create("focus_plus").answer(QUESTIONS[1], there)


@pytest.fixture
def stalling(films):
    """The same server, but what joins does not come back as long as the test runs."""
    is_over = threading.Event()

    class Proxy(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if "SELECT DISTINCT ?x" in parse_qs(body.decode())["query"][0]:
                is_over.wait(250)
            headers = {name: self.headers[name] for name in ("Accept", "Content-Type")}
            reply = httpx.post(films[1], content=body, headers=headers, timeout=60)
            with suppress(OSError):
                self.send_response(reply.status_code)
                self.send_header("Content-Length", str(len(reply.content)))
                self.end_headers()
                self.wfile.write(reply.content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/query"
    is_over.set()
    server.shutdown()
    server.server_close()


def test_a_query_that_takes_too_long_is_given_up_in_plain_words(stalling, tmp_path):
    nodes = opened(stalling, tmp_path).kb.described
    hasty = SparqlEndpoint(stalling, politeness=Politeness(per_second=1000, timeout=5.0))
    with pytest.raises(StorageError, match=r"did not answer .*no whole reply within 5 seconds"):
        create("focus_plus").answer(QUESTIONS[1], OpenRemoteBase(SparqlKnowledgeBase(hasty, describe=lambda: nodes)))


def test_an_endpoint_that_cannot_be_read_is_asked_name_by_name(films, tmp_path):
    endpoint = SparqlEndpoint(films[1], politeness=Politeness(per_second=1000, page=5, most_rows=10))
    assert described_nodes(endpoint, EndpointVocabulary(), tmp_path) is None


def test_answers_over_a_real_graph_are_those_of_the_embedded_base(data, tmp_path):
    """STaRK Prime's mini base: 2,991 nodes with texts, 11,288 edges, and questions written for it."""
    mini = data / "stark_prime_mini"
    clew.build([mini / "nodes.jsonl.gz", mini / "edges.tsv.gz"], tmp_path / "mini.kb")
    write_ntriples(ArrayKnowledgeBase.open(tmp_path / "mini.kb"), tmp_path / "mini.nt")
    clew.build([tmp_path / "mini.nt"], tmp_path / "rdf.kb")
    lines = (mini / "queries.jsonl").read_text("utf-8").splitlines()
    questions = [json.loads(line)["query"] for line in lines[::150]]
    here = OpenBase.open(tmp_path / "rdf.kb", embedder="hash")
    with serving(tmp_path / "mini.nt") as address:
        there = OpenRemoteBase(opened(address, tmp_path / "endpoints").kb, embedder_given="hash")
        for question in questions:
            for method in ("focus_plus", "subgraph_reranking"):
                mine, theirs = (create(method).answer(question, tools) for tools in (here, there))
                assert told(theirs) == told(mine), (method, question)
