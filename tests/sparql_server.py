"""A real SPARQL server on loopback for the tests that need one."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from sys import executable

import pytest

from clew.store.remote.sparql_endpoint import Politeness, ResultRow, SparqlEndpoint

SERVER = which("oxigraph", path=str(Path(executable).parent)) or which("oxigraph")
FAST = Politeness(per_second=1000)


@contextmanager
def serving(statements: Path) -> Iterator[str]:
    """The address of a server that holds a file of N-Triples or Turtle; its store lies beside the file."""
    if SERVER is None:
        pytest.skip("no oxigraph server: pip install oxigraph")
    store = statements.parent / "store"
    load = [SERVER, "load", "--location", store, "--file", statements]
    subprocess.run(load, check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve = [SERVER, "serve-read-only", "--location", store, "--bind", f"127.0.0.1:{port}"]
    server = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, server)
        yield f"http://127.0.0.1:{port}/query"
    finally:
        server.terminate()
        server.wait()


class Listening(SparqlEndpoint):
    """Remembers every query."""

    def __init__(self, url: str, politeness: Politeness = FAST) -> None:
        super().__init__(url, politeness=politeness)
        self.asked: list[str] = []

    def page(self, query: str) -> list[ResultRow]:
        """The rows of one query as it stands."""
        self.asked.append(query)
        return super().page(query)


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"the server ended with {server.returncode}")
