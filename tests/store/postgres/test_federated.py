"""A graph at an endpoint or in a graph database, its names, texts and vectors in PostgreSQL: one base."""

import json
import random

import pyarrow as pa
import pytest

import clew
from bolt_server import PASSWORD, USER
from clew.answering.methods.catalog import create
from clew.core.errors import InputError, NotFoundError, SchemaError
from clew.core.types import NodeSet
from clew.store.building import build
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.rdf_export import write_ntriples
from clew.store.graph.tables import Piece, Tables
from clew.store.open_base import OpenBase
from clew.store.remote import sparql_schema
from clew.store.remote_bases import RemoteAddress, shown_place
from films import FILMS, QUESTIONS, told
from repeats import repeats
from sparql_server import serving

METHODS = ("bm25", "vector_search", "hybrid", "focus_plus", "subgraph_reranking", "aligned_paths")


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """The same statements as a base in a folder, and behind a server."""
    folder = tmp_path_factory.mktemp("films")
    (folder / "films.ttl").write_text(FILMS, "utf-8")
    clew.build([folder / "films.ttl"], folder / "films.kb")
    with serving(folder / "films.ttl") as address:
        yield folder / "films.kb", f"sparql+{address}"


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("method", METHODS)
def test_methods_answer_as_over_the_base_in_a_folder(films, address, method):
    folder, endpoint = films
    clew.build([endpoint], address, nodes_only=True)
    here, there = OpenBase.open(folder), OpenBase.open(f"{endpoint}#texts={address}")
    assert there.described.edge_count == 0
    options = {"with_relations": "false"} if method in ("bm25", "vector_search", "hybrid") else {}
    answered = 0
    for question in QUESTIONS:
        mine, theirs = (create(method, options).answer(question, tools) for tools in (here, there))
        assert told(theirs) == told(mine), question
        answered += bool(mine.candidates)
    assert answered > len(QUESTIONS) / 2


def test_the_command_line_fills_embeds_and_asks(films, address, run):
    _, endpoint = films
    both = f"{endpoint}#texts={address}"
    assert run("build", endpoint, "--nodes-only", "-o", address)[0] == 0
    assert json.loads(run("embed", both, "--json")[1])["vectors"] > 0
    assert json.loads(run("embed", both, "--json")[1])["vectors"] == 0
    assert OpenBase.open(both).vectors.is_complete
    found = json.loads(run("ask", both, QUESTIONS[1], "--json")[1])["answers"]
    assert {one["name"] for one in found[:2]} == {"Notorious", "Suspicion"}
    facts = json.loads(run("info", both, "--json")[1])
    assert (facts["kind"], facts["nodes"], facts["edges"]) == ("sparql", 15, 12)
    assert facts["texts"] == facts["vectors"]["place"] == shown_place(address)
    assert facts["vectors"]["complete"]
    shown = " ".join(run("info", both)[1].split())
    assert "the graph of a SPARQL endpoint; names and texts from postgresql://" in shown


def test_info_says_what_a_base_is_and_where_its_texts_come_from(films, address, run, monkeypatch):
    folder, endpoint = films
    clew.build([endpoint], address, nodes_only=True)
    for place, kind, shown in (
        (folder, "folder", "a base in a folder"),
        (address, "postgresql", "a base in PostgreSQL"),
        (endpoint, "sparql", "the graph of a SPARQL endpoint"),
    ):
        facts = json.loads(run("info", place, "--json")[1])
        assert (facts["kind"], facts["nodes"]) == (kind, 15)
        assert {row["name"]: row["count"] for row in facts["node_types"]}["film"] == 3
        printed = " ".join(run("info", place)[1].split())
        assert f"{shown}; names and texts from" in printed
        assert "computed as they are needed" in printed
    assert [row["name"] for row in facts["relations"]] == ["directed by", "genre", "starring", "subclass of"]
    monkeypatch.setattr(sparql_schema, "MOST_NAMED", 1)
    monkeypatch.setenv("CLEW_CACHE", str(folder.parent / "other cache"))
    facts = json.loads(run("info", endpoint, "--json")[1])
    assert (facts["nodes"], facts["texts"], facts["vectors"]) == (None, None, None)
    assert "uncounted nodes" in run("info", endpoint)[1]
    assert "names are looked up there" in " ".join(run("info", endpoint)[1].split())
    code, _, error = run("build", endpoint, "-o", folder.parent / "whole.kb")
    assert (code, "--nodes-only" in error) == (2, True)


def test_vectors_under_a_filter_are_exact_whatever_the_planner_prefers(address, tmp_path):
    rng = random.Random(0)
    rows = [{"key": f"N{place:05d}", "name": " ".join(rng.choices("abcdefghij", k=6))} for place in range(2_500)]
    for place in (address, tmp_path / "kb"):
        clew.build(Tables((Piece(pa.Table.from_pylist(rows), "n"),), ()), place)
        OpenBase.open(place, embedder="hash").embed_all()
    there = OpenBase.open(address, embedder="hash")
    table = there.vectors.store.table

    def work(connection):
        connection.execute(f"CREATE INDEX ON {table} USING hnsw (embedding vector_ip_ops)")
        connection.execute(f"ANALYZE {table}, vector_rows")
        connection.execute("SET enable_sort = off")  # rather by the index, which gives forty at most

    there.kb.database.do(work)
    here = OpenBase.open(tmp_path / "kb", embedder="hash")
    for some in (range(0, 2_500, 2), range(1_200)):
        one, other = (tools.vectors.search("a b c d e f", 50, among=NodeSet.of(list(some))) for tools in (here, there))
        assert one.nodes.tolist() == other.nodes.tolist()


def test_texts_may_come_from_elsewhere_by_the_names_of_nodes(films, address):
    people = {"hitchcock": "Alfred Hitchcock", "grant": "Cary Grant"}
    rows = [{"key": f"http://ex.org/{key}", "type": "person", "name": name, "text": ""} for key, name in people.items()]
    rows.append({"key": "http://ex.org/notorious", "type": "film", "name": "Notorious", "text": "Uranium in bottles."})
    clew.build(Tables((Piece(pa.Table.from_pylist(rows), "n"),), ()), address)
    base = clew.open(f"{films[1]}#texts={address}")
    assert [one.node.name for one in base.ask("uranium in bottles", method="bm25").candidates] == ["Notorious"]
    assert {ref["name"] for ref in base.neighbours("Notorious")["nodes"]} >= {"Alfred Hitchcock", "Cary Grant"}


# Who may see what


def hidden_tables(seed: int) -> tuple[Tables, dict[str, list[str]]]:
    """A random graph whose keys are IRIs, and who may see which of its nodes."""
    rng = random.Random(seed)
    kinds = {"film": 6, "person": 5, "kind": 3}
    keys = {kind: [f"http://ex.org/{kind}{place}" for place in range(count)] for kind, count in kinds.items()}
    nodes = [
        {
            "key": key,
            "type": kind,
            "name": f"{kind.title()} {chr(65 + place)}{rng.choice('xyz')}",
            "text": rng.choice(["", "Long ago."]),
        }
        for kind, own in keys.items()
        for place, key in enumerate(own)
    ]
    edges = {
        *(
            (rng.choice(keys["film"]), rng.choice(["made by", "starring"]), rng.choice(keys["person"]))
            for _ in range(14)
        ),
        *((rng.choice(keys["film"]), "genre", rng.choice(keys["kind"])) for _ in range(6)),
        *((rng.choice(keys["kind"]), "subclass of", rng.choice(keys["kind"])) for _ in range(3)),
    }
    ends = [{"head": head, "relation": relation, "tail": tail} for head, relation, tail in sorted(edges)]
    rules = {node["key"]: [rng.choice(["staff", "board"])] for node in rng.sample(nodes, 5)}
    return Tables((Piece(pa.Table.from_pylist(nodes), "n"),), (Piece(pa.Table.from_pylist(ends), "e"),)), rules


@pytest.mark.long
@pytest.mark.parametrize("seed", range(repeats(1, 4)))
def test_what_is_hidden_is_as_if_it_were_not_in_the_graph(tmp_path, address, seed):
    tables, rules = hidden_tables(seed)
    build(tables, tmp_path / "all.kb")
    write_ntriples(ArrayKnowledgeBase.open(tmp_path / "all.kb"), tmp_path / "all.nt")
    clew.build([tmp_path / "all.nt"], tmp_path / "rdf.kb", visible=rules)
    with serving(tmp_path / "all.nt") as server:
        clew.build([f"sparql+{server}"], address, nodes_only=True, visible=rules)
        whole = clew.open(f"sparql+{server}#texts={address}")
        names = [ref.name for ref in whole.tools.kb.refs(list(range(14)))]
        asked = [
            f"Which film is starring {name} and made by {other}?" for name, other in zip(names, names[5:], strict=False)
        ]
        asked += [f"How many films have the genre {name}?" for name in names if name.startswith("Kind")]
        for groups in ([], ["staff"], ["staff", "board"]):
            here = clew.open(tmp_path / "rdf.kb", groups=groups)
            there = clew.open(f"sparql+{server}#texts={address}", groups=groups)
            assert there.schema == here.schema
            every = NodeSet.range(here.tools.stored.count)
            assert there.tools.kb.degrees(every.array).tolist() == here.tools.kb.degrees(every.array).tolist()
            assert there.tools.kb.relations(every) == here.tools.kb.relations(every)
            for question in asked:
                mine, theirs = (base.ask(question, method="focus_plus") for base in (here, there))
                assert told(theirs) == told(mine), question
                assert "sparql" not in {span.name for span in theirs.trace}
            hidden = [key for key, allowed in rules.items() if not set(allowed) & set(groups)]
            for key in hidden:
                with pytest.raises(NotFoundError):
                    there.show(key)
            assert hidden or there.schema == whole.schema
            reopened = clew.open(there.tools.place)
            assert told(reopened.ask(asked[0], method="focus_plus")) == told(there.ask(asked[0], method="focus_plus"))
        with pytest.raises(SchemaError, match="no relation 'near'"):
            there.tools.kb.neighbors(every, "near")


# By Bolt


@pytest.fixture
def login(monkeypatch):
    monkeypatch.setenv("NEO4J_USERNAME", USER)
    monkeypatch.setenv("NEO4J_PASSWORD", PASSWORD)


@pytest.mark.parametrize("method", ["vector_search", "focus_plus", "subgraph_reranking"])
def test_a_graph_database_with_texts_in_postgresql_answers_as_the_base_in_a_folder(
    films, graphs, database, address, login, method
):
    graph = graphs.load(ArrayKnowledgeBase.open(films[0]), database)
    clew.build([graph], address, nodes_only=True)
    here, there = OpenBase.open(films[0]), OpenBase.open(f"{graph}#texts={address}")
    options = {"with_relations": "false"} if method == "vector_search" else {}
    for question in QUESTIONS:
        mine, theirs = (create(method, options).answer(question, tools) for tools in (here, there))
        assert told(theirs) == told(mine), question
    assert there.describe()["kind"] == "bolt"
    hidden = "http://ex.org/hitchcock"
    clew.build([graph], address, nodes_only=True, visible={hidden: ["board"]})
    for groups, count in (([], 0), (["board"], 2)):
        base = clew.open(f"{graph}#texts={address}", groups=groups)
        assert sum(row.count for row in base.schema.relations if row.name == "directed by") == 1 + count
    graphs.write(database, "CREATE (:film {key: 'new', name: 'Rope'})")
    answer = clew.open(f"{graph}#texts={address}").ask(QUESTIONS[0], method="focus_plus")
    assert any("has 1 nodes more than when they were read" in one.reason for one in answer.fallbacks)


def test_a_base_of_another_graph_is_refused(films, graphs, database, address, login):
    graph = graphs.load(ArrayKnowledgeBase.open(films[0]), database)
    clew.build([films[1]], address, nodes_only=True)
    with pytest.raises(InputError, match=r"postgresql://.* does not describe the nodes of bolt://.*--nodes-only"):
        clew.open(f"{graph}#texts={address}").ask(QUESTIONS[0])


# Addresses


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ("sparql+http://h/query", ("sparql+http://h/query", None, False)),
        ("sparql+http://h/query#texts=a.kb", ("sparql+http://h/query", "a.kb", False)),
        (
            "sparql+http://h/q?a=1#language=de&texts=postgresql://u@h/d?host=/s&port=5#b",
            ("sparql+http://h/q?a=1#language=de", "postgresql://u@h/d?host=/s&port=5#b", False),
        ),
        ("bolt://h:7687/films#only=postgresql://h/d#b", ("bolt://h:7687/films", "postgresql://h/d#b", True)),
    ],
)
def test_an_address_ends_with_the_base_of_its_texts(given, parts):
    address = RemoteAddress.parse(given)
    assert (address.graph, address.texts, address.is_part) == parts
    if address.texts:
        assert address.described_by(address.texts, is_part=address.is_part) == given


def test_what_cannot_be_is_said_without_passwords(run, tmp_path):
    with pytest.raises(InputError, match="#texts="):
        clew.open("sparql+http://127.0.0.1:9/query#texts=")
    code, _, error = run("build", tmp_path, "--nodes-only", "-o", tmp_path / "x.kb")
    assert (code, "needs one remote graph" in " ".join(error.split())) == (2, True)
    shown = shown_place("bolt://anna:secret@h:7687/films#texts=postgresql://anna:secret@h/d#b")
    assert shown == "bolt://h:7687/films#texts=postgresql://h/d#b"
