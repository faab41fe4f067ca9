"""The same questions to RDF built into a base and to the same RDF behind a SPARQL server on loopback; prints JSON.

Everything that an answer holds is compared: nodes, order, scores, evidence, the query in words, notes. Only the formal
queries differ: they speak of the nodes as the base, or as the endpoint, calls them.

usage: python benchmarks/endpoint.py hpo|metaqa DATA --limit 50 --method focus_plus      (needs the package `oxigraph`)
       … --lookup                                    (names are looked up at the endpoint, as at one too large to read)
       … --texts                                     (names, texts and vectors in PostgreSQL, filled from the endpoint)
       … --at http://127.0.0.1:8890/sparql           (a server that has loaded the base already)
       … --write base.nt                             (the statements such a server has to load)
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from shutil import copyfile, which
from typing import Any

from postgres import hpo, metaqa, server, share_vectors, told

import clew
from clew.answering.methods.catalog import create
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.rdf_export import write_ntriples
from clew.store.open_base import OpenBase, OpenRemoteBase
from clew.store.remote.sparql import SparqlKnowledgeBase
from clew.store.remote.sparql_endpoint import Politeness, SparqlEndpoint
from clew.store.remote.sparql_schema import EndpointVocabulary
from clew.store.remote_bases import described_nodes, open_stored

METHODS = ("focus_plus", "four_step_focus", "subgraph_reranking", "aligned_paths")
TEXT_METHODS = {name: {"with_relations": "false"} for name in ("bm25", "vector_search", "hybrid")}
"""Documents of a graph elsewhere hold no relations."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=["hpo", "metaqa"])
    parser.add_argument("data", type=Path)
    parser.add_argument("--limit", type=int, default=50)
    parser.add_argument(
        "--method", action="append", choices=(*METHODS, *TEXT_METHODS), help="all of them where none is given"
    )
    parser.add_argument("--lookup", action="store_true")
    parser.add_argument("--texts", action="store_true")
    parser.add_argument("--at", help="the address of a server that holds the base")
    parser.add_argument("--write", type=Path, help="only write the base as N-Triples")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        os.environ["CLEW_CACHE"] = str(folder / "cache")
        questions = {"hpo": hpo, "metaqa": metaqa}[given.which](given.data, folder / "kb")
        write_ntriples(ArrayKnowledgeBase.open(folder / "kb"), folder / "kb.nt")
        if given.write:
            copyfile(folder / "kb.nt", given.write)
            return
        clew.build([folder / "kb.nt"], folder / "rdf.kb")
        with oxigraph(folder) if given.at is None else nullcontext(given.at) as address:
            endpoint = SparqlEndpoint(address, politeness=Politeness(per_second=10_000))
            begun = time.perf_counter()
            if given.texts:
                texts = f"{server(folder / 'pg')}#texts"
                clew.build([f"sparql+{address}"], texts, nodes_only=True)
                nodes = open_stored(texts)
            else:
                nodes = None if given.lookup else described_nodes(endpoint, EndpointVocabulary(), folder / "endpoints")
            result: dict[str, Any] = {"base": given.which, "seconds_to_read": round(time.perf_counter() - begun, 1)}
            tools = (
                OpenBase.open(folder / "rdf.kb"),
                OpenRemoteBase(SparqlKnowledgeBase(endpoint, describe=lambda: nodes)),
            )
            asked = questions[:: max(1, len(questions) // given.limit)][: given.limit]
            if given.texts:
                for question in asked:
                    for method in given.method or METHODS:
                        create(method, TEXT_METHODS.get(method)).answer(
                            question, tools[0]
                        )  # computes the vectors that matter
                share_vectors(*tools)
            for method in given.method or METHODS:
                result[method] = compare(method, tools, endpoint, asked)
                print(json.dumps({method: result[method]}), file=sys.stderr, flush=True)
    print(json.dumps(result, indent=1))


@contextmanager
def oxigraph(folder: Path):
    """A server of its own for the statements in a folder; yields its address."""
    program = which("oxigraph", path=str(Path(sys.executable).parent)) or which("oxigraph")
    assert program is not None, "pip install oxigraph"
    subprocess.run([program, "load", "--location", folder / "store", "--file", folder / "kb.nt"], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, "serve-read-only", "--location", folder / "store", "--bind", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as running:
        try:
            time.sleep(2)
            yield f"http://127.0.0.1:{port}/query"
        finally:
            running.terminate()


def compare(name: str, tools: tuple[OpenBase, OpenBase], endpoint: Any, questions: list[str]) -> dict:
    method, times, queries = create(name, TEXT_METHODS.get(name)), ([], []), []
    ask = endpoint._ask
    sent: list[str] = []
    endpoint._ask = lambda query, *rest: (sent.append(query), ask(query, *rest))[1]  # type: ignore[method-assign]
    different = []
    same_nodes = 0
    for question in questions:
        found = []
        before = len(sent)
        for own, seconds in zip(tools, times, strict=True):
            begun = time.perf_counter()
            answer = method.answer(question, own)
            seconds.append(time.perf_counter() - begun)
            shown = told(answer)
            shown["query"] = {key: part for key, part in (shown.get("query") or {}).items() if key not in FORMAL}
            found.append((shown, sorted(candidate.node.key for candidate in answer.matches), answer.value))
        queries.append(len(sent) - before)
        same_nodes += found[0][1:] == found[1][1:]
        if found[0][0] != found[1][0]:
            one, other = found[0][0], found[1][0]
            different.append({"question": question, "parts": [part for part in one if one[part] != other.get(part)]})
    endpoint._ask = ask  # type: ignore[method-assign]
    return {
        "n": len(questions),
        "identical": len(questions) - len(different),
        "same_matches_and_value": same_nodes,
        "embedded_median_ms": round(statistics.median(times[0]) * 1000, 1),
        "endpoint_median_ms": round(statistics.median(times[1]) * 1000, 1),
        "queries_median": statistics.median(queries),
        "queries_most": max(queries),
        "different": different[:5],
    }


FORMAL = ("sparql", "cypher")

if __name__ == "__main__":
    main()
