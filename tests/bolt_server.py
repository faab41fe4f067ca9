"""A real graph database on loopback that speaks Bolt: ArcadeDB, with the Java it needs, from its wheel."""

import itertools
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

USER, PASSWORD = "root", "a secret: p/ss@word"
PORTION = 2_000


@dataclass(frozen=True)
class GraphServer:
    """Where it listens; databases are made as they are needed."""

    bolt: int
    http: int

    def address(self, database: str) -> str:
        """The address of a database, without who asks."""
        return f"bolt://127.0.0.1:{self.bolt}/{database}"

    def create(self, database: str) -> str:
        """A new and empty database; returns its address."""
        self._post("server", {"command": f"create database {database}"})
        return self.address(database)

    def command(self, database: str, sql: str) -> None:
        """Something that Cypher has no words for."""
        self._post(f"command/{database}", {"language": "sql", "command": sql})

    def write(self, database: str, query: str, **parameters: object) -> None:
        """A query that changes a database."""
        import neo4j

        with (
            neo4j.GraphDatabase.driver(f"bolt://127.0.0.1:{self.bolt}", auth=(USER, PASSWORD)) as driver,
            driver.session(database=database) as session,
        ):
            session.run(query, parameters).consume()

    def load(self, kb, database: str) -> str:
        """Everything that a base in a folder holds, by Bolt; returns the address."""
        address = self.create(database)
        by_type: dict[str, list[dict]] = {}
        for number in range(len(kb)):
            node = kb.node(number)
            held = {
                "key": node.key,
                "name": node.name,
                "text": node.text or None,
                "aliases": list(node.aliases) or None,
            }
            by_type.setdefault(node.type, []).append({**held, **node.attributes})
        for kind, rows in by_type.items():
            self.command(database, f"CREATE VERTEX TYPE `{kind}`")
            self.command(database, f"CREATE PROPERTY `{kind}`.key STRING")
            self.command(database, f"CREATE INDEX ON `{kind}` (key) UNIQUE")
            for part in _portions(rows):
                self.write(database, f"UNWIND $rows AS row CREATE (n:`{kind}`) SET n = row", rows=part)
        edges: dict[tuple[str, str, str], list[dict]] = {}
        keys, kinds = kb.columns()["key"].to_pylist(), [kb.type_of(node) for node in range(len(kb))]
        for number in range(len(kb)):
            for triple in kb.triples(number):
                if triple.head == number:
                    place = (triple.relation, kinds[triple.head], kinds[triple.tail])
                    row = {"head": keys[triple.head], "tail": keys[triple.tail], "held": dict(triple.attributes)}
                    edges.setdefault(place, []).append(row)
        for (relation, head, tail), rows in edges.items():
            ends = f"MATCH (a:`{head}` {{key: row.head}}), (b:`{tail}` {{key: row.tail}})"
            for part in _portions(rows):
                query = f"UNWIND $rows AS row {ends} CREATE (a)-[r:`{relation}`]->(b) SET r = row.held"
                self.write(database, query, rows=part)
        return address

    def _post(self, path: str, content: dict[str, str]) -> None:
        url = f"http://127.0.0.1:{self.http}/api/v1/{path}"
        httpx.post(url, json=content, auth=(USER, PASSWORD), timeout=60).raise_for_status()


def _portions(rows: list[dict]) -> Iterator[list[dict]]:
    for first in range(0, len(rows), PORTION):
        yield rows[first : first + PORTION]


@contextmanager
def graph_server(folder: Path, heap: str = "512m") -> Iterator[GraphServer]:
    """A server of its own that keeps its databases in a folder."""
    package = find_spec("arcadedb_embedded")
    assert package is not None
    assert package.submodule_search_locations is not None
    home = Path(package.submodule_search_locations[0])
    server = GraphServer(*_free_ports())
    settings = {
        "arcadedb.server.rootPassword": PASSWORD,
        "arcadedb.server.rootPath": folder,
        "arcadedb.server.databaseDirectory": folder / "databases",
        "arcadedb.server.httpIncomingHost": "127.0.0.1",
        "arcadedb.server.httpIncomingPort": server.http,
        "arcadedb.server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        "arcadedb.bolt.host": "127.0.0.1",
        "arcadedb.bolt.port": server.bolt,
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    java = [home / "jre" / "bin" / "java", f"-Xmx{heap}", "-cp", f"{home / 'jars'}/*", *options]
    command = [*map(str, java), "com.arcadedb.server.ArcadeDBServer"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder) as running:
        try:
            _wait_for(server, running)
            yield server
        finally:
            running.terminate()
            running.wait()


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def _wait_for(server: GraphServer, running: subprocess.Popen) -> None:
    for _ in range(600):
        if running.poll() is not None:
            raise RuntimeError(f"the server ended with {running.returncode}")
        try:
            httpx.get(f"http://127.0.0.1:{server.http}/api/v1/ready", timeout=1).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("no graph database within a minute")


@pytest.fixture(scope="session")
def graphs(tmp_path_factory):
    """The server; tests are skipped where it cannot be had."""
    pytest.importorskip("neo4j", reason="neo4j is not installed: pip install 'clew-kb[neo4j]'")
    if find_spec("arcadedb_embedded") is None:
        pytest.skip("no graph database that speaks Bolt: pip install arcadedb-embedded")
    with graph_server(tmp_path_factory.mktemp("graphs")) as server:
        yield server


_NUMBERS = itertools.count()


@pytest.fixture
def database():
    """The name of a database that is not there yet."""
    return f"graph{next(_NUMBERS)}"
