"""Speed of the indexes over a million nodes, each against a plain alternative in the same run; prints JSON.

usage: python benchmarks/search.py [--count 1000000] [--only names,lexical,vectors,documents]

Names are one to four English words (those of the embedder's vocabulary), frequent ones more often. Times are in
milliseconds of wall clock (median and 95th percentile) and of this process's processor time (mean).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rapidfuzz import fuzz, process
from scipy.sparse import csr_array

from clew.core.schema import NodeType, Schema
from clew.core.types import NodeSet
from clew.models.embedding.onnx import BUNDLED
from clew.models.embedding.opening import CachedEmbedder, HashEmbedder
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.build import write_graph
from clew.store.graph.tables import Piece, Problems, Tables
from clew.store.index.lexical import LexicalIndex
from clew.store.index.names import NameIndex
from clew.store.index.tokens import terms
from clew.store.index.vector_store import VectorStore, hashes_of
from clew.store.index.vectors import DiskVectors

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIMENSION = 384


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--only", default="names,lexical,vectors,documents")
    chosen = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for part in chosen.only.split(","):
            rows += PARTS[part](chosen.count, Path(scratch) / part)
    machine = {"machine": platform.machine(), "processors": os.cpu_count(), "load": os.getloadavg()[0]}
    print(json.dumps({**machine, "count": chosen.count, "rows": rows}, indent=1))


def names(count: int, folder: Path) -> list[dict[str, Any]]:
    aliases = synthetic_names(count)
    column = pa.array(aliases, pa.large_string())
    built = seconds(lambda: NameIndex.write(folder, column, np.arange(len(aliases), dtype=np.int32)))
    schema = Schema((NodeType("thing", len(aliases)),), ())
    index = NameIndex.open(folder, np.zeros(len(aliases), dtype=np.int32), schema)
    chooser = random.Random(7)
    long = [alias for alias in chooser.sample(aliases, 2000) if len(alias) >= 8]
    pairs = [(alias, with_typos(alias, chooser)) for alias in long[:300]]
    found = sum(any(link.alias == alias for link in index.link(wrong, k=5)[:1]) for alias, wrong in pairs)
    questions = [
        f"Who was the director of {a} and what did {b} write?" for a, b in zip(long[::2], long[1::2], strict=False)
    ]
    mine = row("a name with two typos", measure(index.link, [wrong for _, wrong in pairs]), target=3.0)
    mine |= {"aliases": len(aliases), "found_first": found / len(pairs)} | built
    scan = measure(lambda text: process.extractOne(text, aliases, scorer=fuzz.ratio), [wrong for _, wrong in pairs[:5]])
    known = dict.fromkeys(aliases)
    exact = row("an exact name", measure(lambda alias: index.link(alias, k=1), [alias for alias, _ in pairs]))
    return [
        against(mine, "rapidfuzz.process.extractOne over all aliases", scan),
        against(exact, "a dict of all aliases", measure(known.get, [alias for alias, _ in pairs])),
        row("all names in a question", measure(index.mentions, questions[:300]), target=5.0),
    ]


def lexical(count: int, folder: Path) -> list[dict[str, Any]]:
    documents = pa.array(synthetic_names(count, most=20, distinct=False), pa.large_string())
    built = seconds(lambda: LexicalIndex.write(folder, documents))
    index = LexicalIndex.open(folder)
    chooser = random.Random(8)
    queries = [" ".join(chooser.sample(documents[chooser.randrange(count)].as_py().split(), 4)) for _ in range(100)]
    few = NodeSet.of(np.random.default_rng(1).choice(count, 1000, replace=False))
    matrix = as_matrix(index)

    def product(query: str) -> None:
        wanted = np.zeros(len(index.vocabulary), dtype=np.float32)
        for term in terms(query):
            wanted[index.vocabulary.find(term.encode())] += 1
        scores = matrix @ wanted
        np.argpartition(scores, count - 100)

    whole = row("BM25, the best 100 of all", measure(lambda query: index.search(query, 100), queries), target=30.0)
    whole |= built | {"postings": len(index.documents)}
    among = row("BM25, the best 20 among 1,000", measure(lambda query: index.search(query, 20, among=few), queries))
    alternative = measure(product, queries[:5])
    name = "scipy's product of the whole sparse matrix"
    return [against(whole, name, alternative), against(among, name, alternative)]


def vectors(count: int, folder: Path) -> list[dict[str, Any]]:
    embedder = CachedEmbedder(HashEmbedder(DIMENSION))
    store = VectorStore.open(folder, embedder)
    generator = np.random.default_rng(2)
    for start in range(0, count, 50_000):
        size = min(50_000, count - start)
        made = generator.standard_normal((size, DIMENSION), dtype=np.float32)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        store.add(hashes_of([str(node) for node in range(start, start + size)]), made)
    index = DiskVectors(count, str, embedder, store, lexical=NoIndex(), generation="benchmark")
    index.embed_all()
    few = NodeSet.of(generator.choice(count, 1000, replace=False))
    whole = np.array(store.gather(np.arange(count)))
    queries = [f"query {number}" for number in range(30)]
    embedder.embed(queries, role="query")  # what is measured is the search

    def scan(query: str) -> None:
        scores = whole @ embedder.embed([query], role="query")[0]
        np.argpartition(scores, count - 20)

    gigabytes = whole.nbytes / 1e9
    read = measure(lambda _: whole.sum(dtype=np.float32), queries[:5])
    picked = measure(lambda query: index.search(query, 20, among=few), queries)
    among = row("vectors, the best 20 among 1,000", picked, target=1.0)
    scanned = measure(lambda query: index.search(query, 20), queries)
    everything = row("vectors, the best 20 of all", scanned, target=150.0)
    everything |= {"gigabytes": gigabytes, "gigabytes_per_second": gigabytes / everything["median_ms"] * 1000}
    everything |= {"one_pass_over_memory_ms": round(read["median_ms"], 3)}
    everything["met"] = everything["met"] or everything["median_ms"] <= read["median_ms"]  # or memory bandwidth
    name = "numpy: the product of all, in memory"
    return [against(among, name, measure(scan, queries[:10])), against(everything, name, measure(scan, queries[:10]))]


def documents(count: int, folder: Path) -> list[dict[str, Any]]:
    folder.mkdir(parents=True)
    keys = pa.array([f"n{node:08}" for node in range(count)])
    texts = synthetic_names(count, most=20, distinct=False)
    table = pa.table({"key": keys, "name": pc.binary_join_element_wise("Node", keys, " "), "text": texts})
    edges = pa.table({"head": keys[:2], "relation": ["next", "next"], "tail": keys[1:3]})
    source = Tables((Piece(table, "nodes"),), (Piece(edges, "edges"),))
    graph = write_graph(source, folder, Problems())
    kb = ArrayKnowledgeBase.staged(folder, graph.to_json())
    chooser = random.Random(9)
    wanted = [[chooser.randrange(count) for _ in range(20)] for _ in range(50)]
    plain = {node: {"name": f"Node n{node:08}", "text": text} for node, text in enumerate(texts)}

    def from_dict(nodes: Sequence[int]) -> list[str]:
        return ["{name} (entity)\n{text}".format(**plain[node]) for node in nodes]

    mine = row("20 documents by id", measure(lambda nodes: [kb.text(node) for node in nodes], wanted), target=1.0)
    return [against(mine, "a dict of dicts in memory", measure(from_dict, wanted))]


PARTS: dict[str, Callable[[int, Path], list[dict[str, Any]]]] = {
    "names": names,
    "lexical": lexical,
    "vectors": vectors,
    "documents": documents,
}


def synthetic_names(count: int, *, most: int = 4, distinct: bool = True) -> list[str]:
    """Runs of English words, frequent ones more often."""
    vocabulary = json.loads((BUNDLED / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    words = np.array([word for word in vocabulary if re.fullmatch("[a-z]{3,}", word)])
    generator = np.random.default_rng(3)
    generator.shuffle(words)
    found: dict[str, None] | list[str] = {} if distinct else []
    while len(found) < count:
        lengths = generator.integers(1 if distinct else most // 2, most + 1, count)
        drawn = words[(generator.pareto(0.6, lengths.sum()) * 300).astype(np.int64) % len(words)].tolist()
        ends = np.cumsum(lengths)
        made = [
            " ".join(drawn[end - length : end]) for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)
        ]
        found.update(dict.fromkeys(made)) if isinstance(found, dict) else found.extend(made)
    return list(found)[:count]


def with_typos(text: str, chooser: random.Random, typos: int = 2) -> str:
    """Letters replaced, left out, put in or swapped."""
    letters = list(text)
    for _ in range(typos):
        place = chooser.randrange(len(letters) - 1)
        kind = chooser.randrange(4)
        if kind == 0:
            letters[place] = chooser.choice(LETTERS)
        elif kind == 1:
            del letters[place]
        elif kind == 2:
            letters.insert(place, chooser.choice(LETTERS))
        else:
            letters[place], letters[place + 1] = letters[place + 1], letters[place]
    return "".join(letters)


def as_matrix(index: LexicalIndex) -> Any:
    """The weights of all documents and terms as one sparse matrix."""
    owners = np.repeat(np.arange(len(index.vocabulary)), np.diff(index.offsets))
    return csr_array((index.weights, (index.documents, owners)), shape=(len(index), len(index.vocabulary)))


class NoIndex:
    def search(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("a complete base needs no lexical index")


def seconds(build: Callable[[], None]) -> dict[str, float]:
    begun, processor = time.perf_counter(), time.process_time()
    build()
    return {
        "build_seconds": round(time.perf_counter() - begun, 2),
        "build_processor_seconds": round(time.process_time() - processor, 2),
    }


def measure(function: Callable[[Any], Any], inputs: Sequence[Any]) -> dict[str, float]:
    """Wall and processor time of one call, after a warm-up with the first inputs."""
    for value in inputs[:3]:
        function(value)
    times = []
    processor = time.process_time()
    for value in inputs:
        begun = time.perf_counter()
        function(value)
        times.append(time.perf_counter() - begun)
    processor = (time.process_time() - processor) / len(inputs)
    return {
        "median_ms": float(np.median(times)) * 1000,
        "p95_ms": float(np.percentile(times, 95)) * 1000,
        "processor_ms": processor * 1000,
    }


def row(operation: str, times: dict[str, float], target: float | None = None) -> dict[str, Any]:
    shown: dict[str, Any] = {"operation": operation, **{name: round(value, 4) for name, value in times.items()}}
    return shown if target is None else {**shown, "target_ms": target, "met": times["median_ms"] <= target}


def against(mine: dict[str, Any], name: str, times: dict[str, float]) -> dict[str, Any]:
    ratio = times["median_ms"] / mine["median_ms"]
    return {**mine, "alternative": {"name": name, "median_ms": round(times["median_ms"], 4), "ratio": round(ratio, 2)}}


if __name__ == "__main__":
    main()
