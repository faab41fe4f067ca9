"""Built, updated, migrated, read by several, cut off: a base in PostgreSQL from the command line and below."""

import json
import threading

import pytest

import clew
from clew.core.errors import FormatError, InputError, LockedError, NotFoundError, StorageError
from clew.store.building import build, into

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'clew-kb[postgres]'")
from clew.store.postgres import catalog, loading
from clew.store.postgres.connection import Address, connect
from clew.store.postgres.knowledge_base import PostgresKnowledgeBase

NODES = (
    "id,type,name,text\nG1,gene,FBN1,Encodes fibrillin.\nD1,disease,Marfan syndrome,A disorder of connective tissue.\n"
)
EDGES = "head,relation,tail\nG1,causes,D1\n"
QUESTION = "Which genes cause Marfan syndrome?"


@pytest.fixture
def sources(tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    return tmp_path


def generations(address: str) -> list[int]:
    """Of this base, those whose tables exist."""
    where = Address.parse(address)
    query = "SELECT g.id FROM clew.generation g JOIN clew.base b ON b.id = g.base WHERE b.name = %s ORDER BY 1"
    with connect(where) as connection:
        numbers = [number for (number,) in connection.execute(query, [where.base])]
        there = {name for (name,) in connection.execute("SELECT nspname FROM pg_namespace")}
    assert all(catalog.schema_of(number) in there for number in numbers)
    return numbers


def test_the_command_line_from_build_to_verify(run, sources, address):
    assert run("build", sources / "nodes.csv", sources / "edges.csv", "-o", address, "--embed", "all")[0] == 0
    code, shown, _ = run("ask", address, QUESTION, "--json")
    assert code == 0
    assert [answer["key"] for answer in json.loads(shown)["answers"]][:1] == ["G1"]
    assert json.loads(run("find", address, "marfan", "--json")[1])[0]["key"] == "D1"
    assert json.loads(run("show", address, "FBN1", "--json")[1])["neighbors"][0]["nodes"][0]["key"] == "D1"
    told = json.loads(run("info", address, "--json")[1])
    assert (told["nodes"], told["edges"], told["embedder"]) == (2, 1, "minilm")
    assert told["bytes"] > 0
    assert "causes" in run("schema", address)[1]
    (sources / "more.csv").write_text("id,type,name\nG2,gene,FBN2\n")
    (sources / "edges2.csv").write_text("head,relation,tail\nG2,causes,D1\n")
    assert run("update", address, sources / "more.csv", sources / "edges2.csv")[0] == 0
    code, shown, _ = run("ask", address, QUESTION, "--json")
    assert {answer["key"] for answer in json.loads(shown)["answers"][:2]} == {"G1", "G2"}
    assert clew.open(address).tools.vectors.is_complete  # as before the update
    assert run("embed", address, "--embedder", "hash")[0] == 0
    assert json.loads(run("info", address, "--json")[1])["embedder"] == "hash"
    assert run("verify", address)[0] == 0
    with connect(Address.parse(address)) as connection:
        schema = catalog.schema_of(generations(address)[-1])
        connection.execute(f"DELETE FROM {schema}.edges")
    code, _, error = run("verify", address)
    assert code == 1
    assert "0 edges instead of 2" in error


def test_an_update_equals_a_fresh_build(both, tmp_path):
    folder, address = both
    bases = [clew.open(place).update(delete_nodes=["P3"]) for place in (folder, address)]
    assert bases[0].tools.identity == bases[1].tools.identity
    assert bases[1].verify() == []


@pytest.fixture
def own_database(postgres):
    """One that no other test has filled."""
    with connect(Address.parse(f"{postgres}#none")) as connection:
        connection.execute("CREATE DATABASE several")
    return postgres.replace("/postgres?", "/several?")


def test_several_bases_live_in_one_database(own_database, sources, tiny_tables):
    small, tiny = f"{own_database}#small one", f"{own_database}#tiny"
    clew.build([sources / "nodes.csv", sources / "edges.csv"], small)
    into(tiny, lambda folder: build(tiny_tables, folder))
    assert (len(clew.open(small).tools.stored), len(clew.open(tiny).tools.stored)) == (2, 8)
    with pytest.raises(NotFoundError, match=r"no base 'other'.*there are: small one, tiny"):
        clew.open(f"{own_database}#other")


def test_a_reader_keeps_its_generation_until_it_lets_go(both):
    _, address = both
    reader = clew.open(address)
    before = reader.ask(QUESTION).to_dict()["answers"]
    clew.open(address).update(delete_nodes=["FBN1"])
    again = reader.ask(QUESTION).to_dict()["answers"]
    assert [answer["key"] for answer in before] == [answer["key"] for answer in again]
    assert len(clew.open(address).tools.stored) == 7
    assert len(generations(address)) == 2
    reader.tools.kb.release()
    clew.open(address).update(delete_nodes=["P4"])
    assert len(generations(address)) <= 2  # the one that the reader held is gone
    assert len(clew.open(address).tools.stored) == 6


def test_a_load_that_fails_changes_nothing(both, monkeypatch):
    _, address = both
    before = generations(address)

    def fail(*_):
        raise RuntimeError("the power went out")

    monkeypatch.setattr(loading, "load_postings", fail)
    with pytest.raises(RuntimeError, match="power"):
        clew.open(address).update(delete_nodes=["P3"])
    assert generations(address) == before
    assert len(clew.open(address).tools.stored) == 8


def test_a_change_that_another_one_overtook_is_refused(both, tmp_path, tiny_tables):
    folder, address = both
    where = Address.parse(address)
    old = catalog.current(where).id
    loading.publish(folder, where, old)
    with pytest.raises(LockedError, match="has changed meanwhile"):
        loading.publish(folder, where, old)


def test_a_second_writer_is_refused_at_once(both):
    folder, address = both
    with catalog.writing(Address.parse(address)), pytest.raises(LockedError, match="another process is writing"):
        loading.publish(folder, Address.parse(address))


def test_passwords_are_never_shown(run, sources):
    url = "postgresql://anna:s3cret@127.0.0.1:1/db#mine"
    for command in (("ask", url, "who?"), ("find", url, "x"), ("build", sources / "nodes.csv", "-o", url)):
        code, shown, error = run(*command)
        assert code == 1
        assert "postgresql://127.0.0.1:1/db#mine cannot be reached (connection failed: " in error
        assert "refused): is the server running?" in error
        assert "s3cret" not in shown + error
    assert "s3cret" not in repr(Address.parse(url))
    for command in (("check", url), ("dedup", url), ("repair", url), ("synth", url, "--out", sources / "out")):
        code, shown, error = run(*command)
        assert code == 2
        assert "s3cret" not in shown + error
    for wrong in ("postgresql://anna:s3cret@[::1/db", "postgresql://anna:s3cret@h/db?nonsense=1"):
        with pytest.raises(InputError, match="is not an address") as refused:
            clew.open(wrong)
        assert "s3cret" not in str(refused.value)


def test_a_connection_that_was_cut_is_replaced(both):
    _, address = both
    base = clew.open(address)
    base.ask(QUESTION)
    others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    with connect(Address.parse(address)) as connection:
        assert connection.execute(f"SELECT pg_terminate_backend(pid) {others}").fetchall()
    assert base.ask("What is associated with Bardet-Biedl syndrome?").candidates


def test_a_generation_that_is_gone_is_said_to_be_replaced(both):
    _, address = both
    base = clew.open(address)
    with connect(Address.parse(address)) as connection:
        number = generations(address)[-1]
        connection.execute(f"DROP SCHEMA {catalog.schema_of(number)} CASCADE")
        connection.execute("UPDATE clew.base SET generation = NULL WHERE generation = %s", [number])
        connection.execute("DELETE FROM clew.generation WHERE id = %s", [number])
    with pytest.raises(StorageError, match="was replaced while it was open: open it again"):
        base.tools.stored.node(0)


def test_threads_share_a_base(both):
    _, address = both
    base = clew.open(address)
    expected = [candidate.node for candidate in base.ask(QUESTION).candidates]
    found, errors = [], []

    def work():
        try:
            found.append([candidate.node for candidate in base.ask(QUESTION).candidates])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert found == [expected] * 8


def test_who_may_only_read_asks_all_the_same(both, postgres):
    _, address = both
    base = Address.parse(address).base
    with connect(Address.parse(postgres)) as connection:
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA clew TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA clew TO reader")
        schema = catalog.schema_of(generations(address)[-1])
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO reader")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader")
    reader = clew.open(f"{postgres.replace('postgres:@', 'reader:@')}#{base}")
    answer = reader.ask("fingers that are long", "vector_search")
    assert answer.candidates
    assert any("new vectors stay in memory" in fallback.instead for fallback in answer.fallbacks)
    assert (
        answer.to_dict()["answers"]
        == clew.open(address).ask("fingers that are long", "vector_search").to_dict()["answers"]
    )
    with pytest.raises(StorageError, match="permission denied"):
        reader.update(delete_nodes=["P1"])


def test_tables_of_other_versions(both, monkeypatch):
    _, address = both
    known = catalog.migrations()
    later = [
        *known,
        (90, "catalog", "CREATE TABLE clew.noted (what text)"),
        (91, "generation", "CREATE INDEX ON nodes (name)"),
    ]
    monkeypatch.setattr(catalog, "migrations", lambda: later)
    with pytest.raises(FormatError, match="this version needs 91"):
        clew.open(address)
    where = Address.parse(address)
    with connect(where) as connection:
        assert catalog.migrate(connection, where) == [90, 91]
        assert catalog.migrate(connection, where) == []
    assert len(PostgresKnowledgeBase.open(address)) == 8
    monkeypatch.setattr(catalog, "migrations", lambda: known)
    try:
        with pytest.raises(FormatError, match="upgrade clew"):
            clew.open(address)
        with pytest.raises(FormatError, match="upgrade clew"):
            clew.open(address)
    finally:
        with connect(where) as connection:
            connection.execute("DROP TABLE clew.noted; DELETE FROM clew.migration WHERE number >= 90")
    assert len(PostgresKnowledgeBase.open(address)) == 8
