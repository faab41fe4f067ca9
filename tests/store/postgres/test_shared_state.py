"""Two real server processes over one database and no files: users, runs, bases made on the page, and their builds."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'clew-kb[postgres]'")
pytest.importorskip("uvicorn")
import clew
from clew.server.database import MAX_CONNECTIONS, DatabaseStore
from clew.server.shared_bases import SharedBases
from clew.server.shared_builds import SharedBuilds
from clew.server.wire import BaseChange
from clew.store.building import build, into
from clew.store.postgres.catalog import Watched
from clew.store.postgres.connection import Address, connect

PASSWORD = "a thread through the maze"
QUESTION = {"question": "Which disease has extra fingers?"}
MYTH = b"# The labyrinth\n\nAriadne gave Theseus a thread. Daedalus built the labyrinth for King Minos of Crete.\n"


class Servers:
    """Servers on one database, started in an empty folder that is also their home."""

    def __init__(self, database: str, place) -> None:
        self.database, self.home, self.scratch = database, place / "home", place / "scratch"
        self.home.mkdir()
        self.scratch.mkdir()
        self.processes: list[subprocess.Popen[str]] = []
        self.clients: list[httpx.Client] = []
        self.password = ""

    def files(self) -> list[Path]:
        """What lies in files; a cache may be thrown away."""
        return [file for file in self.home.rglob("*") if ".cache" not in file.parts]

    def start(self, *options: str) -> httpx.Client:
        """One more server, as a user starts it; a client of it."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "CLEW_"))}
        env = {**own, "HOME": str(self.home), "TMPDIR": str(self.scratch), "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-m", "clew", "serve", f"{self.database}#medicine", "--state", self.database]
        command += ["--port", "0", "--workers", "1", *options]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=self.home, env=env)
        self.processes.append(process)
        for line in process.stderr:
            self.password = (re.findall(r"with the password (\S+):", line) or [self.password])[0]
            if found := re.search(r"listens on (http://\S+)", line):
                self.clients.append(httpx.Client(base_url=found[1], timeout=60))
                return self.clients[-1]
        raise AssertionError("a server did not start")


@pytest.fixture
def servers(own_database, tmp_path, tiny_tables):
    into(f"{own_database}#medicine", lambda folder: build(tiny_tables, folder))
    started = Servers(own_database, tmp_path)
    yield started
    for client in started.clients:
        client.close()
    for process in started.processes:
        process.kill()
        process.communicate()


def sign_in(page: httpx.Client, password: str) -> None:
    """As the first admin, who chooses a password."""
    me = page.post("/v1/sign-in", json={"name": "admin", "password": password})
    page.headers["x-csrf-token"] = me.json()["csrf"]
    changed = page.post("/v1/me/password", json={"old": password, "new": PASSWORD})
    page.headers["x-csrf-token"] = changed.json()["csrf"]


def same_browser(page: httpx.Client, other: httpx.Client) -> httpx.Client:
    """The browser of one server at another one, as behind a balancer."""
    other.cookies.update(page.cookies)
    other.headers["x-csrf-token"] = page.headers["x-csrf-token"]
    return other


def listing(page: httpx.Client) -> dict:
    return page.get("/v1/bases/myths/documents").json()


def until(page: httpx.Client, *states: str) -> dict:
    for _ in range(900):
        found = listing(page)
        if found["build"]["state"] in states:
            return found
        time.sleep(0.1)
    raise AssertionError(f"the build stays {found['build']}")


def test_what_is_done_at_one_server_is_done_at_the_other_and_no_file_is_written(servers):
    one = servers.start()
    other = servers.start()
    sign_in(one, servers.password)
    same_browser(one, other)
    assert other.get("/v1/me").json()["name"] == "admin", "signed in at one is signed in at both"

    runs = [page.post("/v1/bases/medicine/ask", json=QUESTION).json() for page in (one, other)]
    assert runs[0]["answers"] == runs[1]["answers"]
    for run in runs:
        for page in (one, other):
            assert page.get(f"/v1/bases/medicine/runs/{run['run']}").json() == run, "a run is seen at both"
    asked = [line["run"] for line in other.get("/v1/me/history").json()]
    assert asked == [run["run"] for run in reversed(runs)]

    assert one.post("/v1/bases", json={"name": "myths", "title": "Old stories"}).status_code == 201
    assert other.get("/v1/bases/myths").json()["title"] == "Old stories", "made at one, there at the other at once"
    assert one.put("/v1/bases/myths/documents/maze.md", content=MYTH).status_code == 202
    assert listing(other)["documents"][0]["name"] == "maze.md"
    assert until(other, "idle", "failed")["documents"][0]["indexed"]
    for page in (one, other):
        run = page.post("/v1/bases/myths/ask", json={"question": "Who gave a thread?", "method": "bm25"}).json()
        assert "Ariadne" in str(run["answers"][0])
    assert other.delete("/v1/bases/myths").status_code == 204
    assert [base["name"] for base in one.get("/v1/bases").json()] == ["medicine"]
    assert one.post("/v1/managed/myths/restore").json()["title"] == "Old stories"

    refused = [other.post("/v1/sign-in", json={"name": "x", "password": "y"}).status_code for _ in range(12)]
    refused += [one.post("/v1/sign-in", json={"name": "x", "password": "y"}).status_code for _ in range(9)]
    assert refused.count(429) >= 2, "sign-ins are counted over both"
    assert other.post("/v1/sign-out").status_code == 204
    assert one.get("/v1/me").status_code == 401
    assert servers.files() == []


def test_a_killed_server_leaves_its_build_to_the_other_and_nothing_half_written(servers):
    one, two = servers.start(), servers.start()  # both before there is anything to do: a build may be quick
    sign_in(one, servers.password)
    same_browser(one, two)
    one.post("/v1/bases", json={"name": "myths"})
    words = [f"{first}{second}" for first in ["ariadne", "theseus", "minos", "daedalus"] for second in range(2000)]
    texts = "\n\n".join(f"# Part {part}\n\n{' '.join(words[part % 97 :: 97])}." for part in range(1500))
    one.put("/v1/bases/myths/documents/long.txt", content=texts.encode())
    one.put("/v1/bases/myths/documents/maze.md", content=MYTH)
    for page in (one, two):
        until(page, "running")  # a job of one is seen at the other
    while not (building := [process for process in servers.processes if _children(process.pid)]):
        time.sleep(0.01)  # a process of its own builds
    builders = _children(building[0].pid)
    other = two if building == servers.processes[:1] else one

    os.kill(building[0].pid, signal.SIGKILL)
    killed = time.monotonic()
    assert other.get("/v1/me").json()["name"] == "admin"
    assert other.post("/v1/bases/medicine/ask", json=QUESTION).json()["answers"]
    with connect(Address.parse(servers.database)) as connection:
        query = "SELECT worker, built FROM clew_server.made"
        assert connection.execute(query).fetchone()[1] == "{}", "nothing was built when it died"
        done = until(other, "idle", "failed")
        assert time.monotonic() - killed > 10, "only after it was silent for a while"
        assert [document["indexed"] for document in done["documents"]] == [True, True]
        worker, built = connection.execute(query).fetchone()
        assert (worker, sorted(json.loads(built))) == (None, ["long.txt", "maze.md"])
        schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'clew_g%'"
        assert connection.execute(schemas).fetchone() == (2,), "one state of each base, and no other"
    run = other.post("/v1/bases/myths/ask", json={"question": "Who gave a thread?", "method": "bm25"}).json()
    assert "Ariadne" in str(run["answers"][0])
    assert not [pid for pid in builders if _is_alive(pid)], "what the dead one began has ended"
    assert servers.files() == []


def _children(pid: int) -> list[int]:
    told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(number) for number in told.split()]


def _is_alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return subprocess.run(["ps", "-o", "stat=", str(pid)], capture_output=True, text=True).stdout[:1] != "Z"
    return False


@pytest.fixture
def bases(own_database) -> SharedBases:
    return SharedBases(DatabaseStore(own_database), 10)


@pytest.fixture
def builders(bases):
    """Servers as far as they build, without their signs of life."""
    made = [SharedBuilds(bases, lambda: None) for _ in range(4)]
    yield made
    for builder in made:
        builder.close()


def take(builder: SharedBuilds) -> bool:
    """Take a build without doing it, as one that is killed at once; whether there was one."""
    builder._build = None
    builder._do = lambda build: None
    builder._take()
    return builder._build is not None


def let_time_pass(bases: SharedBases) -> None:
    bases.store.note("UPDATE made SET seen = seen - make_interval(secs => 20)")


def test_of_many_that_want_a_build_one_gets_it(bases, builders):
    bases.make("myths", BaseChange()).put("maze.md", MYTH)
    taken: list[bool] = []
    threads = [threading.Thread(target=lambda one=one: taken.append(take(one))) for one in builders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [False, False, False, True]
    assert bases.all()["myths"].state().state == "running"


def test_a_build_that_servers_die_of_is_given_up(bases, builders):
    documents = bases.make("myths", BaseChange())
    documents.put("maze.md", MYTH)
    for builder in builders[:3]:
        assert documents.state().state == "waiting"
        assert take(builder)
        assert documents.state().state == "running"
        let_time_pass(bases)
    assert not take(builders[3])
    assert "3 servers stopped" in documents.state().error
    documents.put("maze.md", MYTH)
    assert documents.state().state == "waiting", "what is uploaded again is tried again"
    assert take(builders[3])


def test_one_who_was_slow_neither_writes_over_the_next_one_nor_says_how_it_ended(bases, builders, monkeypatch):
    slow, fast, *_ = builders
    documents = bases.make("myths", BaseChange())
    documents.put("maze.md", MYTH)
    assert take(slow)
    let_time_pass(bases)
    fast._take()
    fast._work.join()
    built = documents.indexed()
    assert list(built) == ["maze.md"]
    monkeypatch.setattr("clew.server.shared_builds.Watched.newest", lambda self: None)  # as when the slow one began
    SharedBuilds._do(slow, slow._build)
    assert documents.indexed() == built
    assert documents.state().state == "idle"
    with connect(documents.address) as connection:
        count = "SELECT count(*) FROM clew.generation"
        assert connection.execute(count).fetchone() == (1,), "the slow one wrote nothing"


def test_a_build_stops_when_a_file_of_it_is_deleted(bases, builders):
    documents = bases.make("myths", BaseChange())
    for name in ("maze.md", "other.md"):
        documents.put(name, MYTH)
    assert take(builders[0])
    documents.delete("other.md")
    builders[0]._beat()
    assert builders[0]._build.is_lost
    builders[1]._take()
    builders[1]._work.join()
    assert list(documents.indexed()) == ["maze.md"]
    documents.delete("maze.md")
    builders[1]._take()
    builders[1]._work.join()
    assert documents.indexed() == {}
    assert Watched(documents.base).newest() is None, "without documents there is nothing to ask"


def test_a_database_of_users_that_is_down_is_said_to_be(servers):
    page = servers.start()
    assert page.get("/health").status_code == 200, "it has started"
    page.cookies.set("clew", "x")
    with connect(Address.parse(servers.database)) as connection:
        name = connection.execute("SELECT current_database()").fetchone()[0]
    with connect(Address.parse(servers.database.replace(f"/{name}?", "/postgres?"))) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        connection.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        refused = page.get("/v1/me")
        assert refused.status_code == 503
        assert "does not answer" in refused.json()["error"]
        assert page.get("/health", headers={"cookie": ""}).status_code == 200
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    assert page.get("/v1/me").status_code == 401, "and goes on when it is back"


def test_many_requests_share_few_connections(own_database):
    """A database takes a hundred as it comes, which two servers with threads for all would use up."""
    store = DatabaseStore(own_database)
    threads = [threading.Thread(target=store.rows, args=("SELECT pg_sleep(0.05)",)) for _ in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [found] = store.rows("SELECT count(*) AS open FROM pg_stat_activity WHERE datname = current_database()")
    assert 2 <= found["open"] <= MAX_CONNECTIONS


def test_a_database_with_bases_of_the_version_before_is_read_as_it_is_and_taken_over(own_database, tiny_tables):
    into(f"{own_database}#medicine", lambda folder: build(tiny_tables, folder))
    with connect(Address.parse(own_database)) as connection:
        connection.execute("DROP SCHEMA clew_server CASCADE; DELETE FROM clew.migration WHERE number = 3")
        assert clew.open(f"{own_database}#medicine").find("Marfan syndrome")
        assert SharedBases(DatabaseStore(own_database), 10).all() == {}
        assert connection.execute("SELECT max(number) FROM clew.migration").fetchone() == (3,)


@pytest.mark.parametrize("option", ["--users", "--runs", "--bases", "--documents"])
def test_files_beside_the_database_are_refused(run, option):
    code, _, said = run("serve", "--state", "postgresql://127.0.0.1:1/db", option, "here")
    assert code == 2
    assert option in said
