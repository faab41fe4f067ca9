"""Two servers on one base in PostgreSQL, while it is built anew; real servers on loopback."""

import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'clew-kb[postgres]'")
pytest.importorskip("uvicorn")
from clew.server.settings import ServerSettings, named_places
from clew.store.postgres.connection import Address, connect
from web_server import running

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
import two_servers

QUESTION = {"question": "Which genes cause it: Marfan?"}


@pytest.fixture
def served(postgres):
    url = f"{postgres}#served"
    two_servers.publish(url, 0)
    return url


@pytest.mark.parametrize("workers", [1, 2])
def test_each_answer_is_of_one_state(served, workers):
    settings = ServerSettings(named_places([served]), workers=workers)
    with running(settings) as first, running(settings) as second:
        users = two_servers.Users([first, second])
        threads = [threading.Thread(target=users.ask, args=(place,)) for place in range(4)]
        for thread in threads:
            thread.start()
        for number in range(1, 5):
            two_servers.publish(served, number)
            users.wait_for(4)
        with connect(Address.parse(served)) as connection:
            others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            connection.execute(f"SELECT pg_terminate_backend(pid) {others}")
        users.wait_for(4)
        two_servers.publish(served, 5)
        users.stop.set()
        for thread in threads:
            thread.join()
        assert set(users.outcomes) == {"answered"}
        assert len(users.seen) > 1
        for server in (first, second):  # what was written last is what both answer from
            reply = httpx.post(f"{server}/v1/bases/served/ask", json=QUESTION, timeout=60)
            assert two_servers.states_in(reply.json()) <= {"5"}
            assert httpx.get(f"{server}/v1/bases", timeout=60).json()[0]["nodes"] == 7


def test_a_database_that_is_down_is_said_so_and_its_address_is_not(tmp_path, monkeypatch):
    url = "postgresql://anna:s3cret@127.0.0.1:1/db#served"
    with running(ServerSettings(named_places([url]))) as server:
        reply = httpx.post(f"{server}/v1/bases/served/ask", json=QUESTION, timeout=60)
    assert reply.status_code >= 500
    assert "cannot be reached" in reply.text
    assert "s3cret" not in reply.text
    assert "127.0.0.1:1" not in reply.text


def test_workers_are_not_told_a_password_on_their_command_line(served):
    url = served.replace("postgres:@", "postgres:s3cret-word@")
    with running(ServerSettings(named_places([url]), workers=2)) as server:
        assert httpx.get(f"{server}/v1/bases", timeout=60).status_code == 200
        shown = subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True).stdout
    assert "clew.server.answering" in shown
    assert "s3cret-word" not in shown
