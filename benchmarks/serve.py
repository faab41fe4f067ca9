"""Load on `clew serve`: many concurrent model-free asks against a server in processes of its own.

    python benchmarks/serve.py .demo/hpo.kb --seconds 300                          # 100 questions, again and again
    python benchmarks/serve.py .demo/hpo.kb --seconds 300 --distinct 0 --think 5   # every one new, people who read
    python benchmarks/serve.py .demo/hpo.kb --seconds 300 --team                   # each user has signed in

First one user asks alone, each question new to the server; then all users ask at once for the given time. Questions
are drawn from the names of the base, `--distinct` of them: as on a real page, many are asked again, and the server
remembers answers that need no model. `--distinct 0` makes every question new. `--think` is the mean pause of a user
between questions; without it the users keep every core busy and wait for each other, whatever the server does.
`--team` gives every user an account of a server with `--users`, so that each question is looked up, counted and kept
in the user's history.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from clew.server.access import EVERY_BASE
from clew.server.team.team import PLAIN_COOKIE, Team, csrf_of
from clew.store.graph.arrays import ArrayKnowledgeBase

TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def questions(folder: Path, count: int, seed: int) -> list[str]:
    kb = ArrayKnowledgeBase.open(folder)
    choose = random.Random(seed)
    names = [kb.node(choose.randrange(kb.count)).name for _ in range(count * 2)]
    return [
        f"Which disease presents with {one} and {other}?" for one, other in zip(names[::2], names[1::2], strict=True)
    ]


class User(asyncio.Protocol):
    """One connection, kept open: a bare client that costs next to nothing, so that what is measured is the server."""

    def __init__(self, head: str, method: str | None) -> None:
        self.head, self.method = head, method
        self.content = bytearray()
        self.whole = 0
        self.reply: asyncio.Future[None] | None = None

    @classmethod
    async def connect(cls, address: str, base: str, method: str | None, session: str = "") -> "User":
        host, _, port = address.removeprefix("http://").partition(":")
        head = f"POST /v1/bases/{base}/ask HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        if session:
            head += f"Cookie: {PLAIN_COOKIE}={session}\r\nX-CSRF-Token: {csrf_of(session)}\r\n"
        loop = asyncio.get_running_loop()
        _, user = await loop.create_connection(lambda: cls(head, method), host, int(port))
        return user

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.content += data
        if not self.whole:
            head, found, _ = self.content.partition(b"\r\n\r\n")
            if not found:
                return
            self.whole = len(head) + 4 + int(bytes(head).lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        if len(self.content) >= self.whole and self.reply is not None and not self.reply.done():
            self.reply.set_result(None)

    def connection_lost(self, _: Exception | None) -> None:
        if self.reply is not None and not self.reply.done():
            self.reply.set_exception(ConnectionError("the server closed the connection"))

    async def ask(self, question: str) -> float:
        asked = {"question": question} if self.method is None else {"question": question, "method": self.method}
        body = json.dumps(asked).encode()
        self.content.clear()
        self.whole, self.reply = 0, asyncio.get_running_loop().create_future()
        begun = time.perf_counter()
        self.transport.write(f"{self.head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await self.reply
        seconds = time.perf_counter() - begun
        if not self.content.startswith(b"HTTP/1.1 200 ") or self.content.find(b'"answers": [{') < 0:
            raise ValueError(bytes(self.content[:400]))
        return seconds


@dataclass
class Watch:
    """Memory and processor time of the server's processes, as the kernel counts them; empty elsewhere than Linux."""

    root: int
    megabytes: list[float] = field(default_factory=list)

    def processes(self) -> list[int]:
        children: dict[int, list[int]] = {}
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(status.read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(status.parent.name))
        found = [self.root]
        for process in found:
            found += children.get(process, [])
        return found

    def cpu_seconds(self) -> float:
        total = 0
        for process in self.processes():
            try:
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            total += int(fields[11]) + int(fields[12])
        return total / TICK

    def memory(self) -> float:
        """Megabytes that the processes hold, pages they share counted once."""
        kilobytes = 0
        for process in self.processes():
            try:
                rolled = Path(f"/proc/{process}/smaps_rollup").read_text()
            except OSError:
                continue
            kilobytes += sum(int(line.split()[1]) for line in rolled.splitlines() if line.startswith("Pss:"))
        return round(kilobytes / 1024, 1)

    async def sample(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            self.megabytes.append(self.memory())


def sign_in(file: Path, count: int) -> list[str]:
    """The sessions of so many users of a new team; nobody needs a password here."""
    team, sessions = Team.open(file), []
    for number in range(count):
        user = team.store.note(
            "INSERT INTO user (name, password, is_initial, made) VALUES (?, '', 0, ?)", f"user{number}", time.time()
        )
        team.store.note("INSERT INTO role VALUES (?, ?, 'admin')", user, EVERY_BASE)
        sessions.append(team.sessions.begin(user))
    team.store.close()
    return sessions


async def load(
    address: str, base: str, given: argparse.Namespace, pool: list[str], watch: Watch, sessions: list[str]
) -> dict[str, object]:
    one = await User.connect(address, base, given.method, sessions[0])
    for number in range(given.workers or os.cpu_count() or 1):
        await one.ask(f"warm up with some fingers {number}")
    alone = [await one.ask(f"{question} (alone)") for question in pool[:30]]
    one.transport.close()
    times: list[float] = []
    errors: list[str] = []
    spent, own = watch.cpu_seconds(), time.process_time()
    watching = asyncio.create_task(watch.sample(max(1.0, given.seconds / 10)))
    until = time.monotonic() + given.seconds

    async def user(number: int) -> None:
        choose = random.Random(number)
        await asyncio.sleep(choose.uniform(0, 1) * given.think)
        connection = await User.connect(address, base, given.method, sessions[number])
        while time.monotonic() < until:
            question = choose.choice(pool)
            if not given.distinct:
                question += f" {number} {len(times)}"
            try:
                times.append(await connection.ask(question))
            except (OSError, ValueError) as failure:
                errors.append(repr(failure))
                return
            if given.think:
                await asyncio.sleep(choose.uniform(0.5, 1.5) * given.think)
        connection.transport.close()

    await asyncio.gather(*(user(number) for number in range(given.users)))
    watching.cancel()
    p95 = statistics.quantiles(times, n=20)[-1]
    single = statistics.median(alone)
    return {
        "method": given.method or "auto",
        "users": given.users,
        "seconds": given.seconds,
        "distinct": given.distinct,
        "think": given.think,
        "workers": given.workers or "one a core",
        "team": given.team,
        "asks": len(times),
        "errors": len(errors),
        "first_errors": errors[:3],
        "single_user_ms": round(single * 1000, 1),
        "p50_ms": round(statistics.median(times) * 1000, 1),
        "p95_ms": round(p95 * 1000, 1),
        "p95_over_single": round(p95 / single, 2),
        "asks_per_second": round(len(times) / given.seconds, 1),
        "server_cpu_ms_per_ask": round((watch.cpu_seconds() - spent) / len(times) * 1000, 2),
        "client_cpu_ms_per_ask": round((time.process_time() - own) / len(times) * 1000, 2),
        "server_megabytes": watch.megabytes,
        "load_average": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("--users", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--method", help="left out: the one the server chooses")
    parser.add_argument("--distinct", type=int, default=100)
    parser.add_argument("--think", type=float, default=0.0)
    parser.add_argument("--workers", type=int, help="left out: what the server chooses")
    parser.add_argument("--team", action="store_true", help="with an account for every user")
    given = parser.parse_args()
    pool = questions(given.base, given.distinct or 200, seed=1)
    command = [sys.executable, "-m", "clew", "serve", str(given.base), "--port", "0", "--per-minute", "10000000"]
    command += ["--workers", str(given.workers)] if given.workers is not None else []
    sessions = [""] * given.users
    scratch = tempfile.TemporaryDirectory()
    if given.team:
        file = Path(scratch.name) / "team.db"
        sessions = sign_in(file, given.users)
        command += ["--users", str(file), "--runs", str(Path(scratch.name) / "runs")]
    with scratch, subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = server.stderr.readline().split()[-1]
        for _ in range(600):
            try:
                httpx.get(f"{address}/health").raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.1)
        try:
            base = given.base.resolve().name.removesuffix(".kb")
            print(json.dumps(asyncio.run(load(address, base, given, pool, Watch(server.pid), sessions)), indent=1))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
