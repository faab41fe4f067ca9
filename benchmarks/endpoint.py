"""The same questions to the embedded base and through a SPARQL server on loopback: are the answers identical?

usage: python benchmarks/endpoint.py metaqa:DIR:2-hop-dev -n 200      (needs the package `oxigraph`)
       … --at http://127.0.0.1:8890/sparql                             (a server that has loaded the base already)
       … --write base.nt                                               (the statements such a server has to load)
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from shutil import which

from clew.building import build
from clew.datasets.load import load_dataset
from clew.kb.arrays import ArrayKnowledgeBase
from clew.kb.rdf_export import write_ntriples
from clew.kb.sparql import SparqlKnowledgeBase
from clew.kb.sparql_endpoint import Politeness, SparqlEndpoint
from clew.methods.catalog import create
from clew.methods.protocol import Method
from clew.toolbox import RemoteToolbox, Toolbox


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("questions")
    parser.add_argument("-n", type=int, default=200)
    parser.add_argument("--method", default="aligned_paths")
    parser.add_argument("--at", help="the address of a server that holds the base")
    parser.add_argument("--write", type=Path, help="only write the base as N-Triples")
    chosen = parser.parse_args()
    dataset = load_dataset(chosen.questions)
    assert dataset.base is not None, "the data set brings no base"
    questions = random.Random(0).sample(list(dataset.questions), min(chosen.n, len(dataset.questions)))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        build(dataset.base, folder / "kb")
        if chosen.write:
            print(write_ntriples(ArrayKnowledgeBase.open(folder / "kb"), chosen.write), "statements")
            return
        with oxigraph(folder) if chosen.at is None else nullcontext(chosen.at) as address:
            endpoint = SparqlEndpoint(address, politeness=Politeness(per_second=10_000))
            tools = {
                "embedded": Toolbox.open(folder / "kb"),
                "endpoint": RemoteToolbox(SparqlKnowledgeBase(endpoint)),
            }
            result = compare(create(chosen.method), tools, [question.text for question in questions])
    print(json.dumps({"questions": chosen.questions, "method": chosen.method, **result}, indent=1))


@contextmanager
def oxigraph(folder: Path):
    """A server of its own for the base in a folder; yields its address."""
    server = which("oxigraph", path=str(Path(sys.executable).parent)) or which("oxigraph")
    assert server is not None, "pip install oxigraph"
    write_ntriples(ArrayKnowledgeBase.open(folder / "kb"), folder / "kb.nt")
    subprocess.run([server, "load", "--location", folder / "store", "--file", folder / "kb.nt"], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [server, "serve-read-only", "--location", folder / "store", "--bind", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as running:
        try:
            time.sleep(2)
            yield f"http://127.0.0.1:{port}/query"
        finally:
            running.terminate()


def compare(method: Method, tools: dict[str, Toolbox], questions: list[str]) -> dict:
    same, times = 0, {name: [] for name in tools}
    different = []
    for question in questions:
        found = []
        for name, own in tools.items():
            begun = time.perf_counter()
            found.append(sorted(candidate.node.name for candidate in method.answer(question, own).answer_set))
            times[name].append(time.perf_counter() - begun)
        same += found[0] == found[1]
        if found[0] != found[1]:
            different.append(question)
    median = {name: round(statistics.median(seconds) * 1000, 1) for name, seconds in times.items()}
    return {"n": len(questions), "identical": same, "median_ms": median, "different": different[:5]}


if __name__ == "__main__":
    main()
