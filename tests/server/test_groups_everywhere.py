"""Every route, MCP tool and command says how it applies groups, and none shows a marker word that groups hide.

Each call runs twice: with the groups, where most calls show the marker, and without them, where none may.
"""

import inspect
import json
import shutil

import pyarrow as pa
import pytest
from fastapi.routing import APIRoute

import clew
from clew import cli
from clew.cli import COMMANDS
from clew.documents.building import build_documents
from clew.documents.rows import DocumentOptions
from clew.server import mcp_resources, routes_team
from clew.server.documents import DocumentFolder
from clew.server.mcp import TOOLS
from clew.server.settings import ServerSettings
from clew.server.store import SERVER
from clew.server.wire import BuildReply
from clew.server.wire_team import UserChange
from clew.store.building import build
from clew.store.graph.tables import GROUPS, Piece, Tables
from team_members import app_of, make_team, visitor

MARK = "quillonware"
QUESTION = "Which person knows Charles Babbage?"
ASK = {"question": QUESTION, "k": 20}
CHAT = {"messages": [{"role": "user", "content": QUESTION}]}

NO_BASE = "reads no base"
ADMIN = "for admins of the server, who give themselves any group"
WRITES = "changes something, and shows no more than the listing that its reader may see"

ROUTES = {
    "GET /v1/bases": [{}],
    "GET /v1/bases/{base}": [{}],
    "GET /v1/bases/{base}/nodes/{key:path}": [{"key": "H"}, {"key": "B"}, {"key": "C"}],
    "GET /v1/bases/{base}/find": [{"params": {"text": "ada"}}, {"params": {"text": "engine", "in_text": True}}],
    "GET /v1/bases/{base}/mentions": [{"params": {"text": "Did Ada know Charles Babbage?"}}],
    "GET /v1/bases/{base}/neighbors": [{"params": {"key": "C"}}],
    "GET /v1/bases/{base}/subgraph": [
        {"params": {"entity": ["H", "C"], "format": form}} for form in ("json", "svg", "text")
    ],
    "POST /v1/bases/{base}/ask": [{"json": ASK}, {"json": ASK, "params": {"stream": True}}]
    + [{"json": {**ASK, "method": method}} for method in ("bm25", "hybrid", "subgraph_reranking")],
    "POST /v1/bases/{base}/estimate": [{"json": ASK}],
    "GET /v1/bases/{base}/runs/{run}": [{}],
    "POST /v1/bases/{base}/runs/{run}/feedback": [{"json": {"right": True}}],
    "GET /v1/bases/{base}/documents": [{}, {"base": "papers"}],
    "GET /v1/bases/{base}/documents/{name:path}": [{"base": "papers", "name": f"{MARK}.md", "echoes": True}],
    "GET /v1/bases/{base}/page": [{"params": {"key": "H"}}],
    "GET /v1/evaluations": [{}],
    "GET /v1/evaluations/failures": [{"params": {"run": "bm25"}, "set": "title"}],
    "GET /v1/models": [{}],
    "GET /v1/models/{model:path}": [{"model": "closed/bm25"}],
    "POST /v1/chat/completions": [
        {"json": {**CHAT, "model": "closed", "stream": is_stream}} for is_stream in (False, True)
    ],
    "GET /v1/me/history": [{}],
    "GET /metrics": [{}],
    "GET /ready": [{}],
    "POST /mcp": "the calls of MCP, below",
    "GET /v1/managed": ADMIN,
    "POST /v1/bases": ADMIN,
    "PATCH /v1/bases/{base}": ADMIN,
    "DELETE /v1/bases/{base}": ADMIN,
    "POST /v1/managed/{name}/restore": ADMIN,
    "GET /v1/users": ADMIN,
    "POST /v1/users": ADMIN,
    "PATCH /v1/users/{name}": ADMIN,
    "DELETE /v1/users/{name}": ADMIN,
    "POST /v1/users/{name}/password": ADMIN,
    "GET /v1/audit": ADMIN,
    "PUT /v1/bases/{base}/documents/{name}": WRITES,
    "DELETE /v1/bases/{base}/documents/{name}": WRITES,
    "POST /v1/bases/{base}/documents/{name}/restore": WRITES,
    "PUT /v1/bases/{base}/model": NO_BASE,
    "GET /v1/bases/{base}/members": NO_BASE,
    "PUT /v1/bases/{base}/members/{name}": NO_BASE,
    "POST /v1/sign-in": NO_BASE,
    "POST /v1/sign-out": NO_BASE,
    "GET /v1/me": NO_BASE,
    "POST /v1/me/password": NO_BASE,
    "DELETE /v1/me/history": NO_BASE,
    "GET /v1/me/tokens": NO_BASE,
    "POST /v1/me/tokens": NO_BASE,
    "DELETE /v1/me/tokens/{number}": NO_BASE,
    "GET /health": NO_BASE,
    "HEAD /health": NO_BASE,
    "GET /v1/oidc/start": NO_BASE,
    "GET /v1/oidc/callback": NO_BASE,
    "GET /": NO_BASE,
    "HEAD /": NO_BASE,
    "GET /static/{name}": NO_BASE,
    "HEAD /static/{name}": NO_BASE,
}
"""Route → the calls that the test makes, or why it makes none."""
SILENT = {
    *("GET /v1/bases", "POST /v1/bases/{base}/estimate", "POST /v1/bases/{base}/runs/{run}/feedback", "GET /v1/models"),
    *("GET /v1/models/{model:path}", "GET /metrics", "GET /ready", "GET /v1/bases/{base}/page", "GET /v1/me/history"),
    "GET /v1/evaluations",
}
"""Routes whose replies hold no names or texts of a base, also for those who may see everything."""

MCP = {
    "ask": {"question": QUESTION},
    "describe": {},
    "search": {"text": "ada"},
    "show": {"key": "H"},
    "query": {"query": "find x where (x)"},
    "subgraph": {"entities": ["H", "C"]},
}
"""Tool → arguments of a call whose reply contains MARK only for callers who see everything."""
MCP_READS = ("clew://bases/closed", "clew://bases/closed/nodes/H", "clew://bases/closed/nodes/C")
MCP_METHODS = ("initialize", "ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list")

WHOLE = "works on the whole base, for its operator"
CLI = {
    "info": ("closed",),
    "schema": ("closed",),
    "export": ("closed", "closed.duckdb", "--force"),
    "show": ("closed", "C"),
    "find": ("closed", "ada"),
    "ask": ("closed", QUESTION),
    "check": ("closed",),
    "dedup": ("closed", "--least", "0"),
    "subgraph": ("closed", "H", "C"),
    "synth": ("closed", "-n", "5", "--out", "synth"),
    "chat": "the same view as ask, in a conversation (test_the_view_of_a_conversation)",
    "serve": "the routes above",
    "mcp": "the calls of MCP",
    **dict.fromkeys(("build", "update", "embed", "repair", "verify", "feedback", "eval", "tune", "subgraphs"), WHOLE),
    **{name: WHOLE for name in COMMANDS if name.startswith("train ")},
    **dict.fromkeys(("doctor", "demo", "methods", "models", "batch run", "batch status", "trace"), NO_BASE),
    **dict.fromkeys(("reproduce", "report", "grade", "users", "completion"), NO_BASE),
}
"""Command → its arguments, or why it takes no groups."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A graph and a folder of documents, both with hidden parts, and an evaluation of the graph."""
    folder = tmp_path_factory.mktemp("everywhere")
    hidden = {GROUPS: ["board"]}
    nodes = [
        {"key": "A", "type": "person", "name": "Ada Byron", "text": "She wrote about the engine."},
        {"key": "B", "type": "person", "name": "Ada Lovelace", "text": "She wrote about the engine."},
        {"key": "C", "type": "person", "name": "Charles Babbage", "text": "He built the engine."},
        {"key": "H", "type": "person", "name": f"Ada {MARK}", "text": f"{MARK} engine", "aliases": [MARK], MARK: MARK},
        {"key": "H2", "type": "person", "name": f"Ada {MARK}", "text": f"{MARK} engine"},
        {"key": "S", "type": MARK, "name": "Ada Spy", "text": f"A {MARK} of the engine."},
    ]
    edges = [
        {"head": "A", "relation": "knows", "tail": "C"},
        {"head": "B", "relation": "knows", "tail": "C"},
        {"head": "A", "relation": MARK, "tail": "B"},
        {"head": "H", "relation": "knows", "tail": "C"},
        {"head": "H2", "relation": "knows", "tail": "C"},
        {"head": "S", "relation": "knows", "tail": "C"},
    ]
    for row in (*nodes[3:], edges[2]):
        row.update(hidden)
    for rows in (nodes, edges):
        for row in rows:
            row.setdefault(GROUPS, None)
    pieces = [Piece(pa.Table.from_pylist(_filled(rows)), "rows") for rows in (nodes, edges)]
    build(Tables((pieces[0],), (pieces[1],)), folder / "closed.kb")
    papers = DocumentFolder(folder / "papers", 100)
    for name, text in (("open.md", "The moon raises the tides."), (f"{MARK}.md", f"The {MARK} earns 9000 euros.")):
        (papers.files / name).write_text(f"# {name}\n\n{text}\n")
    build_documents([papers.files], papers.base, DocumentOptions(visible={f"{MARK}*": ["board"]}), jobs=1)
    (folder / "mine.jsonl").write_text(
        json.dumps({"id": "1", "question": "Who built it?", "answers": ["H", "S"]}) + "\n"
    )
    return folder


def _filled(rows):
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


@pytest.fixture(scope="module")
def settings(place):
    clew.evaluate(place / "closed.kb", place / "mine.jsonl", ["bm25"], out=place / "runs")
    team = make_team(place / "team.db")
    for name, groups in (("boss", ["board"]), ("guest", [])):
        password = team.users.make(SERVER, name, UserChange(roles={"*": "editor"}, groups=groups))
        team.users.change_password(
            SERVER, team.store.row("SELECT id FROM user WHERE name = ?", name)["id"], password, WORD
        )
    return ServerSettings(
        {"closed": place / "closed.kb"}, {"papers": place / "papers"}, access=team, evaluations=place / "runs"
    )


WORD = "a thread through the maze"


@pytest.fixture(scope="module")
def app(settings):
    return app_of(settings)


@pytest.fixture(scope="module")
def people(app):
    """Somebody who may see everything, and somebody who may not, both signed in."""
    return {name: visitor(app, name) for name in ("boss", "guest")}


@pytest.fixture(scope="module")
def saved(people):
    """A run of somebody who may see everything, and the title of an evaluation."""
    reply = people["boss"].post("/v1/bases/closed/ask", json=ASK)
    assert MARK in reply.text
    [section] = people["boss"].get("/v1/evaluations").json()
    return {"run": reply.json()["run"], "title": section["title"]}


def routes_of(*routers):
    """Every route by method and path, also those of included routers, which FastAPI keeps as they are."""
    found = set()
    for route in (route for router in routers for route in router.routes):
        if isinstance(route, APIRoute):
            found |= {f"{method} {route.path}" for method in route.methods}
        elif hasattr(route, "original_router"):
            found |= routes_of(route.original_router)
        else:
            assert route.path == "/openapi.json", route
    return found


def test_every_route_says_how_it_applies_groups(app):
    assert routes_of(app, routes_team.provider_router) == ROUTES.keys(), "declare every route in ROUTES"


@pytest.mark.parametrize("route", [route for route, calls in ROUTES.items() if isinstance(calls, list)])
def test_no_route_shows_what_groups_hide(people, saved, route):
    shown = {}
    for name, client in people.items():
        replies = [called(client, route, saved, **call) for call in ROUTES[route]]
        assert all(reply.status_code < 500 or route == "GET /ready" for reply in replies), replies
        shown[name] = "".join(reply.text + str(reply.headers) for reply in replies)
    assert MARK not in shown["guest"]
    if route not in SILENT:
        assert MARK in shown["boss"], "the call shows nothing: it proves nothing"


def called(client, route, saved, *, echoes=False, params=None, json=None, **parts):
    method, path = route.split(" ")
    params = params if "set" not in parts else {**params, "set": saved[parts["set"]]}
    parts = {"base": "closed", **parts, "run": saved["run"]}
    for name, value in parts.items():
        path = path.replace(f"{{{name}:path}}", value).replace(f"{{{name}}}", value)
    reply = client.request(method, path, params=params, json=json)
    if echoes and reply.status_code == 404:  # the error repeats the name that was asked for
        reply._content = reply.content.replace(parts["name"].encode(), b"")
    return reply


def test_nobody_changes_a_document_that_groups_hide(people, place):
    path = f"/v1/bases/papers/documents/{MARK}.md"
    replies = [people["guest"].put(path, content=b"# Mine"), people["guest"].delete(path)]
    assert [reply.status_code for reply in (*replies, people["guest"].post(f"{path}/restore"))] == [403] * 3
    assert MARK in DocumentFolder(place / "papers", 100).files.joinpath(f"{MARK}.md").read_text()


def test_no_call_of_mcp_shows_what_groups_hide(people):
    assert MCP.keys() == TOOLS.keys(), "declare new tools in MCP"
    assert set(mcp_resources.PROMPTS) == {"answer", "check", "connect"}, "prompts read no base: declare new ones here"
    messages = [{"method": method} for method in MCP_METHODS]
    messages += [{"method": "tools/call", "params": {"name": tool, "arguments": {"base": "closed", **given}}}
                 for tool, given in MCP.items()]  # fmt: skip
    messages += [{"method": "resources/read", "params": {"uri": address}} for address in MCP_READS]
    for name, client in people.items():
        for message in messages:
            reply = client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, **message})
            assert reply.status_code == 200
            reads = message["method"] in ("tools/call", "resources/read")
            assert (MARK in reply.text) == (reads and name == "boss"), message


def test_every_command_says_how_it_applies_groups():
    assert CLI.keys() == COMMANDS.keys(), "declare new commands in CLI"
    for command, arguments in CLI.items():
        annotated = inspect.signature(cli._function(COMMANDS[command][0])).parameters.values()
        takes = any("Groups" in str(parameter.annotation) or parameter.name == "groups" for parameter in annotated)
        assert takes == (isinstance(arguments, tuple) or command in ("chat", "serve", "mcp")), command


@pytest.mark.parametrize("command", [command for command, arguments in CLI.items() if isinstance(arguments, tuple)])
def test_no_command_shows_what_groups_hide(run, place, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    base, *more = CLI[command]
    shown = {}
    for groups in ("board", ""):
        shutil.rmtree("synth", ignore_errors=True)
        _, out, error = run(command, place / f"{base}.kb", *more, "--groups", groups)
        files = [file.read_text() for file in tmp_path.rglob("*.json*") if "cache" not in file.parts]
        if command == "export":
            with pytest.importorskip("duckdb").connect("closed.duckdb") as exported:
                files = [str(exported.execute(f"FROM {name}").fetchall()) for name in ("nodes", "edges")]
        shown[groups] = "".join((out, error, *files))
    assert MARK not in shown[""]
    assert MARK in shown["board"], "the command shows nothing: it proves nothing"


def test_the_view_of_a_conversation(place):
    for groups, seen in ((["board"], True), ([], False)):
        talk = clew.open(place / "closed.kb", groups=groups).conversation()
        told = [json.dumps(talk.ask(question).to_dict(), default=str) for question in (QUESTION, "And who knows Ada?")]
        assert (MARK in "".join(told)) == seen


def test_a_saved_run_is_not_shown_once_the_base_hides_what_it_shows(tmp_path, tiny_tables):
    """Also where the base had no groups when the run was made."""
    base, settings = tmp_path / "tiny.kb", ServerSettings({"tiny": tmp_path / "tiny.kb"})
    clew.build(tiny_tables, base)
    question = {"question": "Which genes are associated with Marfan syndrome?"}
    reply = visitor(app_of(settings)).post("/v1/bases/tiny/ask", json=question)
    app = app_of(settings)
    first = visitor(app).post("/v1/bases/tiny/ask", json=question).json()["run"]
    assert reply.status_code == 200
    assert "FBN1" in visitor(app).get(f"/v1/bases/tiny/runs/{first}").text
    clew.build(tiny_tables, base, visible={"P*": ["clinic"]})
    second = visitor(app).post("/v1/bases/tiny/ask", json=question).json()["run"]
    assert visitor(app).get(f"/v1/bases/tiny/runs/{first}").status_code == 404
    assert "FBN1" in visitor(app).get(f"/v1/bases/tiny/runs/{second}").text
    clew.build(tiny_tables, base, visible={"P*": ["clinic"], "FBN1": ["lab"]})
    assert visitor(app).get(f"/v1/bases/tiny/runs/{second}").status_code == 404


def test_a_build_tells_nothing_of_hidden_files(people, monkeypatch):
    """Its stage names the file that is read, its error and its list of skipped files name others."""
    skipped = ({"file": f"{MARK}.md", "reason": "empty"}, {"file": "open.md", "reason": "empty"})
    build = BuildReply(state="running", stage=f"{MARK}.md", done=1, total=2, error=f"{MARK} failed", skipped=skipped)
    monkeypatch.setattr(DocumentFolder, "state", lambda _: build)
    replies = {name: client.get("/v1/bases/papers/documents") for name, client in people.items()}
    assert replies["boss"].json()["build"]["stage"] == f"{MARK}.md"
    assert MARK not in replies["guest"].text
    assert replies["guest"].json()["build"]["skipped"] == [{"file": "open.md", "reason": "empty"}]
