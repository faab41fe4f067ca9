"""The attack list against a server with users: none of these may succeed."""

import io
import itertools
import json
import re
import socket
import threading
import zipfile

import httpx
import pytest
from argon2 import PasswordHasher, extract_parameters
from argon2.profiles import RFC_9106_LOW_MEMORY

from clew.server.settings import ClientLimits
from clew.server.team.team import PREFIX, TRIES_PER_MINUTE, Team
from team_members import PASSWORD, app_of, cheap_passwords, make_settings, make_team, visitor  # noqa: F401
from web_server import running

QUESTION = {"question": "Which disease has extra fingers?", "method": "bm25"}
MARKUP = '"><script>alert(1)</script>'


@pytest.fixture
def team(tmp_path, cheap_passwords) -> Team:  # noqa: F811
    return make_team(tmp_path / "team.db")


@pytest.fixture
def settings(tmp_path, team):
    return make_settings(tmp_path, team)


@pytest.fixture
def app(settings):
    return app_of(settings)


# Privilege escalation


def routes(app) -> set[tuple[str, str]]:
    return {
        (method, path)
        for path, methods in app.openapi()["paths"].items()
        for method in methods
        if path not in ("/health", "/ready", "/v1/sign-in")
    }


ALLOWED_TO_ALL = {
    ("get", "/v1/bases"),
    ("get", "/v1/models"),
    ("get", "/v1/me"),
    ("get", "/v1/managed"),
    ("post", "/v1/me/password"),
    ("get", "/v1/me/history"),
    ("delete", "/v1/me/history"),
    ("get", "/v1/me/tokens"),
    ("post", "/v1/sign-out"),
    ("post", "/mcp"),
}
"""What concerns nobody but oneself; lists are empty for one without a role."""


def test_every_route_refuses_strangers_and_one_without_a_role(app):
    stranger, nob = visitor(app), visitor(app, "nob")
    holes = {"base": "open", "key": "BBS", "name": "root", "run": "A" * 12, "model": "open", "number": "1"}
    bodies = {
        "/v1/users": {"name": "me"},
        "/v1/users/{name}": {"roles": {"*": "admin"}},
        "/v1/bases/{base}/members/{name}": {"role": "admin"},
        "/v1/chat/completions": {"model": "open", "messages": [{"role": "user", "content": "x"}]},
        "/v1/me/tokens": {"name": "x"},
        "/v1/me/password": {"old": "x", "new": "x"},
    }
    found = routes(app)
    assert len(found) > 30
    for method, path in sorted(found):
        address = re.sub(r"\{(\w+)(?::path)?\}", lambda hole: holes[hole[1]], path)
        address += "?text=a&key=BBS&entity=P1&entity=P2"
        body = {} if method in ("get", "delete") else {"json": bodies.get(path, QUESTION)}
        assert stranger.request(method, address, **body).status_code == 401, (method, path)
        if (method, path) not in ALLOWED_TO_ALL:
            assert nob.request(method, address, **body).status_code in (403, 404), (method, path)
    assert nob.get("/v1/bases").json() == []
    assert nob.get("/v1/models").json()["data"] == []


def test_nobody_raises_himself(app, team):
    before = [user.model_dump(exclude={"signed_in"}) for user in team.users.all()]
    for name in ("rea", "ed", "ada"):
        page = visitor(app, name)
        mine = {"roles": {"*": "admin"}, "groups": ["hr"], "asks_per_day": None}
        attempts = [
            page.patch(f"/v1/users/{name}", json=mine),
            page.post("/v1/users", json={"name": "accomplice", **mine}),
            page.post("/v1/users/root/password"),
            page.delete("/v1/users/root"),
            page.put("/v1/bases/closed/members/" + name, json={"role": "admin"}),
            page.put("/v1/bases/*/members/" + name, json={"role": "admin"}),
            page.put("/v1/bases/%2A/members/" + name, json={"role": "admin"}),
            page.get("/v1/bases/closed"),
            page.get("/v1/bases/Open"),
            page.get("/v1/audit"),
        ]
        assert {reply.status_code for reply in attempts} <= {403, 404}, name
    assert [user.model_dump(exclude={"signed_in"}) for user in team.users.all()] == before


def test_a_token_is_never_an_admin_and_makes_no_tokens(app):
    root = visitor(app, "root")
    token = root.post("/v1/me/tokens", json={"name": "all", "write": True}).json()["token"]
    program = visitor(app, authorization=f"Bearer {token}")
    assert program.get("/v1/me").json()["roles"] == {"*": "editor"}
    for method, path in (
        ("get", "/v1/users"),
        ("get", "/v1/audit"),
        ("post", "/v1/me/tokens"),
        ("post", "/v1/me/password"),
        ("get", "/v1/me/history"),
        ("get", "/v1/bases/open/members"),
        ("post", "/v1/sign-out"),
    ):
        body = {"json": {"name": "x", "old": PASSWORD, "new": "x" * 20}} if method == "post" else {}
        assert program.request(method, path, **body).status_code in (403, 422), path
    assert program.post("/v1/users", json={"name": "x"}).status_code == 403


def test_agents_are_told_of_the_bases_alone_that_their_user_may_see(app):
    rea = visitor(app, "rea")

    def told(method: str, **parameters) -> str:
        return rea.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}).text

    for text in (
        told("initialize"),
        told("resources/list"),
        told("prompts/get", name="answer", arguments={"question": "?"}),
        told("prompts/get", name="answer", arguments={"question": "?", "base": "papers"}),
    ):
        assert "open" in text
        assert "closed" not in text
    unknown, hidden = (told("resources/read", uri=f"clew://bases/{base}/nodes/BBS") for base in ("nothing", "closed"))
    assert "no resource" in hidden
    assert hidden.replace("closed", "") == unknown.replace("nothing", "")
    assert "Bardet-Biedl" in told("resources/read", uri="clew://bases/open/nodes/BBS")


def test_one_users_tokens_are_not_another_ones(app):
    rea, ed = visitor(app, "rea"), visitor(app, "ed")
    rea.post("/v1/me/tokens", json={"name": "hers"})
    number = rea.get("/v1/me/tokens").json()[0]["id"]
    assert ed.get("/v1/me/tokens").json() == []
    assert ed.delete(f"/v1/me/tokens/{number}").status_code == 404
    assert len(rea.get("/v1/me/tokens").json()) == 1


@pytest.mark.parametrize("name", ["root' OR '1'='1", "root'--", "root\x00", 'root"; DROP TABLE user;--', "r%", "_oot"])
def test_names_are_no_statements(app, team, name):
    assert visitor(app).sign_in(name, PASSWORD).status_code == 401
    assert len(team.users.all()) == 5


# Session fixation


def test_a_session_that_was_brought_along_is_not_signed_in(app, team):
    brought = "__Host-clew=chosen-by-the-attacker; clew=chosen-by-the-attacker"
    reply = visitor(app, cookie=brought).sign_in("root")
    assert "chosen-by-the-attacker" not in reply.headers["set-cookie"]
    attacker = visitor(app, cookie="clew=chosen-by-the-attacker")
    assert attacker.get("/v1/me").status_code == 401
    assert team.store.row("SELECT count(*) AS there FROM session")["there"] == 1


def test_signing_in_again_ends_the_session_before_and_changes_its_secret(app):
    rea = visitor(app, "rea")
    first = rea.cookies["clew"]
    rea.sign_in("rea")
    assert rea.cookies["clew"] != first
    assert visitor(app, cookie=f"clew={first}").get("/v1/me").status_code == 401


def test_signing_out_ends_the_session_on_the_server(app):
    rea = visitor(app, "rea")
    stolen = rea.cookies["clew"]
    assert visitor(app, cookie=f"clew={stolen}").get("/v1/me").status_code == 200
    assert rea.post("/v1/sign-out").status_code == 204
    assert visitor(app, cookie=f"clew={stolen}").get("/v1/me").status_code == 401


def test_a_new_password_ends_every_other_session(app):
    rea, thief = visitor(app, "rea"), visitor(app, "rea")
    assert rea.post("/v1/me/password", json={"old": PASSWORD, "new": "quite another set of words"}).status_code == 200
    assert thief.get("/v1/me").status_code == 401
    assert rea.get("/v1/me").status_code == 200


def test_the_cookie_is_out_of_reach(app):
    plain = visitor(app).sign_in("rea").headers["set-cookie"].lower()
    assert "httponly" in plain
    assert "samesite=strict" in plain
    assert "path=/" in plain
    secure = visitor(app, origin="https://localhost").sign_in("rea").headers["set-cookie"].lower()
    assert secure.startswith("__host-clew=")
    assert "; secure" in secure
    assert "domain=" not in secure


# Cross-site request forgery


def test_a_cookie_alone_changes_nothing(app, team):
    root = visitor(app, "root")
    word = root.headers.pop("x-csrf-token")
    requests = [
        ("post", "/v1/users", {"json": {"name": "accomplice"}}),
        ("patch", "/v1/users/rea", {"json": {"roles": {"*": "admin"}}}),
        ("delete", "/v1/users/rea", {}),
        ("post", "/v1/me/tokens", {"json": {"name": "x"}}),
        ("post", "/v1/me/password", {"json": {"old": PASSWORD, "new": "quite another set of words"}}),
        ("put", "/v1/bases/papers/documents/a.md", {"content": b"words"}),
        ("delete", "/v1/bases/papers/documents/a.md", {}),
        ("post", "/v1/bases/open/ask", {"json": QUESTION}),
        ("post", "/mcp", {"json": {"jsonrpc": "2.0", "id": 1, "method": "ping"}}),
        ("post", "/v1/sign-out", {}),
    ]
    for wrong in ({}, {"x-csrf-token": "0" * 64}, {"x-csrf-token": word.upper() + "x"}, {"x-csrf-token": ""}):
        for method, path, body in requests:
            assert root.request(method, path, headers=wrong, **body).status_code == 403, (path, wrong)
    other = visitor(app, "rea").headers["x-csrf-token"]
    assert root.delete("/v1/users/rea", headers={"x-csrf-token": other}).status_code == 403, "that of another session"
    for foreign in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        reply = root.post("/v1/users", json={"name": "x"}, headers={"x-csrf-token": word, **foreign})
        assert reply.status_code == 403, foreign
    assert len(team.users.all()) == 5
    assert root.get("/v1/me").json()["name"] == "root"


def test_another_site_cannot_sign_somebody_in(app):
    page = visitor(app)
    body = {"name": "rea", "password": PASSWORD}
    assert page.post("/v1/sign-in", json=body, headers={"origin": "https://evil.example"}).status_code == 403
    assert page.post("/v1/sign-in", data=body).status_code == 422, "a form of another site sends no JSON"
    as_text = page.post("/v1/sign-in", content=json.dumps(body), headers={"content-type": "text/plain"})
    assert as_text.status_code == 422
    assert not page.cookies


# Leaks


def test_secrets_are_kept_and_told_nowhere(app, team, tmp_path, capfd):
    rea, root = visitor(app, "rea"), visitor(app, "root")
    token = rea.post("/v1/me/tokens", json={"name": "notebook"}).json()["token"]
    assert token.startswith(PREFIX)
    secrets = [PASSWORD, token, rea.cookies["clew"], root.cookies["clew"]]
    wrong = "mistyped-password-of-rea"
    visitor(app).sign_in(wrong, wrong)
    visitor(app, authorization=f"Bearer {token}x").get("/v1/bases")
    told = [
        rea.post("/v1/sign-in", json={"name": "rea", "password": {"p": wrong}}).text,
        rea.post("/v1/me/password", json={"old": wrong, "new": 7}).text,
        *(root.get(path).text for path in ("/v1/users", "/v1/audit", "/metrics", "/openapi.json", "/v1/me/tokens")),
        rea.get("/v1/me/tokens").text,
        repr(app.state.clew.served.settings),
        *capfd.readouterr(),
    ]
    team.store.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    kept = b"".join(file.read_bytes() for file in tmp_path.glob("team.db*"))
    for secret in (*secrets, wrong):
        assert secret.encode() not in kept
        assert not any(secret in text for text in told)
    assert "no-store" in rea.get("/v1/me").headers["cache-control"]


def test_a_token_in_an_address_opens_nothing(app):
    token = visitor(app, "rea").post("/v1/me/tokens", json={"name": "x"}).json()["token"]
    assert visitor(app).get("/v1/bases", params={"token": token, "access_token": token}).status_code == 401


# Enumeration


def test_who_exists_is_not_told(app, team):
    team.store.note("UPDATE user SET is_active = 0 WHERE name = 'ed'")
    replies = [visitor(app).sign_in(name, "not the right password") for name in ("rea", "ed", "nobody-at-all")]
    replies.append(visitor(app).sign_in("ed", PASSWORD))
    assert {reply.status_code for reply in replies} == {401}
    assert len({reply.text for reply in replies}) == 1
    assert len({tuple(sorted(reply.headers)) for reply in replies}) == 1
    nob = visitor(app, "nob")
    unknown, hidden = nob.get("/v1/bases/nothing"), nob.get("/v1/bases/closed")
    assert unknown.status_code == hidden.status_code == 404
    assert unknown.text.replace("nothing", "") == hidden.text.replace("closed", "")
    for path in ("/v1/users/rea", "/v1/users/nobody"):
        assert nob.patch(path, json={"active": False}).status_code == 403


def test_an_unknown_name_takes_as_long_as_a_wrong_password(tmp_path, monkeypatch):
    """Both compute one digest at the same costs, which are hundreds of times those of all else."""
    team, verify = make_team(tmp_path / "team.db"), PasswordHasher.verify
    computed = []

    def noted(hasher: PasswordHasher, kept: str, password: bytes) -> bool:
        computed.append(extract_parameters(kept))
        return verify(hasher, kept, password)

    monkeypatch.setattr(PasswordHasher, "verify", noted)
    for name in ("rea", "nobody-at-all"):
        with pytest.raises(Exception, match="wrong name or password"):
            team.sign_in(name, "not the right password", "")
    assert computed == [RFC_9106_LOW_MEMORY] * 2


def test_guessing_is_slowed_for_a_name_and_for_an_address(app, team):
    page = visitor(app)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clew.server.team.team.fits", lambda *_: False)  # what is tested is the count, not the cost
        statuses = [page.sign_in(f"user{turn}").status_code for turn in range(TRIES_PER_MINUTE + 5)]
        assert statuses == [401] * TRIES_PER_MINUTE + [429] * 5
        by_name = [_status(team, "rea", f"10.0.0.{turn}") for turn in range(TRIES_PER_MINUTE + 5)]
    assert by_name == ["RefusedError"] * TRIES_PER_MINUTE + ["TooManyError"] * 5


def _status(team: Team, name: str, address: str) -> str:
    try:
        team.sign_in(name, "wrong", address)
    except Exception as error:
        return type(error).__name__
    return "in"


def test_many_sessions_and_tokens_of_one_user_share_one_rate(tmp_path, team):
    page = visitor(app_of(make_settings(tmp_path, team, limits=ClientLimits(per_minute=20))), "rea")
    tokens = [page.post("/v1/me/tokens", json={"name": f"{turn}"}).json()["token"] for turn in range(4)]
    statuses = []
    for token in itertools.islice(itertools.cycle(tokens), 24):
        headers = {"authorization": f"Bearer {token}", "x-forwarded-for": f"10.0.0.{len(statuses)}"}
        statuses.append(page.get("/v1/bases", headers=headers).status_code)
    assert statuses.count(429) >= 4


# Stored markup


def test_markup_in_any_field_is_sent_as_data(app):
    """The page makes text of all text (test_web_team_browser); here: no reply is ever taken for a page."""
    root = visitor(app, "root")
    assert root.post("/v1/users", json={"name": MARKUP}).status_code == 422
    root.patch("/v1/users/rea", json={"groups": [MARKUP]})
    root.post("/v1/me/tokens", json={"name": MARKUP})
    assert root.put(f"/v1/bases/papers/documents/{MARKUP.replace('/', '')}.md", content=b"words").status_code == 202
    asked = root.post("/v1/bases/open/ask", json={**QUESTION, "question": MARKUP})
    paths = ["/v1/users", "/v1/me/tokens", "/v1/me/history", "/v1/audit", "/v1/bases/papers/documents"]
    paths += [f"/v1/bases/{MARKUP}", f"/v1/bases/open/nodes/{MARKUP}", f"/v1/bases/open/runs/{asked.json()['run']}"]
    for path in paths:
        reply = root.get(path)
        assert reply.headers["content-type"] == "application/json", path
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "script-src 'self'" in reply.headers["content-security-policy"]


# Uploads and half-open requests


def packed(name: str, content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<x/>")
        archive.writestr(name, content)
    return made.getvalue()


def test_bombs_and_disguises_are_refused(app):
    ed = visitor(app, "ed")
    bomb = packed("word/document.xml", bytes(400_000_000))
    for name, content in {
        "bomb.docx": bomb,
        "nested.docx": packed("inner.zip", bomb)[:-30],
        "page.md": b"\x00\x01binary",
        "fake.pdf": b"<script>alert(1)</script>",
        "run.exe": b"MZ",
        "empty.md": b"",
        "..%2f..%2fteam.db": b"words",
    }.items():
        assert ed.put(f"/v1/bases/papers/documents/{name}", content=content).status_code in (404, 405, 422), name
    assert ed.get("/v1/bases/papers/documents").json()["documents"] == []


def test_an_upload_without_end_is_cut(tmp_path, team):
    ed = visitor(app_of(make_settings(tmp_path, team, limits=ClientLimits(upload_bytes=100_000))), "ed")
    pieces = (b"words " * 1000 for _ in range(100))
    assert ed.put("/v1/bases/papers/documents/a.md", content=pieces).status_code == 413


@pytest.fixture
def many_open_files():
    """Both ends of a thousand connections lie in this process; 1,024 files are what a shell usually allows."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 4096 > limits[1] != resource.RLIM_INFINITY:
        pytest.skip(f"no more than {limits[1]} files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(4096, limits[0]), limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_thousand_half_open_requests_hold_nobody_up(settings, many_open_files):
    from dataclasses import replace

    half = (
        b"POST /v1/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b'Content-Length: 90\r\n\r\n{"name": "ro'
    )
    limits = ClientLimits(head_seconds=3, body_seconds=3, per_minute=100_000)
    with running(replace(settings, limits=limits)) as address:
        port = int(address.rpartition(":")[2])
        lines = []
        for turn in range(1000):
            line = socket.create_connection(("127.0.0.1", port), timeout=30)
            line.sendall(half if turn % 2 else half[:40])
            lines.append(line)
        reply = httpx.post(f"{address}/v1/sign-in", json={"name": "rea", "password": PASSWORD}, timeout=30)
        assert reply.status_code == 200
        for line in lines:
            while line.recv(4096):
                pass
            line.close()
        assert httpx.get(f"{address}/health", timeout=30).status_code == 200
    assert threading.active_count() < 100
