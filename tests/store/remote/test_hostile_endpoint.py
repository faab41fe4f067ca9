"""An endpoint may answer anything: Clew gives up in plain words, within bounds, and follows it nowhere."""

import gzip
import json
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest

from clew.answering.methods.catalog import ask, create
from clew.core.errors import ClewError, StorageError
from clew.core.kept_texts import KeptTexts
from clew.models.protocol import Completion
from clew.models.reply_store import ReplyStore
from clew.store.open_base import OpenRemoteBase
from clew.store.remote.sparql import SparqlKnowledgeBase
from clew.store.remote.sparql_endpoint import Politeness, SparqlEndpoint

Reply = Callable[[BaseHTTPRequestHandler, str], None]
QUERY = "SELECT ?s WHERE { ?s ?p ?o }"
HASTE = Politeness(timeout=1.0, attempts=2, per_second=1000, page=10, seconds=2.0, most_rows=200, most_bytes=50_000)


@pytest.fixture
def serve() -> Iterator[Callable[[Reply], str]]:
    """Starts a server that answers each query as it is told, and gives its address."""
    servers = []

    def start(reply: Reply) -> str:
        class Endpoint(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                with suppress(OSError):
                    reply(self, parse_qs(body)["query"][0])

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}/query"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def send(handler: BaseHTTPRequestHandler, content: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(content)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(content)


def rows_of(*values: object) -> bytes:
    bound = [{"s": {"type": "uri", "value": f"http://x/{value}"}} for value in values]
    return json.dumps({"results": {"bindings": bound}}).encode()


def test_an_endpoint_that_ignores_the_offset_is_not_paged_for_ever(serve):
    endpoint = SparqlEndpoint(serve(lambda handler, _: send(handler, rows_of(*range(10)))), politeness=HASTE)
    with pytest.raises(StorageError, match="the same page"):
        endpoint.rows(QUERY, ordered_by="?s")


def test_an_endpoint_that_has_no_end_is_left(serve):
    def endless(handler, query):
        first = int(query.rpartition("OFFSET ")[2])
        send(handler, rows_of(*range(first, first + 10)))

    with pytest.raises(StorageError, match="more than 200 rows"):
        SparqlEndpoint(serve(endless), politeness=HASTE).rows(QUERY, ordered_by="?s")


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_reply_without_end_is_given_up(serve, packed):
    content = b" " * 1_000_000
    headers = {"Content_Encoding": "gzip"} if packed else {}
    told = serve(lambda handler, _: send(handler, gzip.compress(content) if packed else content, **headers))
    with pytest.raises(StorageError, match="longer than 50,000 bytes"):
        SparqlEndpoint(told, politeness=HASTE).page(QUERY)


@pytest.mark.parametrize("silent", [True, False], ids=["silent", "dripping"])
def test_an_endpoint_that_is_silent_or_drips_is_asked_once(serve, silent):
    asked = []

    def slow(handler, query):
        asked.append(query)
        if not silent:
            handler.send_response(200)
            handler.send_header("Content-Length", "1000000")
            handler.end_headers()
        for _ in range(30):
            time.sleep(0.1)
            if not silent:
                handler.wfile.write(b" " * 100)
                handler.wfile.flush()

    with pytest.raises(StorageError, match="no whole reply within 1 seconds"):
        SparqlEndpoint(serve(slow), politeness=HASTE).page(QUERY)
    assert len(asked) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(serve, status):
    seen = []
    elsewhere = serve(lambda handler, query: (seen.append(query), send(handler, rows_of(1))))
    told = serve(lambda handler, _: send(handler, b"", status, Location=elsewhere))
    with pytest.raises(StorageError, match="redirects"):
        SparqlEndpoint(told, politeness=HASTE).page(QUERY)
    assert seen == []


TERMS = [
    *({"type": "uri", "value": value} for value in ("http://x/a", "", "a> <b", "a\nb", "http://x/\ud800", 'x"y')),
    *({"type": "literal", "value": value} for value in ("1", "x\x00\x1b\u2028", "\udc00", '"\\', "9" * 5000, "")),
    {"type": "literal", "value": "a", "xml:lang": "en> ; DROP"},
    {"type": "literal", "value": "a", "datatype": "x> y"},
    {"type": "bnode", "value": "b0"},
]
ODD = [{}, [], 3, None, {"type": "uri"}, {"type": 3, "value": 4}, {"value": "x"}, "text", True]


def test_whatever_an_endpoint_says_is_an_answer_or_an_error_of_clew(serve):
    pick = random.Random(11)

    def anything(handler, query):
        names = [name.strip("?)}") for name in query.split() if name.startswith("?")] or ["s"]
        bound = [
            {name: pick.choice(TERMS if pick.random() < 0.9 else ODD) for name in names if pick.random() < 0.9}
            for _ in range(pick.randrange(8))
        ]
        body = json.dumps({"results": {"bindings": bound}}).encode()
        shape = pick.random()
        if shape < 0.1:
            body = json.dumps(pick.choice([{}, [], None, 3, {"results": 1}, {"results": {"bindings": [1]}}])).encode()
        elif shape < 0.2:
            body = pick.choice([b"[" * 100_000, b"\xff\xfe", b"", b"<html>", body[: len(body) // 2]])
        send(handler, body, pick.choice([200] * 12 + [400, 404, 503, 204]))

    address = serve(anything)
    for _ in range(40):
        haste = Politeness(timeout=2.0, attempts=1, per_second=10_000, page=4, seconds=5.0)
        kb = SparqlKnowledgeBase(SparqlEndpoint(address, politeness=haste))
        with suppress(ClewError):
            ask(create("auto"), "Which phenotype does [Marfan syndrome] have?", OpenRemoteBase(kb, None, "hash"))


@pytest.mark.parametrize("kind", ["texts", "replies"])
def test_a_damaged_cache_gives_what_was_kept_or_nothing_or_an_error(tmp_path, kind):
    whole = _kept(tmp_path / "first.sqlite", kind)
    pick = random.Random(3)
    for turn in range(120):
        file = tmp_path / f"{turn}.sqlite"
        content = bytearray(whole)
        for _ in range(pick.randrange(1, 5)):
            content[pick.randrange(len(content))] ^= 1 << pick.randrange(8)
        file.write_bytes(content[: pick.randrange(len(content))] if pick.random() < 0.2 else content)
        with suppress(StorageError):
            store = KeptTexts(file) if kind == "texts" else ReplyStore(file)
            found = store.get([f"k{n}" for n in range(40)])
            for key, value in found.items():
                text = value if isinstance(value, str) else value.text
                assert text == f"text of {key} " * 20
            store.put("new", "x" if kind == "texts" else Completion("x"))


def _kept(file, kind) -> bytes:
    store = KeptTexts(file) if kind == "texts" else ReplyStore(file)
    for n in range(40):
        text = f"text of k{n} " * 20
        store.put(f"k{n}", text if kind == "texts" else Completion(text))
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file.read_bytes()


def test_a_cache_of_the_first_format_is_read_and_goes_on(tmp_path):
    file = tmp_path / "replies.sqlite"
    with sqlite3.connect(file) as old:
        old.execute("CREATE TABLE reply (key TEXT PRIMARY KEY, value TEXT NOT NULL, size INTEGER, used REAL)")
        old.execute("INSERT INTO reply VALUES ('a', 'kept before', 11, 0)")
        old.execute("PRAGMA user_version = 1")
    store = KeptTexts(file)
    store.put("b", "kept now")
    assert KeptTexts(file).get(["a", "b"]) == {"a": "kept before", "b": "kept now"}


def test_what_is_kept_is_capped(tmp_path):
    store = KeptTexts(tmp_path / "kept.sqlite", cap=10_000)
    for n in range(100):
        store.put(f"k{n}", "x" * 500)
    assert len(store) <= 20
