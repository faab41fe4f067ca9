"""What a server must not let itself be talked into: floods under many names, half requests, odd hosts, open files."""

import contextlib
import json
import re
import socket
import stat
import time
from dataclasses import replace

import httpx
import pytest
from fastapi.testclient import TestClient

from clew.server.access import Access, Grant, digest_of
from clew.server.app import create_app
from clew.server.settings import ClientLimits, ServerSettings, named_bases
from clew.store.building import build
from conftest import tables
from web_server import running

TOKEN = "0123456789abcdef"


@pytest.fixture(scope="module")
def settings(tmp_path_factory) -> ServerSettings:
    folder = tmp_path_factory.mktemp("limits") / "tiny.kb"
    build(tables(), folder)
    return ServerSettings(named_bases([folder]))


def client(settings: ServerSettings, **more) -> TestClient:
    changed = ServerSettings(settings.bases, **more)
    return TestClient(create_app(changed), base_url="http://localhost")


def test_wrong_tokens_and_forwarded_addresses_do_not_make_new_clients(settings):
    access = Access((Grant("clinic", digest_of(TOKEN)),))
    page = client(settings, access=access, limits=ClientLimits(per_minute=5))
    statuses = [
        page.get("/v1/bases", headers={"authorization": f"Bearer wrong-{turn}", "x-forwarded-for": f"10.0.0.{turn}"})
        for turn in range(8)
    ]
    assert [one.status_code for one in statuses] == [401] * 5 + [429] * 3
    known = page.get("/v1/bases", headers={"authorization": f"Bearer {TOKEN}"})
    assert known.status_code == 200, "a flood of strangers does not shut a known token out"


def test_a_real_server_believes_no_forwarded_address(settings):
    import httpx

    forwarded = [{"x-forwarded-for": f"10.0.0.{turn}"} for turn in range(5)]
    with running(ServerSettings(settings.bases, limits=ClientLimits(per_minute=3))) as address:
        replies = [httpx.get(f"{address}/v1/bases", headers=turn, timeout=60) for turn in forwarded]
    assert [reply.status_code for reply in replies] == [200] * 3 + [429] * 2


@pytest.mark.parametrize(
    "host", ["evil.example]", "[evil.example]", "localhost@evil.example", "[::1", "", "localhost:x"]
)
def test_a_host_that_is_none_is_refused(settings, host):
    assert client(settings).get("/v1/bases", headers={"host": host}).status_code == 421


@pytest.mark.parametrize(
    "origin",
    ["http://[", "http://]", "[", "//localhost", "ftp://localhost", "http://localhost@evil.example", "", "x" * 9],
)
def test_an_origin_that_is_none_is_refused(settings, origin):
    assert client(settings).get("/v1/bases", headers={"origin": origin}).status_code == 403


def test_the_hosts_of_this_machine_are_welcome(settings):
    page = client(settings)
    for host in ("localhost", "localhost:8321", "127.0.0.1:80", "[::1]", "[::1]:8321"):
        assert page.get("/v1/bases", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "half",
    [
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n",
        (
            b"POST /v1/bases/tiny/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b'Content-Length: 90\r\n\r\n{"question": "a'
        ),
        b"",
    ],
)
def test_half_a_request_is_not_waited_for(settings, half):
    is_head_whole = b"\r\n\r\n" in half
    limits = ClientLimits(head_seconds=60 if is_head_whole else 0.2, body_seconds=0.2)
    with running(ServerSettings(settings.bases, limits=limits)) as address:
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
            told = b""
            with contextlib.suppress(ConnectionError):  # closed before anything was sent
                line.sendall(half)
                while piece := line.recv(4096):
                    told += piece
    assert told.startswith(b"HTTP/1.1 408") == is_head_whole


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="nothing tells here whether a connection is open")
def test_a_client_that_takes_nothing_of_its_replies_is_dropped(settings):
    with running(ServerSettings(settings.bases, limits=ClientLimits(per_minute=100_000, reply_seconds=0.2))) as address:
        with asking_for_much(address, 8_000) as line:
            for _ in range(600):
                state = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
                if state != 1:  # no longer established
                    break
                time.sleep(0.1)
            assert state != 1
        assert httpx.get(f"{address}/health").status_code == 200


def test_a_client_that_takes_its_replies_late_gets_them_whole(settings):
    with running(ServerSettings(settings.bases, limits=ClientLimits(per_minute=100_000, reply_seconds=60))) as address:
        size = len(httpx.get(f"{address}/static/main.js").content)
        with asking_for_much(address, 100) as line:
            time.sleep(0.5)
            line.setblocking(True)
            received = 0
            while received < 100 * size:
                received += len(line.recv(1 << 16))
    assert received >= 100 * size


@contextlib.contextmanager
def asking_for_much(address, requests):
    """A connection with so many requests for the program of the page, and little room for the replies."""
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.settimeout(60)
        line.connect(("127.0.0.1", int(address.rpartition(":")[2])))
        line.setblocking(False)
        line.send(b"GET /static/main.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * requests)
        yield line


def test_runs_on_disk_are_for_their_owner_alone(settings, tmp_path):
    page = client(settings, runs=tmp_path / "runs")
    run = page.post("/v1/bases/tiny/ask", json={"question": "extra fingers", "method": "bm25"}).json()["run"]
    file = tmp_path / "runs" / "tiny" / f"{run}.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_pages_answer_a_head_without_a_body(settings):
    page = client(settings)
    for path in ("/", "/static/main.js", "/health", "/openapi.json"):
        reply = page.head(path)
        assert reply.status_code == 200, path
        assert reply.content == b""


def test_the_description_names_the_token_and_has_examples_that_work(settings):
    page = client(settings)
    described = page.get("/openapi.json").json()
    assert described["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    asking = described["paths"]["/v1/bases/{base}/ask"]["post"]
    assert {"token": []} in asking["security"]
    assert "security" not in described["paths"]["/health"]["get"]
    for path, method in (("/v1/bases/{base}/ask", "post"), ("/v1/chat/completions", "post"), ("/mcp", "post")):
        examples = described["paths"][path][method]["requestBody"]["content"]["application/json"]["examples"]
        for example in examples.values():
            body = json.loads(json.dumps(example["value"]).replace("medicine", "tiny").replace("OMIM:154700", "MFS"))
            reply = page.post(path.replace("{base}", "tiny"), json=body)
            assert reply.status_code == 200, (path, reply.text)


def test_an_unknown_key_is_said_and_never_answered_with_another_node(settings):
    page = client(settings)
    for path in ("nodes/P11", "neighbors?key=P11", "subgraph?entity=P1&entity=P11"):
        reply = page.get(f"/v1/bases/tiny/{path}")
        assert reply.status_code == 404, path
        assert "no node has the key or the name 'P11'" in reply.json()["error"]
    assert "did you mean Marfan syndrome (MFS)" in page.get("/v1/bases/tiny/nodes/Marfan sydrome").json()["error"]


def test_models_are_retrieved_and_usage_is_streamed_where_it_is_asked_for(settings):
    page = client(settings)
    assert page.get("/v1/models/tiny").json()["id"] == "tiny"
    assert page.get("/v1/models/tiny/bm25").json()["id"] == "tiny/bm25"
    for unknown in ("nothing", "tiny/nothing", "tiny/"):
        assert page.get(f"/v1/models/{unknown}").status_code == 404
    body = {"model": "tiny", "messages": [{"role": "user", "content": "extra fingers"}], "stream": True}
    text = page.post("/v1/chat/completions", json={**body, "stream_options": {"include_usage": True}}).text
    chunks = [json.loads(line[6:]) for line in text.split("\n") if re.match(r"data: \{", line)]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    assert "usage" not in page.post("/v1/chat/completions", json=body).text.replace('"usage_', "")


def test_tools_for_agents_give_what_they_declare(settings):
    jsonschema = pytest.importorskip("jsonschema", reason="comes with the client of the protocol")
    page = client(settings)

    def call(method: str, parameters: dict) -> dict:
        return page.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}).json()[
            "result"
        ]

    tools = {tool["name"]: tool for tool in call("tools/list", {})["tools"]}
    given = {
        "ask": {"question": "Which genes cause Marfan syndrome?"},
        "describe": {},
        "search": {"text": "marfan"},
        "show": {"key": "MFS"},
        "query": {"query": "find x where (x: gene)"},
        "subgraph": {"entities": ["BBS2", "P1"]},
    }
    assert set(tools) == set(given)
    for name, arguments in given.items():
        told = call("tools/call", {"name": name, "arguments": arguments})
        jsonschema.Draft202012Validator(tools[name]["outputSchema"]).validate(told["structuredContent"])


def test_every_request_is_a_line_of_the_log_without_what_was_asked(settings):
    lines: list[str] = []
    page = TestClient(create_app(replace(settings, log=lines.append)), base_url="http://localhost")
    page.get("/v1/bases/tiny/find", params={"text": "a secret question"}, headers={"authorization": "Bearer s3cret"})
    page.get("/v1/bases/nothing%0a2026-01-01 forged")
    assert re.fullmatch(r"\S+ \S+ everyone GET /v1/bases/tiny/find 200 \d+ms", lines[0])
    assert " 404 " in lines[1]
    assert not [line for line in lines if "secret" in line or "s3cret" in line or "\n" in line]


def test_a_server_is_ready_once_its_bases_are_open(settings):
    with TestClient(create_app(settings), base_url="http://localhost") as page:
        assert page.get("/ready").status_code == 503
    with TestClient(create_app(replace(settings, warm=True)), base_url="http://localhost") as page:
        assert page.get("/ready").json() == {"status": "ready"}


CHUNKED = b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("request_line", "framing"),
    [
        (b"POST /v1/ask HTTP/1.1", b"content-length: 2\r\n" + CHUNKED),
        (b"POST /v1/ask HTTP/1.1", b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
        (b"POST /v1/ask HTTP/1.1", b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}"),
        (b"POST /v1/ask HTTP/1.1", b"content-length: 2, 3\r\n\r\n{}"),
        (b"POST /v1/ask HTTP/1.1", b"content-length: +2\r\n\r\n{}"),
        (b"POST /v1/ask HTTP/1.1", b"transfer-encoding: chunked\r\n" + CHUNKED),
        (b"POST /v1/ask HTTP/1.1", b"transfer-encoding: identity\r\n\r\n{}"),
        (b"POST /v1/ask HTTP/1.0", CHUNKED),
    ],
)
def test_a_body_whose_length_is_ambiguous_is_refused_and_the_connection_closed(settings, request_line, framing):
    smuggled = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with running(settings) as address:
        reply = exchange(address, request_line + b"\r\nhost: localhost\r\n" + framing + smuggled)
    assert re.findall(rb"HTTP/1\.1 (\d+)", reply) in ([b"400"], [b"501"])


def exchange(address: str, sent: bytes) -> bytes:
    """Send bytes and read until the server closes the connection."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(sent)
        return b"".join(iter(lambda: connection.recv(65536), b""))
