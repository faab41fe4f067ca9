"""Users: signing in, roles, groups, tokens, quotas, history, the audit log, and the file that keeps them."""

import json
import re
import sqlite3
import stat
import subprocess
import sys
import time
from dataclasses import replace

import argon2
import httpx
import pytest

from clew.core.addresses import is_postgres
from clew.core.errors import InputError, SourceError, StorageError
from clew.server.store import Actor, TeamFile
from clew.server.team import users as passwords
from clew.server.team.team import Team
from clew.server.wire_team import UserChange
from clew.store.building import build
from clew.store.graph.visibility import restricted
from conftest import tables
from team_members import PASSWORD, app_of, cheap_passwords, make_settings, make_team, visitor  # noqa: F401

SECRET = {"question": "Bardet-Biedl syndrome", "method": "bm25"}
QUESTION = {"question": "Which disease has extra fingers?", "method": "bm25"}


def keys(run: dict) -> list[str]:
    return [answer["key"] for answer in run["answers"]]


@pytest.fixture(params=["file", "database"])
def place(request, tmp_path) -> str:
    """Where users are kept."""
    return request.getfixturevalue("own_database") if request.param == "database" else str(tmp_path / "team.db")


@pytest.fixture
def team(place, cheap_passwords) -> Team:  # noqa: F811
    return make_team(place)


in_a_file = pytest.mark.parametrize("place", ["file"], indirect=True)


@pytest.fixture
def app(tmp_path, team):
    return app_of(make_settings(tmp_path, team))


def test_a_password_fits_itself_alone_and_is_kept_with_its_costs():
    kept = passwords.hashed(PASSWORD)
    assert PASSWORD not in kept
    assert kept.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert passwords.fits(PASSWORD, kept)
    assert not passwords.fits(PASSWORD + " ", kept)
    assert not passwords.fits("", passwords.NOBODY)
    assert passwords.hashed(PASSWORD) != kept, "each has a salt of its own"
    assert not passwords.is_outdated(kept)
    assert passwords.is_outdated(kept.replace("m=65536", "m=32768")), "costs that were raised since"
    assert not passwords.is_outdated(passwords.NOBODY), "who does not exist costs what others cost"


def kept_of(team: Team, name: str) -> str:
    return team.store.row("SELECT password FROM user WHERE name = ?", name)["password"]


def test_a_password_whose_costs_were_raised_since_is_kept_anew_at_the_next_sign_in(app, team):
    old = argon2.PasswordHasher(memory_cost=64, parallelism=1).hash(PASSWORD)
    assert passwords.is_outdated(old)
    team.store.note("UPDATE user SET password = ? WHERE name = 'rea'", old)
    assert visitor(app).sign_in("rea", PASSWORD + "!").status_code == 401
    assert kept_of(team, "rea") == old, "a wrong one changes nothing"
    page = visitor(app)
    assert page.sign_in("rea").status_code == 200
    assert not passwords.is_outdated(kept_of(team, "rea"))
    assert page.get("/v1/me").json()["has_password"], "and its session goes on"
    assert visitor(app).sign_in("rea").status_code == 200
    assert visitor(app).sign_in("rea", PASSWORD + "!").status_code == 401


def test_one_who_signs_in_at_a_provider_has_no_password(app, team):
    page = visitor(app)
    page.sign_in("rea")
    team.store.note("UPDATE user SET password = ? WHERE name = 'rea'", passwords.NOBODY)
    assert not page.get("/v1/me").json()["has_password"]
    assert visitor(app).sign_in("rea", "").status_code in (401, 422)
    assert visitor(app).sign_in("rea").status_code == 401


@pytest.mark.parametrize("weak", ["short", "aaaaaaaaaaaaaaaa", "my name is anna.", "x" * 201])
def test_weak_passwords_are_refused(weak):
    with pytest.raises(InputError):
        passwords.check_strength(weak, "Anna")


def test_the_first_start_makes_an_admin_who_must_choose_another_password(tmp_path):
    team = Team.open(tmp_path / "new.db")
    password = team.users.make_first_admin()
    assert team.users.make_first_admin() is None
    page = visitor(app_of(make_settings(tmp_path, team)))
    me = page.sign_in("admin", password).json()
    assert me["must_change_password"]
    assert page.get("/v1/bases").json() == [], "who has a password that others know may do nothing"
    assert page.get("/v1/users").status_code == 403
    assert page.post("/v1/me/tokens", json={"name": "early"}).status_code == 403
    assert page.post("/v1/me/password", json={"old": password, "new": "admin admin admin"}).status_code == 422
    before = page.cookies["clew"]
    changed = page.post("/v1/me/password", json={"old": password, "new": PASSWORD})
    assert changed.json()["roles"] == {"*": "admin"}
    assert page.cookies["clew"] != before
    page.headers["x-csrf-token"] = changed.json()["csrf"]
    assert [user["name"] for user in page.get("/v1/users").json()] == ["admin"]


def test_nobody_gets_in_without_signing_in(app):
    page = visitor(app)
    for path in ("/v1/bases", "/v1/bases/open", "/v1/me", "/v1/users", "/v1/audit", "/metrics", "/v1/models"):
        assert page.get(path).status_code == 401, path
    assert page.post("/v1/bases/open/ask", json=QUESTION).status_code == 401
    assert page.get("/health").json()["users"] is True


def test_each_role_may_do_what_it_says_and_no_more(app):
    file = {"content": b"Ariadne gave Theseus a thread."}
    may = {}
    for name in ("rea", "ed", "ada", "root", "nob"):
        page = visitor(app, name)
        may[name] = [
            sorted(base["name"] for base in page.get("/v1/bases").json()),
            page.post("/v1/bases/open/ask", json=QUESTION).status_code,
            page.put("/v1/bases/papers/documents/a.md", **file).status_code,
            page.get("/v1/bases/open/members").status_code,
            page.get("/v1/users").status_code,
            page.get("/metrics").status_code,
        ]
    assert may == {
        "rea": [["open"], 200, 404, 403, 403, 403],
        "ed": [["open", "papers"], 200, 202, 403, 403, 403],
        "ada": [["open"], 200, 404, 200, 403, 403],
        "root": [["closed", "open", "papers"], 200, 202, 200, 200, 200],
        "nob": [[], 404, 404, 404, 403, 403],
    }


def test_the_admin_of_a_base_gives_roles_on_it(app):
    ada, nob = visitor(app, "ada"), visitor(app, "nob")
    assert ada.put("/v1/bases/open/members/nob", json={"role": "editor"}).json()["nob"] == "editor"
    assert [base["name"] for base in nob.get("/v1/bases").json()] == ["open"], "at once, in a session that was open"
    assert "nob" not in ada.put("/v1/bases/open/members/nob", json={"role": None}).json()
    assert nob.get("/v1/bases").json() == []
    assert ada.put("/v1/bases/open/members/nobody", json={"role": "reader"}).status_code == 404
    assert ada.put("/v1/bases/closed/members/ada", json={"role": "reader"}).status_code == 404


def test_an_admin_makes_changes_and_removes_users(app):
    root = visitor(app, "root")
    made = root.post("/v1/users", json={"name": "Zoë", "roles": {}})
    assert made.status_code == 422
    assert root.post("/v1/users", json={"name": "zoe", "roles": {"nothing": "reader"}}).status_code == 422
    password = root.post("/v1/users", json={"name": "Zoe", "roles": {"open": "reader"}}).json()["password"]
    assert root.post("/v1/users", json={"name": "zoe"}).status_code == 422
    zoe = visitor(app)
    zoe.sign_in("zoe", password)
    changed = zoe.post("/v1/me/password", json={"old": password, "new": PASSWORD}).json()
    zoe.headers["x-csrf-token"] = changed["csrf"]
    assert zoe.get("/v1/bases/open").status_code == 200
    assert root.patch("/v1/users/zoe", json={"active": False}).json()["active"] is False
    assert zoe.get("/v1/bases").status_code == 401
    assert zoe.sign_in("zoe").status_code == 401
    root.patch("/v1/users/zoe", json={"active": True})
    assert zoe.sign_in("zoe").status_code == 200
    assert root.delete("/v1/users/zoe").status_code == 204
    assert zoe.get("/v1/bases").status_code == 401
    for refused in ({"active": False}, {"roles": {"*": "editor"}}):
        assert root.patch("/v1/users/root", json=refused).status_code == 422, "last admin"
    assert root.delete("/v1/users/root").status_code == 422
    assert root.get("/v1/users").status_code == 200


def test_a_reset_password_ends_sessions_and_tokens(app):
    rea, root = visitor(app, "rea"), visitor(app, "root")
    token = rea.post("/v1/me/tokens", json={"name": "notebook"}).json()["token"]
    password = root.post("/v1/users/rea/password").json()["password"]
    assert rea.get("/v1/me").status_code == 401
    assert visitor(app, authorization=f"Bearer {token}").get("/v1/bases").status_code == 401
    assert visitor(app).sign_in("rea", password).json()["must_change_password"]


def test_a_token_does_what_it_was_made_for(app, team):
    ed = visitor(app, "ed")
    reading = ed.post("/v1/me/tokens", json={"name": "reading"}).json()["token"]
    writing = ed.post("/v1/me/tokens", json={"name": "writing", "write": True, "days": 1}).json()["token"]
    as_reader, as_writer = (visitor(app, authorization=f"Bearer {token}") for token in (reading, writing))
    upload = {"url": "/v1/bases/papers/documents/a.md", "content": b"words"}
    assert as_reader.put(**upload).status_code == 403
    assert as_writer.put(**upload).status_code == 202
    assert as_reader.post("/v1/bases/open/ask", json=QUESTION).status_code == 200, "needs no word of a page"
    listed = ed.get("/v1/me/tokens").json()
    assert [token["name"] for token in listed] == ["reading", "writing"]
    assert listed[0]["used"] is not None
    assert reading not in json.dumps(listed)
    assert ed.delete(f"/v1/me/tokens/{listed[0]['id']}").status_code == 204
    assert as_reader.get("/v1/bases").status_code == 401
    team.store.note("UPDATE token SET ends = ?", time.time() - 1)
    assert as_writer.get("/v1/bases").status_code == 401, "it has ended"


def test_a_quota_ends_at_midnight_and_counts_chat_and_agents(app, team):
    rea = visitor(app, "rea")
    visitor(app, "root").patch("/v1/users/rea", json={"asks_per_day": 3})
    chat = {"model": "open", "messages": [{"role": "user", "content": "extra fingers"}]}
    tool = {"name": "ask", "arguments": {"question": "extra fingers"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}
    assert rea.post("/v1/bases/open/ask", json=QUESTION).status_code == 200
    assert rea.post("/v1/chat/completions", json=chat).status_code == 200
    assert "isError" not in rea.post("/mcp", json=call).json()["result"]
    refused = rea.post("/v1/bases/open/ask", json=QUESTION)
    assert refused.status_code == 429
    assert "daily limit of 3" in refused.json()["error"]
    assert rea.post("/v1/chat/completions", json=chat).status_code == 429
    assert rea.post("/mcp", json=call).json()["result"]["isError"]
    assert rea.delete("/v1/me/history").status_code == 204
    assert rea.get("/v1/me/history").json() == []
    assert rea.post("/v1/bases/open/ask", json=QUESTION).status_code == 429, "who forgets has asked all the same"
    assert rea.get("/v1/me").json()["asks_today"] == 3
    team.store.note("UPDATE asked SET at = at - 86400")
    assert rea.post("/v1/bases/open/ask", json=QUESTION).status_code == 200


def test_history_is_ones_own_and_opens_the_run(app):
    rea, ada = visitor(app, "rea"), visitor(app, "ada")
    run = rea.post("/v1/bases/open/ask", json=QUESTION).json()["run"]
    streamed = rea.post("/v1/bases/open/ask?stream=true", json={**QUESTION, "question": "cleft palate"})
    assert streamed.status_code == 200
    asked = rea.get("/v1/me/history").json()
    assert [one["question"] for one in asked] == ["cleft palate", QUESTION["question"]]
    assert asked[1]["run"] == run
    assert asked[0]["run"] in streamed.text
    assert ada.get("/v1/me/history").json() == []
    assert ada.get(f"/v1/bases/open/runs/{run}").json()["run"] == run, "a link can be shared"


def test_groups_of_a_user_open_their_part_of_a_base(tmp_path, team):
    settings = make_settings(tmp_path, team)
    build(restricted(tables(), {"BBS": ["hr"]}), tmp_path / "open.kb")
    app = app_of(settings)
    ed, rea = visitor(app, "ed"), visitor(app, "rea")
    assert ed.get("/v1/bases/open/nodes/BBS").status_code == 200
    assert rea.get("/v1/bases/open/nodes/BBS").status_code == 404
    sizes = [page.get("/v1/bases").json()[0]["nodes"] for page in (ed, rea)]
    assert sizes[0] == sizes[1] + 1
    run = ed.post("/v1/bases/open/ask", json=SECRET).json()
    assert "BBS" in keys(run)
    assert rea.get(f"/v1/bases/open/runs/{run['run']}").status_code == 404, "a link shows no more than one may see"
    assert "BBS" not in keys(rea.post("/v1/bases/open/ask", json=SECRET).json())
    assert ed.get(f"/v1/bases/open/runs/{run['run']}").status_code == 200
    visitor(app, "root").patch("/v1/users/ed", json={"groups": []})
    assert ed.get("/v1/bases/open/nodes/BBS").status_code == 404


def test_the_audit_log_says_who_did_what_and_cannot_be_changed(app, team):
    visitor(app).sign_in("rea", "wrong, wrong, wrong")
    ed, root = visitor(app, "ed"), visitor(app, "root")
    ed.put("/v1/bases/papers/documents/a.md", content=b"words")
    ed.delete("/v1/bases/papers/documents/a.md")
    ed.post("/v1/me/tokens", json={"name": "notebook"})
    root.patch("/v1/users/nob", json={"roles": {"open": "reader"}})
    ed.post("/v1/sign-out")
    log = root.get("/v1/audit").json()
    told = [(line["actor"], line["what"]) for line in log]
    assert told[:7] == [
        ("ed", "signed out"),
        ("root", "user changed"),
        ("ed", "token made"),
        ("ed", "document deleted"),
        ("ed", "document uploaded"),
        ("root", "signed in"),
        ("ed", "signed in"),
    ]
    assert ("rea", "sign-in refused") in told
    assert log[0]["address"]
    assert root.get("/v1/audit", params={"before": log[0]["id"], "k": 1}).json() == log[1:2]
    for statement in ("UPDATE audit SET actor = 'nobody'", "DELETE FROM audit"):
        with pytest.raises(StorageError, match="stays"):
            team.store.note(statement)


def test_the_file_is_for_its_owner_and_refuses_other_databases(tmp_path):
    Team.open(tmp_path / "team.db")
    assert stat.S_IMODE((tmp_path / "team.db").stat().st_mode) == 0o600
    (tmp_path / "team.db").chmod(0o644)
    with pytest.raises(SourceError, match="chmod 600"):
        Team.open(tmp_path / "team.db")
    other = tmp_path / "other.db"
    other.touch(0o600)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (a)")
    for wrong in (other, tmp_path):
        with pytest.raises(SourceError):
            Team.open(wrong)
    assert sqlite3.connect(other).execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]


def test_a_change_that_fails_leaves_nothing(place):
    file = Team.open(place).store
    with pytest.raises(ZeroDivisionError), file.change(Actor("me"), "a change"):  # noqa: PT012
        file.note("INSERT INTO user (name, password, is_initial, made) VALUES ('x', 'x', TRUE, 0)")
        _ = 1 / 0
    assert file.rows("SELECT * FROM user") == []
    assert file.rows("SELECT * FROM audit") == []


KILLED = """
import os, sys
from pathlib import Path
from clew.server.wire_team import UserChange
from clew.server.store import SERVER
from clew.server.team.team import Team
team = Team.open(sys.argv[1])
team.users.make(SERVER, "kept", UserChange(roles={"*": "admin"}))
with team.store.change(SERVER, "half a change"):
    team.store.note("DELETE FROM user")
    os.kill(os.getpid(), 9)
"""


def test_a_killed_server_keeps_what_was_done_and_nothing_half_done(place):
    subprocess.run([sys.executable, "-c", KILLED, place], check=False)
    team = Team.open(place)
    assert [user.name for user in team.users.all()] == ["kept"]
    assert [line.what for line in team.audit_log()] == ["user made"]
    if isinstance(team.store, TeamFile):
        assert team.store.row("PRAGMA integrity_check")["integrity_check"] == "ok"


def test_sessions_end_after_a_pause_and_after_a_week(app, team):
    rea = visitor(app, "rea")
    assert rea.get("/v1/me").status_code == 200
    team.store.note("UPDATE session SET seen = seen - 90000")
    assert rea.get("/v1/me").status_code == 401
    rea.sign_in("rea")
    team.store.note("UPDATE session SET made = made - 8 * 86400")
    assert rea.get("/v1/me").status_code == 401


def test_the_command_line_lists_users_and_helps_one_who_forgot(run, tmp_path, place, team):
    assert "root  admin of *" in run("users", place)[1]
    told = json.loads(run("users", place, "--new-password", "root", "--json")[1])
    assert team.sign_in("root", told["password"], "")
    assert json.loads(run("users", place, "--json")[1])[0]["name"] == "ada"
    assert run("users", tmp_path / "none.db")[0] == 2
    assert run("users", place, "--new-password", "nobody")[0] == 2
    assert "one of" in run("serve", tmp_path, "--users", "a", "--token", "0123456789abcdef")[2]


def test_the_command_says_how_to_sign_in_at_the_first_start_and_never_again(tmp_path):
    build(tables(), tmp_path / "tiny.kb")
    command = [
        sys.executable,
        "-m",
        "clew",
        "serve",
        tmp_path / "tiny.kb",
        "--users",
        tmp_path / "team.db",
        "--port",
        "0",
    ]

    def started() -> list[str]:
        with subprocess.Popen([*command, "--workers", "1"], stderr=subprocess.PIPE, text=True) as server:
            told = []
            while not told or "listens on" not in told[-1]:
                told.append(server.stderr.readline())
                assert server.poll() is None, told
            if len(told) > 1:
                password = re.search(r"user is admin, with the password (\S+):", told[0])[1]
                address = told[-1].split()[-1]
                reply = httpx.post(f"{address}/v1/sign-in", json={"name": "admin", "password": password}, timeout=60)
                assert reply.json()["must_change_password"]
            server.terminate()
            return told

    assert len(started()) == 2
    assert len(started()) == 1


def test_workers_answer_each_user_with_that_users_groups(tmp_path, team):
    settings = make_settings(tmp_path, team, workers=2)
    build(restricted(tables(), {"BBS": ["hr"]}), tmp_path / "open.kb")
    app = app_of(settings)
    with visitor(app, "ed") as ed:
        rea = visitor(app, "rea")
        assert "BBS" in keys(ed.post("/v1/bases/open/ask", json=SECRET).json())
        assert "BBS" not in keys(rea.post("/v1/bases/open/ask", json=SECRET).json())


FULL = """
import resource, sys
from pathlib import Path
from clew.core.errors import StorageError
from clew.server.wire_team import UserChange
from clew.server.store import SERVER
from clew.server.team.team import Team

file = Path(sys.argv[1])
team = Team.open(file)
most = max(path.stat().st_size for path in file.parent.iterdir())
resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
refused = 0
for number in range(12):
    try:
        team.users.make(SERVER, f"new{number}", UserChange(groups=[f"{one} " + "x" * 90 for one in range(20)]))
    except StorageError as error:
        assert "cannot be used" in str(error), error
        refused += 1
assert refused, "no limit was met"
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
team.users.make(SERVER, "later", UserChange())
made = {user.name for user in team.users.all()} - {"root", "ada", "ed", "rea", "nob"}
assert "later" in made and len(made) == 13 - refused, made
told = [line.about for line in team.audit_log() if line.what == "user made"]
assert all(any(name in about for about in told) for name in made), told
"""


@in_a_file
@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits on the size of files")
def test_a_full_disk_refuses_a_change_whole_and_the_next_one_goes_on(tmp_path, team):
    team.store.close()
    code = FULL.replace("from clew.server.team.team import Team", CHEAP)
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "team.db"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


CHEAP = """
from clew.server.team.team import Team
import clew.server.team.users
clew.server.team.users.hashed = lambda _: clew.server.team.users.NOBODY
"""


@in_a_file
def test_a_damaged_file_of_users_is_said_to_be_one(tmp_path, team, run):
    team.store.close()
    file = tmp_path / "team.db"
    whole = bytearray(file.read_bytes())
    whole[4096:] = bytes(len(whole) - 4096)
    file.write_bytes(whole)
    code, _, said = run("users", file)
    assert code == 1
    assert "cannot be used" in said
    assert "internal error" not in said


def test_a_clock_that_was_set_back_makes_no_session_without_end(team, monkeypatch):
    now = time.time()
    for ahead, holds in ((3600, True), (30 * 86_400, False)):
        monkeypatch.setattr("clew.server.team.team.time.time", lambda ahead=ahead: now + ahead)
        secret = team.sessions.begin(1)
        monkeypatch.setattr("clew.server.team.team.time.time", lambda: now)
        assert (team.sessions.grant(None, f"clew={secret}") is not None) == holds


SHARED = """
import sys
from pathlib import Path
from clew.server.wire_team import UserChange
from clew.server.store import Actor
from clew.server.team.team import Team, TooManyError
own, place = sys.argv[1:]
team = Team.open(place)
team.users.make_first_admin()
bob = team.store.row("SELECT id FROM user WHERE name = 'bob'")["id"]
asked = 0
for number in range(40):
    team.users.set_member(Actor(own), f"{own}{number}", "bob", "reader")
    if number % 4 == 0:
        team.sessions.make_token(Actor(own), bob, f"{own} {number}", False, 1)
    try:
        team.admit(bob, "open", "a question")
        asked += 1
    except TooManyError:
        pass
print(asked)
"""


def test_two_servers_on_one_team_lose_nothing_of_each_other(place):
    """Two processes open it, give roles, make tokens and count questions at once."""
    team = Team.open(place)
    team.users.make_first_admin()
    team.users.make(Actor("me"), "bob", UserChange(asks_per_day=50))
    command = [sys.executable, "-c", SHARED]
    servers = [subprocess.Popen([*command, name, place], stdout=subprocess.PIPE, text=True) for name in "ab"]
    asked = [int(server.communicate(timeout=200)[0]) for server in servers]
    assert [server.returncode for server in servers] == [0, 0]
    bob = team.users.named("bob")
    assert set(bob.roles) == {f"{name}{number}" for name in "ab" for number in range(40)}
    assert sum(asked) == 50, "the quota is one for both"
    told = [line.what for line in team.audit_log(most=1000)]
    assert (told.count("user changed"), told.count("token made")) == (80, 20)


FIRST = """
import sys
from pathlib import Path
from clew.server.team.team import Team
print(Team.open(sys.argv[1]).users.make_first_admin() or "nobody")
"""


def test_two_servers_may_begin_with_the_same_new_team(place):
    for attempt in range(1 if is_postgres(place) else 3):
        command = [sys.executable, "-c", FIRST, place if is_postgres(place) else f"{place}{attempt}"]
        servers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        told = [server.communicate(timeout=100)[0].strip() for server in servers]
        assert [server.returncode for server in servers] == [0, 0]
        assert told.count("nobody") == 1, "one of them made the admin"


def test_what_one_server_does_another_knows_at_once(tmp_path, place, team):
    settings = make_settings(tmp_path, team)
    one, other = app_of(settings), app_of(replace(settings, access=Team.open(place)))
    rea = visitor(one, "rea")
    cookie = f"clew={rea.cookies['clew']}"
    assert visitor(other, cookie=cookie).get("/v1/me").json()["name"] == "rea"
    visitor(one, "root").patch("/v1/users/rea", json={"active": False})
    assert visitor(other, cookie=cookie).get("/v1/me").status_code == 401
