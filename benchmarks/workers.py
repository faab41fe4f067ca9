"""What --ray costs on one machine and what a killed worker changes; prints JSON (needs the extra `ray`).

The same documents are embedded and the same questions answered without workers and by those of one Ray, each time in a
new process and in turns, so that whatever else the machine does meets both. Then once more by Ray, and one worker is
killed (SIGKILL) when half is done. Results are compared byte for byte: the files of vectors, and the rows of the runs
without their times. `seconds` is what passed, `cpu` what all processes used together, workers included: on a machine
that does other work only the second can be compared. Starting Ray is told apart.

usage: python benchmarks/workers.py KB QUESTIONS.jsonl [--nodes 2048] [--asked 60] [--method focus_plus] [--rounds 2]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from clew.core.workers import hired
from clew.lab.datasets.load import load_dataset
from clew.lab.evaluation.benchmark import Benchmark
from clew.lab.evaluation.run_folder import QuestionRow
from clew.store.index.vector_store import VectorStore
from clew.store.index.vectors import DiskVectors
from clew.store.open_base import OpenBase, embedding_by

TICKS = os.sysconf("SC_CLK_TCK")
Work = Callable[[str | None, Path], None]
"""Called with the address of a cluster, or None, and the folder for what comes out."""


def worker_processes() -> dict[int, float]:
    """The processes of workers below this one, and the seconds of a processor that each has used."""
    stats, found = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stats[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()
            if (folder / "cmdline").read_bytes().startswith(b"ray::Worker"):
                found.append(int(folder.name))
        except OSError:  # it has ended
            continue

    def is_below(process: int) -> bool:
        return process == os.getpid() or (process in stats and is_below(int(stats[process][1])))

    return {one: (int(stats[one][11]) + int(stats[one][12])) / TICKS for one in sorted(found) if is_below(one)}


def embed(kb: str, nodes: int, address: str | None, out: Path) -> None:
    """The vectors of the first nodes of a base."""
    tools = OpenBase.open(kb)
    store = VectorStore.open(out, tools.embedder)
    with hired(address) as workers:
        by = embedding_by(workers, tools.remembered_embedder or "minilm", tools.embedder.name)
        DiskVectors(nodes, tools.kb.text, tools.embedder, store, tools.lexical).embed_all(embed=by)


def evaluate(kb: str, questions: str, asked: int, method: str, address: str | None, out: Path) -> None:
    """A run, as `clew eval --out` keeps it."""
    benchmark = Benchmark(load_dataset(questions).sample(asked, 0), kb)
    with hired(address) as workers:
        benchmark.run(benchmark.method(method), out=out, workers=workers)


def vectors(out: Path) -> list[bytes]:
    return [file.read_bytes() for file in sorted(out.rglob("*.bin"))]


def rows(out: Path) -> list[bytes]:
    """Without their times, by question."""
    lines = [line for file in out.rglob("*.jsonl") for line in file.read_bytes().splitlines() if line.endswith(b"}")]
    found = [QuestionRow.from_json(json.loads(line)) for line in lines]
    timeless = [replace(row, seconds=0, trace=tuple(replace(one, seconds=None) for one in row.trace)) for row in found]
    return sorted(row.to_line() for row in timeless)


@dataclass
class Way:
    """How work was done: seconds, processor seconds, and what came out."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    result: list[bytes] = field(default_factory=list)

    def told(self) -> dict[str, object]:
        return {name: [round(one, 1) for one in getattr(self, name)] for name in ("seconds", "cpu")}


def once(work: Work, address: str | None, kept: Callable[[Path], list[bytes]], way: Way, half: int = 0) -> int:
    """Do the work in a new process; where `half` is given, kill a worker when so many bytes or rows are there."""
    killed = 0
    with tempfile.TemporaryDirectory() as folder:
        out, begun, used = Path(folder), time.perf_counter(), os.times()
        doing = multiprocessing.get_context("spawn").Process(target=work, args=(address, out))
        doing.start()
        workers: dict[int, float] = {}
        while doing.is_alive():
            workers |= (now := worker_processes())
            if half and not killed and now and sum(map(len, kept(out))) >= half:
                killed = min(now)
                os.kill(killed, signal.SIGKILL)
            doing.join(0.2)
        assert doing.exitcode == 0, doing.exitcode
        way.seconds.append(time.perf_counter() - begun)
        after = os.times()
        own = after.children_user + after.children_system - used.children_user - used.children_system
        way.cpu.append(own + sum(workers.values()))
        way.result = kept(out)
    return killed


@dataclass(frozen=True)
class Embedding:
    kb: str
    nodes: int

    def __call__(self, address: str | None, out: Path) -> None:
        embed(self.kb, self.nodes, address, out)


@dataclass(frozen=True)
class Evaluation:
    kb: str
    questions: str
    asked: int
    method: str

    def __call__(self, address: str | None, out: Path) -> None:
        evaluate(self.kb, self.questions, self.asked, self.method, address, out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kb")
    parser.add_argument("questions", help="JSONL")
    parser.add_argument("--nodes", type=int, default=2048)
    parser.add_argument("--asked", type=int, default=60)
    parser.add_argument("--method", default="focus_plus")
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    told: dict[str, object] = {"nodes": given.nodes, "asked": given.asked, "method": given.method}
    works: dict[str, tuple[Work, Callable[[Path], list[bytes]]]] = {
        "embedding": (Embedding(given.kb, given.nodes), vectors),
        "evaluation": (Evaluation(given.kb, given.questions, given.asked, given.method), rows),
    }
    start = time.perf_counter()
    with hired("auto") as workers:
        import ray

        assert workers is not None
        address = ray.get_runtime_context().gcs_address
        told |= {"Ray started in seconds": round(time.perf_counter() - start, 1), "workers": workers.count}
        for name, (work, kept) in works.items():
            here, there, lamed = Way(), Way(), Way()
            once(work, None, kept, Way())  # what a base computes when it is first needed is there from now on
            for _ in range(given.rounds):
                once(work, None, kept, here)
                once(work, address, kept, there)
            killed = once(work, address, kept, lamed, sum(map(len, here.result)) // 2)
            ratios = {
                what: round(statistics.median(getattr(there, what)) / statistics.median(getattr(here, what)), 3)
                for what in ("seconds", "cpu")
            }
            told[name] = {
                "here": here.told(),
                "by Ray": {**there.told(), "identical": there.result == here.result},
                "ratio of medians": ratios,
                "one killed": {**lamed.told(), "process": killed, "identical": lamed.result == here.result},
                "results": len(here.result),
            }
            print(json.dumps({name: told[name]}), flush=True)
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
