"""A real graph database on loopback, asked by Bolt, answers like the base that is built from the same files."""

import datetime
import json
import logging
import socket
import threading
import time

import pytest

import clew
from bolt_server import PASSWORD, USER
from clew.core.addresses import is_bolt
from clew.core.errors import InputError, NotFoundError, QueryRefusedError, SchemaError, SourceError, StorageError
from clew.core.types import NodeSet
from clew.models.settings import Settings
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.open_base import OpenBase
from clew.store.remote import cypher
from clew.store.remote.bolt import BoltServer, DatabaseLimits, GraphAddress
from clew.store.remote_bases import described_graph
from clew.store.sources.bolt import plain_value
from films import QUESTIONS, told

NODES = [
    {"key": "f1", "type": "film", "name": "Casablanca", "year": 1942, "shown": "1942-11-26", "tags": ["war", "love"]},
    {"key": "f2", "type": "film", "name": "Notorious", "year": 1946, "rating": 7.9, "classic": True},
    {"key": "f3", "type": "film", "name": "Suspicion", "year": 1941, "text": "A wife fears that her husband kills."},
    {"key": "k1", "type": "kind", "name": "spy film"},
    {"key": "k2", "type": "kind", "name": "thriller"},
    {"key": "p1", "type": "person", "name": "Michael Curtiz"},
    {"key": "p2", "type": "person", "name": "Alfred Hitchcock", "aliases": ["The Master of Suspense"]},
    {"key": "p3", "type": "person", "name": "Ingrid Bergman"},
    {"key": "p4", "type": "person", "name": "Cary Grant"},
]
EDGES = [
    ("f1", "directed_by", "p1", {}),
    ("f2", "directed_by", "p2", {}),
    ("f3", "directed_by", "p2", {}),
    ("f1", "starring", "p3", {"role": "Ilsa"}),
    ("f2", "starring", "p3", {"role": "Alicia"}),
    ("f2", "starring", "p4", {"role": "Devlin"}),
    ("f3", "starring", "p4", {"role": "Johnnie"}),
    ("f3", "starring", "p4", {"role": "a guest"}),
    ("f2", "genre", "k1", {}),
    ("f3", "genre", "k2", {}),
    ("k1", "subclass_of", "k2", {}),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The films as files, and as a base."""
    place = tmp_path_factory.mktemp("films")
    (place / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in NODES), "utf-8")
    edges = [{"head": head, "relation": relation, "tail": tail, **held} for head, relation, tail, held in EDGES]
    (place / "edges.jsonl").write_text("".join(json.dumps(edge) + "\n" for edge in edges), "utf-8")
    clew.build([place / "nodes.jsonl", place / "edges.jsonl"], place / "films.kb")
    return place


@pytest.fixture(scope="module")
def films(graphs, folder):
    """The base in its folder, and the address of the database that holds the same."""
    kb = ArrayKnowledgeBase.open(folder / "films.kb")
    return kb, graphs.load(kb, "films")


@pytest.fixture(autouse=True)
def login(monkeypatch, tmp_path):
    """Who asks, as the environment says."""
    monkeypatch.setenv("NEO4J_USERNAME", USER)
    monkeypatch.setenv("NEO4J_PASSWORD", PASSWORD)
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))


def remote(address):
    return OpenBase.open(address).kb


def test_every_part_of_the_graph_is_that_of_the_embedded_base(films):
    kb, address = films
    there = remote(address)
    assert there.schema == kb.schema
    assert there.nodes() == kb.nodes()
    assert there.nodes("person") == kb.nodes("person")
    assert there.values(kb.nodes("film"), "year") == list(kb.values(kb.nodes("film"), "year"))
    for node in range(len(kb)):
        one = NodeSet.of([node])
        assert there.node(node) == kb.node(node)
        assert there.text(node) == kb.text(node)
        assert there.relations(one) == kb.relations(one)
        assert there.triples(node) == kb.triples(node)
        for direction in ("out", "in", "any"):
            assert there.neighbors(one, None, direction) == kb.neighbors(one, None, direction)
            assert rows(there.edges(one, None, direction)) == rows(kb.edges(one, None, direction))
            assert rows(there.edges(one, "starring", direction)) == rows(kb.edges(one, "starring", direction))
    assert there.degrees(kb.nodes().array).tolist() == kb.degrees(kb.nodes().array).tolist()
    film, actor = kb.find("f3"), kb.find("p4")
    assert there.find("f3") == film
    assert there.edge_attributes(film, "starring", actor) == kb.edge_attributes(film, "starring", actor)
    assert there.edge_attributes(film, "directed_by", actor) == []
    few = remote(address).edges_to(NodeSet.of([actor]), NodeSet.of([film]), None, "any")
    assert few.heads.tolist() == [film, film], "no more than these are asked for"


def test_neighbours_of_many_nodes_come_in_portions(films, monkeypatch):
    kb, address = films
    monkeypatch.setattr(cypher, "BATCH", 2)
    there = remote(address)
    assert there.neighbors(kb.nodes(), "starring", "out") == kb.neighbors(kb.nodes(), "starring", "out")
    assert rows(there.edges(kb.nodes())) == rows(kb.edges(kb.nodes()))


@pytest.mark.parametrize("method", ["auto", "focus_plus", "four_step_focus", "aligned_paths", "subgraph_reranking"])
def test_methods_answer_as_over_the_base_in_a_folder(films, folder, method):
    here, there = clew.open(folder / "films.kb"), clew.open(films[1])
    for question in QUESTIONS:
        assert told(there.ask(question, method)) == told(here.ask(question, method)), question


def test_the_query_of_an_answer_runs_at_the_database(films):
    base = clew.open(films[1])
    for question in QUESTIONS[:4]:
        answer = base.ask(question, "focus_plus")
        assert "sparql" not in answer.query
        found = {key for [key] in base.tools.kb.server.rows(answer.query["cypher"])}
        assert found == {candidate.node.key for candidate in answer.matches}


def test_it_is_explored_like_any_base(films, folder):
    here, there = clew.open(folder / "films.kb"), clew.open(films[1])
    assert there.find("alfred hitchcok")[0].key == "p2"
    assert there.find("alfred hitchcok") == here.find("alfred hitchcok")
    assert there.show("Notorious") == here.show("Notorious")
    assert there.neighbours("p4") == here.neighbours("p4")
    assert str(there.subgraph("Casablanca", "Cary Grant")) == str(here.subgraph("Casablanca", "Cary Grant"))


def test_what_is_built_by_bolt_is_what_is_built_of_the_files(films, tmp_path):
    kb, address = films
    clew.build([address], tmp_path / "by_bolt.kb")
    built = ArrayKnowledgeBase.open(tmp_path / "by_bolt.kb")
    assert built.schema == kb.schema
    assert built.columns().equals(kb.columns())
    assert built.edge_columns.equals(kb.edge_columns)
    assert rows(built.edges(built.nodes(), None, "out")) == rows(kb.edges(kb.nodes(), None, "out"))
    assert kb.node(kb.find("f1")).attributes["shown"] == datetime.date(1942, 11, 26)


def test_the_command_line_builds_and_asks(films, run, tmp_path):
    assert "9 nodes, 11 edges" in run("build", films[1], "-o", tmp_path / "films.kb")[1]
    assert "Michael Curtiz" in run("ask", films[1], "Who directed Casablanca?")[1]
    assert "directed_by" in run("show", films[1], "Casablanca")[1]
    assert "directed_by" in run("schema", films[1])[1]


def test_edges_are_those_of_this_moment_and_nodes_are_read_again_when_there_are_more(graphs, database, folder):
    kb = ArrayKnowledgeBase.open(folder / "films.kb")
    address = graphs.load(kb, database)
    first = remote(address)
    film = NodeSet.of([first.find("f1")])
    assert len(first.neighbors(film, "starring")) == 1
    graphs.write(database, "MATCH (f {key: 'f1'}), (p {key: 'p4'}) CREATE (f)-[:starring]->(p)")
    later = remote(address)
    assert len(later.neighbors(film, "starring")) == 2
    graphs.write(database, "MATCH (f {key: 'f1'}) CREATE (f)-[:starring]->(:person {key: 'p5', name: 'Bogart'})")
    assert len(later.neighbors(film, "starring")) == 2, "what came after the nodes were read is left out"
    again = remote(address)
    names = {ref.name for ref in again.refs(again.neighbors(film, "starring").array)}
    assert names == {"Ingrid Bergman", "Cary Grant", "Bogart"}


def test_transactions_only_read(films, caplog):
    server = remote(films[1]).server
    with caplog.at_level(logging.DEBUG, "neo4j"):
        server.rows("MATCH (n) RETURN count(n)")
    begun = [record.getMessage() for record in caplog.records if "BEGIN" in record.getMessage()]
    assert begun
    assert all("'mode': 'r'" in message for message in begun)


# Keys and names


def test_without_a_key_nodes_go_by_the_ids_of_their_elements(graphs, database):
    address = graphs.create(database)
    graphs.write(database, "CREATE (:Person {name: 'Ann'})-[:ACTED_IN]->(:Movie {title: 'Up', year: 2009})")
    kb = remote(address)
    assert {ref.name for ref in kb.refs(kb.nodes().array)} == {"Ann", "Up"}
    assert kb.key_property is None
    assert all(ref.key.startswith("#") for ref in kb.refs(kb.nodes().array))
    answer = clew.open(address).ask("Which movie did Ann act in?", "focus_plus")
    assert answer.candidates[0].node.name == "Up"
    assert kb.server.rows(answer.query["cypher"]) == [[answer.candidates[0].node.key]]


def test_ids_that_only_labels_tell_apart_have_the_label_before_them(graphs, database, tmp_path):
    address = graphs.create(database)
    graphs.write(database, "CREATE (:Person {id: 1, name: 'Ann'})-[:ACTED_IN]->(:Movie {id: 1, name: 'Up'})")
    kb = remote(address)
    assert [ref.key for ref in kb.refs(kb.nodes().array)] == ["Movie/1", "Person/1"]
    clew.build([address], tmp_path / "base.kb")
    assert ArrayKnowledgeBase.open(tmp_path / "base.kb").find("Movie/1") == 0


def test_a_key_that_is_asked_for_has_to_tell_nodes_apart(films, run, tmp_path):
    code, _, said = run("build", films[1], "-o", tmp_path / "base.kb", "--map", "key=rating")
    assert code == 2
    assert "--map key=rating: few nodes have this property" in " ".join(said.split())


def test_hostile_names_are_names(graphs, database):
    label, kind, held = "x`) DETACH DELETE n //", "r`]->() DELETE r //", "p`: 1}) //"
    address = graphs.create(database)
    quote = cypher.quoted
    graphs.write(
        database,
        f"CREATE (a:{quote(label)} {{key: 'a', name: 'Ann', {quote(held)}: $value}})-[:{quote(kind)}]->"
        f"(b:{quote(label)} {{key: \"b' OR true //\", name: 'Bob'}})",
        value="'} RETURN n //",
    )
    kb = remote(address)
    assert kb.schema.relation_names == (kind,)
    assert kb.schema.type_names == (label,)
    ann, bob = kb.find("a"), kb.find("b' OR true //")
    assert kb.neighbors(NodeSet.of([ann]), kind, "out") == NodeSet.of([bob])
    assert kb.node(ann).attributes[held] == "'} RETURN n //"
    answer = clew.open(address).ask("What is [Ann] joined to?", "aligned_paths")
    assert kb.server.rows("MATCH (n) RETURN count(n)") == [[2]]
    assert answer.query


@pytest.mark.parametrize(
    ("value", "plain"),
    [([1, b"x"], [1, None]), (b"x", None), ("a", "a"), (None, None), ((1.5, 2.0), "1.5, 2.0")],
)
def test_values_become_plain_ones(value, plain):
    assert plain_value(value) == plain


def test_moments_become_dates_or_texts():
    times = pytest.importorskip("neo4j.time")
    assert plain_value(times.Date(2020, 1, 2)) == datetime.date(2020, 1, 2)
    assert plain_value(times.DateTime(2020, 1, 2, 3)) == datetime.datetime(2020, 1, 2, 3)
    assert plain_value(times.Time(3, 4)) == "03:04:00.000000000"
    assert plain_value(times.Duration(days=1)) == "P1D"


# What can go wrong


def test_an_unknown_relation_key_or_node_is_said(films):
    kb = remote(films[1])
    with pytest.raises(SchemaError, match="no relation 'near'"):
        kb.neighbors(NodeSet.of([0]), "near")
    with pytest.raises(NotFoundError):
        kb.find("nobody")


def test_a_dead_server_is_named(run):
    pytest.importorskip("neo4j")
    code, _, said = run("ask", "bolt://127.0.0.1:9/graph", "Who?")
    assert code == 1
    assert "bolt://127.0.0.1:9/graph cannot be reached by Bolt" in " ".join(said.split())


def test_a_wrong_password_is_said_and_none_is_shown(films, monkeypatch, run):
    monkeypatch.setenv("NEO4J_PASSWORD", "a wrong secret")
    code, out, said = run("ask", films[1], "Who?")
    assert code == 1
    wanted = "rejects the user 'root' with this password: set NEO4J_USERNAME and NEO4J_PASSWORD"
    assert wanted in " ".join(said.split())
    assert "secret" not in out + said
    monkeypatch.delenv("NEO4J_PASSWORD")
    assert "rejects anonymous users" in " ".join(run("ask", films[1], "Who?")[2].split())


def test_the_password_is_nowhere_to_be_seen(films, run, tmp_path):
    kb = remote(films[1])
    assert PASSWORD in GraphAddress(kb.place).parts.password.replace("%20", " ").replace("%2F", "/").replace(
        "%40", "@"
    ).replace("%3A", ":")
    shown = [repr(kb), str(kb.server.address), repr(kb.server.address), repr(OpenBase.open(films[1]))]
    trace = tmp_path / "trace.jsonl"
    run("ask", films[1], "Who directed Casablanca?", "--trace", trace)
    shown.append(trace.read_text("utf-8"))
    assert '"cypher"' in shown[-1]
    clew.build([films[1]], tmp_path / "films.kb")
    shown += [file.read_text("latin-1") for file in tmp_path.rglob("*") if file.is_file()]
    for text in shown:
        assert PASSWORD not in text
        assert "ss%40word" not in text


def test_a_database_that_is_not_there_and_a_query_that_is_none_are_refused(graphs, films):
    with pytest.raises(QueryRefusedError, match="DatabaseNotFound"):
        remote(graphs.address("nowhere")).nodes()
    with pytest.raises(QueryRefusedError, match="SyntaxError"):
        remote(films[1]).server.rows("MATCH (n RETURN n")


def test_an_empty_graph_is_said_to_be(graphs, database):
    address = graphs.create(database)
    for use in (lambda: remote(address).nodes(), lambda: clew.build([address], "/nowhere/base.kb")):
        with pytest.raises(SourceError, match="no nodes"):
            use()


def test_a_graph_without_edges_can_be_asked(graphs, database):
    address = graphs.create(database)
    graphs.write(database, "CREATE (:note {key: 'a', name: 'Ann', text: 'Likes long walks.'})")
    answer = clew.open(address).ask("Who likes walks?")
    assert answer.candidates[0].node.key == "a"


def test_a_graph_that_is_too_large_to_be_read_can_be_built(films, monkeypatch):
    monkeypatch.setattr(cypher, "MOST_READ", 8)
    with pytest.raises(InputError, match=r"has 9 nodes, more than the 8 .*`clew build bolt://127.* -o BASE.kb`"):
        remote(films[1]).nodes()


def test_too_many_rows_are_refused(films):
    server = BoltServer(remote(films[1]).server.address, DatabaseLimits(most_rows=8))
    with pytest.raises(StorageError, match="more than 8 rows"):
        server.rows("MATCH (n) RETURN n.key")


def test_a_server_that_says_nothing_is_given_up():
    pytest.importorskip("neo4j")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        server = BoltServer(GraphAddress(f"bolt://127.0.0.1:{silent.getsockname()[1]}"), DatabaseLimits(seconds=1))
        begun = time.monotonic()
        with pytest.raises(StorageError, match="did not answer a query within 1 seconds"):
            server.rows("RETURN 1")
        assert time.monotonic() - begun < 60  # the driver would wait without end


def test_a_server_that_answers_with_an_unknown_message_is_refused():
    pytest.importorskip("neo4j")

    def lie(listening: socket.socket) -> None:
        with listening.accept()[0] as caller:
            for reply in (b"\0\0\3\5", b"\0\2\xb0\x55\0\0"):  # Bolt 5.3, then a message that it does not have
                caller.recv(4096)
                caller.sendall(reply)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=lie, args=(listening,), daemon=True).start()
        server = BoltServer(GraphAddress(f"bolt://127.0.0.1:{listening.getsockname()[1]}"))
        with pytest.raises(StorageError, match="does not use Bolt"):
            server.rows("RETURN 1")


def test_a_slow_query_is_given_up(films):
    server = BoltServer(remote(films[1]).server.address, DatabaseLimits(seconds=0.5))
    slow = "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b RETURN count(*)"
    with pytest.raises(StorageError, match=r"did not answer a query within 0\.5 seconds|Timeout|timed out"):
        server.rows(slow)


@pytest.mark.parametrize("address", ["bolt://", "neo4j://user:secret@", "bolt://host:port/db", "bolt://host:0"])
def test_an_address_without_a_server_is_refused_without_its_password(address):
    with pytest.raises(InputError, match=r"has no server: expected (bolt|neo4j)://USER@HOST:7687/DATABASE") as refused:
        str(GraphAddress(address))
    assert "secret" not in str(refused.value)


def test_what_was_read_is_kept_for_who_asks(films, tmp_path):
    address = remote(films[1]).server.address
    described_graph(BoltServer(address), tmp_path / "graphs")
    other = GraphAddress(address.url.replace("//root:", "//Root:"))
    assert str(other) == str(address)
    assert other.user != address.user
    assert len(list((tmp_path / "graphs").iterdir())) == 1


# Addresses and passwords


def test_the_schemes_of_neo4j_are_addresses_and_no_others():
    assert all(map(is_bolt, ("bolt://h", "bolt+s://h", "bolt+ssc://h", "neo4j://h", "neo4j+s://h")))
    assert not any(map(is_bolt, ("postgresql://h", "http://h", "nodes.csv", None)))


def test_the_password_comes_from_the_address_the_file_or_the_environment(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('[keys]\n"bolt://h:7687/db" = "filed@"\n"other" = "by host"\n', "utf-8")
    file.chmod(0o600)
    given = {"CLEW_CONFIG": str(file), "NEO4J_PASSWORD": "e/v", "HOME": str(tmp_path)}
    settings = Settings.load(given)
    assert settings.with_login("bolt://ann:own@h:7687/db") == "bolt://ann:own@h:7687/db"
    assert settings.with_login("bolt://ann@h:7687/db") == "bolt://ann:filed%40@h:7687/db"
    assert settings.with_login("neo4j://other") == "neo4j://neo4j:by%20host@other"
    assert settings.with_login("bolt://third") == "bolt://neo4j:e%2Fv@third"
    assert Settings.load({"HOME": str(tmp_path)}).with_login("bolt://third") == "bolt://third"
    assert "e/v" not in repr(settings)


def rows(edges):
    return sorted(zip(edges.heads.tolist(), edges.relations.tolist(), edges.tails.tolist(), strict=True))
