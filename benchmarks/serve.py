"""Load on `clew serve`: many concurrent model-free asks against a server in a process of its own.

    python benchmarks/serve.py .demo/hpo.kb --seconds 300 --users 64

First one user asks alone, each question new to the server; then all users ask at once for the given time. Questions
are drawn from the names of the base, `--distinct` of them: as on a real page, many are asked again, and the server
remembers answers that need no model. `--distinct 0` makes every question new. `--think` is the pause of a user between
questions.
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
from pathlib import Path

import httpx

from clew.kb.arrays import ArrayKnowledgeBase


def questions(folder: Path, count: int, seed: int) -> list[str]:
    kb = ArrayKnowledgeBase.open(folder)
    choose = random.Random(seed)
    names = [kb.node(choose.randrange(kb.count)).name for _ in range(count * 2)]
    return [
        f"Which disease presents with {one} and {other}?" for one, other in zip(names[::2], names[1::2], strict=True)
    ]


class User:
    """One connection, kept open: a bare client, so that what is measured is the server."""

    def __init__(self, address: str, base: str, method: str) -> None:
        self.host, _, port = address.removeprefix("http://").partition(":")
        self.port, self.path, self.method = int(port), f"/v1/bases/{base}/ask", method

    async def __aenter__(self) -> "User":
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def ask(self, question: str) -> float:
        body = json.dumps({"question": question, "method": self.method}).encode()
        head = f"POST {self.path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
        begun = time.perf_counter()
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        told = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(told.split("content-length: ")[1].split("\r\n")[0])
        content = await self.reader.readexactly(length)
        seconds = time.perf_counter() - begun
        if " 200 " not in told.split("\r\n")[0] or b'"answers": [{' not in content:
            raise ValueError(content[:200])
        return seconds


async def load(address: str, base: str, given: argparse.Namespace, pool: list[str]) -> dict[str, object]:
    async with User(address, base, given.method) as one:
        await one.ask("warm up with some fingers")
        alone = [await one.ask(f"{question} (alone)") for question in pool[:30]]
    times: list[float] = []
    errors: list[str] = []
    until = time.monotonic() + given.seconds

    async def user(number: int) -> None:
        choose = random.Random(number)
        async with User(address, base, given.method) as own:
            while time.monotonic() < until:
                question = choose.choice(pool)
                if not given.distinct:
                    question += f" {number} {len(times)}"
                try:
                    times.append(await own.ask(question))
                except (OSError, EOFError, ValueError) as failure:
                    errors.append(repr(failure))
                    return
                await asyncio.sleep(choose.uniform(0.5, 1.5) * given.think)

    await asyncio.gather(*(user(number) for number in range(given.users)))
    p95 = statistics.quantiles(times, n=20)[-1]
    single = statistics.median(alone)
    return {
        "method": given.method,
        "users": given.users,
        "seconds": given.seconds,
        "distinct": given.distinct,
        "think": given.think,
        "workers": given.workers,
        "asks": len(times),
        "errors": len(errors),
        "first_errors": errors[:3],
        "single_user_ms": round(single * 1000, 1),
        "p50_ms": round(statistics.median(times) * 1000, 1),
        "p95_ms": round(p95 * 1000, 1),
        "p95_over_single": round(p95 / single, 2),
        "asks_per_second": round(len(times) / given.seconds, 1),
        "load_average": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("--users", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--method", default="bm25")
    parser.add_argument("--distinct", type=int, default=100)
    parser.add_argument("--think", type=float, default=0.0)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    pool = questions(given.base, given.distinct or 200, seed=1)
    command = [sys.executable, "-m", "clew", "serve", str(given.base), "--port", "0", "--per-minute", "10000000"]
    command += ["--workers", str(given.workers), "--runs", tempfile.mkdtemp()] if given.workers > 1 else []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
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
            print(json.dumps(asyncio.run(load(address, base, given, pool)), indent=1))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
